//! The flags of `talkpath monitor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use talkpath_scenario::{ComparedWorkload, parse_duration, si_amount};
use talkpath_units::Duration;

use super::{FamilyArgs, ThresholdArgs, heading, parse_key_value, workload_parser};

/// The longest session. A server grants a session 3660 s together with its drain.
const LONGEST_SESSION: Duration = Duration::from_secs(3600);
/// The longest time that one run directory covers. We chose a day because the directory is put together in
/// memory, where 8,640 sessions of 10 s fit.
const LONGEST_ROTATION: Duration = Duration::from_secs(86_400);
/// The shortest time that one run directory covers. We chose a minute so that the directory holds several
/// sessions.
const SHORTEST_ROTATION: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// A scenario whose flows are measured instead of one call. --session replaces its duration
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// The transport that carries the messages
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TRANSPORT", default_value = "udp", conflicts_with = "scenario")]
    pub transport: String,
    /// The kind of traffic
    #[arg(help_heading = heading::TRAFFIC, long, value_parser = workload_parser(), default_value = ComparedWorkload::Voice.name(), conflicts_with = "scenario")]
    pub workload: ComparedWorkload,
    /// How many flows of this kind at the same time
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "N", default_value_t = 1, conflicts_with = "scenario",
          value_parser = clap::value_parser!(u64).range(1..=64))]
    pub flows: u64,
    /// The time from one event to the next, at least 1 s
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME", default_value = "10s", env = "TALKPATH_INTERVAL", value_parser = parse_session_time)]
    pub interval: Duration,
    /// The time from one session with the server to the next, a multiple of --interval and at most 1 h. Over
    /// TCP and DCCP each session opens its connections anew (default: one interval, or as many as make 10 s)
    #[arg(help_heading = heading::TRAFFIC, long, value_name = "TIME", value_parser = parse_session_time)]
    pub session: Option<Duration>,
    /// Set a key of the scenario. The flag may be given several times
    #[arg(help_heading = heading::KEYS, long, value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub set: Vec<(String, String)>,
    /// The host that runs `talkpath serve`; port 7160 unless given
    #[arg(help_heading = heading::WHERE, long, value_name = "HOST[:PORT]", env = "TALKPATH_TO", value_hint = ValueHint::Hostname)]
    pub to: String,
    /// The file with the key, the same as for `talkpath serve --key-file`
    #[arg(help_heading = heading::WHERE, long, value_name = "FILE", env = "TALKPATH_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    pub family: FamilyArgs,
    /// Take the clocks of both hosts as equal, because GPS or PTP keeps them
    #[arg(help_heading = heading::WHERE, long, env = "TALKPATH_CLOCKS_SYNCHRONISED", value_parser = FalseyValueParser::new())]
    pub clocks_synchronised: bool,
    #[command(flatten)]
    pub thresholds: ThresholdArgs,
    /// Judge the thresholds over the intervals of the last TIME, at most 1000 intervals (default: the last
    /// six intervals)
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "TIME", env = "TALKPATH_OVER", value_parser = parse_session_time)]
    pub over: Option<Duration>,
    /// End as soon as a threshold fails, with exit code 5
    #[arg(help_heading = heading::THRESHOLDS, long, env = "TALKPATH_UNTIL_FAILS", value_parser = FalseyValueParser::new())]
    pub until_fails: bool,
    /// Begin a new run directory after this long, or when the records are this large
    #[arg(help_heading = heading::FILES, long, value_name = "TIME|SIZE", default_value = "1h", env = "TALKPATH_ROTATE", value_parser = parse_rotation)]
    pub rotate: Amount,
    /// Remove run directories of this monitor that are older than TIME, or the oldest of them if all together
    /// are larger than SIZE (default: keep them all)
    #[arg(help_heading = heading::FILES, long, value_name = "TIME|SIZE", env = "TALKPATH_MONITOR_KEEP", value_parser = parse_amount)]
    pub keep: Option<Amount>,
    /// Serve metrics over HTTP at this address, at /metrics. The address must be a loopback one unless
    /// --metrics-open is given
    #[arg(help_heading = heading::METRICS, long, value_name = "ADDR:PORT", env = "TALKPATH_METRICS")]
    pub metrics: Option<SocketAddr>,
    /// Let everybody who can reach the port read the metrics
    #[arg(help_heading = heading::METRICS, long, requires = "metrics", env = "TALKPATH_METRICS_OPEN", value_parser = FalseyValueParser::new())]
    pub metrics_open: bool,
    /// Also write the metrics to this file, for the textfile collector of node_exporter. The name must end in
    /// .prom
    #[arg(help_heading = heading::METRICS, long, value_name = "FILE", env = "TALKPATH_TEXTFILE", value_parser = parse_textfile)]
    pub textfile: Option<PathBuf>,
    /// Print events, one JSON object a line: start, interval, threshold, outage, recovered, error, end
    #[arg(help_heading = heading::OUTPUT, long, env = "TALKPATH_JSON_STREAM", value_parser = FalseyValueParser::new())]
    pub json_stream: bool,
}

