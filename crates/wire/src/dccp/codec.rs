//! The bytes of a DCCP packet (RFC 4340 §5), which travels as IP protocol 33 or inside UDP (RFC 6773).
//!
//! ```text
//!   byte   X = 1: long sequence numbers                     X = 0: short ones
//!   0      Source Port                 Dest Port            the same
//!   4      Data Offset   CCVal CsCov   Checksum             the same
//!   8      Res Type X    Reserved      Seq, high 16 bits    Res Type X   Seq, 24 bits
//!   12     Seq, low 32 bits                                 -
//!   then   Reserved, 16 bits           Ack, 48 bits         Reserved, 8 bits   Ack, 24 bits
//!          service or reset code, options, data             the same
//! ```
//!
//! Request and Data have no acknowledgement number. Inside UDP the header is the same. Its checksum is then 0
//! and not verified, because UDP's checksum covers the whole packet (RFC 6773 §3.3). Decoding is step 1 of
//! RFC 4340 §8.5. It reads only the given bytes, and copies at most [`Options::ROOM`] of them.

use super::{DccpOption, DccpPacket, Options, PacketKind, Reset, ResetCode, Seq, ServiceCode};
use crate::carrier::NativeForm;
pub use crate::carrier::{Carrier, Ports};

/// The form in which a packet travels without UDP.
pub(crate) const NATIVE: NativeForm = NativeForm {
    protocol: PROTOCOL as u8,
    // The port of DCCP inside UDP (RFC 6773 §5.1).
    udp_port: 6511,
    // The generic header with short sequence numbers (RFC 4340 §5.1).
    smallest_header: 12,
    checksum_at: CHECKSUM_AT,
    covered: |packet, whole| {
        let header = usize::from(packet[4]) * 4;
        match usize::from(packet[5] & 0xf) {
            0 => whole,
            coverage => whole.min(header + 4 * (coverage - 1)),
        }
    },
};

/// A packet as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The header and the options. `message` is not set: the application reads it from the data.
    pub packet: DccpPacket,
    /// The ports of the packet.
    pub ports: Ports,
    /// The application data.
    pub data: &'a [u8],
}

/// Why bytes are no packet. They are ignored (RFC 4340 §8.5 step 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There are fewer bytes than the header of the packet's type has.
    #[error("the packet is shorter than its header")]
    TooShort,
    /// The type is reserved.
    #[error("packet type {0} is not known")]
    UnknownType(u8),
    /// Data Offset points into the header, or past the end of the packet.
    #[error("the data offset, {0} B, is out of range")]
    DataOffset(usize),
    /// The type may not have short sequence numbers.
    #[error("packet type {0} has no short sequence numbers")]
    ShortNumbers(u8),
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Checksum Coverage is longer than the data.
    #[error("the checksum covers more than there is")]
    Coverage,
}

