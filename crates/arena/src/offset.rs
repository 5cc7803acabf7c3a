//! Two hosts' clocks: the offset from four-stamp probes (RFC 5905 §8), taken before and after the run, and
//! during it if the arena has them.
//!
//! Of each set the probe with the smallest round trip counts: it waited least in queues. The true offset lies
//! within half that round trip of the estimate, at a place that depends on the asymmetry of the path and that
//! no probe can measure. The correction runs on a straight line from the estimate before to the one after. A
//! probe during the run that cannot lie on that line, whatever the asymmetry of its path, says that the clock
//! did not keep to it: it jumped, or wandered. Left out: to correct along more than one line (hulls over the
//! probes).

use talkpath_measure::{ClockRecord, RunRecord};
use talkpath_units::{Instant, SignedDuration};

/// One exchange: sent and received here, received and sent there, ns on each end's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Left here.
    pub sent: i64,
    /// Came there.
    pub far_received: i64,
    /// Left there.
    pub far_sent: i64,
    /// Came back here.
    pub received: i64,
}

impl Probe {
    /// Far clock minus ours (RFC 5905 §8: theta), rounded down.
    ///
    /// A far end may send any stamps; the offset is at most 73 years either way.
    pub fn offset(&self) -> i64 {
        let there = i128::from(self.far_received) - i128::from(self.sent);
        let back = i128::from(self.far_sent) - i128::from(self.received);
        (there + back).div_euclid(2).clamp(-i128::from(FURTHEST_NS), i128::from(FURTHEST_NS)) as i64
    }

    /// Time on the way, both directions (RFC 5905 §8: delta); at least 0.
    pub fn round_trip(&self) -> i64 {
        let here = self.received.saturating_sub(self.sent);
        let there = self.far_sent.saturating_sub(self.far_received);
        here.saturating_sub(there).clamp(0, FURTHEST_NS)
    }
}

/// The far clock against ours over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    before: Probe,
    after: Option<Probe>,
    /// The probe between them that lies furthest off the line, beyond both its and the line's doubt: when,
    /// and by how much.
    astray: Option<(i64, i64)>,
}

impl Offset {
    /// From the probes before the run and after it; `None` without any before.
    pub fn new(before: &[Probe], after: &[Probe]) -> Option<Self> {
        let best = |probes: &[Probe]| probes.iter().copied().min_by_key(Probe::round_trip);
        Some(Self { before: best(before)?, after: best(after), astray: None })
    }

    /// The same, held against `probes` between.
    #[must_use]
    pub fn with_probes_between(self, probes: &[Probe]) -> Self {
        let doubt = self.before.round_trip().max(self.after.map_or(0, |after| after.round_trip())) / 2;
        let off = |probe: &Probe| {
            let off = probe.offset() - self.line(probe.sent);
            (off.abs() > doubt.saturating_add(probe.round_trip() / 2)).then_some((probe.sent, off))
        };
        let astray = probes.iter().filter_map(off).max_by_key(|(_, off)| off.abs());
        Self { astray, ..self }
    }

    /// Far clock minus ours at the run's beginning, as known then.
    pub fn at_start(&self) -> i64 {
        self.before.offset()
    }

    /// Our clock's reading when the far clock reads `far_ns`.
    pub fn to_ours(self, far_ns: i64) -> i64 {
        far_ns.saturating_sub(self.line(far_ns.saturating_sub(self.before.offset())))
    }

    /// Far clock minus ours when ours reads `ours`, on the line from the probes before to those after.
    fn line(&self, ours: i64) -> i64 {
        let Some(after) = self.after else { return self.before.offset() };
        let span = i128::from(after.sent) - i128::from(self.before.sent);
        if span <= 0 {
            return self.before.offset();
        }
        let drift = i128::from(after.offset()) - i128::from(self.before.offset());
        let along = (i128::from(ours) - i128::from(self.before.sent)).clamp(0, span);
        self.before.offset() + i64::try_from(drift * along / span).unwrap_or(0)
    }

    /// The run time here at which the far run clock, whose zero is `far_start`, reads `at`.
    pub fn correct(self, at: u64, far_start: i64, our_start: i64) -> Instant {
        let ours = self.to_ours(far_start.saturating_add_unsigned(at));
        Instant::from_nanos(u64::try_from(ours.saturating_sub(our_start)).unwrap_or(0))
    }

