//! The sending half of CCID 2 (RFC 4341 §5): `cwnd`, `ssthresh`, `pipe` and the transmit timeout, all in
//! packets, and the Ack Ratio (§6.1).
//!
//! ```text
//!   event                                         cwnd                          ssthresh
//!   packets acknowledged, cwnd < ssthresh         + 1 for every two of them     -
//!   packets acknowledged, otherwise               + 1 for a window of them      -
//!   a packet is lost or marked                    / 2, once for a window        the new cwnd, at least 2
//!   no acknowledgement until the timeout          1                             cwnd / 2, at least 2
//!   a packet found no room in a receive buffer    - 1 for each                  at most cwnd
//! ```
//!
//! A packet leaves while `pipe`, the number of data packets in the network, is below `cwnd`.

use std::collections::VecDeque;

use talkpath_config::{DccpConfig, Stack};
use talkpath_units::{Bytes, Duration, Instant, Packets};
use talkpath_wire::Observation;
use talkpath_wire::dccp::{DccpOption, Seq};

use crate::cc::usage::WindowUsage;
use crate::cc::{Counting, Window};
use crate::dccp::ccid::{Acknowledgement, CcidCounters, CcidSender, Clearance, Sent};
use crate::dccp::{AckRun, AckState, DropCode, Feature, ack_vector, drop_code};
use crate::tcp::clock::HostClock;
use crate::tcp::rtt::RttEstimator;

/// CCID 2's sending half.
#[derive(Clone, Debug)]
pub struct Ccid2Sender {
    cwnd: u64,
    /// [`u64::MAX`] if unlimited.
    ssthresh: u64,
    /// The number of data packets in the network, as far as is known.
    pipe: u64,
    initial_window: Option<Packets>,
    segment_size: Option<Bytes>,
    app_limited_growth: bool,
    /// The growth of `cwnd` by an acknowledged packet in slow start, in half packets.
    slow_start_step: u64,
    /// The packets from `base` on, with data or without, that may still be acknowledged or lost.
    records: VecDeque<PacketState>,
    base: Seq,
    /// The greatest sequence number that was sent.
    last_sent: Seq,
    /// The number of packets that were sent.
    sent: u64,
    /// The number of packets that were acknowledged or lost.
    resolved: u64,
    last_data_at: Option<Instant>,
    /// The three greatest numbers that were acknowledged, the greatest first.
    greatest: [Option<Seq>; NUMDUPACK],
    /// Losses up to this packet belong to the last congestion event. `None` before the first event.
    event_end: Option<Seq>,
    /// The growth of `cwnd` that is less than a packet: half packets in slow start, acknowledged packets in
    /// congestion avoidance.
    growth: u64,
    no_growth_until: Instant,
    usage: WindowUsage,
    rtt: RttEstimator,
    /// The packet whose round trip is being measured. There is at most one per window.
    timed: Option<TimedPacket>,
    /// The transmit timeout. `None` if no data is in the network.
    deadline: Option<Instant>,
    ack_ratio: AckRatio,
    /// The number of data packets since we last acknowledged the peer's acknowledgements.
    since_ack: u64,
    counters: CcidCounters,
}

/// What is known of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    /// It carries data, and is neither acknowledged nor lost.
    DataOutstanding,
    /// It carries no data, and is neither acknowledged nor lost.
    Outstanding,
    /// It was acknowledged or counted as lost.
    Resolved,
}

/// A packet that was sent at `sent_at`.
#[derive(Clone, Copy, Debug)]
struct TimedPacket {
    seq: Seq,
    sent_at: Instant,
}

/// What an acknowledgement reports about data packets.
#[derive(Debug, Default)]
struct AckReport {
    /// The number of packets that arrived without a mark.
    acked: u64,
    /// True if any data packet was acknowledged or lost.
    has_resolved: bool,
    /// The latest packet that was marked, lost, or dropped at the far end as if by congestion.
    congested: Option<Seq>,
    /// The number of packets that found no room in the receive buffer (Drop Code 2).
    buffer_drops: u64,
}

