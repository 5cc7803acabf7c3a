//! CCID 3 (RFC 4342) and CCID 4 (RFC 5622): DCCP under TCP-friendly rate control.
//!
//! ```text
//!   TfrcSender                                                      TfrcReceiver
//!     rate, window counter ── Data: CCVal ──────────────────────────►  loss history
//!     loss intervals ─► p  ◄── Ack: Elapsed Time, Receive Rate,
//!                                   Loss Intervals [, Dropped Packets] [, Loss Event Rate]
//! ```
//!
//! The machinery is [`crate::tfrc`]; here are its options and numbers. The sender works the loss event rate
//! out of the Loss Intervals option (RFC 4342 §5); the receiver's own, in the Loss Event Rate option, is sent
//! if that is negotiated (§8.4) and not used. CCID 4 is CCID 3 with TFRC-SP and the Dropped Packets option;
//! the sender finds out which intervals were short from its own sending times.
//!
//! Left out: the ECN Nonce Echo, which is 0 as everywhere here, and checking a receiver's honesty by it (§9).

mod options;
mod receiver;
mod sender;

pub(in crate::dccp) use options::knows_option;
pub use receiver::TfrcReceiver;
pub use sender::TfrcSender;

#[cfg(test)]
mod tests;
