//! The connection's timers: when each one expires, and which ones share a deadline.
//!
//! Retransmission, loss probe and reordering share one deadline, as in Linux (icsk_pending). At most one of
//! the three runs, and setting one stops the one that ran. A retransmission timer that was stopped in this
//! way comes back: when a loss probe or the reordering timer expires, the retransmission timer is set again
//! (Recovery::restart_retransmission).
//!
//! Only the deadlines are here. This table names the code that sets each timer, and the event that stops it:
//!
//! | timer | set when | by | stopped when |
//! | --- | --- | --- | --- |
//! | retransmission | data leaves and no loss timer runs | `Core::transmit_data` | all is acknowledged |
//! | | new data is acknowledged | `Recovery::restart_retransmission`, `recovery/reno.rs` | |
//! | loss probe | new data leaves, or is acknowledged | `Recovery::arm_loss_timer` | all is acknowledged |
//! | reordering | an overtaken segment is not late yet | `Recovery::mark_by_time` | all is acknowledged |
//! | persist | the far end's window is closed, or stays so | `send/persist.rs` | the window opens |
//! | delayed ACK | data arrives | `receive/ack_policy.rs` | any ACK leaves |
//! | pacing | the next segment has to pause | `Core::pause` (`output.rs`) | it expires |

use talkpath_units::Instant;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Unacknowledged data, a SYN or a FIN is sent again (RFC 6298 §5).
    Retransmission,
    /// A tail loss probe leaves (RFC 8985 §7.2).
    LossProbe,
    /// The reordering window of a segment is over: the segment counts as lost (RFC 8985 §6.2 step 5).
    Reordering,
    /// A probe of the far end's closed window leaves (RFC 9293 §3.8.6.1).
    Persist,
    /// A delayed acknowledgement leaves (RFC 9293 §3.8.6.3).
    DelayedAck,
    /// The next paced segment may leave.
    Pacing,
}

/// A place for one deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerSlot {
    /// Retransmission, loss probe or reordering, whichever was set last.
    Loss,
    Persist,
    DelayedAck,
    Pacing,
}

/// The deadline of each slot.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    /// In the order of [`TimerSlot`]. [`Instant::MAX`] if no timer of the slot runs, so that the earliest
    /// deadline is the minimum.
    deadlines: [Instant; 4],
    /// The timer in [`TimerSlot::Loss`]. The name is kept after that timer has expired: the retransmission
    /// timer is set next, and its deadline depends on which timer expired.
    loss: TimerKind,
}

impl TimerKind {
    /// The slot that holds this timer's deadline.
    const fn slot(self) -> TimerSlot {
        match self {
            Self::Retransmission | Self::LossProbe | Self::Reordering => TimerSlot::Loss,
            Self::Persist => TimerSlot::Persist,
            Self::DelayedAck => TimerSlot::DelayedAck,
            Self::Pacing => TimerSlot::Pacing,
        }
    }
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { deadlines: [Instant::MAX; 4], loss: TimerKind::Retransmission }
    }

    /// Starts a timer in its slot, in place of the timer that ran there.
    #[inline]
    pub(crate) const fn set(&mut self, kind: TimerKind, deadline: Instant) {
        self.deadlines[kind.slot() as usize] = deadline;
        if matches!(kind.slot(), TimerSlot::Loss) {
            self.loss = kind;
        }
    }

    /// Stops the timer of a slot. For [`TimerSlot::Loss`] that is whichever of the three runs.
    #[inline]
    pub(crate) const fn clear(&mut self, slot: TimerSlot) {
        self.deadlines[slot as usize] = Instant::MAX;
        if matches!(slot, TimerSlot::Loss) {
            self.loss = TimerKind::Retransmission;
        }
    }

    pub(crate) const fn clear_all(&mut self) {
        *self = Self::new();
    }

    /// The deadline of a slot. `None` if no timer runs there.
    pub(crate) fn deadline(&self, slot: TimerSlot) -> Option<Instant> {
        let deadline = self.deadlines[slot as usize];
        (deadline != Instant::MAX).then_some(deadline)
    }

    /// True if a timer of the slot runs.
    #[inline]
    pub(crate) fn is_running(&self, slot: TimerSlot) -> bool {
        self.deadlines[slot as usize] != Instant::MAX
    }

    /// The timer in [`TimerSlot::Loss`]: the one that runs, or else the one that expired last. After
    /// [`Timers::clear`] it is the retransmission timer.
    #[inline]
    pub(crate) const fn loss_timer(&self) -> TimerKind {
        self.loss
    }

    /// The earliest deadline. `None` if no timer runs.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        let [loss, persist, delayed_ack, pacing] = self.deadlines;
        let next = loss.min(persist).min(delayed_ack.min(pacing));
        (next != Instant::MAX).then_some(next)
    }

    /// Stops a timer whose deadline has come, and returns it. If several have expired, the first slot's timer
    /// is returned first.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Option<TimerKind> {
        // In the order of the slots.
        let kinds = [self.loss, TimerKind::Persist, TimerKind::DelayedAck, TimerKind::Pacing];
        let expired = |&deadline: &Instant| deadline != Instant::MAX && deadline <= now;
        let slot = self.deadlines.iter().position(expired)?;
        self.deadlines[slot] = Instant::MAX;
        Some(kinds[slot])
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

    /// Linux: icsk_pending.
    #[test]
    fn a_probe_takes_the_place_of_the_retransmission_timer() {
        let mut timers = Timers::new();
        timers.set(TimerKind::Retransmission, Instant::from_millis(200));
        timers.set(TimerKind::LossProbe, Instant::from_millis(80));
        assert_eq!(timers.take_expired(Instant::from_millis(300)), Some(TimerKind::LossProbe));
        assert_eq!(timers.next(), None);
    }

    /// Stopping a slot stops the timer that runs there, whichever it is.
    #[test]
    fn a_stopped_slot_forgets_which_loss_timer_ran() {
        let mut timers = Timers::new();
        timers.set(TimerKind::Reordering, Instant::from_millis(80));
        timers.set(TimerKind::Persist, Instant::from_millis(90));
        timers.clear(TimerSlot::Loss);
        assert!(!timers.is_running(TimerSlot::Loss) && timers.is_running(TimerSlot::Persist));
        assert_eq!(timers.loss_timer(), TimerKind::Retransmission);
    }
}
