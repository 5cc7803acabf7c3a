//! An initramfs as the kernel unpacks it: a cpio archive in the "newc" form (Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst): 110 B of header in hexadecimal, the name, the
//! contents, each padded to 4 B. What it leaves out: owners, times, links and compression, none of which a
//! boot needs.

/// An archive that grows file by file.
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// An archive without a file.
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), entries: 0 }
    }

    /// Adds an empty directory.
    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// Adds a file that may be run.
    pub(crate) fn file(&mut self, name: &str, contents: &[u8]) {
        self.entry(name, PROGRAM, contents);
    }

    /// The whole archive with its closing entry.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let (inode, links) = (self.entries, 1);
        let size = u32::try_from(contents.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        // Magic, inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name's size,
        // checksum.
        self.bytes.extend_from_slice(b"070701");
        for field in [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// A directory that anybody may read.
const DIRECTORY: u32 = 0o040_755;

/// A file that anybody may read and run.
const PROGRAM: u32 = 0o100_755;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_starts_at_a_multiple_of_four_and_the_trailer_ends_it() {
        let mut archive = Archive::new();
        archive.directory("dev");
        archive.file("init", b"hello");
        let bytes = archive.finish();
        let starts: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(b"070701")).collect();
        // "dev": 110 + 4 B, padded to 116; "init": 110 + 5 to 116, 5 B of contents to 8.
        assert_eq!(starts, [0, 116, 116 + 116 + 8]);
        assert!(bytes.windows(11).any(|it| it == b"TRAILER!!!\0"));
    }
}
