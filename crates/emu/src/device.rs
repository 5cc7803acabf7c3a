//! A device: the emulator's end of a host's virtual Ethernet cable. The emulator receives packets from it one
//! by one, and writes packets and trains of datagrams to it.
//!
//! ```text
//!  receive: one packet, stamped by the kernel as it left its host
//!  write:   one packet                   or  headers | payload, payload, payload  (a train, cut by the host)
//! ```
//!
//! The sending host's kernel cuts a large TCP write, or a UDP write with UDP_SEGMENT, before the host's
//! device (`talkpath_kernel::host::cable`). So each packet has a stamp, an arrival and a decision of its own.
//! In the other direction, datagrams of one flow whose departures have come are handed over by one write, as
//! a network card with GRO would do it. The kernel cuts them again for the socket. A write costs as much as a
//! dozen datagrams. TCP's segments are written one by one, because merged segments would have fewer
//! acknowledgements.
//!
//! Before each packet there are a `virtio_net_hdr` (linux/virtio_net.h; 10 bytes, native byte order) and an
//! Ethernet header. The checksums of TCP and UDP are not complete, as between a host and its network card.
//! Until somebody completes it, the field has the sum of the pseudo-header (RFC 9293 §3.1, RFC 768).

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use talkpath_kernel::host::cable::ethertype;
use talkpath_kernel::host::netlink::HOST_HARDWARE;
use talkpath_kernel::host::ring::{Layout, Ring, VIRTIO_HEADER, WaitingFrame};
use talkpath_model::IpVersion;

use crate::packet::{Parsed, Protocol, UDP, UDP_HEADER, checksum, parse, stays_on_link, sum};

/// One host's cable.
pub(super) struct Device<'a> {
    fd: &'a OwnedFd,
    ring: Ring,
    /// True until the kernel refuses a train. Linux 6.2 and later know UDP's super-packets.
    pub(super) supports_trains: bool,
    header: [u8; FRONT],
}

/// A packet that was received from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// A packet that may belong to a flow.
    Packet {
        parsed: Parsed,
        /// True if the checksum of TCP or UDP is not complete.
        needs_checksum: bool,
    },
    /// No packet of IP, or one that stays on its link: link-local multicast.
    Stray,
    /// A packet larger than the device's MTU, which the host should have cut.
    TooLarge,
}

impl<'a> Device<'a> {
    /// Makes the emulator's ends of both cables. Their packet sockets are `fds`. Packets have at most `mtu`
    /// bytes.
    ///
    /// # Errors
    /// Returns the system's error if the ring of a socket cannot be mapped.
    pub(super) fn pair(fds: &'a [OwnedFd; 2], mtu: u16) -> io::Result<[Self; 2]> {
        Ok([Self::new(&fds[0], mtu)?, Self::new(&fds[1], mtu)?])
    }

    fn new(fd: &'a OwnedFd, mtu: u16) -> io::Result<Self> {
        let mut header = [0; FRONT];
        // The sender's hardware address stays zero, because nobody answers to it.
        header[VIRTIO_HEADER..VIRTIO_HEADER + HOST_HARDWARE.len()].copy_from_slice(&HOST_HARDWARE);
        Ok(Self { fd, ring: Ring::map(fd, Layout::of(mtu))?, supports_trains: true, header })
    }

    /// Writes the ethertype of packets of this version of IP into the Ethernet header.
    fn set_ethertype(&mut self, ip: IpVersion) {
        self.header[FRONT - 2..].copy_from_slice(&ethertype(ip == IpVersion::V6).to_be_bytes());
    }

    pub(super) const fn fd(&self) -> &OwnedFd {
        self.fd
    }

    /// Returns the stamp of the packet that waits longest: when it left its host, ns of CLOCK_REALTIME.
    /// Returns `None` if no packet waits.
    pub(super) fn oldest_stamp_ns(&self) -> Option<i64> {
        self.ring.peek().map(|waiting| waiting.stamp_ns)
    }

    /// Receives the packet that waits longest into `out`.
    pub(super) fn receive(&mut self, out: &mut [u8]) -> Received {
        let received = self.ring.peek().map_or(Received::Stray, |waiting| receive_frame(&waiting, out));
        self.ring.release();
        received
    }

    /// Discards the packet that waits longest.
    pub(super) fn discard(&mut self) {
        self.ring.release();
    }

    /// Writes a packet to the host.
    ///
    /// # Errors
    /// Returns the system's error if the device does not take the packet.
    pub(super) fn write(
        &mut self,
        packet: &[u8],
        parsed: &Parsed,
        needs_checksum: bool,
    ) -> Result<(), Errno> {
        self.header[..VIRTIO_HEADER].fill(0);
        self.set_ethertype(parsed.ip);
        if needs_checksum {
            self.request_checksum(parsed);
        }
        rustix::io::writev(self.fd, &[IoSlice::new(&self.header), IoSlice::new(packet)]).map(drop)
    }

