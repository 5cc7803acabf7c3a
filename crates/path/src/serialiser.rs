//! The second of a link's three places, the serialiser. It puts one packet after the other on the wire.
//!
//! ```text
//!   the n-th packet of a busy period that began at t0 ends at   ceil(t0 + bits of packets 1 to n / rate)
//!
//!   at 3 bit/s a byte takes 2 666 666 666 2/3 ns:   1st   2 666 666 667 ns, 1/3 ns too late
//!                                                   2nd   5 333 333 334 ns, 2/3 ns too late
//!                                                   3rd   8 000 000 000 ns, exact
//! ```
//!
//! An end is rounded up to nanoseconds, because a packet is not out before its last bit is. The part by which
//! the end is too late, the *surplus*, is carried into the next service of the same busy period. So the
//! rounding never adds up. Packets arrive at whole nanoseconds. So a serialiser is busy at an arrival by the
//! exact end if it is busy by the rounded one, and a busy period begins without a surplus.

use talkpath_units::{Bytes, Instant, Rate, Seed};

use crate::cellular::CellClock;
use crate::config::{LinkConfig, RateModel};
use crate::rate_trace::TraceClock;
use crate::token_bucket::{TokenBucket, Tokens};

/// Serves one packet at a time, in order.
#[derive(Debug)]
pub(crate) struct Serialiser {
    /// When the service of the last packet ends, rounded up.
    free_at: Instant,
    /// The time by which `free_at` is later than the exact end, in 1/rate ns. Zero if the rate is not fixed.
    surplus: u64,
    /// The service times of two sizes, the one that was learned last first. A division is slow, and traffic
    /// has runs of one size, or alternates between two.
    known: [KnownSize; 2],
    /// The rate in bits per second if it is fixed. Otherwise one, so that no service time has a fraction.
    bps: u64,
    model: Box<Model>,
}

#[derive(Debug)]
enum Model {
    Unlimited,
    Fixed(Rate),
    Trace(TraceClock),
    Shaped(Shaped),
    Cell(Box<CellClock>),
}

/// A serialiser behind a token bucket (Linux's sch_tbf). A packet that waits for tokens is in service. Then
/// the link puts it on the wire at the link's own rate.
#[derive(Debug)]
struct Shaped {
    tokens: Tokens,
    link: Serialiser,
}

/// The service time of packets of one size.
#[derive(Clone, Copy, Debug)]
struct KnownSize {
    size: Bytes,
    time: ServiceTime,
}

/// A service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServiceTime {
    /// In nanoseconds, rounded up.
    rounded_up: u64,
    /// The time by which `rounded_up` is longer than the exact time, in 1/rate ns. Less than a nanosecond.
    surplus: u64,
}

impl Serialiser {
    /// An idle serialiser.
    pub(crate) fn new(model: &RateModel) -> Self {
        let (model, bps) = match model {
            RateModel::Unlimited => (Model::Unlimited, 1),
            RateModel::Fixed(rate) => (Model::Fixed(*rate), rate.as_bps().max(1)),
            RateModel::Trace(trace) => (Model::Trace(TraceClock::new(trace.clone())), 1),
        };
        // No packet has this size.
        let known = [KnownSize { size: Bytes::MAX, time: ServiceTime::MAX }; 2];
        Self { free_at: Instant::ZERO, surplus: 0, known, bps, model: Box::new(model) }
    }

    /// The idle serialiser of a link with this `name`.
    pub(crate) fn of_link(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        match (&config.cellular, &config.rate) {
            (Some(cell), RateModel::Fixed(rate)) => {
                let clock = CellClock::new(cell, *rate, seed, name);
                Self { model: Box::new(Model::Cell(Box::new(clock))), ..Self::new(&RateModel::Unlimited) }
            }
            _ => Self::shaped(&config.rate, config.shaper.as_ref()),
        }
    }

    /// An idle serialiser behind a `shaper`, if there is one.
    fn shaped(model: &RateModel, shaper: Option<&TokenBucket>) -> Self {
        let link = Self::new(model);
        let Some(shaper) = shaper else { return link };
        let shaped = Model::Shaped(Shaped { tokens: Tokens::new(shaper), link });
        Self { model: Box::new(shaped), ..Self::new(&RateModel::Unlimited) }
    }

    /// The serialiser of a link whose medium takes the packets.
    pub(crate) fn never_free() -> Self {
        let mut serialiser = Self::new(&RateModel::Unlimited);
        serialiser.hold();
        serialiser
    }

    /// Replaces the rate. The service of the packet in service ends as before. Services that begin later have
    /// the new rate. The surplus of the present service is not carried into the next one.
    pub(crate) fn set_rate(&mut self, model: &RateModel, now: Instant) {
        if let Model::Shaped(shaped) = &mut *self.model {
            return shaped.link.set_rate(model, now);
        }
        if let Model::Cell(clock) = &mut *self.model {
            if let RateModel::Fixed(rate) = model {
                clock.set_rate(*rate);
            }
            return;
        }
        *self = Self { free_at: self.free_at, ..Self::new(model) };
        self.pass_by(self.free_at.max(now));
    }

