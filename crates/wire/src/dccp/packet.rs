//! DCCP packets (RFC 4340 §5): header fields, options and the length of the application data.
//!
//! ```text
//!   generic header, 16 B, or 12 B with short sequence numbers      §5.1
//!   acknowledgement number, 8 or 4 B                               all but Request and Data
//!   service code, or reset code and its data, 4 B                  Request, Response; Reset
//!   options, padded to a multiple of 4 B                           §5.8
//!   application data
//! ```
//!
//! Ports and the checksum are left to the codec, because a state machine has one peer, and nothing on our
//! links corrupts packets.

use super::{Options, Seq};

/// A DCCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DccpPacket {
    /// Its type, with the fields that this type alone has.
    pub kind: PacketKind,
    /// CCVal: four bits for the sending half-connection's CCID (RFC 4340 §5.1).
    pub ccval: u8,
    /// Checksum Coverage (RFC 4340 §9.2): 0 covers all, 1 the header alone, n the first 4 (n - 1) bytes of
    /// data too.
    pub cscov: u8,
    /// True if `seq` and `ack` are short, that is have 24 bits (RFC 4340 §7.6).
    pub short: bool,
    /// True if a Data Checksum option contradicts the data (RFC 4340 §9.3), which the codec finds out.
    pub corrupt: bool,
    /// Sequence Number.
    pub seq: Seq,
    /// Acknowledgement Number, or 0 if the type has none.
    pub ack: Seq,
    /// The length of the application data.
    pub payload: u32,
    /// The message that the application data is, if there is any.
    pub message: u64,
    /// Options, in order.
    pub options: Options,
}

/// The packet types (RFC 4340 §5.1, table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Begins a connection (§5.2).
    Request {
        /// What the client wants to talk to (§8.1.2).
        service: ServiceCode,
    },
    /// The server's answer (§5.3).
    Response {
        /// The service code of the Request.
        service: ServiceCode,
    },
    /// Application data (§5.4).
    Data,
    /// An acknowledgement (§5.4).
    Ack,
    /// Application data and an acknowledgement (§5.4).
    DataAck,
    /// The server asks the client to close (§5.5).
    CloseReq,
    /// Closes the connection (§5.5).
    Close,
    /// Ends the connection (§5.6).
    Reset(Reset),
    /// Requests the peer's sequence numbers (§5.7).
    Sync,
    /// Answers a Sync (§5.7).
    SyncAck,
}

/// What a Reset says (RFC 4340 §5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Reset Code.
    pub code: ResetCode,
    /// Data 1 to 3, by code.
    pub data: [u8; 3],
}

/// Why a connection was reset (RFC 4340 §5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResetCode(pub u8);

/// Names the application-level service (RFC 4340 §8.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServiceCode(pub u32);

impl Reset {
    /// A Reset with this code and no data.
    #[inline]
    pub const fn with_code(code: ResetCode) -> Self {
        Self { code, data: [0; 3] }
    }
}

impl ResetCode {
    /// No reason is given.
    pub const UNSPECIFIED: Self = Self(0);
    /// The normal end.
    pub const CLOSED: Self = Self(1);
    /// The peer makes no progress, so the connection was given up.
    pub const ABORTED: Self = Self(2);
    /// There is no such connection.
    pub const NO_CONNECTION: Self = Self(3);
    /// A packet of an unexpected type; data 1 holds the type.
    pub const PACKET_ERROR: Self = Self(4);
    /// An option was in error; data 1 to 3 hold its type and its first two bytes.
    pub const OPTION_ERROR: Self = Self(5);
    /// A Mandatory option could not be processed; data as for [`ResetCode::OPTION_ERROR`].
    pub const MANDATORY_ERROR: Self = Self(6);
    /// No server listens, or it does not want this client.
    pub const CONNECTION_REFUSED: Self = Self(7);
    /// The service code is not the server's.
    pub const BAD_SERVICE_CODE: Self = Self(8);
    /// The server is too busy now.
    pub const TOO_BUSY: Self = Self(9);
    /// An Init Cookie did not fit.
    pub const BAD_INIT_COOKIE: Self = Self(10);
    /// The peer has been found misbehaving (§12.3).
    pub const AGGRESSION_PENALTY: Self = Self(11);
    /// The UDP ports belong to another connection (RFC 6773 §3.8).
    pub const ENCAPSULATED_PORT_REUSE: Self = Self(12);
}

