//! What an end asks of its flow's channel besides what the application does.
//!
//! Most calls concern few channels. A channel leaves out what does not concern it.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use talkpath_flow::Channel;
use talkpath_units::{Histogram, Instant};

use super::dial::Dial;
use super::route::UdpRoute;
use crate::clock::RunClock;
use crate::log::{EndTotals, StateSample};
use crate::progress::EndProgress;

/// When a channel's state may be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The application's turn is over.
    Turn,
    /// What was due is done, and the turn after it is over.
    Timeout,
    /// A connection that the kernel serves is looked at, at regular intervals.
    Interval,
}

/// A channel on a real host.
pub(super) trait HostChannel: Channel {
    /// The run's clock is known now.
    fn set_clock(&mut self, clock: RunClock);

    /// From now on this flow's datagrams go this way.
    fn set_route(&mut self, _route: UdpRoute) {}

    /// The same, and what comes is read from that socket when the application is ready.
    fn read_from(&mut self, _route: UdpRoute) {}

    /// Says whom a client's end connects to when the flow starts.
    fn set_dial(&mut self, _dial: Dial) {}

    /// Takes over a connection that is open already, of which `unread` was read with the opening line;
    /// returns whether it does. An end that has its connection lets go of another.
    ///
    /// # Errors
    /// The system's, if the connection cannot be watched.
    fn adopt(&mut self, _connection: (TcpStream, &[u8]), _epoll: &OwnedFd, _index: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// A datagram came; returns whether it is one of this flow's. Its data is kept to be read if
    /// `wants_data`.
    fn handle_datagram(&mut self, _payload: &[u8], _stamp_ns: Option<i64>, _wants_data: bool) -> bool {
        false
    }

    /// The socket's readiness changed, and since `looked` this thread would have seen it; returns whether the
    /// connection is open.
    fn handle_ready(&mut self, _looked: Instant) -> bool {
        false
    }

    /// Throws away what comes to an end that wants nothing.
    fn discard(&mut self) {}

    /// The application's turn is over. `has_read_all`: it does not let messages wait. `is_finished`: it will
    /// write nothing more.
    fn finish_turn(&mut self, _has_read_all: bool, _is_finished: bool) {}

    /// The run is over: a protocol that runs here ends its connection, if `has_written_all`; returns whether
    /// the application gets one more turn.
    fn close(&mut self, _has_written_all: bool) -> bool {
        false
    }

    /// Whether there is nothing to wait for once the run is over.
    fn is_closed(&self, _has_written_all: bool) -> bool {
        true
    }

    /// Whether the channel is or was open.
    fn was_open(&self) -> bool;

    /// How far this end is. `has_written`: its application has written all that it ever will. `is_over`:
    /// sending has stopped.
    fn progress(&self, has_written: bool, is_over: bool) -> EndProgress;

    /// What ended the flow before its time, once.
    fn take_failure(&mut self) -> Option<String> {
        None
    }

    /// The channel's state, if it is to be noted on this occasion.
    fn sample(&mut self, occasion: Occasion) -> Option<StateSample>;

    /// What this flow's datagrams carry; `None` for a connection.
    fn token(&self) -> Option<u32> {
        None
    }

    /// The number of a sent datagram that came back, headers and all, and when it left.
    fn read_sent(&self, _packet: &[u8], _stamp_ns: Option<i64>) -> Option<(u64, Instant)> {
        None
    }

    /// The numbers of the messages that wait in a socket that this end reads by itself.
    fn take_unread(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// How late the protocol's timers fired, if it runs here.
    fn lateness(&self) -> Option<&Histogram> {
        None
    }

    /// Adds what was counted.
    fn count(&self, totals: &mut EndTotals);
}
