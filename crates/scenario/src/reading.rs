//! The state that the passes over a scenario share, besides the tree.

use crate::contents::{Contents, Files};
use crate::diagnostic::{Log, Source};
use crate::options::Options;

/// One scenario while it is read.
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a Source,
    /// The changes of the command line.
    pub(crate) options: &'a Options,
    /// Reads the files that the scenario names.
    pub(crate) files: &'a dyn Files,
    /// The contents of these files.
    pub(crate) contents: Contents,
    /// The options that set a key, as messages quote them, by the index of a
    /// [`Place::Option`](crate::diagnostic::Place::Option).
    pub(crate) labels: Vec<String>,
    pub(crate) log: Log,
    /// What is assumed of the path that a file describes.
    pub(crate) path_notes: Vec<String>,
    /// Whether the sizes of its queues are assumed.
    pub(crate) assumes_queues: bool,
    /// What to say if nothing gives the rates of the path. `None` if its file has them.
    pub(crate) lacks_rate: Option<String>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(source: &'a Source, options: &'a Options, files: &'a dyn Files) -> Self {
        Self {
            source,
            options,
            files,
            contents: Contents::default(),
            labels: Vec::new(),
            log: Log::default(),
            path_notes: Vec::new(),
            assumes_queues: false,
            lacks_rate: None,
        }
    }
}
