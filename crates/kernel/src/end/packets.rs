//! Notes which messages are in which encrypted packet. The emulator between the hosts asks for the notes,
//! because it cannot read the packets.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The notes about the packets of one end that carry messages. A note is kept until the emulator asks for it.
#[derive(Debug, Default)]
pub struct PacketNotes(Mutex<VecDeque<Note>>);

/// The note about one packet.
#[derive(Debug)]
struct Note {
    packet: PacketMark,
    /// For each message, the place of its flow in the connection and the message's number.
    messages: Vec<(u32, u64)>,
}

/// Tells a packet from other packets: the last octets of its tag, which are as good as random (RFC 9001
/// §5.3).
type PacketMark = [u8; 8];

impl PacketNotes {
    /// Notes that the UDP payload `packet`, which is about to leave, carries `messages`. A packet without
    /// messages is not noted.
    pub fn note(&self, packet: &[u8], messages: Vec<(u32, u64)>) {
        let Some(mark) = packet.last_chunk().filter(|_| !messages.is_empty()) else { return };
        let mut notes = self.lock();
        if notes.len() >= MAX_NOTES {
            notes.pop_front();
        }
        notes.push_back(Note { packet: *mark, messages });
    }

    /// Takes the messages in the UDP payload `packet`, each with its flow. `None` if there is no note about
    /// it.
    pub fn take(&self, packet: &[u8]) -> Option<Vec<(u32, u64)>> {
        let mark: &PacketMark = packet.last_chunk()?;
        let mut notes = self.lock();
        let at = notes.iter().position(|note| note.packet == *mark)?;
        // Each packet passes the emulator once, and in order. The packets before this one never came, so
        // their notes are removed too.
        notes.drain(..=at).next_back().map(|note| note.messages)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest number of notes that are kept. We chose 2^14, which is more than the packets that a host's
/// socket and device hold.
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
