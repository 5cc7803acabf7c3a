//! Reads the packets of a file in the formats pcap and pcapng (draft-ietf-opsawg-pcap, -pcapng), by the
//! library `pcap-parser`, which keeps one block in memory.

use std::io::{self, Read};

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, PcapHeader, create_reader};
use thiserror::Error;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedPacket<'a> {
    /// The time of the capture since 1970, ns.
    pub(crate) at_ns: i64,
    /// The number of the link layer (LINKTYPE_).
    pub(crate) link_type: i32,
    /// The bytes that were kept.
    pub(crate) bytes: &'a [u8],
}

/// Why a capture cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has another format.
    #[error("not a capture: it begins neither as pcap nor as pcapng{}", .0.help())]
    NotACapture(OtherFormat),
}

/// What a file that is no capture may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherFormat {
    /// The file is empty.
    Empty,
    /// The file is compressed by gzip, xz or zstd.
    Compressed,
    /// Nothing is known about the file.
    Unknown,
}

impl OtherFormat {
    fn of(beginning: &[u8]) -> Self {
        match beginning {
            [] => Self::Empty,
            [0x1f, 0x8b, ..] | [0xfd, b'7', b'z', b'X', b'Z', ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                Self::Compressed
            }
            _ => Self::Unknown,
        }
    }

    const fn help(self) -> &'static str {
        match self {
            Self::Empty => ", because it is empty",
            Self::Compressed => ", because it is compressed: unpack it first",
            Self::Unknown => "",
        }
    }
}

/// Where a capture is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of bytes before the block that cannot be read.
    pub at: u64,
    /// What is wrong with the block.
    pub what: &'static str,
}

/// Reads all packets. Returns where the file is damaged, if it is.
pub(crate) fn read_packets(
    file: impl Read + Send,
    mut visit: impl FnMut(CapturedPacket<'_>),
) -> Result<Option<Damage>, ReadError> {
    let mut file = Whole(file);
    let mut beginning = [0; BEGINNING];
    let length = file.read(&mut beginning)?;
    let beginning = &beginning[..length];
    let not_a_capture = || ReadError::NotACapture(OtherFormat::of(beginning));
    let mut interfaces = Interfaces::default();
    let mut reader =
        create_reader(FIRST_BUFFER, Whole(beginning.chain(file.0))).map_err(|_| not_a_capture())?;
    let mut buffer = FIRST_BUFFER;
    loop {
        let unread = reader.data().len();
        let step = match reader.next() {
            Ok((size, block)) => {
                interfaces.take(&block, &mut visit);
                Step::Consume(size)
            }
            Err(PcapError::Eof) => return Ok(None),
            Err(PcapError::UnexpectedEof) if unread == 0 => return Ok(None),
            Err(PcapError::Incomplete(_)) => Step::Refill,
            Err(PcapError::BufferTooSmall) => Step::Grow,
            Err(PcapError::UnexpectedEof) => Step::Damaged("the file ends within it"),
            Err(PcapError::ReadError) => Step::Damaged("it cannot be read from the disk"),
            Err(_) => Step::Damaged("its fields contradict each other"),
        };
        let damaged =
            |reader: &dyn PcapReaderIterator, what| Ok(Some(Damage { at: reader.consumed() as u64, what }));
        match step {
            Step::Consume(size) => reader.consume(size),
            Step::Damaged(what) => return damaged(&*reader, what),
            Step::Refill => {
                if reader.refill().is_err() {
                    return damaged(&*reader, "it cannot be read from the disk");
                }
                // A full buffer takes nothing more, and the parser would ask for ever.
                if reader.data().len() == unread
                    && !reader.reader_exhausted()
                    && !grow(&mut *reader, &mut buffer)
                {
                    return damaged(&*reader, TOO_LARGE);
                }
            }
            Step::Grow => {
                if !grow(&mut *reader, &mut buffer) {
                    return damaged(&*reader, TOO_LARGE);
                }
                if reader.refill().is_err() {
                    return damaged(&*reader, "it cannot be read from the disk");
                }
            }
        }
    }
}

/// What the loop does after it has looked at the buffer.
enum Step {
    Consume(usize),
    Refill,
    Grow,
    Damaged(&'static str),
}

/// Doubles the buffer. Returns false if it has its largest size already.
fn grow(reader: &mut dyn PcapReaderIterator, buffer: &mut usize) -> bool {
    *buffer *= 2;
    *buffer <= LARGEST_BLOCK && reader.grow(*buffer)
}

/// A reader that fills what it is given, as long as there is something to read. The library takes a short
/// read for the end of a file's first block.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(filled)
    }
}

