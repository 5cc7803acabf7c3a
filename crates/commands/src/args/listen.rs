//! The command line of `talkpath listen`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};
use talkpath_scenario::parse_duration;
use talkpath_units::Duration;

use super::{ReadingArgs, heading};

/// What the help says last.
const CODERS: &str = if cfg!(feature = "opus") {
    "This program plays calls in G.711 and Opus. The free decoder of G.729A, bcg729, is under the GPL."
} else {
    "This program plays calls in G.711. Built with `cargo build --release --features opus` it plays Opus, too."
};

#[derive(Debug, Args)]
#[command(after_help = CODERS)]
pub struct ListenArgs {
    /// The run directory, or a capture in the format pcap or pcapng
    #[arg(value_name = "RUN_DIR|CALL.pcapng")]
    pub source: PathBuf,
    /// The call to listen to (default: the first flow of a run that is one, and each call of a capture)
    #[arg(long, value_name = "FLOW")]
    pub flow: Option<String>,
    /// The transports to listen to, each in a file of its own (default: all over which the run has the call)
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub transports: Vec<String>,
    /// Which cell of the sweep (default: the first one of each transport)
    #[arg(long, value_name = "N")]
    pub cell: Option<u64>,
    /// Which repetition (default: the one that the report draws)
    #[arg(long, value_name = "N")]
    pub repetition: Option<u64>,
    /// What the speaker says: a WAV file with 1 or 2 channels at 8 to 48 kHz, which is played again until the
    /// call ends (default: the speech of a capture, or else 6 s of a book, read aloud)
    #[arg(long, value_name = "SPEECH.wav")]
    pub input: Option<PathBuf>,
    /// How much of the call to listen to, 10 min at most
    #[arg(long = "for", value_name = "TIME", default_value = "60 s", value_parser = parse_length)]
    pub length: Duration,
    /// The law of a call in G.711 (default: mu, or that of a capture's payload type)
    #[arg(long, value_enum)]
    pub law: Option<LawWord>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Where to write the sound. With several transports each file has its transport in its name, as in
    /// call-udp.wav. A page that plays all of them is written beside it, as call.html
    #[arg(help_heading = heading::FILES, short, long, value_name = "FILE.wav", default_value = "call.wav")]
    pub output: PathBuf,
    /// Play the sounds in report.html of the run, which grows by them, in place of a page beside the sound.
    /// Of a capture it is the report.html that `rate` makes
    #[arg(help_heading = heading::FILES, long, value_parser = FalseyValueParser::new())]
    pub report: bool,
}

/// A law of G.711.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LawWord {
    /// PCMU, as in North America and Japan
    Mu,
    /// PCMA, as in other countries
    A,
}

/// The longest sound. We chose 10 min, so that the memory is bounded: 58 MB at 48 kHz for each transport.
const LONGEST: Duration = Duration::from_secs(600);

fn parse_length(text: &str) -> Result<Duration, String> {
    let length = parse_duration(text, LONGEST)?;
    if length < Duration::from_secs(1) {
        return Err("expected 1 s to 10 min".to_owned());
    }
    Ok(length)
}
