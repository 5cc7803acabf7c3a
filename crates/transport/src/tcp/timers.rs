//! The connection's timers.
//!
//! Retransmission, loss probe and reordering share one deadline, as in Linux (icsk_pending): setting one
//! replaces the others.
//!
//! This file keeps the deadlines. Each is set by the room that waits:
//!
//! ```text
//!  RTO            data leaves: Core::arm_retransmission (core.rs)
//!                 an acknowledgement comes: Recovery::arm (recovery/probe.rs), without SACK recovery/reno.rs
//!  delayed ACK    receive/ack_policy.rs
//! ```

use talkpath_units::Instant;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Unacknowledged data, SYN or FIN (RFC 6298 §5).
    Retransmission,
    /// A tail loss probe (RFC 8985 §7.2).
    LossProbe,
    /// A segment that is late once the reordering window has passed (RFC 8985 §6.2 step 5).
    Reordering,
    /// Data waits for a window with nothing in flight (RFC 9293 §3.8.6.1).
    Persist,
    /// A delayed acknowledgement (RFC 9293 §3.8.6.3).
    DelayedAck,
    /// The next paced segment may leave.
    Pacing,
}

/// When each timer expires. [`Instant::MAX`] if it does not run.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    deadlines: [Instant; SLOTS],
    /// What the shared deadline is, or was last, for.
    loss: TimerKind,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { deadlines: [Instant::MAX; SLOTS], loss: TimerKind::Retransmission }
    }

    #[inline]
    pub(crate) const fn set(&mut self, kind: TimerKind, deadline: Instant) {
        self.deadlines[slot(kind)] = deadline;
        if slot(kind) == LOSS {
            self.loss = kind;
        }
    }

    /// Stops a timer, and what shares its deadline.
    #[inline]
    pub(crate) const fn clear(&mut self, kind: TimerKind) {
        self.deadlines[slot(kind)] = Instant::MAX;
        if slot(kind) == LOSS {
            self.loss = TimerKind::Retransmission;
        }
    }

    pub(crate) const fn clear_all(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn deadline(&self, kind: TimerKind) -> Option<Instant> {
        let deadline = self.deadlines[slot(kind)];
        (deadline != Instant::MAX).then_some(deadline)
    }

    /// True if the timer, or one that shares its deadline, runs.
    #[inline]
    pub(crate) fn is_running(&self, kind: TimerKind) -> bool {
        self.deadlines[slot(kind)] != Instant::MAX
    }

    /// Which of the three that share a deadline was set last.
    #[inline]
    pub(crate) const fn loss_timer(&self) -> TimerKind {
        self.loss
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        let [a, b, c, d] = self.deadlines;
        let next = a.min(b).min(c.min(d));
        (next != Instant::MAX).then_some(next)
    }

    /// Stops and returns a timer whose deadline has come, in the order of [`TimerKind`].
    pub(crate) fn take_expired(&mut self, now: Instant) -> Option<TimerKind> {
        let kinds = [self.loss, TimerKind::Persist, TimerKind::DelayedAck, TimerKind::Pacing];
        let kind =
            kinds.into_iter().find(|&kind| self.is_running(kind) && self.deadlines[slot(kind)] <= now)?;
        self.deadlines[slot(kind)] = Instant::MAX;
        Some(kind)
    }
}

const SLOTS: usize = 4;
/// The shared deadline's.
const LOSS: usize = 0;

const fn slot(kind: TimerKind) -> usize {
    match kind {
        TimerKind::Retransmission | TimerKind::LossProbe | TimerKind::Reordering => LOSS,
        TimerKind::Persist => 1,
        TimerKind::DelayedAck => 2,
        TimerKind::Pacing => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expired_timer_is_taken_once() {
        let mut timers = Timers::new();
        timers.set(TimerKind::DelayedAck, Instant::from_millis(40));
        timers.set(TimerKind::Retransmission, Instant::from_millis(200));
        assert_eq!(timers.next(), Some(Instant::from_millis(40)));
        assert_eq!(timers.take_expired(Instant::from_millis(39)), None);
        assert_eq!(timers.take_expired(Instant::from_millis(40)), Some(TimerKind::DelayedAck));
        assert_eq!(timers.take_expired(Instant::from_millis(40)), None);
        assert_eq!(timers.next(), Some(Instant::from_millis(200)));
    }

    /// icsk_pending.
    #[test]
    fn a_probe_takes_the_place_of_the_retransmission_timer() {
        let mut timers = Timers::new();
        timers.set(TimerKind::Retransmission, Instant::from_millis(200));
        timers.set(TimerKind::LossProbe, Instant::from_millis(80));
        assert_eq!(timers.take_expired(Instant::from_millis(300)), Some(TimerKind::LossProbe));
        assert_eq!(timers.next(), None);
    }
}
