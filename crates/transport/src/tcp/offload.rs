//! Segmentation offload: how many new segments leave as one, and when a sender waits for a larger lump, as Linux does
//! (tcp_write_xmit, tcp_cwnd_test, tcp_tso_should_defer, tcp_mss_split_point).
//!
//! ```text
//!   burst = min(a millisecond's worth and two at least, room in cwnd, half of cwnd, what was written)
//!   room for less than a whole burst: wait for the next acknowledgement, if it is near
//! ```
//!
//! A kernel hands a lump of segments to its device, which cuts it. Each lump's memory is charged to the send buffer by itself. Where
//! acknowledgements come within a millisecond of each other, a window's last odd segments stay at home until the next one.
//!
//! Left out: lumps end where a write's memory ended, each 45 segments (tcp_skb_can_collapse_to), and an odd one there goes at once;
//! repairs leave in lumps no larger than they first did.

use talkpath_units::{Duration, Instant};

use super::connection::Tcp;
use super::pacing::Pace;
use super::recovery::RecoveryState;
use crate::cc::{Allowance, CongestionControl};

/// What new data may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lump {
    /// So many segments leave together.
    Leaves(u32),
    /// It waits for the next acknowledgement to let a larger one go.
    Waits { cwnd_limited: bool },
}

impl Tcp {
    /// Congestion control admits a new segment: how many may leave with it. `ends` with the last that there will ever be.
    pub(super) fn lump(&self, ends: bool, now: Instant) -> Lump {
        let most = self.pace_now().burst();
        let full = u64::from(self.sender.full_payload());
        let (unsent, usable) = (self.sender.unsent(), self.sender.usable());
        let (room, cwnd) = self.room_in_cwnd();
        if unsent > full && !ends && self.is_lump_worth_waiting(room, cwnd, most, now) {
            return Lump::Waits { cwnd_limited: room * full < usable };
        }
        let written = unsent.min(usable).div_ceil(full);
        // tcp_cwnd_test: two lumps in flight at least.
        let quota = room.min(cwnd / 2).min(u64::from(most)).min(written);
        Lump::Leaves(u32::try_from(quota).unwrap_or(u32::MAX).max(1))
    }

    /// tcp_tso_should_defer, for `room` of `cwnd` segments where `most` could leave together.
    fn is_lump_worth_waiting(&self, room: u64, cwnd: u64, most: u32, now: Instant) -> bool {
        if self.recovery.state() != RecoveryState::Open || now.since(self.pacing.departs()) > RECENTLY {
            return false;
        }
        let full = u64::from(self.sender.full_payload());
        let limit = self.sender.usable().min(room * full);
        let window = self.sender.window.edge().saturating_sub(self.sender.snd_una()).min(cwnd * full);
        if limit >= u64::from(most) * full || limit >= window / WINDOW_DIVISOR {
            return false;
        }
        match (self.sender.first_sent_at(), self.rtt.srtt()) {
            (Some(first), Some(srtt)) => first.saturating_add(srtt) <= now.saturating_add(SOON.min(srtt / 2)),
            _ => false,
        }
    }

    /// Segments that `cwnd` has room for, at least the one that was admitted, and `cwnd`.
    fn room_in_cwnd(&self) -> (u64, u64) {
        let (room, cwnd) = match self.controller.allowance() {
            Allowance::Window(cwnd) => {
                let smss = u64::from(self.sender.smss());
                (cwnd.get().saturating_sub(self.sender.flight_bytes()) / smss, cwnd.get() / smss)
            }
            Allowance::WindowPackets(cwnd) => {
                (cwnd.get().saturating_sub(self.sender.flight_segments()), cwnd.get())
            }
        };
        (room.max(1), cwnd)
    }

    /// What bursts and their pace follow from.
    pub(super) fn pace_now(&self) -> Pace {
        let window = self.controller.window();
        Pace {
            cwnd: window.whole_packets(),
            ssthresh: window.whole_ssthresh(),
            outstanding: self.sender.outstanding_segments(),
            smss: self.sender.smss(),
            srtt: self.rtt.srtt(),
            min_rtt: self.selective.rack.min_rtt(),
            rate: self.controller.pacing_rate(),
            least_burst: self.controller.least_burst(),
        }
    }
}

/// tcp_tso_should_defer: the next acknowledgement is no further away ("tcp: fix tcp_tso_should_defer() vs large RTT", in 6.18 and
/// stable kernels of then). Kernels before took half a round trip.
const SOON: Duration = Duration::from_millis(1);
/// tcp_tso_should_defer: the last departure is no longer ago.
const RECENTLY: Duration = Duration::from_millis(1);
/// net.ipv4.tcp_tso_win_divisor.
const WINDOW_DIVISOR: u64 = 3;
