//! Defines packets as typed header fields and payload lengths, without bytes. Only codecs make bytes.

use talkpath_units::{Bytes, SeqNum};

use crate::encapsulated::EncapsulatedPacket;

/// One IP packet of some transport, before fragmentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A UDP datagram.
    Udp(Datagram),
    /// A TCP segment.
    Tcp(Segment),
    /// A packet of a protocol of ours that real hosts carry in UDP datagrams.
    Encapsulated(EncapsulatedPacket),
    /// A UDP datagram with QUIC packets. In a box, so that other packets do not grow.
    Quic(Box<QuicPacket>),
}

/// A UDP datagram with QUIC packets (RFC 9000 §12.2), as its bytes. A library of its own makes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicPacket {
    /// The payload of the UDP datagram.
    pub bytes: Vec<u8>,
    /// The messages that it carries. The number of a message is not on the wire, as with the other transports
    /// here.
    pub pieces: Vec<QuicPiece>,
}

/// A frame with application data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicPiece {
    /// The index of the flow in the connection.
    pub flow: u32,
    /// The number of its stream. `None` stands for a DATAGRAM frame.
    pub stream: Option<u64>,
    /// The number of the message, or 0 on a stream that carries all messages.
    pub seq: u64,
}

/// A UDP datagram (RFC 768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The message it carries.
    pub seq: u64,
    /// Payload bytes.
    pub payload: u32,
}

/// A TCP segment (RFC 9293 §3.1) with the options that our TCP speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first payload byte, or of the SYN.
    pub seq: SeqNum,
    /// Acknowledgement number, if `flags` has ACK.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// The window field as it is sent, before scaling.
    pub window: u16,
    /// Payload bytes.
    pub payload: u32,
    /// The SACK blocks, of which the first `sack_count` are in use (RFC 2018 §3).
    pub sack: [SackBlock; 3],
    /// The number of blocks in `sack`.
    pub sack_count: u8,
    /// The other options.
    pub options: SegmentOptions,
}

/// The options of a segment except SACK. One byte says which options are present, so that a packet stays
/// small. A network copies it at each hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Which options are present, as [`SegmentOptions::MSS`] and the others say. An absent one is 0.
    has: u8,
    window_scale: u8,
    mss: u16,
    timestamps: (u32, u32),
}

/// One block of a SACK option: received bytes `left..right`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte received.
    pub left: SeqNum,
    /// One past the last byte received.
    pub right: SeqNum,
}

/// TCP control bits (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The sender sends no further data.
    pub const FIN: Self = Self(1);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(2);
    /// Reset the connection.
    pub const RST: Self = Self(4);
    /// Push.
    pub const PSH: Self = Self(8);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(16);
    /// ECN-Echo: a packet arrived with a mark (RFC 3168 §6.1.3).
    pub const ECE: Self = Self(64);
    /// Congestion window reduced (RFC 3168 §6.1.2).
    pub const CWR: Self = Self(128);
    /// No bit.
    pub const NONE: Self = Self(0);

    /// Returns the bits that are set in either of the two.
    #[must_use]
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if exactly the bits of `other` are set among those in `mask`.
    #[inline]
    pub const fn are_just(self, other: Self, mask: Self) -> bool {
        self.0 & mask.0 == other.0
    }

    /// Returns true if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl SegmentOptions {
    const MSS: u8 = 1;
    const WINDOW_SCALE: u8 = 2;
    const SACK_PERMITTED: u8 = 4;
    const TIMESTAMPS: u8 = 8;

    /// The same with the maximum segment size.
    #[must_use]
    #[inline]
    pub const fn with_mss(self, mss: u16) -> Self {
        Self { mss, has: self.has | Self::MSS, ..self }
    }

    /// The same with the window scale, if it is given.
    #[must_use]
    #[inline]
    pub const fn with_window_scale(self, shift: Option<u8>) -> Self {
        match shift {
            Some(window_scale) => Self { window_scale, has: self.has | Self::WINDOW_SCALE, ..self },
            None => self,
        }
    }

    /// The same with SACK-permitted, or without it.
    #[must_use]
    #[inline]
    pub const fn with_sack_permitted(self, permitted: bool) -> Self {
        let others = self.has & !Self::SACK_PERMITTED;
        Self { has: if permitted { others | Self::SACK_PERMITTED } else { others }, ..self }
    }

    /// The same with the timestamps, if they are given.
    #[inline]
    #[must_use]
    pub const fn with_timestamps(self, timestamps: Option<(u32, u32)>) -> Self {
        match timestamps {
            Some(timestamps) => Self { timestamps, has: self.has | Self::TIMESTAMPS, ..self },
            None => self,
        }
    }
}

impl Packet {
    /// The length of the application data.
    #[inline]
    pub const fn payload(&self) -> Bytes {
        match self {
            Self::Udp(datagram) => Bytes::new(datagram.payload as u64),
            Self::Tcp(segment) => Bytes::new(segment.payload as u64),
            Self::Encapsulated(packet) => Bytes::new(packet.payload() as u64),
            Self::Quic(packet) => Bytes::new(packet.bytes.len() as u64),
        }
    }

