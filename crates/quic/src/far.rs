//! The far end of a connection as this end finds it: its address, and what the path to it does.
//!
//! The far end may come from another address in mid connection, as if a translator had given it another port.
//! The engine then moves the connection there and validates the path (RFC 9000 §9.3). Until that is done no
//! more bytes leave for the new address than came from it, which is stricter than RFC 9000 §8.1 (three times
//! as many): a stranger's address is worth nothing to whoever writes it into a packet. Our copy of the engine
//! sees to it. Window and round trip are kept if only the port changed (RFC 9000 §9.4).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use quinn_proto::Connection;
use serde::{Deserialize, Serialize};
use talkpath_units::{Ecn, Instant};

/// How a packet came to an end.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Whose packet it is by its header; [`FAR`] if the socket takes those of one address alone.
    pub from: SocketAddr,
    /// Its ECN field.
    pub ecn: Ecn,
    /// When it came to the host.
    pub at: Instant,
}

/// What a connection has found out about its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathReport {
    /// How often the far end moved to another address to which the path was validated (RFC 9000 §9.3).
    pub moves: u32,
    /// How often larger packets than 1200 B no longer got through (RFC 8899 §4.3).
    pub black_holes: u64,
    /// The UDP payload of the largest packet that the path is known to carry, B.
    pub packet_size: u16,
    /// Why packets leave without ECT(0): the path failed ECN validation (RFC 9000 §13.4.2).
    pub ecn_failure: Option<EcnFailure>,
}

/// Why a path failed ECN validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EcnFailure {
    /// All of the first packets came marked CE.
    AllMarked,
    /// An acknowledgement has no ECN counts: the path clears the field, or the far end does not report it.
    NotReported,
    /// Packets came with another field than ECT(0) or CE, or counts went back.
    Changed,
}

/// The address of the far end, as validated.
#[derive(Debug, Default)]
pub(crate) struct FarEnd {
    /// `None` before the connection has begun.
    address: Option<SocketAddr>,
    moves: u32,
}

impl FarEnd {
    /// Notes where the far end of `connection` is, once that is validated.
    pub(crate) fn follow(&mut self, connection: &Connection) {
        let address = Some(connection.remote_address());
        if !connection.is_address_validated() || self.address == address {
            return;
        }
        self.moves += u32::from(self.address.is_some());
        self.address = address;
    }

    /// What is known of the path now.
    pub(crate) fn report(&self, connection: &Connection) -> PathReport {
        PathReport {
            moves: self.moves,
            black_holes: connection.stats().path.black_holes_detected,
            packet_size: connection.current_mtu(),
            ecn_failure: connection.ecn_failure().map(|why| match why {
                "all packets marked CE" => EcnFailure::AllMarked,
                "not acknowledged" => EcnFailure::NotReported,
                _ => EcnFailure::Changed,
            }),
        }
    }
}

/// The far end of a connection whose packets all come from one address: nobody routes by it.
pub const FAR: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4433);
