//! A host's TUN device as the emulator has it: packets, and the super-packets that a kernel hands to a device in one go.
//!
//! ```text
//!  read:  one packet                      or  headers | payload ........ payload   (one write of the host, cut later)
//!  write: one packet                      or  headers | payload, payload, payload  (a train of datagrams, cut by the host)
//! ```
//!
//! A kernel leaves cutting a large TCP write, or a UDP write with UDP_SEGMENT, to its device (TSO, USO). On a wire it is
//! packets all the same, and so it is here: what is read is cut ([`Cut`]) before the path sees it, and each packet has its
//! own arrival and its own decision. The other way, datagrams of one flow whose departures have come are handed over in
//! one write, as a network card's GRO would (the kernel cuts them again for the socket): a write costs as much as a dozen
//! datagrams. TCP's segments are written one by one, since merging them would thin out its acknowledgements.
//!
//! Each packet is preceded by a `virtio_net_hdr` (linux/virtio_net.h; 10 bytes, native byte order). Checksums of TCP and UDP
//! are left to be completed by whoever needs them, as between a host and its card: what stands in a packet until then is
//! the sum of the pseudo-header (RFC 9293 §3.1, RFC 768).

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::packet::{Parsed, Protocol, UDP_HEADER, checksum, parse, sum};
use super::sys;

/// One host's device.
pub(super) struct Device<'a> {
    fd: &'a OwnedFd,
    /// Whether the kernel knows UDP's super-packets (Linux 6.2 and later).
    pub(super) takes_trains: bool,
    /// Header and packet, as read.
    inbox: Vec<u8>,
    header: [u8; VIRTIO_HEADER],
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) parsed: Parsed,
    /// Whether its transport's checksum is not completed.
    pub(super) is_unsummed: bool,
    /// Payload bytes of each packet that it stands for; `None` for one packet.
    segment: Option<usize>,
}

/// The packets of a frame, one after the other.
pub(super) struct Cut {
    frame: Frame,
    /// Bytes of the IP and transport headers.
    headers: usize,
    next: usize,
}

impl<'a> Device<'a> {
    /// The device behind `fd`, whose host may from now on hand over super-packets.
    pub(super) fn new(fd: &'a OwnedFd) -> Self {
        let takes_trains = sys::offer_offloads(fd);
        Self { fd, takes_trains, inbox: vec![0; VIRTIO_HEADER + LARGEST], header: [0; VIRTIO_HEADER] }
    }

    pub(super) const fn fd(&self) -> &OwnedFd {
        self.fd
    }

