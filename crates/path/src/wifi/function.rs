//! One contender for the medium: an EDCA function, the part of a sender that contends for one category
//! (802.11-2016 §10.22.2.2 and §10.22.2.4; 802.11-2020 §10.23.2.2).
//!
//! ```text
//!  medium idle      AIFS          slot  slot  slot
//!  ─────┤◄──── SIFS + AIFSN slots ────►│     │     │     ├─ transmits, if the medium is still idle
//! ```
//!
//! All functions count slots of one grid, which begins a SIFS after the medium became idle. While the medium
//! is busy the count does not change. After each transmission a function draws a new backoff, even if it has
//! nothing more to send. A frame that comes while the medium is idle and the count is at its end is sent at
//! the next slot.

use std::collections::VecDeque;

use talkpath_units::{Duration, Instant, Stream};

use super::category::{AccessCategory, EdcaParameters};
use super::timing::{SIFS, SLOT};

/// A sender's contention in one category.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) category: AccessCategory,
    /// The sender: functions of one sender do not collide with each other.
    pub(super) sender: u32,
    parameters: EdcaParameters,
    /// The contention window.
    window: u32,
    /// How often in a row the window has doubled: QSRC[AC].
    doublings: u32,
    /// A further failure sets the window to the first one again.
    most_doublings: u32,
    /// The slots that remain to be counted.
    backoff: u64,
    /// Counting does not go on before this.
    from: Instant,
    /// Whether it has something to send.
    pub(super) is_backlogged: bool,
    stream: Stream,
    /// The queues with packets, the next one to be served first.
    pub(super) turn: VecDeque<u32>,
}

impl Function {
    /// A function with nothing to send. Its sender gives a frame up after `attempts` attempts.
    pub(super) fn new(category: AccessCategory, sender: u32, attempts: u32, stream: Stream) -> Self {
        let parameters = category.parameters();
        Self {
            category,
            sender,
            parameters,
            window: parameters.cw_min,
            doublings: 0,
            most_doublings: attempts,
            backoff: 0,
            from: Instant::ZERO,
            is_backlogged: false,
            stream,
            turn: VecDeque::new(),
        }
    }

    /// For how long it may go on when it has won the medium; `None` is one exchange.
    pub(super) fn txop(&self) -> Option<Duration> {
        (!self.parameters.txop.is_zero()).then_some(self.parameters.txop)
    }

    /// When it transmits if the medium stays idle, which it is since `idle_since`. [`Instant::MAX`] if it has
    /// nothing to send.
    pub(super) fn access(&self, idle_since: Instant) -> Instant {
        if !self.is_backlogged {
            return Instant::MAX;
        }
        self.counts_from(idle_since).saturating_add(SLOT.saturating_mul(self.backoff))
    }

    /// Whether it counts slots.
    pub(super) const fn is_counting(&self) -> bool {
        self.is_backlogged || self.backoff > 0
    }

    /// Counts the boundaries of slots that have passed by `now`, at which a transmission begins or a frame
    /// comes. A boundary at `now` is among them: the function counts it before it hears who transmits there
    /// (802.11-2016 §10.22.2.4). The count goes on at the next boundary.
    pub(super) fn count(&mut self, idle_since: Instant, now: Instant) {
        let start = self.counts_from(idle_since);
        if now >= start {
            let passed = now.since(start).as_nanos() / SLOT.as_nanos() + 1;
            self.backoff = self.backoff.saturating_sub(passed);
            self.from = now.saturating_add(Duration::from_nanos(1));
        }
    }

    /// A frame came, and nothing was there to send.
    pub(super) fn on_frame(&mut self, idle_since: Instant, now: Instant) {
        if now < idle_since {
            // 802.11-2016 §10.22.2.2 a): the medium is busy. A backoff that is not at its end goes on.
            if self.backoff == 0 {
                self.draw();
            }
        } else {
            self.count(idle_since, now);
        }
        self.is_backlogged = true;
    }

    /// Its frame was acknowledged: the window is the first one again.
    pub(super) fn succeed(&mut self) {
        self.window = self.parameters.cw_min;
        self.doublings = 0;
        self.draw();
    }

    /// Its frame was not acknowledged, which it knows at `noticed`, or lost against another of its sender's
    /// functions. An AIFS after that it counts slots again. The window doubles as often in a row as a frame
    /// is sent, and then begins again (802.11-2020 §10.23.2.2).
    pub(super) fn fail(&mut self, noticed: Instant) {
        let EdcaParameters { cw_min, cw_max, .. } = self.parameters;
        if self.doublings < self.most_doublings {
            self.doublings += 1;
            self.window = (2 * self.window + 1).min(cw_max);
        } else {
            self.doublings = 0;
            self.window = cw_min;
        }
        let aifs = SIFS.saturating_add(SLOT.saturating_mul(self.parameters.aifsn));
        self.from = self.from.max(noticed.saturating_add(aifs));
        self.draw();
    }

    /// Draws a backoff, uniform in [0, the contention window].
    pub(super) fn draw(&mut self) {
        self.backoff = self.stream.below(u64::from(self.window) + 1);
    }

    /// From when on it counts slots: after the AIFS, at a slot of the grid.
    fn counts_from(&self, idle_since: Instant) -> Instant {
        let grid = idle_since.saturating_add(SIFS);
        let slots = self.from.since(grid).as_nanos().div_ceil(SLOT.as_nanos());
        grid.saturating_add(SLOT.saturating_mul(slots.max(self.parameters.aifsn)))
    }
}
