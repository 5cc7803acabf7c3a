//! Which flow of a connection has its turn next: for whoever drives an end's flows.

use crate::end::End;

impl End {
    /// The first flow from `from` on that has something new since its last turn: something to read, room to
    /// write, a [`crate::SendEvent`], or a connection that opened or was lost. Of a connection with a single
    /// flow always `None`.
    pub fn next_ready(&self, from: usize) -> Option<usize> {
        self.ready.next(from)
    }

    /// Whether `flow` has something new since its last turn.
    pub fn is_ready(&self, flow: usize) -> bool {
        self.ready.contains(flow)
    }

    /// `flow` has its turn, in which it learns what is new.
    pub fn clear_ready(&mut self, flow: usize) {
        self.ready.clear(flow);
    }
}
