//! The closed enum over all transports: dispatch by match, no vtable on the per-packet path.

/// Any transport.
pub enum AnyTransport {}