    /// Takes the next frame; `Ok(None)` where it is no packet that can be a flow's.
    ///
    /// # Errors
    /// The system's, `AGAIN` where nothing waits.
    pub(super) fn read(&mut self) -> Result<Option<Frame>, Errno> {
        let length = rustix::io::read(self.fd, &mut *self.inbox)?;
        let Some((header, packet)) = self.inbox[..length].split_at_checked(VIRTIO_HEADER) else {
            return Ok(None);
        };
        let Some(parsed) = parse(packet) else { return Ok(None) };
        let segment = match header[1] & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCPV4 | GSO_UDP_L4 => match usize::from(u16::from_ne_bytes([header[4], header[5]])) {
                0 => return Ok(None),
                size => Some(size),
            },
            _ => return Ok(None),
        };
        Ok(Some(Frame { parsed, is_unsummed: header[0] & NEEDS_CHECKSUM != 0, segment }))
    }

    /// Writes the next packet of `cut`, which was read last, into `out`; returns what it is and its number in the frame, or
    /// `None` after the last.
    pub(super) fn next_of(&self, cut: &mut Cut, out: &mut [u8]) -> Option<Parsed> {
        cut.next(&self.inbox[VIRTIO_HEADER..], out)
    }

    /// Hands a packet to the host.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&mut self, packet: &[u8], parsed: &Parsed, is_unsummed: bool) -> Result<(), Errno> {
        self.header = [0; VIRTIO_HEADER];
        if is_unsummed {
            self.leave_sum_to_host(parsed);
        }
        rustix::io::writev(self.fd, &[IoSlice::new(&self.header), IoSlice::new(packet)]).map(drop)
    }

    /// Hands datagrams of one flow to the host, at least one: `first` whole, and of those after it the payloads; all of
    /// `size` payload bytes but for the last, which may be shorter.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write_train<'b>(
        &mut self,
        first: (&'b [u8], &Parsed),
        rest: impl Iterator<Item = &'b [u8]>,
        size: usize,
    ) -> Result<(), Errno> {
        let (packet, parsed) = first;
        let headers = parsed.header + UDP_HEADER;
        let Some((head, payload)) = packet.split_at_checked(headers) else { return Err(Errno::INVAL) };
        let mut slices = [IoSlice::new(&[]); LONGEST_TRAIN + 2];
        let (mut count, mut length) = (3, payload.len());
        slices[2] = IoSlice::new(payload);
        for payload in rest.take(LONGEST_TRAIN - 1) {
            slices[count] = IoSlice::new(payload);
            (count, length) = (count + 1, length + payload.len());
        }
        let mut front = [0; VIRTIO_HEADER + LONGEST_HEADERS];
        let Some(room) = front.get_mut(VIRTIO_HEADER..VIRTIO_HEADER + headers) else {
            return Err(Errno::INVAL);
        };
        room.copy_from_slice(head);
        set_length(room, parsed, length);
        self.header = [0; VIRTIO_HEADER];
        self.leave_sum_to_host(parsed);
        self.header[1] = GSO_UDP_L4;
        self.header[2..4].copy_from_slice(&(headers as u16).to_ne_bytes());
        self.header[4..6].copy_from_slice(&(size as u16).to_ne_bytes());
        slices[0] = IoSlice::new(&self.header);
        slices[1] = IoSlice::new(&front[VIRTIO_HEADER..VIRTIO_HEADER + headers]);
        rustix::io::writev(self.fd, &slices[..count]).map(drop)
    }

    /// Tells the host where the checksum is that it need not look at.
    fn leave_sum_to_host(&mut self, parsed: &Parsed) {
        self.header[0] = NEEDS_CHECKSUM;
        self.header[6..8].copy_from_slice(&(parsed.header as u16).to_ne_bytes());
        self.header[8..10].copy_from_slice(&(checksum_place(parsed.protocol) as u16).to_ne_bytes());
    }
}

impl Cut {
    /// The packets of `frame`, whose bytes `device` holds until it reads again.
    pub(super) fn new(frame: Frame, device: &Device<'_>) -> Self {
        let packet = &device.inbox[VIRTIO_HEADER..];
        let transport = match frame.parsed.protocol {
            Protocol::Udp => UDP_HEADER,
            Protocol::Tcp => usize::from(packet[frame.parsed.header + 12] >> 4) * 4,
        };
        Self { frame, headers: frame.parsed.header + transport, next: 0 }
    }

    /// How many packets are still to come.
    pub(super) fn left(&self) -> usize {
        let Some(size) = self.frame.segment else { return 1 - self.next.min(1) };
        let payload = self.frame.parsed.length.saturating_sub(self.headers);
        payload.div_ceil(size).max(1) - self.next
    }

