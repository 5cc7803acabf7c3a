//! Loss recovery: duplicate acknowledgements, fast recovery, and the state after a timeout.
//!
//! ```text
//!           third duplicate ACK                     ACK ends it (controller's say)
//!   Open ───────────────────────► Fast {recover} ────────────────────► Open
//!     │ RTO                          │ RTO
//!     └───────────► Loss {recover} ◄─┘            ACK of `recover` ──► Open
//!                                                 third duplicate ACK, under Reno ──► Fast
//! ```
//!
//! With SACK the states are the same and `super::selective` moves between them.

/// How losses are being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryState {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery (RFC 5681 §3.2).
    Fast,
    /// After a timeout: everything up to `recover` is sent again under slow start.
    Loss,
}

/// The state of loss recovery at one sender.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    state: RecoveryState,
    /// One past what had been sent when the last loss was noticed (RFC 6582 §3.2).
    recover: u64,
    duplicate_acks: u32,
    /// Sent by limited transmit since the first duplicate, in the window's unit.
    limited: u64,
    /// Whether a partial acknowledgement has come in this fast recovery.
    partial_seen: bool,
}

/// What a duplicate acknowledgement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DuplicateAck {
    /// Count on: reordering, perhaps.
    Noted,
    /// The third: fast retransmit.
    Third,
    /// Fast recovery goes on: one more segment has left the network.
    InRecovery,
}

impl Recovery {
    pub(crate) const fn new() -> Self {
        Self { state: RecoveryState::Open, recover: 0, duplicate_acks: 0, limited: 0, partial_seen: false }
    }

    pub(crate) const fn state(&self) -> RecoveryState {
        self.state
    }

    /// Segments beyond `cwnd` that limited transmit allows (RFC 3042 §2).
    pub(crate) fn limited_transmit(&self) -> u64 {
        match (self.state, self.duplicate_acks) {
            (RecoveryState::Open, count @ (1 | 2)) => u64::from(count),
            _ => 0,
        }
    }

    /// Limited transmit let `amount` go.
    pub(crate) const fn on_limited_transmit(&mut self, amount: u64) {
        self.limited += amount;
    }

    /// What limited transmit sent, which does not count towards `ssthresh` (RFC 5681 §3.2 step 2).
    pub(crate) const fn limited(&self) -> u64 {
        self.limited
    }

    /// A duplicate acknowledgement of `snd_una`. `may_recover_again` is the controller's word on losses that the last
    /// recovery covered, or a timeout (RFC 6582 §3.2 step 1 says no). RFC 5681 forbids it nowhere, and 4.3BSD-Reno did so: what
    /// goes back after a timeout and had arrived returns as duplicates, and halves once more.
    pub(crate) fn on_duplicate_ack(&mut self, snd_una: u64, may_recover_again: bool) -> DuplicateAck {
        match self.state {
            RecoveryState::Fast => DuplicateAck::InRecovery,
            RecoveryState::Loss if !may_recover_again => DuplicateAck::Noted,
            RecoveryState::Loss | RecoveryState::Open => {
                self.duplicate_acks = self.duplicate_acks.saturating_add(1);
                let covered = snd_una <= self.recover && !may_recover_again;
                if self.duplicate_acks == DUPLICATE_THRESHOLD && !covered {
                    DuplicateAck::Third
                } else {
                    DuplicateAck::Noted
                }
            }
        }
    }

    /// Fast recovery begins, with everything below `snd_max` sent.
    pub(crate) const fn enter_fast(&mut self, snd_max: u64) {
        self.state = RecoveryState::Fast;
        self.recover = snd_max;
        self.limited = 0;
        self.partial_seen = false;
    }

    /// The retransmission timer fired (RFC 6582 §3.2 step 4).
    pub(crate) const fn enter_loss(&mut self, snd_max: u64) {
        self.state = RecoveryState::Loss;
        self.recover = snd_max;
        self.duplicate_acks = 0;
        self.limited = 0;
    }