    /// Writes a train of datagrams of one flow to the host. `first` is the whole first datagram, and `rest`
    /// are the payloads of the others. All payloads have `size` bytes, and only the last may be shorter.
    ///
    /// # Errors
    /// Returns the system's error if the device does not take the train.
    pub(super) fn write_train<'b>(
        &mut self,
        first: &'b [u8],
        parsed: &Parsed,
        rest: impl Iterator<Item = &'b [u8]>,
        size: usize,
    ) -> Result<(), Errno> {
        let headers = parsed.header + UDP_HEADER;
        let Some((head, payload)) = first.split_at_checked(headers) else { return Err(Errno::INVAL) };
        let mut slices = [IoSlice::new(&[]); MAX_TRAIN + 2];
        let (mut count, mut length) = (3, payload.len());
        slices[2] = IoSlice::new(payload);
        for payload in rest.take(MAX_TRAIN - 1) {
            slices[count] = IoSlice::new(payload);
            (count, length) = (count + 1, length + payload.len());
        }
        let mut front = [0; MAX_HEADERS];
        let Some(room) = front.get_mut(..headers) else {
            return Err(Errno::INVAL);
        };
        room.copy_from_slice(head);
        set_length(room, parsed, length);
        self.header[..VIRTIO_HEADER].fill(0);
        self.set_ethertype(parsed.ip);
        self.request_checksum(parsed);
        self.header[1] = GSO_UDP_L4;
        self.header[2..4].copy_from_slice(&((ETHERNET_HEADER + headers) as u16).to_ne_bytes());
        self.header[4..6].copy_from_slice(&(size as u16).to_ne_bytes());
        slices[0] = IoSlice::new(&self.header);
        slices[1] = IoSlice::new(&front[..headers]);
        rustix::io::writev(self.fd, &slices[..count]).map(drop)
    }

    /// Says in the header that the host has to complete the checksum, and where the checksum is.
    fn request_checksum(&mut self, parsed: &Parsed) {
        self.header[0] = NEEDS_CHECKSUM;
        self.header[6..8].copy_from_slice(&((ETHERNET_HEADER + parsed.header) as u16).to_ne_bytes());
        self.header[8..10].copy_from_slice(&(checksum_place(parsed.protocol) as u16).to_ne_bytes());
    }
}

/// Copies the packet of a frame into `out`.
fn receive_frame(waiting: &WaitingFrame<'_>, out: &mut [u8]) -> Received {
    let [flags, GSO_NONE, ..] = *waiting.header else { return Received::TooLarge };
    if !waiting.is_whole {
        return Received::TooLarge;
    }
    let Some(parsed) = parse(waiting.packet) else { return Received::Stray };
    if stays_on_link(waiting.packet, parsed.ip) {
        return Received::Stray;
    }
    // A host's device completes no checksums of other protocols (`talkpath_kernel::host::cable`).
    let needs_checksum = flags & NEEDS_CHECKSUM != 0 && !matches!(parsed.protocol, Protocol::Other(_));
    let Some(room) = out.get_mut(..parsed.length) else { return Received::TooLarge };
    room.copy_from_slice(&waiting.packet[..parsed.length]);
    Received::Packet { parsed, needs_checksum }
}

/// Changes `headers`, which are those of a datagram like `parsed`, so that `payload` bytes follow. It sets
/// the lengths, the checksum of IPv4, and UDP's checksum to the sum of the pseudo-header (RFC 768, RFC 8200
/// §8.1).
fn set_length(headers: &mut [u8], parsed: &Parsed, payload: usize) {
    // Callers hold the whole below 64 KiB.
    let total = (headers.len() + payload) as u16;
    let transport = total - parsed.header as u16;
    let addresses = match parsed.ip {
        IpVersion::V4 => {
            headers[2..4].copy_from_slice(&total.to_be_bytes());
            headers[10..12].fill(0);
            let ip = checksum(&headers[..parsed.header]);
            headers[10..12].copy_from_slice(&ip.to_be_bytes());
            12..20
        }
        IpVersion::V6 => {
            headers[4..6].copy_from_slice(&transport.to_be_bytes());
            8..40
        }
    };
    headers[parsed.header + 4..parsed.header + 6].copy_from_slice(&transport.to_be_bytes());
    let pseudo = sum(&headers[addresses]) + u32::from(UDP) + u32::from(transport);
    let pseudo = (pseudo & 0xffff) + (pseudo >> 16);
    let pseudo = ((pseudo & 0xffff) + (pseudo >> 16)) as u16;
    let place = parsed.header + checksum_place(Protocol::Udp);
    headers[place..place + 2].copy_from_slice(&pseudo.to_be_bytes());
}

