//! The datagrams of one flow that came and were not read.

use std::collections::VecDeque;

use talkpath_units::Bytes as Size;

/// Datagrams that wait for their application, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    waiting: VecDeque<(T, Size)>,
    /// Bytes in `waiting`.
    held: Size,
    /// Bytes that may be in `waiting`.
    room: Size,
}

impl<T> Inbox<T> {
    /// An empty one with room for `room` bytes; `None` takes quinn's room.
    pub(crate) fn new(room: Option<Size>) -> Self {
        Self { waiting: VecDeque::new(), held: Size::ZERO, room: room.unwrap_or(ROOM) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps a datagram. As quinn does, the oldest ones give way if there is no room.
    pub(crate) fn push(&mut self, datagram: T, size: Size, mut gives_way: impl FnMut(T)) {
        while self.held + size > self.room
            && let Some((oldest, gone)) = self.waiting.pop_front()
        {
            self.held -= gone;
            gives_way(oldest);
        }
        self.held += size;
        self.waiting.push_back((datagram, size));
    }

    /// The oldest datagram.
    pub(crate) fn pop(&mut self) -> Option<(T, Size)> {
        let (datagram, size) = self.waiting.pop_front()?;
        self.held -= size;
        Some((datagram, size))
    }
}

/// quinn's `datagram_receive_buffer_size`.
const ROOM: Size = Size::new(1_250_000);
