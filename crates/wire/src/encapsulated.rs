//! The packets of protocols of ours that real hosts carry in UDP datagrams, and their bytes. Their state
//! machines are in `transport`.

use talkpath_config::EncapsulatedKind;

use crate::carrier::{Carrier, NativeForm, Ports};
use crate::dccp::{DccpPacket, codec};

/// A packet of a protocol of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncapsulatedPacket {
    /// A DCCP packet. In a box, so that other packets do not grow by the room of its options.
    Dccp(Box<DccpPacket>),
}

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedPacket<'a> {
    /// Its header. Only the application knows which message the data is.
    pub packet: EncapsulatedPacket,
    /// Its ports.
    pub ports: Ports,
    /// Application data.
    pub data: &'a [u8],
}

impl EncapsulatedPacket {
    /// The protocol that the packet belongs to.
    #[inline]
    pub const fn kind(&self) -> EncapsulatedKind {
        match self {
            Self::Dccp(_) => EncapsulatedKind::Dccp,
        }
    }

    /// The length of the application data.
    #[inline]
    pub const fn payload(&self) -> u32 {
        match self {
            Self::Dccp(packet) => packet.payload,
        }
    }

    /// The length of what comes before the application data, bytes.
    #[inline]
    pub const fn header_size(&self) -> usize {
        match self {
            Self::Dccp(packet) => packet.header_size(),
        }
    }

    /// The bytes at the end of the application data that the checksum leaves out.
    pub fn unchecked_bytes(&self) -> u32 {
        match self {
            // RFC 4340 §9.2: with a coverage n above 0, the first 4 (n - 1) bytes of the data are covered.
            Self::Dccp(packet) => match u32::from(packet.cscov & 0xf).checked_sub(1) {
                None => 0,
                Some(words) => packet.payload.saturating_sub(4 * words),
            },
        }
    }

    /// The message that the application data is, if there is any.
    #[inline]
    pub const fn message(&self) -> u64 {
        match self {
            Self::Dccp(packet) => packet.message,
        }
    }

    /// Says which message the application data is.
    #[inline]
    pub fn set_message(&mut self, message: u64) {
        match self {
            Self::Dccp(packet) => packet.message = message,
        }
    }

    /// Appends its bytes to `out`, with `data` as the application data.
    #[inline]
    pub fn encode(&self, ports: Ports, data: &[u8], carrier: Carrier, out: &mut Vec<u8>) {
        match self {
            Self::Dccp(packet) => codec::encode(packet, ports, data, carrier, out),
        }
    }
}

/// Reads the packet that a UDP datagram of a flow over `kind` holds. `None` if it holds none.
pub fn decode(kind: EncapsulatedKind, datagram: &[u8]) -> Option<DecodedPacket<'_>> {
    match kind {
        EncapsulatedKind::Dccp => {
            let codec::Decoded { packet, ports, data } = codec::decode(datagram, Carrier::Udp).ok()?;
            Some(DecodedPacket { packet: packet.into(), ports, data })
        }
    }
}

/// Finds the application data in the packet that [`decode`] reads.
pub fn data_in(kind: EncapsulatedKind, datagram: &[u8]) -> Option<&[u8]> {
    match kind {
        EncapsulatedKind::Dccp => codec::decode(datagram, Carrier::Udp).ok().map(|decoded| decoded.data),
    }
}

/// The form in which packets of `kind` travel without UDP. `None` if they never do.
pub const fn native_form(kind: EncapsulatedKind) -> Option<NativeForm> {
    match kind {
        EncapsulatedKind::Dccp => Some(codec::NATIVE),
    }
}

impl From<DccpPacket> for EncapsulatedPacket {
    fn from(packet: DccpPacket) -> Self {
        Self::Dccp(Box::new(packet))
    }
}
