//! The flags of `talkpath send` and `talkpath burst`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{DemandArgs, FamilyArgs, TableArgs, heading};

#[derive(Debug, Args)]
pub struct SendArgs {
    /// The file to send
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub transfer: TransferArgs,
}

#[derive(Debug, Args)]
pub struct BurstArgs {
    /// The payload of each message, in bytes unless a unit is given. KB is read as 1024 B, and kB is 1000 B
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "SIZE", default_value = "128")]
    pub size: String,
    /// How many messages
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "N", default_value_t = 10_000)]
    pub count: u64,
    #[command(flatten)]
    pub transfer: TransferArgs,
}

/// The flags that `send` and `burst` share. Both run one flow to one host.
#[derive(Debug, Args)]
pub struct TransferArgs {
    /// The host that runs `talkpath serve`; port 7160 unless given
    #[arg(help_heading = heading::WHERE, long, value_name = "HOST[:PORT]", env = "TALKPATH_TO", value_hint = ValueHint::Hostname)]
    pub to: String,
    /// The transport, such as tcp or udp (default: tcp for a file, udp for a burst)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TRANSPORT")]
    pub transport: Option<String>,
    /// How long the transfer may take. It ends earlier if everything has arrived (default: 10 min over TCP
    /// and streams of QUIC. Over other transports lost data never arrives, so a file has 60 s and a burst 10
    /// s)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME")]
    pub duration: Option<String>,
    /// The file with the key, the same as for `talkpath serve --key-file`
    #[arg(help_heading = heading::WHERE, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    pub family: FamilyArgs,
    /// How many times the transfer runs, one after the other
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "N", env = "TALKPATH_REPEAT", default_value_t = 1)]
    pub repeat: u64,
    #[command(flatten)]
    pub demand: DemandArgs,
    #[command(flatten)]
    pub tables: TableArgs,
}
