//! The offset of two hosts' clocks. It is measured by probes with four stamps (RFC 5905 §8) before, during
//! and after the run.
//!
//! Each probe bounds the far clock. The far clock cannot be ahead of ours by more than the trip to the far
//! host seems to take. It cannot be behind ours by more than the trip back seems to take. Over the run these
//! bounds make a `Channel`, and the correction is a straight line along the channel (Moon, Skelly and Towsley
//! 1999: the skew from the hull of the delays).
//!
//! ```text
//!  far - ours   ^   x      x        x        the trip there: an upper bound
//!               |  __x____x_____x___x___     hull ┐
//!               |  - - - - - - - - - - -     line ┤ the channel's width: the shortest trip there and the
//!               |  ‾‾o‾‾‾‾‾o‾‾‾‾‾‾o‾‾‾‾‾     hull ┘ shortest trip back
//!               |   o    o        o     o    the trip back: a lower bound
//! ```
//!
//! The uncertainty has two parts. The *bound* is half the smallest round trip. Within the bound an asymmetry
//! of the path looks like an offset, and no probe can tell them apart. The *change* is the most by which the
//! far clock may have left the line beyond the bound. It is limited, because a movement that lasts for two
//! probes lies between the bounds of both probes.
//!
//! No straight line fits if the channel is narrower than the smallest round trip by more than the round trips
//! scatter. The clock was then set, or it runs unevenly. Left out: a correction along a bent line.

mod channel;
mod probe;

use talkpath_measure::{ClockRecord, RunRecord};
use talkpath_units::{Instant, SignedDuration};

use channel::Channel;
pub use probe::Probe;
use probe::SKEW_LIMIT_PPM;

/// The largest uncertainty with which the clocks are trusted. We chose 100 ms, because with more a one-way
/// figure says little about a call (docs/models/live.md).
const UNCERTAINTY_LIMIT_NS: i64 = 100_000_000;
/// The time between two probes of a live far end's clock during a run. The far end answers about its progress
/// twice a second (docs/models/live.md).
const LOOKS_S: f64 = 0.5;
/// The largest difference of clocks that GPS or PTP keeps. We chose 1 ms, a thousand times the usual
/// microsecond of PTP.
const SYNCHRONISED_MS: f64 = 1.0;

/// The offset of the far clock from ours over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    channel: Channel,
    /// True if there are probes after the run.
    has_after: bool,
    /// True if the user vouches that the clocks are synchronised.
    is_synchronised: bool,
}

impl Offset {
    /// Computes the offset from the probes before, during and after the run. Returns `None` if there is no
    /// probe before the run.
    pub fn new(before: &[Probe], during: &[Probe], after: &[Probe]) -> Option<Self> {
        let mut probes = [before, during, after].concat();
        probes.sort_by_key(|probe| probe.sent);
        let channel = Channel::new(&probes).filter(|_| !before.is_empty())?;
        Some(Self { channel, has_after: !after.is_empty(), is_synchronised: false })
    }

    /// Computes the offset from probes that are spread over the whole run. The first probe counts as the
    /// probe before the run, and all others count as probes after the run.
    pub fn throughout(probes: &[Probe]) -> Option<Self> {
        let (first, later) = probes.split_at(probes.len().min(1));
        Self::new(first, &[], later)
    }

    /// Makes the offset of clocks that the user vouches for. Their stamps are compared without a correction.
    #[must_use]
    pub fn synchronised(self) -> Self {
        Self { is_synchronised: true, ..self }
    }

    /// Returns the far clock minus ours at the run's beginning, ns.
    pub fn at_start(&self) -> i64 {
        self.channel.at(self.channel.first)
    }

    /// Returns the reading of our clock when the far clock reads `far_ns`.
    pub fn to_ours(self, far_ns: i64) -> i64 {
        if self.is_synchronised {
            return far_ns;
        }
        // The slope of the line is at most a tenth, so each step leaves at most a tenth of the error. 12
        // steps leave less than 1 ns of an error of one second.
        let mut ours = far_ns.saturating_sub(self.at_start());
        for _ in 0..12 {
            let closer = far_ns.saturating_sub(self.channel.at(ours));
            if closer == ours {
                break;
            }
            ours = closer;
        }
        ours
    }

