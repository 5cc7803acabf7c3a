//! What came for the flows of an end, whoever its far end is.

use bytes::Bytes;
use quinn_proto::Connection;
use talkpath_transport::{Delivery, QuicPiece};
use talkpath_units::Bytes as Size;

use crate::arriving::Arriving;
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
    ) {
        match (self, connection.as_deref_mut()) {
            (Self::Numbered(receiving), _) => receiving.on_handled(connection, pieces, is_read),
            (Self::Real(arriving), Some(connection)) => arriving.take_datagrams(connection),
            (Self::Real(_), None) => {}
        }
    }

    /// The far end opened streams.
    pub(crate) fn accept(&mut self, connection: &mut Connection) {
        match self {
            Self::Numbered(receiving) => receiving.accept(connection),
            Self::Real(arriving) => arriving.accept(connection),
        }
    }

    /// A stream has something to read, or was reset.
    pub(crate) fn on_readable(&mut self, connection: &mut Connection, id: u64) {
        match self {
            Self::Numbered(receiving) => receiving.on_readable(connection, id),
            Self::Real(arriving) => arriving.on_readable(connection, id),
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

    /// See [`crate::End::name_flow`].
    pub(crate) fn name_flow(&mut self, flow: usize, token: u32) {
        match self {
            Self::Numbered(_) => {}
            Self::Real(arriving) => arriving.name_flow(flow, token),
        }
    }

    /// See [`crate::End::read_bytes`].
    pub(crate) fn read_bytes(
        &mut self,
        connection: &mut Connection,
        flow: usize,
        limit: Size,
    ) -> Option<Bytes> {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        match self {
            Self::Numbered(_) => None,
            Self::Real(arriving) => arriving.read(connection, flow, limit),
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
