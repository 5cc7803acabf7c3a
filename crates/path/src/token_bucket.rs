//! A token bucket: one rate and one size (RFC 2697 §3 with one bucket, as Linux's act_police and sch_tbf).
//!
//! Tokens are bytes. They come at the rate, as long as the bucket is not full. A packet takes as many tokens
//! as it has bytes on the wire. The bucket is full at the beginning of the run.
//!
//! The level is exact. Its unit is 1e-9 bits, because a rate in bits a second times a time in nanoseconds is
//! a whole number of them.

use talkpath_units::{Bytes, Instant, Rate};

/// The configuration of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// How fast tokens come.
    pub rate: Rate,
    /// How many bytes of tokens the bucket holds.
    pub burst: Bytes,
}

/// A token bucket with its level.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// In bits a second. The same number is the rate in 1e-9 bits a nanosecond.
    rate: u128,
    /// The size of the bucket in 1e-9 bits.
    size: u128,
    /// The level in 1e-9 bits.
    level: u128,
    /// The time at which the bucket had this level.
    at: Instant,
}

impl Tokens {
    /// A full bucket.
    pub(crate) fn new(config: &TokenBucket) -> Self {
        let size = cost(config.burst);
        Self { rate: u128::from(config.rate.as_bps()), size, level: size, at: Instant::ZERO }
    }

    /// Takes the tokens of a packet of `bytes` at `now`. Returns false, and takes none, if they are not
    /// there.
    pub(crate) fn take(&mut self, bytes: Bytes, now: Instant) -> bool {
        self.fill(now);
        match self.level.checked_sub(cost(bytes)) {
            Some(level) => {
                self.level = level;
                true
            }
            None => false,
        }
    }

    /// Takes the tokens of a packet of `bytes` as soon as the bucket holds them, at `now` or later. Returns
    /// that time. If the bucket never holds enough tokens, because it is too small or its rate is 0, this
    /// takes none and returns [`Instant::MAX`].
    pub(crate) fn take_when_there(&mut self, bytes: Bytes, now: Instant) -> Instant {
        if self.take(bytes, now) {
            return now;
        }
        let missing = cost(bytes) - self.level;
        if cost(bytes) > self.size || self.rate == 0 {
            return Instant::MAX;
        }
        // Rounded up, because a nanosecond earlier the last token is still missing.
        let wait = u64::try_from(missing.div_ceil(self.rate)).unwrap_or(u64::MAX);
        let Some(ready) = now.as_nanos().checked_add(wait) else { return Instant::MAX };
        let ready = Instant::from_nanos(ready);
        self.take(bytes, ready);
        ready
    }

    /// Adds the tokens that have come by `now`.
    fn fill(&mut self, now: Instant) {
        if now > self.at {
            let come = self.rate * u128::from(now.since(self.at).as_nanos());
            self.level = self.size.min(self.level + come);
            self.at = now;
        }
    }
}

/// The tokens of a packet of `bytes`, in 1e-9 bits.
fn cost(bytes: Bytes) -> u128 {
    u128::from(bytes.get()) * 8 * 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(bps: u64, burst: u64) -> Tokens {
        Tokens::new(&TokenBucket { rate: Rate::from_bps(bps), burst: Bytes::new(burst) })
    }

    #[test]
    fn a_full_bucket_passes_its_burst_and_then_its_rate() {
        // 1 Mb/s is the rate of a packet of 1250 B each 10 ms.
        let mut tokens = tokens(1_000_000, 5000);
        let size = Bytes::new(1250);
        let passed: Vec<bool> = (0..20).map(|ms| tokens.take(size, Instant::from_millis(ms))).collect();
        // Four at once, and the tokens of the fifth are there at 10 ms.
        let expected: Vec<bool> = (0..20).map(|ms| ms < 4 || ms == 10).collect();
        assert_eq!(passed, expected);
    }

    #[test]
    fn tokens_that_do_not_fit_are_not_kept() {
        let mut tokens = tokens(8_000, 1000);
        assert!(tokens.take(Bytes::new(1000), Instant::ZERO));
        assert!(tokens.take(Bytes::new(1000), Instant::from_secs(3600)));
        assert!(!tokens.take(Bytes::new(1), Instant::from_secs(3600)));
    }

    #[test]
    fn a_packet_waits_until_its_last_token_is_there() {
        let mut tokens = tokens(3, 10);
        assert_eq!(tokens.take_when_there(Bytes::new(10), Instant::ZERO), Instant::ZERO);
        // 8 bits at 3 bit/s: 2.67 s, rounded up to the nanosecond.
        let ready = tokens.take_when_there(Bytes::new(1), Instant::ZERO);
        assert_eq!(ready, Instant::from_nanos(2_666_666_667));
        // What was rounded up stays in the bucket: three packets take 8 s.
        let ready = tokens.take_when_there(Bytes::new(1), ready);
        assert_eq!(tokens.take_when_there(Bytes::new(1), ready), Instant::from_secs(8));
    }

    #[test]
    fn a_packet_above_the_bucket_never_passes() {
        let mut tokens = tokens(1_000, 100);
        assert!(!tokens.take(Bytes::new(101), Instant::from_secs(9)));
        assert_eq!(tokens.take_when_there(Bytes::new(101), Instant::from_secs(9)), Instant::MAX);
        assert_eq!(tokens.take_when_there(Bytes::new(100), Instant::from_secs(9)), Instant::from_secs(9));
    }
}
