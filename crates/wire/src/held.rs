//! How long a sender holds unsent data back, and for which cause.
//!
//! ```text
//!             data waits for cwnd         Nagle holds the tail
//!   ──────────├──────────────────┤────────├────────┤──────────► time
//!   note(None)  note(Some(cwnd))  note(None) note(Some(nagle))
//! ```
//!
//! The kernel's TCP counts in the same manner (`tcp_chrono_start` in net/ipv4/tcp_output.c, which TCP_INFO
//! shows as `tcpi_rwnd_limited`). Begin to read with [`HoldClock::note`].

use talkpath_units::{Duration, Instant};

/// What holds the next data back although it waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldCause {
    /// The congestion window has no room.
    CongestionWindow,
    /// The far end's receive window has no room.
    ReceiverWindow,
    /// Nagle's algorithm waits for an acknowledgement (RFC 9293 §3.7.4).
    Nagle,
    /// The pause between two paced packets is not over, or a rate allows no packet yet.
    Pacing,
}

/// How long each cause has held data back since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldTimes {
    /// By [`HoldCause::CongestionWindow`].
    pub congestion_window: Duration,
    /// By [`HoldCause::ReceiverWindow`].
    pub receiver_window: Duration,
    /// By [`HoldCause::Nagle`].
    pub nagle: Duration,
    /// By [`HoldCause::Pacing`].
    pub pacing: Duration,
}

/// Adds up [`HeldTimes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldClock {
    held: Option<(HoldCause, Instant)>,
    times: HeldTimes,
}

impl HoldClock {
    /// Takes note that from `now` on `cause` holds data back. `None` says that nothing does, for example
    /// because no data waits.
    #[inline]
    pub fn note(&mut self, cause: Option<HoldCause>, now: Instant) {
        if self.held.map(|(held, _)| held) != cause {
            self.change(cause, now);
        }
    }

    #[inline(never)]
    fn change(&mut self, cause: Option<HoldCause>, now: Instant) {
        if let Some((held, since)) = self.held {
            let time = match held {
                HoldCause::CongestionWindow => &mut self.times.congestion_window,
                HoldCause::ReceiverWindow => &mut self.times.receiver_window,
                HoldCause::Nagle => &mut self.times.nagle,
                HoldCause::Pacing => &mut self.times.pacing,
            };
            *time = time.saturating_add(now.since(since));
        }
        self.held = cause.map(|cause| (cause, now));
    }

    /// Returns the times so far. A time that has not ended yet does not count.
    pub const fn times(&self) -> HeldTimes {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_the_time_from_its_first_note_to_the_next_cause() {
        let mut clock = HoldClock::default();
        let at = Instant::from_millis;
        clock.note(None, at(1));
        clock.note(Some(HoldCause::CongestionWindow), at(10));
        clock.note(Some(HoldCause::CongestionWindow), at(25));
        clock.note(Some(HoldCause::Nagle), at(40));
        clock.note(None, at(47));
        clock.note(Some(HoldCause::Pacing), at(50));
        let held = HeldTimes {
            congestion_window: Duration::from_millis(30),
            nagle: Duration::from_millis(7),
            ..HeldTimes::default()
        };
        assert_eq!(clock.times(), held, "pacing has not ended");
    }
}