    /// Turns a time of the run on the far clock into a time of the run on our clock. `at` counts from
    /// `far_start` on the far clock, and the result counts from `our_start` on our clock.
    pub fn correct(self, at: u64, far_start: i64, our_start: i64) -> Instant {
        let ours = self.to_ours(far_start.saturating_add_unsigned(at));
        Instant::from_nanos(u64::try_from(ours.saturating_sub(our_start)).unwrap_or(0))
    }

    /// Makes the record of the clocks for an offset, or for a run in which no probe came back.
    pub fn record_of(offset: Option<&Self>) -> ClockRecord {
        let unknown = || ClockRecord {
            offset_ms: None,
            skew_ppm: None,
            uncertainty_ms: None,
            change_uncertainty_ms: None,
            synchronised: false,
            trusted: false,
            why: "no probe of the far clock came back".to_owned(),
        };
        offset.map_or_else(unknown, Self::record)
    }

    /// Makes the record of the clocks.
    pub fn record(&self) -> ClockRecord {
        let channel = &self.channel;
        let doubt = self.doubt();
        let (bound_ms, change_ms) = (ms(channel.bound()), ms(channel.change));
        let explained = if self.at_start().abs() <= channel.bound() {
            format!("which the path alone explains: half its smallest round trip is {bound_ms:.3} ms")
        } else {
            format!(
                "which the path, and what may have changed during the run, explain: together {:.3} ms",
                ms(self.uncertainty())
            )
        };
        let why = match (&doubt, self.is_synchronised) {
            (Some(doubt), _) => doubt.clone(),
            (None, true) => format!(
                "the user vouches that the clocks are synchronised (--clocks-synchronised), so stamps are compared as they \
                 are; the probes show {:.3} ms between them, {explained}",
                ms(self.at_start())
            ),
            (None, false) => format!(
                "the offset is known to {bound_ms:.3} ms, half the smallest round trip: within that, an asymmetry of the path \
                 cannot be known. A change that lasted two looks at the clock ({LOOKS_S} s) is known to {change_ms:.3} ms, if the \
                 path's shortest way was met each way"
            ),
        };
        ClockRecord {
            offset_ms: Some(ms(self.at_start())),
            skew_ppm: channel.skew_ppm(),
            uncertainty_ms: Some(bound_ms),
            change_uncertainty_ms: Some(change_ms),
            synchronised: self.is_synchronised,
            trusted: doubt.is_none(),
            why,
        }
    }

    /// Returns the uncertainty of the offset at any time of the run: the sum of the bound and the change.
    fn uncertainty(&self) -> i64 {
        self.channel.bound().saturating_add(self.channel.change)
    }

    /// Returns the reason why the clocks cannot be trusted. Returns `None` if they can.
    fn doubt(&self) -> Option<String> {
        let channel = &self.channel;
        if !self.has_after {
            let why = "the clocks were compared at the beginning of the run alone: the far end went away, or one exchange was all";
            return Some(why.to_owned());
        }
        if channel.is_fast() {
            return Some(format!(
                "the clocks moved by {:.3} ms against each other during the run: more than {SKEW_LIMIT_PPM} ppm of it",
                ms(channel.chord.rise)
            ));
        }
        if channel.is_bent() {
            return Some(format!(
                "{:.1} s after the first probe the far clock was {:.3} ms off the line between the probes before and after \
                 the run, more than the round trips leave open: it was set, or does not run evenly",
                ms(channel.chord.furthest_at - channel.first) / 1e3,
                ms(channel.chord.furthest_off)
            ));
        }
        let uncertainty = self.uncertainty();
        if self.is_synchronised {
            return (self.at_start().abs() > uncertainty).then(|| {
                format!(
                    "the user vouches that the clocks are synchronised, but the probes show {:.3} ms between them, and the \
                     path explains {:.3} ms at most",
                    ms(self.at_start()),
                    ms(uncertainty)
                )
            });
        }
        (uncertainty > UNCERTAINTY_LIMIT_NS).then(|| {
            format!(
                "the offset is known to {:.1} ms (half the smallest round trip), its changes to {:.1} ms; the limit of both \
                 is {} ms. --clocks-synchronised gives one-way figures if GPS or PTP keeps both clocks",
                ms(channel.bound()),
                ms(channel.change),
                UNCERTAINTY_LIMIT_NS / 1_000_000
            )
        })
    }
}