    /// The length of the IPv4 packet: its header, the transport header with options, and the payload.
    #[inline]
    pub const fn wire_size(&self) -> Bytes {
        match self {
            Self::Udp(datagram) => Bytes::new(IPV4_HEADER + UDP_HEADER + datagram.payload as u64),
            Self::Tcp(segment) => Bytes::new(segment.wire_size() as u64),
            Self::Encapsulated(packet) => {
                Bytes::new(IPV4_HEADER + packet.header_size() as u64 + packet.payload() as u64)
            }
            Self::Quic(packet) => Bytes::new(IPV4_HEADER + UDP_HEADER + packet.bytes.len() as u64),
        }
    }

    /// Returns true if the application may have something to read when the packet has arrived.
    #[inline]
    pub const fn carries_data(&self) -> bool {
        match self {
            Self::Udp(_) => true,
            Self::Tcp(segment) => segment.payload > 0,
            Self::Encapsulated(packet) => packet.payload() > 0,
            Self::Quic(packet) => !packet.pieces.is_empty(),
        }
    }

    /// The number of the message that is lost for good if the packet is lost. `None` if the packet carries no
    /// message, or if the message is sent again.
    #[inline]
    pub const fn message(&self) -> Option<u64> {
        match self {
            Self::Udp(datagram) => Some(datagram.seq),
            Self::Encapsulated(packet) if packet.payload() > 0 => Some(packet.message()),
            // A QUIC packet may carry several messages (see [`QuicPacket::messages`]).
            Self::Encapsulated(_) | Self::Tcp(_) | Self::Quic(_) => None,
        }
    }
}

impl QuicPacket {
    /// The messages that are lost for good if the packet is lost, each as the index of its flow in the
    /// connection and its number.
    #[inline]
    pub fn messages(&self) -> impl Iterator<Item = (u32, u64)> {
        self.pieces.iter().filter(|piece| piece.stream.is_none()).map(|piece| (piece.flow, piece.seq))
    }
}

impl Segment {
    /// The maximum segment size option. Only a SYN has it (RFC 9293 §3.7.1).
    #[inline]
    pub const fn mss(&self) -> Option<u16> {
        if self.options.has & SegmentOptions::MSS != 0 { Some(self.options.mss) } else { None }
    }

    /// The window scale option. Only a SYN has it (RFC 7323 §2).
    #[inline]
    pub const fn window_scale(&self) -> Option<u8> {
        let is_there = self.options.has & SegmentOptions::WINDOW_SCALE != 0;
        if is_there { Some(self.options.window_scale) } else { None }
    }

    /// Returns true if the segment has the SACK-permitted option. Only a SYN has it (RFC 2018 §2).
    #[inline]
    pub const fn sack_permitted(&self) -> bool {
        self.options.has & SegmentOptions::SACK_PERMITTED != 0
    }

    /// The timestamps option, TSval and TSecr (RFC 7323 §3).
    #[inline]
    pub const fn timestamps(&self) -> Option<(u32, u32)> {
        let is_there = self.options.has & SegmentOptions::TIMESTAMPS != 0;
        if is_there { Some(self.options.timestamps) } else { None }
    }

    /// The same as [`Packet::wire_size`], in bytes. 32 bits are enough, because an IPv4 packet has at most
    /// 65,535 B (RFC 791 §3.1).
    #[inline]
    pub const fn wire_size(&self) -> u32 {
        (IPV4_HEADER + TCP_HEADER + self.options_size() + self.payload as u64) as u32
    }

    /// The length of the options, padded to a multiple of four bytes.
    ///
    /// The layout is Linux's: on a SYN, SACK-permitted fills the padding before the timestamps; elsewhere
    /// timestamps take 12 bytes and SACK blocks 4 + 8 n.
    #[inline]
    pub const fn options_size(&self) -> u64 {
        let sack = if self.sack_count > 0 { 4 + 8 * self.sack_count as u64 } else { 0 };
        if self.flags.contains(Flags::SYN) {
            return self.syn_options_size() + sack;
        }
        sack + if self.timestamps().is_some() { 12 } else { 0 }
    }

    const fn syn_options_size(&self) -> u64 {
        let mut size = 0;
        if self.mss().is_some() {
            size += 4;
        }
        if self.timestamps().is_some() {
            size += 12;
        } else if self.sack_permitted() {
            size += 4;
        }
        if self.window_scale().is_some() {
            size += 4;
        }
        size
    }
}

/// An IPv4 header without options (RFC 791 §3.1).
pub const IPV4_HEADER: u64 = 20;
/// A UDP header (RFC 768).
pub const UDP_HEADER: u64 = 8;
/// A TCP header without options (RFC 9293 §3.1).
pub const TCP_HEADER: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transmit;

    #[test]
    fn wire_sizes_count_headers_and_padded_options() {
        let stamped = SegmentOptions::default().with_timestamps(Some((1, 2)));
        let data = Segment { payload: 1448, options: stamped, ..Segment::default() };
        assert_eq!(Packet::Tcp(data).wire_size(), Bytes::new(1500));
        let options = SegmentOptions::default()
            .with_mss(1460)
            .with_window_scale(Some(7))
            .with_sack_permitted(true)
            .with_timestamps(Some((1, 0)));
        let syn = Segment { flags: Flags::SYN, options, ..Segment::default() };
        assert_eq!(Packet::Tcp(syn).wire_size(), Bytes::new(60));
        assert_eq!(Packet::Udp(Datagram { seq: 0, payload: 160 }).wire_size(), Bytes::new(188));
    }

    /// A transmit is copied at each hop of a simulated path, so it must not grow unnoticed.
    #[test]
    fn a_transmit_stays_small() {
        assert!(size_of::<Transmit>() <= 96, "{} B", size_of::<Transmit>());
    }
}
