//! The connection's timers: one deadline a kind, in a table of fixed size.

use talkpath_units::Instant;

/// Why a deadline was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Unacknowledged data, SYN or FIN (RFC 6298 §5).
    Retransmit,
    /// Data waits for a window with nothing in flight (RFC 9293 §3.8.6.1).
    Persist,
    /// A delayed acknowledgement (RFC 9293 §3.8.6.3).
    DelayedAck,
    /// The next paced segment may leave.
    Pacing,
}

/// When each timer fires; [`Instant::MAX`] where it does not run.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    deadlines: [Instant; KINDS.len()],
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { deadlines: [Instant::MAX; KINDS.len()] }
    }

    pub(crate) const fn set(&mut self, kind: TimerKind, deadline: Instant) {
        self.deadlines[kind as usize] = deadline;
    }

    pub(crate) const fn clear(&mut self, kind: TimerKind) {
        self.deadlines[kind as usize] = Instant::MAX;
    }

    pub(crate) fn clear_all(&mut self) {
        self.deadlines = [Instant::MAX; KINDS.len()];
    }

    pub(crate) fn deadline(&self, kind: TimerKind) -> Option<Instant> {
        let deadline = self.deadlines[kind as usize];
        (deadline != Instant::MAX).then_some(deadline)
    }

    pub(crate) fn is_running(&self, kind: TimerKind) -> bool {
        self.deadlines[kind as usize] != Instant::MAX
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
        let kind =
            KINDS.into_iter().find(|&kind| self.deadlines[kind as usize] <= now && self.is_running(kind))?;
        self.clear(kind);
        Some(kind)
    }
}

const KINDS: [TimerKind; 4] =
    [TimerKind::Retransmit, TimerKind::Persist, TimerKind::DelayedAck, TimerKind::Pacing];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expired_timer_is_taken_once() {
        let mut timers = Timers::new();
        timers.set(TimerKind::DelayedAck, Instant::from_millis(40));
        timers.set(TimerKind::Retransmit, Instant::from_millis(200));
        assert_eq!(timers.next(), Some(Instant::from_millis(40)));
        assert_eq!(timers.take_expired(Instant::from_millis(39)), None);
        assert_eq!(timers.take_expired(Instant::from_millis(40)), Some(TimerKind::DelayedAck));
        assert_eq!(timers.take_expired(Instant::from_millis(40)), None);
        assert_eq!(timers.next(), Some(Instant::from_millis(200)));
    }
}
