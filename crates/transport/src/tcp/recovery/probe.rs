//! The tail loss probe (RFC 8985 §7), and the one timer that retransmission, probe and reordering share.
//!
//! When the last segments of a flight are lost, no acknowledgement says so. Two round trips after the last
//! segment left, a probe leaves: new data, or the last segment again. The far end's answer says what it has,
//! long before the retransmission timer would expire.

use talkpath_units::Duration;

use super::outcome::AckOutcome;
use super::rack::TIMER_SLACK;
use super::sack::Arrived;
use super::{Context, Recovery, SentSegment};
use crate::tcp::timers::TimerKind;

/// The state of the probe at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    allowed: bool,
    /// A probe has to leave.
    due: bool,
    out: Option<Unanswered>,
    /// A round trip was measured since the connection began, or since the last probe.
    measured: bool,
}

/// A probe that was sent and not answered.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    /// SND.NXT when it left (TLP.end_seq).
    end: u64,
    /// It was sent before (TLP.is_retrans).
    is_retransmission: bool,
}

impl Probe {
    pub(super) const fn new(allowed: bool) -> Self {
        Self { allowed, due: false, out: None, measured: false }
    }

    #[inline]
    pub(super) const fn is_active(&self) -> bool {
        self.due || self.out.is_some()
    }

    /// The number of retransmissions among what is unanswered.
    pub(super) fn retransmissions(&self) -> u64 {
        self.out.map_or(0, |out| u64::from(out.is_retransmission))
    }

    pub(super) const fn forget(&mut self) {
        self.out = None;
        self.due = false;
    }

    /// A round trip was measured.
    #[inline]
    pub(super) const fn on_rtt(&mut self) {
        self.measured = true;
    }
}

impl Recovery {
    /// True, once, if a probe has to leave.
    #[inline]
    pub(in crate::tcp) const fn take_due_probe(&mut self) -> bool {
        core::mem::replace(&mut self.probe.due, false)
    }

    /// The probe left. `end` is SND.NXT after it.
    pub(in crate::tcp) fn on_probe_sent(
        &mut self,
        end: u64,
        is_retransmission: bool,
        context: &mut Context<'_>,
    ) {
        self.probe.out = Some(Unanswered { end, is_retransmission });
        self.probe.measured = false;
        context.timers.set(TimerKind::Retransmission, context.rtt.deadline(context.now));
    }

    /// Restarts the timer after progress, or after new data has left: for a probe if one is allowed
    /// (tcp_set_xmit_timer, tcp_schedule_loss_probe).
    pub(in crate::tcp) fn arm(&mut self, progress: bool, context: &mut Context<'_>) {
        let allowed = self.probe.allowed && self.has_sack();
        if !allowed || self.is_disordered(context.scoreboard) {
            if progress || context.timers.loss_timer() == TimerKind::LossProbe {
                self.restart_retransmission(context);
            }
            return;
        }
        // RFC 8985 §7.2: two round trips, and the far end's delayed acknowledgement if a single segment waits
        // for it.
        let wait = match context.rtt.srtt() {
            Some(srtt) if context.scoreboard.in_flight_segments() == 1 => srtt + srtt + context.rtt.min_rto(),
            Some(srtt) => srtt + srtt + TIMER_SLACK,
            None => INITIAL_WAIT,
        };
        // An RTO that begins now is longer.
        let left = if progress { context.rtt.rto() } else { left_of_rto(context) };
        let wait = if left.is_zero() { wait } else { wait.min(left) };
        context.timers.set(TimerKind::LossProbe, context.rtt.after(wait, context.now));
    }

    /// The probe's time has come. RFC 8985 §7.3: one probe is unanswered at a time, and a round trip is
    /// measured between two, which Linux does not check (tcp_send_loss_probe).
    pub(in crate::tcp) fn on_probe_timeout(&mut self, context: &mut Context<'_>) {
        let may_leave = self.probe.out.is_none() && (self.probe.measured || self.is_linux());
        self.probe.due = may_leave && !context.scoreboard.is_empty();
        self.restart_retransmission(context);
    }

    /// Starts the retransmission timer. If it ran for something else meanwhile, it expires an RTO after the
    /// first segment was sent (tcp_rearm_rto).
    pub(super) fn restart_retransmission(&self, context: &mut Context<'_>) {
        let deadline = if context.timers.loss_timer() == TimerKind::Retransmission {
            context.rtt.deadline(context.now)
        } else {
            context.rtt.after(left_of_rto(context).max(SOON), context.now)
        };
        context.timers.set(TimerKind::Retransmission, deadline);
    }

