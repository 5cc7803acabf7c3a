//! What carries a packet of ours whose bytes are written: UDP between real hosts, IP alone in captures.

/// A connection's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

/// What the Checksum field covers besides the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// IPv4, as a protocol of its own: the checksum covers these addresses (RFC 4340 §9.1).
    Ipv4 {
        /// The sender's address.
        source: [u8; 4],
        /// The receiver's.
        destination: [u8; 4],
    },
    /// UDP (RFC 6773), which has a checksum of its own.
    Udp,
}

/// The form in which a protocol travels as a protocol of IP by itself, and what turns its bytes in UDP into
/// those.
#[derive(Clone, Copy, Debug)]
pub struct NativeForm {
    /// IP's protocol number.
    pub protocol: u8,
    /// Its port of UDP, by which decoders know it.
    pub udp_port: u16,
    /// The length of its smallest header, bytes.
    pub smallest_header: usize,
    /// The offset of its Internet checksum (RFC 1071), two bytes that are zero inside UDP.
    pub checksum_at: usize,
    /// Returns the number of bytes that the checksum covers of a packet of `whole` bytes. `packet` has at
    /// least the smallest header.
    pub covered: fn(packet: &[u8], whole: usize) -> usize,
}
