//! The life of a connection of one of our own protocols over UDP: when the client opens the connection, when
//! the client gives up, and why the connection ended before its time.

use talkpath_units::{Duration, Instant};

/// The stage of a connection's life.
pub(super) struct Lifecycle {
    /// True at the client, which opens and closes the connection.
    pub(super) is_client: bool,
    /// When the client opens the connection.
    start: Instant,
    /// When sending stops.
    stop: Instant,
    /// True if the client has begun to open the connection.
    is_requested: bool,
    /// True if the connection is or was open.
    was_open: bool,
    /// True if the connection had never been open when sending stopped.
    is_given_up: bool,
    /// True if this end has closed the connection, or waits for the client to close it.
    pub(super) is_closing: bool,
    /// The reason why the connection ended before its time, until the end takes it.
    failure: Option<String>,
    /// True if the connection ended before its time.
    has_failed: bool,
}

impl Lifecycle {
    pub(super) const fn new(is_client: bool, start: Instant, stop: Instant) -> Self {
        Self {
            is_client,
            start,
            stop,
            is_requested: false,
            was_open: false,
            is_given_up: false,
            is_closing: false,
            failure: None,
            has_failed: false,
        }
    }

    /// The time at which the client opens the connection or gives up, whichever comes first.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let start = self.is_client_waiting().then_some(self.start);
        let is_wanted = start.is_some() || self.is_requested;
        let stop = (is_wanted && !self.was_open && !self.is_given_up).then_some(self.stop);
        start.into_iter().chain(stop).min()
    }

    /// Returns true, once, if the client has to open the connection at `now`.
    pub(super) fn take_opening(&mut self, now: Instant) -> bool {
        let is_due = self.is_client_waiting() && now >= self.start;
        self.is_requested |= is_due;
        is_due
    }

    const fn is_client_waiting(&self) -> bool {
        self.is_client && !self.is_requested && !self.is_closing
    }

    /// Gives up if sending stops at `now` and the client has never had a connection. That is a failure for
    /// the reason `why` only if the flow lasted at least `patience`. A shorter flow may have lost its first
    /// packet.
    pub(super) fn give_up(&mut self, now: Instant, patience: Duration, why: impl FnOnce() -> String) {
        if !self.is_client || self.was_open || now < self.stop {
            return;
        }
        let is_first = !core::mem::replace(&mut self.is_given_up, true);
        if is_first && self.stop.since(self.start) >= patience {
            self.fail(why());
        }
    }

    /// Records whether the connection is open now.
    pub(super) const fn note_open(&mut self, is_open: bool) {
        self.was_open |= is_open;
    }

    pub(super) const fn was_open(&self) -> bool {
        self.was_open
    }

    /// Returns true if the connection was open and has failed. A message that is written then is never sent.
    pub(super) const fn is_broken(&self) -> bool {
        self.was_open && self.has_failed
    }

    /// Records that the connection ended before its time. The first reason stays.
    pub(super) fn fail(&mut self, why: String) {
        if !core::mem::replace(&mut self.has_failed, true) {
            self.failure = Some(why);
        }
    }

    /// Takes the reason of a failure that nobody has taken yet.
    pub(super) const fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}
