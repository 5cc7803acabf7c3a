//! The keys of a link over Wi-Fi: `wifi` of a link.

use crate::quantity::{Dimension, DimensionRange};
use crate::spec::{ANY_RATE, Default, Key, Kind, TableSpec, Words, key, quantity, range};

/// A link over Wi-Fi.
pub(crate) static WIFI: TableSpec = TableSpec { noun: "a Wi-Fi", keys: WIFI_KEYS };

/// Stations that are no link.
pub(crate) static OTHERS: TableSpec = TableSpec { noun: "a kind of other stations", keys: OTHERS_KEYS };

/// The keys that say what a Wi-Fi is. A link that shares the Wi-Fi of another has none of them.
pub(crate) const OF_THE_WIFI: [&str; 4] = ["frame_error", "attempts", "aggregate", "others"];

const WIFI_KEYS: &[Key] = &[
    key(
        "sender",
        Kind::Choice(&SENDER),
        Default::Required,
        "who sends on this link: a station of its own, or the access point, which all such links of a Wi-Fi have in common",
    ),
    key(
        "with",
        Kind::Text { longest: 64 },
        Default::Absent("the link brings a Wi-Fi of its own"),
        "the link whose Wi-Fi this link shares, such as `up`. The keys below are then that link's",
    ),
    key(
        "frame_error",
        Kind::Probability,
        Default::Absent("every frame is read that does not collide"),
        "the share of the frames that the receiver cannot read although they did not collide; they are sent again",
    ),
    key(
        "attempts",
        Kind::Count { least: 1, most: 255 },
        Default::Absent("7 times, 802.11's default"),
        "how often a frame is sent before its packet counts as lost",
    ),
    key(
        "aggregate",
        quantity(AGGREGATE),
        Default::Absent("65535 B, the most of 802.11n"),
        "the largest aggregate of frames (A-MPDU), within 64 frames and 5.484 ms. `\"0 B\"` sends each frame alone, as `EF` packets always are",
    ),
    key(
        "others",
        Kind::List(&OTHERS),
        Default::Absent("no other stations"),
        "stations that are no link of the scenario; what they send and get takes time of the medium, as best effort",
    ),
];

const OTHERS_KEYS: &[Key] = &[
    key("count", Kind::Count { least: 1, most: 100 }, Default::Is("1"), "how many"),
    key("rate", quantity(WIFI_RATE), Default::Required, "the rate of frames to and from them (PHY rate)"),
    key(
        "up",
        Kind::Quantity { ranges: ANY_RATE, words: &["saturated"] },
        Default::Absent("they send nothing"),
        "what each sends to the access point: packets of this rate in the mean as a Poisson process, or as much as the medium takes",
    ),
    key(
        "down",
        Kind::Quantity { ranges: ANY_RATE, words: &["saturated"] },
        Default::Absent("they get nothing"),
        "what the access point sends to each",
    ),
    key("packet", quantity(PACKET), Default::Is("\"1500 B\""), "the size of their IP packets"),
];

static SENDER: Words = Words { noun: "a sender", known: &["station", "access-point"], later: &[], why: "" };

/// From the lowest rate of 802.11's OFDM to one that no 802.11n has: wider channels and
/// more streams are higher rates.
pub(crate) const WIFI_RATE: &[DimensionRange] = &[range(Dimension::Rate, 6_000_000, 10_000_000_000)];

/// Up to the largest A-MPDU of 802.11ac.
const AGGREGATE: &[DimensionRange] = &[range(Dimension::Size, 0, 1_048_575)];

/// From an IP header to the largest MSDU of 802.11 (2304 B) less LLC and SNAP.
const PACKET: &[DimensionRange] = &[range(Dimension::Size, 20, LARGEST_PACKET)];

/// The largest IP packet over Wi-Fi, in bytes.
pub(crate) const LARGEST_PACKET: u64 = 2304 - 8;
