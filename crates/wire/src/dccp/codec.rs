//! DCCP's bytes (RFC 4340 §5): what goes on the wire natively as IP protocol 33, or inside UDP (RFC 6773).
//!
//! ```text
//!   0       Source Port                   Dest Port
//!   4       Data Offset   CCVal CsCov     Checksum
//!   8       Res Type X=1  Reserved        Sequence Number, high 16
//!   12      Sequence Number, low 32                                    X = 0: only 24 bits, beside Type
//!   then    acknowledgement, service or reset code, options, data
//! ```
//!
//! Inside UDP the header is the same, its checksum 0 and not verified: UDP's covers all (RFC 6773 §3.3).
//! Decoding is step 1 of RFC 4340 §8.5; it takes nothing but the bytes given and copies at most
//! [`Options::ROOM`] bytes.

use super::{DccpOption, DccpPacket, Options, PacketKind, Reset, ResetCode, Seq, ServiceCode};
use crate::carrier::NativeForm;
pub use crate::carrier::{Carrier, Ports};

/// The form in which a packet travels without UDP.
pub(crate) const NATIVE: NativeForm = NativeForm {
    protocol: PROTOCOL as u8,
    // RFC 6773 §5.1.
    udp_port: 6511,
    // RFC 4340 §5.1, with short sequence numbers.
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
    /// Header and options; `message` is for the application to read from the data.
    pub packet: DccpPacket,
    /// Its ports.
    pub ports: Ports,
    /// Application data.
    pub data: &'a [u8],
}

/// Why bytes are no packet, to be ignored (RFC 4340 §8.5 step 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than its header has.
    #[error("the packet is shorter than its header")]
    TooShort,
    /// A reserved type.
    #[error("packet type {0} is not known")]
    UnknownType(u8),
    /// Data Offset points into the header or past the end.
    #[error("the data offset, {0} B, is out of range")]
    DataOffset(usize),
    /// Short sequence numbers on a type that has none.
    #[error("packet type {0} has no short sequence numbers")]
    ShortNumbers(u8),
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Checksum Coverage exceeds the data.
    #[error("the checksum covers more than there is")]
    Coverage,
}

/// The bytes of `packet` with `data`, whose length is taken in place of `packet.payload`, behind what `out`
/// holds. A Data Checksum option is filled in from `data`, whatever it holds: state machines have no data.
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
    let &[p0, p1, p2, p3, offset, values, _, _, kind_and_x, s1, s2, s3, ref rest @ ..] = bytes else {
        return Err(Malformed::TooShort);
    };
    let (number, short) = (kind_and_x >> 1 & 0xf, kind_and_x & 1 == 0);
    let mut reader = Reader { rest };
    let seq = if short {
        Seq::new(u64::from(u32::from_be_bytes([0, s1, s2, s3])))
    } else {
        let [a, b, c, d] = reader.take()?;
        Seq::new(u64::from_be_bytes([0, 0, s2, s3, a, b, c, d]))
    };
    let has_ack = !matches!(number, 0 | 2);
    let ack = match (has_ack && number <= LAST_TYPE, short) {
        (false, _) => Seq::new(0),
        (true, true) => Seq::new(u64::from(u32::from_be_bytes(reader.take()?) & 0x00ff_ffff)),
        (true, false) => Seq::new(u64::from_be_bytes(reader.take()?)),
    };
    let kind = read_kind(number, &mut reader)?;
    if short && !kind.may_be_short() {
        return Err(Malformed::ShortNumbers(number));
    }
    let mut packet =
        DccpPacket { short, ccval: values >> 4, cscov: values & 0xf, ..DccpPacket::new(kind, seq, ack) };
    let (fixed, header) = (packet.fixed_header_size(), usize::from(offset) * 4);
    let area = bytes.get(fixed..header).ok_or(Malformed::DataOffset(header))?;
    let data = bytes.get(header..).ok_or(Malformed::DataOffset(header))?;
    let covered = covered(packet.cscov, header, data.len()).ok_or(Malformed::Coverage)?;
    if checksum(bytes, covered, carrier).is_some_and(|sum| sum != 0) {
        return Err(Malformed::Checksum);
    }
    packet.options = Options::from_wire(area);
    // A packet's length has 16 bits.
    packet.payload = u32::try_from(data.len()).unwrap_or(u32::MAX);
    packet.corrupt = packet
        .options
        .iter()
        .any(|option| matches!(option, DccpOption::DataChecksum(sum) if sum != crc32c(data)));
    let ports = Ports { source: u16::from_be_bytes([p0, p1]), destination: u16::from_be_bytes([p2, p3]) };
    Ok(Decoded { packet, ports, data })
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
        0 => PacketKind::Request { service: ServiceCode(u32::from_be_bytes(reader.take()?)) },
        1 => PacketKind::Response { service: ServiceCode(u32::from_be_bytes(reader.take()?)) },
        2 => PacketKind::Data,
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
/// RFC 4340 §5.1.
const CHECKSUM_AT: usize = 6;
const LAST_TYPE: u8 = 9;
/// RFC 4340 §5.8.1.
const PADDING: u8 = 0;
/// RFC 3309's polynomial, reflected.
const CASTAGNOLI: u32 = 0x82f6_3b78;

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
