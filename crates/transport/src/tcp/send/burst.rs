//! Bursts: how many new segments leave together, and when a sender waits for a larger burst.
//!
//! A kernel hands a burst to its device as one sk_buff, and the device cuts the sk_buff into segments
//! (segmentation offload). So a few large bursts cost less than many small ones.
//!
//! ```text
//!   burst = min( max_burst          what the pacing rate sends in a millisecond, at least two segments
//!              , room in cwnd
//!              , cwnd / 2           so that at least two bursts are in flight
//!              , unsent bytes, room in the far end's window )
//! ```
//!
//! If the windows have room for less than `max_burst`, the sender waits for the next acknowledgement, which
//! makes room for a larger burst. It waits only if all of these conditions hold:
//!
//! - a burst left within the last millisecond,
//! - the acknowledgement is due within the next millisecond,
//! - the room is less than a third of the window,
//! - more than one full segment is unsent, and the burst does not end the stream,
//! - no loss is being repaired.
//!
//! Two rules of Linux are left out. First, the memory of a write is full after 45 segments: a burst ends
//! there, and leaves at once even if it is small (tcp_skb_can_collapse_to). Second, a retransmitted burst is
//! never larger than the first transmission.
//!
//! Source: Linux (tcp_write_xmit, tcp_cwnd_test, tcp_tso_should_defer, tcp_mss_split_point).

use talkpath_units::{Duration, Instant};

use super::segments::BlockedBy;

/// Whether new data leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum BurstDecision {
    /// This number of segments leave together.
    Send(u32),
    /// No segment leaves before the next acknowledgement, which makes room for a larger burst. The field
    /// says whether `cwnd` or the far end's window (`LargerBurst`) has too little room now.
    Wait(BlockedBy),
}

/// The inputs of the decision. Amounts are in bytes unless the name says otherwise.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct BurstInput {
    /// The number of segments for which `cwnd` has room, at least 1: the caller has checked that a segment
    /// may leave.
    pub(in crate::tcp) room_segments: u64,
    /// `cwnd` in segments.
    pub(in crate::tcp) cwnd_segments: u64,
    /// Payload of a full segment.
    pub(in crate::tcp) full: u64,
    /// The bytes that were written and never sent.
    pub(in crate::tcp) unsent: u64,
    /// The part of the far end's window that is not used.
    pub(in crate::tcp) usable: u64,
    /// The far end's window.
    pub(in crate::tcp) offered: u64,
    /// False if the burst ends the stream, and while losses are repaired. Such a burst does not wait.
    pub(in crate::tcp) may_defer: bool,
    /// When the first segment in flight was sent.
    pub(in crate::tcp) first_sent_at: Option<Instant>,
    /// The end of the pause after the last burst. Without pacing, when the last burst began.
    pub(in crate::tcp) last_burst: Instant,
    /// The smallest burst, in segments.
    pub(in crate::tcp) min_burst: u64,
    pub(in crate::tcp) srtt: Option<Duration>,
}

impl BurstInput {
    /// Decides how many segments leave together now. `max_burst` takes a division, and most bursts have the
    /// minimum size. So `max_burst` is called only if a larger burst could leave.
    #[inline]
    pub(in crate::tcp) fn decide(&self, max_burst: impl Fn() -> u64, now: Instant) -> BurstDecision {
        if self.may_defer
            && self.unsent > self.full
            && self.ack_is_near(now)
            && self.has_little_room(&max_burst)
        {
            // The room in `cwnd` limits the burst, or the room in the far end's window does.
            let cwnd_is_smaller = self.room_segments * self.full < self.usable;
            let blocked = if cwnd_is_smaller { BlockedBy::CongestionWindow } else { BlockedBy::LargerBurst };
            return BurstDecision::Wait(blocked);
        }
        // At least two bursts are in flight (Linux: tcp_cwnd_test).
        let mut quota = self.room_segments.min(self.cwnd_segments / 2);
        let written = self.unsent.min(self.usable);
        if written < quota * self.full {
            quota = written.div_ceil(self.full);
        }
        if quota > self.min_burst {
            quota = quota.min(max_burst());
        }
        BurstDecision::Send(u32::try_from(quota).unwrap_or(u32::MAX).max(1))
    }

