//! Captures the packets that pass the hosts' devices, for `talkpath export --format pcapng`.
//!
//! ```text
//!  run:     packet received from a device, or written to one ─► Capture ─► pcapng file of several interfaces
//!  export:  that file ─► one end of all flows, without UDP around protocols ─► pcapng file of one interface
//! ```
//!
//! A packet that leaves its host has the time of its arrival in the path. That is the kernel's stamp, or a
//! later time if the path had already been decided up to that time. A packet that comes to its host has the
//! time of the emulator's write, so the emulator's lateness is included. The capture keeps at most `snaplen`
//! bytes of each packet and [`MAX_BYTES`] in all. Packets that are left out are counted. A checksum that a
//! kernel left to its device is completed first, as the device would have done.

mod calls;
mod wrapped;

use std::io::{self, Write};

use talkpath_config::{EncapsulatedKind, TransportKind};
use talkpath_measure::pcapng::{self, CapturedPacket};
use talkpath_units::{Instant, counted};
use talkpath_wire::carrier::NativeForm;
use talkpath_wire::encapsulated::native_form;

pub use self::calls::Calls;
use self::wrapped::{UDP_HEADER, WrappedPacket};

use crate::device::complete_checksum;
use crate::packet::Parsed;

/// The largest capture of a repetition, bytes. We chose 256 MiB, which it takes in memory and on disk.
const MAX_BYTES: usize = 256 << 20;
/// The size of a piece of the capture in memory, bytes.
const PIECE: usize = 1 << 20;

/// An interface of the pcapng file: the end of a flow that sees a packet, and the protocol of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    is_far: bool,
    /// The protocol that the datagrams carry. `None` for the kernel's transports and QUIC.
    inside: Option<EncapsulatedKind>,
}

/// A capture that grows.
#[derive(Debug)]
pub(super) struct Capture {
    /// The full pieces of the file. One growing buffer would be moved as a whole while packets wait.
    pieces: Vec<Vec<u8>>,
    current: Vec<u8>,
    size: usize,
    limit: usize,
    snaplen: usize,
    scratch: Vec<u8>,
    /// The number of packets for which the capture had no room.
    left_out: u64,
}

/// A capture after the run.
pub(super) struct FinishedCapture {
    /// The file in the format pcapng.
    pub(super) file: Vec<u8>,
    /// The number of packets that did not fit into the file.
    left_out: u64,
}

impl Capture {
    /// Begins a capture of at most `snaplen` bytes of each packet and at most [`MAX_BYTES`] in all.
    pub(super) fn new(snaplen: u32) -> Self {
        Self::bounded(snaplen, MAX_BYTES)
    }

    fn bounded(snaplen: u32, limit: usize) -> Self {
        let mut current = Vec::with_capacity(PIECE);
        // Writing to memory does not fail.
        let _ = pcapng::write_header(&mut current, &names().iter().map(String::as_str).collect::<Vec<_>>());
        let snaplen = usize::try_from(snaplen).unwrap_or(usize::MAX);
        let size = current.len();
        Self { pieces: Vec::new(), current, size, limit, snaplen, scratch: Vec::new(), left_out: 0 }
    }

    /// Captures `packet`, which passed `interface` at `at`.
    pub(super) fn record(
        &mut self,
        interface: Interface,
        packet: &[u8],
        parsed: &Parsed,
        needs_checksum: bool,
        at: Instant,
    ) {
        let bound = packet.len().min(self.snaplen) + pcapng::BLOCK_OVERHEAD;
        if self.size + bound > self.limit {
            self.left_out += 1;
            return;
        }
        if self.current.len() + bound > PIECE {
            let full = std::mem::replace(&mut self.current, Vec::with_capacity(PIECE.max(bound)));
            self.pieces.push(full);
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(packet);
        if needs_checksum {
            complete_checksum(&mut self.scratch, parsed);
        }
        let captured = CapturedPacket {
            interface: interface.number(),
            at,
            bytes: &self.scratch[..packet.len().min(self.snaplen)],
            original_size: u32::try_from(packet.len()).unwrap_or(u32::MAX),
        };
        let before = self.current.len();
        let _ = pcapng::write_packet(&mut self.current, captured);
        self.size += self.current.len() - before;
    }

    pub(super) fn finish(self) -> FinishedCapture {
        let mut file = Vec::with_capacity(self.size);
        self.pieces.iter().for_each(|piece| file.extend_from_slice(piece));
        file.extend_from_slice(&self.current);
        FinishedCapture { file, left_out: self.left_out }
    }
}

impl FinishedCapture {
    /// Makes the warning that the capture is not complete. Returns `None` if it is.
    pub(super) fn warning(&self) -> Option<String> {
        if self.left_out == 0 {
            return None;
        }
        let packets = counted(self.left_out, "packet");
        let mebibytes = MAX_BYTES >> 20;
        Some(format!("emu: {packets} did not fit into the capture, which holds {mebibytes} MiB at most"))
    }
}

impl Interface {
    /// The interface of the far end of a flow over `transport`, or of the near end if `is_far` is false.
    pub(super) const fn of(is_far: bool, transport: TransportKind) -> Self {
        let inside = match transport {
            TransportKind::Encapsulated(kind) => Some(kind),
            TransportKind::Udp | TransportKind::Tcp | TransportKind::Quic(_) => None,
        };
        Self { is_far, inside }
    }

