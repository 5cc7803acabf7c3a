//! The sending half: `cwnd`, `ssthresh` and `pipe` (RFC 4341 §5), the transmit timeout, and the Ack Ratio
//! (§6.1).

use std::collections::VecDeque;

use talkpath_config::DccpConfig;
use talkpath_units::{Bytes, Duration, Instant, Packets};
use talkpath_wire::Observation;
use talkpath_wire::dccp::{DccpOption, Seq};

use crate::cc::usage::WindowUsage;
use crate::cc::{Counting, Window};
use crate::dccp::ccid::{Acknowledgement, CcidCounters, CcidSender, Clearance, Sent};
use crate::dccp::{AckState, DropCode, Feature, ack_vector, drop_code};
use crate::tcp::rtt::{RttEstimator, RttRule};

/// CCID 2's sending half.
#[derive(Clone, Debug)]
pub struct Ccid2Sender {
    cwnd: u64,
    /// [`u64::MAX`] if unlimited.
    ssthresh: u64,
    /// Data packets in the network, as far as is known.
    pipe: u64,
    initial_window: Option<Packets>,
    segment_size: Option<Bytes>,
    app_limited_growth: bool,
    /// What slow start makes of an acknowledged packet, in half packets.
    slow_start_step: u64,
    /// Packets from `base` on, data or not, that may still be acknowledged or lost.
    records: VecDeque<Record>,
    base: Seq,
    /// The greatest number sent, and how many packets that is.
    last_sent: Seq,
    sent: u64,
    resolved: u64,
    last_data_at: Option<Instant>,
    /// The three greatest numbers acknowledged, the greatest first.
    greatest: [Option<Seq>; NUMDUPACK],
    /// Losses up to this packet belong to the last congestion event.
    event_end: Option<Seq>,
    /// Half packets of growth in slow start, packets acknowledged in congestion avoidance.
    growth: u64,
    no_growth_until: Instant,
    usage: WindowUsage,
    rtt: RttEstimator,
    /// The packet whose round trip is being measured: one a window.
    timed: Option<(Seq, Instant)>,
    deadline: Option<Instant>,
    ack_ratio: AckRatio,
    /// Data packets since the last acknowledgement of acknowledgements.
    since_ack: u64,
    counters: CcidCounters,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    is_data: bool,
    is_outstanding: bool,
}