    /// What the record says of the clocks, also if no probe came back.
    pub fn record_of(offset: Option<&Self>) -> ClockRecord {
        let unknown = || ClockRecord {
            offset_ms: None,
            skew_ppm: None,
            uncertainty_ms: None,
            trusted: false,
            why: "no probe of the far clock came back".to_owned(),
        };
        offset.map_or_else(unknown, Self::record)
    }

    /// What the record says of the clocks.
    pub fn record(&self) -> ClockRecord {
        let offset = SignedDuration::from_nanos(self.before.offset());
        let worst = self.before.round_trip().max(self.after.map_or(0, |after| after.round_trip()));
        let uncertainty = SignedDuration::from_nanos(worst.div_euclid(2) + worst.rem_euclid(2));
        let (skew_ppm, doubt) = self.judge(uncertainty.as_nanos());
        let uncertainty_ms = uncertainty.as_millis_f64();
        let why = match &doubt {
            None => format!(
                "probes before and after the run agree; the offset is known to {uncertainty_ms:.3} ms, half the smallest \
                 round trip, within which an asymmetry of the path cannot be seen"
            ),
            Some(doubt) => doubt.clone(),
        };
        ClockRecord {
            offset_ms: Some(offset.as_millis_f64()),
            skew_ppm,
            uncertainty_ms: Some(uncertainty_ms),
            trusted: doubt.is_none(),
            why,
        }
    }

    /// The skew, if it can be measured, and why the clocks cannot be trusted, if they cannot.
    fn judge(&self, uncertainty: i64) -> (Option<f64>, Option<String>) {
        let Some(after) = self.after else {
            return (None, Some("the far end went away before the clocks were compared again".to_owned()));
        };
        let drift = after.offset() - self.before.offset();
        let span = (after.sent - self.before.sent).max(1);
        let slack = (self.before.round_trip() + after.round_trip()) / 2;
        // What two good clocks may drift in that time, added to the uncertainty of the probes.
        let allowed = slack.saturating_add(span / 1_000_000 * SKEW_LIMIT_PPM);
        let skew = (drift.abs() > slack).then(|| drift as f64 / span as f64 * 1e6);
        let doubt = if drift.abs() > allowed {
            let drift_ms = SignedDuration::from_nanos(drift).as_millis_f64();
            Some(format!(
                "the clocks moved by {drift_ms:.3} ms against each other during the run: more than {SKEW_LIMIT_PPM} ppm of it"
            ))
        } else if let Some((at, off)) = self.astray {
            let off_ms = SignedDuration::from_nanos(off).as_millis_f64();
            let at_s = SignedDuration::from_nanos(at - self.before.sent).as_millis_f64() / 1e3;
            Some(format!(
                "{at_s:.1} s after the first probe the far clock was {off_ms:.3} ms off the line between the probes before and \
                 after the run, more than the probe's round trip leaves open: it does not run evenly"
            ))
        } else if uncertainty > UNCERTAINTY_LIMIT_NS {
            let known = SignedDuration::from_nanos(uncertainty).as_millis_f64();
            let limit = UNCERTAINTY_LIMIT_NS / 1_000_000;
            Some(format!("the offset is only known to {known:.1} ms; the limit is {limit} ms"))
        } else {
            None
        };
        (skew, doubt)
    }
}

/// Withdraws the trust in the two clocks of `record` if a message arrived before it was sent, by more than
/// the stated uncertainty: no path does that, so a clock was wrong in between.
pub fn withdraw_trust_in_impossible_delays(record: &mut RunRecord) {
    let Some(uncertainty_ms) = record.clock.uncertainty_ms.filter(|_| record.clock.trusted) else { return };
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
        "a message of flow {flow} arrived {:.3} ms before it was sent, and the offset was thought to be known to \
         {uncertainty_ms:.3} ms: a clock was set or ran unevenly in between",
        -shortest_ms
    );
    record.clock.trusted = false;
    record.flows.iter_mut().for_each(|flow| flow.info.clock_trusted = false);
}

/// The largest offset and round trip that a probe gives: 73 years, so that sums of a few do not overflow.
const FURTHEST_NS: i64 = i64::MAX / 4;
/// The largest frequency error of a clock that NTP still disciplines (RFC 5905 §7.3 and appendix A.1: PHI and
/// MAXFREQ, 500 ppm).
const SKEW_LIMIT_PPM: i64 = 500;
/// Beyond this a one-way figure says little about a call (chosen; see docs/models/live.md).
const UNCERTAINTY_LIMIT_NS: i64 = 100_000_000;

