//! When to acknowledge: the delayed-ACK policies.
//!
//! The order is Linux's and matters to whoever sends small messages both ways: an arriving segment is first
//! processed in full, and what its acknowledgement released leaves, carrying ours; only then is an acknowledgement
//! of its own considered (tcp_data_snd_check before tcp_ack_snd_check); then the application reads, which may send
//! one too (tcp_cleanup_rbuf).
//!
//! The other policies acknowledge data in order when the application has read it, as BSD does, whose soreceive calls tcp_output:
//! an application that reads at once leaves the offered window as it was. An acknowledgement sent before the read would offer
//! a segment less; the sender would never have the last segment of the window in flight, and would take the first duplicate, which
//! offers it again, for a window update (RFC 5681 §2). Where nobody reads, it leaves at the same instant all the same.
//!
//! Linux's policy has two modes. *Quick*: the first segments of a connection, and those after a long gap or after one that was
//! here before, are acknowledged at once; so is data beyond a gap, but that changes no mode. *Ping-pong*: once the application has answered received data within the ACK
//! timeout, acknowledgements wait for the next answer. The timeout `ato` adapts to the time between segments.

mod linux;

use talkpath_units::{Duration, Instant};

use self::linux::{ATO_MIN, LINUX_FIRST_RCV_MSS, LINUX_MIN_RCV_MSS, LinuxState, Pushed};
use super::clock::HostClock;
use super::rtt::whole_ticks;
use super::timer::{TimerKind, Timers};
use crate::DelayedAck;

/// What the policy needs to know of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Instant,
    pub(crate) rcv_nxt: u64,
    /// In-order bytes that the application has not read.
    pub(crate) unread: u64,
    /// The window that was offered and not used up.
    pub(crate) offered: u64,
    /// The window that would be offered now.
    pub(crate) selectable: u64,
    /// The receive buffer.
    pub(crate) buffer: u64,
    pub(crate) rto: Duration,
    pub(crate) srtt: Option<Duration>,
}

/// One end's acknowledgement policy.
#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    kind: DelayedAck,
    /// Linux's jiffy; its clock has no ticks where this is zero.
    tick: Duration,
    /// Whose ticks they are.
    clock: HostClock,
    /// Something arrived that has not been acknowledged.
    scheduled: bool,
    /// An acknowledgement has to leave with the next poll.
    immediate: bool,
    /// A segment was processed and `check` has not been called for it.
    unchecked: bool,
    /// An acknowledgement is due when the application has read, or at the end of this instant.
    after_read: bool,
    /// What filled a gap is acknowledged without waiting for a second segment.
    filled_gap: bool,
    /// RCV.NXT as last sent (Linux: rcv_wup), and the edge offered with it.
    acked_to: u64,
    window_sent: u64,
    /// Payload of a full segment from the far end: as negotiated, or as Linux estimates it.
    rcv_mss: u32,
    /// Payload of a full segment by the options agreed on.
    full_segment: u32,
    linux: LinuxState,
}

impl AckPolicy {
    /// By `kind`, with timers on the ticks of `clock`, which in Linux are `tick` apart.
    pub(crate) fn new(kind: DelayedAck, tick: Duration, clock: HostClock) -> Self {
        Self {
            kind,
            tick,
            clock,
            scheduled: false,
            immediate: false,
            unchecked: false,
            after_read: false,
            filled_gap: false,
            acked_to: 0,
            window_sent: 0,
            rcv_mss: LINUX_FIRST_RCV_MSS,
            full_segment: 0,
            linux: LinuxState::default(),
        }
    }

    /// The handshake is done: full segments carry `full_segment` bytes, and windows are offered up to `window`.
    pub(crate) fn on_established(&mut self, full_segment: u32, window: u64, now: Instant) {
        self.full_segment = full_segment;
        // tcp_initialize_rcv_mss.
        let half_window = u32::try_from(window / 2).unwrap_or(u32::MAX);
        self.rcv_mss = full_segment.min(half_window).clamp(LINUX_MIN_RCV_MSS, LINUX_FIRST_RCV_MSS);
        self.linux.last_received = now;
    }

    /// The segment size that silly window avoidance reckons with.
    pub(crate) const fn window_mss(&self) -> u32 {
        match self.kind {
            DelayedAck::Linux => self.rcv_mss,
            DelayedAck::Off | DelayedAck::After { .. } | DelayedAck::Tick { .. } => self.full_segment,
        }
    }

