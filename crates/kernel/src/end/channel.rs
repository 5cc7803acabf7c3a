//! The calls of an end to its flow's channel, besides those of the application.
//!
//! Most calls concern one or two kinds of channel. The others keep the default, which does nothing.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use talkpath_flow::Channel;
use talkpath_measure::LegTap;
use talkpath_units::{Histogram, Instant};
use talkpath_wire::Observation;

use super::dial::Dial;
use super::packets::PacketNotes;
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

    /// Sets the socket and the address that this flow's datagrams are sent to.
    fn set_route(&mut self, _route: UdpRoute) {}

    /// As `set_route`, and makes the channel read that socket by itself, whenever the application is ready.
    fn read_from(&mut self, _route: UdpRoute) {}

    /// From now on the channel notes which messages each packet carries, if its packets are encrypted.
    fn note_packets(&mut self, _notes: Arc<PacketNotes>) {}

    /// Sets the address to which a client's end connects when the flow starts.
    fn set_dial(&mut self, _dial: Dial) {}

    /// Takes over an open connection, and the bytes that were read from it together with the opening line.
    /// Returns true if it does. A channel that already has a connection closes the new one.
    ///
    /// # Errors
    /// The system's, if epoll refuses the connection.
    fn adopt(&mut self, _connection: (TcpStream, &[u8]), _epoll: &OwnedFd, _index: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// If the flow's first messages leave with a 0-RTT ticket: opens a client's connection before the run,
    /// and waits for its ticket until `is_over`.
    ///
    /// # Errors
    /// Why there is no ticket.
    fn fetch_ticket(&mut self, _is_over: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// Takes a datagram that was received for this flow. Returns true if it is one of the flow's. If
    /// `wants_data`, the channel keeps the datagram's bytes for the application's read.
    fn handle_datagram(&mut self, _datagram: &Received<'_>, _wants_data: bool) -> bool {
        false
    }

    /// Handles a change of the socket's readiness. It happened at or after `looked`, when this thread last
    /// polled the socket. Returns true if the connection is open.
    fn handle_ready(&mut self, _looked: Instant) -> bool {
        false
    }

    /// Reads and throws away the data that arrived, at an end that reads no messages.
    fn discard(&mut self) {}

    /// Lets leave what the application wrote in its turn, and notes in `tap` what the kernel would not take.
    fn depart(&mut self, _tap: Option<&mut LegTap>) {}

    /// The application's turn begins, in which it learns what is new.
    fn begin_turn(&mut self) {}

    /// Takes a flow of the connection for which there is something new, by its place there: it gets a turn.
    fn take_ready(&self) -> Option<usize> {
        None
    }

    /// Takes note that the application's turn is over. `has_read_all` is true unless the application lets
    /// messages wait. `is_finished` is true if the application will write nothing further.
    fn finish_turn(&mut self, _has_read_all: bool, _is_finished: bool) {}

    /// Ends the connection of a protocol of our own, because the run is over and the application
    /// `has_written_all`. Returns true if the application gets one more turn.
    fn close(&mut self, _has_written_all: bool) -> bool {
        false
    }

    /// True if nothing is left to wait for after the run.
    fn is_closed(&self, _has_written_all: bool) -> bool {
        true
    }

    /// True if the channel is or was open.
    fn was_open(&self) -> bool;

    /// The progress of this end. `has_written` is true if its application has written all messages that it
    /// ever will. `is_over` is true once the time to send is over.
    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress;

    /// Takes the failure that ended the flow before its time, if there was one.
    fn take_failure(&mut self) -> Option<String> {
        None
    }

    /// The channel's state and when it was read, if this channel is sampled on this occasion.
    fn sample(&mut self, occasion: Occasion) -> Option<(Observation, Instant)>;

    /// The token that this flow's datagrams carry. `None` for a connection of the kernel's TCP.
    fn token(&self) -> Option<u32> {
        None
    }

    /// The number of the message in a sent `packet`, which the kernel returned with all headers, and the time
    /// at which the packet left.
    fn sent_message(&self, _packet: &[u8], _stamp_ns: Option<i64>) -> Option<(u64, Instant)> {
        None
    }

    /// Takes the numbers of the messages that still wait in a socket that this end reads by itself.
    fn drain_socket(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// How late the timers of a protocol of our own fired. `None` for the kernel's protocols.
    fn lateness(&self) -> Option<&Histogram> {
        None
    }

    /// The number of echoes whose rows the memory budget has already paid for, when their messages came
    /// ([`super::messages::Incoming`]).
    fn paid_rows(&self) -> u64 {
        0
    }

    /// Writes the channel's counts into `totals`.
    fn count(&self, totals: &mut EndTotals);
}
