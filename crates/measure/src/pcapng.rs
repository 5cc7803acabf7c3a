//! The pcapng file format (draft-ietf-opsawg-pcapng): a section, its interfaces, a block a packet.
//!
//! ```text
//!   Section Header Block ─ Interface Description Block ... ─ Decryption Secrets Block, if there are secrets
//!                        ─ Enhanced Packet Block ...
//! ```
//!
//! Everything is little-endian, as the section's magic number says. Times are nanoseconds since the run's
//! start, read as since 1970. Packets begin with the IP header (LINKTYPE_RAW). What is read back is what is
//! written here: other programs' files are none.

use std::io::{self, Write};

use talkpath_units::Instant;

/// Writes the blocks that a file begins with, with an interface of each of the `names`.
///
/// # Errors
/// Those of `out`.
pub fn begin(out: &mut dyn Write, names: &[&str]) -> io::Result<()> {
    let mut section = Vec::new();
    section.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    section.extend(1_u16.to_le_bytes());
    section.extend(0_u16.to_le_bytes());
    // The section's length is not specified.
    section.extend(u64::MAX.to_le_bytes());
    block(out, SECTION_HEADER, &section)?;
    for name in names {
        let mut interface = Vec::new();
        interface.extend(LINKTYPE_RAW.to_le_bytes());
        interface.extend(0_u16.to_le_bytes());
        // Packets are kept whole, or each says how long it was.
        interface.extend(0_u32.to_le_bytes());
        option(&mut interface, IF_NAME, name.as_bytes());
        option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
        option(&mut interface, END_OF_OPTIONS, &[]);
        block(out, INTERFACE_DESCRIPTION, &interface)?;
    }
    Ok(())
}

/// Writes the secrets of TLS connections, as an NSS key log (draft-ietf-tls-keylogfile), before the packets
/// that they decrypt.
///
/// # Errors
/// Those of `out`.
pub fn tls_secrets(out: &mut dyn Write, key_log: &str) -> io::Result<()> {
    let mut body = Vec::with_capacity(key_log.len() + 8);
    body.extend(TLS_KEY_LOG.to_le_bytes());
    body.extend((key_log.len() as u32).to_le_bytes());
    body.extend(key_log.as_bytes());
    block(out, DECRYPTION_SECRETS, &body)
}

/// Writes one packet, seen `at` on an interface, counted from 0: its first `bytes`, of `original` ones.
///
/// # Errors
/// Those of `out`.
pub fn packet(
    out: &mut dyn Write,
    interface: u32,
    at: Instant,
    bytes: &[u8],
    original: u32,
) -> io::Result<()> {
    let time = at.as_nanos();
    let mut body = Vec::with_capacity(bytes.len() + PACKET_FIELDS);
    body.extend(interface.to_le_bytes());
    body.extend(((time >> 32) as u32).to_le_bytes());
    body.extend((time as u32).to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend(original.to_le_bytes());
    body.extend(bytes);
    block(out, ENHANCED_PACKET, &body)
}

/// A packet of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighted<'a> {
    /// Its interface, counted from 0.
    pub interface: u32,
    /// When it was seen, since the run's start.
    pub at: Instant,
    /// The bytes that were kept.
    pub bytes: &'a [u8],
    /// Bytes that it had.
    pub original: u32,
}

/// The packets of a file that was written here; `None`, once, if it is damaged.
pub fn packets(file: &[u8]) -> impl Iterator<Item = Option<Sighted<'_>>> {
    let mut rest = Some(file);
    core::iter::from_fn(move || {
        loop {
            let left = rest.filter(|left| !left.is_empty())?;
            let Some(Block { kind, body, after }) = read_block(left) else {
                rest = None;
                return Some(None);
            };
            rest = Some(after);
            if kind == ENHANCED_PACKET {
                let sighted = read_packet(body);
                rest = rest.filter(|_| sighted.is_some());
                return Some(sighted);
            }
        }
    })
}

/// A block of a file.
struct Block<'a> {
    /// Its type.
    kind: u32,
    body: &'a [u8],
    /// What follows it.
    after: &'a [u8],
}