impl Ccid2Sender {
    /// A sender that has not sent yet.
    pub fn new(config: &DccpConfig) -> Self {
        Self {
            cwnd: 1,
            ssthresh: config.initial_ssthresh.map_or(u64::MAX, Packets::get),
            pipe: 0,
            initial_window: config.initial_window,
            segment_size: config.segment_size,
            app_limited_growth: config.app_limited_growth,
            slow_start_step: if config.growth_by_each { 2 } else { 1 },
            records: VecDeque::new(),
            base: Seq::new(0),
            last_sent: Seq::new(0),
            sent: 0,
            resolved: 0,
            last_data_at: None,
            greatest: [None; NUMDUPACK],
            event_end: None,
            growth: 0,
            no_growth_until: Instant::ZERO,
            usage: WindowUsage::default(),
            // A minimum under the variance term, as Linux has it, so that a delayed acknowledgement is never
            // late.
            rtt: RttEstimator::new(Stack::Linux, Duration::ZERO, LEAST_VARIANCE, HostClock::COMMON),
            timed: None,
            deadline: None,
            ack_ratio: AckRatio::new(config.ack_ratio),
            since_ack: 0,
            counters: CcidCounters::default(),
        }
    }

    /// Returns the initial window: four packets, or as many as 4380 bytes hold, and at least two (RFC 3390
    /// §1).
    fn initial(&self, payload: Bytes) -> u64 {
        let size = self.segment_size.unwrap_or(payload).get().max(1);
        self.initial_window.map_or((4380 / size).clamp(2, 4), Packets::get)
    }

    /// Sets the window before the first data packet leaves, and restarts it after an idle time.
    fn refresh_window(&mut self, payload: Bytes, now: Instant) {
        match self.last_data_at {
            None => self.cwnd = self.initial(payload),
            // RFC 5681 §4.1, which RFC 4341 §5.1 points to (as RFC 2581).
            Some(last) if self.pipe == 0 && now.since(last) > self.rtt.rto() => {
                self.cwnd = self.cwnd.min(self.initial(payload));
            }
            Some(_) => {}
        }
        self.last_data_at = Some(now);
    }

    /// Resolves the packets that `ack` reports as received, and notes them in `report`.
    fn mark_acknowledged(&mut self, ack: &Acknowledgement<'_>, report: &mut AckReport, now: Instant) {
        let mut has_vector = false;
        for run in ack_vector(ack.ack, ack.options) {
            has_vector = true;
            if run.last.is_before(self.base) {
                break;
            }
            if run.state != AckState::NotYetReceived {
                self.mark_run(run, ack, report, now);
            }
        }
        if !has_vector {
            let run = AckRun { state: AckState::Received, last: ack.ack, count: 1 };
            self.mark_run(run, ack, report, now);
        }
    }

    fn mark_run(&mut self, run: AckRun, ack: &Acknowledgement<'_>, report: &mut AckReport, now: Instant) {
        let first = run.last.wrapping_sub(run.count - 1);
        let low = first.distance_from(self.base).max(0);
        let high = run.last.distance_from(self.base).min(self.records.len() as i64 - 1);
        for index in low..=high {
            let seq = self.base.wrapping_add(index as u64);
            let state = core::mem::replace(&mut self.records[index as usize], PacketState::Resolved);
            if state == PacketState::Resolved {
                continue;
            }
            self.resolved += 1;
            insert(&mut self.greatest, seq);
            if state == PacketState::DataOutstanding {
                self.pipe -= 1;
                report.on_data(seq, run.state, drop_code(ack.ack, ack.options, seq));
            }
            if let Some(TimedPacket { sent_at, .. }) = self.timed.take_if(|timed| timed.seq == seq) {
                self.rtt.on_sample(now.since(sent_at), self.resolved, self.sent);
            }
        }
    }

    /// Counts the packets as lost that three later packets have overtaken (RFC 4341 §5, 2).
    fn find_losses(&mut self, report: &mut AckReport) {
        let Some(third) = self.greatest[NUMDUPACK - 1] else { return };
        while self.base.is_before(third)
            && let Some(state) = self.records.pop_front()
        {
            let seq = self.base;
            self.base = self.base.next();
            if state == PacketState::Resolved {
                continue;
            }
            self.resolved += 1;
            self.timed.take_if(|timed| timed.seq == seq);
            if state == PacketState::DataOutstanding {
                self.pipe -= 1;
                report.has_resolved = true;
                report.on_congestion(seq);
            }
        }
    }

    /// Halves the window, unless the packet `latest` was sent before the last halving (RFC 4341 §5).
    fn on_congestion(&mut self, latest: Seq) {
        if self.event_end.is_some_and(|end| !latest.is_after(end)) {
            return;
        }
        self.cwnd = (self.cwnd / 2).max(1);
        self.ssthresh = self.cwnd.max(2);
        self.event_end = Some(self.last_sent);
        self.growth = 0;
        self.counters.congestion_events += 1;
    }

