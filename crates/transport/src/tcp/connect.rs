//! How a connection opens: what arriving segments do in LISTEN, SYN-SENT and SYN-RECEIVED (RFC 9293 §3.10.7),
//! and the SYN, SYN-ACK or RST that leaves. The state of the handshake is in `handshake`.

use talkpath_units::Instant;
use talkpath_wire::{Flags, Segment, SegmentOptions};

use super::core::Core;
use super::handshake::Control;
use super::send::MAX_SHIFT;

impl Core {
    /// Processes a segment in LISTEN (RFC 9293 §3.10.7.2): a SYN is answered, any other segment is reset.
    pub(super) fn on_segment_in_listen(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) || !segment.flags.contains(Flags::SYN) {
            self.handshake.request_reset(segment);
            return;
        }
        self.accept_syn(segment);
    }

    /// Processes a segment in SYN-SENT (RFC 9293 §3.10.7.3).
    pub(super) fn on_segment_in_syn_sent(&mut self, segment: &Segment, now: Instant) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && segment.ack != self.handshake.seq(1) {
            if !segment.flags.contains(Flags::RST) {
                self.handshake.request_reset(segment);
            }
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.abort();
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        // If the SYN acknowledges nothing, both ends opened at the same time.
        self.accept_syn(segment);
        if acknowledges {
            self.establish(segment, now);
            self.receiver.demand_acknowledgement();
        }
    }

    /// Processes a segment in SYN-RECEIVED: the handshake ends, or the SYN-ACK is sent again. Returns true if
    /// the segment has to be processed further.
    pub(super) fn on_segment_in_syn_received(&mut self, segment: &Segment, now: Instant) -> bool {
        if segment.flags.contains(Flags::RST) {
            // As in all later states, only the exact sequence number resets (RFC 5961 §3.2). Another RST in
            // the window is answered by a challenge ACK.
            let start = self.handshake.far_offset(segment.seq, self.receiver.rcv_nxt());
            if start == self.receiver.rcv_nxt() {
                self.abort();
            } else if !self.receiver.is_outside(start, 0) {
                let challenge = self.pure_ack(now);
                self.outbox.push(challenge);
            }
            return false;
        }
        if segment.flags.contains(Flags::ACK) && segment.ack == self.handshake.seq(1) {
            self.establish(segment, now);
            return true;
        }
        if segment.flags.contains(Flags::SYN) {
            self.ecn.on_syn_again(segment);
            self.handshake.request_syn_ack();
        }
        false
    }

    /// Takes the far end's SYN: its sequence number, window and options. Has a SYN-ACK leave.
    fn accept_syn(&mut self, syn: &Segment) {
        self.handshake.on_far_syn(syn);
        let shift = if self.handshake.offers_scaling() { syn.window_scale() } else { None };
        self.receiver.on_syn(shift.is_some());
        self.sender.on_far_syn(syn.window, shift.map_or(0, |shift| shift.min(MAX_SHIFT)));
        self.timestamps.on_syn(syn);
        self.ecn.on_far_syn(syn);
        // RFC 2018 §2.
        self.recovery.on_syn(self.handshake.offers_sack() && syn.sack_permitted());
        self.state.on_syn_received();
        self.handshake.request_syn_ack();
    }

    /// Completes the handshake, because our SYN is acknowledged. Data may flow.
    fn establish(&mut self, segment: &Segment, now: Instant) {
        self.state.on_established();
        self.handshake.cancel();
        self.timers.clear_all();
        let smss = self.handshake.smss(self.timestamps.option_size());
        self.scoreboard.on_established();
        self.sender.on_established(smss);
        self.receiver.on_established(smss, now);
        self.measure_handshake(segment, now);
        let initial = self.congestion.initial_window();
        self.congestion.begin(smss, self.handshake.initial_window(initial));
        let (srtt, min_rtt) = (self.rtt.srtt(), self.recovery.min_rtt());
        self.congestion.on_established(smss, srtt, min_rtt, now);
        self.sender.expand_buffer(initial.get(), self.handshake.mss());
    }

    /// Measures the round trip of the handshake. A SYN that was sent more than once gives no sample (RFC 6298
    /// §3). Linux then takes the sample from the echoed timestamp.
    fn measure_handshake(&mut self, segment: &Segment, now: Instant) {
        let sample = if let Some(sent_at) = self.handshake.sent_once_at() {
            Some(self.rtt.measure(sent_at, now))
        } else if self.recovery.is_linux() {
            self.timestamps.rtt_sample(segment, now)
        } else {
            None
        };
        match sample {
            Some(rtt) => {
                self.rtt.on_sample(rtt, 0, 1);
                self.recovery.on_handshake_rtt(rtt, now);
            }
            None => self.rtt.fall_back_after_syn_loss(),
        }
    }

    /// Returns the SYN, SYN-ACK or RST that has to leave before all other segments.
    pub(super) fn next_control(&mut self, now: Instant) -> Option<Segment> {
        Some(match self.handshake.take_pending()? {
            Control::Reset(segment) => *segment,
            Control::Syn => self.syn(Flags::SYN, now),
            Control::SynAck => {
                let mut segment = self.syn(Flags::SYN.with(Flags::ACK), now);
                segment.ack = self.handshake.ack_number(self.receiver.rcv_nxt());
                self.receiver.on_syn_ack_sent(&mut self.timers);
                segment
            }
        })
    }

    /// Makes a SYN, or a SYN-ACK if `flags` have ACK. A SYN-ACK carries an option only if the SYN offered it
    /// (RFC 7323 §2.2 and §3.2).
    fn syn(&mut self, flags: Flags, now: Instant) -> Segment {
        let is_answer = flags.contains(Flags::ACK);
        let ecn_flags = if is_answer {
            self.ecn.on_syn_ack_sent()
        } else {
            self.ecn.on_syn_sent(self.handshake.has_sent_syn())
        };
        let flags = flags.with(ecn_flags);
        self.scoreboard.on_syn_sent();
        self.handshake.on_syn_sent(now);
        self.arm_retransmission(now);
        let timestamps = self.timestamps.syn_option(is_answer, now);
        let scales = if is_answer { self.receiver.is_scaled() } else { self.handshake.offers_scaling() };
        let sack = if is_answer { self.recovery.has_sack() } else { self.handshake.offers_sack() };
        let options = SegmentOptions::default()
            .with_mss(self.handshake.mss() as u16)
            .with_window_scale(scales.then(|| self.receiver.window_shift()))
            .with_sack_permitted(sack)
            .with_timestamps(timestamps);
        let window = self.receiver.offer_on_syn();
        Segment { seq: self.handshake.seq(0), flags, window, options, ..Segment::default() }
    }
}
