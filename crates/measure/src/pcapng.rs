//! Writes and reads capture files in the pcapng format (draft-ietf-opsawg-pcapng).
//!
//! ```text
//!   Section Header Block ─ Interface Description Block ... ─ Decryption Secrets Block, if there are secrets
//!                        ─ Enhanced Packet Block ...
//! ```
//!
//! All integers are little-endian, which the magic number of the section says. The times are nanoseconds
//! since the start of the run, so other programs show them as times in 1970. A packet begins with its IP
//! header (LINKTYPE_RAW).
//!
//! The reader knows only what the writer writes. It does not read the files of other programs.

use std::io::{self, Write};

use talkpath_units::Instant;

/// The types of blocks.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;

/// Says that the integers of the section are little-endian.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The version of the format.
const MAJOR_VERSION: u16 = 1;
const MINOR_VERSION: u16 = 0;
/// Says that the length of the section is not given.
const UNKNOWN_LENGTH: u64 = u64::MAX;

/// Says that a packet begins with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// Says that the interface sets no limit to the bytes that are kept of a packet.
const NO_SNAPLEN: u32 = 0;
/// The options of an interface.
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// The resolution of times: ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

/// "TLSK": the secrets are an NSS key log.
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// The bytes of an Enhanced Packet Block's body before the packet.
const PACKET_FIELDS: usize = 20;
/// The bytes of every block besides its body: the type, and the length twice.
const BLOCK_FRAME: usize = 12;
/// The body of a block is padded to a multiple of this many bytes.
const ALIGNMENT: usize = 4;

/// The largest number of bytes that the block of a packet has besides the packet.
pub const BLOCK_OVERHEAD: usize = BLOCK_FRAME + PACKET_FIELDS + (ALIGNMENT - 1);

/// A packet that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// The number of the interface, from 0.
    pub interface: u32,
    /// The time of the capture since the start of the run.
    pub at: Instant,
    /// The bytes that were kept.
    pub bytes: &'a [u8],
    /// The size of the whole packet, B.
    pub original_size: u32,
}

/// A block of the file is damaged, or the file ends within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Writes the beginning of a file, with an interface for each of `interface_names`.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write_header(out: &mut dyn Write, interface_names: &[&str]) -> io::Result<()> {
    let mut section = Vec::new();
    section.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    section.extend(MAJOR_VERSION.to_le_bytes());
    section.extend(MINOR_VERSION.to_le_bytes());
    section.extend(UNKNOWN_LENGTH.to_le_bytes());
    write_block(out, SECTION_HEADER, &section)?;
    for name in interface_names {
        let mut interface = Vec::new();
        interface.extend(LINKTYPE_RAW.to_le_bytes());
        let reserved = 0_u16;
        interface.extend(reserved.to_le_bytes());
        interface.extend(NO_SNAPLEN.to_le_bytes());
        push_option(&mut interface, IF_NAME, name.as_bytes());
        push_option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
        push_option(&mut interface, END_OF_OPTIONS, &[]);
        write_block(out, INTERFACE_DESCRIPTION, &interface)?;
    }
    Ok(())
}

/// Writes the secrets of TLS connections as an NSS key log (draft-ietf-tls-keylogfile). They must come before
/// the packets that they decrypt.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write_tls_secrets(out: &mut dyn Write, key_log: &str) -> io::Result<()> {
    let mut body = Vec::with_capacity(key_log.len() + 8);
    body.extend(TLS_KEY_LOG.to_le_bytes());
    body.extend((key_log.len() as u32).to_le_bytes());
    body.extend(key_log.as_bytes());
    write_block(out, DECRYPTION_SECRETS, &body)
}

/// Writes one packet.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write_packet(out: &mut dyn Write, packet: CapturedPacket<'_>) -> io::Result<()> {
    let CapturedPacket { interface, at, bytes, original_size } = packet;
    let time = at.as_nanos();
    let (high_half, low_half) = ((time >> 32) as u32, time as u32);
    let mut body = Vec::with_capacity(bytes.len() + PACKET_FIELDS);
    for field in [interface, high_half, low_half, bytes.len() as u32, original_size] {
        body.extend(field.to_le_bytes());
    }
    body.extend(bytes);
    write_block(out, ENHANCED_PACKET, &body)
}

