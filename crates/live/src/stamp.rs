//! STAMP, the Simple Two-Way Active Measurement Protocol (RFC 8762). It measures to routers and probes, which
//! do not speak talkpath's protocol. Both roles are here, with two TLVs of RFC 8972.
//!
//! | file | what it does |
//! | --- | --- |
//! | `sender.rs` | the session-sender: sends packets and computes delays and losses from the answers |
//! | `reflector.rs` | the session-reflector: answers packets |
//! | `admission.rs`, `sessions.rs` | which packets the reflector answers, and with which numbers |
//! | `codec.rs` | the packets as bytes |

mod admission;
mod codec;
mod reflector;
mod sender;
mod sessions;

pub use reflector::{ReflectOptions, Reflector, ReflectorCounts};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use sender::fuzzing::receive_answers;
pub use sender::{
    DirectionLosses, Dscps, ReflectorClock, ReflectorFacts, ReportedClass, StampOptions, StampRun, TtlRange,
    send,
};

pub use talkpath_kernel::ports::STAMP_PORT as PORT;
