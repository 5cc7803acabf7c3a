//! The sending half of CCID 3 and 4: a sending rate, which follows from the loss event rate.
//!
//! ```text
//!   feedback ─┬─► loss intervals, or the receiver's own rate ──► loss event rate p ─┬─► tfrc::Sender: rate
//!             └─► receive rate, lowered for drops ──► x_recv ───────────────────────┘
//! ```
//!
//! The receiver reports its loss intervals (RFC 4342 §8.6), and the sender computes p from them, or the
//! receiver reports p itself (§8.5). A loss event is new once, although further losses of it may be reported
//! later.

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
    /// The packets that may still be acknowledged or found lost, in the order of their numbers.
    log: VecDeque<SentPacket>,
    /// The loss intervals that were reported, the newest first.
    intervals: VecDeque<KnownInterval>,
    /// The last feedback packet. `None` before the first.
    last_feedback: Option<FeedbackNumbers>,
    /// The loss event rate of the last feedback that reported the rate and no intervals.
    reported_loss_event_rate: f64,
    /// The size of the last message.
    payload: Bytes,
    congestion_events: u64,
}

/// The numbers of a feedback packet.
#[derive(Clone, Copy, Debug)]
struct FeedbackNumbers {
    seq: Seq,
    ack: Seq,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    seq: Seq,
    sent_at: Instant,
    /// The window counter of a data packet. `None` for other packets.
    counter: Option<u8>,
}

/// A loss interval as the sender knows it.
#[derive(Clone, Copy, Debug)]
struct KnownInterval {
    first: Seq,
    /// When the first packet of the interval left. `None` if that is not known, and for the interval before
    /// the first loss.
    start: Option<Instant>,
    interval: Interval,
}

impl TfrcSender {
    /// The sending half of CCID 3 with TFRC, or of CCID 4 with TFRC-SP.
    pub fn new(config: TfrcConfig) -> Self {
        Self {
            config,
            sender: Sender::new(config),
            counter: WindowCounter::default(),
            ccval: 0,
            log: VecDeque::new(),
            intervals: VecDeque::with_capacity(INTERVALS + 2),
            last_feedback: None,
            reported_loss_event_rate: 0.0,
            payload: Bytes::ZERO,
            congestion_events: 0,
        }
    }

    fn rtt(&self) -> Duration {
        self.sender.rtt().unwrap_or(DEFAULT_RTT)
    }

    /// Returns the packet `seq` if it is in the log.
    fn sent(&self, seq: Seq) -> Option<SentPacket> {
        // The numbers in the log follow each other without gaps.
        let index = usize::try_from(seq.distance_from(self.log.front()?.seq)).ok()?;
        self.log.get(index).filter(|packet| packet.seq == seq).copied()
    }

    /// Takes the reported intervals. Returns true if any of them begins a loss event that was not known.
    /// `acknowledged` is the time at which the acknowledged packet left.
    fn merge(&mut self, ack: Seq, options: &FeedbackOptions, acknowledged: Option<Instant>) -> bool {
        let reported = options.intervals.as_slice();
        let mut places = [(Seq::default(), ReportedInterval::default()); INTERVALS + 1];
        let mut end = ack.wrapping_sub(options.intervals.skip.into());
        for (place, &interval) in places.iter_mut().zip(reported) {
            let length = u64::from(interval.lossless) + u64::from(interval.lossy);
            *place = (end.wrapping_sub(length).next(), interval);
            end = end.wrapping_sub(length);
        }
        let mut has_new_loss_event = false;
        for &(first, interval) in places[..reported.len()].iter().rev() {
            let is_new_loss_event = self.merge_interval(first, interval);
            has_new_loss_event |= is_new_loss_event;
        }
        // The newest interval goes on. It has become long if the acknowledged packet left two round trips
        // later.
        let two_round_trips = self.rtt().saturating_mul(2);
        if let (Some(newest), Some(now)) = (self.intervals.front_mut(), acknowledged) {
            newest.interval.short = newest.start.is_some_and(|start| now.since(start) <= two_round_trips);
        }
        has_new_loss_event
    }