impl ServiceCode {
    /// No service code was given (RFC 4340 §8.1.2).
    pub const NONE: Self = Self(0);
}

impl PacketKind {
    /// The type's number (RFC 4340 §5.1, table 1).
    #[inline]
    pub const fn number(self) -> u8 {
        match self {
            Self::Request { .. } => 0,
            Self::Response { .. } => 1,
            Self::Data => 2,
            Self::Ack => 3,
            Self::DataAck => 4,
            Self::CloseReq => 5,
            Self::Close => 6,
            Self::Reset(_) => 7,
            Self::Sync => 8,
            Self::SyncAck => 9,
        }
    }

    /// Returns true if the type has an acknowledgement number (RFC 4340 §5.2 and §5.4: all but Request and
    /// Data).
    #[inline]
    pub const fn has_ack(self) -> bool {
        !matches!(self, Self::Request { .. } | Self::Data)
    }

    /// Returns true if the type can carry data to the application (RFC 4340 §7.7.1 counts the others as
    /// non-data packets).
    #[inline]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Request { .. } | Self::Response { .. } | Self::Data | Self::DataAck)
    }

    /// Returns true if the type may have short sequence numbers (RFC 4340 §5.1).
    #[inline]
    pub const fn may_be_short(self) -> bool {
        matches!(self, Self::Data | Self::Ack | Self::DataAck)
    }
}

impl DccpPacket {
    /// A packet of this kind without options or data.
    #[inline]
    pub const fn new(kind: PacketKind, seq: Seq, ack: Seq) -> Self {
        Self {
            kind,
            ccval: 0,
            cscov: 0,
            short: false,
            corrupt: false,
            seq,
            ack,
            payload: 0,
            message: 0,
            options: Options::EMPTY,
        }
    }

    /// The length of what comes before the options, bytes.
    #[inline]
    pub const fn fixed_header_size(&self) -> usize {
        let (generic, ack) = if self.short { (12, 4) } else { (16, 8) };
        let own = match self.kind {
            PacketKind::Request { .. } | PacketKind::Response { .. } | PacketKind::Reset(_) => 4,
            _ => 0,
        };
        generic + own + if self.kind.has_ack() { ack } else { 0 }
    }

    /// The length of header and padded options, bytes. Data Offset says it.
    #[inline]
    pub const fn header_size(&self) -> usize {
        self.fixed_header_size() + self.options.padded_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4340 §5.1 to §5.7, the header pictures.
    #[test]
    fn headers_have_the_sizes_of_the_pictures() {
        let size = |kind, short| {
            DccpPacket { short, ..DccpPacket::new(kind, Seq::new(1), Seq::new(2)) }.header_size()
        };
        assert_eq!(size(PacketKind::Request { service: ServiceCode::NONE }, false), 20);
        assert_eq!(size(PacketKind::Response { service: ServiceCode::NONE }, false), 28);
        assert_eq!((size(PacketKind::Data, false), size(PacketKind::Data, true)), (16, 12));
        assert_eq!((size(PacketKind::Ack, false), size(PacketKind::DataAck, true)), (24, 16));
        assert_eq!(size(PacketKind::Reset(Reset { code: ResetCode::CLOSED, data: [0; 3] }), false), 28);
        assert_eq!((size(PacketKind::Sync, false), size(PacketKind::CloseReq, false)), (24, 24));
    }
}
