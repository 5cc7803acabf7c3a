//! Whether the sender was data-limited over the whole interval that a feedback covers (RFC 5348 §8.2.1).

use talkpath_units::{Duration, Instant};

/// Two times at which the sender had sent all that it might, one for each of the coming two feedbacks.
#[derive(Clone, Debug, Default)]
pub(super) struct DataLimited {
    not_limited: [Option<Instant>; 2],
    /// t_new: when the data of the last feedback was sent.
    covered: Option<Instant>,
    /// t_next: when that feedback came.
    next: Option<Instant>,
}

impl DataLimited {
    /// A packet left, and for now it was the last one that might.
    pub(super) fn on_used_up(&mut self, now: Instant) {
        if self.not_limited[0] <= self.covered {
            self.not_limited[0] = Some(now);
        } else if self.not_limited[1] <= self.next {
            self.not_limited[1] = Some(now);
        }
    }

    /// A feedback on data up to what was sent at `sent` came: whether the interval that ends there was
    /// data-limited.
    pub(super) fn on_feedback(&mut self, sent: Instant, rtt: Duration, now: Instant) -> bool {
        let from = sent.as_nanos().checked_sub(rtt.as_nanos()).map(Instant::from_nanos);
        let within = |time: Option<Instant>| time.is_some() && from < time && time <= Some(sent);
        let limited = !self.not_limited.into_iter().any(within);
        self.covered = Some(sent);
        self.next = Some(now);
        if self.not_limited[0] <= self.covered && self.not_limited[1] > self.covered {
            self.not_limited[0] = self.not_limited[1];
        }
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn one_moment_at_the_full_rate_makes_an_interval_unlimited() {
        let mut limited = DataLimited::default();
        limited.on_used_up(at(1040));
        assert!(!limited.on_feedback(at(1100), RTT, at(1200)), "1040 lies in (1000, 1100]");
        assert!(limited.on_feedback(at(1200), RTT, at(1300)), "nothing in (1100, 1200]");
    }

    /// RFC 5348 §8.2.1: NotLimited1 is for (t_new, t_next], NotLimited2 for what comes after t_next.
    #[test]
    fn times_are_kept_for_the_two_feedbacks_to_come() {
        let mut limited = DataLimited::default();
        limited.on_used_up(at(1040));
        let _ = limited.on_feedback(at(1100), RTT, at(1200));
        limited.on_used_up(at(1150));
        limited.on_used_up(at(1160));
        limited.on_used_up(at(1250));
        assert!(!limited.on_feedback(at(1200), RTT, at(1300)), "1150");
        assert!(!limited.on_feedback(at(1300), RTT, at(1400)), "1250");
        assert!(limited.on_feedback(at(1400), RTT, at(1500)));
    }
}