    /// Grows `cwnd` for `acked` packets (RFC 4341 §5). In slow start it grows by one packet for every two,
    /// and by at most half the Ack Ratio per acknowledgement. Later it grows by one packet per window. If the
    /// configuration says so, slow start grows by one packet for each, as for segments in RFC 5681 §3.1.
    fn grow(&mut self, acked: u64) {
        if self.cwnd < self.ssthresh {
            self.growth += acked.min(u64::from(self.ack_ratio.current)) * self.slow_start_step;
            self.cwnd = (self.cwnd + self.growth / 2).min(self.ssthresh);
            self.growth %= 2;
        } else {
            self.growth += acked;
            if self.growth >= self.cwnd {
                self.growth -= self.cwnd;
                self.cwnd += 1;
            }
        }
    }

    fn may_grow(&self, now: Instant) -> bool {
        let ssthresh = (self.ssthresh < u64::MAX).then(|| Packets::new(self.ssthresh));
        let window = Window::new(Counting::Packets, Packets::new(self.cwnd), ssthresh);
        now >= self.no_growth_until && (self.app_limited_growth || self.usage.is_limited(&window))
    }

    /// Stops growth for a round trip, and ends slow start, because the receiver is slow (RFC 4341 §5.2, RFC
    /// 4340 §11.6).
    fn on_slow_receiver(&mut self, now: Instant) {
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
        self.no_growth_until = now + self.rtt.srtt().unwrap_or(DEFAULT_RTT);
    }

    /// Takes a packet from `cwnd` for each packet that found no room (RFC 4341 §5.2).
    fn on_buffer_drops(&mut self, drops: u64) {
        self.cwnd = self.cwnd.saturating_sub(drops).max(1);
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
        self.growth = 0;
    }

    /// Forgets all packets, because none is in the network.
    fn forget_all(&mut self) {
        self.resolved = self.sent;
        self.records.clear();
        self.timed = None;
    }
}

impl CcidSender for Ccid2Sender {
    fn clearance(&self, _payload: Bytes, _now: Instant) -> Clearance {
        if self.pipe == 0 || self.pipe < self.cwnd { Clearance::Now } else { Clearance::Blocked }
    }

    fn on_handshake(&mut self, rtt: Duration, _now: Instant) {
        self.rtt.on_sample(rtt, 0, 0);
    }

    fn on_sent(&mut self, sent: &Sent, now: Instant) {
        self.last_sent = sent.seq;
        if self.records.is_empty() {
            if !sent.is_data {
                return;
            }
            self.base = sent.seq;
        }
        self.sent += 1;
        let state = if sent.is_data { PacketState::DataOutstanding } else { PacketState::Outstanding };
        self.records.push_back(state);
        if !sent.is_data {
            return;
        }
        self.refresh_window(sent.payload, now);
        self.pipe += 1;
        self.since_ack += 1;
        self.timed.get_or_insert(TimedPacket { seq: sent.seq, sent_at: now });
        if self.deadline.is_none() {
            self.deadline = Some(self.rtt.deadline(now));
        }
        if sent.queued == 0 || self.pipe >= self.cwnd {
            self.usage.on_drained(self.pipe >= self.cwnd, self.pipe, self.resolved, self.sent);
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        let mut report = AckReport::default();
        self.mark_acknowledged(ack, &mut report, now);
        self.find_losses(&mut report);
        if ack.options.iter().any(|option| option == DccpOption::SlowReceiver) {
            self.on_slow_receiver(now);
        }
        match report.congested {
            Some(latest) => self.on_congestion(latest),
            None if report.acked > 0 && self.may_grow(now) => self.grow(report.acked),
            None => {}
        }
        if report.buffer_drops > 0 {
            self.on_buffer_drops(report.buffer_drops);
        }
        if self.pipe == 0 {
            self.forget_all();
            self.deadline = None;
        } else if report.has_resolved {
            self.deadline = Some(self.rtt.deadline(now));
        }
        self.ack_ratio.on_ack(ack, self.cwnd, self.last_sent);
    }

    /// Falls back to a window of one packet (RFC 4341 §5, 3). No packet counts as in the network any more.
    fn on_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.deadline = None;
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = 1;
        self.pipe = 0;
        self.growth = 0;
        self.event_end = Some(self.last_sent);
        self.forget_all();
        self.rtt.back_off();
        self.counters.timeouts += 1;
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// True if we have not acknowledged the peer's acknowledgements for a window of data (RFC 4341 §6.2).
    fn wants_to_acknowledge(&self) -> bool {
        self.since_ack >= self.cwnd
    }

    fn on_acknowledged(&mut self) {
        self.since_ack = 0;
    }

    fn wanted_ack_ratio(&self) -> Option<u16> {
        (self.ack_ratio.wanted != self.ack_ratio.current).then_some(self.ack_ratio.wanted)
    }

    fn on_feature(&mut self, number: u8, value: u64) {
        if number == Feature::AckRatio.number() {
            self.ack_ratio.current = u16::try_from(value).unwrap_or(u16::MAX);
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            cwnd: self.last_data_at.map(|_| self.cwnd as f64),
            ssthresh: Some(if self.ssthresh == u64::MAX { f64::INFINITY } else { self.ssthresh as f64 }),
            srtt: self.rtt.srtt(),
            rto: Some(self.rtt.rto()),
            ..Observation::default()
        }
    }

    fn counters(&self) -> CcidCounters {
        self.counters
    }
}

impl AckReport {
    /// Takes note of a data packet that was received in `state`, and `dropped` by the far end behind its
    /// network layer if there is a code. Drop Codes 0 and 1 count as if received, all others as if marked
    /// (RFC 4340 §11.7.2).
    fn on_data(&mut self, seq: Seq, state: AckState, dropped: Option<DropCode>) {
        self.has_resolved = true;
        let is_congested = match dropped {
            Some(DropCode::RECEIVE_BUFFER) => {
                self.buffer_drops += 1;
                state == AckState::Marked
            }
            None | Some(DropCode::PROTOCOL_CONSTRAINTS | DropCode::NOT_LISTENING) => {
                state == AckState::Marked
            }
            Some(_) => true,
        };
        if is_congested {
            self.on_congestion(seq);
        } else if dropped != Some(DropCode::RECEIVE_BUFFER) {
            self.acked += 1;
        }
    }