fn write_block(out: &mut dyn Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let padded_size = body.len().next_multiple_of(ALIGNMENT);
    let length = (padded_size + BLOCK_FRAME) as u32;
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(body)?;
    out.write_all(&[0; ALIGNMENT][..padded_size - body.len()])?;
    // The length stands at both ends, so that a file can be read backwards.
    out.write_all(&length.to_le_bytes())
}

fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
}

/// Reads the packets of a file that was written here. If a block is damaged, the iterator returns [`Damaged`]
/// and then ends.
pub fn read_packets(file: &[u8]) -> impl Iterator<Item = Result<CapturedPacket<'_>, Damaged>> {
    let mut unread = file;
    core::iter::from_fn(move || {
        while !unread.is_empty() {
            let Some(block) = Block::read(unread) else {
                unread = &[];
                return Some(Err(Damaged));
            };
            unread = block.following;
            if block.kind == ENHANCED_PACKET {
                let packet = parse_packet(block.body);
                if packet.is_none() {
                    unread = &[];
                }
                return Some(packet.ok_or(Damaged));
            }
        }
        None
    })
}

struct Block<'a> {
    kind: u32,
    body: &'a [u8],
    /// The bytes of the file after the block.
    following: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads the block at the beginning of `bytes`. Returns `None` if the block is damaged.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let kind = u32_at(bytes, 0)?;
        let first_length = u32_at(bytes, 4)?;
        let length = usize::try_from(first_length).ok()?;
        let last_length_at = length.checked_sub(4)?;
        let body = bytes.get(8..last_length_at)?;
        let is_intact = length % ALIGNMENT == 0 && u32_at(bytes, last_length_at)? == first_length;
        let following = bytes.get(length..)?;
        is_intact.then_some(Self { kind, body, following })
    }
}

fn parse_packet(body: &[u8]) -> Option<CapturedPacket<'_>> {
    let (high_half, low_half) = (u32_at(body, 4)?, u32_at(body, 8)?);
    let kept_size = usize::try_from(u32_at(body, 12)?).ok()?;
    Some(CapturedPacket {
        interface: u32_at(body, 0)?,
        at: Instant::from_nanos(u64::from(high_half) << 32 | u64::from(low_half)),
        bytes: body.get(PACKET_FIELDS..)?.get(..kept_size)?,
        original_size: u32_at(body, 16)?,
    })
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let end = offset.checked_add(4)?;
    Some(u32::from_le_bytes(bytes.get(offset..end)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(interface: u32, at_ns: u64, bytes: &[u8], original_size: u32) -> CapturedPacket<'_> {
        CapturedPacket { interface, at: Instant::from_nanos(at_ns), bytes, original_size }
    }

    #[test]
    fn a_packet_block_holds_time_lengths_and_padding() {
        let mut out = Vec::new();
        write_packet(&mut out, packet(0, 0x1_0000_0002, &[1, 2, 3, 4, 5], 5)).unwrap();
        let word = |offset: usize| u32_at(&out, offset).unwrap();
        assert_eq!((word(0), word(4), word(8)), (6, 40, 0));
        assert_eq!((word(12), word(16), word(20), word(24)), (1, 2, 5, 5));
        assert_eq!((&out[28..36], word(36)), (&[1, 2, 3, 4, 5, 0, 0, 0][..], 40));
    }

    #[test]
    fn a_file_begins_with_section_and_interface() {
        let mut out = Vec::new();
        write_header(&mut out, &["near"]).unwrap();
        assert_eq!(out[..12], [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
        assert_eq!(out.len() % 4, 0);
        assert_eq!((out[28], out[36]), (1, 101));
    }

    #[test]
    fn written_packets_can_be_read_and_a_cut_file_is_damaged() {
        let (first, second) = (packet(1, 7, &[1, 2, 3], 3), packet(0, u64::MAX, &[4], 900));
        let mut file = Vec::new();
        write_header(&mut file, &["near", "far"]).unwrap();
        let header_size = file.len();
        write_packet(&mut file, first).unwrap();
        let size_with_first = file.len();
        write_packet(&mut file, second).unwrap();
        assert_eq!(read_packets(&file).collect::<Vec<_>>(), [Ok(first), Ok(second)]);
        for size in header_size..file.len() {
            let is_damaged = read_packets(&file[..size]).any(|packet| packet.is_err());
            assert_eq!(is_damaged, size != header_size && size != size_with_first, "{size} B");
        }
    }
}
