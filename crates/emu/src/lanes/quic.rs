//! Connections of QUIC that go on from another port or address of their client (RFC 9000 §9).
//!
//! A long header shows the connection ID that its sender wants to be called by (RFC 8999 §5.1). The other end
//! puts that ID into each short header, until it gets further IDs in encrypted frames. So a datagram from a
//! new port belongs to a known connection if it carries an ID that the server has chosen in a long header.
//! That is so when a NAT gives the client another port. A client that moves on purpose takes an ID that
//! nobody outside can know (RFC 9000 §9.5), and is another conversation here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::packet::Host;

/// An end of a connection: its host, and its address and port.
type End = (Host, (IpAddr, u16));

/// The connection IDs that were seen in long headers.
#[derive(Default)]
pub(super) struct QuicConnections {
    /// The conversation of each ID of each end.
    by_id: BTreeMap<(End, Vec<u8>), u32>,
    /// The lengths of the IDs.
    lengths: BTreeSet<usize>,
}

impl QuicConnections {
    /// Takes the payload of a datagram that the end `from` sent in a conversation.
    pub(super) fn note(&mut self, from: End, payload: &[u8], conversation: u32) {
        let Some(id) = source_id(payload) else { return };
        if id.len() >= SHORTEST && self.by_id.len() < MOST_IDS {
            self.lengths.insert(id.len());
            self.by_id.entry((from, id.to_vec())).or_insert(conversation);
        }
    }

    /// Returns the conversation of a datagram to the end `to`, if its connection ID shows it.
    pub(super) fn find(&self, to: End, payload: &[u8]) -> Option<u32> {
        let (first, rest) = payload.split_first()?;
        // A short header: the first bit is 0, and the fixed bit is 1 (RFC 9000 §17.3.1).
        if first >> 6 != 0b01 {
            return None;
        }
        let known = |length: &usize| self.by_id.get(&(to, rest.get(..*length)?.to_vec())).copied();
        self.lengths.iter().rev().find_map(known)
    }
}

/// The source connection ID of a long header (RFC 8999 §5.1). `None` if the payload has none.
fn source_id(payload: &[u8]) -> Option<&[u8]> {
    // The first two bits of a long header are 1 in QUIC versions 1 and 2 (RFC 9000 §17.2, RFC 9369 §3.2).
    let (first, rest) = payload.split_first()?;
    let (version, rest) = rest.split_at_checked(4)?;
    if first >> 6 != 0b11 || version == [0; 4] {
        return None;
    }
    let (&destination, rest) = rest.split_first()?;
    let (_, rest) = rest.split_at_checked(usize::from(destination))?;
    let (&source, rest) = rest.split_first()?;
    let is_allowed = usize::from(destination.max(source)) <= LONGEST;
    rest.get(..usize::from(source)).filter(|_| is_allowed)
}

/// The longest connection ID in bytes (RFC 9000 §17.2).
const LONGEST: usize = 20;
/// The shortest connection ID by which a datagram is recognised, in bytes. We chose 4 because other datagrams
/// begin with the same 4 bytes once in four milliards.
const SHORTEST: usize = 4;
/// The largest number of IDs. We chose 16,384, four for each conversation.
const MOST_IDS: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: End = (Host::Second, (IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 443));

    fn long_header(source: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xc3, 0, 0, 0, 1, 3, 1, 2, 3, source.len() as u8];
        bytes.extend(source);
        bytes.extend([9; 50]);
        bytes
    }

    fn short_header(destination: &[u8]) -> Vec<u8> {
        [&[0x43], destination, &[7; 40]].concat()
    }

    #[test]
    fn a_short_header_from_a_new_port_leads_to_the_connection_whose_server_chose_its_id() {
        let mut connections = QuicConnections::default();
        connections.note(SERVER, &long_header(&[5; 8]), 3);
        assert_eq!(connections.find(SERVER, &short_header(&[5; 8])), Some(3));
        assert_eq!(connections.find(SERVER, &short_header(&[6; 8])), None);
        let other = (Host::Second, (SERVER.1.0, 444));
        assert_eq!(connections.find(other, &short_header(&[5; 8])), None, "another server");
        // Neither a long header nor a packet that is none of QUIC is one that goes on.
        assert_eq!(connections.find(SERVER, &long_header(&[5; 8])), None);
        assert_eq!(connections.find(SERVER, &[0x03, 5, 5, 5, 5, 5, 5, 5, 5]), None);
    }

    #[test]
    fn what_is_no_long_header_teaches_nothing_and_no_length_reads_beyond_the_end() {
        let mut connections = QuicConnections::default();
        let whole = long_header(&[5; 8]);
        for end in 0..18 {
            connections.note(SERVER, &whole[..end], 1);
        }
        connections.note(SERVER, &long_header(&[5; 3]), 1);
        connections.note(SERVER, &[0xc3, 0, 0, 0, 0, 0, 8, 5, 5, 5, 5, 5, 5, 5, 5], 1);
        connections.note(SERVER, &[0xff; 300], 1);
        assert!(connections.by_id.is_empty());
    }
}
