//! What an encapsulated protocol says of itself.

use talkpath_units::Bytes;

/// What an encapsulated protocol says of itself.
pub trait EncapsulatedOptions {
    /// The largest message on a path of this MTU.
    fn largest_message(&self, path_mtu: Bytes) -> Bytes;
    /// Room of the receiving socket, if the receiver has none of its own.
    fn socket_buffer(&self) -> Bytes;
    /// Whether its packets are to take marks (RFC 3168).
    fn wants_ecn(&self) -> bool;
    /// Between real hosts no packet takes a mark: the sockets neither set nor read the ECN field.
    fn leave_out_ecn(&mut self);
    /// From now on a server with these options keeps no state before a client's address is shown.
    fn keep_no_state(&mut self);
    /// The scenario's keys that real hosts ignore although these options set them.
    fn ignored(&self) -> Vec<&'static str>;
    /// What no scenario's check would have let through, as what is needed instead; `None` if all is well.
    fn need(&self) -> Option<&'static str>;
}