    fn next(&mut self, whole: &[u8], out: &mut [u8]) -> Option<Parsed> {
        if self.left() == 0 {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let parsed = self.frame.parsed;
        let Some(size) = self.frame.segment else {
            out.get_mut(..parsed.length)?.copy_from_slice(&whole[..parsed.length]);
            return Some(parsed);
        };
        let begin = self.headers + number * size;
        let payload = whole.get(begin..(begin + size).min(parsed.length))?;
        let length = self.headers + payload.len();
        let packet = out.get_mut(..length)?;
        packet[..self.headers].copy_from_slice(&whole[..self.headers]);
        packet[self.headers..].copy_from_slice(payload);
        let identification = parsed.identification.wrapping_add(number as u16);
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        if parsed.protocol == Protocol::Tcp {
            cut_tcp(&mut packet[parsed.header..], (number * size) as u32, number == 0, self.left() == 0);
        }
        set_length(&mut packet[..self.headers], &parsed, payload.len());
        let part = talkpath_path::FragmentRange { length: (length - parsed.header) as u32, ..parsed.part };
        Some(Parsed { length, part, identification, ..parsed })
    }
}

/// A segment's own sequence number and flags: CWR is the first one's, PSH and FIN are the last one's (RFC 9293 §3.1, RFC
/// 3168 §6.1.2).
fn cut_tcp(segment: &mut [u8], offset: u32, is_first: bool, is_last: bool) {
    let Some(sequence) = segment.get(4..8).and_then(|bytes| bytes.try_into().ok()) else { return };
    let sequence = u32::from_be_bytes(sequence).wrapping_add(offset);
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    if let Some(flags) = segment.get_mut(13) {
        *flags &= if is_first { 0xff } else { !TCP_CWR };
        *flags &= if is_last { 0xff } else { !(TCP_PSH | TCP_FIN) };
    }
}

/// Makes `headers`, of a packet like `parsed`, those of a packet with `payload` bytes behind them: lengths, the IP checksum,
/// and the transport's checksum as far as the pseudo-header.
fn set_length(headers: &mut [u8], parsed: &Parsed, payload: usize) {
    // Callers hold the whole below 64 KiB.
    let total = (headers.len() + payload) as u16;
    let transport = total - parsed.header as u16;
    headers[2..4].copy_from_slice(&total.to_be_bytes());
    headers[10..12].fill(0);
    let ip = checksum(&headers[..parsed.header]);
    headers[10..12].copy_from_slice(&ip.to_be_bytes());
    if parsed.protocol == Protocol::Udp {
        headers[parsed.header + 4..parsed.header + 6].copy_from_slice(&transport.to_be_bytes());
    }
    let number = match parsed.protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    };
    let pseudo = sum(&headers[12..20]) + number + u32::from(transport);
    let pseudo = (pseudo & 0xffff) + (pseudo >> 16);
    let pseudo = ((pseudo & 0xffff) + (pseudo >> 16)) as u16;
    let place = parsed.header + checksum_place(parsed.protocol);
    headers[place..place + 2].copy_from_slice(&pseudo.to_be_bytes());
}

