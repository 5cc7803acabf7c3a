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
    #[inline(never)]
    pub(super) fn lump(&self, ends: bool, now: Instant) -> Lump {
        let (room, cwnd) = self.room_in_cwnd();
        self.lump_here(room.max(1), cwnd, ends, now)
    }

    /// As [`Self::lump`], where `cwnd` is so many segments and has `room` for some.
    #[inline(always)]
    pub(super) fn lump_here(&self, room: u64, cwnd: u64, ends: bool, now: Instant) -> Lump {
        let full = u64::from(self.sender.full_payload());
        let (unsent, usable) = (self.sender.unsent(), self.sender.usable());
        if unsent > full && !ends && self.is_lump_worth_waiting(room, cwnd, now) {
            return Lump::Waits { cwnd_limited: room * full < usable };
        }
        // tcp_cwnd_test: two lumps in flight at least.
        let mut quota = room.min(cwnd / 2);
        let written = unsent.min(usable);
        if written < quota * full {
            quota = written.div_ceil(full);
        }
        // No burst is smaller than the least, and finding how large it is takes the longest.
        if quota > u64::from(self.controller.least_burst()) {
            quota = quota.min(self.burst_now());
        }
        Lump::Leaves(u32::try_from(quota).unwrap_or(u32::MAX).max(1))
    }

    /// tcp_tso_should_defer, for `room` of `cwnd` segments; what is found soonest comes first.
    #[inline(always)]
    fn is_lump_worth_waiting(&self, room: u64, cwnd: u64, now: Instant) -> bool {
        let is_open = self.is_plain || self.recovery.state() == RecoveryState::Open;
        if !is_open || now.since(self.pacing.departs()) > RECENTLY {
            return false;
        }
        let is_near = match (self.sender.first_sent_at(), self.rtt.srtt()) {
            (Some(first), Some(srtt)) => first.saturating_add(srtt) <= now.saturating_add(SOON.min(srtt / 2)),
            _ => false,
        };
        is_near && self.is_odd(room, cwnd)
    }

    /// Whether `room` of `cwnd` segments is less than a whole lump, and than a third of the window.
    fn is_odd(&self, room: u64, cwnd: u64) -> bool {
        let full = u64::from(self.sender.full_payload());
        let limit = self.sender.usable().min(room * full);
        let window = self.sender.window.edge().saturating_sub(self.sender.snd_una()).min(cwnd * full);
        // No burst is smaller than the least.
        let is_least = limit < u64::from(self.controller.least_burst()) * full;
        limit < window / WINDOW_DIVISOR && (is_least || limit < self.burst_now() * full)
    }

    /// How many segments a burst has now.
    #[inline(never)]
    fn burst_now(&self) -> u64 {
        u64::from(self.pace_now().burst())
    }

    /// How many bytes leave together at most.
    pub(super) fn lump_size(&self) -> u64 {
        self.burst_now() * u64::from(self.sender.full_payload())
    }

    /// Whether `cwnd` has room for a full segment.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        match self.controller.allowance() {
            Allowance::Window(cwnd) => {
                cwnd.get().saturating_sub(self.sender.flight_bytes()) >= u64::from(self.sender.smss())
            }
            Allowance::WindowPackets(cwnd) => cwnd.get() > self.sender.flight_segments(),
        }
    }

    /// Segments that `cwnd` has room for, and `cwnd`.
    #[inline(always)]
    pub(super) fn room_in_cwnd(&self) -> (u64, u64) {
        match self.controller.allowance() {
            Allowance::Window(cwnd) => {
                let smss = u64::from(self.sender.smss());
                (cwnd.get().saturating_sub(self.sender.flight_bytes()) / smss, cwnd.get() / smss)
            }
            Allowance::WindowPackets(cwnd) => {
                (cwnd.get().saturating_sub(self.sender.flight_segments()), cwnd.get())
            }
        }
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

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Instant, Packets, Seed};

    use super::*;
    use crate::{Role, Stack, TcpConfig};

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const SMSS: u32 = 1448;

    /// A sender in congestion avoidance with a window of `cwnd` segments, `written` of them, and a path of `rtt`.
    fn sender(cwnd: u64, written: u64, rtt: Duration) -> Tcp {
        let mut config = TcpConfig::preset(Stack::Linux, false);
        (config.initial_window, config.initial_ssthresh) = (Packets::new(cwnd), Some(Packets::new(1)));
        let mut tcp = Tcp::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        tcp.sender.on_syn_sent();
        tcp.sender.on_established(SMSS);
        tcp.sender.window.start(u16::MAX, 0, 0, 7);
        tcp.sender.window.update(u16::MAX, 1, 1);
        tcp.sender.write(written * u64::from(SMSS));
        tcp.rtt.on_sample(rtt, 0, 0);
        tcp.selective.rack.on_rtt(rtt, Instant::ZERO);
        tcp
    }

    /// The same once `segments` of them have left at `now`.
    fn with_flight(mut tcp: Tcp, segments: u64, now: Instant) -> Tcp {
        tcp.pacing.begin(segments as u32, false, now);
        for segment in 0..segments {
            tcp.sender.send_new(SMSS, false, segment > 0, now);
        }
        tcp
    }

    fn leaves(tcp: &Tcp, now: Instant) -> u32 {
        match tcp.lump(false, now) {
            Lump::Leaves(segments) => segments,
            waits @ Lump::Waits { .. } => panic!("{waits:?}"),
        }
    }

    /// tcp_tso_autosize: what 1.2 windows a round trip (net.ipv4.tcp_pacing_ca_ratio) send in 2^-10 s (sk_pacing_shift), at least
    /// two segments (net.ipv4.tcp_min_tso_segs) and at most 64 KiB (sk_gso_max_size).
    #[test]
    fn a_lump_is_a_milliseconds_worth_of_the_pacing_rate() {
        let now = Instant::from_secs(1);
        // 1.2 * 500 * 1448 B / 50 ms / 1024 = 16,968 B: 11 segments.
        assert_eq!(leaves(&sender(500, 500, MS(50)), now), 11);
        // 1.2 * 10 * 1448 B / 100 ms / 1024 = 169 B.
        assert_eq!(leaves(&sender(10, 10, MS(100)), now), 2);
        // 1.2 * 1000 * 1448 B / 10 ms / 1024 = 169,687 B; 65,536 B hold 45 segments.
        assert_eq!(leaves(&sender(1000, 1000, MS(10)), now), 45);
    }

    /// tcp_tso_autosize: 64 KiB more, halved for each 512 us of the shortest round trip (net.ipv4.tcp_tso_rtt_log = 9).
    #[test]
    fn a_short_path_has_larger_lumps() {
        let now = Instant::from_secs(1);
        // 1.2 * 100 * 1448 B / 3 ms / 1024 = 56,562 B, and 65,536 / 2^5 B: 58,610 B.
        assert_eq!(leaves(&sender(100, 100, MS(3)), now), 40);
        // 10 ms are 2^19 of that.
        assert_eq!(leaves(&sender(100, 100, MS(10)), now), 11);
    }

    /// tcp_cwnd_test: no more than half of `cwnd`, nor than it has room for; tcp_mss_split_point: nor than the far end's window.
    #[test]
    fn a_lump_has_room_in_both_windows_and_is_half_of_cwnd_at_most() {
        let now = Instant::from_secs(1);
        assert_eq!(leaves(&sender(30, 100, MS(1)), now), 15);
        let late = now + MS(2);
        assert_eq!(leaves(&with_flight(sender(30, 100, MS(1)), 26, now), late), 4);
        let mut tcp = sender(30, 100, MS(1));
        tcp.sender.window.update((3 * SMSS / 128) as u16 + 1, 2, 1);
        assert_eq!(leaves(&tcp, now), 4);
    }

    #[test]
    fn the_last_lump_is_what_was_written_a_small_segment_too() {
        let now = Instant::from_secs(1);
        let mut tcp = sender(100, 3, MS(1));
        assert_eq!(leaves(&tcp, now), 3);
        tcp.sender.write(1);
        assert_eq!(leaves(&tcp, now), 4);
    }

    /// tcp_tso_should_defer: `cwnd` has room for less than a whole lump and less than a third of the window
    /// (net.ipv4.tcp_tso_win_divisor), and the first segment's acknowledgement is due within a millisecond.
    #[test]
    fn an_odd_lump_waits_for_an_acknowledgement_that_is_near() {
        let sent = Instant::from_secs(1);
        let rtt = Duration::from_micros(1500);
        let tcp = || with_flight(sender(100, 200, rtt), 90, sent);
        let near = sent + Duration::from_micros(999);
        assert_eq!(tcp().pace_now().burst(), 45);
        assert_eq!(tcp().lump(false, near), Lump::Waits { cwnd_limited: true });
        // The FIN's segment goes with what there is.
        assert_eq!(tcp().lump(true, near), Lump::Leaves(10));
        // A lump left no more than a millisecond ago, or this one goes.
        assert_eq!(leaves(&tcp(), sent + Duration::from_micros(1001)), 10);
        // A third of the window is a lump.
        let half = with_flight(sender(100, 200, rtt), 60, sent);
        assert_eq!(leaves(&half, near), 40);
        // The acknowledgement is 20 ms away.
        let far = with_flight(sender(1000, 2000, MS(20)), 990, sent);
        assert_eq!(leaves(&far, near), 10);
    }

    #[test]
    fn nothing_waits_while_losses_are_repaired() {
        let sent = Instant::from_secs(1);
        let mut tcp = with_flight(sender(100, 200, Duration::from_micros(1500)), 90, sent);
        tcp.recovery.enter_fast(tcp.sender.snd_max());
        assert_eq!(leaves(&tcp, sent + Duration::from_micros(999)), 10);
    }
}
