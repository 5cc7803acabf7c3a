//! The flags of `talkpath serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;
use talkpath_scenario::{parse_duration, parse_rate};
use talkpath_system::ports::DEFAULT_PORT;
use talkpath_units::{Duration, Rate};

use super::{heading, parse_socket_address};

/// The longest run that a server can allow. We chose a week, so that every session ends some day and others
/// find a place.
const MAX_RUN_TIME: Duration = Duration::from_secs(7 * 86_400);

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The address to listen on, for UDP and TCP; port 7160 unless given. The flag may be given several times
    /// (default: every address)
    #[arg(help_heading = heading::SERVED, long, value_name = "ADDR[:PORT]", env = "TALKPATH_BIND", value_delimiter = ',', value_parser = |text: &str| parse_socket_address(text, DEFAULT_PORT))]
    pub bind: Vec<SocketAddr>,
    /// Listen on this port, too, for UDP and TCP. A client whose UDP is blocked on the first port tries it,
    /// for example 443. The flag may be given several times
    #[arg(help_heading = heading::SERVED, long, value_name = "PORT", env = "TALKPATH_ALSO", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub also: Vec<u16>,
    /// Serve only clients that know the key in this file (to make one: head -c 32 /dev/urandom | base64 >
    /// FILE)
    #[arg(help_heading = heading::SERVED, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    /// Keep files that arrive intact in this folder, and the log of all transfers beside them. Without this
    /// flag no file is kept
    #[arg(long, value_name = "DIR", env = "TALKPATH_KEEP")]
    pub keep: Option<PathBuf>,
    /// Write the log of all transfers, receive-log.txt, to this folder (default: the folder of --keep)
    #[arg(long, value_name = "DIR", env = "TALKPATH_LOG")]
    pub log: Option<PathBuf>,
    /// Run the threads that send to clients in SCHED_FIFO, so that they go before everything else on this
    /// host. This needs a permission
    #[arg(long, env = "TALKPATH_REAL_TIME", value_parser = FalseyValueParser::new())]
    pub real_time: bool,
    /// Serve everybody who can reach this port. Without this flag and without a key only this machine is
    /// served
    #[arg(help_heading = heading::SERVED, long, env = "TALKPATH_OPEN", value_parser = FalseyValueParser::new())]
    pub open: bool,
    /// How many sessions run at the same time. One address gets at most half of them
    #[arg(help_heading = heading::LIMITS, long, value_name = "N", env = "TALKPATH_MAX_SESSIONS", default_value = "16", value_parser = parse_count)]
    pub max_sessions: u64,
    /// How many flows a session has
    #[arg(help_heading = heading::LIMITS, long, value_name = "N", env = "TALKPATH_MAX_FLOWS", default_value = "64", value_parser = parse_count)]
    pub max_flows: u64,
    /// The payload that all flows of a session together send within a second, such as 20Mbps. A burst, or
    /// bulk traffic over UDP, counts as if all of it were sent within one second
    #[arg(help_heading = heading::LIMITS, long, value_name = "RATE", env = "TALKPATH_MAX_RATE", default_value = "1Gbps", value_parser = parse_rate)]
    pub max_rate: Rate,
    /// How many messages this host sends for a session within a second, counted as for --max-rate
    #[arg(help_heading = heading::LIMITS, long, value_name = "N", env = "TALKPATH_MAX_PACKETS", default_value = "10000", value_parser = parse_count)]
    pub max_packets: u64,
    /// How long a run with its drain may take
    #[arg(help_heading = heading::LIMITS, long, value_name = "TIME", env = "TALKPATH_MAX_DURATION", default_value = "3660s", value_parser = parse_max_duration)]
    pub max_duration: Duration,
}

fn parse_count(text: &str) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(0) | Err(_) => Err("expected a number from 1".to_owned()),
        Ok(count) => Ok(count),
    }
}

fn parse_max_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text, MAX_RUN_TIME)?;
    if duration >= Duration::from_secs(1) { Ok(duration) } else { Err("expected at least 1 s".to_owned()) }
}
