//! `--require`, `--fail-if`, `--junit` and `--strict`: what a run must hold.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;
use talkpath_scenario::{Setting, split_threshold};

use super::heading;
use crate::shares::percent_of;

/// The flags about what a run must hold. `compare`, `run`, `shell`, `rate`, `send` and
/// `burst` share them.
#[derive(Debug, Args)]
pub struct DemandArgs {
    /// What a figure of summary.json must hold, such as `call.mos >= 3.6`, `call.mos.p10 >= 3` (.mean,
    /// .median, .p10 or .min over the repetitions), `link.up.queue_delay_ms.p95 <= 50` or
    /// `call.in_time@path.up.loss=0.01 >= 95%`. If it does not hold, the exit code is 5, or 6 if that is
    /// undecided. The flag may be given several times
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FIGURE OP VALUE", value_parser = parse_require)]
    require: Vec<Demand>,
    /// The opposite of --require: what a figure must not hold, such as `call.mos < 3.6`. The flag may be
    /// given several times
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FIGURE OP VALUE", value_parser = parse_fail_if)]
    fail_if: Vec<Demand>,
    /// Write to this file whether each threshold holds, as JUnit's XML
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FILE", env = "TALKPATH_JUNIT")]
    pub junit: Option<PathBuf>,
    /// Exit with 1 if the machine disturbed the run past its stated limits
    #[arg(help_heading = heading::REPETITIONS, long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
}

/// A threshold that the user wrote on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// The flag with its value, for messages.
    option: String,
    figure: String,
    /// What the figure must hold, such as `>= 3.6`.
    bound: String,
}

impl DemandArgs {
    /// The demands as settings of the scenario. They are added to the scenario's own thresholds.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        let demands = self.require.iter().chain(&self.fail_if);
        demands.map(|demand| {
            let key = format!("thresholds.{}", demand.figure);
            Setting::by(&demand.option, &key, demand.bound.as_str())
        })
    }
}

fn parse_require(text: &str) -> Result<Demand, String> {
    let (figure, bound) = split_threshold(text, false, percent_of)?;
    Ok(Demand { option: format!("--require \"{text}\""), figure, bound })
}

fn parse_fail_if(text: &str) -> Result<Demand, String> {
    // `--fail-if "mos < 3"` demands the opposite, so the bound becomes `>= 3`.
    let (figure, bound) = split_threshold(text, true, percent_of)?;
    Ok(Demand { option: format!("--fail-if \"{text}\""), figure, bound })
}
