//! DCCP (RFC 4340): datagrams under congestion control, with CCIDs as half-connections.
//!
//! | file | what it holds | RFC 4340 |
//! | --- | --- | --- |
//! | `seq` | sequence numbers | §7.1, §7.6 |
//! | `packet` | the ten packet types | §5 |
//! | `options` | options in a packet | §5.8 |
//! | `ack_vector` | what arrived, told and read | §11.4 |
//! | `ccid` | the contract with a congestion control | §10 |
//!
//! The ECN Nonce (§12.2) is left out: packets are sent with ECT(0), whose nonce is 0, so that every sum is 0; RFC 8311
//! made the nonce historic.

mod ack_vector;
pub mod ccid;
mod options;
mod packet;
mod seq;

pub use ack_vector::{AckHistory, AckRun, AckState, ack_vector};
pub use options::{DccpOption, FeatureKind, FeatureOption, OptionIter, Options};
pub use packet::{DccpPacket, PacketKind, Reset, ResetCode, ServiceCode};
pub use seq::Seq;
