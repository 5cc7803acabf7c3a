//! The calls of an end to its flow's channel, besides those of the application.
//!
//! Each channel implements [`HostChannel`]. A call that only some channels need has a default, which does
//! nothing:
//!
//! | calls | channels |
//! | --- | --- |
//! | clock, deadlines, progress, samples, counts | all |
//! | token, route, datagrams that arrive | UDP, DCCP and QUIC, whose packets are UDP datagrams |
//! | end of a turn, closing, lateness of timers | DCCP and QUIC, whose protocol runs in this process |
//!
//! [`AnyChannel`](super::any::AnyChannel) returns the channel of one kind for calls that only this kind has.

use talkpath_flow::Channel;
use talkpath_units::{Histogram, Instant};
use talkpath_wire::Observation;

use super::route::UdpRoute;
use crate::clock::RunClock;
use crate::log::EndTotals;
use crate::progress::EndProgress;
use crate::sys::Received;

/// The occasion on which a channel's state may be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The application's turn is over.
    Turn,
    /// A deadline has come, and the application's turn after it is over.
    Timeout,
    /// A regular interval is over. Connections of the kernel's TCP are sampled at these times.
    Interval,
    /// The pacer has visited the end, as it does at an interval, although nothing may be due. A silent flow
    /// samples the state of a shared connection at these times.
    Visit,
}

/// A channel on a real host.
pub(super) trait HostChannel: Channel {
    /// Sets the run's clock, once it is known.
    fn set_clock(&mut self, clock: RunClock);

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// Reads and throws away the data that arrived, at an end that reads no messages.
    fn discard(&mut self);

    /// Returns true if the channel is or was open.
    fn was_open(&self) -> bool;

    /// Returns the progress of this end. `has_written` is true if its application has written all messages
    /// that it will ever write. `is_over` is true once the time to send is over.
    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress;

    /// Takes the failure that ended the flow before its time, if there was one.
    fn take_failure(&mut self) -> Option<String>;

    /// Returns the channel's state and the time at which it was read, if the channel is sampled on this
    /// occasion.
    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)>;

    /// Returns the number of echoes whose rows the memory budget paid for when their messages came
    /// ([`super::messages::Incoming`]).
    fn paid_rows(&self) -> u64;

    /// Writes the channel's counts into `totals`.
    fn count(&self, totals: &mut EndTotals);

    /// Returns the token that this flow's datagrams carry. Returns `None` if the flow has no datagrams.
    fn token(&self) -> Option<u32> {
        None
    }

    /// Sets the socket and the address that this flow's datagrams are sent to.
    fn set_route(&mut self, _route: UdpRoute) {}

    /// Handles a datagram. Returns true if it belongs to this flow. If `wants_data`, the channel keeps the
    /// datagram's bytes for the application's read.
    fn handle_datagram(&mut self, _datagram: &Received<'_>, _wants_data: bool) -> bool {
        false
    }

    /// Handles the end of the application's turn. `has_read_all` is true unless the application lets messages
    /// wait. `is_finished` is true if the application will write nothing further.
    fn finish_turn(&mut self, _has_read_all: bool, _is_finished: bool) {}

    /// Ends the connection, because the run is over. `has_written_all` is true if the application has no
    /// messages left. Returns true if the application needs one more turn.
    fn close(&mut self, _has_written_all: bool) -> bool {
        false
    }

    /// Returns true if nothing is left to wait for after the run.
    fn is_closed(&self, _has_written_all: bool) -> bool {
        true
    }

    /// Returns how late the protocol's timers fired. Returns `None` if the kernel has the timers.
    fn lateness(&self) -> Option<&Histogram> {
        None
    }
}
