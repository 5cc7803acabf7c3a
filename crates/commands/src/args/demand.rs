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
    #[command(flatten)]
    thresholds: ThresholdArgs,
    /// Write to this file whether each threshold holds, as JUnit's XML
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FILE", env = "TALKPATH_JUNIT")]
    pub junit: Option<PathBuf>,
    /// Exit with 1 if the machine disturbed the run past its stated limits
    #[arg(help_heading = heading::REPETITIONS, long, env = "TALKPATH_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
}

/// The thresholds of the command line.
#[derive(Debug, Args)]
pub struct ThresholdArgs {
    /// What a figure of summary.json must hold, such as `call.mos >= 3.6`, `call.mos.p10 >= 3` (.mean,
    /// .median, .p10 or .min over the repetitions), `link.up.queue_delay_ms.p95 <= 50` or
    /// `call.in_time@path.up.loss=0.01 >= 95%`. If it does not hold, the exit code is 5, or 6 if that is
    /// undecided. FLOW:zhang-2004, FLOW:g114 and FLOW:g114-good are rules with a name: a 95th percentile of
    /// at most 500 ms there and back, 400 ms and 150 ms from mouth to ear. The flag may be given several
    /// times
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FIGURE OP VALUE", value_parser = parse_require)]
    require: Vec<Demand>,
    /// The opposite of --require: what a figure must not hold, such as `call.mos < 3.6`. The flag may be
    /// given several times
    #[arg(help_heading = heading::THRESHOLDS, long, value_name = "FIGURE OP VALUE", value_parser = parse_fail_if)]
    fail_if: Vec<Demand>,
}

/// A bound that has a name, because a publication or a recommendation states it.
struct NamedRule {
    name: &'static str,
    /// The figure below the name of a flow.
    figure: &'static str,
    bound: &'static str,
}

/// The named rules, which `--require FLOW:NAME` asks for.
const RULES: [NamedRule; 3] = [
    // Zhang and Schulzrinne (2004, §4.1): "The acceptable 95th percentile delay time for VoIP is at most 500
    // ms", said of round trips.
    NamedRule { name: "zhang-2004", figure: "round_trip_delay_ms.p95", bound: "<= 500" },
    // ITU-T G.114 (05/2003): below 150 ms from mouth to ear nearly every application is unaffected. That 95 %
    // of the speech must be within it is chosen, as in the rule above.
    NamedRule { name: "g114-good", figure: "call.mouth_to_ear_ms.p95", bound: "<= 150" },
    // ITU-T G.114 (05/2003): no network is planned for more than 400 ms.
    NamedRule { name: "g114", figure: "call.mouth_to_ear_ms.p95", bound: "<= 400" },
];

/// Writes out a named rule: `call:g114` is `call.call.mouth_to_ear_ms.p95 <= 400`. A threshold that is no
/// name of a rule stays as it is.
fn written_out(text: &str) -> Result<String, String> {
    let is_threshold = text.contains(['<', '>', '=']);
    let Some((flow, name)) = text.split_once(':').filter(|_| !is_threshold) else {
        return Ok(text.to_owned());
    };
    let Some(rule) = RULES.iter().find(|rule| rule.name == name.trim()) else {
        let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        return Err(format!("no rule \"{}\"; there are {}", name.trim(), known.join(", ")));
    };
    Ok(format!("{}.{} {}", flow.trim(), rule.figure, rule.bound))
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
    /// [`ThresholdArgs::settings`].
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.thresholds.settings()
    }
}

impl ThresholdArgs {
    /// The demands as settings of the scenario. They are added to the scenario's own thresholds.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.require.iter().chain(&self.fail_if).map(Demand::setting)
    }
}

impl Demand {
    fn setting(&self) -> Setting {
        Setting::by(&self.option, &format!("thresholds.{}", self.figure), self.bound.as_str())
    }
}

/// Returns the setting of the scenario for the value of `--require` or of a campaign's `require`.
///
/// # Errors
/// Returns what is wrong with the value.
pub(crate) fn required(text: &str) -> Result<Setting, String> {
    parse_require(text).map(|demand| demand.setting())
}

fn parse_require(text: &str) -> Result<Demand, String> {
    let (figure, bound) = split_threshold(&written_out(text)?, false, percent_of)?;
    Ok(Demand { option: format!("--require \"{text}\""), figure, bound })
}

fn parse_fail_if(text: &str) -> Result<Demand, String> {
    // `--fail-if "mos < 3"` demands the opposite, so the bound becomes `>= 3`.
    let (figure, bound) = split_threshold(text, true, percent_of)?;
    Ok(Demand { option: format!("--fail-if \"{text}\""), figure, bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_with_a_name_is_the_threshold_that_its_source_states() {
        let of = |text: &str| parse_require(text).map(|demand| (demand.figure, demand.bound));
        let expected = ("call.round_trip_delay_ms.p95".to_owned(), "<= 500".to_owned());
        assert_eq!(of("call:zhang-2004").as_ref(), Ok(&expected));
        assert_eq!(of("call.round_trip_delay_ms.p95 <= 500"), Ok(expected));
        assert_eq!(of("up:g114").unwrap().0, "up.call.mouth_to_ear_ms.p95");
        let why = of("call:g144").unwrap_err();
        assert!(why.contains("no rule \"g144\"; there are zhang-2004, g114-good, g114"), "{why}");
    }
}