/// Appends the bytes of `packet` with `data` to `out`. The length of `data` takes the place of
/// `packet.payload`. The value of a Data Checksum option is computed here, because state machines have no
/// data.
pub fn encode(packet: &DccpPacket, ports: Ports, data: &[u8], carrier: Carrier, out: &mut Vec<u8>) {
    let start = out.len();
    let header = packet.header_size();
    out.extend_from_slice(&ports.source.to_be_bytes());
    out.extend_from_slice(&ports.destination.to_be_bytes());
    // Options::ROOM keeps the header below 256 words.
    out.extend_from_slice(&[(header / 4) as u8, packet.ccval << 4 | packet.cscov & 0xf, 0, 0]);
    let kind = packet.kind.number() << 1;
    let (seq, ack) = (packet.seq.get().to_be_bytes(), packet.ack.get().to_be_bytes());
    if packet.short {
        out.push(kind);
        out.extend_from_slice(&seq[5..]);
    } else {
        out.extend_from_slice(&[kind | 1, 0]);
        out.extend_from_slice(&seq[2..]);
    }
    if packet.kind.has_ack() {
        // One byte is reserved before a short number, two before a long one.
        out.extend_from_slice(if packet.short { &[0] } else { &[0, 0] });
        out.extend_from_slice(&ack[if packet.short { 5 } else { 2 }..]);
    }
    match packet.kind {
        PacketKind::Request { service } | PacketKind::Response { service } => {
            out.extend_from_slice(&service.0.to_be_bytes());
        }
        PacketKind::Reset(Reset { code, data: [a, b, c] }) => out.extend_from_slice(&[code.0, a, b, c]),
        _ => {}
    }
    let options = out.len();
    out.extend_from_slice(packet.options.as_bytes());
    if let Some(place) = packet.options.data_checksum_at()
        && let Some(value) = out.get_mut(options + place..options + place + 4)
    {
        // The low byte first, as `DccpOption::DataChecksum` is written.
        value.copy_from_slice(&crc32c(data).to_le_bytes());
    }
    out.resize(start + header, PADDING);
    out.extend_from_slice(data);
    let covered = covered(packet.cscov, header, data.len()).unwrap_or(header + data.len());
    if let Some(sum) = checksum(&out[start..], covered, carrier) {
        out[start + CHECKSUM_AT..start + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Reads `bytes` as one packet, to their end.
///
/// # Errors
/// [`Malformed`] says why they are none.
pub fn decode(bytes: &[u8], carrier: Carrier) -> Result<Decoded<'_>, Malformed> {
    let mut reader = Reader { rest: bytes };
    let [source, destination] = [u16::from_be_bytes(reader.take()?), u16::from_be_bytes(reader.take()?)];
    let [offset, ccval_and_cscov, _, _] = reader.take()?;
    let [type_and_x, s1, s2, s3] = reader.take()?;
    let (number, short) = (type_and_x >> 1 & 0xf, type_and_x & 1 == 0);
    let seq = if short {
        Seq::new(u64::from(u32::from_be_bytes([0, s1, s2, s3])))
    } else {
        let [a, b, c, d] = reader.take()?;
        Seq::new(u64::from_be_bytes([0, 0, s2, s3, a, b, c, d]))
    };
    let has_ack = !matches!(number, REQUEST | DATA) && number <= LAST_TYPE;
    let ack = match (has_ack, short) {
        (false, _) => Seq::new(0),
        (true, true) => Seq::new(u64::from(u32::from_be_bytes(reader.take()?) & 0x00ff_ffff)),
        (true, false) => Seq::new(u64::from_be_bytes(reader.take()?)),
    };
    let kind = read_kind(number, &mut reader)?;
    if short && !kind.may_be_short() {
        return Err(Malformed::ShortNumbers(number));
    }
    let (ccval, cscov) = (ccval_and_cscov >> 4, ccval_and_cscov & 0xf);
    let mut packet = DccpPacket { short, ccval, cscov, ..DccpPacket::new(kind, seq, ack) };
    let header = usize::from(offset) * 4;
    let options = bytes.get(packet.fixed_header_size()..header).ok_or(Malformed::DataOffset(header))?;
    let data = bytes.get(header..).ok_or(Malformed::DataOffset(header))?;
    let covered = covered(cscov, header, data.len()).ok_or(Malformed::Coverage)?;
    if checksum(bytes, covered, carrier).is_some_and(|sum| sum != 0) {
        return Err(Malformed::Checksum);
    }
    packet.options = Options::from_wire(options);
    // A packet's length has 16 bits.
    packet.payload = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let is_wrong = |option| matches!(option, DccpOption::DataChecksum(sum) if sum != crc32c(data));
    packet.corrupt = packet.options.iter().any(is_wrong);
    Ok(Decoded { packet, ports: Ports { source, destination }, data })
}

/// Computes the CRC-32C of application data, for the Data Checksum option (RFC 4340 §9.3, as in SCTP: RFC
/// 3309).
pub fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ CASTAGNOLI } else { crc >> 1 }
            },
        )
    })
}

fn read_kind(number: u8, reader: &mut Reader<'_>) -> Result<PacketKind, Malformed> {
    Ok(match number {
        REQUEST => PacketKind::Request { service: ServiceCode(u32::from_be_bytes(reader.take()?)) },
        1 => PacketKind::Response { service: ServiceCode(u32::from_be_bytes(reader.take()?)) },
        DATA => PacketKind::Data,
        3 => PacketKind::Ack,
        4 => PacketKind::DataAck,
        5 => PacketKind::CloseReq,
        6 => PacketKind::Close,
        7 => {
            let [code, a, b, c] = reader.take()?;
            PacketKind::Reset(Reset { code: ResetCode(code), data: [a, b, c] })
        }
        8 => PacketKind::Sync,
        9 => PacketKind::SyncAck,
        other => return Err(Malformed::UnknownType(other)),
    })
}

/// The part of the fixed header that is still to be read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::TooShort)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// The number of bytes under the checksum (RFC 4340 §9.2): all, or the header and 4 (CsCov - 1) bytes of
/// data.
fn covered(cscov: u8, header: usize, data: usize) -> Option<usize> {
    match usize::from(cscov & 0xf) {
        0 => Some(header + data),
        n => (4 * (n - 1) <= data).then_some(header + 4 * (n - 1)),
    }
}

/// The Internet checksum (RFC 4340 §9.1, RFC 1071) of the first `covered` bytes and the pseudo-header. `None`
/// inside UDP.
fn checksum(bytes: &[u8], covered: usize, carrier: Carrier) -> Option<u16> {
    let Carrier::Ipv4 { source, destination } = carrier else { return None };
    let words = |bytes: &[u8]| {
        bytes.chunks(2).fold(0_u64, |sum, pair| {
            sum + u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
        })
    };
    let mut sum = words(&source) + words(&destination) + PROTOCOL + bytes.len() as u64;
    sum += words(bytes.get(..covered)?);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    Some(!(sum as u16))
}

/// IANA's protocol number of DCCP.
const PROTOCOL: u64 = 33;
/// The place of the checksum in the header (RFC 4340 §5.1).
const CHECKSUM_AT: usize = 6;
/// The types without an acknowledgement number (RFC 4340 §5.1, table 1).
const REQUEST: u8 = 0;
const DATA: u8 = 2;
/// The greatest type that is not reserved.
const LAST_TYPE: u8 = 9;
/// The option that fills the header up to whole words (RFC 4340 §5.8.1).
const PADDING: u8 = 0;
/// The polynomial of CRC-32C, reflected (RFC 3309).
const CASTAGNOLI: u32 = 0x82f6_3b78;

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
