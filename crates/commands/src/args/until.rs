//! `--until-decided`: repeat until the thresholds, or else the answers, are decided.

use clap::Args;
use talkpath_scenario::parse_duration;
use talkpath_units::Duration;

use super::heading;

/// The longest time that may be given. We chose a week, because who waits longer wants `monitor`.
const MAX_LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The flag about how long a run goes on. `run` and `compare` share it.
#[derive(Debug, Args)]
pub struct UntilArgs {
    /// Repeat until the thresholds are decided, or the answer if there are no thresholds, but for no longer
    /// than this (default: 30min). A repetition that has begun ends
    #[arg(help_heading = heading::REPETITIONS, long, value_name = "LONGEST", num_args = 0..=1, require_equals = true, default_missing_value = "30min", value_parser = parse_longest)]
    pub until_decided: Option<Duration>,
}

fn parse_longest(text: &str) -> Result<Duration, String> {
    let longest = parse_duration(text, MAX_LONGEST)?;
    if longest >= Duration::from_secs(1) { Ok(longest) } else { Err("expected at least 1 s".to_owned()) }
}