/// The block at the beginning of `bytes`; `None` if it is damaged.
fn read_block(bytes: &[u8]) -> Option<Block<'_>> {
    let length = usize::try_from(u32_at(bytes, 4)?).ok()?;
    let body = bytes.get(8..length.checked_sub(4)?)?;
    let is_whole = length % 4 == 0 && u32_at(bytes, length - 4)? == u32_at(bytes, 4)?;
    let after = bytes.get(length..)?;
    is_whole.then_some(Block { kind: u32_at(bytes, 0)?, body, after })
}

fn read_packet(body: &[u8]) -> Option<Sighted<'_>> {
    let time = u64::from(u32_at(body, 4)?) << 32 | u64::from(u32_at(body, 8)?);
    let length = usize::try_from(u32_at(body, 12)?).ok()?;
    Some(Sighted {
        interface: u32_at(body, 0)?,
        at: Instant::from_nanos(time),
        bytes: body.get(PACKET_FIELDS..)?.get(..length)?,
        original: u32_at(body, 16)?,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn block(out: &mut dyn Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let padded = body.len().next_multiple_of(4);
    let length = (padded + 12) as u32;
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(body)?;
    out.write_all(&[0; 3][..padded - body.len()])?;
    out.write_all(&length.to_le_bytes())
}

fn option(into: &mut Vec<u8>, code: u16, value: &[u8]) {
    into.extend(code.to_le_bytes());
    into.extend((value.len() as u16).to_le_bytes());
    into.extend(value);
    into.resize(into.len().next_multiple_of(4), 0);
}

/// Bytes that a packet's block has besides the packet, at most.
pub const BLOCK_OVERHEAD: usize = 12 + PACKET_FIELDS + 3;
/// Bytes of an Enhanced Packet Block's body before the packet.
const PACKET_FIELDS: usize = 20;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// "TLSK": the type of secrets that an NSS key log is.
const TLS_KEY_LOG: u32 = 0x544c_534b;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Begins with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Ten to the minus nine.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_block_holds_time_lengths_and_padding() {
        let mut out = Vec::new();
        packet(&mut out, 0, Instant::from_nanos(0x1_0000_0002), &[1, 2, 3, 4, 5], 5).unwrap();
        let words = |at: usize| u32::from_le_bytes([out[at], out[at + 1], out[at + 2], out[at + 3]]);
        assert_eq!((words(0), words(4), words(8)), (6, 40, 0));
        assert_eq!((words(12), words(16), words(20), words(24)), (1, 2, 5, 5));
        assert_eq!((&out[28..36], words(36)), (&[1, 2, 3, 4, 5, 0, 0, 0][..], 40));
    }

    #[test]
    fn a_file_begins_with_section_and_interface() {
        let mut out = Vec::new();
        begin(&mut out, &["near"]).unwrap();
        assert_eq!(out[..12], [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
        assert_eq!(out.len() % 4, 0);
        assert_eq!((out[28], out[36]), (1, 101));
    }

    #[test]
    fn what_was_written_is_read_and_a_cut_is_told() {
        let mut file = Vec::new();
        begin(&mut file, &["near", "far"]).unwrap();
        let begun = file.len();
        packet(&mut file, 1, Instant::from_nanos(7), &[1, 2, 3], 3).unwrap();
        let first = file.len();
        packet(&mut file, 0, Instant::from_nanos(u64::MAX), &[4], 900).unwrap();
        let seen: Vec<_> = packets(&file).collect();
        let sighted = |interface, ns, bytes, original| {
            Some(Sighted { interface, at: Instant::from_nanos(ns), bytes, original })
        };
        assert_eq!(seen, [sighted(1, 7, &[1, 2, 3], 3), sighted(0, u64::MAX, &[4], 900)]);
        for size in begun..file.len() {
            let is_damaged = packets(&file[..size]).any(|sighted| sighted.is_none());
            assert_eq!(is_damaged, size != begun && size != first, "{size} B");
        }
    }
}
