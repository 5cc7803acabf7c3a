//! The command line of `talkpath mos`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use talkpath_measure::Codec;
use talkpath_scenario::{as_percent, parse_duration, percentage};
use talkpath_units::Duration;

#[derive(Debug, Args)]
pub struct MosArgs {
    /// The codec
    #[arg(long, default_value = Codec::G711.name(), value_parser = codec())]
    pub codec: Codec,
    /// g711: the receiver plays silence where a frame is missing; else it conceals that by G.711 Appendix I
    #[arg(long)]
    pub no_plc: bool,
    /// Has no effect: concealment is the default
    #[arg(long, hide = true, conflicts_with = "no_plc")]
    pub plc: bool,
    /// From mouth to ear: network, playout buffer, codec
    #[arg(long, value_name = "TIME", default_value = "0 ms", value_parser = delay)]
    pub one_way: Duration,
    /// Frames that are not played, lost or late: `1%` or `0.01`
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    pub loss: Share,
    /// Mean length of the runs of lost frames, over the mean length if as many were lost at random
    #[arg(long, value_name = "RATIO", default_value = "1.0", value_parser = burst_ratio)]
    pub burst_ratio: f64,
}

/// The codecs whose impairment is known.
fn codec() -> impl TypedValueParser<Value = Codec> {
    let words = Codec::ALL.iter().map(|codec| PossibleValue::new(codec.name()).help(codec.row().about));
    PossibleValuesParser::new(words).try_map(|word| Codec::named(&word).ok_or("no codec"))
}

/// What no conversation outlasts; the model was made for half a second.
const LONGEST: Duration = Duration::from_secs(3600);

fn delay(text: &str) -> Result<Duration, String> {
    parse_duration(text, LONGEST)
}

/// A share of the command line, and how it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// From 0 to 1.
    pub value: f64,
    text: String,
}

impl Share {
    /// As a scenario's key takes it, in TOML.
    pub fn as_toml(&self) -> String {
        format!("\"{}\"", as_percent(self.value))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// `1%` or 0.01. A bare 1 is refused like 2: other tools have loss in per cent, so it may be 1 % or all.
pub(super) fn share(text: &str) -> Result<Share, String> {
    let text = text.trim();
    let bare: Option<f64> = text.parse().ok();
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    let value = percentage(text).filter(is_share).or(bare.filter(|share| is_share(share) && *share < 1.0));
    let help = || match bare {
        Some(1.0) => "; did you mean 1% or 100%?".to_owned(),
        Some(1.0..=100.0) => format!("; did you mean {text}%?"),
        _ => String::new(),
    };
    let value =
        value.ok_or_else(|| format!("expected 0% to 100%, or a number from 0 to below 1{}", help()))?;
    // Minus zero is zero.
    Ok(Share { value: value + 0.0, text: text.to_owned() })
}

fn burst_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse().ok().filter(|ratio: &f64| (1.0..=1000.0).contains(ratio));
    ratio.ok_or_else(|| "expected 1 (loss at random) to 1000".to_owned())
}
