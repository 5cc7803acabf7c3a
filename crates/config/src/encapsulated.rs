//! Encapsulated protocols: protocols of ours whose packets real hosts carry in UDP datagrams. Which there
//! are, and what each says of itself.
//!
//! A new one is a file here, a variant in the two lists, and the line of each match below that the compiler
//! names. QUIC is not among them: its engine is a library's, and flows share a connection.

mod dccp;
mod options;

use serde::{Deserialize, Serialize};

pub use dccp::{CcidKind, DccpConfig, QueuePolicy, Revision, largest_dccp_message};
pub use options::EncapsulatedOptions;

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
