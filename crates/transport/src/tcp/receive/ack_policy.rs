//! When to acknowledge received data (RFC 5681 §4.2, RFC 9293 §3.8.6.3).
//!
//! Four steps follow each received segment, in Linux's order (tcp_data_snd_check, tcp_ack_snd_check,
//! tcp_cleanup_rbuf). The order matters to applications that send small messages both ways.
//!
//! ```text
//!   1. the segment is processed              on_data, on_gap, on_repeat
//!   2. data of ours that may now leave does  on_ack_sent: the data carries the acknowledgement
//!   3. the policy decides                    check: a pure ACK now, or the delayed-ACK timer
//!   4. the application reads                 on_read: a pure ACK or a window update, or nothing
//! ```
//!
//! Linux acknowledges in step 3. The other policies wait for step 4, as BSD does (soreceive calls
//! tcp_output), for this reason: before the read, an ACK would offer a window that is a segment smaller, and
//! the next ACK would offer the full window again. The sender would take that next ACK for a window update,
//! although it is a duplicate ACK (RFC 5681 §2). If the application does not read, a timer sends the ACK at
//! the end of the same instant.

mod linux;

use talkpath_config::DelayedAck;
use talkpath_units::{Duration, Instant};

use self::linux::LinuxAcks;
use crate::tcp::clock::{HostClock, whole_ticks};
use crate::tcp::timers::{TimerKind, TimerSlot, Timers};

/// What the policy needs to know of the connection. Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    pub(super) now: Instant,
    pub(super) rcv_nxt: u64,
    /// The number of in-order bytes that the application has not read.
    pub(super) unread: u64,
    /// True if less than half of the receive buffer is free.
    pub(super) is_half_full: bool,
    /// The part of the offered window that the far end has not used.
    pub(super) offered: u64,
    /// The size of the receive buffer.
    pub(super) buffer: u64,
    pub(super) rto: Duration,
    pub(super) srtt: Option<Duration>,
}

/// The acknowledgement policy of one end.
#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    kind: DelayedAck,
    /// The host's clock, for [`DelayedAck::Tick`].
    clock: HostClock,
    /// The data that has arrived since the last ACK left.
    unacked: UnackedData,
    next_ack: NextAck,
    /// True if the next ACK is due when the application has read, or at the end of this instant.
    is_due_after_read: bool,
    /// RCV.NXT as the last ACK said it (Linux: rcv_wup).
    acked_to: u64,
    /// The window that the last ACK offered, in bytes.
    window_sent: u64,
    /// Payload bytes of a full segment, by the options that both ends agreed on.
    full_segment: u32,
    /// Only [`DelayedAck::Linux`] uses it.
    linux: LinuxAcks,
}

/// The data that waits for its acknowledgement. Of two values the greater one demands more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UnackedData {
    None,
    Some,
    /// A segment filled a gap. It is acknowledged without waiting for a second segment (RFC 5681 §4.2).
    FilledGap,
}

/// When the next pure ACK leaves. Of two values the greater one is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NextAck {
    /// Not before the next event: no data waits, or the ACK waits for the application, a further segment or
    /// the delayed-ACK timer.
    Later,
    /// A segment was processed, and [`AckPolicy::check`] has not decided on it.
    Undecided,
    /// With the next poll.
    Now,
}

impl AckPolicy {
    /// A policy of `kind`. Its timers expire on the ticks of `clock`, which in Linux are `tick` long. Linux
    /// delays an ACK by less than `min_rto`.
    pub(super) fn new(kind: DelayedAck, tick: Duration, min_rto: Duration, clock: HostClock) -> Self {
        Self {
            kind,
            clock,
            unacked: UnackedData::None,
            next_ack: NextAck::Later,
            is_due_after_read: false,
            acked_to: 0,
            window_sent: 0,
            full_segment: 0,
            linux: LinuxAcks::new(tick, min_rto, clock),
        }
    }

    /// Takes the results of the handshake: full segments carry `full_segment` bytes, and windows of up to
    /// `window` bytes are offered.
    pub(super) fn on_established(&mut self, full_segment: u32, window: u64, now: Instant) {
        self.full_segment = full_segment;
        self.linux.on_established(full_segment, window, now);
    }

