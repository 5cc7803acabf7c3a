//! The features that we know, with their numbers, initial values and rules (RFC 4340 §6.4, table 4;
//! RFC 4342 §8.4).

/// A feature that we know (RFC 4340 §6.4, table 4; RFC 4342 §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Congestion Control ID (RFC 4340 §10).
    Ccid,
    /// Allow Short Sequence Numbers (§7.6.1).
    AllowShortSeqnos,
    /// Sequence Window, in packets (§7.5.2).
    SequenceWindow,
    /// ECN Incapable (§12.1).
    EcnIncapable,
    /// Ack Ratio (§11.3).
    AckRatio,
    /// Send Ack Vector (§11.5).
    SendAckVector,
    /// Send NDP Count (§7.7.2).
    SendNdpCount,
    /// Minimum Checksum Coverage (§9.2.1).
    MinimumChecksumCoverage,
    /// Check Data Checksum (§9.3.1).
    CheckDataChecksum,
    /// Send Loss Event Rate (RFC 4342 §8.4): CCIDs 3 and 4, located at the receiving half.
    SendLossEventRate,
}

/// RFC 4340 §6.3: how two ends' wishes become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The first of the server's values that the client takes too (§6.3.1).
    ServerPriority,
    /// The location's wish (§6.3.2): the bytes of a value, and the values that are valid.
    NonNegotiable { size: usize, least: u64, most: u64 },
}

impl Feature {
    /// Its number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ccid => 1,
            Self::AllowShortSeqnos => 2,
            Self::SequenceWindow => 3,
            Self::EcnIncapable => 4,
            Self::AckRatio => 5,
            Self::SendAckVector => 6,
            Self::SendNdpCount => 7,
            Self::MinimumChecksumCoverage => 8,
            Self::CheckDataChecksum => 9,
            Self::SendLossEventRate => 192,
        }
    }

    /// The feature that `feature as u8` gave.
    pub(super) fn indexed(index: u8) -> Option<Self> {
        FEATURES.get(usize::from(index)).copied()
    }

    /// Bytes of one value.
    pub(super) const fn value_size(self) -> usize {
        match self.rule() {
            Rule::ServerPriority => 1,
            Rule::NonNegotiable { size, .. } => size,
        }
    }

    /// The feature of this number.
    pub(super) fn numbered(number: u8) -> Option<Self> {
        FEATURES.into_iter().find(|feature| feature.number() == number)
    }

    /// RFC 4340 §6.4, table 4.
    pub(super) const fn initial(self) -> u64 {
        match self {
            Self::Ccid | Self::AckRatio => 2,
            Self::SequenceWindow => 100,
            _ => 0,
        }
    }

    /// RFC 4340 §6.4, table 4: whether every end must understand it.
    pub(super) const fn is_required(self) -> bool {
        matches!(self, Self::Ccid | Self::AllowShortSeqnos | Self::SequenceWindow)
    }

    /// How its value is agreed on.
    pub(super) const fn rule(self) -> Rule {
        match self {
            // §7.5.2: Wmin to Wmax.
            Self::SequenceWindow => Rule::NonNegotiable { size: 6, least: 32, most: (1 << 46) - 1 },
            // §6.6.8: not zero.
            Self::AckRatio => Rule::NonNegotiable { size: 2, least: 1, most: 0xffff },
            _ => Rule::ServerPriority,
        }
    }
}

/// In the order of their numbers.
pub(super) const FEATURES: [Feature; 10] = [
    Feature::Ccid,
    Feature::AllowShortSeqnos,
    Feature::SequenceWindow,
    Feature::EcnIncapable,
    Feature::AckRatio,
    Feature::SendAckVector,
    Feature::SendNdpCount,
    Feature::MinimumChecksumCoverage,
    Feature::CheckDataChecksum,
    Feature::SendLossEventRate,
];
