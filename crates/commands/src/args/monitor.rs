//! The command line of `talkpath monitor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use talkpath_scenario::{Compared, parse_duration, si_amount};
use talkpath_units::Duration;

use super::{heading, key_value, workload};

#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// A scenario whose flows are measured instead of one call; --session is its duration
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// What carries the messages
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TRANSPORT", default_value = "udp", conflicts_with = "scenario")]
    pub transport: String,
    /// What is carried
    #[arg(help_heading = heading::TRAFFIC, long, value_parser = workload(), default_value = Compared::Voice.name(), conflicts_with = "scenario")]
    pub workload: Compared,
    /// How many flows of this kind at the same time
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "N", default_value_t = 1, conflicts_with = "scenario",
          value_parser = clap::value_parser!(u64).range(1..=64))]
    pub flows: u64,
    /// From one event to the next, at least 1 s
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME", default_value = "10s", env = "TALKPATH_INTERVAL", value_parser = interval)]
    pub interval: Duration,
    /// From one session with the server to the next, at most 1 h; whole intervals. Over TCP and DCCP each
    /// opens its connections anew (default: an interval, or as many as make 10 s)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME", value_parser = session)]
    pub session: Option<Duration>,
    /// Set a key of the scenario; may be given again
    #[arg(help_heading = heading::KEYS, long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// The host that runs `talkpath serve`; port 7160 unless given
    #[arg(help_heading = heading::WHERE, long, value_name = "HOST[:PORT]", env = "TALKPATH_TO", value_hint = ValueHint::Hostname)]
    pub to: String,
    /// The key that `talkpath serve --key-file` was given
    #[arg(help_heading = heading::WHERE, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    /// Both hosts' clocks are kept by GPS or PTP, so stamps are compared as they are
    #[arg(help_heading = heading::WHERE, long, env = "TALKPATH_CLOCKS_SYNCHRONISED", value_parser = FalseyValueParser::new())]
    pub clocks_synchronised: bool,
    /// Begin a new run directory after this long, or when the records are this large
    #[arg(help_heading = heading::FILES, long, value_name = "TIME|SIZE", default_value = "1h", env = "TALKPATH_ROTATE", value_parser = rotation)]
    pub rotate: Amount,
    /// Remove the oldest run directories of this monitor: those older than this, or beyond this size in all
    /// (default: keep them all)
    #[arg(help_heading = heading::FILES, long, value_name = "TIME|SIZE", env = "TALKPATH_MONITOR_KEEP", value_parser = amount)]
    pub keep: Option<Amount>,
    /// Serve metrics over HTTP at this address, at /metrics; loopback alone unless --metrics-open
    #[arg(help_heading = heading::METRICS, long, value_name = "ADDR:PORT", env = "TALKPATH_METRICS")]
    pub metrics: Option<SocketAddr>,
    /// Let everybody read the metrics who can reach their port
    #[arg(help_heading = heading::METRICS, long, requires = "metrics", env = "TALKPATH_METRICS_OPEN", value_parser = FalseyValueParser::new())]
    pub metrics_open: bool,
    /// Keep the metrics in this file too, for node_exporter's textfile collector; its name ends in .prom
    #[arg(help_heading = heading::METRICS, long, value_name = "FILE", env = "TALKPATH_TEXTFILE", value_parser = textfile)]
    pub textfile: Option<PathBuf>,
    /// Print events, one JSON object a line: start, interval, outage, recovered, error, end
    #[arg(help_heading = heading::OUTPUT, long, env = "TALKPATH_JSON_STREAM", value_parser = FalseyValueParser::new())]
    pub json_stream: bool,
}

/// A time or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Time(Duration),
    Bytes(u64),
}

fn interval(text: &str) -> Result<Duration, String> {
    at_least_a_second(parse_duration(text, LONGEST_SESSION)?)
}

fn session(text: &str) -> Result<Duration, String> {
    at_least_a_second(parse_duration(text, LONGEST_SESSION)?)
}

fn at_least_a_second(duration: Duration) -> Result<Duration, String> {
    if duration >= Duration::from_secs(1) { Ok(duration) } else { Err("expected at least 1 s".to_owned()) }
}

fn textfile(text: &str) -> Result<PathBuf, String> {
    match text.ends_with(".prom") && !text.ends_with("/.prom") && text != ".prom" {
        true => Ok(PathBuf::from(text)),
        false => Err("expected a name that ends in .prom: node_exporter reads no other".to_owned()),
    }
}

fn rotation(text: &str) -> Result<Amount, String> {
    match amount(text)? {
        Amount::Time(time) if time > LONGEST_ROTATION => Err("expected at most 24 h".to_owned()),
        Amount::Time(time) if time < SHORTEST_ROTATION => Err("expected at least 1 min".to_owned()),
        amount => Ok(amount),
    }
}

/// As scenario files have quantities, with days.
fn amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    let days = text.strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    let time = |seconds: f64| Amount::Time(Duration::from_secs_f64(seconds));
    let found = match (days, si_amount(text)) {
        (Some(days), _) => Some(time(f64::from(days) * 86_400.0)),
        (None, Some(amount)) if amount.unit == "s" => Some(time(amount.value)),
        (None, Some(amount)) if amount.unit == "bytes" => Some(Amount::Bytes(amount.value as u64)),
        _ => None,
    };
    let is_something = |amount: &Amount| !matches!(amount, Amount::Time(Duration::ZERO) | Amount::Bytes(0));
    found
        .filter(is_something)
        .ok_or_else(|| "expected a time or a size, as in 1h, 7d, 500MB or 20 GB".to_owned())
}

/// A server grants a session 3660 s with its drain.
const LONGEST_SESSION: Duration = Duration::from_secs(3600);
/// A run directory is put together in memory, session by session (chosen: 8,640 sessions of 10 s).
const LONGEST_ROTATION: Duration = Duration::from_secs(86_400);
/// Chosen: a directory holds some sessions.
const SHORTEST_ROTATION: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_and_a_retention_are_times_or_sizes() {
        assert_eq!(amount("7d"), Ok(Amount::Time(Duration::from_secs(7 * 86_400))));
        assert_eq!(amount("1h"), Ok(Amount::Time(Duration::from_secs(3600))));
        assert_eq!(amount("20 GB"), Ok(Amount::Bytes(20_000_000_000)));
        for wrong in ["", "d", "0d", "0 s", "7", "10 Mbps", "-1d", "1.5d"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
        assert!(rotation("25h").is_err() && rotation("59s").is_err() && rotation("60s").is_ok());
    }

    #[test]
    fn a_textfile_has_the_ending_that_is_read() {
        assert!(textfile("/var/lib/node_exporter/talkpath.prom").is_ok());
        for wrong in ["talkpath.txt", ".prom", "/a/.prom", ""] {
            assert!(textfile(wrong).is_err(), "{wrong}");
        }
    }
}
