//! Constant bit rate: message k is due at open + floor(k size / rate), to the nanosecond, without drift,
//! where `size` is the mean. Sizes that vary are drawn in the order of the messages, so that a run of the
//! same seed has the same ones over every transport.
//!
//! `rate` counts payload. The interval's fraction of a nanosecond is carried from message to message, so the
//! due time of any message is within a nanosecond of the exact one.

use talkpath_model::MessageSize;
use talkpath_units::{Bytes, Duration, Instant, Rate, Seed, Stream};
use talkpath_wire::Message;

use super::source::{Awaits, Workload};

/// A clock that `rate` and `size` set.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: Rate,
    size: MessageSize,
    /// Draws the sizes; `None` if all are alike.
    draws: Option<Box<Stream>>,
    stop: Instant,
    /// Due time of the message `seq`; `None` before the connection opened.
    next: Option<Instant>,
    /// The part of a nanosecond that `next` was rounded down by, in units of 1 / `rate`.
    remainder: u128,
    seq: u64,
}

impl Cbr {
    /// Messages of `size` at the mean payload rate `rate`, none at or after `stop`. Sizes that vary are drawn
    /// from `seed`.
    pub fn new(rate: Rate, size: MessageSize, seed: Seed, stop: Instant) -> Self {
        let draws = size.constant().is_none().then(|| Box::new(seed.stream("size")));
        Self { rate, size, draws, stop, next: None, remainder: 0, seq: 0 }
    }

    /// The size of the next message.
    fn next_size(&mut self) -> Bytes {
        let least = self.size.smallest();
        match &mut self.draws {
            Some(draws) => {
                let choices = self.size.largest().saturating_sub(least).get().saturating_add(1);
                least + Bytes::new(draws.below(choices))
            }
            None => least,
        }
    }

    /// The due time after `due`, and the remainder that goes with it.
    fn after(&self, due: Instant) -> (Instant, u128) {
        let bps = u128::from(self.rate.as_bps());
        if bps == 0 {
            return (Instant::MAX, 0);
        }
        let numerator = u128::from(self.size.twice_mean()) * BIT_NANOS_OF_HALF_A_BYTE + self.remainder;
        // Rates above one message a nanosecond would never let the clock move on.
        let step = u64::try_from(numerator / bps).unwrap_or(u64::MAX).max(1);
        (due.saturating_add(Duration::from_nanos(step)), numerator % bps)
    }
}

impl Workload for Cbr {
    #[inline]
    fn awaits(&self) -> Awaits {
        Awaits::Clock
    }

    fn open(&mut self, now: Instant) {
        self.next = Some(now);
    }

    fn poll_message(&mut self, _writable: Bytes, now: Instant) -> Option<Message> {
        let due = self.next.filter(|due| *due <= now && *due < self.stop)?;
        let message = Message { seq: self.seq, size: self.next_size(), due };
        let (next, remainder) = self.after(due);
        self.seq += 1;
        self.next = Some(next);
        self.remainder = remainder;
        Some(message)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next.filter(|due| *due < self.stop)
    }

    fn is_finished(&self) -> bool {
        self.next.is_some_and(|due| due >= self.stop)
    }
}

/// 8 bits a byte, 10^9 nanoseconds a second: half of it goes with twice the mean size.
const BIT_NANOS_OF_HALF_A_BYTE: u128 = 4 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(rate: Rate, size: u64, stop: Instant) -> Vec<Instant> {
        let mut cbr = Cbr::new(rate, Bytes::new(size).into(), Seed::new(1), stop);
        cbr.open(Instant::ZERO);
        let mut dues = Vec::new();
        while let Some(now) = cbr.poll_timeout() {
            dues.extend(cbr.poll_message(Bytes::ZERO, now).map(|message| message.due));
        }
        assert!(cbr.is_finished());
        dues
    }

    #[test]
    fn the_clock_does_not_drift_where_the_interval_is_no_whole_nanosecond() {
        // 100 B at 7 Mbps is 114,285.714... ns.
        let dues = dues(Rate::from_bps(7_000_000), 100, Instant::from_secs(10));
        assert_eq!(dues.len(), 87_500);
        for (k, due) in dues.iter().enumerate() {
            assert_eq!(u128::from(due.as_nanos()), k as u128 * 100 * 8 * 1_000_000_000 / 7_000_000);
        }
    }

    /// 100 to 300 B at 160 kb/s: a message each 10 ms.
    #[test]
    fn drawn_sizes_lie_between_their_bounds_with_their_mean_on_an_even_clock_and_repeat_with_the_seed() {
        let size = MessageSize::Uniform { min: Bytes::new(100), max: Bytes::new(300) };
        let messages = |seed| {
            let mut cbr = Cbr::new(Rate::from_bps(160_000), size, Seed::new(seed), Instant::from_secs(100));
            cbr.open(Instant::ZERO);
            let end = Instant::from_secs(100);
            core::iter::from_fn(|| cbr.poll_message(Bytes::ZERO, end)).collect::<Vec<_>>()
        };
        let all = messages(1);
        assert!((0..).zip(&all).all(|(k, message)| message.due == Instant::from_millis(10 * k)));
        let sizes: Vec<u64> = all.iter().map(|message| message.size.get()).collect();
        assert_eq!((all.len(), sizes.iter().min(), sizes.iter().max()), (10_000, Some(&100), Some(&300)));
        // The standard deviation of one is 58.0 B; four standard errors.
        let mean = sizes.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 200.0).abs() < 2.32, "{mean}");
        assert_eq!(messages(1), all);
        assert_ne!(messages(2), all);
    }

    #[test]
    fn a_rate_beyond_one_message_a_nanosecond_still_moves_on() {
        assert_eq!(dues(Rate::from_bps(u64::MAX), 1, Instant::from_nanos(5)).len(), 5);
        assert_eq!(dues(Rate::from_bps(0), 1, Instant::from_secs(5)).len(), 1);
    }
}