    /// Returns the index of the interface in [`names`].
    fn number(self) -> u32 {
        let index = EncapsulatedKind::ALL.iter().position(|kind| Some(*kind) == self.inside);
        let group = index.map_or(0, |index| index as u32 + 1);
        u32::from(self.is_far) | group << 1
    }

    fn numbered(number: u32) -> Self {
        let index = (number >> 1).checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let inside = index.and_then(|index| EncapsulatedKind::ALL.get(index)).copied();
        Self { is_far: number & 1 != 0, inside }
    }
}

/// The reason why a capture cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file is not one that a run writes.
    #[error("this is no capture of an emulated run, or not all of one")]
    Damaged,
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes the packets that the far ends of all flows saw, or the near ends if `far` is false. `file` is the
/// capture of the run. A protocol of ours is taken out of UDP if it has a form without UDP, as DCCP has (IP
/// protocol 33). `calls` are written as RTP. If `encapsulated` is true, all packets are written as they
/// travelled.
///
/// # Errors
/// Returns [`CaptureError`] if the capture is damaged or the output cannot be written.
pub fn export_capture(
    file: &[u8],
    far: bool,
    encapsulated: bool,
    calls: &Calls,
    out: &mut dyn Write,
) -> Result<(), CaptureError> {
    pcapng::write_header(out, &[if far { "far end" } else { "near end" }])?;
    for packet in pcapng::read_packets(file) {
        let packet = packet.map_err(|_| CaptureError::Damaged)?;
        let interface = Interface::numbered(packet.interface);
        if interface.is_far != far {
            continue;
        }
        let form = interface.inside.filter(|_| !encapsulated).and_then(native_form);
        // The exported file has the interface of one end only.
        let exported = CapturedPacket { interface: 0, ..packet };
        let is_call = interface.inside.is_none() && !encapsulated;
        if let Some(rtp) = calls.as_rtp(packet.bytes, packet.original_size).filter(|_| is_call) {
            pcapng::write_packet(out, CapturedPacket { bytes: &rtp, ..exported })?;
            continue;
        }
        match form.and_then(|form| unwrapped(packet.bytes, packet.original_size, &form)) {
            Some(native) => {
                let original_size = packet.original_size - UDP_HEADER as u32;
                pcapng::write_packet(out, CapturedPacket { bytes: &native, original_size, ..exported })?;
            }
            None => pcapng::write_packet(out, exported)?,
        }
    }
    Ok(())
}

/// Takes the packet of a protocol of talkpath out of UDP, in the protocol's own `form`. `bytes` are the
/// captured bytes of an IP packet, which had `original` bytes. Returns `None` if there is no such packet in
/// it, or if too few bytes were captured.
fn unwrapped(bytes: &[u8], original: u32, form: &NativeForm) -> Option<Vec<u8>> {
    let wrapped = WrappedPacket::parse(bytes, original, form.smallest_header)?;
    let mut native = wrapped.native_ip_header(form)?;
    let header_size = native.len();
    native.extend_from_slice(wrapped.inner);
    let checksum_at = header_size + form.checksum_at;
    native[checksum_at..checksum_at + 2].fill(0);
    let checksum = wrapped.native_checksum(&native[header_size..], form)?;
    native[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(native)
}

/// Returns the names of the interfaces, by number.
fn names() -> Vec<String> {
    let ends = ["near end", "far end"];
    let mut names: Vec<String> = ends.map(str::to_owned).into();
    for kind in EncapsulatedKind::ALL {
        names.extend(ends.map(|end| format!("{end}, {} in UDP", kind.name())));
    }
    names
}

#[cfg(test)]
mod tests {
    use talkpath_wire::dccp::codec::{Carrier, Ports, decode, encode};
    use talkpath_wire::dccp::{DccpPacket, PacketKind, Seq};

    use super::super::packet::{UDP, checksum, parse, sum};
    use super::wrapped::fold;
    use super::*;

    const DCCP: NativeForm = native_form(EncapsulatedKind::Dccp).unwrap();

    /// A DataAck of `data` bytes in UDP in IPv4, all checksums right.
    fn wrapped(data: usize, cscov: u8) -> (DccpPacket, Vec<u8>) {
        let data: Vec<u8> = (0..data).map(|byte| (byte * 7) as u8).collect();
        let kind = PacketKind::DataAck;
        let packet = DccpPacket {
            cscov,
            payload: data.len() as u32,
            ..DccpPacket::new(kind, Seq::new(0x0123_4567_89ab), Seq::new(77))
        };
        let mut dccp = Vec::new();
        encode(&packet, Ports { source: 49_153, destination: 7160 }, &data, Carrier::Udp, &mut dccp);
        let length = (UDP_HEADER + dccp.len()) as u16;
        let mut bytes = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        bytes[2..4].copy_from_slice(&(20 + length).to_be_bytes());
        let check = checksum(&bytes);
        bytes[10..12].copy_from_slice(&check.to_be_bytes());
        for field in [1024, 1024, length, 0] {
            bytes.extend_from_slice(&u16::to_be_bytes(field));
        }
        bytes.extend_from_slice(&dccp);
        let pseudo = sum(&bytes[12..20]) + 17 + u32::from(length);
        let check = !fold(pseudo + sum(&bytes[20..]));
        bytes[26..28].copy_from_slice(&check.to_be_bytes());
        (packet, bytes)
    }

    /// RFC 4340 §9.1, against the codec.
    #[test]
    fn an_unwrapped_packet_is_the_same_with_right_checksums() {
        for (data, cscov) in [(0, 0), (160, 0), (161, 0), (1440, 0), (160, 1), (160, 3)] {
            let (packet, bytes) = wrapped(data, cscov);
            let native = unwrapped(&bytes, bytes.len() as u32, &DCCP).unwrap();
            assert_eq!((native.len(), native[9], checksum(&native[..20])), (bytes.len() - 8, 33, 0));
            let carrier = Carrier::Ipv4 { source: [192, 0, 2, 1], destination: [192, 0, 2, 2] };
            let decoded = decode(&native[20..], carrier).unwrap();
            assert_eq!((decoded.packet, decoded.data.len()), (packet, data));
            for snaplen in [60, 80, bytes.len() - 1] {
                let Some(cut) = bytes.get(..snaplen) else { continue };
                let cut = unwrapped(cut, bytes.len() as u32, &DCCP).unwrap();
                assert_eq!(cut, native[..snaplen - 8], "{data} B, coverage {cscov}, cut to {snaplen}");
            }
        }
    }

    /// RFC 8200 §8.1: the pseudo-header has the addresses, the length and the protocol.
    #[test]
    fn a_packet_over_ipv6_is_unwrapped_with_a_right_checksum() {
        let (_, v4) = wrapped(160, 0);
        let mut bytes = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
        let length = v4.len() - 20;
        bytes[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        bytes.extend([[0x20; 16], [0x21; 16]].concat());
        bytes.extend(&v4[20..]);
        let native = unwrapped(&bytes, bytes.len() as u32, &DCCP).unwrap();
        assert_eq!((native.len(), native[6]), (bytes.len() - 8, 33));
        assert_eq!(usize::from(u16::from_be_bytes([native[4], native[5]])), length - 8);
        let all = sum(&native[8..40]) + 33 + (length - 8) as u32 + sum(&native[40..]);
        assert_eq!(fold(all), 0xffff, "data and pseudo-header sum up to all ones");
    }

    #[test]
    fn what_is_no_dccp_is_left_as_it_is() {
        let (_, bytes) = wrapped(10, 0);
        for size in 0..20 + 8 + 12 {
            assert_eq!(unwrapped(&bytes[..size], bytes.len() as u32, &DCCP), None, "{size} bytes");
        }
        let mut fragment = bytes.clone();
        fragment[6] = 0x20;
        assert_eq!(unwrapped(&fragment, bytes.len() as u32, &DCCP), None);
        let mut tcp = bytes.clone();
        tcp[9] = 6;
        assert_eq!(unwrapped(&tcp, bytes.len() as u32, &DCCP), None);
    }

    #[test]
    fn an_export_is_one_end_and_a_full_capture_counts_what_it_leaves_out() {
        let (_, bytes) = wrapped(160, 0);
        let parsed = parse(&bytes).unwrap();
        let interface = |is_far| Interface::of(is_far, TransportKind::Encapsulated(EncapsulatedKind::Dccp));
        let limit = 3 * (bytes.len() + pcapng::BLOCK_OVERHEAD) + 400;
        let mut capture = Capture::bounded(u32::MAX, limit);
        for (is_far, ms) in [(false, 1), (true, 2), (false, 3), (false, 4), (false, 5), (false, 6)] {
            capture.record(interface(is_far), &bytes, &parsed, false, Instant::from_millis(ms));
        }
        let FinishedCapture { file, left_out } = capture.finish();
        assert!(file.len() <= limit && (1..6).contains(&left_out), "{left_out}");
        let kept = 6 - left_out as usize;
        let seen = |far, encapsulated| {
            let mut out = Vec::new();
            export_capture(&file, far, encapsulated, &Calls::default(), &mut out).unwrap();
            let packets: Result<Vec<_>, _> = pcapng::read_packets(&out).collect();
            let sizes =
                |packet: &CapturedPacket<'_>| (packet.at, packet.bytes.len(), packet.original_size as usize);
            packets.unwrap().iter().map(sizes).collect::<Vec<_>>()
        };
        let size = bytes.len();
        assert_eq!(seen(true, true), [(Instant::from_millis(2), size, size)]);
        assert_eq!(seen(true, false), [(Instant::from_millis(2), size - 8, size - 8)]);
        assert_eq!(seen(false, true).len(), kept - 1);
        let mut out = Vec::new();
        let half = &file[..file.len() - 5];
        assert!(matches!(
            export_capture(half, false, true, &Calls::default(), &mut out),
            Err(CaptureError::Damaged)
        ));
    }
}
