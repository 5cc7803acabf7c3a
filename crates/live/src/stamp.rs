//! STAMP, the Simple Two-Way Active Measurement Protocol (RFC 8762). It measures to far ends that are routers
//! or probes, which do not speak talkpath's protocol. Both roles are here, stateless and stateful, with two
//! TLVs of RFC 8972.

mod codec;
mod reflector;
mod rules;
mod sender;

pub use reflector::{ReflectOptions, Reflected, Reflector};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use sender::fuzzing::receive_answers;
pub use sender::{
    DirectionLosses, Dscps, ReflectorClock, ReflectorFacts, ReportedClass, StampOptions, StampRun, TtlRange,
    send,
};

pub use talkpath_kernel::ports::STAMP_PORT as PORT;
