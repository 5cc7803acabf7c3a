//! The command line of `talkpath mos`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use talkpath_measure::{Bandwidth, Codec};
use talkpath_scenario::{as_percent, parse_duration, parse_rate, percentage};
use talkpath_units::{Duration, Rate};

#[derive(Debug, Args)]
pub struct MosArgs {
    /// The codec
    #[arg(long, default_value = Codec::G711.name(), value_parser = codec_parser())]
    pub codec: Codec,
    /// opus: the bandwidth of the speech, which decides the scale of the score (default: swb)
    #[arg(long, value_parser = bandwidth_parser())]
    pub bandwidth: Option<Bandwidth>,
    /// opus: the bit rate, as in `24kbps` (default: 32 kbps)
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub bitrate: Option<Rate>,
    /// opus: the bit rate is constant. Without this flag it holds on average
    #[arg(long)]
    pub cbr: bool,
    /// g711: the receiver plays silence where a frame is missing. Without this flag it conceals missing
    /// frames by G.711 Appendix I
    #[arg(long)]
    pub no_plc: bool,
    /// Has no effect, because concealment is the default
    #[arg(long, hide = true, conflicts_with = "no_plc")]
    pub plc: bool,
    /// The delay from mouth to ear: of the network, the playout buffer and the codec together
    #[arg(long, value_name = "TIME", default_value = "0 ms", value_parser = parse_delay)]
    pub one_way: Duration,
    /// The share of frames that are not played because they are lost or late: `1%` or `0.01`
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share)]
    pub loss: Share,
    /// The mean length of the runs of lost frames, divided by the mean length that as many random losses have
    #[arg(long, value_name = "RATIO", default_value = "1.0", value_parser = parse_burst_ratio)]
    pub burst_ratio: f64,
}

/// Makes a parser for the names of bandwidths.
fn bandwidth_parser() -> impl TypedValueParser<Value = Bandwidth> {
    let words = Bandwidth::WORDS.iter().copied().map(PossibleValue::new);
    PossibleValuesParser::new(words).try_map(|word| Bandwidth::named(&word).ok_or("no bandwidth"))
}

/// Makes a parser for the names of codecs.
pub(super) fn codec_parser() -> impl TypedValueParser<Value = Codec> {
    let words = Codec::ALL.iter().map(|codec| PossibleValue::new(codec.name()).help(codec.row().about));
    PossibleValuesParser::new(words).try_map(|word| Codec::named(&word).ok_or("no codec"))
}

/// The longest delay that is accepted. The model was made for delays up to half a second, so we chose an hour
/// to refuse only values in the wrong unit.
const MAX_DELAY: Duration = Duration::from_secs(3600);

fn parse_delay(text: &str) -> Result<Duration, String> {
    parse_duration(text, MAX_DELAY)
}

/// A share that the user wrote on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The share, from 0 to 1.
    pub value: f64,
    /// The text that the user wrote.
    text: String,
}

impl Share {
    /// Writes the share as the value of a scenario's key, in TOML.
    pub fn as_toml(&self) -> String {
        format!("\"{}\"", as_percent(self.value))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a share such as `1%` or `0.01`. The number 1 without a per cent sign is refused, because other tools
/// take losses in per cent: it may mean 1 %, or all packets.
pub(super) fn parse_share(text: &str) -> Result<Share, String> {
    let text = text.trim();
    let number: Option<f64> = text.parse().ok();
    let in_per_cent = percentage(text).filter(|share| (0.0..=1.0).contains(share));
    let as_number = number.filter(|share| (0.0..1.0).contains(share));
    let Some(value) = in_per_cent.or(as_number) else {
        let help = match number {
            Some(1.0) => "; did you mean 1% or 100%?".to_owned(),
            Some(1.0..=100.0) => format!("; did you mean {text}%?"),
            _ => String::new(),
        };
        return Err(format!("expected 0% to 100%, or a number from 0 to below 1{help}"));
    };
    // Adding zero turns minus zero into zero.
    Ok(Share { value: value + 0.0, text: text.to_owned() })
}

fn parse_burst_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse().ok().filter(|ratio: &f64| (1.0..=1000.0).contains(ratio));
    ratio.ok_or_else(|| "expected 1 (loss at random) to 1000".to_owned())
}
