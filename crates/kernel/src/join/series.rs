//! The state of the sender's connection over time.

use std::ops::Range;

use talkpath_measure::{Series, SeriesKind};
use talkpath_units::{Duration, Instant};

use crate::log::{EndLog, RecoverySample, Sample, StateSample};

/// Makes the series of the sender's connection. `flow` is the name of the flow. A series that the transport
/// does not have is left out.
pub fn series(flow: &str, sender: &EndLog) -> Vec<Series> {
    let state = |kind, value: fn(&StateSample) -> Option<f64>| (kind, changes(&sender.samples, value));
    // Only QUIC has samples of its loss recovery.
    let recovery = |kind, value: fn(&RecoverySample) -> Option<f64>| (kind, changes(&sender.recovery, value));
    let all = [
        state(SeriesKind::Cwnd, |sample| sample.cwnd.map(f64::from)),
        state(SeriesKind::Ssthresh, |sample| sample.ssthresh.map(f64::from)),
        state(SeriesKind::Srtt, |sample| sample.srtt_us.map(millis)),
        state(SeriesKind::Rto, |sample| sample.rto_us.map(millis)),
        state(SeriesKind::SendBuffer, |sample| Some(sample.queued as f64)),
        state(SeriesKind::PacingRate, |sample| sample.pacing_bps.map(|bps| bps as f64)),
        recovery(SeriesKind::Pto, |sample| sample.pto_us.map(millis)),
        recovery(SeriesKind::BytesInFlight, |sample| Some(sample.bytes_in_flight as f64)),
        recovery(SeriesKind::LostPackets, |sample| Some(sample.lost_packets as f64)),
    ];
    let present = all.into_iter().filter(|(_, points)| !points.is_empty());
    present.map(|(kind, points)| Series { entity: flow.to_owned(), kind, points }).collect()
}

fn millis(us: u32) -> f64 {
    f64::from(us) / 1e3
}

/// Lists the points at which the `value` of a sample differs from the point before.
fn changes<S: Sample>(samples: &[S], value: fn(&S) -> Option<f64>) -> Vec<(Instant, f64)> {
    let mut points: Vec<(Instant, f64)> = Vec::new();
    for sample in samples {
        let Some(value) = value(sample) else { continue };
        if points.last().is_none_or(|&(_, last)| last != value) {
            points.push((Instant::from_nanos(sample.at_ns()), value));
        }
    }
    points
}

/// A value of the connection over time. It holds from each point to the next one.
pub(super) struct StepFunction {
    points: Vec<(Instant, f64)>,
}

impl StepFunction {
    /// Takes the `value` of each sample that has it.
    pub(super) fn new(samples: &[StateSample], value: impl Fn(&StateSample) -> Option<f64>) -> Self {
        let point = |sample: &StateSample| Some((Instant::from_nanos(sample.at_ns), value(sample)?));
        Self { points: samples.iter().filter_map(point).collect() }
    }

    /// Returns the mean over `window`, weighted by time. Returns `None` if there is no point before the
    /// window's end.
    pub(super) fn mean(&self, window: &Range<Instant>) -> Option<f64> {
        let mut area = 0.0;
        let mut time = Duration::ZERO;
        for (index, &(from, value)) in self.points.iter().enumerate() {
            let until = self.points.get(index + 1).map_or(window.end, |next| next.0);
            let span = until.min(window.end).since(from.max(window.start));
            area += value * span.as_secs_f64();
            time += span;
        }
        (!time.is_zero()).then(|| area / time.as_secs_f64())
    }

    /// Returns the largest value of the points in `window`, rounded down.
    pub(super) fn max(&self, window: &Range<Instant>) -> Option<u64> {
        self.points.iter().filter(|(at, _)| window.contains(at)).map(|&(_, value)| value as u64).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_over_time_weighs_each_value_by_how_long_it_held() {
        let ms = Instant::from_millis;
        let steps = StepFunction { points: vec![(ms(0), 10.0), (ms(50), 20.0), (ms(90), 1000.0)] };
        let mean = steps.mean(&(ms(30)..ms(70))).unwrap();
        assert!((mean - 15.0).abs() < 1e-9, "{mean}");
        assert_eq!(StepFunction { points: Vec::new() }.mean(&(ms(0)..ms(1))), None);
    }
}
