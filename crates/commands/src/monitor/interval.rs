//! Splits the record of a session into intervals. A session is a whole number of intervals, and each interval
//! ends where the next one begins. A message belongs to the interval in which it was due. Begin to read with
//! [`split`].

use core::ops::Range;

use serde::Serialize;
use talkpath_arena::MonitorSession;
use talkpath_measure::metrics::histogram::delay_ms;
use talkpath_measure::metrics::trip::{Trip, first_arrivals, one_way_trips};
use talkpath_measure::summarise::{summarise, summarise_flows};
use talkpath_measure::summary::{Clock, DelayMs, FlowSummary};
use talkpath_measure::{FlowRecord, RunRecord};
use talkpath_units::{Duration, Histogram, Instant, SignedDuration};

/// The figures of all flows in an interval.
#[derive(Debug)]
pub(crate) struct Interval {
    /// The beginning of the interval, in ns of CLOCK_MONOTONIC.
    pub(crate) start_ns: i64,
    pub(crate) length: Duration,
    /// The flows in the order of the scenario. The list is empty if nothing was measured.
    pub(crate) flows: Vec<FlowInterval>,
    /// Whether the figures are valid: no machine disturbed the session past its stated limits.
    pub(crate) valid: bool,
    pub(crate) clock: Option<Clock>,
    /// The warnings of the session. Only the first interval of the session has them.
    pub(crate) warnings: Vec<String>,
    /// Why the session was cut short, if it was. Only its last interval has this.
    pub(crate) cut: Option<String>,
}

#[derive(Debug)]
pub(crate) struct FlowInterval {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    /// The same figures as in summary.json.
    pub(crate) figures: FlowSummary,
    pub(crate) round_trips: Histogram,
    /// The one-way delays of the forward direction. They are empty unless the clocks are trusted.
    pub(crate) one_way: Histogram,
}

/// The numbers of messages that were sent, lost and so on. Counts of several intervals can be added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Messages that were due and that the transport did not refuse.
    pub(crate) sent: u64,
    /// Sent messages that were delivered. In a flow with an echo, only messages whose echo came back count.
    pub(crate) received: u64,
    /// Sent messages that were lost, in either direction.
    pub(crate) lost: u64,
    /// Messages that were lost in the forward direction, as far as the direction is known.
    pub(crate) lost_forward: u64,
    /// Messages whose echo was lost in the return direction.
    pub(crate) lost_return: u64,
    /// Messages that were still queued or in flight when the session ended.
    pub(crate) unfinished: u64,
    /// Messages that the transport refused.
    pub(crate) refused: u64,
    /// Lost messages that were never sent, because there was no network.
    pub(crate) no_network: u64,
    /// Lost messages that were never sent, because the connection was not open.
    pub(crate) not_open: u64,
    /// Extra copies of messages that arrived.
    pub(crate) duplicates: u64,
    /// Messages that arrived after a message that was sent later.
    pub(crate) reordered: u64,
    /// The payload that was delivered, in bytes.
    pub(crate) bytes: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.lost_forward += other.lost_forward;
        self.lost_return += other.lost_return;
        self.unfinished += other.unfinished;
        self.refused += other.refused;
        self.no_network += other.no_network;
        self.not_open += other.not_open;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.bytes += other.bytes;
    }

    /// Returns the lost messages in per cent of the messages whose fate is known. Unfinished messages do not
    /// count.
    pub(crate) fn lost_percent(&self) -> f64 {
        let decided = self.received + self.lost;
        if decided == 0 { 0.0 } else { self.lost as f64 * 100.0 / decided as f64 }
    }

    pub(crate) fn from_figures(figures: &FlowSummary, bytes: u64) -> Self {
        let ledger = figures.ledger.unwrap_or_default();
        Self {
            sent: figures.sent,
            received: figures.received,
            lost: figures.lost,
            lost_forward: figures.lost_forward.unwrap_or(0),
            lost_return: figures.lost_return.unwrap_or(0),
            unfinished: figures.unfinished,
            refused: figures.refused,
            no_network: ledger.no_network,
            not_open: ledger.not_open,
            duplicates: figures.duplicates,
            reordered: figures.reordered,
            bytes,
        }
    }
}

impl Interval {
    /// Returns the counts of all flows together.
    pub(crate) fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.flows.iter().for_each(|flow| sum.add(&flow.counts));
        sum
    }
}