    /// A lost segment leaves again. If it is the first in flight, it gets a whole timeout
    /// (tcp_xmit_retransmit_queue).
    pub(in crate::tcp) fn on_retransmitted(&mut self, sent: &SentSegment, context: &mut Context<'_>) {
        if !self.has_sack() {
            return;
        }
        self.prr.on_sent(1);
        self.note_retransmission(context);
        let is_first = sent.start() <= context.scoreboard.snd_una();
        if is_first && context.timers.loss_timer() != TimerKind::Reordering {
            context.timers.set(TimerKind::Retransmission, context.rtt.deadline(context.now));
        }
    }

    /// RFC 8985 §7.4.2: the probe is answered. If it repaired a loss, that costs a reduction
    /// (tcp_process_tlp_ack).
    pub(super) fn on_probe_ack(&mut self, arrived: Arrived, outcome: &AckOutcome, context: &mut Context<'_>) {
        let Some(probe) = self.probe.out else { return };
        let ack = arrived.incoming().ack;
        if ack < probe.end {
            return;
        }
        if !probe.is_retransmission || arrived.has_dsack() {
            self.probe.forget();
        } else if ack > probe.end {
            self.probe.forget();
            // A reduction of its own, even after an echo (tcp_init_cwnd_reduction).
            self.begin_reduction(context);
            let flight_size = context.congestion.flight_size(context.scoreboard);
            context.congestion.control_mut().reduce(flight_size);
            if !context.congestion.is_rate_based() {
                context.congestion.lower_to_ssthresh();
            }
        } else if arrived.is_bare_duplicate() && !outcome.has_sacked() {
            self.probe.forget();
        }
    }
}

/// What is left of the RTO that began when the first segment was sent. Zero once that is over
/// (tcp_rto_delta_us). A timer for it is rounded up to jiffies again.
fn left_of_rto(context: &Context<'_>) -> Duration {
    let rto = context.rtt.rto();
    let first = context.scoreboard.first_sent_at();
    first.map_or(rto, |sent_at| sent_at.saturating_add(rto).since(context.now))
}

/// TCP_TIMEOUT_INIT.
const INITIAL_WAIT: Duration = Duration::from_secs(1);
/// tcp_rearm_rto: no timer is set for a time that has passed.
const SOON: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Instant, Seed};

    use super::*;
    use crate::tcp::core::Core;
    use crate::tcp::send::NewSegment;
    use crate::{Role, Stack, TcpConfig};

    const JIFFY: Duration = Duration::from_millis(4);

    /// A sender with a round trip of 10 ms and jiffies of 4 ms, so an RTO of 212 ms, that sent one segment at
    /// 100.5 ms and another one `later`, and arms its timer then.
    fn armed(later: Duration) -> Instant {
        let config = TcpConfig { timer_granularity: JIFFY, ..TcpConfig::preset(Stack::Linux, false) };
        let mut tcp = Core::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        tcp.scoreboard.on_syn_sent();
        tcp.scoreboard.on_established();
        tcp.sender.on_established(1448);
        tcp.sender.on_far_syn(u16::MAX, 7);
        tcp.sender.write(Bytes::new(1608), &tcp.scoreboard);
        tcp.recovery.on_syn(true);
        tcp.rtt.on_sample(Duration::from_millis(10), 0, 0);
        let first = Instant::from_micros(100_500);
        tcp.sender.send_new(NewSegment::forced(160), &mut tcp.scoreboard, first);
        tcp.sender.send_new(NewSegment::forced(1448), &mut tcp.scoreboard, first + later);
        let (recovery, mut context) = tcp.recovery_context(first + later);
        recovery.arm(false, &mut context);
        assert_eq!(
            (tcp.timers.loss_timer(), tcp.rtt.rto()),
            (TimerKind::LossProbe, Duration::from_millis(212))
        );
        tcp.timers.next().expect("it runs")
    }

    /// tcp_schedule_loss_probe: what is left of the RTO is rounded up to jiffies, and the timer counts them
    /// from the present one.
    #[test]
    fn what_is_left_of_the_rto_is_rounded_up_once_more() {
        // In the jiffy that began at 300 ms three jiffies are left, and no timer is early; a moment sooner
        // they are four.
        assert_eq!(armed(Duration::from_millis(200)), Instant::from_millis(300 + 3 * 4 + 4));
        assert_eq!(armed(Duration::from_micros(199_990)), Instant::from_millis(300 + 4 * 4 + 4));
        assert_eq!(armed(Duration::from_micros(200_010)), Instant::from_millis(300 + 3 * 4 + 4));
        // Two round trips and 2 ms come sooner.
        assert_eq!(armed(Duration::from_millis(20)), Instant::from_millis(120 + 6 * 4 + 4));
    }

    /// tcp_rearm_rto: a timeout whose time has passed comes with the next jiffy.
    #[test]
    fn an_rto_that_is_over_is_no_bound_for_a_probe() {
        assert_eq!(armed(Duration::from_millis(400)), Instant::from_millis(500 + 6 * 4 + 4));
    }
}
