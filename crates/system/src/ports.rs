//! The ports at which the program's servers listen unless the user names others.

/// The port of `talkpath serve`, for TCP and UDP. Chosen.
pub const DEFAULT_PORT: u16 = 7160;

/// The port of a STAMP reflector (RFC 8762 §4.1).
pub const STAMP_PORT: u16 = 862;
