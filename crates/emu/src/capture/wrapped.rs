//! A captured packet that carries another protocol in UDP.

use talkpath_wire::carrier::NativeForm;

use crate::packet::{IPV6_HEADER, UDP, checksum, sum};

/// A captured IP packet that carries the packet of another protocol in UDP.
pub(super) struct WrappedPacket<'a> {
    pub(super) is_v6: bool,
    pub(super) ip_header: &'a [u8],
    pub(super) udp_header: &'a [u8],
    /// The captured bytes of the packet in UDP.
    pub(super) inner: &'a [u8],
    /// The size of the packet in UDP as it travelled, bytes.
    pub(super) inner_size: usize,
}

impl<'a> WrappedPacket<'a> {
    /// Cuts a packet into its headers. Returns `None` if fewer than `smallest` bytes of the packet in UDP
    /// were captured.
    pub(super) fn parse(bytes: &'a [u8], original: u32, smallest: usize) -> Option<Self> {
        let is_v6 = *bytes.first()? >> 4 == 6;
        let header_size = if is_v6 { IPV6_HEADER } else { usize::from(bytes[0] & 0x0f) * 4 };
        let fragment_field = u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]);
        let is_fragment = !is_v6 && fragment_field & FRAGMENT_BITS != 0;
        let (ip_header, udp) = bytes.split_at_checked(header_size)?;
        let (udp_header, inner) = udp.split_at_checked(UDP_HEADER)?;
        let has_udp = header_size >= 20 && *bytes.get(protocol_at(is_v6))? == UDP && !is_fragment;
        if !has_udp || inner.len() < smallest {
            return None;
        }
        let inner_size = (original as usize).checked_sub(header_size + UDP_HEADER)?;
        Some(Self { is_v6, ip_header, udp_header, inner, inner_size })
    }

    /// Makes the IP header of the packet without UDP. Returns `None` if the packet is too large for it.
    pub(super) fn native_ip_header(&self, form: &NativeForm) -> Option<Vec<u8>> {
        let mut header = self.ip_header.to_vec();
        header[protocol_at(self.is_v6)] = form.protocol;
        if self.is_v6 {
            header[4..6].copy_from_slice(&u16::try_from(self.inner_size).ok()?.to_be_bytes());
        } else {
            let total = u16::try_from(self.ip_header.len() + self.inner_size).ok()?;
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[10..12].fill(0);
            let check = checksum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
        }
        Some(header)
    }

    /// Computes the checksum of the packet without UDP. `inner` are the captured bytes, whose checksum field
    /// is zero. Returns `None` if bytes that the checksum covers were not captured and cannot be computed.
    pub(super) fn native_checksum(&self, inner: &[u8], form: &NativeForm) -> Option<u16> {
        let covered = (form.covered)(self.inner, self.inner_size);
        let contents = match inner.get(..covered) {
            Some(bytes) => sum(bytes),
            None if covered == self.inner_size => u32::from(self.sum_by_udp_checksum()),
            None => return None,
        };
        let pseudo_header = self.address_sum() + u32::from(form.protocol) + self.inner_size as u32;
        Some(!fold(pseudo_header + u32::from(fold(contents))))
    }

    /// Computes the sum of all bytes of the packet in UDP, although not all were captured. UDP's checksum is
    /// the complement of the sum of all bytes that it covers.
    fn sum_by_udp_checksum(&self) -> u16 {
        let covered = sum(&[!self.udp_header[6], !self.udp_header[7]]);
        let udp_size = (self.inner_size + UDP_HEADER) as u32;
        let headers = self.address_sum() + u32::from(UDP) + udp_size + sum(&self.udp_header[..6]);
        fold(covered + u32::from(!fold(headers)))
    }

    fn address_sum(&self) -> u32 {
        let addresses = if self.is_v6 { 8..40 } else { 12..20 };
        sum(&self.ip_header[addresses])
    }
}

/// Returns the position of the protocol's number in an IP header.
const fn protocol_at(is_v6: bool) -> usize {
    if is_v6 { 6 } else { 9 }
}

/// Adds the carries to a sum (RFC 1071).
pub(super) const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The size of UDP's header, bytes (RFC 768).
pub(super) const UDP_HEADER: usize = 8;
/// The bits of an IPv4 header that only a fragment has: more fragments, or an offset (RFC 791 §3.1).
const FRAGMENT_BITS: u16 = 0x3fff;