/// What one acknowledgement reported of data packets.
#[derive(Debug, Default)]
struct News {
    /// In state 0.
    acked: u64,
    /// Any, whatever state.
    any: bool,
    /// The latest that was marked, lost, or dropped at the far end as if by congestion.
    congested: Option<Seq>,
    /// Drop Code 2.
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
            rtt: RttEstimator::new(RttRule::Linux, Duration::ZERO, LEAST_VARIANCE),
            timed: None,
            deadline: None,
            ack_ratio: AckRatio::new(config.ack_ratio),
            since_ack: 0,
            counters: CcidCounters::default(),
        }
    }

    /// RFC 3390 §1 in packets: four, or as many as 4380 bytes hold, and at least two.
    fn initial(&self, payload: Bytes) -> u64 {
        let size = self.segment_size.unwrap_or(payload).get().max(1);
        self.initial_window.map_or((4380 / size).clamp(2, 4), Packets::get)
    }

    /// Before a data packet leaves: the first one sets the window, and one after an idle time restarts it.
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

    fn mark_acknowledged(&mut self, ack: &Acknowledgement<'_>, news: &mut News, now: Instant) {
        let mut has_vector = false;
        for run in ack_vector(ack.ack, ack.options) {
            has_vector = true;
            let first = run.last.wrapping_sub(run.count - 1);
            if run.last.is_before(self.base) {
                break;
            }
            if run.state != AckState::NotYetReceived {
                self.mark_range(first, run.last, run.state, ack, news, now);
            }
        }
        if !has_vector {
            self.mark_range(ack.ack, ack.ack, AckState::Received, ack, news, now);
        }
    }

    fn mark_range(
        &mut self,
        first: Seq,
        last: Seq,
        state: AckState,
        ack: &Acknowledgement<'_>,
        news: &mut News,
        now: Instant,
    ) {
        let low = first.distance_from(self.base).max(0);
        let high = last.distance_from(self.base).min(self.records.len() as i64 - 1);
        for index in low..=high {
            let seq = self.base.wrapping_add(index as u64);
            let record = &mut self.records[index as usize];
            if !record.is_outstanding {
                continue;
            }
            record.is_outstanding = false;
            self.resolved += 1;
            insert(&mut self.greatest, seq);
            if record.is_data {
                self.pipe -= 1;
                news.on_data(seq, state, drop_code(ack.ack, ack.options, seq));
            }
            if let Some((_, sent)) = self.timed.take_if(|&mut (timed, _)| timed == seq) {
                self.rtt.on_sample(now.since(sent), self.resolved, self.sent);
            }
        }
    }

    /// RFC 4341 §5, 2: lost is what three later packets have overtaken. What lies before them is settled.
    fn find_losses(&mut self, news: &mut News) {
        let Some(third) = self.greatest[NUMDUPACK - 1] else { return };
        while !self.records.is_empty() && self.base.is_before(third) {
            let Some(record) = self.records.pop_front() else { break };
            let seq = self.base;
            self.base = self.base.next();
            if !record.is_outstanding {
                continue;
            }
            self.resolved += 1;
            self.timed.take_if(|&mut (timed, _)| timed == seq);
            if record.is_data {
                self.pipe -= 1;
                news.any = true;
                news.congested = Some(news.congested.map_or(seq, |other| other.max(seq)));
            }
        }
    }

    /// RFC 4341 §5: halved once for what was sent before the last event was noticed.
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

    /// RFC 4341 §5: in slow start one packet for every two, at most Ack Ratio / 2 an acknowledgement; later
    /// one a window. If the configuration says so, one for each, as RFC 5681 §3.1 has it of segments.
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

    /// RFC 4341 §5.2, RFC 4340 §11.6: no growth for a round trip, and no slow start from now on.
    fn on_slow_receiver(&mut self, now: Instant) {
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
        self.no_growth_until = now + self.rtt.srtt().unwrap_or(DEFAULT_RTT);
    }

    /// RFC 4341 §5.2: one packet less for each that found no room.
    fn on_buffer_drops(&mut self, drops: u64) {
        self.cwnd = self.cwnd.saturating_sub(drops).max(1);
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
        self.growth = 0;
    }

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
        self.records.push_back(Record { is_data: sent.is_data, is_outstanding: true });
        if !sent.is_data {
            return;
        }
        self.refresh_window(sent.payload, now);
        self.pipe += 1;
        self.since_ack += 1;
        self.timed.get_or_insert((sent.seq, now));
        if self.deadline.is_none() {
            self.deadline = Some(self.rtt.deadline(now));
        }
        if sent.queued == 0 || self.pipe >= self.cwnd {
            self.usage.on_drained(self.pipe >= self.cwnd, self.pipe, self.resolved, self.sent);
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement<'_>, now: Instant) {
        let mut news = News::default();
        self.mark_acknowledged(ack, &mut news, now);
        self.find_losses(&mut news);
        if ack.options.iter().any(|option| option == DccpOption::SlowReceiver) {
            self.on_slow_receiver(now);
        }
        match news.congested {
            Some(latest) => self.on_congestion(latest),
            None if news.acked > 0 && self.may_grow(now) => self.grow(news.acked),
            None => {}
        }
        if news.buffer_drops > 0 {
            self.on_buffer_drops(news.buffer_drops);
        }
        if self.pipe == 0 {
            self.forget_all();
            self.deadline = None;
        } else if news.any {
            self.deadline = Some(self.rtt.deadline(now));
        }
        self.ack_ratio.on_ack(ack, self.cwnd, self.last_sent);
    }

    /// RFC 4341 §5, 3: nothing is in the network any more.
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

    /// RFC 4341 §6.2: at least once a window.
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

impl News {
    fn on_data(&mut self, seq: Seq, state: AckState, dropped: Option<DropCode>) {
        self.any = true;
        let is_congested = match dropped {
            Some(DropCode::RECEIVE_BUFFER) => {
                self.buffer_drops += 1;
                state == AckState::Marked
            }
            // RFC 4340 §11.7.2: codes 0 and 1 as if received, all others as if marked.
            None | Some(DropCode::PROTOCOL_CONSTRAINTS | DropCode::NOT_LISTENING) => {
                state == AckState::Marked
            }
            Some(_) => true,
        };
        if is_congested {
            self.congested = Some(self.congested.map_or(seq, |other| other.max(seq)));
        } else if dropped != Some(DropCode::RECEIVE_BUFFER) {
            self.acked += 1;
        }
    }
}

/// The Ack Ratio that the sender wants (RFC 4341 §6.1.2).
#[derive(Clone, Debug)]
struct AckRatio {
    current: u16,
    wanted: u16,
    least: u16,
    /// The window of data under way ends with this packet.
    window_end: Option<Seq>,
    has_lost: bool,
    clean_windows: u64,
}

impl AckRatio {
    /// RFC 4340 §11.3: a connection begins with 2; a configured one is negotiated at the beginning.
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
        // Constraint 2: at most half the window, rounded up; 2 is always right.
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

/// Keeps the three greatest, the greatest first.
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

/// RFC 4341 §5: "set to three, as is currently the case in TCP".
const NUMDUPACK: usize = 3;
/// Chosen: twice the 0.2 s by which a receiver may delay (RFC 4340 §11.3). RFC 4341 §5 needs no minimum
/// timeout.
const LEAST_VARIANCE: Duration = Duration::from_millis(400);
/// RFC 4340 §3.4.
const DEFAULT_RTT: Duration = Duration::from_millis(200);

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