    /// The segment size that silly window avoidance counts with.
    pub(super) const fn window_mss(&self) -> u32 {
        match self.kind {
            DelayedAck::Linux => self.linux.rcv_mss(),
            DelayedAck::Off | DelayedAck::After { .. } | DelayedAck::Tick { .. } => self.full_segment,
        }
    }

    /// RCV.NXT as the last ACK said it.
    #[inline]
    pub(super) const fn acked_to(&self) -> u64 {
        self.acked_to
    }

    /// True if a pure ACK leaves before the data that the application writes next. That is so if the ACK was
    /// due before and only waited for the application's read.
    #[inline]
    pub(super) const fn acknowledges_first(&self) -> bool {
        matches!(self.next_ack, NextAck::Now) & self.is_due_after_read
    }

    /// True if [`Self::check`] has something to decide or to send.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        !matches!(self.next_ack, NextAck::Later)
    }

    #[inline]
    const fn has_unacked_data(&self) -> bool {
        !matches!(self.unacked, UnackedData::None)
    }

    /// Has an ACK leave with the next poll, because a segment was not acceptable or the protocol demands it.
    pub(super) const fn demand(&mut self) {
        self.next_ack = NextAck::Now;
    }

    /// Takes note of `payload` bytes that arrived in order.
    #[inline]
    pub(super) fn on_data(&mut self, payload: u32, pushed: bool, filled_gap: bool, context: &AckContext) {
        let data = if filled_gap { UnackedData::FilledGap } else { UnackedData::Some };
        self.unacked = self.unacked.max(data);
        let is_linux = self.kind == DelayedAck::Linux;
        let next_ack = if is_linux && filled_gap { NextAck::Now } else { NextAck::Undecided };
        self.next_ack = self.next_ack.max(next_ack);
        if is_linux {
            self.linux.on_data(payload, pushed, context);
        }
    }

    /// Takes note of `payload` bytes that arrived beyond a gap. They are acknowledged at once (RFC 5681
    /// §4.2).
    pub(super) fn on_gap(&mut self, payload: u32, pushed: bool) {
        self.unacked = self.unacked.max(UnackedData::Some);
        self.demand();
        if self.kind == DelayedAck::Linux {
            // Since version 6.17 Linux measures segments beyond a gap, too.
            self.linux.measure_rcv_mss(payload, pushed);
        }
    }

    /// Takes note of data that had arrived before, or that does not fit. Its ACK may have been lost, so the
    /// ACK is sent again.
    pub(super) fn on_repeat(&mut self, context: &AckContext) {
        self.unacked = self.unacked.max(UnackedData::Some);
        self.demand();
        if self.kind == DelayedAck::Linux {
            self.linux.on_repeat(context);
        }
    }

    /// Takes note of data that may have met congestion. Linux acknowledges the next segments at once
    /// (tcp_enter_quickack_mode).
    pub(super) fn on_mark(&mut self) {
        if self.kind == DelayedAck::Linux {
            self.linux.on_mark();
        }
    }

    /// Has the next ACK leave at once, because the offered window grows (Linux: tcp_grow_window).
    pub(super) const fn on_window_growth(&mut self) {
        self.linux.on_window_growth();
    }

    /// Takes note that a window to offer was computed. `is_half_full` is true if less than half of the
    /// receive buffer is free.
    #[inline]
    pub(super) const fn on_window_selected(&mut self, is_half_full: bool) {
        self.linux.on_window_selected(is_half_full);
    }

    /// Takes note that data of ours left.
    #[inline]
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        if self.kind == DelayedAck::Linux {
            self.linux.on_data_sent(now);
        }
    }

    /// Takes note that a segment with the ACK bit left. It acknowledged all bytes before `rcv_nxt` and
    /// offered a window of `offered` bytes.
    #[inline]
    pub(super) fn on_ack_sent(&mut self, rcv_nxt: u64, offered: u64, timers: &mut Timers) {
        self.linux.on_ack_sent(self.has_unacked_data());
        self.unacked = UnackedData::None;
        self.next_ack = NextAck::Later;
        self.is_due_after_read = false;
        self.acked_to = rcv_nxt;
        self.window_sent = offered;
        timers.clear(TimerSlot::DelayedAck);
    }

    /// Decides on the processed segments, after the data that they released has left. Returns true if a pure
    /// ACK has to leave now. `selectable` computes the window that the ACK would offer.
    #[inline]
    pub(super) fn check(
        &mut self,
        context: &AckContext,
        selectable: impl FnOnce() -> u64,
        timers: &mut Timers,
    ) -> bool {
        if self.next_ack == NextAck::Undecided {
            self.next_ack = NextAck::Later;
            let unacked = context.rcv_nxt - self.acked_to;
            match self.kind {
                DelayedAck::Linux => {
                    let offers_as_much = || selectable() >= self.window_sent;
                    let is_due = self.linux.acknowledges_now(context, unacked, offers_as_much, timers);
                    if is_due {
                        self.demand();
                    }
                }
                DelayedAck::Off => self.acknowledge_after_read(context, timers),
                _ if self.unacked == UnackedData::FilledGap => self.acknowledge_after_read(context, timers),
                DelayedAck::After { timeout } => self.delay(unacked, context.now + timeout, context, timers),
                DelayedAck::Tick { period } => {
                    let tick = next_tick(period, self.clock.read(context.now));
                    self.delay(unacked, self.clock.when(tick), context, timers);
                }
            }
        }
        self.next_ack == NextAck::Now
    }

    /// Acknowledges the second full segment, or at the `deadline` (RFC 5681 §4.2). `unacked` bytes are not
    /// acknowledged.
    fn delay(&mut self, unacked: u64, deadline: Instant, context: &AckContext, timers: &mut Timers) {
        if unacked >= ACKNOWLEDGED_SEGMENTS * u64::from(self.full_segment) {
            self.acknowledge_after_read(context, timers);
        } else if !timers.is_running(TimerSlot::DelayedAck) {
            timers.set(TimerKind::DelayedAck, deadline);
        }
    }

    /// Acknowledges at once if the application has read all data. Otherwise [`Self::on_read`] acknowledges,
    /// or the delayed-ACK timer at the end of this instant.
    fn acknowledge_after_read(&mut self, context: &AckContext, timers: &mut Timers) {
        if context.unread == 0 {
            self.demand();
        } else {
            self.is_due_after_read = true;
            timers.set(TimerKind::DelayedAck, context.now);
        }
    }

    /// Decides, after the application has read, whether an ACK or a window update leaves. `selectable`
    /// computes the window that it would offer.
    #[inline]
    pub(super) fn on_read(&mut self, context: &AckContext, selectable: impl FnOnce() -> u64) {
        let is_due = match self.kind {
            DelayedAck::Linux => {
                let unacked = self.has_unacked_data().then(|| context.rcv_nxt - self.acked_to);
                self.linux.read_acknowledges(context, selectable, unacked)
            }
            DelayedAck::Off | DelayedAck::After { .. } | DelayedAck::Tick { .. } => {
                self.is_due_after_read || self.window_opened(context, selectable())
            }
        };
        if is_due {
            self.demand();
        }
    }

    /// True if the window has opened enough to say so (RFC 9293 §3.8.6.2.2): its edge moves by at least half
    /// the buffer, or the window grows from less than a segment to at least one.
    fn window_opened(&self, context: &AckContext, selectable: u64) -> bool {
        let growth = selectable.saturating_sub(context.offered);
        let segment = u64::from(self.full_segment).min(context.buffer / 2);
        growth > 0 && (growth >= context.buffer / 2 || context.offered < segment)
    }

    /// Acknowledges, because the delayed-ACK timer has expired.
    pub(super) fn on_timeout(&mut self, rto: Duration) {
        if self.has_unacked_data() {
            self.demand();
            self.linux.on_timeout(rto);
        }
    }
}

