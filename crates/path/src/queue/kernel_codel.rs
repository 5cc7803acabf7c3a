//! Linux's arithmetic for CoDel (include/net/codel.h and codel_impl.h, written anew after their description):
//! a clock of 1,024 ns, and `1 / sqrt(count)` in 16 bits, which one Newton step brings nearer with each
//! count.
//!
//! With it our CoDel and FQ-CoDel make the decisions of a kernel, with one exception: a queue of FQ-CoDel
//! that is found empty ends its interval here (RFC 8289 §5.6), and in Linux it does not. `cargo xtask
//! kernel-queues` boots Linux 6.1, logs what its queues did, and has the tests feed each log to ours. A short
//! log of each is kept here.
//!
//! Sizes in a log are Linux's, which count 14 B of Ethernet header, as its `mtu` and `quantum` of 1514 B do.

use talkpath_units::{Duration, Instant};

use crate::queue::codel::Arithmetic;

/// Linux's arithmetic.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kernel {
    /// `1 / sqrt(count)` times 2^16.
    inverse_root: u16,
}

impl Arithmetic for Kernel {
    fn clock(at: Instant) -> Instant {
        Instant::from_nanos(at.as_nanos() >> SHIFT << SHIFT)
    }

    fn in_clock_units(span: Duration) -> Duration {
        Duration::from_nanos(span.as_nanos() >> SHIFT << SHIFT)
    }

    fn is_over(first_above_time: Instant, now: Instant) -> bool {
        now > first_above_time
    }

    /// x' = x (3 - count x^2) / 2, in fixed point.
    fn on_count(&mut self, count: u32) {
        let x = u64::from(self.inverse_root) << 16;
        let square = (x * x) >> 32;
        let factor = (3_u64 << 32).wrapping_sub(u64::from(count) * square);
        self.inverse_root = (((factor >> 2).wrapping_mul(x) >> (32 - 2 + 1)) >> 16) as u16;
    }

    fn on_first(&mut self) {
        self.inverse_root = u16::MAX;
    }

    fn spacing(&self, interval: Duration, _count: u32) -> Duration {
        let ticks = ((interval.as_nanos() >> SHIFT) * (u64::from(self.inverse_root) << 16)) >> 32;
        Duration::from_nanos(ticks << SHIFT)
    }
}

/// A tick is 2^10 ns.
const SHIFT: u32 = 10;

mod tests;
