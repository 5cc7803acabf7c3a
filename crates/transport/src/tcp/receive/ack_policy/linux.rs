//! Linux's acknowledgement policy. It has three modes:
//!
//! - *Quick*: each segment is acknowledged at once. This holds for the first segments of a connection, after
//!   a pause longer than the RTO, and after a segment that arrived twice, until half of the receive buffer
//!   waits for the application.
//! - *Interactive* (ping-pong): the ACK waits for the application's answer, or for the ACK timeout `ato`.
//!   This holds once the application has answered received data within `ato`.
//! - Otherwise the second full segment is acknowledged at once. A single segment waits for `ato`.
//!
//! `ato` adapts to the time between segments, from 40 ms on. No ACK is delayed for as long as the shortest
//! retransmission timeout. The size of a full segment is estimated from the segments that arrive (`rcv_mss`).
//! Source: icsk_ack in Linux.

use talkpath_units::{Duration, Instant};

use super::{ACKNOWLEDGED_SEGMENTS, AckContext};
use crate::tcp::clock::{HostClock, HostTimers};
use crate::tcp::timers::{TimerKind, TimerSlot, Timers};

/// The state of Linux's policy at one end.
#[derive(Clone, Debug)]
pub(super) struct LinuxAcks {
    timers: HostTimers,
    /// The longest time for which an ACK is delayed.
    max_delay: Duration,
    /// The number of ACKs that still leave at once in quick mode.
    quick: u64,
    /// True in interactive mode.
    interactive: bool,
    /// The ACK timeout. Zero before the first data.
    ato: Duration,
    /// When data last arrived.
    last_received: Instant,
    /// Payload bytes of the last segment.
    last_segment: u32,
    /// The estimated payload of a full segment from the far end, in bytes.
    rcv_mss: u32,
    /// Payload bytes of a full segment, by the options that both ends agreed on.
    full_segment: u32,
    pushed: Pushed,
}

/// How many segments that were small or had PSH have arrived since the last ACK (ICSK_ACK_PUSHED,
/// ICSK_ACK_PUSHED2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pushed {
    #[default]
    None,
    One,
    Several,
}

impl LinuxAcks {
    /// An ACK waits for at most 200 ms, and for at most `min_rto` less a jiffy, but that bound is at least
    /// one jiffy. So the ACK leaves before the retransmission timer of a far end with the same `min_rto`
    /// expires (tcp_delack_max, since 6.11).
    pub(super) fn new(tick: Duration, min_rto: Duration, clock: HostClock) -> Self {
        Self {
            timers: HostTimers::on_wheel(clock, tick),
            max_delay: DELACK_MAX.min(min_rto.max(tick + tick) - tick),
            quick: 0,
            interactive: false,
            ato: Duration::ZERO,
            last_received: Instant::ZERO,
            last_segment: 0,
            rcv_mss: FIRST_RCV_MSS,
            full_segment: 0,
            pushed: Pushed::None,
        }
    }

    /// Sets the first estimate of `rcv_mss` after the handshake (tcp_initialize_rcv_mss).
    pub(super) fn on_established(&mut self, full_segment: u32, window: u64, now: Instant) {
        let half_window = u32::try_from(window / 2).unwrap_or(u32::MAX);
        self.rcv_mss = full_segment.min(half_window).clamp(MIN_RCV_MSS, FIRST_RCV_MSS);
        self.full_segment = full_segment;
        self.last_received = now;
    }

    #[inline]
    pub(super) const fn rcv_mss(&self) -> u32 {
        self.rcv_mss
    }

    /// Takes note of data in order: estimates the segment size and adapts `ato` (tcp_event_data_recv).
    #[inline]
    pub(super) fn on_data(&mut self, payload: u32, pushed: bool, context: &AckContext) {
        self.measure_rcv_mss(payload, pushed);
        let gap = self.timers.measure(self.last_received, context.now);
        self.last_received = context.now;
        if self.ato.is_zero() {
            self.acknowledge_quickly(context);
            self.ato = ATO_MIN;
        } else if gap <= ATO_MIN / 2 {
            self.ato = self.ato / 2 + ATO_MIN / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(context.rto);
        } else if gap > context.rto {
            self.acknowledge_quickly(context);
        }
    }