/// Withdraws the trust in the clocks of `record` if a message arrived before it was sent, by more than the
/// stated uncertainty. No path does that, so a clock was wrong at that time.
pub fn withdraw_trust_in_impossible_delays(record: &mut RunRecord) {
    let clock = &record.clock;
    let Some(bound_ms) = clock.uncertainty_ms.filter(|_| clock.trusted) else { return };
    let uncertainty_ms = if clock.synchronised {
        SYNCHRONISED_MS
    } else {
        bound_ms + clock.change_uncertainty_ms.unwrap_or(0.0)
    };
    let delays = record.flows.iter().flat_map(|flow| {
        let legs = core::iter::once(&flow.forward).chain(&flow.echo);
        legs.flat_map(|leg| &leg.messages)
            .filter_map(|row| Some((&flow.info.name, row.received?.signed_since(row.sent?))))
    });
    let Some((flow, shortest)) = delays.min_by_key(|(_, delay)| *delay) else { return };
    let shortest_ms = shortest.as_millis_f64();
    if shortest_ms >= -uncertainty_ms {
        return;
    }
    record.clock.why = format!(
        "a message of flow {flow} arrived {:.3} ms before it was sent, and the clocks were thought to be known to \
         {uncertainty_ms:.3} ms: a clock was set or ran unevenly in between",
        -shortest_ms
    );
    record.clock.trusted = false;
    record.flows.iter_mut().for_each(|flow| flow.info.clock_trusted = false);
}

fn ms(ns: i64) -> f64 {
    SignedDuration::from_nanos(ns).as_millis_f64()
}

#[cfg(test)]
mod tests {
    use talkpath_measure::tap::Ending;
    use talkpath_measure::{FlowInfo, FlowRecord, LegTap};
    use talkpath_units::Bytes;

    use super::*;

    /// A probe at `at` over a path of `up` and `down`, to a clock ahead by `offset`; ms.
    fn probe(at: i64, up: i64, down: i64, offset: i64) -> Probe {
        let ms = 1_000_000;
        Probe {
            sent: at * ms,
            far_received: (at + up + offset) * ms,
            far_sent: (at + up + offset + 1) * ms,
            received: (at + up + 1 + down) * ms,
        }
    }

    #[test]
    fn the_offset_of_a_symmetric_path_is_exact_and_asymmetry_stays_within_the_uncertainty() {
        let even = probe(0, 10, 10, -500);
        assert_eq!((even.offset(), even.round_trip()), (-500_000_000, 20_000_000));
        let uneven = probe(0, 18, 2, -500);
        assert!((uneven.offset() + 500_000_000).abs() <= uneven.round_trip() / 2);
    }

    #[test]
    fn the_probe_that_waited_least_counts_and_a_far_stamp_comes_back_to_our_clock() {
        let offset = Offset::new(
            &[probe(0, 60, 10, 7_000), probe(100, 10, 10, 7_000)],
            &[],
            &[probe(60_000, 10, 10, 7_000), probe(60_100, 10, 90, 7_000)],
        )
        .unwrap();
        assert!((offset.at_start() - 7_000_000_000).abs() < 100, "{}", offset.at_start());
        assert!((offset.to_ours(7_500_000_000) - 500_000_000).abs() < 100);
        let record = offset.record();
        assert!(record.trusted, "{}", record.why);
        assert_eq!(record.uncertainty_ms, Some(10.0));
        assert_eq!(record.skew_ppm, None, "no drift can be told");
    }

    #[test]
    fn a_drift_beyond_the_probes_doubt_is_corrected_along_the_run() {
        // 12 ms in 60 s: 200 ppm.
        let offset = Offset::new(&[probe(0, 1, 1, 0)], &[], &[probe(60_000, 1, 1, 12)]).unwrap();
        let record = offset.record();
        assert!(record.trusted);
        assert!((record.skew_ppm.unwrap() - 200.0).abs() < 0.1);
        assert!((offset.to_ours(30_006_000_000) - 30_000_000_000).abs() < 1_000);
    }

    #[test]
    fn a_clock_that_jumps_and_comes_back_is_found_by_the_probes_between() {
        let [before, after] = [[probe(0, 10, 10, 200)], [probe(60_000, 10, 10, 200)]];
        let even = [probe(20_000, 10, 10, 200), probe(30_000, 50, 10, 200), probe(40_000, 10, 90, 200)];
        let offset = Offset::new(&before, &even, &after).unwrap();
        assert!(offset.record().trusted, "a queue's asymmetry is no jump");
        let jumped = [probe(20_000, 10, 10, 200), probe(30_000, 10, 10, 235)];
        let record = Offset::new(&before, &jumped, &after).unwrap().record();
        assert!(!record.trusted);
        assert!(record.why.starts_with("30.0 s after") && record.why.contains("35.000 ms"), "{}", record.why);
        assert!(!Offset::record_of(None).trusted);
    }

