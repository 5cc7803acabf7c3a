//! The blocks of one user over time.

use talkpath_units::{Bytes, Duration, Instant, Rate, Seed};

use super::config::{Cellular, ttis};
use super::errors::Errors;
use super::reports::Reports;
use super::turns::{OwnBlock, Turns};

/// Serves packets in the blocks of one user.
///
/// Amounts are in bits times nanoseconds in a second, so that a TTI carries a whole number at any rate.
#[derive(Debug)]
pub(crate) struct CellClock {
    tti: Duration,
    users: u32,
    /// What the cell carries in a TTI.
    capacity: u128,
    turns: Turns,
    errors: Errors,
    /// `None` if the base station sees the queue.
    reports: Option<Reports>,
    /// The number of the next TTI.
    next: u64,
    /// What is left of this user's block in the TTI before.
    left: u128,
    /// When that block is read.
    block_read: Instant,
    /// When the last packet was complete and in order.
    complete: Instant,
}

/// In the unit of amounts.
const BYTE: u128 = 8 * 1_000_000_000;

/// A lower rate counts as this, so that a packet takes a bounded number of TTIs. Chosen: a packet of 1500 B
/// then takes 12 s.
const SLOWEST: Rate = Rate::from_bps(1_000);

/// After a longer pause, the TTIs before are as if others had had them without end. Chosen: ten times the
/// longest window in TTIs of 1 ms.
const LONGEST_PAUSE: u64 = 10_000;

impl CellClock {
    /// A clock at the beginning of a run, for the link with this `name`.
    ///
    /// It draws from the random streams `link/NAME/harq` and `link/NAME/request`.
    pub(crate) fn new(cell: &Cellular, rate: Rate, seed: Seed, name: &str) -> Self {
        let stream = |element: &str| seed.stream(&format!("link/{name}/{element}"));
        let reports = cell.request.map(|request| {
            let period = ttis(request.period, cell.tti).max(1);
            let mut phase = stream("request");
            Reports::new(period, phase.below(period), ttis(request.grant, cell.tti).max(1))
        });
        let mut clock = Self {
            tti: cell.tti,
            users: cell.others.saturating_add(1),
            capacity: 0,
            turns: Turns::new(cell),
            errors: Errors::new(&cell.harq, cell.tti, stream("harq")),
            reports,
            next: 0,
            left: 0,
            block_read: Instant::ZERO,
            complete: Instant::ZERO,
        };
        clock.set_rate(rate);
        clock
    }

    /// Sets this user's mean rate, from the next TTI on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        let bps = u128::from(rate.as_bps().max(SLOWEST.as_bps()));
        self.capacity = bps * u128::from(self.users) * u128::from(self.tti.as_nanos());
    }

    /// Gives away the TTIs until `now`, in which this user had nothing to send.
    pub(crate) fn pass_by(&mut self, now: Instant) {
        self.left = 0;
        let until = now.as_nanos() / self.tti.as_nanos().max(1);
        if until.saturating_sub(self.next) > LONGEST_PAUSE {
            self.next = until - LONGEST_PAUSE;
            if let Some(reports) = &mut self.reports {
                reports.skip_to(self.next);
            }
        }
        while self.next <= until {
            self.give(false);
        }
        self.left = 0;
    }

    /// Serves a packet of `size` that came at `entered`, behind all packets before it. If it `found_idle`,
    /// nothing waited. Returns the beginning of the TTI whose block has its last byte.
    pub(crate) fn serve(&mut self, size: Bytes, entered: Instant, found_idle: bool) -> Instant {
        if found_idle {
            self.pass_by(entered);
        }
        let size = u128::from(size.get().max(1)) * BYTE;
        let earliest = entered.as_nanos() / self.tti.as_nanos().max(1) + 1;
        if let Some(reports) = &mut self.reports {
            reports.on_packet(size, earliest);
        }
        if earliest >= self.next {
            // The latest block was filled before the packet came.
            self.left = 0;
        }
        let mut missing = size;
        loop {
            let taken = missing.min(self.left);
            if taken > 0 {
                self.left -= taken;
                missing -= taken;
                self.complete = self.complete.max(self.block_read);
                if let Some(reports) = &mut self.reports {
                    reports.on_sent(taken);
                }
            }
            if missing == 0 {
                return self.begin(self.next.saturating_sub(1));
            }
            self.give(true);
        }
    }

    /// When the packet that was served last is complete at the far end of the radio, in order.
    pub(crate) const fn complete(&self) -> Instant {
        self.complete
    }

    /// Gives away the next TTI.
    fn give(&mut self, has_packet: bool) {
        let now = self.next;
        let has_turn = match &mut self.reports {
            Some(reports) => reports.has_turn(now),
            None => has_packet,
        };
        let block = self.turns.give(has_turn, self.capacity, &mut self.errors);
        if let Some(reports) = &mut self.reports {
            reports.on_tti(now, block.map(|block| block.share));
        }
        self.next += 1;
        let OwnBlock { share, later } = block.unwrap_or(OwnBlock { share: 0, later: Duration::ZERO });
        self.left = share;
        self.block_read = self.begin(self.next).saturating_add(later);
    }

    /// The beginning of a TTI.
    fn begin(&self, tti: u64) -> Instant {
        Instant::from_nanos(tti.saturating_mul(self.tti.as_nanos()))
    }
}
