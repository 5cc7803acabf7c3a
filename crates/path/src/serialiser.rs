//! The serialiser: puts one packet after the other on the wire, bit by bit, without drifting.
//!
//! Service ends are exact rationals; what is told is the exact end **rounded up** to the nanosecond, because a packet
//! is not out before its last bit is. The fraction that rounding hides is carried into the next service of the same
//! busy period: the n-th packet of a period that began at t₀ ends at ⌈t₀ + total bits / rate⌉ for every n. Arrivals
//! fall on whole nanoseconds, so "busy at the arrival" is the same question for the exact end and for the rounded one,
//! and a busy period that begins at an arrival begins with fraction zero.

use talkpath_units::{Bytes, Instant, Rate};

use crate::config::RateModel;
use crate::rate_trace::TraceClock;

/// One packet at a time, in order.
#[derive(Debug)]
pub(crate) struct Serialiser {
    /// When the last accepted packet's service ends, rounded up.
    free_at: Instant,
    model: Model,
}

/// When one packet is in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// Its first bit leaves.
    pub(crate) start: Instant,
    /// Its last bit has left.
    pub(crate) finish: Instant,
}

#[derive(Debug)]
enum Model {
    Unlimited,
    Fixed(FixedRate),
    Trace(TraceClock),
}

/// A fixed rate and what rounding hid of the end of the last service.
#[derive(Debug)]
struct FixedRate {
    /// Bits per second.
    rate: Rate,
    /// The fraction of the exact end, of which `free_at` is the next whole nanosecond.
    fraction: u64,
    /// The last packet's size and service time: traffic comes in runs of one size, and a division is slow.
    last: (Bytes, Exact),
}

/// Nanoseconds as a mixed number: `whole` + `fraction` / rate, with `fraction` < rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exact {
    whole: u64,
    fraction: u64,
}

impl Serialiser {
    /// An idle serialiser.
    pub(crate) fn new(model: &RateModel) -> Self {
        let model = match model {
            RateModel::Unlimited => Model::Unlimited,
            RateModel::Fixed(rate) => Model::Fixed(FixedRate::new(*rate)),
            RateModel::Trace(trace) => Model::Trace(TraceClock::new(trace.clone())),
        };
        Self { free_at: Instant::ZERO, model }
    }

    /// When all accepted packets are out; idle from then on. [`Instant::MAX`] is never.
    #[inline]
    pub(crate) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Serves a packet of `size` that came at `now`, after all that came before.
    #[inline]
    pub(crate) fn serve(&mut self, size: Bytes, now: Instant) -> Service {
        let start = now.max(self.free_at);
        self.free_at = match &mut self.model {
            Model::Unlimited => start,
            Model::Fixed(fixed) => fixed.serve(size, now, self.free_at),
            Model::Trace(clock) => start.max(clock.serve(size, now)),
        };
        Service { start, finish: self.free_at }
    }
}

/// Nanoseconds in a second, times bits in a byte.
const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

impl FixedRate {
    fn new(rate: Rate) -> Self {
        Self { rate, fraction: 0, last: (Bytes::ZERO, service_time(Bytes::ZERO, rate)) }
    }

    /// The end of service, rounded up; `free_at` is that of the service before.
    #[inline]
    fn serve(&mut self, size: Bytes, now: Instant, free_at: Instant) -> Instant {
        if size != self.last.0 {
            self.last = (size, service_time(size, self.rate));
        }
        let (begin, fraction) = if free_at <= now { (now, 0) } else { (free_at, self.fraction) };
        let (begin, service) = (begin.as_nanos(), self.last.1);
        if fraction | service.fraction == 0 {
            // Most rates serve most packets in whole nanoseconds.
            self.fraction = 0;
            return Instant::from_nanos(begin.saturating_add(service.whole));
        }
        let begin = Exact { whole: begin - u64::from(fraction > 0), fraction };
        let end = begin.plus(service, self.rate);
        self.fraction = end.fraction;
        Instant::from_nanos(end.rounded_up())
    }
}

