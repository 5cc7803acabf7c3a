//! What a congestion control that sets `cwnd` by itself is told (tcp_rate_gen and tcp_cong_control in Linux).
//!
//! Others pay for none of this: each call is behind [`Config::steers`](super::connection::Config).

use talkpath_units::{Duration, Instant};

use super::connection::Tcp;
use super::recovery::RecoveryState;
use super::scoreboard::News;
use super::send::{Acked, SentSegment};
use crate::cc::{CongestionControl, Departed, Feedback, Phase};

/// What was found out about an acknowledgement beside its news.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) rtt: Option<Duration>,
    /// Segments newly taken for lost.
    pub(super) losses: u64,
    pub(super) prior_in_flight: u64,
}

impl Tcp {
    /// The application writes now: whether it had kept the sender short (tcp_rate_check_app_limited).
    pub(super) fn note_app_limit(&mut self) {
        let in_flight = self.sender.flight_segments();
        let is_short = self.sender.unsent() < u64::from(self.sender.smss());
        if is_short && in_flight < self.controller.window().cwnd() && !self.sender.board.has_work() {
            self.controller.on_app_limited(in_flight);
        }
    }

    /// A segment leaves.
    pub(super) fn note_departure(&mut self, sent: &SentSegment, now: Instant) {
        let is_alone = !sent.is_again() && self.sender.outstanding_segments() == 1;
        self.controller.on_departure(Departed { now, end: sent.end, is_alone });
    }

    /// An acknowledgement was processed that may have carried SACK blocks.
    pub(super) fn inform(&mut self, news: &News, ack: u64, measured: Measured) {
        let delivered = news.delivered.segments;
        let is_small = news.delivered.bytes < u64::from(self.sender.smss());
        // Without a doubt about anything it is the far end's delay (FLAG_ACK_MAYBE_DELAYED).
        let is_ack_delayed = delivered == 1 && is_small && !news.sacked && !self.is_disordered();
        let newest = news.newest.map(|(_, end)| end);
        self.feed(delivered, newest, is_ack_delayed, ack, measured, news.now);
    }

    /// An acknowledgement of new data was processed on a connection without SACK.
    pub(super) fn inform_without_sack(&mut self, acked: &Acked, ack: u64, measured: Measured, now: Instant) {
        let is_small = acked.bytes < u64::from(self.sender.smss());
        let is_ack_delayed = acked.segments == 1 && is_small;
        if let Some(rtt) = measured.rtt {
            self.selective.rack.on_rtt(rtt, now);
        }
        self.feed(acked.segments, Some(ack), is_ack_delayed, ack, measured, now);
    }

    fn feed(
        &mut self,
        delivered: u64,
        newest: Option<u64>,
        is_ack_delayed: bool,
        ack: u64,
        measured: Measured,
        now: Instant,
    ) {
        self.controller.on_feedback(&Feedback {
            now,
            delivered,
            losses: measured.losses,
            newest,
            snd_una: ack,
            prior_in_flight: measured.prior_in_flight,
            in_flight: self.sender.flight_segments(),
            rtt: measured.rtt,
            is_ack_delayed,
            min_rtt: self.selective.rack.min_rtt(),
            srtt: self.rtt.srtt(),
            phase: match self.recovery.state() {
                RecoveryState::Open => Phase::Open,
                RecoveryState::Fast => Phase::Recovery,
                RecoveryState::Loss => Phase::Loss,
            },
            departs: self.pacing.departs(),
        });
    }
}
