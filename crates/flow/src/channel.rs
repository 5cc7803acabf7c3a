//! What an application writes to and reads from: a transport of ours, a kernel's socket, or one flow of a
//! connection that carries several.
//!
//! A channel moves no message by itself. The application calls it in the order that `application` documents,
//! and the arena decides when: at a packet, at a deadline, when a socket is readable or writable.
//!
//! Several flows may share one connection: each has its own application, and the [`FlowId`] in each call says
//! which flow the call is about. A message may expire ([`Write::expires`]): a channel that supports it
//! refuses the message once it is expired, and drops it if it expires before it left.
//!
//! | what differs by need | who implements it |
//! | --- | --- |
//! | what leaves, and when it left | [`Channel::flush`]: ours emit packets there, a kernel by itself |
//! | what the time is within a turn | [`Channel::now`]: virtual time does not move, real time does |
//! | when a flow's clock begins | [`Channel::opened_at`]: at a handshake's end, or at a set time |
//! | when a message came to the host | [`Read::came_at`]: a kernel stamps packets |
//! | how much a turn may do | [`Channel::MAX_TURN`]: other flows wait for the same thread |

use talkpath_measure::DropCause;
use talkpath_units::{Bytes, Instant};
use talkpath_wire::{Delivery, Message, Observation};

use crate::taps::{FlowTaps, Side};

/// One flow of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// What an application wants to write: a message, or its remaining bytes.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Which flow of the connection it belongs to.
    pub flow: FlowId,
    /// The message; its size is what was not written yet.
    pub message: Message,
    /// Whether a part of the message was written before.
    pub is_begun: bool,
    /// Bytes of the message that were written since the application began to try.
    pub written: Bytes,
    /// The message is of no use if it has not left by then.
    pub expires: Option<Instant>,
}

/// What became of a [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// This many bytes were taken, at least one: all of a datagram, a part of a stream's message perhaps.
    Taken(Bytes),
    /// There is no room for it now.
    NoRoom,
    /// It was not taken and never will be.
    Refused,
    /// The host has no network for it, or may not send it: it never leaves.
    NoNetwork,
    /// The connection is not open, not yet or not any more: it never leaves.
    NotOpen,
    /// It expired before it was taken.
    Expired,
}

/// What one read returned.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// A message, or more bytes of a stream.
    pub delivery: Delivery,
    /// When it came to the host, where that is when an application that reads at once has it; `None` counts
    /// it when it is read.
    pub came_at: Option<Instant>,
    /// Since when the host may have held a part of the read, if that is earlier than `came_at`: a kernel
    /// stamps what it merged as the last piece.
    pub held_since: Option<Instant>,
    /// Of a stream with messages of varying size: those whose frame ends in these bytes, by number and size.
    pub begun: &'a [(u64, Bytes)],
    /// Its bytes, where they are more than a count.
    pub data: &'a [u8],
}

/// Where an application writes to and reads from. Calls name the flow that they are about; a connection with
/// a single flow need not look.
pub trait Channel {
    /// Reads, and messages written, of one turn; the application's next turn does the rest.
    const MAX_TURN: usize = usize::MAX;
    /// Whether a stream's reads and writes are cut as its socket likes: a read may leave bytes behind, so
    /// that the application reads, writes and reads again, and a write takes as much as fits.
    const IN_PARTS: bool = false;

    /// The time within a turn that began at `now`.
    fn now(&mut self, now: Instant) -> Instant {
        now
    }
    /// Whether messages are taken.
    fn is_open(&self) -> bool;
    /// Since when they are, asked in the first turn that finds the channel open. A channel that opens at a
    /// set time says that time: what a late host misses was due all the same.
    fn opened_at(&self, now: Instant) -> Instant {
        now
    }
    /// Takes a message, or a part of a message. What was taken leaves by [`Channel::flush`].
    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome;
    /// One read of at most `limit` bytes (a datagram counts as a whole).
    fn read(&mut self, flow: FlowId, limit: Bytes, now: Instant) -> Option<Read<'_>>;
    /// Room for the next message; zero while the channel is not open.
    fn writable(&mut self, flow: FlowId) -> Bytes;
    /// Whether a message of `size` may be written now: there is room for it, or for a part if even an empty
    /// buffer would not have room for all. A channel of streams has to say it; one of datagrams takes a
    /// message whole.
    fn takes(&mut self, flow: FlowId, size: Bytes) -> bool {
        self.writable(flow) >= size
    }
    /// Lets leave what may leave, and notes in `taps` what became of the messages of `flow` that the end on
    /// `side` wrote: on the wire, dropped by the sender's own queue, expired.
    fn flush(&mut self, flow: FlowId, side: Side, taps: &mut FlowTaps, now: Instant);
    /// The number of a message that arrived and that nobody will read, and why it was dropped. One a call,
    /// until `None`.
    fn poll_dropped(&mut self, _flow: FlowId) -> Option<(u64, DropCause)> {
        None
    }
    /// When the channel itself wants to be served; [`Instant::MAX`] is never.
    fn poll_timeout(&self) -> Instant;
    /// The channel's state, for series and means.
    fn observe(&self) -> Observation;
}
