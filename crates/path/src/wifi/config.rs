//! What a Wi-Fi is made of, as the scenario resolved it.

use talkpath_units::{Bytes, Rate};

/// What carries the packets of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Medium {
    /// A wire of the link's own.
    #[default]
    Wire,
    /// A Wi-Fi, which several links share.
    Wifi(Box<WifiLink>),
}

/// A link over a Wi-Fi: from a station to the access point, or from the access point to a station.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiLink {
    /// Who sends.
    pub sender: WifiSender,
    /// The PHY rate of the frames that carry packets, above zero.
    pub rate: Rate,
    /// The Wi-Fi.
    pub air: WifiAir,
}

/// The end of a link over Wi-Fi that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WifiSender {
    /// A station of this link alone.
    Station,
    /// The access point. All links of one Wi-Fi from the access point have it in common.
    AccessPoint,
}

/// The Wi-Fi of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum WifiAir {
    /// The link brings a Wi-Fi. Other links may share it.
    Own(WifiConfig),
    /// The Wi-Fi of the link with this name, which brings it.
    Of(String),
}

/// A Wi-Fi.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiConfig {
    /// The probability that a frame is illegible which did not collide, in [0, 1).
    pub frame_error: f64,
    /// How often a frame is sent before it is given up, at least 1.
    pub attempts: u32,
    /// The largest aggregate of frames (A-MPDU). [`Bytes::ZERO`] sends each frame alone.
    pub aggregate: Bytes,
    /// The other stations.
    pub others: Vec<OtherStations>,
}

/// Stations of a Wi-Fi that are no link: they only take the medium's time.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherStations {
    /// How many.
    pub count: u32,
    /// The PHY rate of frames to and from them, above zero.
    pub rate: Rate,
    /// What each of them sends to the access point.
    pub up: Offered,
    /// What the access point sends to each of them.
    pub down: Offered,
    /// The size of their packets.
    pub packet: Bytes,
}

/// What is sent to or from a station that is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Nothing.
    Nothing,
    /// As much as the medium takes.
    Saturated,
    /// Packets of this rate in the mean, as a Poisson process. The rate is above zero.
    Rate(Rate),
}

impl WifiConfig {
    /// A Wi-Fi without errors and other stations. Its limits are those of 802.11n.
    pub const fn plain() -> Self {
        Self { frame_error: 0.0, attempts: ATTEMPTS, aggregate: LARGEST_AGGREGATE, others: Vec::new() }
    }
}

/// The default of 802.11's dot11ShortRetryLimit. For the frames of aggregates it is assumed: 802.11-2020
/// §10.23.2.12.1 has no limit for them, and drivers have theirs.
pub const ATTEMPTS: u32 = 7;
/// The largest A-MPDU of 802.11n: a Maximum A-MPDU Length Exponent of 3.
pub const LARGEST_AGGREGATE: Bytes = Bytes::new(65_535);