/// Completes the checksum of an unfragmented `packet`, which has that of the pseudo-header.
pub(super) fn complete_checksum(packet: &mut [u8], parsed: &Parsed) {
    let place = parsed.header + checksum_place(parsed.protocol);
    let Some(transport) = packet.get(parsed.header..parsed.length) else { return };
    // A sum of zero is sent as all ones: in UDP zero means that there is none (RFC 768).
    let sum = match checksum(transport) {
        0 => 0xffff,
        sum => sum,
    };
    if let Some(bytes) = packet.get_mut(place..place + 2) {
        bytes.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Where in its header a transport has its checksum.
const fn checksum_place(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Tcp => 16,
        Protocol::Udp => 6,
    }
}

/// `struct virtio_net_hdr`: flags, kind, header length, segment size, where summing begins, where the sum goes.
const VIRTIO_HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
/// RFC 791 §3.1: the total length has 16 bits.
const LARGEST: usize = 65_535;
/// An IPv4 header with all its options, and UDP's.
const LONGEST_HEADERS: usize = 60 + UDP_HEADER;
/// UDP_MAX_SEGMENTS of the Linux kernel's linux/udp.h, before 6.9.
pub(super) const LONGEST_TRAIN: usize = 64;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet as a host hands it to its device: headers with the pseudo-header's sum, then `payload` bytes.
    fn whole(protocol: u8, headers: usize, payload: usize) -> Vec<u8> {
        let mut packet = vec![0; headers];
        packet[0] = 0x45;
        packet[4..6].copy_from_slice(&7_u16.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, protocol]);
        packet[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        packet[20..24].copy_from_slice(&[4, 0, 4, 0]);
        if protocol == 6 {
            packet[24..28].copy_from_slice(&(u32::MAX - 99).to_be_bytes());
            packet[32..34]
                .copy_from_slice(&[(((headers - 20) / 4) << 4) as u8, TCP_CWR | 0x10 | TCP_PSH | TCP_FIN]);
        }
        let total = (headers + payload) as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet.extend((0..payload).map(|n| (n * 31 % 251) as u8));
        packet
    }

    fn cut(packet: &[u8], size: usize, headers: usize) -> Vec<(Parsed, Vec<u8>)> {
        let frame = Frame { parsed: parse(packet).unwrap(), is_unsummed: true, segment: Some(size) };
        let mut cut = Cut { frame, headers, next: 0 };
        let mut out = vec![0; 2000];
        let mut packets = Vec::new();
        while let Some(parsed) = cut.next(packet, &mut out) {
            packets.push((parsed, out[..parsed.length].to_vec()));
        }
        packets
    }

    /// Header and transport checksums hold once the latter is completed.
    fn assert_sums(packet: &[u8], parsed: &Parsed) {
        let mut packet = packet.to_vec();
        assert_eq!(checksum(&packet[..20]), 0);
        complete_checksum(&mut packet, parsed);
        let mut pseudo = packet[12..20].to_vec();
        pseudo.extend([0, packet[9]]);
        pseudo.extend(((packet.len() - 20) as u16).to_be_bytes());
        pseudo.extend(&packet[20..]);
        assert_eq!(checksum(&pseudo), 0, "data and pseudo-header sum up to all ones");
    }

    #[test]
    fn a_udp_super_packet_is_cut_into_datagrams_of_their_own() {
        let packet = whole(17, 28, 400);
        let packets = cut(&packet, 160, 28);
        let lengths: Vec<_> = packets.iter().map(|(parsed, _)| parsed.length).collect();
        assert_eq!(lengths, [188, 188, 108]);
        let mut payload: Vec<u8> = Vec::new();
        for (number, (parsed, bytes)) in packets.iter().enumerate() {
            assert_eq!(parse(bytes), Some(*parsed), "what it says of itself is what it is");
            assert_eq!(parsed.identification, 7 + number as u16);
            assert_eq!(usize::from(u16::from_be_bytes([bytes[24], bytes[25]])), parsed.length - 20);
            assert_sums(bytes, parsed);
            payload.extend(&bytes[28..]);
        }
        assert_eq!(payload, packet[28..]);
    }

    #[test]
    fn a_tcp_super_packet_is_cut_into_segments_with_their_sequence_numbers_and_flags() {
        // 12 bytes of options; the sequence number wraps.
        let packet = whole(6, 52, 300);
        let packets = cut(&packet, 100, 52);
        let flags: Vec<_> = packets.iter().map(|(_, bytes)| bytes[33]).collect();
        assert_eq!(flags, [TCP_CWR | 0x10, 0x10, 0x10 | TCP_PSH | TCP_FIN]);
        for (number, (parsed, bytes)) in packets.iter().enumerate() {
            let (sequence, _, payload) = super::super::packet::tcp_sequence(bytes, parsed).unwrap();
            assert_eq!((sequence, payload), ((u32::MAX - 99).wrapping_add(100 * number as u32), 100));
            assert_sums(bytes, parsed);
        }
    }

    #[test]
    fn one_packet_is_itself() {
        let packet = whole(17, 28, 33);
        let frame = Frame { parsed: parse(&packet).unwrap(), is_unsummed: false, segment: None };
        let mut cut = Cut { frame, headers: 28, next: 0 };
        let mut out = [0; 100];
        assert_eq!((cut.left(), cut.next(&packet, &mut out)), (1, Some(frame.parsed)));
        assert_eq!(out[..61], packet[..]);
        assert_eq!((cut.left(), cut.next(&packet, &mut out)), (0, None));
        let mut small = Cut { frame, headers: 28, next: 0 };
        assert_eq!(small.next(&packet, &mut [0; 60]), None, "what has no room is no packet");
    }
}
