//! A folder as a store, such as a mounted share: an object is a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Objects, files_below, now, sha256_of};

/// Objects are files below it.
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// A folder that is made here would hide that a share is not mounted.
    fn check(&self) -> Result<(), String> {
        match self.root.is_dir() {
            true => Ok(()),
            false => Err(format!(
                "there is no folder {}: mount it, make it, or correct `store`",
                self.root.display()
            )),
        }
    }

    fn write(&self, target: &Path, file: &Path) -> io::Result<()> {
        let folder = target.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let draft = folder.join(format!(".{name}.{}", now().as_nanos()));
        let written = write_whole(file, &draft).and_then(|()| fs::rename(&draft, target));
        if written.is_err() {
            // What cannot be removed has a name that no reader takes.
            let _ = fs::remove_file(&draft);
            return written;
        }
        // Not every share can sync a folder. A name that a power cut takes away is copied again by `push`.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Only the content: not every share has permissions to set, and those of the records may keep readers out.
fn write_whole(file: &Path, draft: &Path) -> io::Result<()> {
    let mut copy = File::create_new(draft)?;
    io::copy(&mut File::open(file)?, &mut copy)?;
    copy.sync_all()
}

impl Objects for Folder {
    fn list(&self, folder: &str) -> Result<BTreeMap<String, u64>, String> {
        self.check()?;
        let below = self.root.join(folder);
        if !below.exists() {
            return Ok(BTreeMap::new());
        }
        let unread = |why: io::Error| super::unread(&below, &why);
        let mut sizes = BTreeMap::new();
        for (name, path) in files_below(&below).map_err(unread)? {
            sizes.insert(format!("{folder}/{name}"), fs::metadata(&path).map_err(unread)?.len());
        }
        Ok(sizes)
    }

    fn sha256(&self, key: &str) -> Result<Option<String>, String> {
        let path = self.root.join(key);
        sha256_of(&path).map(|(_, digest)| Some(digest)).map_err(|why| super::unread(&path, &why))
    }

    fn put(&self, key: &str, file: &Path, _: &str) -> Result<(), String> {
        self.check()?;
        let target = self.root.join(key);
        self.write(&target, file).map_err(|why| format!("cannot write {}: {why}", target.display()))
    }
}
