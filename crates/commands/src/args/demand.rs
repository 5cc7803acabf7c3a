//! `--require`, `--fail-if` and `--junit`: what the figures must hold.

use std::path::PathBuf;

use clap::Args;
use talkpath_scenario::{Setting, split_threshold};

use super::heading;

/// What a run must hold: what `compare` and `run` share.
#[derive(Debug, Args)]
pub struct DemandArgs {
    /// What a figure of summary.json must hold, such as `call.mos >= 3.6`, `call.mos.p10 >= 3` (.mean,
    /// .median, .p10 or .min over the repetitions), `link.up.queue_delay_ms.p95 <= 50` or
    /// `call.in_time@path.up.loss=0.01 >= 95%`, else the exit code is 5, or 6 if it is undecided; may be
    /// given again
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FIGURE OP VALUE", value_parser = required)]
    require: Vec<Demand>,
    /// The opposite: what it must not hold, such as `call.mos < 3.6`; may be given again
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FIGURE OP VALUE", value_parser = failing)]
    fail_if: Vec<Demand>,
    /// Write whether each threshold holds to this file, as JUnit's XML
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FILE", env = "TALKPATH_JUNIT")]
    pub junit: Option<PathBuf>,
}

/// A threshold on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    option: String,
    figure: String,
    bound: String,
}

impl DemandArgs {
    /// As keys of the scenario: its own thresholds stay.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        let demands = self.require.iter().chain(&self.fail_if);
        demands.map(|it| Setting::by(&it.option, &format!("thresholds.{}", it.figure), it.bound.as_str()))
    }
}

fn required(text: &str) -> Result<Demand, String> {
    demand(text, false)
}

fn failing(text: &str) -> Result<Demand, String> {
    demand(text, true)
}

fn demand(text: &str, is_opposite: bool) -> Result<Demand, String> {
    let (figure, bound) = split_threshold(text, is_opposite)?;
    let flag = if is_opposite { "--fail-if" } else { "--require" };
    Ok(Demand { option: format!("{flag} \"{text}\""), figure, bound })
}