/// The first tick after `reading`, which is the time on the host's clock.
fn next_tick(period: Duration, reading: Instant) -> Instant {
    let period = period.as_nanos().max(1);
    Instant::from_nanos((whole_ticks(reading.as_nanos(), period) + 1).saturating_mul(period))
}

/// At least every second full segment is acknowledged (RFC 5681 §4.2). The stacks `rfc` and `bsd-reno` do so
/// in this file, `linux` in `linux.rs`.
pub(super) const ACKNOWLEDGED_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::linux::ATO_MIN;
    use super::*;

    const FULL: u32 = 1448;

    fn context(ms: u64, rcv_nxt: u64) -> AckContext {
        AckContext {
            now: Instant::from_millis(ms),
            rcv_nxt,
            unread: 0,
            is_half_full: false,
            offered: 1 << 20,
            buffer: 1 << 20,
            rto: Duration::from_millis(300),
            srtt: Some(Duration::from_millis(100)),
        }
    }

    fn policy(kind: DelayedAck) -> (AckPolicy, Timers) {
        policy_with(kind, Duration::ZERO, Duration::from_millis(200))
    }

    fn policy_with(kind: DelayedAck, tick: Duration, min_rto: Duration) -> (AckPolicy, Timers) {
        let (mut policy, mut timers) =
            (AckPolicy::new(kind, tick, min_rto, HostClock::COMMON), Timers::new());
        policy.on_established(FULL, 1 << 20, Instant::ZERO);
        policy.on_ack_sent(1, 1 << 20, &mut timers);
        (policy, timers)
    }

    /// Data at `ms` that brings `rcv_nxt`; whether it is acknowledged at once.
    fn data(policy: &mut AckPolicy, timers: &mut Timers, ms: u64, payload: u32, rcv_nxt: u64) -> bool {
        let context = context(ms, rcv_nxt);
        policy.on_data(payload, true, false, &context);
        let now = policy.check(&context, || 1 << 20, timers);
        if now {
            policy.on_ack_sent(rcv_nxt, context.offered, timers);
        }
        now
    }

    /// RFC 5681 §4.2.
    #[test]
    fn the_second_full_segment_is_acknowledged_and_stops_the_timer() {
        let (mut policy, mut timers) = policy(DelayedAck::After { timeout: Duration::from_millis(200) });
        assert!(!data(&mut policy, &mut timers, 0, FULL, 1449));
        assert_eq!(timers.next(), Some(Instant::from_millis(200)));
        assert!(data(&mut policy, &mut timers, 1, FULL, 2897));
        assert_eq!(timers.next(), None);
    }

    /// tcp_fasttimo.
    #[test]
    fn a_tick_is_the_next_of_the_host_s_clock() {
        assert_eq!(
            next_tick(Duration::from_millis(200), Instant::from_millis(399)),
            Instant::from_millis(400)
        );
        assert_eq!(
            next_tick(Duration::from_millis(200), Instant::from_millis(400)),
            Instant::from_millis(600)
        );
    }

    /// tcp_incr_quickack: 16 at most.
    #[test]
    fn linux_acknowledges_the_first_sixteen_segments_at_once() {
        let (mut policy, mut timers) = policy(DelayedAck::Linux);
        let quick =
            (1..=17).take_while(|&n| data(&mut policy, &mut timers, 20 * n, 160, 1 + 160 * n)).count();
        assert_eq!(quick, 16);
        assert!(timers.is_running(TimerSlot::DelayedAck));
    }

    /// tcp_measure_rcv_mss: the largest seen; or two equal ones in a row.
    #[test]
    fn linux_learns_the_far_ends_segment_size() {
        let (mut policy, _) = policy(DelayedAck::Linux);
        assert_eq!(policy.linux.rcv_mss(), 536);
        policy.linux.measure_rcv_mss(1448, false);
        assert_eq!(policy.linux.rcv_mss(), 1448);
        policy.linux.measure_rcv_mss(1000, false);
        assert_eq!(policy.linux.rcv_mss(), 1448);
        policy.linux.measure_rcv_mss(1000, false);
        assert_eq!(policy.linux.rcv_mss(), 1000);
    }

    /// tcp_delack_timer_handler.
    #[test]
    fn a_delayed_ack_that_fires_doubles_ato_or_ends_ping_pong() {
        let (mut policy, mut timers) = policy(DelayedAck::Linux);
        data(&mut policy, &mut timers, 0, 160, 161);
        policy.on_data_sent(Instant::from_millis(1));
        assert!(policy.linux.is_interactive());
        assert!(!data(&mut policy, &mut timers, 20, 160, 321));
        policy.on_timeout(Duration::from_millis(300));
        assert!(!policy.linux.is_interactive() && policy.linux.ato() == ATO_MIN && policy.is_pending());
        policy.unacked = UnackedData::Some;
        policy.on_timeout(Duration::from_millis(300));
        assert_eq!(policy.linux.ato(), Duration::from_millis(80));
    }

    /// tcp_delack_max: a jiffy less than min_rto, and at most 200 ms. A kernel with rto_min 5 ms for a route
    /// acknowledges within a jiffy of 4 ms. The wheel adds a jiffy, or fills up a bucket of eight.
    #[test]
    fn linux_delays_an_ack_by_less_than_the_shortest_timeout() {
        let ms = Duration::from_millis;
        let cases = [(1, 200, 696), (1, 1000, 704), (4, 200, 696), (4, 5, 504), (0, 100, 596)];
        for (tick, min_rto, leaves_at) in cases {
            let (mut policy, mut timers) = policy_with(DelayedAck::Linux, ms(tick), ms(min_rto));
            data(&mut policy, &mut timers, 0, 160, 161);
            policy.linux.use_up_quick();
            for _ in 0..3 {
                policy.unacked = UnackedData::Some;
                policy.on_timeout(ms(1000));
            }
            assert_eq!(policy.linux.ato(), ms(320));
            policy.on_ack_sent(161, 1 << 20, &mut timers);
            let context = AckContext { rto: ms(1000), srtt: None, ..context(496, 321) };
            policy.on_data(160, true, false, &context);
            assert!(!policy.check(&context, || 1 << 20, &mut timers));
            assert_eq!(timers.next(), Some(Instant::from_millis(leaves_at)), "{tick} ms, {min_rto} ms");
        }
    }

    /// __tcp_select_window: a receiver that is behind with reading leaves quick mode, when it decides whether
    /// an ACK could offer as much as the last one, too.
    #[test]
    fn a_half_full_buffer_ends_quick_mode() {
        let (mut policy, mut timers) = policy(DelayedAck::Linux);
        data(&mut policy, &mut timers, 0, FULL, 1449);
        let behind = AckContext { unread: 600_000, is_half_full: true, ..context(1, 4345) };
        policy.on_data(2 * FULL, false, false, &behind);
        assert!(!policy.check(&behind, || 1000, &mut timers), "the window would be smaller");
        policy.on_ack_sent(4345, 1000, &mut timers);
        assert!(!data(&mut policy, &mut timers, 2, 160, 4505));
    }

    /// tcp_data_queue: a segment that was here before ends ping-pong (tcp_enter_quickack_mode); one beyond a
    /// gap does not.
    #[test]
    fn a_gap_is_acknowledged_at_once_and_leaves_the_mode_alone() {
        let (mut policy, mut timers) = policy(DelayedAck::Linux);
        data(&mut policy, &mut timers, 0, 160, 161);
        policy.on_data_sent(Instant::from_millis(1));
        policy.linux.use_up_quick();
        policy.on_gap(160, true);
        assert!(policy.check(&context(20, 161), || 1 << 20, &mut timers));
        policy.on_ack_sent(161, 1 << 20, &mut timers);
        assert!(policy.linux.is_interactive() && !data(&mut policy, &mut timers, 40, 160, 321));
        policy.on_repeat(&context(60, 321));
        policy.on_ack_sent(321, 1 << 20, &mut timers);
        assert!(!policy.linux.is_interactive() && data(&mut policy, &mut timers, 80, 160, 481));
    }

    /// RFC 9293 §3.8.6.2.2.
    #[test]
    fn a_read_updates_a_window_that_opened_far_enough() {
        let (policy, _) = policy(DelayedAck::Off);
        let opened =
            |offered, selectable| policy.window_opened(&AckContext { offered, ..context(0, 1) }, selectable);
        assert!(opened(0, 1448) && opened(1 << 18, (1 << 18) + (1 << 19)));
        assert!(!opened(1 << 18, (1 << 18) + 10_000) && !opened(0, 0));
    }
}
