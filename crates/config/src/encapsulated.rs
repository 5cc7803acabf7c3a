//! Encapsulated protocols: protocols of ours whose packets real hosts carry in UDP datagrams. Which there
//! are, and what each says of itself.
//!
//! A new one is a file here, a variant in the two lists, and the line of each match below that the compiler
//! names. QUIC is not among them: its engine is a library's, and flows share a connection.

mod dccp;

use serde::{Deserialize, Serialize};
use talkpath_units::Bytes;

pub use dccp::{CcidKind, DccpConfig, QueuePolicy, Revision, largest_dccp_message};

use crate::features::Features;
use crate::words;

/// The options of an encapsulated protocol. As text they are what two real hosts say to each other of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncapsulatedConfig {
    /// DCCP (RFC 4340).
    Dccp(DccpConfig),
}

words! {
    /// An encapsulated protocol, without its options, and its name for people. A new one comes last: the
    /// interfaces of kept captures are numbered by their places.
    pub enum EncapsulatedKind {
        /// DCCP (RFC 4340).
        Dccp = "DCCP",
    }
}

/// What an encapsulated protocol says of itself.
pub trait EncapsulatedOptions {
    /// The largest message on a path of this MTU.
    fn largest_message(&self, path_mtu: Bytes) -> Bytes;
    /// Room of the receiving socket, if the receiver has none of its own.
    fn socket_buffer(&self) -> Bytes;
    /// Whether its packets are to take marks (RFC 3168).
    fn wants_ecn(&self) -> bool;
    /// Between real hosts no packet takes a mark: the sockets neither set nor read the ECN field.
    fn leave_out_ecn(&mut self);
    /// From now on a server with these options keeps no state before a client's address is shown.
    fn keep_no_state(&mut self);
    /// The scenario's keys that real hosts ignore although these options set them.
    fn ignored(&self) -> Vec<&'static str>;
    /// What no scenario's check would have let through, as what is needed instead; `None` if all is well.
    fn need(&self) -> Option<&'static str>;
}

impl EncapsulatedConfig {
    /// Which protocol it configures.
    pub const fn kind(&self) -> EncapsulatedKind {
        match self {
            Self::Dccp(_) => EncapsulatedKind::Dccp,
        }
    }

    /// What the protocol says of itself.
    pub const fn options(&self) -> &dyn EncapsulatedOptions {
        match self {
            Self::Dccp(config) => config,
        }
    }

    /// The same, to change it.
    pub const fn options_mut(&mut self) -> &mut dyn EncapsulatedOptions {
        match self {
            Self::Dccp(config) => config,
        }
    }
}

impl EncapsulatedKind {
    /// The transports of a scenario that are this protocol, by their names there.
    pub const fn transport_names(self) -> &'static [&'static str] {
        match self {
            Self::Dccp => DccpConfig::TRANSPORT_NAMES,
        }
    }

    /// What it provides to an application.
    pub const fn features(self) -> Features {
        match self {
            Self::Dccp => DccpConfig::FEATURES,
        }
    }
}
