//! The state of loss recovery.
//!
//! ```text
//!           third duplicate, or a segment is lost       all sent before the loss is acknowledged
//!   Open ──────────────────────────────────────► Fast ──────────────────────────────────────► Open
//!     │ RTO                                       │ RTO
//!     └──────────────► Loss ◄─────────────────────┘      the same, or the timeout was needless ► Open
//!                                                        a further loss ► Fast
//! ```

/// How losses are being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum RecoveryState {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery (RFC 5681 §3.2).
    Fast,
    /// After a timeout: what was sent before it is sent again under slow start.
    Loss,
}

/// The current recovery, or the last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    state: RecoveryState,
    /// SND.MAX when the last loss was noticed: the recovery ends when `recover` is acknowledged (RFC 6582
    /// §3.2).
    recover: u64,
    /// True if the first unacknowledged segment has to leave again, even if `cwnd` is full.
    first_retransmission_due: bool,
    /// SND.UNA when the retransmission timer last expired. `None` if it never expired, or if the last timeout
    /// was needless.
    timed_out_at: Option<u64>,
    timeouts: u64,
    fast_retransmits: u64,
}

impl Episode {
    pub(super) const fn new() -> Self {
        Self {
            state: RecoveryState::Open,
            recover: 0,
            first_retransmission_due: false,
            timed_out_at: None,
            timeouts: 0,
            fast_retransmits: 0,
        }
    }

    #[inline]
    pub(super) const fn state(&self) -> RecoveryState {
        self.state
    }

    /// SND.MAX when the last loss was noticed.
    #[inline]
    pub(super) const fn recover(&self) -> u64 {
        self.recover
    }

    /// True if `ack` acknowledges everything that was sent when the loss was noticed.
    #[inline]
    pub(super) const fn covers(&self, ack: u64) -> bool {
        ack >= self.recover
    }

    /// Enters fast recovery.
    pub(super) const fn enter_fast(&mut self, snd_max: u64) {
        self.state = RecoveryState::Fast;
        self.recover = snd_max;
    }

    /// Enters recovery from a timeout (RFC 6582 §3.2 step 4).
    pub(super) const fn enter_loss(&mut self, snd_max: u64) {
        self.state = RecoveryState::Loss;
        self.recover = snd_max;
    }

    pub(super) const fn leave(&mut self) {
        self.state = RecoveryState::Open;
    }

    pub(super) const fn request_first_retransmission(&mut self, due: bool) {
        self.first_retransmission_due = due;
    }

    #[inline]
    pub(super) const fn take_first_retransmission(&mut self) -> bool {
        core::mem::replace(&mut self.first_retransmission_due, false)
    }

    #[inline]
    pub(super) const fn wants_first_retransmission(&self) -> bool {
        self.first_retransmission_due
    }

    /// Takes note that the timer expired at `snd_una`. Returns false if it had expired at the same `snd_una`
    /// before.
    pub(super) fn note_timeout_at(&mut self, snd_una: u64) -> bool {
        self.timed_out_at.replace(snd_una) != Some(snd_una)
    }

    /// Forgets the last timeout, because it was needless.
    pub(super) const fn forget_timeout(&mut self) {
        self.timed_out_at = None;
    }

    pub(super) const fn count_timeout(&mut self) {
        self.timeouts += 1;
    }

    pub(super) const fn count_fast_retransmit(&mut self) {
        self.fast_retransmits += 1;
    }

    /// Returns the numbers of timeouts and of fast retransmits.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.timeouts, self.fast_retransmits)
    }
}