/// How long `size` takes at `rate`.
fn service_time(size: Bytes, rate: Rate) -> Exact {
    match (size.get().checked_mul(BIT_NANOS_PER_BYTE), rate.as_bps()) {
        // Nothing ever leaves a link of rate zero.
        (_, 0) => Exact::MAX,
        (Some(bit_nanos), rate) => Exact { whole: bit_nanos / rate, fraction: bit_nanos % rate },
        (None, rate) => {
            let bit_nanos = u128::from(size.get()) * u128::from(BIT_NANOS_PER_BYTE);
            match u64::try_from(bit_nanos / u128::from(rate)) {
                Ok(whole) => Exact { whole, fraction: (bit_nanos % u128::from(rate)) as u64 },
                Err(_) => Exact::MAX,
            }
        }
    }
}

impl Exact {
    /// Stands for never.
    const MAX: Self = Self { whole: u64::MAX, fraction: 0 };

    /// The sum of two mixed numbers over the same rate; its whole part stops at never.
    #[inline]
    fn plus(self, other: Self, rate: Rate) -> Self {
        // Written so that nothing overflows at any rate: the sum of the fractions may not fit.
        let until_carry = rate.as_bps() - other.fraction;
        let (carry, fraction) = match self.fraction >= until_carry {
            true => (1, self.fraction - until_carry),
            false => (0, self.fraction + other.fraction),
        };
        Self { whole: self.whole.saturating_add(other.whole).saturating_add(carry), fraction }
    }

    #[inline]
    fn rounded_up(self) -> u64 {
        self.whole.saturating_add(u64::from(self.fraction > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn fixed(bps: u64) -> Serialiser {
        Serialiser::new(&RateModel::Fixed(Rate::from_bps(bps)))
    }

    #[test]
    fn the_fraction_is_carried_while_busy_and_forgotten_while_idle() {
        // One byte at 3 bps takes 2 666 666 666 2/3 ns.
        let mut serialiser = fixed(3);
        let byte = Bytes::new(1);
        assert_eq!(serialiser.serve(byte, at(0)).finish, at(2_666_666_667));
        assert_eq!(serialiser.serve(byte, at(5)).finish, at(5_333_333_334));
        assert_eq!(serialiser.serve(byte, at(6)).finish, at(8_000_000_000));
        // Idle, then a new busy period from a whole nanosecond.
        assert_eq!(serialiser.serve(byte, at(9_000_000_000)).finish, at(11_666_666_667));
        // At the very end of service the serialiser is idle: a new period, no fraction.
        assert_eq!(serialiser.serve(byte, at(11_666_666_667)).finish, at(14_333_333_334));
        // One nanosecond earlier it is not.
        assert_eq!(
            serialiser.serve(byte, at(14_333_333_333)),
            Service { start: at(14_333_333_334), finish: at(17_000_000_001) }
        );
    }

    #[test]
    fn an_unlimited_rate_takes_no_time() {
        let mut serialiser = Serialiser::new(&RateModel::Unlimited);
        for ns in [3, 3, 10] {
            assert_eq!(serialiser.serve(Bytes::new(1500), at(ns)), Service { start: at(ns), finish: at(ns) });
        }
    }

    #[test]
    fn rates_and_sizes_at_the_ends_of_their_range_stop_at_never() {
        for (bps, size) in [(0, 1), (0, 0), (1, u64::MAX)] {
            let mut serialiser = fixed(bps);
            for _ in 0..2 {
                assert_eq!(serialiser.serve(Bytes::new(size), at(1)).finish, Instant::MAX);
            }
        }
        // At the highest rate a byte takes 4.3e-10 ns: a thousand of them share the one nanosecond of rounding up.
        let mut fastest = fixed(u64::MAX);
        for _ in 0..1000 {
            assert_eq!(fastest.serve(Bytes::new(1), at(7)).finish, at(8));
        }
    }
}