/// The interfaces of a section of pcapng, or the only one of pcap.
#[derive(Default)]
struct Interfaces(Vec<Interface>);

#[derive(Clone, Copy)]
struct Interface {
    link_type: i32,
    /// The units of time stamps in a second.
    units: u64,
    /// The time that is added to time stamps, s.
    offset_s: i64,
}

impl Interfaces {
    fn take(&mut self, block: &PcapBlockOwned<'_>, visit: &mut impl FnMut(CapturedPacket<'_>)) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.0 = vec![Interface::of_file(header)],
            PcapBlockOwned::Legacy(packet) => {
                let Some(interface) = self.0.first() else { return };
                let units = u64::from(packet.ts_sec) * interface.units + u64::from(packet.ts_usec);
                visit(interface.packet(units, packet.data));
            }
            // The numbers of interfaces begin anew in each section.
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.0.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) if self.0.len() < MOST_INTERFACES => {
                self.0.push(Interface {
                    link_type: interface.linktype.0,
                    units: units_in_a_second(interface.if_tsresol),
                    offset_s: interface.if_tsoffset,
                });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.0.get(packet.if_id as usize) else { return };
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                visit(interface.packet(units, packet.packet_data()));
            }
            // A simple packet has no time stamp, so it says nothing about delays. It is left out.
            PcapBlockOwned::NG(_) => {}
        }
    }
}

impl Interface {
    fn of_file(header: &PcapHeader) -> Self {
        let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
        // The upper bits say how the frame check sequence was kept (draft-ietf-opsawg-pcap §4).
        let Linktype(number) = header.network;
        Self { link_type: number & 0x0fff_ffff, units, offset_s: 0 }
    }

    fn packet<'a>(&self, units: u64, bytes: &'a [u8]) -> CapturedPacket<'a> {
        let ns = i128::from(units) * 1_000_000_000 / i128::from(self.units.max(1));
        let ns = ns + i128::from(self.offset_s) * 1_000_000_000;
        let at_ns = i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX });
        CapturedPacket { at_ns, link_type: self.link_type, bytes }
    }
}

/// The units of time stamps in a second, by the option if_tsresol (draft-ietf-opsawg-pcapng §4.2): a power of
/// 10, or of 2 if the highest bit is set. A resolution that 64 bits cannot hold counts as microseconds, the
/// default.
fn units_in_a_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).unwrap_or(1_000_000)
}

/// The bytes that tell what a file is.
const BEGINNING: usize = 16;
/// The first size of the buffer, bytes. We chose 256 KiB, which holds any packet of IP.
const FIRST_BUFFER: usize = 256 << 10;
/// The largest block that is read, bytes. We chose 16 MiB: packets are smaller, and blocks with names or
/// secrets seldom are larger.
const LARGEST_BLOCK: usize = 16 << 20;
const TOO_LARGE: &str = "it has more than 16 MiB";
/// The largest number of interfaces of a section. We chose 65,536, which takes 1.5 MiB of memory.
const MOST_INTERFACES: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_of_time_stamps_is_a_power_of_ten_or_of_two() {
        assert_eq!(units_in_a_second(6), 1_000_000);
        assert_eq!(units_in_a_second(9), 1_000_000_000);
        assert_eq!(units_in_a_second(0x80 | 10), 1024);
        assert_eq!(units_in_a_second(0x7f), 1_000_000);
    }

    #[test]
    fn what_is_no_capture_says_so() {
        let why = |bytes: &[u8]| read_packets(bytes, |_| {}).unwrap_err().to_string();
        assert!(why(b"").ends_with("because it is empty"));
        assert!(why(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0]).ends_with("unpack it first"));
        assert!(why(b"name = \"a scenario\"\n").ends_with("nor as pcapng"));
    }
}
