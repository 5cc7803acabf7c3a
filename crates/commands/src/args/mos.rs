//! The command line of `talkpath mos`.

use clap::{Args, ValueEnum};
use talkpath_scenario::{parse_duration, percentage};
use talkpath_units::Duration;

#[derive(Debug, Args)]
pub struct MosArgs {
    /// The codec
    #[arg(long, value_enum, default_value_t = CodecName::G711)]
    pub codec: CodecName,
    /// The receiver conceals what is missing (G.711 Appendix I); g729a always does
    #[arg(long)]
    pub plc: bool,
    /// From mouth to ear: network, playout buffer, codec
    #[arg(long, value_name = "TIME", default_value = "0 ms", value_parser = delay)]
    pub one_way: Duration,
    /// Frames that are not played, lost or late: `1%` or `0.01`
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    pub loss: f64,
    /// Mean length of the runs of lost frames, over the mean length if as many were lost at random
    #[arg(long, value_name = "RATIO", default_value = "1.0", value_parser = burst_ratio)]
    pub burst_ratio: f64,
}

/// The codecs whose impairment is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodecName {
    /// ITU-T G.711, 64 kb/s
    G711,
    /// ITU-T G.729 Annex A with voice activity detection, 8 kb/s
    G729a,
}

/// What no conversation outlasts; the model was made for half a second.
const LONGEST: Duration = Duration::from_secs(3600);

fn delay(text: &str) -> Result<Duration, String> {
    parse_duration(text, LONGEST)
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let bare: Option<f64> = text.trim().parse().ok();
    percentage(text).or(bare).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        let is_meant = bare.is_some_and(|share| (1.0..=100.0).contains(&share));
        let help = if is_meant { format!("; did you mean {}%?", text.trim()) } else { String::new() };
        format!("expected 0% to 100%, or 0 to 1{help}")
    })
}

fn burst_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse().ok().filter(|ratio: &f64| (1.0..=1000.0).contains(ratio));
    ratio.ok_or_else(|| "expected 1 (loss at random) to 1000".to_owned())
}
