//! Wi-Fi: a medium that an access point and stations share, after IEEE 802.11 with the PHY of 802.11n.
//! Numbers of clauses are those of the edition that is named with them.
//!
//! ```text
//!  station's link ─► queues ─┐                            ┌─► access point
//!  station's link ─► queues ─┤   one transmission at a    ├─► access point
//!  other stations ───────────┼─►        time: Air       ──┼─► (nobody)
//!  access point's links ─►   │                            ├─► station
//!     queues, in turn ───────┘                            └─► station
//! ```
//!
//! - *Contention* (`function`): each sender waits until the medium was idle for its AIFS, and then for a
//!   random number of slots (EDCA, 802.11-2016 §10.22.2). Who comes to the end of its backoff at the same
//!   time collides. A sender that was not acknowledged doubles its contention window.
//! - *Aggregation* (`window`): the winner sends as many frames as it has, as one A-MPDU with a block
//!   acknowledgement. Frames that were not received are sent again, and given up after too many attempts.
//!   They arrive in order.
//! - *Categories* (`category`): a packet's DSCP gives it one of four categories, each with queues and a
//!   contention of its own.
//! - *Airtime* (`function`): the access point serves its stations in turn, each with an equal share of the
//!   time that it sends, as Linux's mac80211 does (Høiland-Jørgensen and others, "Ending the anomaly", USENIX
//!   ATC 2017). The time that a station itself sends is not charged.
//! - *Timing* (`timing`): preambles, symbols, interframe spaces and acknowledgements.
//! - *Other stations* (`others`): they only take the medium's time.
//!
//! All hear each other. A collision destroys all frames in it. Nobody reads its preambles, so nobody waits an
//! EIFS for it. Rates are given and do not adapt. Left out: hidden stations and capture, RTS and CTS, power
//! saving, beacons and association, A-MSDU, and what 802.11ac and later have besides (wider channels are a
//! higher rate here; MU-MIMO and OFDMA are none).
//!
//! Begin to read with `air`.

mod air;
mod category;
mod config;
mod frames;
mod function;
mod others;
mod timing;
mod window;

pub(crate) use air::{Air, Senders};
pub use category::AccessCategory;
pub use config::{
    ATTEMPTS, LARGEST_AGGREGATE, Medium, Offered, OtherStations, WifiAir, WifiConfig, WifiLink, WifiSender,
};
pub(crate) use frames::Frames;
pub(crate) use window::{Ppdu, PpduLimits, Released};

#[cfg(test)]
mod tests;