impl FlowInterval {
    fn new(flow: &FlowRecord, figures: FlowSummary, window: &Range<Instant>) -> Self {
        let trips = flow.trips(window);
        let bytes = trips.iter().filter(|trip| trip.received().is_some()).map(|trip| trip.size.get()).sum();
        let has_echo = flow.echo.is_some();
        let round_trips = if has_echo { delay_histogram(&trips) } else { Histogram::new() };
        // One-way delays are the difference of two clocks, so they need clocks that are trusted.
        let one_way = match (flow.info.clock_trusted, has_echo) {
            (false, _) => Histogram::new(),
            (true, true) => delay_histogram(&one_way_trips(&flow.forward, window)),
            (true, false) => delay_histogram(&trips),
        };
        let counts = Counts::from_figures(&figures, bytes);
        Self { name: flow.info.name.clone(), counts, figures, round_trips, one_way }
    }

    /// Makes the figures of an interval that is only a part of its session. Figures that are known only of
    /// the whole session are left out.
    fn of_part(
        flow: &FlowRecord,
        mut figures: FlowSummary,
        reordered_dues: &[Instant],
        window: &Range<Instant>,
    ) -> Self {
        figures.reordered = reordered_dues.iter().filter(|due| window.contains(due)).count() as u64;
        // A connection opens once, at the beginning of the session.
        figures.opening_ms = figures.opening_ms.filter(|_| window.start == Instant::ZERO);
        figures.opening = figures.opening.filter(|_| window.start == Instant::ZERO);
        // The counters of transports, sockets and the receiver of a file are about the whole session.
        (figures.retransmissions, figures.retransmit_rate, figures.timeouts) = (None, None, None);
        (figures.cwnd_packets, figures.window_packets, figures.send_buffer_bytes) = (None, None, None);
        (figures.blocked_ms, figures.ecn, figures.legs) = (None, None, None);
        figures.waits.iter_mut().for_each(|waits| waits.held_ms = None);
        (figures.ip, figures.file, figures.multipath) = (None, None, None);
        figures.breaks.clear();
        Self::new(flow, figures, window)
    }
}

/// Splits a session into intervals of `length`. If the session was cut short, its last interval is shorter.
pub(crate) fn split(session: &MonitorSession, length: Duration) -> Vec<Interval> {
    let (session_ns, interval_ns) = (session.length.as_nanos(), length.as_nanos().max(1));
    let record = session.record.as_ref();
    let flow_records = record.iter().flat_map(|record| &record.flows);
    let reordered_dues: Vec<Vec<Instant>> = flow_records.map(reordered_dues).collect();
    let mut intervals = Vec::new();
    for number in 0..session_ns.div_ceil(interval_ns) {
        let from_ns = number * interval_ns;
        let to_ns = (from_ns + interval_ns).min(session_ns);
        let window = Instant::from_nanos(from_ns)..Instant::from_nanos(to_ns);
        let is_whole_session = from_ns == 0 && to_ns == session_ns;
        intervals.push(Interval {
            start_ns: session.start_ns + i64::try_from(from_ns).unwrap_or(0),
            length: Duration::from_nanos(to_ns - from_ns),
            flows: match record {
                Some(record) if is_whole_session => whole_flows(record, &window),
                Some(record) => partial_flows(record, &reordered_dues, &window),
                None => Vec::new(),
            },
            valid: record.is_some_and(|record| record.valid),
            clock: record.map(|record| Clock::from(&record.clock)),
            warnings: Vec::new(),
            cut: None,
        });
    }
    if let (Some(first), Some(record)) = (intervals.first_mut(), record) {
        first.warnings.clone_from(&record.warnings);
    }
    if let Some(last) = intervals.last_mut() {
        last.cut.clone_from(&session.cut);
    }
    intervals
}

/// Returns the times at which the reordered messages of a session were due (RFC 4737 §3). The whole session
/// is needed, because a message may have arrived after one of the next interval.
fn reordered_dues(flow: &FlowRecord) -> Vec<Instant> {
    let trips = flow.trips(&(Instant::ZERO..Instant::from_nanos(u64::MAX)));
    let arrivals = &flow.echo.as_ref().unwrap_or(&flow.forward).arrivals;
    let mut next_expected = 0;
    let mut dues = Vec::new();
    for trip in first_arrivals(&trips, arrivals) {
        if trip.seq < next_expected {
            dues.push(trip.due);
        }
        next_expected = next_expected.max(trip.seq.saturating_add(1));
    }
    dues
}

