//! How long each number of waiting packets held, within a measuring window, to the nanosecond.
//!
//! The number of waiting packets is a step function of time. Each step adds the time that its level held,
//! clipped to the window, to that level's account; mean, percentile and maximum follow from the accounts
//! alone.

use talkpath_units::Instant;

/// A measuring window [`from`, `to`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    from: Instant,
    to: Instant,
    span_ns: u64,
}

/// The accounts of a queue's levels.
#[derive(Debug)]
pub(crate) struct Occupancy {
    /// The window's end.
    to: Instant,
    /// Up to here the accounts are complete; within the window.
    since: Instant,
    /// Nanoseconds within the window at each level: as long as the fullest queue, so bounded by what the
    /// queue held.
    held_ns: Box<[u64]>,
}

/// What the accounts say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Levels {
    /// Weighted by time.
    pub(crate) mean: f64,
    /// Nearest rank: the lowest level such that no higher one held for more than 1 % of the time.
    pub(crate) p99: u64,
    /// The highest level that held for any time.
    pub(crate) max: u64,
}

impl Window {
    /// The window from `from` up to but not including `to`.
    pub(crate) const fn new(from: Instant, to: Instant) -> Self {
        Self { from, to, span_ns: to.since(from).as_nanos() }
    }

    /// Whether `at` lies within.
    #[inline]
    pub(crate) fn contains(self, at: Instant) -> bool {
        // One comparison: what is before the window is, thus counted, far behind it.
        at.as_nanos().wrapping_sub(self.from.as_nanos()) < self.span_ns
    }

    /// Nanoseconds that [`from`, `to`) has in common with the window; `from` is not after `to`.
    #[inline(always)]
    pub(crate) fn overlap(&self, from: Instant, to: Instant) -> u64 {
        if from >= self.from && to <= self.to {
            to.as_nanos() - from.as_nanos()
        } else {
            self.clipped(from, to)
        }
    }

    #[cold]
    #[inline(never)]
    fn clipped(&self, from: Instant, to: Instant) -> u64 {
        to.min(self.to).since(from.max(self.from)).as_nanos()
    }
}

impl Default for Window {
    /// The whole run.
    fn default() -> Self {
        Self::new(Instant::ZERO, Instant::MAX)
    }
}

impl Default for Occupancy {
    fn default() -> Self {
        Self::new(Window::default())
    }
}

impl Occupancy {
    /// Empty accounts for `window`.
    pub(crate) fn new(window: Window) -> Self {
        Self { to: window.to, since: window.from, held_ns: Box::default() }
    }

    /// `level` packets waited from the end of the last call's span until `until`.
    #[inline(always)]
    pub(crate) fn hold(&mut self, level: u32, until: Instant) {
        if until > self.to {
            return self.hold_to_the_end(level);
        }
        if until <= self.since {
            return;
        }
        let held_ns = until.since(self.since).as_nanos();
        self.since = until;
        match self.held_ns.get_mut(level as usize) {
            Some(account) => *account += held_ns,
            None => self.open(level as usize, held_ns),
        }
    }

    /// As `hold`, beyond the window.
    #[cold]
    #[inline(never)]
    fn hold_to_the_end(&mut self, level: u32) {
        self.hold(level, self.to);
    }

    /// The figures up to the last `hold`.
    pub(crate) fn levels(&self) -> Levels {
        let total: u128 = self.held_ns.iter().map(|&ns| u128::from(ns)).sum();
        if total == 0 {
            return Levels::default();
        }
        let mut levels = Levels::default();
        let (mut weighted, mut below, mut p99) = (0_u128, 0_u128, None);
        for (level, &ns) in (0_u64..).zip(&*self.held_ns).filter(|(_, ns)| **ns > 0) {
            weighted += u128::from(level) * u128::from(ns);
            below += u128::from(ns);
            if below * 100 >= total * 99 {
                p99 = p99.or(Some(level));
            }
            levels.max = level;
        }
        levels.mean = weighted as f64 / total as f64;
        levels.p99 = p99.unwrap_or(levels.max);
        levels
    }

    /// The first time at a level that is higher than all before.
    #[cold]
    fn open(&mut self, level: usize, held_ns: u64) {
        let mut accounts = core::mem::take(&mut self.held_ns).into_vec();
        accounts.resize((level + 1).next_power_of_two(), 0);
        accounts[level] = held_ns;
        self.held_ns = accounts.into_boxed_slice();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn spans_are_clipped_to_the_window() {
        let mut occupancy = Occupancy::new(Window::new(at(100), at(200)));
        occupancy.hold(7, at(90)); // before the window
        occupancy.hold(3, at(150)); // 50 ns of 60 lie within
        occupancy.hold(1, at(300)); // 50 ns of 150
        occupancy.hold(9, at(400)); // after the window
        assert_eq!(occupancy.levels(), Levels { mean: 2.0, p99: 3, max: 3 });
    }

    #[test]
    fn the_percentile_is_the_level_not_exceeded_for_99_percent_of_the_time() {
        let mut occupancy = Occupancy::new(Window::default());
        occupancy.hold(0, at(990));
        occupancy.hold(5, at(1000));
        assert_eq!(occupancy.levels(), Levels { mean: 0.05, p99: 0, max: 5 });
        occupancy.hold(5, at(1001));
        assert_eq!(occupancy.levels().p99, 5);
    }

    #[test]
    fn an_empty_window_has_no_figures() {
        let mut occupancy = Occupancy::new(Window::new(at(10), at(10)));
        occupancy.hold(4, at(50));
        assert_eq!(occupancy.levels(), Levels::default());
    }
}