    /// RCV.NXT as last sent.
    pub(crate) const fn acked_to(&self) -> u64 {
        self.acked_to
    }

    /// The application has read what had to be acknowledged: that leaves before what it writes in answer.
    #[inline]
    pub(crate) const fn leads(&self) -> bool {
        self.immediate & self.after_read
    }

    /// Whether `check` has something to decide or to send.
    pub(crate) const fn is_pending(&self) -> bool {
        self.immediate || self.unchecked
    }

    /// Whether one has to leave whatever [`Self::check`] says.
    #[inline]
    pub(crate) const fn is_immediate(&self) -> bool {
        self.immediate
    }

    /// An acknowledgement must leave at once: something was wrong with a segment, or the protocol demands it.
    pub(crate) const fn demand(&mut self) {
        self.immediate = true;
    }

    /// In-order data of `payload` bytes arrived.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, payload: u32, pushed: bool, filled_gap: bool, context: &AckContext) {
        self.scheduled = true;
        self.unchecked = true;
        // RFC 5681 §4.2: a segment that fills a gap is acknowledged at once.
        self.filled_gap |= filled_gap;
        if self.kind == DelayedAck::Linux {
            self.immediate |= filled_gap;
            self.measure_rcv_mss(payload, pushed);
            self.adapt_ato(context);
        }
    }

    /// Data of `payload` bytes arrived that leaves a gap: RFC 5681 §4.2 has it acknowledged at once (tcp_data_queue_ofo,
    /// __tcp_ack_snd_check).
    pub(crate) fn on_gap(&mut self, payload: u32, pushed: bool) {
        self.scheduled = true;
        self.immediate = true;
        if self.kind == DelayedAck::Linux {
            // Since Linux 6.17.
            self.measure_rcv_mss(payload, pushed);
        }
    }

    /// Data arrived that was here before, or does not fit: its acknowledgement may have been lost.
    pub(crate) fn on_repeat(&mut self, context: &AckContext) {
        self.scheduled = true;
        self.immediate = true;
        if self.kind == DelayedAck::Linux {
            // tcp_enter_quickack_mode.
            self.quicken(context);
            self.linux.ping_pong = false;
            self.linux.ato = ATO_MIN;
        }
    }

    /// The offered window grows: the far end is told at once (tcp_grow_window).
    pub(crate) const fn on_window_growth(&mut self) {
        self.linux.quick |= 1;
    }

    /// Our data left, and with it an acknowledgement of everything.
    #[inline(always)]
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        // tcp_event_data_sent: an answer within the timeout makes the connection interactive. One is enough
        // (net.ipv4.tcp_pingpong_thresh = 1). Where no data has come there is no timeout.
        if !self.linux.ato.is_zero() && self.kind == DelayedAck::Linux && !self.linux.ping_pong {
            self.note_answer(now);
        }
    }

    #[inline(never)]
    fn note_answer(&mut self, now: Instant) {
        self.linux.ping_pong = self.since_received(now) < self.linux.ato;
    }

    /// A segment with the ACK bit left, acknowledging `rcv_nxt` and offering a window.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, rcv_nxt: u64, offered: u64, timers: &mut Timers) {
        // tcp_dec_quickack_mode.
        if self.linux.quick > 0 && self.scheduled {
            self.linux.quick -= 1;
            if self.linux.quick == 0 {
                self.linux.ato = ATO_MIN;
            }
        }
        self.scheduled = false;
        self.immediate = false;
        self.unchecked = false;
        self.after_read = false;
        self.filled_gap = false;
        self.acked_to = rcv_nxt;
        self.window_sent = offered;
        self.linux.pushed = Pushed::None;
        timers.clear(TimerKind::DelayedAck);
    }

    /// Whether [`Self::on_ack_sent`] would change nothing.
    pub(crate) fn has_told(&self, rcv_nxt: u64, offered: u64) -> bool {
        let owes = self.scheduled | self.immediate | self.unchecked | self.after_read | self.filled_gap;
        !owes && (self.acked_to, self.window_sent) == (rcv_nxt, offered) && self.linux.pushed == Pushed::None
    }

    /// What a processed segment released has left: decides on an acknowledgement of its own. True when a pure one
    /// has to leave now.
    #[inline(always)]
    pub(crate) fn check(&mut self, context: &AckContext, timers: &mut Timers) -> bool {
        if core::mem::take(&mut self.unchecked) && self.scheduled && !self.immediate {
            match self.kind {
                DelayedAck::Linux => self.immediate = self.check_linux(context, timers),
                DelayedAck::Off => self.acknowledge_after_read(context, timers),
                _ if self.filled_gap => self.acknowledge_after_read(context, timers),
                DelayedAck::After { timeout } => {
                    self.check_second(context, timers, |_| context.now + timeout);
                }
                DelayedAck::Tick { period } => {
                    let due = |clock: HostClock| clock.when(next_tick(period, clock.read(context.now)));
                    self.check_second(context, timers, due);
                }
            }
        }
        self.immediate
    }

    /// At once where everything is read. Otherwise [`Self::on_read`] sends it, or the timer at the end of this instant.
    fn acknowledge_after_read(&mut self, context: &AckContext, timers: &mut Timers) {
        if context.unread == 0 {
            self.immediate = true;
        } else {
            self.after_read = true;
            timers.set(TimerKind::DelayedAck, context.now);
        }
    }

    /// RFC 5681 §4.2: at the second full segment, or at the `deadline`.
    #[inline(always)]
    fn check_second(
        &mut self,
        context: &AckContext,
        timers: &mut Timers,
        deadline: impl FnOnce(HostClock) -> Instant,
    ) {
        if context.rcv_nxt - self.acked_to >= 2 * u64::from(self.full_segment) {
            self.acknowledge_after_read(context, timers);
        } else if !timers.is_running(TimerKind::DelayedAck) {
            timers.set(TimerKind::DelayedAck, deadline(self.clock));
        }
    }

    /// Whether [`Self::check`] would look at `selectable` while something is unread.
    #[inline]
    pub(crate) const fn check_asks_window(&self, rcv_nxt: u64) -> bool {
        matches!(self.kind, DelayedAck::Linux)
            && self.scheduled
            && rcv_nxt - self.acked_to > self.rcv_mss as u64
    }

    /// Whether [`Self::on_read`] may look at `selectable`.
    #[inline]
    pub(crate) const fn read_asks_window(&self, offered: u64, buffer: u64) -> bool {
        match self.kind {
            DelayedAck::Linux => 2 * offered <= buffer,
            // What waited for the read leaves in any case.
            DelayedAck::Off | DelayedAck::After { .. } | DelayedAck::Tick { .. } => !self.after_read,
        }
    }

    /// Whether a read may have to be told of at all, as far as that can be seen at once: something waits to be acknowledged, or
    /// half of the receive buffer, or nearly all that was offered, is used up. Offers are counted in `unit`s.
    #[inline]
    pub(crate) const fn read_may_acknowledge(
        &self,
        rcv_nxt: u64,
        offered: u64,
        buffer: u64,
        unit: u64,
    ) -> bool {
        match self.kind {
            DelayedAck::Linux => {
                let more_than_one = rcv_nxt - self.acked_to > self.rcv_mss as u64;
                let pushed = !matches!(self.linux.pushed, Pushed::None);
                self.scheduled & (more_than_one | pushed) | (2 * offered <= buffer)
            }
            DelayedAck::Off | DelayedAck::After { .. } | DelayedAck::Tick { .. } => {
                // Scaling may round an offer up.
                let growth = buffer.saturating_sub(offered) + unit;
                self.after_read || offered < self.full_segment as u64 || growth >= buffer / 2
            }
        }
    }

    /// The application read some bytes: whether that sends an acknowledgement or a window update.
    pub(crate) fn on_read(&mut self, context: &AckContext) {
        self.immediate |= match self.kind {
            DelayedAck::Linux => self.read_acknowledges_linux(context),
            DelayedAck::Off | DelayedAck::After { .. } | DelayedAck::Tick { .. } => {
                self.after_read || self.window_opened(context)
            }
        };
    }

    /// RFC 9293 §3.8.6.2.2: the edge moves by half the buffer, or from less than a segment to at least one.
    fn window_opened(&self, context: &AckContext) -> bool {
        let growth = context.selectable.saturating_sub(context.offered);
        let segment = u64::from(self.full_segment).min(context.buffer / 2);
        growth > 0 && (growth >= context.buffer / 2 || context.offered < segment)
    }

    /// The delayed-ACK timer fired (tcp_delack_timer_handler).
    pub(crate) fn on_timeout(&mut self, rto: Duration) {
        if !self.scheduled {
            return;
        }
        self.immediate = true;
        if self.linux.ping_pong {
            self.linux.ping_pong = false;
            self.linux.ato = ATO_MIN;
        } else {
            self.linux.ato = self.linux.ato.saturating_add(self.linux.ato).min(rto);
        }
    }
}

