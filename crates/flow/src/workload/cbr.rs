//! Constant bit rate: message k is due at open + floor(k size / rate), to the nanosecond, without drift.
//!
//! `rate` counts payload. The interval's fraction of a nanosecond is carried from message to message, so the
//! due time of any message is within a nanosecond of the exact one.

use talkpath_units::{Bytes, Duration, Instant, Rate};
use talkpath_wire::Message;

use super::source::{Awaits, Workload};

/// A clock that `rate` and `size` set.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: Rate,
    size: Bytes,
    stop: Instant,
    /// Due time of the message `seq`; `None` before the connection opened.
    next: Option<Instant>,
    /// The part of a nanosecond that `next` was rounded down by, in units of 1 / `rate`.
    remainder: u128,
    seq: u64,
}

impl Cbr {
    /// Messages of `size` at the payload rate `rate`, none at or after `stop`.
    pub const fn new(rate: Rate, size: Bytes, stop: Instant) -> Self {
        Self { rate, size, stop, next: None, remainder: 0, seq: 0 }
    }

    /// The due time after `due`, and the remainder that goes with it.
    fn after(&self, due: Instant) -> (Instant, u128) {
        let bps = u128::from(self.rate.as_bps());
        if bps == 0 {
            return (Instant::MAX, 0);
        }
        let numerator = u128::from(self.size.get()) * BIT_NANOS_PER_BYTE_SECOND + self.remainder;
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
        let message = Message { seq: self.seq, size: self.size, due };
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

/// 8 bits a byte, 10^9 nanoseconds a second.
const BIT_NANOS_PER_BYTE_SECOND: u128 = 8 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(rate: Rate, size: u64, stop: Instant) -> Vec<Instant> {
        let mut cbr = Cbr::new(rate, Bytes::new(size), stop);
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

    #[test]
    fn a_rate_beyond_one_message_a_nanosecond_still_moves_on() {
        assert_eq!(dues(Rate::from_bps(u64::MAX), 1, Instant::from_nanos(5)).len(), 5);
        assert_eq!(dues(Rate::from_bps(0), 1, Instant::from_secs(5)).len(), 1);
    }
}