    /// Takes the interval that begins with `first`. Returns true if it is a loss event that was not known.
    /// Further losses of a known event are no new event (RFC 5348 §4.3).
    fn merge_interval(&mut self, first: Seq, reported: ReportedInterval) -> bool {
        let begins_with_loss = reported.lossy > 0;
        let (packets, dropped) = (reported.data.max(u32::from(begins_with_loss)), reported.dropped);
        // Two intervals may begin with the same number: one that begins with a loss, and the empty one before
        // the first loss.
        let is_same = |known: &&mut KnownInterval| {
            known.first == first && (known.interval.dropped > 0) == begins_with_loss
        };
        if let Some(known) = self.intervals.iter_mut().find(is_same) {
            (known.interval.packets, known.interval.dropped) = (packets, dropped);
            return false;
        }
        if self.intervals.front().is_some_and(|newest| first.is_before(newest.first)) {
            // An honest receiver does not report an older interval for the first time.
            return false;
        }
        let start = if begins_with_loss { self.sent(first).map(|packet| packet.sent_at) } else { None };
        let two_round_trips = self.rtt().saturating_mul(2);
        if let (Some(previous), Some(start)) = (self.intervals.front_mut(), start) {
            previous.interval.short =
                previous.start.is_some_and(|before| start.since(before) <= two_round_trips);
        }
        if begins_with_loss {
            self.discount();
        }
        let interval = Interval { packets, dropped, ..Interval::EMPTY };
        self.intervals.push_front(KnownInterval { first, start, interval });
        self.intervals.truncate(INTERVALS + 1);
        self.congestion_events += u64::from(begins_with_loss);
        begins_with_loss
    }

    /// Lowers the weights of the older intervals for good, by what the current interval has taken from them,
    /// because a new loss event begins (RFC 5348 §5.5).
    fn discount(&mut self) {
        let general = self.general_discount();
        for known in self.intervals.iter_mut().skip(1) {
            known.interval.discount *= general;
        }
    }

    /// Returns DF of RFC 5348 §5.5. It is 1 if nothing is discounted.
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

    /// Returns the known intervals, the newest first. The rest of the array is empty.
    fn known_intervals(&self) -> [Interval; INTERVALS + 1] {
        let mut intervals = [Interval::EMPTY; INTERVALS + 1];
        for (slot, known) in intervals.iter_mut().zip(&self.intervals) {
            *slot = known.interval;
        }
        intervals
    }

    /// Returns the number of packets that were acknowledged since the last feedback, and whose data found no
    /// room in the receive buffer.
    fn new_buffer_drops(&self, ack: &Acknowledgement<'_>) -> u64 {
        let before = self.last_feedback.map_or(ack.ack, |last| last.ack);
        let newly = u64::try_from(ack.ack.distance_from(before)).unwrap_or(0);
        receive_buffer_drops(ack.options, newly)
    }

    /// Returns the receive rate in B/s, lowered for the `dropped` packets and for a slow receiver (RFC 4342
    /// §5.2).
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

    /// Sets the initial rate, before any feedback (RFC 5348 §4.2).
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
        self.log.push_back(SentPacket { seq: sent.seq, sent_at: now, counter });
        if sent.is_data {
            self.payload = sent.payload;
            self.sender.on_sent(sent.payload, now);
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        let acked = self.sent(ack.ack);
        if let Some(counter) = acked.and_then(|packet| packet.counter) {
            self.counter.on_acknowledged(counter, now);
        }
        let Some(options) = read_feedback(ack.options) else { return };
        if self.last_feedback.is_some_and(|last| !ack.seq.is_after(last.seq)) {
            return;
        }
        let (p, new_loss) = match options.told_rate {
            Some(reported) => {
                let old = core::mem::replace(&mut self.reported_loss_event_rate, reported);
                (reported, reported > old)
            }
            None => {
                let new_loss = self.merge(ack.ack, &options, acked.map(|packet| packet.sent_at));
                (self.loss_event_rate(), new_loss)
            }
        };
        let dropped = self.new_buffer_drops(ack);
        let feedback = Feedback {
            // There is no sample if the peer claims to have held the acknowledgement for longer than it took
            // to come.
            rtt: acked
                .map(|packet| now.since(packet.sent_at))
                .filter(|measured| options.elapsed <= *measured)
                .map(|measured| measured.saturating_sub(options.elapsed)),
            sent: acked.map_or(now, |packet| packet.sent_at),
            x_recv: self.adjusted_receive_rate(dropped, &options),
            p,
            new_loss,
            receiver_limited: dropped > 0 || options.slow_receiver,
        };
        self.sender.on_feedback(feedback, now);
        self.last_feedback = Some(FeedbackNumbers { seq: ack.seq, ack: ack.ack });
        // The packets stay that may yet be found lost or be acknowledged again.
        let last_decided = ack.ack.wrapping_sub(options.intervals.skip.into());
        let is_done =
            |packet: &SentPacket| packet.seq.is_before(ack.ack) && !packet.seq.is_after(last_decided);
        while self.log.front().is_some_and(is_done) {
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

/// The largest number of packets in the log. We chose it for round trips of 64,000 packets. Older packets
/// give no round-trip sample.
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
