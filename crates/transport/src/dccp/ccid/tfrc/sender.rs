//! The sending half: a rate, and the loss event rate from what the receiver reports.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::Observation;
use talkpath_wire::dccp::Seq;

use super::options::{FeedbackOptions, ReportedInterval, read_feedback, receive_buffer_drops};
use crate::dccp::ccid::{Acknowledgement, CcidCounters, CcidSender, Clearance, Sent};
use crate::tfrc::{
    DEFAULT_RTT, Feedback, INTERVALS, Interval, Sender, TfrcConfig, WindowCounter, general_discount,
    mean_interval,
};

/// A sending half of CCID 3 or 4.
#[derive(Clone, Debug)]
pub struct TfrcSender {
    config: TfrcConfig,
    sender: Sender,
    counter: WindowCounter,
    ccval: u8,
    /// What was sent and not decided by the receiver yet, by number.
    log: VecDeque<LogEntry>,
    /// The loss intervals that were reported, newest first.
    intervals: VecDeque<Known>,
    /// The acknowledgement numbers of the last feedback: whose, and of what.
    last_feedback: Option<(Seq, Seq)>,
    /// The rate of the last feedback that reported no intervals.
    told_rate: f64,
    payload: Bytes,
    congestion_events: u64,
}

#[derive(Clone, Copy, Debug)]
struct LogEntry {
    seq: Seq,
    sent: Instant,
    /// The window counter of a data packet.
    counter: Option<u8>,
}

/// A loss interval as the sender knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    first: Seq,
    /// When its first packet left; `None` if that is not known, and for the interval before the first loss.
    start: Option<Instant>,
    interval: Interval,
}

impl TfrcSender {
    /// CCID 3 with TFRC, CCID 4 with TFRC-SP.
    pub fn new(config: TfrcConfig) -> Self {
        Self {
            config,
            sender: Sender::new(config),
            counter: WindowCounter::default(),
            ccval: 0,
            log: VecDeque::new(),
            intervals: VecDeque::with_capacity(INTERVALS + 2),
            last_feedback: None,
            told_rate: 0.0,
            payload: Bytes::ZERO,
            congestion_events: 0,
        }
    }

    fn rtt(&self) -> Duration {
        self.sender.rtt().unwrap_or(DEFAULT_RTT)
    }

    fn sent(&self, seq: Seq) -> Option<&LogEntry> {
        // Numbers follow each other without gaps.
        let index = usize::try_from(seq.distance_from(self.log.front()?.seq)).ok()?;
        self.log.get(index).filter(|entry| entry.seq == seq)
    }

    /// Takes over the reported intervals. Returns whether any interval begins a loss event that was not
    /// known.
    fn merge(&mut self, ack: Seq, options: &FeedbackOptions, acknowledged: Option<Instant>) -> bool {
        let reported = options.intervals.as_slice();
        let mut places = [(Seq::default(), ReportedInterval::default()); INTERVALS + 1];
        let mut end = ack.wrapping_sub(options.intervals.skip.into());
        for (place, &interval) in places.iter_mut().zip(reported) {
            let length = u64::from(interval.lossless) + u64::from(interval.lossy);
            *place = (end.wrapping_sub(length).next(), interval);
            end = end.wrapping_sub(length);
        }
        let mut news = false;
        for &(first, interval) in places[..reported.len()].iter().rev() {
            news |= self.merge_one(first, interval);
        }
        // The newest goes on; whether it has become long is seen from what was acknowledged.
        let two_round_trips = self.rtt().saturating_mul(2);
        if let (Some(newest), Some(now)) = (self.intervals.front_mut(), acknowledged) {
            newest.interval.short = newest.start.is_some_and(|start| now.since(start) <= two_round_trips);
        }
        news
    }

    /// Takes over the interval that begins with `first`. Returns whether it is a loss event that was not
    /// known. Further losses of a known one are none (RFC 5348 §4.3).
    fn merge_one(&mut self, first: Seq, reported: ReportedInterval) -> bool {
        let (packets, dropped) = (reported.data.max(u32::from(reported.lossy > 0)), reported.dropped);
        // The same first number: an interval that begins with a loss is another than the empty interval
        // before a first loss.
        let same =
            |known: &&mut Known| known.first == first && (known.interval.dropped > 0) == (reported.lossy > 0);
        if let Some(known) = self.intervals.iter_mut().find(same) {
            (known.interval.packets, known.interval.dropped) = (packets, dropped);
            return false;
        }
        if self.intervals.front().is_some_and(|newest| first.is_before(newest.first)) {
            // Older than what is known: nothing that an honest receiver reports for the first time.
            return false;
        }
        let lossy = reported.lossy > 0;
        let start = if lossy { self.sent(first).map(|entry| entry.sent) } else { None };
        let two_round_trips = self.rtt().saturating_mul(2);
        if let (Some(previous), Some(start)) = (self.intervals.front_mut(), start) {
            previous.interval.short =
                previous.start.is_some_and(|before| start.since(before) <= two_round_trips);
        }
        if lossy {
            self.discount();
        }
        let interval = Interval { packets, dropped, ..Interval::EMPTY };
        self.intervals.push_front(Known { first, start, interval });
        self.intervals.truncate(INTERVALS + 1);
        self.congestion_events += u64::from(lossy);
        lossy
    }

