//! Which messages are in encrypted packets: for the emulator, which is between the hosts and cannot read
//! them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The packets of one end that carry messages, until the emulator has asked for them.
#[derive(Debug, Default)]
pub struct PacketNotes(Mutex<VecDeque<Note>>);

/// A packet, and which messages are in it.
#[derive(Debug)]
struct Note {
    packet: PacketMark,
    /// For each message its flow, by the flow's place in the connection, and its number.
    messages: Vec<(u32, u64)>,
}

/// What tells a packet from others: the last octets of its tag, which are as good as random (RFC 9001 §5.3).
type PacketMark = [u8; 8];

impl PacketNotes {
    /// The UDP payload `packet` is about to leave, with these messages in it, if there are any.
    pub fn note(&self, packet: &[u8], messages: Vec<(u32, u64)>) {
        let Some(mark) = packet.last_chunk().filter(|_| !messages.is_empty()) else { return };
        let mut notes = self.lock();
        if notes.len() >= MAX_NOTES {
            notes.pop_front();
        }
        notes.push_back(Note { packet: *mark, messages });
    }

    /// The messages in the UDP payload `packet`, each with its flow; `None` if there are none.
    pub fn take(&self, packet: &[u8]) -> Option<Vec<(u32, u64)>> {
        let mark: &PacketMark = packet.last_chunk()?;
        let mut notes = self.lock();
        let at = notes.iter().position(|note| note.packet == *mark)?;
        // A packet passes once, in order: those before it never came.
        notes.drain(..=at).next_back().map(|note| note.messages)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes that nobody asked for (chosen: above what a host's socket and device hold).
const MAX_NOTES: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_known_by_its_end_and_once() {
        let notes = PacketNotes::default();
        let packet = |number: u8| [[1; 20], [number; 20]].concat();
        for number in 0..4 {
            notes.note(&packet(number), vec![(2, number.into())]);
        }
        assert_eq!(notes.take(&packet(1)), Some(vec![(2, 1)]));
        // Packet 0 never came: what leaves a host keeps its order.
        assert_eq!((notes.take(&packet(1)), notes.take(&packet(0))), (None, None));
        assert_eq!((notes.take(&packet(9)), notes.take(&[1; 3])), (None, None));
        assert_eq!(notes.take(&packet(3)), Some(vec![(2, 3)]));
    }
}
