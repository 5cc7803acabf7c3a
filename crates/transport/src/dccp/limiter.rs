//! A rate limit for answers that strangers can draw (RFC 4340 §7.5.4): at most eight Syncs or Resets a
//! second.

use talkpath_units::{Duration, Instant};

/// Counts answers in each second from the first.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerLimiter {
    since: Option<Instant>,
    count: u32,
}

impl AnswerLimiter {
    /// Whether one more may be sent; if so, it counts.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.since(since) >= PERIOD) {
            self.since = Some(now);
            self.count = 0;
        }
        self.count += 1;
        self.count <= MOST_ANSWERS
    }
}

const PERIOD: Duration = Duration::from_secs(1);
/// RFC 4340 §7.5.4: "not more than eight DCCP-Syncs per second".
const MOST_ANSWERS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_answers_a_second_are_the_most() {
        let mut limiter = AnswerLimiter::default();
        let admitted = |limiter: &mut AnswerLimiter, ms| {
            (0..100).filter(|_| limiter.admit(Instant::from_millis(ms))).count()
        };
        assert_eq!(admitted(&mut limiter, 500), 8);
        assert_eq!(admitted(&mut limiter, 1499), 0);
        assert_eq!(admitted(&mut limiter, 1500), 8);
    }
}
