//! The properties of an encapsulated protocol that other crates ask for.

use talkpath_units::Bytes;

/// The properties of an encapsulated protocol with its options.
pub trait EncapsulatedOptions {
    /// Returns the largest message on a path with this MTU.
    fn largest_message(&self, path_mtu: Bytes) -> Bytes;
    /// Returns the size of the receiving socket's buffer, for a flow whose receiver does not set one.
    fn socket_buffer(&self) -> Bytes;
    /// Whether the packets may get ECN marks (RFC 3168).
    fn wants_ecn(&self) -> bool;
    /// Switches ECN off. Real hosts do so, because their sockets neither set nor read the ECN field.
    fn leave_out_ecn(&mut self);
    /// Makes a server keep no state before the client has proved its address.
    fn keep_no_state(&mut self);
    /// Returns the keys of the scenario that these options set and that real hosts ignore.
    fn ignored(&self) -> Vec<&'static str>;
    /// Checks the values, which may come from another host. Returns the first value that is wrong, as a
    /// phrase of what is needed.
    fn need(&self) -> Option<&'static str>;
}
