//! Keeps the files that arrived in a session, if the server has a folder for files.

use std::path::Path;
use std::sync::atomic::Ordering;

use talkpath_kernel::file::keep;

use super::Session;

impl Session<'_> {
    /// Writes each file that arrived intact to the server's folder. The log of the flow then says under which
    /// name the file was kept, or why it was not kept.
    pub(super) fn keep_files(&self) {
        let Some(folder) = &self.shared.keep else { return };
        for end in &self.ends {
            let mut end = end.lock();
            let end = &mut *end;
            let is_intact = end.log.totals.file.as_ref().is_some_and(|outcome| outcome.is_intact);
            let (Some(file), Some(sink), true) = (&end.spec.file, end.sink(), is_intact) else { continue };
            let size = sink.content().len();
            let kept = self.keep_file(folder, &file.name, sink.content());
            let Some(outcome) = &mut end.log.totals.file else { continue };
            match kept {
                Ok(name) => {
                    (self.log)(&format!("kept a file of {size} B as {name}"));
                    outcome.kept_as = Some(name);
                }
                Err(why) => {
                    let line = format!("a file of {size} B could not be kept: {why}");
                    self.shared.log_limited(&line, self.log);
                    outcome.not_kept = Some(why);
                }
            }
        }
    }

    /// Writes a file to `folder`, if the limit of all kept files allows it. Returns the name of the kept
    /// file.
    fn keep_file(&self, folder: &Path, name: &str, content: &[u8]) -> Result<String, String> {
        let size = content.len() as u64;
        self.reserve_kept_bytes(size)?;
        keep(folder, name, content).map_err(|error| {
            self.release_kept_bytes(size);
            error.to_string()
        })
    }

    /// Takes `size` bytes from what the server may keep.
    ///
    /// # Errors
    /// Returns a text with the limit if less is left.
    pub(super) fn reserve_kept_bytes(&self, size: u64) -> Result<(), String> {
        let limit = self.shared.limits.kept_bytes;
        let add = |kept: u64| kept.checked_add(size).filter(|kept| *kept <= limit);
        let reserved = self.shared.kept_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        reserved.map(|_| ()).map_err(|_| format!("its limit of {limit} B is reached"))
    }

    /// Gives back `size` bytes that were reserved and not written.
    pub(super) fn release_kept_bytes(&self, size: u64) {
        self.shared.kept_bytes.fetch_sub(size, Ordering::Relaxed);
    }
}
