//! The command line of `talkpath serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;
use talkpath_scenario::{parse_duration, parse_rate};
use talkpath_system::ports::DEFAULT_PORT;
use talkpath_units::{Duration, Rate};

use super::{heading, socket_address};

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on, for UDP and TCP alike, at port 7160 unless given; may be given again (default:
    /// every address)
    #[arg(help_heading = heading::SERVED, long, value_name = "ADDR[:PORT]", env = "TALKPATH_BIND", value_delimiter = ',', value_parser = |text: &str| socket_address(text, DEFAULT_PORT))]
    pub bind: Vec<SocketAddr>,
    /// Serve only those who hold the key in this file (to make one: head -c 32 /dev/urandom | base64 > FILE)
    #[arg(help_heading = heading::SERVED, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    /// Keep files that arrive intact in this folder; without it no file is kept
    #[arg(long, value_name = "DIR", env = "TALKPATH_KEEP")]
    pub keep: Option<PathBuf>,
    /// Run the threads that pace flows downwards in SCHED_FIFO, before everything else on this host; needs
    /// the permission
    #[arg(long, env = "TALKPATH_REAL_TIME", value_parser = FalseyValueParser::new())]
    pub real_time: bool,
    /// Serve everybody who can reach this port; without it and without a key only loopback is served
    #[arg(help_heading = heading::SERVED, long, env = "TALKPATH_OPEN", value_parser = FalseyValueParser::new())]
    pub open: bool,
    /// Sessions at a time; one address has at most half of them
    #[arg(help_heading = heading::LIMITS, long, value_name = "N", env = "TALKPATH_MAX_SESSIONS", default_value = "16", value_parser = count)]
    pub max_sessions: u64,
    /// Flows of a session
    #[arg(help_heading = heading::LIMITS, long, value_name = "N", env = "TALKPATH_MAX_FLOWS", default_value = "64", value_parser = count)]
    pub max_flows: u64,
    /// Payload that a session's flows send within a second together, such as 20Mbps; bursts and bulk over UDP
    /// count as sent within one
    #[arg(help_heading = heading::LIMITS, long, value_name = "RATE", env = "TALKPATH_MAX_RATE", default_value = "1Gbps", value_parser = parse_rate)]
    pub max_rate: Rate,
    /// Messages that this host sends for a session within a second, counted as for --max-rate
    #[arg(help_heading = heading::LIMITS, long, value_name = "N", env = "TALKPATH_MAX_PACKETS", default_value = "10000", value_parser = count)]
    pub max_packets: u64,
    /// Duration and drain of a run together
    #[arg(help_heading = heading::LIMITS, long, value_name = "TIME", env = "TALKPATH_MAX_DURATION", default_value = "3660s", value_parser = duration)]
    pub max_duration: Duration,
}

fn count(text: &str) -> Result<u64, String> {
    let count = text.trim().parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a number from 1".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text, LONGEST)?;
    if duration >= Duration::from_secs(1) { Ok(duration) } else { Err("expected at least 1 s".to_owned()) }
}

/// A week: sessions are measurements, and a seat is given back some day (chosen).
const LONGEST: Duration = Duration::from_secs(7 * 86_400);