    /// Lets no service begin, until [`Self::resume`].
    pub(crate) const fn hold(&mut self) {
        self.free_at = Instant::MAX;
    }

    /// Lets services begin from `free_at` on. The last service ended then or earlier.
    pub(crate) fn resume(&mut self, free_at: Instant) {
        self.free_at = free_at;
        self.surplus = 0;
        self.pass_by(free_at);
    }

    /// Discards the opportunities of a trace up to `at`, which no packet has used.
    fn pass_by(&mut self, at: Instant) {
        if at == Instant::MAX {
            return;
        }
        match &mut *self.model {
            Model::Trace(clock) => clock.pass_by(at),
            Model::Shaped(shaped) => shaped.link.pass_by(at),
            Model::Cell(clock) => clock.pass_by(at),
            Model::Unlimited | Model::Fixed(_) => {}
        }
    }

    /// Returns when the service of the packet in service ends. The serialiser is idle from then on.
    /// [`Instant::MAX`] means never.
    #[inline(always)]
    pub(crate) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When the packet that was served last has left. In a cell that is when its last block is read, in
    /// order.
    pub(crate) fn complete(&self) -> Instant {
        match &*self.model {
            Model::Cell(clock) => clock.complete(),
            _ => self.free_at,
        }
    }

    /// Serves a packet of `size` that comes at `now` to an idle serialiser. Returns when its last bit has
    /// left.
    #[inline(always)]
    pub(crate) fn serve_at_once(&mut self, size: Bytes, now: Instant) -> Instant {
        let Some(ServiceTime { rounded_up, surplus }) = self.service_time(size) else {
            return self.serve_in_time(size, now, true);
        };
        self.surplus = surplus;
        self.free_at = later(now, rounded_up);
        self.free_at
    }

    /// Serves a packet of `size` that has waited since `entered`, from the end of the service before it.
    /// Returns when its last bit has left.
    #[inline(always)]
    pub(crate) fn serve_next(&mut self, size: Bytes, entered: Instant) -> Instant {
        let Some(ServiceTime { rounded_up, surplus }) = self.service_time(size) else {
            return self.serve_in_time(size, entered, false);
        };
        // If the two surpluses together reach a nanosecond, which is `bps` of their units, the service ends a
        // nanosecond earlier.
        let (excess, is_below_one) = self.surplus.overflowing_sub(self.bps - surplus);
        self.surplus = if is_below_one { self.surplus + surplus } else { excess };
        // A service time with a surplus is at least one nanosecond, so this cannot underflow.
        let service = rounded_up - u64::from(!is_below_one);
        self.free_at = later(self.free_at, service);
        self.free_at
    }

    /// Returns the service time of a packet of `size`. `None` if it depends on when the service begins.
    #[inline(always)]
    fn service_time(&mut self, size: Bytes) -> Option<ServiceTime> {
        let [latest, other] = self.known;
        if size == latest.size {
            Some(latest.time)
        } else if size == other.size {
            Some(other.time)
        } else {
            self.learn(size)
        }
    }

    /// Computes the service time of `size`, and keeps it in place of the older known one.
    #[cold]
    fn learn(&mut self, size: Bytes) -> Option<ServiceTime> {
        let time = match &*self.model {
            Model::Unlimited => ServiceTime { rounded_up: 0, surplus: 0 },
            Model::Fixed(rate) => ServiceTime::new(size, *rate),
            Model::Trace(_) | Model::Shaped(_) | Model::Cell(_) => return None,
        };
        self.known = [KnownSize { size, time }, self.known[0]];
        Some(time)
    }

    /// Serves a packet whose service time depends on when the service begins. The packet came at `entered`.
    /// If it `found_idle`, its service begins then.
    #[cold]
    fn serve_in_time(&mut self, size: Bytes, entered: Instant, found_idle: bool) -> Instant {
        match &mut *self.model {
            Model::Trace(clock) => {
                if found_idle {
                    clock.pass_by(entered);
                }
                self.free_at = clock.serve(size);
            }
            Model::Shaped(shaped) => {
                let start = if found_idle { entered } else { self.free_at };
                self.free_at = shaped.serve(size, start);
            }
            Model::Cell(clock) => self.free_at = clock.serve(size, entered, found_idle),
            // These models have a service time for each size, so `service_time` has returned it.
            Model::Unlimited | Model::Fixed(_) => {}
        }
        self.free_at
    }
}

impl Shaped {
    /// Serves a packet of `size` that can go into service at `start`. Returns when its last bit has left.
    fn serve(&mut self, size: Bytes, start: Instant) -> Instant {
        let begins = self.tokens.take_when_there(size, start);
        if begins == Instant::MAX {
            return Instant::MAX;
        }
        if self.link.free_at() == begins {
            self.link.serve_next(size, start)
        } else {
            self.link.serve_at_once(size, begins)
        }
    }
}

