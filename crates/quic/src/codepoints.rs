//! The ECN field (RFC 3168 §5) as the engine names it and as we do, and the form of a packet's header.

use quinn_proto::EcnCodepoint;
use talkpath_units::Ecn;

pub(crate) fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

pub(crate) fn field(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

/// The bit of a packet's first byte that is set in a long header (RFC 9000 §17).
pub(crate) const LONG_HEADER: u8 = 0x80;