    /// A new loss event: what the current interval took from the weight of the older ones stays taken
    /// (RFC 5348 §5.5).
    fn discount(&mut self) {
        let general = self.general_discount();
        for known in self.intervals.iter_mut().skip(1) {
            known.interval.discount *= general;
        }
    }

    /// DF of RFC 5348 §5.5; 1 if nothing is discounted.
    fn general_discount(&self) -> f64 {
        if !self.config.history_discounting {
            return 1.0;
        }
        let intervals = self.known_intervals();
        general_discount(&intervals[..self.intervals.len()], self.config.variant)
    }

    fn loss_event_rate(&self) -> f64 {
        let (intervals, general) = (self.known_intervals(), self.general_discount());
        let mean = mean_interval(&intervals[..self.intervals.len()], self.config.variant, general);
        mean.map_or(0.0, |mean| 1.0 / mean)
    }

    /// As many as there are, the newest first.
    fn known_intervals(&self) -> [Interval; INTERVALS + 1] {
        let mut intervals = [Interval::EMPTY; INTERVALS + 1];
        for (slot, known) in intervals.iter_mut().zip(&self.intervals) {
            *slot = known.interval;
        }
        intervals
    }

    /// Packets acknowledged since the last feedback whose data found no room in the receive buffer.
    fn new_buffer_drops(&self, ack: &Acknowledgement<'_>) -> u64 {
        let before = self.last_feedback.map_or(ack.ack, |(_, acknowledged)| acknowledged);
        let newly = u64::try_from(ack.ack.distance_from(before)).unwrap_or(0);
        receive_buffer_drops(ack.options, newly)
    }

    /// RFC 4342 §5.2: the receive rate, less for the `dropped` packets and for a slow receiver.
    fn adjusted_receive_rate(&self, dropped: u64, options: &FeedbackOptions) -> f64 {
        let reported = f64::from(options.receive_rate);
        let packet_rate = self.payload.get() as f64 / self.rtt().as_secs_f64().max(1e-6);
        let bound = match (dropped, options.slow_receiver) {
            (0, false) => return reported,
            (0, true) => reported,
            _ => (reported - dropped as f64 * packet_rate).max(reported.min(packet_rate)),
        };
        reported.min(bound / 2.0)
    }
}

impl CcidSender for TfrcSender {
    fn clearance(&self, _payload: Bytes, now: Instant) -> Clearance {
        let next = self.sender.next_send(now);
        if next <= now { Clearance::Now } else { Clearance::At(next) }
    }

    fn ccval(&mut self, now: Instant) -> u8 {
        self.ccval = self.counter.on_send(self.rtt(), now);
        self.ccval
    }

    /// RFC 5348 §4.2: the initial rate at once, without a feedback to wait for.
    fn on_handshake(&mut self, rtt: Duration, now: Instant) {
        self.sender.set_rtt(rtt, now);
    }

