//! DCCP's packets and their bytes (RFC 4340).
//!
//! | file | what it holds | RFC 4340 |
//! | --- | --- | --- |
//! | `seq` | sequence numbers | §7.1, §7.6 |
//! | `packet` | the ten packet types | §5 |
//! | `options` | options in a packet | §5.8 |
//! | `codec` | bytes, native and inside UDP | §5, RFC 6773 |

pub mod codec;
mod options;
mod packet;
mod seq;

pub use options::{DccpOption, FeatureKind, FeatureOption, OptionIter, Options};
pub use packet::{DccpPacket, PacketKind, Reset, ResetCode, ServiceCode};
pub use seq::Seq;