/// A time or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Time(Duration),
    Bytes(u64),
}

/// Reads the time of a session or of an interval.
fn parse_session_time(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text, LONGEST_SESSION)?;
    if duration >= Duration::from_secs(1) { Ok(duration) } else { Err("expected at least 1 s".to_owned()) }
}

fn parse_textfile(text: &str) -> Result<PathBuf, String> {
    let is_hidden = text == ".prom" || text.ends_with("/.prom");
    if text.ends_with(".prom") && !is_hidden {
        return Ok(PathBuf::from(text));
    }
    Err("expected a name that ends in .prom: node_exporter reads no other".to_owned())
}

fn parse_rotation(text: &str) -> Result<Amount, String> {
    match parse_amount(text)? {
        Amount::Time(time) if time > LONGEST_ROTATION => Err("expected at most 24 h".to_owned()),
        Amount::Time(time) if time < SHORTEST_ROTATION => Err("expected at least 1 min".to_owned()),
        amount => Ok(amount),
    }
}

/// Reads a time or a size, in the units of scenario files or in days.
fn parse_amount(text: &str) -> Result<Amount, String> {
    match unchecked_amount(text.trim()) {
        None | Some(Amount::Time(Duration::ZERO) | Amount::Bytes(0)) => {
            Err("expected a time or a size, as in 1h, 7d, 500MB or 20 GB".to_owned())
        }
        Some(amount) => Ok(amount),
    }
}

/// Reads an amount that may be zero.
fn unchecked_amount(text: &str) -> Option<Amount> {
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok()) {
        return Some(Amount::Time(Duration::from_secs_f64(f64::from(days) * 86_400.0)));
    }
    let amount = si_amount(text)?;
    match amount.unit {
        "s" => Some(Amount::Time(Duration::from_secs_f64(amount.value))),
        "bytes" => Some(Amount::Bytes(amount.value as u64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_and_a_retention_are_times_or_sizes() {
        assert_eq!(parse_amount("7d"), Ok(Amount::Time(Duration::from_secs(7 * 86_400))));
        assert_eq!(parse_amount("1h"), Ok(Amount::Time(Duration::from_secs(3600))));
        assert_eq!(parse_amount("20 GB"), Ok(Amount::Bytes(20_000_000_000)));
        for wrong in ["", "d", "0d", "0 s", "7", "10 Mbps", "-1d", "1.5d"] {
            assert!(parse_amount(wrong).is_err(), "{wrong}");
        }
        for wrong in ["25h", "59s"] {
            assert!(parse_rotation(wrong).is_err(), "{wrong}");
        }
        assert!(parse_rotation("60s").is_ok());
    }

    #[test]
    fn a_textfile_has_the_ending_that_is_read() {
        assert!(parse_textfile("/var/lib/node_exporter/talkpath.prom").is_ok());
        for wrong in ["talkpath.txt", ".prom", "/a/.prom", ""] {
            assert!(parse_textfile(wrong).is_err(), "{wrong}");
        }
    }
}
