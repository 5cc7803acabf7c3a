//! The connection IDs that a server has given out, and whose each is.
//!
//! A QUIC connection is known by the ID in each of its packets and not by the address that they come from
//! (RFC 9000 §5.2), so that it goes on when a translator gives the client another port. Many connections
//! share a server's socket. Each draws its IDs at random, as the library does, and notes them in the server's
//! table.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, RandomConnectionIdGenerator};

use crate::codepoints::LONG_HEADER;

/// The IDs of all connections at a socket, with the token of the connection that each belongs to.
#[derive(Clone, Debug, Default)]
pub struct IdTable(Arc<Mutex<BTreeMap<Id, u32>>>);

/// An ID of the length that the library's own have.
type Id = [u8; ID_LENGTH];

impl IdTable {
    /// The token of the connection whose ID a 1-RTT packet in `datagram` is for; `None` if it has another
    /// header or nobody's ID.
    pub fn owner(&self, datagram: &[u8]) -> Option<u32> {
        // RFC 9000 §17.3.1: a short header's first bit is 0, and the ID follows the first byte.
        let (first_byte, rest) = datagram.split_first()?;
        let id = rest.first_chunk().filter(|_| first_byte & LONG_HEADER == 0)?;
        self.lock().get::<Id>(id).copied()
    }

    /// How many IDs there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Id, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the IDs of one end are noted with.
#[derive(Clone, Debug, Default)]
pub struct IdOwner {
    /// Where they are noted.
    pub table: IdTable,
    /// Whose they are.
    pub token: u32,
}

impl IdOwner {
    /// Draws the IDs of an endpoint.
    pub(crate) fn generator(&self) -> Box<dyn ConnectionIdGenerator> {
        let random = RandomConnectionIdGenerator::new(ID_LENGTH);
        Box::new(NotedIds { owner: self.clone(), random, noted: VecDeque::new() })
    }
}

/// Draws IDs at random, and keeps the newest of them in the table.
struct NotedIds {
    owner: IdOwner,
    random: RandomConnectionIdGenerator,
    noted: VecDeque<Id>,
}

impl ConnectionIdGenerator for NotedIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let id = self.random.generate_cid();
        if let Some(octets) = id.first_chunk() {
            let mut table = self.owner.table.lock();
            // Of two equal IDs the older one stays: the library draws again only among its own.
            table.entry(*octets).or_insert(self.owner.token);
            self.noted.push_back(*octets);
            if self.noted.len() > MOST_NOTED
                && let Some(oldest) = self.noted.pop_front()
            {
                table.remove(&oldest);
            }
        }
        id
    }

    fn cid_len(&self) -> usize {
        ID_LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl Drop for NotedIds {
    fn drop(&mut self) {
        let mut table = self.owner.table.lock();
        for id in &self.noted {
            table.remove(id);
        }
    }
}

/// Bytes of an ID, as of quinn-proto's own generators (`cid_generator.rs`).
const ID_LENGTH: usize = 8;
/// How many IDs of a connection are in the table: chosen, twice the eight that the library has given out at
/// one time. A peer that has others drawn without end costs no more.
const MOST_NOTED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn short_header(id: &ConnectionId) -> Vec<u8> {
        [&[0x40][..], id, &[0; 20]].concat()
    }

    #[test]
    fn a_short_header_is_known_by_its_id_until_the_connection_is_gone() {
        let table = IdTable::default();
        let mut first = IdOwner { table: table.clone(), token: 7 }.generator();
        let mut second = IdOwner { table: table.clone(), token: 8 }.generator();
        let ids = [first.generate_cid(), second.generate_cid()];
        assert_eq!(ids.map(|id| table.owner(&short_header(&id))), [Some(7), Some(8)]);
        let mut long = short_header(&ids[0]);
        long[0] |= LONG_HEADER;
        assert_eq!([table.owner(&long), table.owner(&[0x40, 1, 2]), table.owner(&[])], [None; 3]);
        drop(first);
        assert_eq!(ids.map(|id| table.owner(&short_header(&id))), [None, Some(8)]);
    }

    #[test]
    fn a_connection_that_draws_ids_without_end_has_the_newest_sixteen_in_the_table() {
        let table = IdTable::default();
        let mut ids = IdOwner { table: table.clone(), token: 7 }.generator();
        let drawn: Vec<_> = (0..1000).map(|_| ids.generate_cid()).collect();
        assert_eq!(table.len(), MOST_NOTED);
        assert_eq!(table.owner(&short_header(&drawn[984])), Some(7));
        assert_eq!(table.owner(&short_header(&drawn[983])), None);
    }
}