/// The next tick of a clock that shows `now`.
fn next_tick(period: Duration, now: Instant) -> Instant {
    let period = period.as_nanos().max(1);
    Instant::from_nanos((whole_ticks(now.as_nanos(), period) + 1).saturating_mul(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1448;

    fn context(ms: u64, rcv_nxt: u64) -> AckContext {
        AckContext {
            now: Instant::from_millis(ms),
            rcv_nxt,
            unread: 0,
            offered: 1 << 20,
            selectable: 1 << 20,
            buffer: 1 << 20,
            rto: Duration::from_millis(300),
            srtt: Some(Duration::from_millis(100)),
        }
    }

    fn policy(kind: DelayedAck) -> (AckPolicy, Timers) {
        let (mut policy, mut timers) =
            (AckPolicy::new(kind, Duration::ZERO, HostClock::COMMON), Timers::new());
        policy.on_established(FULL, 1 << 20, Instant::ZERO);
        policy.on_ack_sent(1, 1 << 20, &mut timers);
        (policy, timers)
    }

    /// Data at `ms` that brings `rcv_nxt`; whether it is acknowledged at once.
    fn data(policy: &mut AckPolicy, timers: &mut Timers, ms: u64, payload: u32, rcv_nxt: u64) -> bool {
        let context = context(ms, rcv_nxt);
        policy.on_data(payload, true, false, &context);
        let now = policy.check(&context, timers);
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
        assert!(timers.is_running(TimerKind::DelayedAck));
    }

    /// tcp_measure_rcv_mss: the largest seen; or two equal ones in a row.
    #[test]
    fn linux_learns_the_far_ends_segment_size() {
        let (mut policy, _) = policy(DelayedAck::Linux);
        assert_eq!(policy.rcv_mss, 536);
        policy.measure_rcv_mss(1448, false);
        assert_eq!(policy.rcv_mss, 1448);
        policy.measure_rcv_mss(1000, false);
        assert_eq!(policy.rcv_mss, 1448);
        policy.measure_rcv_mss(1000, false);
        assert_eq!(policy.rcv_mss, 1000);
    }

    /// tcp_delack_timer_handler.
    #[test]
    fn a_delayed_ack_that_fires_doubles_ato_or_ends_ping_pong() {
        let (mut policy, mut timers) = policy(DelayedAck::Linux);
        data(&mut policy, &mut timers, 0, 160, 161);
        policy.on_data_sent(Instant::from_millis(1));
        assert!(policy.linux.ping_pong);
        assert!(!data(&mut policy, &mut timers, 20, 160, 321));
        policy.on_timeout(Duration::from_millis(300));
        assert!(!policy.linux.ping_pong && policy.linux.ato == ATO_MIN && policy.immediate);
        policy.scheduled = true;
        policy.on_timeout(Duration::from_millis(300));
        assert_eq!(policy.linux.ato, Duration::from_millis(80));
    }

    /// tcp_data_queue: a segment that was here before ends ping-pong (tcp_enter_quickack_mode); one beyond a gap does not.
    #[test]
    fn a_gap_is_acknowledged_at_once_and_leaves_the_mode_alone() {
        let (mut policy, mut timers) = policy(DelayedAck::Linux);
        data(&mut policy, &mut timers, 0, 160, 161);
        policy.on_data_sent(Instant::from_millis(1));
        policy.linux.quick = 0;
        policy.on_gap(160, true);
        assert!(policy.check(&context(20, 161), &mut timers));
        policy.on_ack_sent(161, 1 << 20, &mut timers);
        assert!(policy.linux.ping_pong && !data(&mut policy, &mut timers, 40, 160, 321));
        policy.on_repeat(&context(60, 321));
        policy.on_ack_sent(321, 1 << 20, &mut timers);
        assert!(!policy.linux.ping_pong && data(&mut policy, &mut timers, 80, 160, 481));
    }

    /// RFC 9293 §3.8.6.2.2.
    #[test]
    fn a_read_updates_a_window_that_opened_far_enough() {
        let (policy, _) = policy(DelayedAck::Off);
        let opened =
            |offered, selectable| policy.window_opened(&AckContext { offered, selectable, ..context(0, 1) });
        assert!(opened(0, 1448) && opened(1 << 18, (1 << 18) + (1 << 19)));
        assert!(!opened(1 << 18, (1 << 18) + 10_000) && !opened(0, 0));
    }
}
