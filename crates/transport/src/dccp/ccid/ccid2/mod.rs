//! CCID 2, TCP-like congestion control (RFC 4341): a window in packets, halved once for each congestion
//! event.
//!
//! | what | how | RFC 4341 |
//! | --- | --- | --- |
//! | window | `pipe` data packets in the network at most `cwnd` | §5 |
//! | loss | three later packets acknowledged | §5 |
//! | idle | after an RTO without data, `cwnd` falls to the initial window (RFC 5681 §4.1) | §5.1 |
//! | acknowledgements | one for each Ack Ratio data packets, within 0.2 s | §6.1, RFC 4340 §11.3 |
//! | Ack Ratio | doubles for a window with lost acknowledgements, falls slowly without | §6.1.2 |
//! | acknowledgements of acknowledgements | one a window | §6.2 |
//!
//! RFC 4341 lets the window grow while the application does not fill it; `app_limited_growth = false` takes
//! that away.

mod receiver;
mod sender;

pub use receiver::Ccid2Receiver;
pub use sender::Ccid2Sender;
