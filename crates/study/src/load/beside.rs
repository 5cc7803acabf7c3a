//! The files beside a study that its scenarios name: traces, and files that a flow sends. They are text
//! files, and so a part of the study: each run keeps a copy.

use std::cell::RefCell;
use std::collections::BTreeSet;

use talkpath_scenario::{Files, Located, Source};
use talkpath_units::Bytes;

/// Finds files beside a study, and notes the names of those that were found.
#[derive(Default)]
pub(super) struct FilesBeside<'a> {
    files: &'a [Source],
    used: RefCell<BTreeSet<String>>,
}

impl<'a> FilesBeside<'a> {
    pub(super) fn new(files: &'a [Source]) -> Self {
        Self { files, used: RefCell::default() }
    }

    /// Returns the names of the files that scenarios have named.
    pub(super) fn used(&self) -> BTreeSet<String> {
        self.used.borrow().clone()
    }

    fn find(&self, name: &str) -> Result<&'a Source, String> {
        let Some(file) = self.files.iter().find(|file| file.name == name) else {
            let known: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
            return Err(format!("no such file beside the study; there are {}", known.join(", ")));
        };
        self.used.borrow_mut().insert(name.to_owned());
        Ok(file)
    }
}

impl Files for FilesBeside<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        self.find(name).map(|file| file.text.clone())
    }

    /// The path is the name alone: the folder of the study is not known here, and a cell must be the same
    /// wherever the study is.
    fn locate(&self, name: &str) -> Result<Located, String> {
        let file = self.find(name)?;
        Ok(Located { path: file.name.clone(), size: Bytes::new(file.text.len() as u64) })
    }
}
