//! The DSCP of the IP header, which asks routers for a treatment of the packet.

use core::fmt;

/// A differentiated services codepoint (RFC 2474 §3), six bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dscp(u8);

impl Dscp {
    /// The default treatment: best effort (RFC 2474 §4.1). Its name is CS0.
    pub const BEST_EFFORT: Self = Self(0);

    /// Reads the codepoint from the byte of an IP header that also holds the ECN field (RFC 3168 §5).
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte >> 2)
    }

    /// Returns the codepoint of a name, in the spelling of [`DSCP_NAMES`].
    pub fn named(name: &str) -> Option<Self> {
        DSCP_NAMES.iter().find(|(known, _)| *known == name).map(|&(_, value)| Self(value))
    }

    /// Returns the codepoint with the number `number`, or `None` if the number does not fit into six bits.
    pub const fn numbered(number: u8) -> Option<Self> {
        if number < 64 { Some(Self(number)) } else { None }
    }

    /// Returns the number of the codepoint, from 0 to 63.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the byte of the IP header with this codepoint. Its ECN field is zero.
    pub const fn byte(self) -> u8 {
        self.0 << 2
    }
}

/// Writes the name of the codepoint, or its number if it has no name.
impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DSCP_NAMES.iter().find(|(_, value)| *value == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The names of codepoints: class selectors (RFC 2474 §4.2.2), assured forwarding (RFC 2597 §6), expedited
/// forwarding (RFC 3246 §2.7), voice-admit (RFC 5865 §2.3), lower effort (RFC 8622 §3).
pub const DSCP_NAMES: [(&str, u8); 23] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_has_the_bits_of_its_document_and_its_name_back() {
        // RFC 3246 §2.7 and RFC 2597 §6, as bits.
        for (name, bits) in [("EF", 0b10_1110), ("AF11", 0b00_1010), ("AF43", 0b10_0110), ("CS5", 0b10_1000)]
        {
            let dscp = Dscp::named(name).unwrap();
            assert_eq!((dscp.byte(), dscp.to_string().as_str()), (bits << 2, name));
            assert_eq!(Dscp::from_byte(dscp.byte() | 0b11), dscp, "whatever the ECN field is");
        }
        assert_eq!(Dscp::named("ef"), None);
        assert_eq!(Dscp::from_byte(0xff).to_string(), "63");
    }
}
