//! Cuts the input of a control connection into lines.

/// The bytes that were received and not parsed yet. However the input is cut into pieces, each byte is moved
/// at most once, and searched once for a line feed.
#[derive(Default)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// The bytes before this index are parsed.
    begin: usize,
    /// The bytes from `begin` to this index hold no line feed.
    searched: usize,
}

impl LineBuffer {
    /// Returns the bytes that are not parsed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Returns the number of bytes that are stored, including bytes that are parsed already.
    #[cfg(test)]
    pub(super) fn stored(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        // This moves only the bytes that came in one read with the end of a parsed line.
        self.bytes.drain(..self.begin);
        self.searched = self.searched.saturating_sub(self.begin);
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the length of the first line, or `None` if no whole line was received.
    pub(super) fn line_end(&mut self) -> Option<usize> {
        let from = self.searched.max(self.begin);
        match self.bytes[from..].iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                self.searched = from + at;
                Some(from + at - self.begin)
            }
            None => {
                self.searched = self.bytes.len();
                None
            }
        }
    }

    /// Removes `count` bytes from the beginning.
    pub(super) fn consume(&mut self, count: usize) {
        self.begin += count;
    }
}
