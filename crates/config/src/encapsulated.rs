//! Encapsulated protocols: protocols of ours whose packets real hosts carry in UDP datagrams.
//!
//! A new protocol needs a file here, a variant in each of the two enums, and the line of each `match` below
//! that the compiler asks for. QUIC is not such a protocol, because its engine is a library and its flows can
//! share a connection.

mod dccp;
mod options;

use serde::{Deserialize, Serialize};

pub use dccp::{CcidKind, DccpConfig, QueuePolicy, Revision, largest_dccp_message};
pub use options::EncapsulatedOptions;

use crate::features::Features;
use crate::words;

/// The options of an encapsulated protocol. Two real hosts exchange them as text when they agree on a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncapsulatedConfig {
    /// DCCP (RFC 4340).
    Dccp(DccpConfig),
}

words! {
    /// An encapsulated protocol without its options. A new protocol must be added at the end, because the
    /// interfaces in kept captures are numbered by the order of this enum.
    pub enum EncapsulatedKind {
        /// DCCP (RFC 4340).
        Dccp = "DCCP",
    }
}

impl EncapsulatedConfig {
    /// The protocol of these options.
    pub const fn kind(&self) -> EncapsulatedKind {
        match self {
            Self::Dccp(_) => EncapsulatedKind::Dccp,
        }
    }

    /// The options as a trait object that every protocol implements.
    pub const fn options(&self) -> &dyn EncapsulatedOptions {
        match self {
            Self::Dccp(config) => config,
        }
    }

    /// The options as a trait object, to change them.
    pub const fn options_mut(&mut self) -> &mut dyn EncapsulatedOptions {
        match self {
            Self::Dccp(config) => config,
        }
    }
}

impl EncapsulatedKind {
    /// The names that a scenario uses for transports of this protocol.
    pub const fn transport_names(self) -> &'static [&'static str] {
        match self {
            Self::Dccp => DccpConfig::TRANSPORT_NAMES,
        }
    }

    /// The features that the protocol provides to an application.
    pub const fn features(self) -> Features {
        match self {
            Self::Dccp => DccpConfig::FEATURES,
        }
    }
}
