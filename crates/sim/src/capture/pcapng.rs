//! The pcapng file format (draft-ietf-opsawg-pcapng): a section, one interface, a block a packet.
//!
//! ```text
//!   Section Header Block ─ Interface Description Block ─ Enhanced Packet Block ...
//! ```
//!
//! Everything is little-endian, which the section's magic number tells. Times are nanoseconds since the run's start,
//! read as since 1970. Packets begin with the IP header (LINKTYPE_RAW).

use std::io::{self, Write};

use talkpath_units::Instant;

/// Writes the blocks that a file begins with; `name` is the interface's.
pub(super) fn begin(out: &mut dyn Write, name: &str) -> io::Result<()> {
    let mut section = Vec::new();
    section.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    section.extend(1_u16.to_le_bytes());
    section.extend(0_u16.to_le_bytes());
    // The section's length is not told.
    section.extend(u64::MAX.to_le_bytes());
    block(out, SECTION_HEADER, &section)?;
    let mut interface = Vec::new();
    interface.extend(LINKTYPE_RAW.to_le_bytes());
    interface.extend(0_u16.to_le_bytes());
    // Packets are kept whole.
    interface.extend(0_u32.to_le_bytes());
    option(&mut interface, IF_NAME, name.as_bytes());
    option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
    option(&mut interface, END_OF_OPTIONS, &[]);
    block(out, INTERFACE_DESCRIPTION, &interface)
}

/// Writes one packet, seen `at`.
pub(super) fn packet(out: &mut dyn Write, at: Instant, bytes: &[u8]) -> io::Result<()> {
    let time = at.as_nanos();
    let length = bytes.len() as u32;
    let mut body = Vec::with_capacity(bytes.len() + 24);
    body.extend(0_u32.to_le_bytes());
    body.extend(((time >> 32) as u32).to_le_bytes());
    body.extend((time as u32).to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(bytes);
    block(out, ENHANCED_PACKET, &body)
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

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
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
        packet(&mut out, Instant::from_nanos(0x1_0000_0002), &[1, 2, 3, 4, 5]).unwrap();
        let words = |at: usize| u32::from_le_bytes([out[at], out[at + 1], out[at + 2], out[at + 3]]);
        assert_eq!((words(0), words(4), words(8)), (6, 40, 0));
        assert_eq!((words(12), words(16), words(20), words(24)), (1, 2, 5, 5));
        assert_eq!((&out[28..36], words(36)), (&[1, 2, 3, 4, 5, 0, 0, 0][..], 40));
    }

    #[test]
    fn a_file_begins_with_section_and_interface() {
        let mut out = Vec::new();
        begin(&mut out, "near").unwrap();
        assert_eq!(out[..12], [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
        assert_eq!(out.len() % 4, 0);
        assert_eq!((out[28], out[36]), (1, 101));
    }
}