    /// Enters quick mode, because a segment arrived twice and so an ACK may have been lost
    /// (tcp_enter_quickack_mode).
    pub(super) fn on_repeat(&mut self, context: &AckContext) {
        self.acknowledge_quickly(context);
        self.interactive = false;
        self.ato = ATO_MIN;
    }

    /// Enters quick mode for at least two ACKs, because a segment had a CE mark.
    pub(super) fn on_mark(&mut self) {
        self.quick = self.quick.max(2);
        self.interactive = false;
        self.ato = ATO_MIN;
    }

    /// Has at least one ACK leave at once. Linux sets the lowest bit of the count (tcp_grow_window).
    pub(super) const fn on_window_growth(&mut self) {
        self.quick |= 1;
    }

    /// Ends quick mode if less than half of the receive buffer is free. Linux does this each time it computes
    /// the window to offer (__tcp_select_window).
    #[inline]
    pub(super) const fn on_window_selected(&mut self, is_half_full: bool) {
        if is_half_full {
            self.quick = 0;
        }
    }

    /// Takes note that data of ours left. If it left within `ato` after data arrived, it is an answer, and
    /// interactive mode begins. One answer is enough (tcp_event_data_sent, net.ipv4.tcp_pingpong_thresh = 1).
    #[inline]
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        if !self.interactive && !self.ato.is_zero() {
            self.interactive = self.timers.measure(self.last_received, now) < self.ato;
        }
    }

    /// Takes note that an ACK left. It counts as a quick one if it acknowledged new data
    /// (tcp_dec_quickack_mode).
    #[inline]
    pub(super) const fn on_ack_sent(&mut self, acknowledged_data: bool) {
        if self.quick > 0 && acknowledged_data {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.pushed = Pushed::None;
    }

    /// Returns true if `unacked` bytes are acknowledged at once (__tcp_ack_snd_check). Otherwise sets the
    /// delayed-ACK timer. More than a full segment is acknowledged at once, provided that the application has
    /// read all data, or that the ACK offers at least as large a window as the last ACK.
    #[inline]
    pub(super) fn acknowledges_now(
        &mut self,
        context: &AckContext,
        unacked: u64,
        offers_as_much: impl FnOnce() -> bool,
        timers: &mut Timers,
    ) -> bool {
        if self.has_enough(unacked) {
            if context.unread == 0 {
                return true;
            }
            self.on_window_selected(context.is_half_full);
            if offers_as_much() {
                return true;
            }
        }
        if self.quick > 0 && !self.interactive {
            return true;
        }
        self.delay(context, timers)
    }

    /// True if `unacked` bytes are more than one full segment. A part of a second segment counts
    /// (__tcp_ack_snd_check).
    #[inline]
    fn has_enough(&self, unacked: u64) -> bool {
        unacked > (ACKNOWLEDGED_SEGMENTS - 1) * u64::from(self.rcv_mss)
    }

    /// Starts the delayed-ACK timer. Returns true if it would expire so soon that the acknowledgement leaves
    /// at once (tcp_send_delayed_ack).
    fn delay(&self, context: &AckContext, timers: &mut Timers) -> bool {
        // The two further bounds of tcp_send_delayed_ack, HZ / 5 and HZ / 2, are never below `max_delay`.
        let mut ato = self.ato.min(self.max_delay);
        if let Some(srtt) = context.srtt {
            ato = ato.min(srtt.max(DELACK_MIN));
        }
        let mut deadline = self.timers.expiry(ato, context.now);
        if let Some(running) = timers.deadline(TimerSlot::DelayedAck) {
            // The timer wheel adds a jiffy to the time for which the timer was set.
            let soon = context.now.saturating_add(ato / 4 + self.timers.tick());
            if running <= soon {
                return true;
            }
            deadline = deadline.min(running);
        }
        timers.set(TimerKind::DelayedAck, deadline);
        false
    }

    /// Returns true if an ACK leaves after the application has read: more than a segment waits for its
    /// acknowledgement, or a segment with PSH does and all data was read, or the window doubles
    /// (tcp_cleanup_rbuf). `unacked` is the number of bytes that wait. `None` if no ACK is scheduled.
    #[inline]
    pub(super) fn read_acknowledges(
        &mut self,
        context: &AckContext,
        selectable: impl FnOnce() -> u64,
        unacked: Option<u64>,
    ) -> bool {
        if let Some(unacked) = unacked {
            let is_pushed = match self.pushed {
                Pushed::None => false,
                Pushed::One => !self.interactive,
                Pushed::Several => true,
            };
            if self.has_enough(unacked) || (is_pushed && context.unread == 0) {
                return true;
            }
        }
        if 2 * context.offered > context.buffer {
            return false;
        }
        self.on_window_selected(context.is_half_full);
        let selectable = selectable();
        selectable > 0 && selectable >= 2 * context.offered
    }

    /// Adapts to an expired delayed-ACK timer (tcp_delack_timer_handler). In interactive mode the application
    /// has not answered in time, so the mode ends. Otherwise `ato` was too short for a second segment, so it
    /// is doubled.
    pub(super) fn on_timeout(&mut self, rto: Duration) {
        if self.interactive {
            self.interactive = false;
            self.ato = ATO_MIN;
        } else {
            self.ato = self.ato.saturating_add(self.ato).min(rto);
        }
    }

    /// Has the next segments acknowledged at once: as many as half of the window holds, at least two and at
    /// most 16 (tcp_incr_quickack).
    fn acknowledge_quickly(&mut self, context: &AckContext) {
        let segments = context.offered / (2 * u64::from(self.rcv_mss.max(1)));
        let quick = if segments == 0 { 2 } else { segments.min(MAX_QUICKACKS) };
        self.quick = self.quick.max(quick);
    }

    /// Estimates the size of a full segment (tcp_measure_rcv_mss). The largest segment so far counts as full.
    /// A smaller size counts as full if two segments in a row have it. Below 536 bytes they must not end a
    /// write (PSH).
    #[inline]
    pub(super) fn measure_rcv_mss(&mut self, payload: u32, pushed: bool) {
        let last = core::mem::take(&mut self.last_segment);
        if payload >= self.rcv_mss {
            self.rcv_mss = payload.min(self.full_segment.max(MIN_RCV_MSS));
            if pushed && self.pushed == Pushed::None {
                self.pushed = Pushed::One;
            }
            return;
        }
        if payload >= FIRST_RCV_MSS || (payload >= MIN_RCV_MSS && !pushed) {
            self.last_segment = payload;
            if payload == last {
                self.rcv_mss = payload;
                return;
            }
        }
        self.pushed = if self.pushed == Pushed::None { Pushed::One } else { Pushed::Several };
    }

    #[cfg(test)]
    pub(super) const fn is_interactive(&self) -> bool {
        self.interactive
    }

    #[cfg(test)]
    pub(super) const fn ato(&self) -> Duration {
        self.ato
    }

    #[cfg(test)]
    pub(super) const fn use_up_quick(&mut self) {
        self.quick = 0;
    }
}

/// The largest number of ACKs that leave at once in quick mode (TCP_MAX_QUICKACKS).
const MAX_QUICKACKS: u64 = 16;
/// The first and the shortest `ato` (TCP_ATO_MIN = HZ / 25).
pub(super) const ATO_MIN: Duration = Duration::from_millis(40);
/// The lower bound of the delay by which SRTT limits `ato` (TCP_DELACK_MIN = HZ / 25).
const DELACK_MIN: Duration = Duration::from_millis(40);
/// The longest delay of an ACK (TCP_DELACK_MAX = HZ / 5).
const DELACK_MAX: Duration = Duration::from_millis(200);
/// The largest first estimate of `rcv_mss`, in bytes (TCP_MSS_DEFAULT).
const FIRST_RCV_MSS: u32 = 536;
/// The smallest estimate of `rcv_mss`, in bytes (TCP_MIN_MSS).
const MIN_RCV_MSS: u32 = 88;
