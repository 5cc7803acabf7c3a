//! The commands that need the types of one arena. Each has a module.

pub(crate) mod doctor;
pub(crate) mod path_shell;
pub(crate) mod play;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod stamp;
pub(crate) mod ui;
