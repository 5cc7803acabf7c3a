//! The command line of `talkpath export`.

use core::convert::Infallible;
use core::str::FromStr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,
    /// The format. csv, jsonl and parquet hold a table; log is a text for people
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// The table, for csv, jsonl and parquet (default: messages)
    #[arg(long, value_enum)]
    pub table: Option<ExportTable>,
    /// The repetition, for pcapng, qlog and nam
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repetition: u64,
    /// The cell of the sweep, for pcapng, qlog and nam
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub cell: u64,
    /// Where packets are recorded, for pcapng and qlog: near or far, the sending or the receiving end of each
    /// flow; for pcapng of a simulated run also LINK, the host or router where this link begins
    #[arg(long, value_name = "near|far|LINK", default_value = "near")]
    pub at: CaptureAt,
    /// pcapng: leave DCCP within UDP (RFC 6773), instead of unwrapping it to IP protocol 33
    #[arg(long)]
    pub encapsulated: bool,
    /// The run time at which a nam file begins
    #[arg(long, value_name = "TIME", default_value = "0 s")]
    pub from: String,
    /// How much of the run a nam file holds (default: until the flows stop sending)
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<String>,
    /// Where to write the export (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Where packets are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureAt {
    /// The end that sends the flow's messages
    Near,
    /// The end that receives the flow's messages
    Far,
    /// The host or router at which the link of this name begins
    Link(String),
}

impl FromStr for CaptureAt {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(match word {
            "near" => Self::Near,
            "far" => Self::Far,
            link => Self::Link(link.to_owned()),
        })
    }
}

/// A table of an export. Every field holds one value. Each swept key has its own column, in SI units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportTable {
    /// One row for each message and direction: packets.parquet with the swept keys
    Messages,
    /// One row for each point of a quantity over time: series.parquet with the swept keys
    Series,
    /// One row for each flow in each repetition, with a column for each figure
    Repetitions,
    /// One row for each figure of a flow, and of the program, in each cell: its median, mean and 95 %
    /// interval
    Cells,
    /// One row for each link in each repetition, with a column for each figure
    Links,
    /// One row for each repetition of the program of a scenario, with a column for each figure that it
    /// printed
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A header, then one line for each row, with commas between the fields
    Csv,
    /// One JSON object on a line for each row
    Jsonl,
    /// A Parquet file, each column with its type
    Parquet,
    /// Every packet as one end saw it, for tshark. A simulation is run again; an emulated run must have been
    /// run with --capture
    Pcapng,
    /// What one end of every QUIC connection sent, received and measured, as qlog
    /// (draft-ietf-quic-qlog-quic-events). A simulation is run again; other runs must have been run with
    /// --qlog
    Qlog,
    /// Nodes, links and the route of every packet, for the network animator nam. The simulation is run again
    Nam,
    /// A line for each transfer: start, end, transfer time, packet size, received, expected, protocol
    Log,
}
