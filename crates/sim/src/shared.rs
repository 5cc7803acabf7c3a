//! Which flows of a shared QUIC connection are due at one of its ends, and when.

use std::collections::BTreeSet;

use talkpath_units::Instant;

/// The connection of a flow that shares one, and the flow's place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedPlace {
    /// Its number in the run.
    pub(crate) connection: usize,
    /// Which of the connection's flows it is.
    pub(crate) place: usize,
}

/// One end of a shared connection: which of its flows are due, and when.
#[derive(Debug)]
pub(crate) struct ConnectionAgenda {
    /// When the application of each flow wants its next step; [`Instant::MAX`] is never.
    deadlines: Vec<Instant>,
    /// The same in the order of time, with the flow's place.
    agenda: BTreeSet<(Instant, usize)>,
    /// The flows whose applications are due now, and have not had their step.
    pub(crate) due: BTreeSet<usize>,
    /// The first flow that is open here. The connection's packets come to it.
    pub(crate) first_open: usize,
    /// What the congestion window followed from when the flows read it last.
    pub(crate) windows: (u64, u64),
    /// How many steps its flows took.
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl ConnectionAgenda {
    /// An end of a connection of `flows` flows. The one at `first_open` is the first that is open.
    pub(crate) fn new(flows: usize, first_open: usize) -> Self {
        Self {
            deadlines: vec![Instant::MAX; flows],
            agenda: BTreeSet::new(),
            due: BTreeSet::new(),
            first_open,
            windows: (0, 0),
            #[cfg(test)]
            steps: 0,
        }
    }

    /// The flow at `place` is open.
    pub(crate) fn on_open(&mut self, place: usize) {
        self.first_open = self.first_open.min(place);
    }

    /// The application of the flow at `place` wants its next step at `at`.
    pub(crate) fn set_deadline(&mut self, place: usize, at: Instant) {
        let before = core::mem::replace(&mut self.deadlines[place], at);
        if before == at {
            return;
        }
        self.agenda.remove(&(before, place));
        if at < Instant::MAX {
            self.agenda.insert((at, place));
        }
    }

    /// Finds the applications that are due at `now`.
    pub(crate) fn find_due(&mut self, now: Instant) {
        while let Some(&(at, place)) = self.agenda.first()
            && at <= now
        {
            self.agenda.pop_first();
            self.deadlines[place] = Instant::MAX;
            self.due.insert(place);
        }
    }

    /// When an application wants a step.
    pub(crate) fn next(&self) -> Instant {
        self.agenda.first().map_or(Instant::MAX, |first| first.0)
    }
}
