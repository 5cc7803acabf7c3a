//! The life of a connection that a protocol of ours has over UDP: when the client asks for it, when it gives
//! up, and what ended it before its time.

use talkpath_units::{Duration, Instant};

/// How far a connection is.
pub(super) struct Lifecycle {
    /// Whether this end opens and closes the connection.
    pub(super) is_client: bool,
    /// When the client asks for the connection.
    start: Instant,
    /// Sending stops here.
    stop: Instant,
    is_requested: bool,
    was_open: bool,
    /// The connection was not open when sending stopped.
    is_given_up: bool,
    /// This end has closed the connection, or waits for the client to do so.
    pub(super) is_closing: bool,
    /// What ended the connection before its time, until it is reported.
    failure: Option<String>,
    /// A failure was reported, or will be.
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

    /// When the client asks for the connection, or gives up.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let start = self.is_client_waiting().then_some(self.start);
        let is_wanted = start.is_some() || self.is_requested;
        let stop = (is_wanted && !self.was_open && !self.is_given_up).then_some(self.stop);
        start.into_iter().chain(stop).min()
    }

    /// Whether the client asks for the connection at `now`: true once.
    pub(super) fn asks(&mut self, now: Instant) -> bool {
        let asks = self.is_client_waiting() && now >= self.start;
        self.is_requested |= asks;
        asks
    }

    const fn is_client_waiting(&self) -> bool {
        self.is_client && !self.is_requested && !self.is_closing
    }

    /// Sending would stop at `now`, and the client has no connection: a failure with this reason, if
    /// `patience` was enough for an answer after a loss.
    pub(super) fn give_up(&mut self, now: Instant, patience: Duration, why: impl FnOnce() -> String) {
        if !self.is_client || self.was_open || now < self.stop {
            return;
        }
        let is_first = !core::mem::replace(&mut self.is_given_up, true);
        if is_first && self.stop.since(self.start) >= patience {
            self.fail(why());
        }
    }

    /// Whether the connection is open now.
    pub(super) const fn note_open(&mut self, is_open: bool) {
        self.was_open |= is_open;
    }

    pub(super) const fn was_open(&self) -> bool {
        self.was_open
    }

    /// Whether the connection was open and has failed: what is handed over is never sent.
    pub(super) const fn is_broken(&self) -> bool {
        self.was_open && self.has_failed
    }

    /// The connection ended before its time; the first reason counts.
    pub(super) fn fail(&mut self, why: String) {
        if !core::mem::replace(&mut self.has_failed, true) {
            self.failure = Some(why);
        }
    }

    /// A failure that was not reported yet.
    pub(super) const fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}
