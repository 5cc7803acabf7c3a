//! The calls of an end to its flow's channel, besides those of the application.
//!
//! | calls | of which channels | for what |
//! | --- | --- | --- |
//! | [`HostChannel`] | all | the clock, deadlines, progress, state, counts |
//! | [`DatagramChannel`] | UDP, DCCP, QUIC: their packets are UDP datagrams | the route, what arrives |
//! | [`OwnProtocol`] | DCCP, QUIC: their protocol runs in this process | the end of a turn, closing |
//! | `UdpChannel`'s own | UDP | trains, a socket that the application reads, transmit stamps |
//! | `TcpChannel`'s own | TCP | dialling, connections from outside, readiness |
//! | `QuicChannel`'s own | QUIC | tickets, and the flows that share a connection |
//!
//! [`AnyChannel`](super::any::AnyChannel) returns each set of calls only for a channel that has it.

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
    /// A regular interval is over. Connections of the kernel's TCP are sampled so.
    Interval,
    /// The pacer has visited the end, as it does at an interval, whether anything is due or not. So a flow
    /// that is silent sees the state of a connection that it shares.
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

    /// True if the channel is or was open.
    fn was_open(&self) -> bool;

    /// The progress of this end. `has_written` is true if its application has written all messages that it
    /// ever will. `is_over` is true once the time to send is over.
    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress;

    /// Takes the failure that ended the flow before its time, if there was one.
    fn take_failure(&mut self) -> Option<String>;

    /// The channel's state and when it was read, if this channel is sampled on this occasion.
    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)>;

    /// The number of echoes whose rows the memory budget has already paid for, when their messages came
    /// ([`super::messages::Incoming`]).
    fn paid_rows(&self) -> u64;

    /// Writes the channel's counts into `totals`.
    fn count(&self, totals: &mut EndTotals);
}

/// A channel whose packets are datagrams of a UDP socket.
pub(super) trait DatagramChannel {
    /// The token that this flow's datagrams carry.
    fn token(&self) -> u32;

    /// Sets the socket and the address that this flow's datagrams are sent to.
    fn set_route(&mut self, route: UdpRoute);

    /// Takes a datagram that was received for this flow. Returns true if it is one of the flow's. If
    /// `wants_data`, the channel keeps the datagram's bytes for the application's read.
    fn handle_datagram(&mut self, datagram: &Received<'_>, wants_data: bool) -> bool;
}

/// A channel whose protocol runs in this process, on top of UDP.
pub(super) trait OwnProtocol {
    /// Takes note that the application's turn is over. `has_read_all` is true unless the application lets
    /// messages wait. `is_finished` is true if the application will write nothing further.
    fn finish_turn(&mut self, has_read_all: bool, is_finished: bool);

    /// Ends the connection, because the run is over and the application `has_written_all`. One more turn of
    /// the application follows.
    fn close(&mut self, has_written_all: bool);

    /// True if nothing is left to wait for after the run.
    fn is_closed(&self, has_written_all: bool) -> bool;

    /// How late the protocol's timers fired.
    fn lateness(&self) -> &Histogram;
}
