//! Linux's own part of the policy (tcp_input.c, tcp_output.c): how many acknowledgements leave at once, how long one waits, and
//! how large a full segment is taken to be.

use talkpath_units::{Duration, Instant};

use super::{AckContext, AckPolicy};
use crate::tcp::rtt::{JIFFY, on_wheel};
use crate::tcp::timer::{TimerKind, Timers};

/// Linux: inet_connection_sock's icsk_ack.
#[derive(Clone, Debug, Default)]
pub(super) struct LinuxState {
    /// Acknowledgements still to be sent at once.
    pub(super) quick: u64,
    pub(super) ping_pong: bool,
    /// The ACK timeout; zero before the first data.
    pub(super) ato: Duration,
    pub(super) last_received: Instant,
    pub(super) last_segment: u32,
    /// Small or pushed segments since the last acknowledgement: none, one, more.
    pub(super) pushed: Pushed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pushed {
    #[default]
    None,
    Once,
    Again,
}

impl AckPolicy {
    /// __tcp_ack_snd_check, then tcp_send_delayed_ack.
    #[inline(always)]
    pub(super) fn check_linux(&mut self, context: &AckContext, timers: &mut Timers) -> bool {
        let more_than_one = context.rcv_nxt - self.acked_to > u64::from(self.rcv_mss);
        if more_than_one && (context.unread == 0 || context.selectable >= self.window_sent) {
            return true;
        }
        if self.linux.quick > 0 && !self.linux.ping_pong {
            return true;
        }
        self.delay_linux(context, timers)
    }

    #[inline(always)]
    pub(super) fn delay_linux(&self, context: &AckContext, timers: &mut Timers) -> bool {
        let mut ato = self.linux.ato;
        if ato > DELACK_MIN {
            let interactive = self.linux.ping_pong || self.linux.pushed != Pushed::None;
            let mut longest = if interactive { DELACK_MAX } else { DELACK_MAX_ONE_WAY };
            if let Some(srtt) = context.srtt {
                longest = longest.min(srtt.max(DELACK_MIN));
            }
            ato = ato.min(longest);
        }
        ato = ato.min(DELACK_MAX);
        let tick = self.tick.as_nanos();
        let mut deadline = match tick {
            0 => context.now.saturating_add(ato),
            tick => self.clock.when(on_wheel(ato, self.clock.read(context.now), tick)),
        };
        if let Some(running) = timers.deadline(TimerKind::DelayedAck) {
            // The wheel adds a jiffy to what the timer was set for.
            let soon = context.now.saturating_add(ato / 4 + self.tick);
            if running <= soon {
                return true;
            }
            deadline = deadline.min(running);
        }
        timers.set(TimerKind::DelayedAck, deadline);
        false
    }

    /// tcp_cleanup_rbuf.
    pub(super) fn read_acknowledges_linux(&self, context: &AckContext) -> bool {
        if self.scheduled {
            let more_than_one = context.rcv_nxt - self.acked_to > u64::from(self.rcv_mss);
            let one_way = match self.linux.pushed {
                Pushed::None => false,
                Pushed::Once => !self.linux.ping_pong,
                Pushed::Again => true,
            };
            if more_than_one || (one_way && context.unread == 0) {
                return true;
            }
        }
        2 * context.offered <= context.buffer
            && context.selectable > 0
            && context.selectable >= 2 * context.offered
    }

    /// tcp_incr_quickack.
    pub(super) fn quicken(&mut self, context: &AckContext) {
        let segments = context.offered / (2 * u64::from(self.rcv_mss.max(1)));
        let quick = if segments == 0 { 2 } else { segments.min(MAX_QUICKACKS) };
        self.linux.quick = self.linux.quick.max(quick);
    }

    /// tcp_event_data_recv.
    #[inline(always)]
    pub(super) fn adapt_ato(&mut self, context: &AckContext) {
        // A gap in jiffies is less than a jiffy longer than the time that has passed.
        let passed = context.now.since(self.linux.last_received);
        if passed + self.tick <= ATO_MIN / 2 && !self.linux.ato.is_zero() {
            self.linux.last_received = context.now;
            self.linux.ato = self.linux.ato / 2 + ATO_MIN / 2;
            return;
        }
        let gap = self.since_received(context.now);
        self.linux.last_received = context.now;
        if self.linux.ato.is_zero() {
            self.quicken(context);
            self.linux.ato = ATO_MIN;
        } else if gap <= ATO_MIN / 2 {
            self.linux.ato = self.linux.ato / 2 + ATO_MIN / 2;
        } else if gap < self.linux.ato {
            self.linux.ato = (self.linux.ato / 2 + gap).min(context.rto);
        } else if gap > context.rto {
            self.quicken(context);
        }
    }

    /// The time since data last came, by a clock that counts jiffies.
    #[inline(always)]
    pub(super) fn since_received(&self, now: Instant) -> Duration {
        let read = |at: Instant| self.clock.read(at).as_nanos();
        let (now, then) = (read(now), read(self.linux.last_received));
        match self.tick.as_nanos() {
            0 => Duration::from_nanos(now.saturating_sub(then)),
            JIFFY => Duration::from_nanos((now / JIFFY).saturating_sub(then / JIFFY) * JIFFY),
            tick => Duration::from_nanos((now / tick).saturating_sub(then / tick) * tick),
        }
    }

    /// tcp_measure_rcv_mss: the largest segment counts as full; a smaller one does where two in a row are equal and
    /// it is not the end of a write.
    #[inline(always)]
    pub(super) fn measure_rcv_mss(&mut self, payload: u32, pushed: bool) {
        let last = core::mem::take(&mut self.linux.last_segment);
        if payload >= self.rcv_mss {
            if payload == self.rcv_mss && !pushed {
                return;
            }
            self.rcv_mss = payload.min(self.full_segment.max(LINUX_MIN_RCV_MSS));
            if pushed && self.linux.pushed == Pushed::None {
                self.linux.pushed = Pushed::Once;
            }
            return;
        }
        if payload >= LINUX_FIRST_RCV_MSS || (payload >= LINUX_MIN_RCV_MSS && !pushed) {
            self.linux.last_segment = payload;
            if payload == last {
                self.rcv_mss = payload;
                return;
            }
        }
        self.linux.pushed = if self.linux.pushed == Pushed::None { Pushed::Once } else { Pushed::Again };
    }
}

/// TCP_MAX_QUICKACKS.
const MAX_QUICKACKS: u64 = 16;
/// TCP_ATO_MIN = HZ / 25.
pub(super) const ATO_MIN: Duration = Duration::from_millis(40);
/// TCP_DELACK_MIN = HZ / 25.
const DELACK_MIN: Duration = Duration::from_millis(40);
/// TCP_DELACK_MAX = HZ / 5.
const DELACK_MAX: Duration = Duration::from_millis(200);
/// HZ / 2 in tcp_send_delayed_ack.
const DELACK_MAX_ONE_WAY: Duration = Duration::from_millis(500);
/// TCP_MSS_DEFAULT.
pub(super) const LINUX_FIRST_RCV_MSS: u32 = 536;
/// TCP_MIN_MSS.
pub(super) const LINUX_MIN_RCV_MSS: u32 = 88;