    /// Takes note that the packet `seq` met congestion.
    fn on_congestion(&mut self, seq: Seq) {
        self.congested = Some(self.congested.map_or(seq, |other| other.max(seq)));
    }
}

/// The Ack Ratio that the sender wants (RFC 4341 §6.1.2).
#[derive(Clone, Debug)]
struct AckRatio {
    current: u16,
    wanted: u16,
    /// The smallest ratio that the sender falls back to.
    least: u16,
    /// The last packet of the current window of data. `None` before the first acknowledgement.
    window_end: Option<Seq>,
    /// True if an acknowledgement was lost or marked in the current window.
    has_lost: bool,
    /// The number of windows in a row without such a loss.
    clean_windows: u64,
}

impl AckRatio {
    /// Begins with a ratio of 2 (RFC 4340 §11.3). If another one is `configured`, it is negotiated at the
    /// beginning.
    fn new(configured: u16) -> Self {
        Self {
            current: 2,
            wanted: configured.max(1),
            least: configured.clamp(1, 2),
            window_end: None,
            has_lost: false,
            clean_windows: 0,
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement<'_>, cwnd: u64, last_sent: Seq) {
        self.has_lost |= ack.peer_lost > 0;
        let end = *self.window_end.get_or_insert(last_sent);
        if ack.ack.is_before(end) {
            return;
        }
        self.window_end = Some(last_sent);
        // The ratio is at most half the window, rounded up. A ratio of 2 is always allowed (constraint 2).
        let most = u16::try_from(cwnd.div_ceil(2).max(2)).unwrap_or(u16::MAX);
        let ratio = u64::from(self.current);
        if core::mem::take(&mut self.has_lost) {
            self.clean_windows = 0;
            self.wanted = self.current.saturating_mul(2);
        } else {
            self.clean_windows += 1;
            if self.current > self.least && self.clean_windows * (ratio * ratio - ratio) >= cwnd {
                self.clean_windows = 0;
                self.wanted = self.current - 1;
            }
        }
        self.wanted = self.wanted.min(most);
    }
}

/// Inserts `seq` into the greatest numbers, which are in descending order. The smallest one falls out.
fn insert(greatest: &mut [Option<Seq>; NUMDUPACK], seq: Seq) {
    let mut seq = seq;
    for place in greatest {
        match place {
            Some(other) if !seq.is_after(*other) => {}
            Some(other) => core::mem::swap(other, &mut seq),
            None => {
                *place = Some(seq);
                return;
            }
        }
    }
}

/// The number of later packets that show a loss. RFC 4341 §5: "set to three, as is currently the case in
/// TCP".
const NUMDUPACK: usize = 3;
/// The least variance term of the timeout. RFC 4341 §5 needs no minimum timeout. We chose twice the 0.2 s by
/// which a receiver may delay (RFC 4340 §11.3).
const LEAST_VARIANCE: Duration = Duration::from_millis(400);
/// The round trip before the first sample (RFC 4340 §3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