/// Makes the figures of all flows of a session that has one interval.
fn whole_flows(record: &RunRecord, window: &Range<Instant>) -> Vec<FlowInterval> {
    let mut figures = summarise(record, &Default::default()).flows;
    let flow_interval = |flow: &FlowRecord| {
        FlowInterval::new(flow, *figures.remove(&flow.info.name).unwrap_or_default(), window)
    };
    record.flows.iter().map(flow_interval).collect()
}

/// Makes the figures of all flows in a part of a session. `reordered_dues` has an entry for each flow.
fn partial_flows(
    record: &RunRecord,
    reordered_dues: &[Vec<Instant>],
    window: &Range<Instant>,
) -> Vec<FlowInterval> {
    let mut figures = summarise_flows(record, window);
    let mut flows = Vec::new();
    for (flow, reordered_dues) in record.flows.iter().zip(reordered_dues) {
        let figures = *figures.remove(&flow.info.name).unwrap_or_default();
        flows.push(FlowInterval::of_part(flow, figures, reordered_dues, window));
    }
    flows
}

/// Counts the delays of messages. A delay below zero comes from the error of two clocks, and counts as zero.
fn delay_histogram(trips: &[Trip]) -> Histogram {
    let mut histogram = Histogram::new();
    for delay in trips.iter().filter_map(Trip::delay) {
        histogram.record(delay.max(SignedDuration::ZERO));
    }
    histogram
}

/// Returns the statistics of delays, in the form of summary.json.
pub(crate) fn delays(histogram: &Histogram) -> Option<DelayMs> {
    delay_ms(histogram)
}

#[cfg(test)]
pub(crate) mod tests {
    use talkpath_fixtures::call_record;
    use talkpath_measure::{CallTerms, Carriage, Codec, Fate, PlayoutRule};

    use super::*;

    /// Returns a message each 20 ms for `ms`; each `lost`th is missing, and the others take 3 ms.
    pub(crate) fn session(number: u64, start_ns: i64, ms: u64, lost: u64) -> MonitorSession {
        let (length, record) = (Duration::from_millis(ms), call_record(ms, lost));
        MonitorSession { number, start_ns, length, record: Some(record), cut: None }
    }

    #[test]
    fn every_message_is_in_exactly_one_interval_wherever_the_borders_are() {
        // Borders on messages, between them, and a session that is cut short off any border.
        for (ms, step) in [(10_000, 1_000), (10_000, 1_010), (10_000, 10_000), (7_333, 1_000), (19, 1_000)] {
            let session = session(0, 5, ms, 7);
            let record = session.record.as_ref().unwrap();
            let intervals = split(&session, Duration::from_millis(step));
            let mut sum = Counts::default();
            let mut end_ns = 5;
            for interval in &intervals {
                assert_eq!(interval.start_ns, end_ns, "intervals touch");
                end_ns += interval.length.as_nanos() as i64;
                sum.add(&interval.sum());
            }
            assert_eq!(end_ns, 5 + ms as i64 * 1_000_000);
            let rows = &record.flows[0].forward.messages;
            let lost = rows.iter().filter(|row| row.fate == Fate::Missing).count() as u64;
            assert_eq!(
                (sum.sent, sum.lost, sum.received, sum.bytes),
                (rows.len() as u64, lost, rows.len() as u64 - lost, 160 * (rows.len() as u64 - lost)),
                "{ms} ms in steps of {step} ms"
            );
            let whole = &summarise_flows(record, &(Instant::ZERO..record.window_end))["call"];
            assert_eq!((sum.sent, sum.lost, sum.received), (whole.sent, whole.lost, whole.received));
        }
    }

