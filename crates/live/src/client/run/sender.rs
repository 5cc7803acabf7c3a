//! The judgement of a host that sent late.
//!
//! The delay of a message counts from its due time, so it includes the lateness of the sender. This lateness
//! must not be taken for delay of the path. So a run is not valid if the lateness is above a limit. The limit
//! depends on the measured delay: a lateness of 3 ms changes little on a path of 40 ms, and falsifies the
//! figures of a cable.

use talkpath_measure::summarise::summarise_flow;
use talkpath_measure::{LatenessRecord, RunRecord};
use talkpath_units::Duration;

/// The p99 of the lateness above which the user is warned. On a path with a short trip, the run is then also
/// not valid. So on a cable, where half of the trips take less than a millisecond, a valid run has at most
/// one message in a hundred that this host delayed by more than 1 ms.
const LATE_NS: u64 = 1_000_000;
/// The p99 of the lateness above which no run is valid. We chose 5 ms, which is a quarter of a codec's frame
/// time (docs/models/live.md).
const INVALID_LATE_NS: u64 = 5_000_000;
/// Between these two limits, a run is not valid if the p99 of the lateness is above the trip divided by this
/// number. We chose 10, because a tenth of a delay changes no conclusion.
const SHARE: u64 = 10;

/// Judges the senders at `place`, whose lateness has this p50, p99 and maximum (ns). Returns a line for the
/// user, and whether the run is still valid. Returns `None` if the senders were punctual. `trip` gives the
/// shortest median trip, and `denied` is the reason why the threads have no real-time priority.
pub(super) fn judge(
    lateness_ns: [u64; 3],
    place: &str,
    denied: Option<&str>,
    trip: impl FnOnce() -> Option<Duration>,
) -> Option<(String, bool)> {
    let [_, p99, _] = lateness_ns;
    if p99 <= LATE_NS {
        return None;
    }
    let share = trip().map(|trip| trip.as_nanos() / SHARE).filter(|share| *share < INVALID_LATE_NS);
    let limit = share.map_or(INVALID_LATE_NS, |share| share.max(LATE_NS));
    let is_within = p99 <= limit;
    let ms = |ns: u64| ns as f64 / 1e6;
    let why = match (is_within, share) {
        (true, _) => String::new(),
        (false, None) => format!(", past the limit of {:.3} ms at p99", ms(limit)),
        (false, Some(_)) => format!(
            ", past the limit of {:.3} ms at p99 where half of the messages took {:.3} ms or less",
            ms(limit),
            ms(share.unwrap_or(0) * SHARE)
        ),
    };
    let hint = denied.map_or(String::new(), |why| format!("; real-time scheduling was not allowed ({why})"));
    let line = format!("{place} sent late: {}{why}{hint}", LatenessRecord::from_ns(lateness_ns));
    Some((line, is_within))
}

/// Returns the shortest median of the flows' trips. The trip of a flow is its round trip if it has an echo,
/// else its one-way delay. Returns `None` if no flow has a delay.
pub(super) fn trip(record: &RunRecord) -> Option<Duration> {
    let window = record.window_start..record.window_end;
    let medians = record.flows.iter().filter_map(|flow| {
        let flow = summarise_flow(flow, &window);
        Some(flow.round_trip_delay_ms.or(flow.one_way_delay_ms)?.p50)
    });
    let shortest = medians.filter(|ms| ms.is_finite()).min_by(f64::total_cmp)?;
    Some(Duration::from_nanos((shortest.max(0.0) * 1e6) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn judged(p99_ms: u64, trip_ms: Option<u64>) -> Option<(String, bool)> {
        judge([MS / 2, p99_ms * MS, 9 * MS], "this host", None, || trip_ms.map(Duration::from_millis))
    }

    #[test]
    fn a_sender_that_is_late_by_more_than_its_share_of_the_trip_makes_the_run_invalid() {
        assert_eq!(judged(1, Some(0)), None);
        // On a cable.
        let (line, is_valid) = judged(2, Some(0)).unwrap();
        assert!(!is_valid && line.contains("p99 2.000 ms") && line.contains("limit of 1.000 ms"), "{line}");
        let (line, is_valid) = judged(4, Some(20)).unwrap();
        assert!(!is_valid && line.contains("limit of 2.000 ms at p99 where half"), "{line}");
        // On a path of 40 ms, and where nobody knows.
        for trip in [Some(40), None] {
            let (line, is_valid) = judged(4, trip).unwrap();
            assert!(is_valid && !line.contains("limit"), "{line}");
        }
        for trip in [Some(40), Some(400), None] {
            let (line, is_valid) = judged(6, trip).unwrap();
            let limit = if trip == Some(40) { "limit of 4.000 ms" } else { "limit of 5.000 ms" };
            assert!(!is_valid && line.contains(limit), "{line}");
        }
    }

    #[test]
    fn the_reason_of_a_late_host_is_named() {
        let (line, _) = judge([0, 2 * MS, 2 * MS], "this host", Some("EPERM"), || None).unwrap();
        assert!(line.ends_with("real-time scheduling was not allowed (EPERM)"), "{line}");
    }
}
