//! The ECN field of the IP header, which routers write and transports read.

/// The ECN field (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable transport.
    Ect0,
    /// ECN-capable transport, the other codepoint.
    Ect1,
    /// Congestion experienced.
    Ce,
}
