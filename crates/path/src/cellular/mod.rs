//! A user of a cellular cell (LTE): a queue of its own in front of a scheduler, which gives blocks of time to
//! the users in turn, and errors of blocks, which are mended by sending again.
//!
//! ```text
//!  queue ─► [ turns ] ─► block ─► [ errors ] ─► packets in order
//!             each TTI             again after 8 ms
//! ```
//!
//! Time is divided into TTIs (transmission time intervals; 1 ms in LTE, 3GPP TS 36.321). TTI k begins at k
//! times the interval. Beside this user, others always have data, and their channel is as good as this
//! user's.
//!
//! - *turns*: who gets a TTI, or which share of one (`turns`).
//! - *block*: what this user sends in one TTI. It takes the bytes that came before the TTI began. Packets are
//!   cut and joined to fill blocks (RLC), so a packet arrives with the last of its blocks.
//! - *errors*: a block that is not read is sent again after a fixed time, up to a number of attempts (HARQ,
//!   `errors`). Its repetition takes the same share of a TTI, before new data. The blocks behind it wait,
//!   because packets are delivered in order.
//! - *reports*: the base station knows of this user's packets from reports, and what was reported is sent a
//!   fixed time later (uplink, `reports`). In the downlink it sees the queue itself.
//!
//! **All of a packet is known when its service begins**, as on other links: other users always have data, so
//! nothing that comes later changes the turns before the packet's last block.
//!
//! Left out: rates that differ between users or follow a fading channel, control channels, the headers of
//! PDCP, RLC and MAC, and idle modes (RRC, DRX). A scheduling request carries how much waits, as a buffer
//! status report does; in LTE it is one bit, and the report follows with the first grant.

mod clock;
mod config;
mod errors;
mod reports;
#[cfg(test)]
mod tests;
mod turns;

pub(crate) use clock::CellClock;
pub use config::{Cellular, GrantRequest, Harq, Scheduler};