/// Returns the instant `nanos` after `start`. [`Instant::MAX`], which means never, if there is no such
/// instant.
#[inline(always)]
fn later(start: Instant, nanos: u64) -> Instant {
    start.as_nanos().checked_add(nanos).map_or(Instant::MAX, Instant::from_nanos)
}

/// Nanoseconds in a second, times bits in a byte.
const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

impl ServiceTime {
    /// Never.
    const MAX: Self = Self { rounded_up: u64::MAX, surplus: 0 };

    /// The time that `size` takes at `rate`. Nothing ever leaves a link of rate zero.
    fn new(size: Bytes, rate: Rate) -> Self {
        match (size.get().checked_mul(BIT_NANOS_PER_BYTE), rate.as_bps()) {
            (_, 0) => Self::MAX,
            (Some(bit_nanos), rate) => {
                Self { rounded_up: bit_nanos.div_ceil(rate), surplus: (rate - bit_nanos % rate) % rate }
            }
            // The product has more than 64 bits.
            (None, rate) => {
                let (bit_nanos, rate) =
                    (u128::from(size.get()) * u128::from(BIT_NANOS_PER_BYTE), u128::from(rate));
                match u64::try_from(bit_nanos.div_ceil(rate)) {
                    Ok(rounded_up) if rounded_up < u64::MAX => {
                        Self { rounded_up, surplus: ((rate - bit_nanos % rate) % rate) as u64 }
                    }
                    Ok(_) | Err(_) => Self::MAX,
                }
            }
        }
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

    impl Serialiser {
        /// When the last bit has left of a packet of `size` that comes at `now`.
        fn serve(&mut self, size: Bytes, now: Instant) -> Instant {
            if self.free_at <= now { self.serve_at_once(size, now) } else { self.serve_next(size, now) }
        }
    }

    #[test]
    fn the_fraction_is_carried_while_busy_and_forgotten_while_idle() {
        // One byte at 3 bps takes 2 666 666 666 2/3 ns.
        let mut serialiser = fixed(3);
        let byte = Bytes::new(1);
        assert_eq!(serialiser.serve(byte, at(0)), at(2_666_666_667));
        assert_eq!(serialiser.serve(byte, at(5)), at(5_333_333_334));
        assert_eq!(serialiser.serve(byte, at(6)), at(8_000_000_000));
        // Idle, then a new busy period from a whole nanosecond.
        assert_eq!(serialiser.serve(byte, at(9_000_000_000)), at(11_666_666_667));
        // At the very end of service the serialiser is idle: a new period, no fraction.
        assert_eq!(serialiser.serve(byte, at(11_666_666_667)), at(14_333_333_334));
        // One nanosecond earlier it is not.
        assert_eq!(serialiser.serve(byte, at(14_333_333_333)), at(17_000_000_001));
    }

    #[test]
    fn a_shaper_lets_its_burst_go_at_the_rate_of_the_link_and_then_keeps_its_own() {
        let shaper = TokenBucket { rate: Rate::from_bps(1_000_000), burst: Bytes::new(5000) };
        let rate = RateModel::Fixed(Rate::from_bps(10_000_000));
        let mut serialiser = Serialiser::shaped(&rate, Some(&shaper));
        let ends: Vec<u64> =
            (0..8).map(|_| serialiser.serve(Bytes::new(1250), at(0)).as_nanos() / 1_000_000).collect();
        // A packet takes 1 ms at 10 Mb/s, and its tokens take 10 ms. Four packets go out of the full bucket;
        // the tokens of the fifth are there at 10 ms.
        assert_eq!(ends, [1, 2, 3, 4, 11, 21, 31, 41]);
        // After a pause the bucket is full again.
        let later = Instant::from_secs(1);
        assert_eq!(serialiser.serve(Bytes::new(1250), later), Instant::from_millis(1001));
        assert_eq!(
            serialiser.serve(Bytes::new(1251 * 4), later),
            Instant::MAX,
            "it never fits into the bucket"
        );
    }

    #[test]
    fn an_unlimited_rate_takes_no_time() {
        let mut serialiser = Serialiser::new(&RateModel::Unlimited);
        for ns in [3, 3, 10] {
            assert_eq!(serialiser.serve(Bytes::new(1500), at(ns)), at(ns));
        }
    }

    #[test]
    fn rates_and_sizes_at_the_ends_of_their_range_stop_at_never() {
        for (bps, size) in [(0, 1), (0, 0), (1, u64::MAX)] {
            let mut serialiser = fixed(bps);
            for _ in 0..2 {
                assert_eq!(serialiser.serve(Bytes::new(size), at(1)), Instant::MAX);
            }
        }
        // At the highest rate a byte takes 4.3e-10 ns: a thousand bytes share the one nanosecond of rounding
        // up.
        let mut fastest = fixed(u64::MAX);
        for _ in 0..1000 {
            assert_eq!(fastest.serve(Bytes::new(1), at(7)), at(8));
        }
    }
}
