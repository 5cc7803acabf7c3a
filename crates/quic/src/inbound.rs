//! What came for the flows of an end, whoever its far end is.

use bytes::Bytes;
use quinn_proto::Connection;
use talkpath_units::{Bytes as Size, Instant};
use talkpath_wire::{Delivery, QuicPiece};

use crate::arriving::Arriving;
use crate::ready::ReadyFlows;
use crate::receiving::{DiscardCause, Receiving};

/// What came and was not read.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// In the simulator: a packet names its messages, and nobody looks at their bytes.
    Numbered(Receiving),
    /// Between real hosts: the messages' own bytes.
    Real(Arriving),
}

impl Inbound {
    /// What comes from now on came in a packet at `came_at`.
    pub(crate) fn note_arrival(&mut self, came_at: Instant) {
        if let Self::Real(arriving) = self {
            arriving.note_arrival(came_at);
        }
    }

    /// A packet with these pieces is coming.
    pub(crate) fn learn(&mut self, pieces: &[QuicPiece]) {
        if let Self::Numbered(receiving) = self {
            receiving.learn(pieces);
        }
    }

    /// The engine has handled a packet with these pieces. `is_read` is true if it had the keys to it.
    pub(crate) fn on_handled(
        &mut self,
        mut connection: Option<&mut Connection>,
        pieces: &[QuicPiece],
        is_read: bool,
        ready: &mut ReadyFlows,
    ) {
        match (self, connection.as_deref_mut()) {
            (Self::Numbered(receiving), _) => receiving.on_handled(connection, pieces, is_read, ready),
            (Self::Real(arriving), Some(connection)) => arriving.take_datagrams(connection, ready),
            (Self::Real(_), None) => {}
        }
    }

    /// The far end opened streams.
    pub(crate) fn accept(&mut self, connection: &mut Connection, ready: &mut ReadyFlows) {
        match self {
            Self::Numbered(receiving) => receiving.accept(connection, ready),
            Self::Real(arriving) => arriving.accept(connection, ready),
        }
    }

    /// A stream has something to read, or was reset.
    pub(crate) fn on_readable(&mut self, connection: &mut Connection, id: u64, ready: &mut ReadyFlows) {
        match self {
            Self::Numbered(receiving) => receiving.on_readable(connection, id, ready),
            Self::Real(arriving) => arriving.on_readable(connection, id, ready),
        }
    }

    /// See [`crate::End::is_readable`].
    pub(crate) fn is_readable(&self, flow: usize) -> bool {
        match self {
            Self::Numbered(receiving) => receiving.is_readable(flow),
            Self::Real(_) => false,
        }
    }

    /// See [`crate::End::read`].
    pub(crate) fn read(&mut self, connection: &mut Connection, flow: usize, limit: Size) -> Option<Delivery> {
        match self {
            Self::Numbered(receiving) => receiving.read(connection, flow, limit),
            Self::Real(_) => None,
        }
    }

    /// See [`crate::End::poll_dropped`].
    pub(crate) fn poll_dropped(&mut self, flow: usize) -> Option<(u64, DiscardCause)> {
        match self {
            Self::Numbered(receiving) => receiving.poll_dropped(flow),
            Self::Real(_) => None,
        }
    }

    /// See [`crate::End::keep_half_messages`].
    pub(crate) fn keep_half_messages(&mut self, room: u64) {
        match self {
            Self::Numbered(_) => {}
            Self::Real(arriving) => arriving.keep_half_messages(room),
        }
    }

    /// See [`crate::End::name_flow`].
    pub(crate) fn name_flow(&mut self, flow: usize, token: u32) {
        match self {
            Self::Numbered(_) => {}
            Self::Real(arriving) => arriving.name_flow(flow, token),
        }
    }

    /// See [`crate::End::read_stamped`].
    pub(crate) fn read_bytes(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        limit: Size,
    ) -> Option<(Bytes, Instant)> {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        match self {
            Self::Numbered(_) => None,
            Self::Real(arriving) => arriving.read(connection, flow, limit),
        }
    }

    /// See [`crate::StreamFailure::Reset`]. No end of the simulator resets a stream of several messages.
    pub(crate) fn reset(&self, flow: usize) -> Option<u64> {
        match self {
            Self::Numbered(_) => None,
            Self::Real(arriving) => arriving.reset(flow),
        }
    }

    /// See [`crate::End::poll_dropped_bytes`].
    pub(crate) fn poll_dropped_bytes(&mut self, flow: usize) -> Option<Bytes> {
        match self {
            Self::Numbered(_) => None,
            Self::Real(arriving) => arriving.poll_dropped(flow),
        }
    }
}
