//! A change at its time, and the rate of a link as a number.

use talkpath_path::{Change, RateModel};
use talkpath_units::Instant;

/// A change at its time.
pub(super) struct Mark<'a> {
    pub(super) at: Instant,
    pub(super) until: Instant,
    pub(super) change: &'a Change,
    pub(super) group: usize,
    pub(super) is_silence: bool,
    pub(super) is_of_file: bool,
}

/// A rate in bit/s. Without a limit it is infinite.
pub(super) fn bits(rate: &RateModel) -> f64 {
    match rate {
        RateModel::Fixed(rate) => rate.as_bps() as f64,
        RateModel::Unlimited => f64::INFINITY,
        RateModel::Trace(trace) => trace.mean_rate().as_bps() as f64,
    }
}