/// Completes the checksum of an unfragmented `packet`, whose checksum field has the sum of the pseudo-header.
pub(super) fn complete_checksum(packet: &mut [u8], parsed: &Parsed) {
    let place = parsed.header + checksum_place(parsed.protocol);
    let Some(transport) = packet.get(parsed.header..parsed.length) else { return };
    // A sum of zero is sent as all ones, because zero in UDP means that there is no checksum (RFC 768).
    let sum = match checksum(transport) {
        0 => 0xffff,
        sum => sum,
    };
    if let Some(bytes) = packet.get_mut(place..place + 2) {
        bytes.copy_from_slice(&sum.to_be_bytes());
    }
}

/// The place of the checksum in a transport's header.
const fn checksum_place(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Tcp => 16,
        // The packets of other protocols have complete checksums.
        Protocol::Udp | Protocol::Other(_) => 6,
    }
}

/// The bytes before a packet: `virtio_net_hdr` (flags, kind, header length, segment size, where summing
/// begins, where the sum goes), and the Ethernet header.
const FRONT: usize = VIRTIO_HEADER + ETHERNET_HEADER;
/// IEEE 802.3: two addresses and a type.
const ETHERNET_HEADER: usize = 14;
const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_UDP_L4: u8 = 5;
/// An IPv4 header with all its options, and UDP's.
const MAX_HEADERS: usize = 60 + UDP_HEADER;
/// UDP_MAX_SEGMENTS of the Linux kernel's linux/udp.h, before 6.9.
pub(super) const MAX_TRAIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_should_have_cut_is_told_from_what_is_no_flows() {
        let packet = datagram(160);
        let header = [NEEDS_CHECKSUM, GSO_NONE, 0, 0, 0, 0, 0, 0, 0, 0];
        let cut = [0, GSO_UDP_L4, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut out = [0; 1500];
        let mut received = |header: &[u8], packet: &[u8], is_whole| {
            receive_frame(&WaitingFrame { stamp_ns: 0, header, packet, is_whole }, &mut out)
        };
        let parsed = parse(&packet).unwrap();
        assert_eq!(received(&header, &packet, true), Received::Packet { parsed, needs_checksum: true });
        assert_eq!(received(&cut, &packet, true), Received::TooLarge);
        assert_eq!(received(&header, &packet[..100], false), Received::TooLarge);
        assert_eq!(received(&header, &datagram(1600), true), Received::TooLarge, "no room for it here");
        let mut group = packet.clone();
        group[16..20].copy_from_slice(&[224, 0, 0, 22]);
        assert_eq!(received(&header, &group, true), Received::Stray, "it stays on its link");
        assert_eq!(out[..188], packet);
    }

    /// A packet as a host hands it to its device, but for its lengths and sums: headers, then `payload`
    /// bytes.
    fn datagram(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[4..6].copy_from_slice(&7_u16.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 17]);
        packet[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        packet[20..24].copy_from_slice(&[4, 0, 4, 0]);
        let total = (28 + payload) as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet.extend((0..payload).map(|n| (n * 31 % 251) as u8));
        packet
    }

    /// The same in IPv6.
    fn datagram_v6(payload: usize) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
        packet[4..6].copy_from_slice(&((UDP_HEADER + payload) as u16).to_be_bytes());
        packet.extend([[0x20; 16], [0x21; 16]].concat());
        packet.extend(&datagram(payload)[20..]);
        packet
    }

    /// Of a train the host sums up lengths and addresses alone, of each datagram in it the rest (RFC 768,
    /// RFC 1071).
    #[test]
    fn the_headers_of_a_train_are_those_of_one_datagram_with_all_its_payload() {
        type Make = fn(usize) -> Vec<u8>;
        for (make, header, addresses) in [(datagram as Make, 20, 12..20), (datagram_v6 as Make, 40, 8..40)] {
            for payload in [1, 160, 64 * 160, 65_000] {
                let (first, mut whole) = (make(payload.min(160)), make(payload));
                let parsed = parse(&first).unwrap();
                let mut headers = first[..header + UDP_HEADER].to_vec();
                set_length(&mut headers, &parsed, payload);
                whole[..header + UDP_HEADER].copy_from_slice(&headers);
                let parsed = parse(&whole).unwrap();
                assert_eq!((parsed.header, parsed.length), (header, header + UDP_HEADER + payload));
                assert!(header == 40 || checksum(&whole[..20]) == 0);
                let length = [whole[header + 4], whole[header + 5]];
                assert_eq!(usize::from(u16::from_be_bytes(length)), 8 + payload);
                complete_checksum(&mut whole, &parsed);
                let mut pseudo = whole[addresses.clone()].to_vec();
                pseudo.extend([0, UDP, length[0], length[1]]);
                let all = sum(&pseudo) + sum(&whole[header..]);
                let once = (all & 0xffff) + (all >> 16);
                assert_eq!(
                    (once & 0xffff) + (once >> 16),
                    0xffff,
                    "data and pseudo-header sum up to all ones"
                );
            }
        }
    }
}