    #[test]
    fn what_never_left_for_want_of_a_network_or_a_connection_is_lost_in_its_interval() {
        let mut session = session(0, 0, 2_000, 1_000);
        let rows = &mut session.record.as_mut().unwrap().flows[0].forward.messages;
        for (row, fate) in rows[45..60].iter_mut().zip([Fate::NotOpen, Fate::NoNetwork].into_iter().cycle()) {
            (row.fate, row.sent, row.received, row.copies) = (fate, None, None, 0);
        }
        let counts: Vec<Counts> = split(&session, Duration::from_secs(1)).iter().map(Interval::sum).collect();
        assert_eq!(counts.iter().map(|counts| counts.lost).collect::<Vec<_>>(), [5, 10]);
        assert_eq!(
            counts.iter().map(|counts| (counts.not_open, counts.no_network)).collect::<Vec<_>>(),
            [(3, 2), (5, 5)]
        );
        assert_eq!(counts.iter().map(|counts| counts.sent).collect::<Vec<_>>(), [50, 50]);
        assert!((counts[0].lost_percent() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_message_that_one_of_the_next_interval_overtook_is_reordered() {
        let mut session = session(0, 0, 2_000, 1_000);
        // 49 is the last of the first second.
        session.record.as_mut().unwrap().flows[0].forward.arrivals.swap(49, 50);
        let reordered = |length: u64| -> Vec<u64> {
            let intervals = split(&session, Duration::from_secs(length));
            intervals.iter().map(|interval| interval.sum().reordered).collect()
        };
        assert_eq!((reordered(1), reordered(2)), (vec![1, 0], vec![1]));
    }

    #[test]
    fn an_interval_has_its_own_delays_and_what_cut_it_short() {
        let mut session = session(0, 0, 2_000, 5);
        session.cut = Some("gone".to_owned());
        session.record.as_mut().unwrap().warnings.push("late".to_owned());
        let intervals = split(&session, Duration::from_secs(1));
        let flow = &intervals[0].flows[0];
        assert_eq!((flow.one_way.count(), flow.round_trips.count()), (40, 0));
        assert_eq!(delays(&flow.one_way).unwrap().max, 3.0);
        assert_eq!((&intervals[0].cut, intervals[1].cut.as_deref()), (&None, Some("gone")));
        assert_eq!((intervals[0].warnings.len(), intervals[1].warnings.len()), (1, 0));
    }

    #[test]
    fn what_was_counted_over_the_whole_session_is_in_no_part_of_it() {
        let mut session = session(0, 0, 2_000, 5);
        let flow = &mut session.record.as_mut().unwrap().flows[0];
        flow.counters.ip = Some(Default::default());
        flow.file = Some(Default::default());
        let figures = |length: u64| -> Vec<_> {
            let intervals = split(&session, Duration::from_secs(length));
            let known = |flow: &FlowInterval| (flow.figures.ip.is_some(), flow.figures.file.is_some());
            intervals.iter().map(|interval| known(&interval.flows[0])).collect()
        };
        assert_eq!((figures(1), figures(2)), (vec![(false, false); 2], vec![(true, true)]));
    }

    #[test]
    fn a_call_each_way_between_wrong_clocks_is_rated_in_each_interval() {
        let mut session = session(0, 0, 2_000, 1_000);
        let record = session.record.as_mut().unwrap();
        let way = |name: &str| {
            let mut flow = record.flows[0].clone();
            (flow.info.name, flow.info.clock_trusted) = (name.to_owned(), false);
            let frame = Duration::from_millis(20);
            let call = CallTerms {
                codec: Codec::G711,
                rated: Codec::G711.rated(false),
                frame,
                carriage: Carriage::default(),
                playout: PlayoutRule::Adaptive,
                is_concealed: false,
                others: false,
            };
            flow.info.terms.call = Some(call);
            flow
        };
        record.flows = vec![way("call-up"), way("call-down")];
        for length in [1, 2] {
            let intervals = split(&session, Duration::from_secs(length));
            let mut flows = intervals.iter().flat_map(|interval| &interval.flows);
            assert!(
                flows.all(|flow| flow.figures.call.as_ref().is_some_and(|call| call.score() > Some(4.0)))
            );
        }
    }

    #[test]
    fn a_session_without_a_record_still_takes_its_time() {
        let session = MonitorSession { record: None, ..session(0, 0, 2_500, 5) };
        let intervals = split(&session, Duration::from_secs(1));
        let lengths: Vec<_> = intervals.iter().map(|interval| interval.length.as_millis()).collect();
        assert_eq!(lengths, [1_000, 1_000, 500]);
        assert!(intervals.iter().all(|interval| !interval.valid && interval.sum() == Counts::default()));
    }
}