    fn on_sent(&mut self, sent: &Sent, now: Instant) {
        let counter = sent.is_data.then_some(self.ccval);
        if self.log.back().is_some_and(|last| last.seq.next() != sent.seq) {
            self.log.clear();
        }
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(LogEntry { seq: sent.seq, sent: now, counter });
        if sent.is_data {
            self.payload = sent.payload;
            self.sender.on_sent(sent.payload, now);
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        let entry = self.sent(ack.ack).copied();
        if let Some(counter) = entry.and_then(|entry| entry.counter) {
            self.counter.on_acknowledged(counter, now);
        }
        let Some(options) = read_feedback(ack.options) else { return };
        if self.last_feedback.is_some_and(|(seq, _)| !ack.seq.is_after(seq)) {
            return;
        }
        let (p, new_loss) = match options.told_rate {
            Some(told) => (told, told > core::mem::replace(&mut self.told_rate, told)),
            None => {
                let new_loss = self.merge(ack.ack, &options, entry.map(|entry| entry.sent));
                (self.loss_event_rate(), new_loss)
            }
        };
        let dropped = self.new_buffer_drops(ack);
        let feedback = Feedback {
            // If the peer says that it held the acknowledgement for longer than the packet was away, there is
            // no sample.
            rtt: entry
                .map(|entry| now.since(entry.sent))
                .filter(|measured| options.elapsed <= *measured)
                .map(|measured| measured.saturating_sub(options.elapsed)),
            sent: entry.map_or(now, |entry| entry.sent),
            x_recv: self.adjusted_receive_rate(dropped, &options),
            p,
            new_loss,
            receiver_limited: dropped > 0 || options.slow_receiver,
        };
        self.sender.on_feedback(feedback, now);
        self.last_feedback = Some((ack.seq, ack.ack));
        // What may yet be found lost stays, and what may be acknowledged again.
        let decided = ack.ack.wrapping_sub(options.intervals.skip.into());
        let done = |entry: &LogEntry| entry.seq.is_before(ack.ack) && !entry.seq.is_after(decided);
        while self.log.front().is_some_and(done) {
            self.log.pop_front();
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.sender.on_timeout(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.sender.poll_timeout()
    }

    fn observe(&self) -> Observation {
        Observation { srtt: self.sender.rtt(), ..Observation::default() }
    }

    fn counters(&self) -> CcidCounters {
        CcidCounters { timeouts: self.sender.timeouts(), congestion_events: self.congestion_events }
    }
}

/// Chosen: a round trip of 64,000 packets; older ones give no round-trip sample.
const LOG: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::options::ReportedIntervals;
    use super::*;
    use crate::tfrc::{Revision, Variant};
    use talkpath_wire::dccp::Options;

    fn sender() -> TfrcSender {
        TfrcSender::new(TfrcConfig::new(Revision::Rfc5348, Variant::Standard))
    }

    /// RFC 5348 §4.3: a loss event is new once, however many of its losses are reported later.
    #[test]
    fn further_losses_of_a_known_loss_event_are_no_new_event() {
        let mut sender = sender();
        let mut is_new = |ack, losses: &[(u32, u32)]| {
            let mut intervals = ReportedIntervals::new(0);
            for &(lossy, lossless) in losses {
                let data = lossy + lossless;
                intervals.push(ReportedInterval { lossless, lossy, data, dropped: lossy });
            }
            let options = FeedbackOptions {
                elapsed: Duration::ZERO,
                receive_rate: 8000,
                intervals,
                told_rate: None,
                slow_receiver: false,
            };
            sender.merge(Seq::new(ack), &options, None)
        };
        // Packets 1 to 10 arrived, 11 did not; then nor did 12 and 13; then 21 is lost as well.
        assert!(is_new(14, &[(1, 3), (0, 10)]));
        assert!(!is_new(16, &[(3, 3), (0, 10)]));
        assert!(is_new(24, &[(1, 3), (3, 7), (0, 10)]));
        assert_eq!(sender.congestion_events, 2);
    }

    /// RFC 4340 §11.6, RFC 4342 §5.2: the report of an end that cannot keep up is no higher than the receive
    /// rate, 6400 B/s, until the next one comes. Without that report the rate would double each time.
    #[test]
    fn a_slow_receiver_and_a_full_buffer_stop_the_growth_for_a_round_trip() {
        for cause in [&[2][..], &[40, 3, 0xa0]] {
            let mut sender = sender();
            sender.on_handshake(Duration::from_millis(100), Instant::from_millis(910));
            let mut rate_after = |n: u8, more: &[u8]| {
                let left = Instant::from_millis(1000 + 110 * u64::from(n));
                let seq = Seq::new(n.into());
                let _ = sender.ccval(left);
                sender.on_sent(&Sent { seq, is_data: true, payload: Bytes::new(160), queued: 1 }, left);
                // Elapsed Time, Receive Rate, and one loss interval without loss since the first packet.
                let feedback =
                    [43, 4, 0, 0, 194, 6, 0, 0, 0x19, 0, 193, 12, 0, 0, 0, n + 1, 0, 0, 0, 0, 0, n + 1];
                let options = Options::from_wire(&[&feedback[..], more].concat());
                let ack = Acknowledgement {
                    seq: Seq::new(50 + u64::from(n)),
                    ack: seq,
                    is_data: false,
                    peer_lost: 0,
                    options: &options,
                };
                sender.on_ack(&ack, left + Duration::from_millis(100));
                sender.sender.rate().as_bps() / 8
            };
            assert_eq!(rate_after(0, &[]), 12_800);
            assert_eq!(rate_after(1, cause), 6400);
            assert_eq!(rate_after(2, &[]), 12_800);
        }
    }
}