#[cfg(test)]
mod tests {
    use talkpath_measure::tap::Ending;
    use talkpath_measure::{FlowCounters, FlowInfo, FlowRecord, LegTap, Terms};
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
            &[probe(60_000, 10, 10, 7_000), probe(60_100, 10, 90, 7_000)],
        )
        .unwrap();
        assert_eq!(offset.at_start(), 7_000_000_000);
        assert_eq!(offset.to_ours(7_500_000_000), 500_000_000);
        let record = offset.record();
        assert!(record.trusted, "{}", record.why);
        assert_eq!(record.uncertainty_ms, Some(10.0));
        assert_eq!(record.skew_ppm, None, "no drift can be told");
    }

    #[test]
    fn a_drift_beyond_the_probes_doubt_is_corrected_along_the_run() {
        // 12 ms in 60 s: 200 ppm.
        let offset = Offset::new(&[probe(0, 1, 1, 0)], &[probe(60_000, 1, 1, 12)]).unwrap();
        let record = offset.record();
        assert!(record.trusted);
        assert!((record.skew_ppm.unwrap() - 200.0).abs() < 0.1);
        assert_eq!(offset.to_ours(30_006_000_000), 29_999_998_800);
    }

    #[test]
    fn a_clock_that_jumps_and_comes_back_is_found_by_the_probes_between() {
        let [before, after] = [[probe(0, 10, 10, 200)], [probe(60_000, 10, 10, 200)]];
        let offset = Offset::new(&before, &after).unwrap();
        let even = [probe(20_000, 10, 10, 200), probe(30_000, 50, 10, 200), probe(40_000, 10, 90, 200)];
        assert!(offset.with_probes_between(&even).record().trusted, "a queue's asymmetry is no jump");
        let jumped = [probe(20_000, 10, 10, 200), probe(30_000, 10, 10, 235)];
        let record = offset.with_probes_between(&jumped).record();
        assert!(!record.trusted);
        assert!(record.why.starts_with("30.0 s after") && record.why.contains("35.000 ms"), "{}", record.why);
        assert_eq!(record.offset_ms, Some(200.0));
        assert!(!Offset::record_of(None).trusted);
    }

    #[test]
    fn any_stamps_of_a_far_end_are_an_offset() {
        for (far_received, far_sent) in [(i64::MIN, i64::MIN), (i64::MAX, i64::MIN), (i64::MAX, i64::MAX)] {
            let wild = Probe { sent: 0, far_received, far_sent, received: 1 };
            let after = probe(60_000, 1, 1, 0);
            let offset = Offset::new(&[wild], &[after]).unwrap().with_probes_between(&[wild, after]);
            assert!(!offset.record().trusted, "{far_received} {far_sent}");
            assert!(offset.correct(u64::MAX, far_received, far_sent) >= Instant::ZERO);
        }
    }

    #[test]
    fn a_message_that_arrives_before_it_was_sent_withdraws_trust() {
        let record_of = |received_ms: u64| {
            let offset = Offset::new(&[probe(0, 1, 1, 0)], &[probe(60_000, 1, 1, 0)]).unwrap();
            let mut tap = LegTap::new();
            tap.on_due(0, Bytes::new(160), Instant::from_secs(1));
            tap.on_sent(0, Instant::from_secs(1));
            tap.on_received(0, Instant::from_millis(received_ms));
            let forward = tap.finish(Ending::Unreliable { every_drop_known: false, is_queued: false });
            let info = FlowInfo {
                name: "call".to_owned(),
                group: "call".to_owned(),
                transport: "udp".to_owned(),
                cc: None,
                start: Instant::ZERO,
                clocked: true,
                bounded: false,
                burst: false,
                terms: Terms::default(),
                clock_trusted: true,
            };
            let counters = FlowCounters::default();
            let flows =
                vec![FlowRecord { info, forward, echo: None, counters, ecn: None, file: None, tally: None }];
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
    fn clocks_that_jumped_or_are_too_far_away_are_not_trusted() {
        let jumped = Offset::new(&[probe(0, 1, 1, 0)], &[probe(60_000, 1, 1, 900)]).unwrap();
        assert!(!jumped.record().trusted);
        let far = Offset::new(&[probe(0, 300, 300, 0)], &[probe(60_000, 300, 300, 0)]).unwrap();
        assert!(!far.record().trusted);
        let gone = Offset::new(&[probe(0, 1, 1, 0)], &[]).unwrap();
        assert!(!gone.record().trusted);
    }
}
