//! Probes of a closed window (RFC 9293 §3.8.6.1).

use talkpath_units::Instant;

use crate::tcp::rtt::RttEstimator;
use crate::tcp::timers::{TimerKind, TimerSlot, Timers};

/// The state of the persist timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    /// True if the time to the next probe begins anew with each acknowledgement that leaves the window shut
    /// (tcp_ack_probe). Otherwise it begins when a probe leaves (RFC 9293 §3.8.6.1).
    restarts: bool,
    /// The number of probes since the window closed.
    backoff: u32,
    /// A probe has to leave.
    due: bool,
}

impl Persist {
    pub(super) const fn new(restarts: bool) -> Self {
        Self { restarts, backoff: 0, due: false }
    }

    pub(super) const fn on_timeout(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.due = true;
    }

    #[inline]
    pub(super) fn is_active(&self, timers: &Timers) -> bool {
        self.due || self.backoff > 0 || timers.is_running(TimerSlot::Persist)
    }

    #[inline]
    pub(super) const fn take_due(&mut self) -> bool {
        core::mem::replace(&mut self.due, false)
    }

    /// An acknowledgement arrived with nothing in flight. If it opens the window, [`Self::update`] stops the
    /// timer.
    pub(super) fn on_ack(&self, rtt: &RttEstimator, timers: &mut Timers, now: Instant) {
        if self.restarts && timers.is_running(TimerSlot::Persist) {
            timers.set(TimerKind::Persist, rtt.persist_deadline(self.backoff, now));
        }
    }

    /// Everything that may leave has left. The timer runs while data waits for the window alone.
    #[inline]
    pub(super) fn update(&mut self, is_blocked: bool, rtt: &RttEstimator, timers: &mut Timers, now: Instant) {
        let runs = timers.is_running(TimerSlot::Persist);
        if is_blocked {
            if !runs {
                timers.set(TimerKind::Persist, rtt.persist_deadline(self.backoff, now));
            }
        } else if runs || self.backoff > 0 {
            timers.clear(TimerSlot::Persist);
            self.backoff = 0;
        }
    }
}