    /// The third duplicate went back as a timeout does (Tahoe). The count goes on, so that further duplicates of the same segment do not
    /// go back again (tcp_input compares for equality).
    pub(crate) const fn enter_loss_by_duplicates(&mut self, snd_max: u64) {
        self.enter_loss(snd_max);
        self.duplicate_acks = DUPLICATE_THRESHOLD;
    }

    /// Fast recovery is over.
    pub(crate) const fn leave(&mut self) {
        self.state = RecoveryState::Open;
        self.duplicate_acks = 0;
    }

    /// New data was acknowledged outside fast recovery.
    pub(crate) fn on_new_ack(&mut self, ack: u64) {
        self.duplicate_acks = 0;
        self.limited = 0;
        if self.state == RecoveryState::Loss && self.covers(ack) {
            self.state = RecoveryState::Open;
        }
    }

    /// One past what had been sent when the last loss was noticed.
    pub(crate) const fn recover(&self) -> u64 {
        self.recover
    }

    /// Whether `ack` acknowledges all that was sent when the loss was noticed.
    pub(crate) const fn covers(&self, ack: u64) -> bool {
        ack >= self.recover
    }

    /// A partial acknowledgement: whether it is this recovery's first.
    pub(crate) const fn is_first_partial(&mut self) -> bool {
        !core::mem::replace(&mut self.partial_seen, true)
    }
}

/// RFC 5681 §3.2.
const DUPLICATE_THRESHOLD: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_duplicate_begins_recovery_once() {
        let mut recovery = Recovery::new();
        let answers: Vec<_> = (0..4).map(|_| recovery.on_duplicate_ack(1, false)).collect();
        assert_eq!(
            answers,
            [DuplicateAck::Noted, DuplicateAck::Noted, DuplicateAck::Third, DuplicateAck::Noted]
        );
    }

    /// RFC 6582 §3.2 step 1.
    #[test]
    fn what_a_timeout_covered_begins_no_fast_recovery() {
        let mut recovery = Recovery::new();
        recovery.enter_loss(5001);
        recovery.on_new_ack(5001);
        assert_eq!(recovery.state(), RecoveryState::Open);
        for _ in 0..3 {
            assert_eq!(recovery.on_duplicate_ack(5001, false), DuplicateAck::Noted);
        }
        recovery.on_new_ack(5002);
        for _ in 0..2 {
            recovery.on_duplicate_ack(5002, false);
        }
        assert_eq!(recovery.on_duplicate_ack(5002, false), DuplicateAck::Third);
    }

    /// RFC 5681 §3.2, without RFC 6582 §3.2 step 1.
    #[test]
    fn reno_recovers_again_after_a_timeout() {
        let mut recovery = Recovery::new();
        recovery.enter_loss(5001);
        let answers: Vec<_> = (0..3).map(|_| recovery.on_duplicate_ack(1, true)).collect();
        assert_eq!(answers, [DuplicateAck::Noted, DuplicateAck::Noted, DuplicateAck::Third]);
    }

    /// tcp_input of 4.3BSD-Tahoe.
    #[test]
    fn tahoe_goes_back_once_for_a_run_of_duplicates() {
        let mut recovery = Recovery::new();
        for _ in 0..3 {
            recovery.on_duplicate_ack(1, true);
        }
        recovery.enter_loss_by_duplicates(5001);
        for _ in 0..6 {
            assert_eq!(recovery.on_duplicate_ack(1, true), DuplicateAck::Noted);
        }
    }

    /// RFC 3042 §2.
    #[test]
    fn limited_transmit_grants_two_segments() {
        let mut recovery = Recovery::new();
        let grants: Vec<_> = (0..3)
            .map(|_| {
                recovery.on_duplicate_ack(1, false);
                recovery.limited_transmit()
            })
            .collect();
        assert_eq!(grants, [1, 2, 0]);
    }
}