    #[test]
    fn any_stamps_of_a_far_end_are_an_offset() {
        for (far_received, far_sent) in [(i64::MIN, i64::MIN), (i64::MAX, i64::MIN), (i64::MAX, i64::MAX)] {
            let wild = Probe { sent: 0, far_received, far_sent, received: 1 };
            let after = probe(60_000, 1, 1, 0);
            let offset = Offset::new(&[wild], &[wild, after], &[after]).unwrap();
            assert!(!offset.record().trusted, "{far_received} {far_sent}");
            assert!(offset.correct(u64::MAX, far_received, far_sent) >= Instant::ZERO);
        }
    }

    #[test]
    fn a_message_that_arrives_before_it_was_sent_withdraws_trust() {
        let record_of = |received_ms: u64| {
            let offset = Offset::new(&[probe(0, 1, 1, 0)], &[], &[probe(60_000, 1, 1, 0)]).unwrap();
            let mut tap = LegTap::new();
            tap.on_due(0, Bytes::new(160), Instant::from_secs(1));
            tap.on_sent(0, Instant::from_secs(1));
            tap.on_received(0, Instant::from_millis(received_ms));
            let forward = tap.finish(Ending::Unreliable { every_drop_known: false, is_queued: false });
            let info = FlowInfo::on_a_clock("call");
            let flows = vec![FlowRecord { forward, ..FlowRecord::new(info) }];
            let mut record = RunRecord { clock: offset.record(), flows, ..RunRecord::default() };
            withdraw_trust_in_impossible_delays(&mut record);
            (record.clock, record.flows[0].info.clock_trusted)
        };
        let (within, is_trusted) = record_of(999);
        assert!(within.trusted && is_trusted, "1 ms is the uncertainty: {}", within.why);
        let (beyond, is_trusted) = record_of(700);
        assert!(!beyond.trusted && !is_trusted);
        assert!(beyond.why.contains("300.000 ms before it was sent"), "{}", beyond.why);
    }

    #[test]
    fn clocks_that_the_user_vouches_for_are_compared_as_they_are_unless_the_probes_contradict() {
        // 500 ms there and 100 ms back.
        let vouched = |offset| {
            let probes = [probe(0, 500, 100, offset), probe(60_000, 500, 100, offset)];
            Offset::new(&probes[..1], &[], &probes[1..]).unwrap().synchronised()
        };
        let record = vouched(0).record();
        assert!(record.trusted && record.synchronised, "{}", record.why);
        assert!(record.why.contains("the user vouches"), "{}", record.why);
        assert_eq!(vouched(0).to_ours(5_000_000_000), 5_000_000_000, "half the asymmetry is not taken off");
        // 350 ms, more than half of 600 ms: only together with what a queue in between may hide.
        let queued = [probe(30_000, 900, 500, 150), probe(30_500, 900, 500, 150)];
        let beyond = Offset::new(&[probe(0, 500, 100, 150)], &queued, &[probe(60_000, 500, 100, 150)]);
        let record = beyond.unwrap().synchronised().record();
        assert!(record.trusted, "{}", record.why);
        assert!(
            record.why.contains("350.000 ms between them") && record.why.contains("together"),
            "{}",
            record.why
        );
        assert!(!record.why.contains("path alone"), "{}", record.why);
        let wrong = vouched(2_000).record();
        assert!(!wrong.trusted && wrong.why.contains("2200.000 ms between them"), "{}", wrong.why);
    }

    #[test]
    fn clocks_that_jumped_or_are_too_far_away_are_not_trusted() {
        let jumped = Offset::new(&[probe(0, 1, 1, 0)], &[], &[probe(60_000, 1, 1, 900)]).unwrap();
        assert!(!jumped.record().trusted);
        let far = Offset::new(&[probe(0, 300, 300, 0)], &[], &[probe(60_000, 300, 300, 0)]).unwrap();
        assert!(!far.record().trusted);
        let gone = Offset::new(&[probe(0, 1, 1, 0)], &[], &[]).unwrap();
        assert!(!gone.record().trusted);
        assert!(gone.record().why.contains("at the beginning of the run alone"), "{}", gone.record().why);
    }
}
