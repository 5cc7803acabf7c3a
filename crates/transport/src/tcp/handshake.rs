//! Opening a connection: SYN, SYN-ACK, and what their options agree on (RFC 9293 §3.5, RFC 7323 §2 and §3).

use talkpath_units::{Duration, Instant, Packets};

use super::connection::{Control, State, TIMESTAMP_TICK, Tcp, timestamp};
use super::window::MAX_SHIFT;
use crate::cc::{CongestionControl, Outset};
use crate::{Flags, Segment, Stack};

impl Tcp {
    /// LISTEN: a SYN is answered, anything else reset.
    pub(super) fn on_segment_in_listen(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) || !segment.flags.contains(Flags::SYN) {
            self.reset(segment);
            return;
        }
        self.accept_syn(segment);
        self.state = State::SynReceived;
        self.control = Some(Control::SynAck);
    }

    /// SYN-SENT: RFC 9293 §3.10.7.3.
    pub(super) fn on_segment_in_syn_sent(&mut self, segment: &Segment, now: Instant) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && segment.ack != self.iss.wrapping_add(1) {
            if !segment.flags.contains(Flags::RST) {
                self.reset(segment);
            }
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.shut();
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.accept_syn(segment);
        if acknowledges {
            self.establish(segment, now);
            self.acks.demand();
        } else {
            // Both ends opened at once.
            self.state = State::SynReceived;
            self.control = Some(Control::SynAck);
        }
    }

    /// SYN-RECEIVED: the handshake ends, or the SYN-ACK was lost. Returns whether the segment is to be processed
    /// further.
    pub(super) fn on_segment_in_syn_received(&mut self, segment: &Segment, now: Instant) -> bool {
        if segment.flags.contains(Flags::RST) {
            self.shut();
            return false;
        }
        if segment.flags.contains(Flags::ACK) && segment.ack == self.iss.wrapping_add(1) {
            self.establish(segment, now);
            return true;
        }
        if segment.flags.contains(Flags::SYN) {
            self.control = Some(Control::SynAck);
        }
        false
    }

    /// Takes the far end's SYN: its sequence number, window and options.
    fn accept_syn(&mut self, segment: &Segment) {
        self.irs = segment.seq;
        self.receiver.on_syn();
        let shift = if self.config.timestamps { segment.window_scale() } else { None };
        if shift.is_some() {
            self.receiver.window.enable_scaling();
        }
        self.sender.window.start(segment.window, 0, 1, shift.map_or(0, |shift| shift.min(MAX_SHIFT)));
        self.timestamps = self.config.timestamps && segment.timestamps().is_some();
        self.ts_recent = segment.timestamps().map_or(0, |(value, _)| value);
        // RFC 2018 §2.
        self.selective.enabled = self.config.sack && segment.sack_permitted();
        self.far_mss = segment.mss().map_or(DEFAULT_MSS, u32::from);
    }

    /// Our SYN is acknowledged: data may flow.
    fn establish(&mut self, segment: &Segment, now: Instant) {
        self.state = State::Established;
        self.control = None;
        self.timers.clear_all();
        // RFC 6691 §2: the MSS does not count options, the payload has to make room for them.
        let options = if self.timestamps { TIMESTAMPS_SIZE } else { 0 };
        let smss = self.config.mss.min(self.far_mss).saturating_sub(options).max(1);
        self.sender.on_established(smss);
        self.acks.on_established(smss, self.receiver.window.full(), now);
        self.receiver.window.tuning.on_established(smss, now);
        self.measure_handshake(segment, now);
        self.controller = self.config.controller(smss, self.initial_window());
        if self.config.steers {
            let min_rtt = Some(self.selective.rack.min_rtt()).filter(|rtt| !rtt.is_zero());
            self.controller.begin(Outset { now, smss, srtt: self.rtt.srtt(), min_rtt });
        }
        self.buffer.expand(self.config.initial_window.get(), self.config.mss);
    }

    /// RFC 5681 §3.1: one segment after a lost SYN or SYN-ACK. Linux forgives the first (tcp_init_transfer).
    fn initial_window(&self) -> Packets {
        let forgiven = if self.config.stack == Stack::Linux { 2 } else { 1 };
        if self.syn_transmissions > forgiven { Packets::new(1) } else { self.config.initial_window }
    }

    fn measure_handshake(&mut self, segment: &Segment, now: Instant) {
        let sample = if self.syn_transmissions <= 1 {
            Some(self.rtt.measure(self.syn_sent_at, now))
        } else if self.config.stack == Stack::Linux {
            self.timestamp_sample(segment, now)
        } else {
            None
        };
        match sample {
            Some(rtt) => {
                self.rtt.on_sample(rtt, 0, 1);
                self.selective.rack.on_rtt(rtt, now);
            }
            None => self.rtt.fall_back_after_syn_loss(),
        }
    }

    /// The round trip that an echoed timestamp tells of (RFC 7323 §4.1); at least one tick of its clock.
    pub(super) fn timestamp_sample(&self, segment: &Segment, now: Instant) -> Option<Duration> {
        let (_, echo) = segment.timestamps().filter(|_| self.timestamps)?;
        let ticks = timestamp(now).wrapping_sub(echo);
        // An echo from the future is none of ours.
        (ticks < u32::MAX / 2).then(|| TIMESTAMP_TICK.saturating_mul(u64::from(ticks.max(1))))
    }
}

/// RFC 9293 §3.7.1: what a SYN without the option means.
const DEFAULT_MSS: u32 = 536;
/// Timestamps and their padding (RFC 7323 appendix A).
const TIMESTAMPS_SIZE: u32 = 12;
