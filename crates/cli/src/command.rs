//! The commands that need one arena's own types, one module each.

pub(crate) mod doctor;
pub(crate) mod play;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod stamp;