    /// True if a burst left within the last millisecond, and the first acknowledgement is due within the next
    /// millisecond, or within half a round trip if that is shorter (Linux: tcp_tso_should_defer).
    #[inline]
    fn ack_is_near(&self, now: Instant) -> bool {
        if now.since(self.last_burst) > RECENTLY {
            return false;
        }
        match (self.first_sent_at, self.srtt) {
            (Some(first), Some(srtt)) => first.saturating_add(srtt) <= now.saturating_add(SOON.min(srtt / 2)),
            _ => false,
        }
    }

    /// True if there is room for less than a whole burst, and for less than a third of the window.
    fn has_little_room(&self, max_burst: impl Fn() -> u64) -> bool {
        let limit = self.usable.min(self.room_segments * self.full);
        let window = self.offered.min(self.cwnd_segments * self.full);
        let is_below_minimum = limit < self.min_burst * self.full;
        limit < window / WINDOW_DIVISOR && (is_below_minimum || limit < max_burst() * self.full)
    }
}

/// A burst waits only if the next acknowledgement is at most this far away (Linux: tcp_tso_should_defer since
/// "tcp: fix tcp_tso_should_defer() vs large RTT", in 6.18 and stable kernels of that time; half a round trip
/// before).
const SOON: Duration = Duration::from_millis(1);
/// A burst waits only if the last one left at most this long ago (Linux: tcp_tso_should_defer).
const RECENTLY: Duration = Duration::from_millis(1);
/// A burst waits only if the room is less than this part of the window (Linux: net.ipv4.tcp_tso_win_divisor).
const WINDOW_DIVISOR: u64 = 3;

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Packets, Seed};

    use super::*;
    use crate::tcp::core::Core;
    use crate::tcp::send::{BurstKind, NewSegment};
    use talkpath_config::{Role, Stack, TcpConfig};

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const SMSS: u32 = 1448;

    /// A sender in congestion avoidance with a window of `cwnd` segments, `written` of them, and a path of
    /// `rtt`.
    fn sender(cwnd: u64, written: u64, rtt: Duration) -> Core {
        let mut config = TcpConfig::preset(Stack::Linux, false);
        (config.initial_window, config.initial_ssthresh) = (Packets::new(cwnd), Some(Packets::new(1)));
        let mut tcp = Core::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        tcp.scoreboard.on_syn_sent();
        tcp.scoreboard.on_established();
        tcp.sender.on_established(SMSS);
        tcp.sender.on_far_syn(u16::MAX, 7);
        tcp.sender.update_window(u16::MAX, 1, 1);
        tcp.sender.write(Bytes::new(written * u64::from(SMSS)), &tcp.scoreboard);
        tcp.rtt.on_sample(rtt, 0, 0);
        tcp.recovery.on_handshake_rtt(rtt, Instant::ZERO);
        tcp
    }

    /// The same once `segments` of them have left at `now`.
    fn with_flight(mut tcp: Core, segments: u64, now: Instant) -> Core {
        tcp.sender.pacing_mut().begin_burst(segments as u32, BurstKind::NewData, now);
        for segment in 0..segments {
            let segment = NewSegment { payload: SMSS, fin: false, in_burst: segment > 0 };
            tcp.sender.send_new(segment, &mut tcp.scoreboard, now);
        }
        tcp
    }

    fn leaves(tcp: &Core, now: Instant) -> u32 {
        match tcp.tso_burst(false, now) {
            BurstDecision::Send(segments) => segments,
            deferred @ BurstDecision::Wait(_) => panic!("{deferred:?}"),
        }
    }

    /// tcp_tso_autosize: what 1.2 windows a round trip (net.ipv4.tcp_pacing_ca_ratio) send in 2^-10 s
    /// (sk_pacing_shift), at least two segments (net.ipv4.tcp_min_tso_segs) and at most 64 KiB
    /// (sk_gso_max_size).
    #[test]
    fn a_burst_is_a_milliseconds_worth_of_the_pacing_rate() {
        let now = Instant::from_secs(1);
        // 1.2 * 500 * 1448 B / 50 ms / 1024 = 16,968 B: 11 segments.
        assert_eq!(leaves(&sender(500, 500, MS(50)), now), 11);
        // 1.2 * 10 * 1448 B / 100 ms / 1024 = 169 B.
        assert_eq!(leaves(&sender(10, 10, MS(100)), now), 2);
        // 1.2 * 1000 * 1448 B / 10 ms / 1024 = 169,687 B; 65,536 B hold 45 segments.
        assert_eq!(leaves(&sender(1000, 1000, MS(10)), now), 45);
    }

    /// tcp_tso_autosize: 64 KiB more, halved for each 512 us of the shortest round trip
    /// (net.ipv4.tcp_tso_rtt_log = 9).
    #[test]
    fn a_short_path_has_larger_bursts() {
        let now = Instant::from_secs(1);
        // 1.2 * 100 * 1448 B / 3 ms / 1024 = 56,562 B, and 65,536 / 2^5 B: 58,610 B.
        assert_eq!(leaves(&sender(100, 100, MS(3)), now), 40);
        // 10 ms are 2^19 of that.
        assert_eq!(leaves(&sender(100, 100, MS(10)), now), 11);
    }

    /// tcp_cwnd_test: no more than half of `cwnd`, nor than it has room for; tcp_mss_split_point: nor than
    /// the far end's window.
    #[test]
    fn a_burst_has_room_in_both_windows_and_is_half_of_cwnd_at_most() {
        let now = Instant::from_secs(1);
        assert_eq!(leaves(&sender(30, 100, MS(1)), now), 15);
        let late = now + MS(2);
        assert_eq!(leaves(&with_flight(sender(30, 100, MS(1)), 26, now), late), 4);
        let mut tcp = sender(30, 100, MS(1));
        tcp.sender.update_window((3 * SMSS / 128) as u16 + 1, 2, 1);
        assert_eq!(leaves(&tcp, now), 4);
    }

    #[test]
    fn the_last_burst_is_what_was_written_a_small_segment_too() {
        let now = Instant::from_secs(1);
        let mut tcp = sender(100, 3, MS(1));
        assert_eq!(leaves(&tcp, now), 3);
        tcp.sender.write(Bytes::new(1), &tcp.scoreboard);
        assert_eq!(leaves(&tcp, now), 4);
    }

    /// tcp_tso_should_defer: `cwnd` has room for less than a whole burst and less than a third of the window
    /// (net.ipv4.tcp_tso_win_divisor), and the first segment's acknowledgement is due within a millisecond.
    #[test]
    fn an_odd_burst_waits_for_an_acknowledgement_that_is_near() {
        let sent = Instant::from_secs(1);
        let rtt = Duration::from_micros(1500);
        let tcp = || with_flight(sender(100, 200, rtt), 90, sent);
        let near = sent + Duration::from_micros(999);
        assert_eq!(tcp().pace().max_burst(), 45);
        assert_eq!(tcp().tso_burst(false, near), BurstDecision::Wait(BlockedBy::CongestionWindow));
        // The FIN's segment goes with what there is.
        assert_eq!(tcp().tso_burst(true, near), BurstDecision::Send(10));
        // A burst left no more than a millisecond ago, or this one goes.
        assert_eq!(leaves(&tcp(), sent + Duration::from_micros(1001)), 10);
        // A third of the window is a burst.
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
        tcp.recovery.begin_fast_for_test(tcp.scoreboard.snd_max());
        assert_eq!(leaves(&tcp, sent + Duration::from_micros(999)), 10);
    }
}
