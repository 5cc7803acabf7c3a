//! The run that is exported.

use talkpath_experiment::run_dir::RunDir;

use crate::arenas::Arenas;
use crate::terminal::Terminal;

/// The run that is exported, and what is needed to read it.
pub(super) struct ExportSource<'a> {
    pub(super) dir: RunDir,
    /// The arenas, in which a run without record files runs again.
    pub(super) arenas: &'a dyn Arenas,
    pub(super) terminal: Terminal,
}
