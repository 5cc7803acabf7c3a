//! Which flows of a connection have something new for their applications.
//!
//! A packet carries data of a few flows and acknowledges data of a few others. Whoever drives the flows of a
//! connection gives a turn to those that are listed here. A turn of every flow at each packet would cost as
//! much as the square of their number.
//!
//! | what is new | since |
//! | --- | --- |
//! | something to read, or a message that was dropped | a packet came |
//! | a message left, or expired | a packet left, or had a chance to |
//! | room to write | bytes left, or the far end allows more bytes or more streams |
//! | the connection opened, or was lost: for all flows | |

use std::collections::BTreeSet;

/// The flows that have something new since their last turn. A flow with a connection of its own is not
/// listed, because every turn is its own.
#[derive(Debug)]
pub(crate) struct ReadyFlows {
    flows: usize,
    ready: BTreeSet<usize>,
}

impl ReadyFlows {
    pub(crate) const fn new(flows: usize) -> Self {
        Self { flows, ready: BTreeSet::new() }
    }

    /// There is something new for `flow`.
    pub(crate) fn mark(&mut self, flow: usize) {
        if self.flows > 1 {
            self.ready.insert(flow);
        }
    }

    /// There is something new for each flow.
    pub(crate) fn mark_all(&mut self) {
        (0..self.flows).for_each(|flow| self.mark(flow));
    }

    /// The first flow from `from` on that has something new.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        self.ready.range(from..).next().copied()
    }

    pub(crate) fn contains(&self, flow: usize) -> bool {
        self.ready.contains(&flow)
    }

    /// `flow` has its turn.
    pub(crate) fn clear(&mut self, flow: usize) {
        self.ready.remove(&flow);
    }
}
