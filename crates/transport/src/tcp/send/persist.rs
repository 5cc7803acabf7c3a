//! Probes of a closed window (RFC 9293 §3.8.6.1).
//!
//! The persist timer runs while data waits for the far end's window and nothing is in flight. Each time it
//! expires, a probe leaves. The first interval is an RTO, and each further interval is twice as long
//! ([`RttEstimator::persist_deadline`]).

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
    /// True if a probe has to leave.
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

    /// Restarts the timer, under Linux, after an acknowledgement that arrived with nothing in flight. If the
    /// acknowledgement opens the window, [`Self::update`] stops the timer later.
    pub(super) fn on_ack(&self, rtt: &RttEstimator, timers: &mut Timers, now: Instant) {
        if self.restarts && timers.is_running(TimerSlot::Persist) {
            timers.set(TimerKind::Persist, rtt.persist_deadline(self.backoff, now));
        }
    }

    /// Starts the timer if the far end's window blocks all data (`is_blocked`), and otherwise stops it. The
    /// caller has sent everything that may leave.
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
