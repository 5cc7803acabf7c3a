//! The tail loss probe (RFC 8985 §7), and the one timer that retransmission, probe and reordering share.
//!
//! If the last segments of a flight are lost, no acknowledgement reports it. So a probe leaves two round
//! trips after the last segment: new data, or the last segment again. The far end answers the probe, and its
//! answer reports the loss long before the retransmission timer would expire.

use talkpath_config::{Stack, TcpConfig};
use talkpath_units::Duration;

use super::outcome::{AckOutcome, Dsack};
use super::rack::TIMER_SLACK;
use super::{ArmedBy, Context, Recovery, SentSegment};
use crate::tcp::timers::TimerKind;

/// The state of the probe at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// True if the sender has the tail loss probe (key `tlp`).
    allowed: bool,
    /// The time for which the far end may delay the ACK of a single segment (TLP.max_ack_delay).
    max_ack_delay: Duration,
    state: ProbeState,
    /// True if a round trip was measured since the last probe, or since the connection began.
    measured: bool,
}

#[derive(Clone, Copy, Debug)]
enum ProbeState {
    /// No probe has to leave, and none is in flight.
    Idle,
    /// A probe has to leave with the next poll.
    Due,
    /// A probe has left and is not answered.
    Unanswered {
        /// SND.NXT when the probe had left (TLP.end_seq).
        end: u64,
        /// True if the probe carried data that had been sent before (TLP.is_retrans).
        is_retransmission: bool,
    },
}

impl Probe {
    pub(super) const fn new(config: &TcpConfig) -> Self {
        let max_ack_delay = match config.stack {
            // Linux takes the shortest RTO (tcp_schedule_loss_probe).
            Stack::Linux => config.min_rto,
            Stack::Rfc | Stack::BsdReno => MAX_ACK_DELAY,
        };
        Self { allowed: config.tlp, max_ack_delay, state: ProbeState::Idle, measured: false }
    }

    #[inline]
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.state, ProbeState::Idle)
    }

    /// 1 if the unanswered probe is a retransmission, otherwise 0.
    pub(super) const fn retransmissions(&self) -> u64 {
        matches!(self.state, ProbeState::Unanswered { is_retransmission: true, .. }) as u64
    }

    /// True if a probe whose data ends at `data_end` is unanswered.
    pub(super) const fn is_unanswered_to(&self, data_end: u64) -> bool {
        matches!(self.state, ProbeState::Unanswered { end, .. } if end == data_end)
    }

    pub(super) const fn forget(&mut self) {
        self.state = ProbeState::Idle;
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
        let is_due = matches!(self.probe.state, ProbeState::Due);
        if is_due {
            self.probe.state = ProbeState::Idle;
        }
        is_due
    }

    /// Takes note that a probe has left, and starts the retransmission timer. `end` is SND.NXT after the
    /// probe.
    pub(in crate::tcp) fn on_probe_sent(
        &mut self,
        end: u64,
        is_retransmission: bool,
        context: &mut Context<'_>,
    ) {
        self.probe.state = ProbeState::Unanswered { end, is_retransmission };
        self.probe.measured = false;
        context.timers.set(TimerKind::Retransmission, context.rtt.deadline(context.now));
    }

    /// Restarts the loss timer. If a probe may leave, the timer is the probe's, otherwise the retransmission
    /// timer (Linux: tcp_set_xmit_timer, tcp_schedule_loss_probe).
    pub(in crate::tcp) fn arm_loss_timer(&mut self, by: ArmedBy, context: &mut Context<'_>) {
        let progress = by == ArmedBy::Progress;
        let allowed = self.probe.allowed && self.has_sack();
        if !allowed || self.is_disordered(context.scoreboard) {
            if progress || context.timers.loss_timer() == TimerKind::LossProbe {
                self.restart_retransmission(context);
            }
            return;
        }
        // RFC 8985 §7.2: two round trips. A single segment in flight may wait for the far end's delayed ACK,
        // so it gets that time as well.
        let wait = match context.rtt.srtt() {
            Some(srtt) if context.scoreboard.in_flight_segments() == 1 => {
                srtt + srtt + self.probe.max_ack_delay
            }
            Some(srtt) => srtt + srtt + TIMER_SLACK,
            None => INITIAL_WAIT,
        };
        // A probe is never later than the retransmission timer would be.
        let until_rto = if progress { context.rtt.rto() } else { rest_of_rto(context) };
        let wait = if until_rto.is_zero() { wait } else { wait.min(until_rto) };
        context.timers.set(TimerKind::LossProbe, context.rtt.after(wait, context.now));
    }

    /// The probe's timer has expired. A probe leaves if RFC 8985 §7.3 allows it: no other probe is
    /// unanswered, and a round trip was measured since the last one. Linux does not require the second
    /// condition (tcp_send_loss_probe).
    pub(in crate::tcp) fn on_probe_timeout(&mut self, context: &mut Context<'_>) {
        let is_allowed = self.probe.measured || self.is_linux();
        if self.probe.is_idle() && is_allowed && !context.scoreboard.is_empty() {
            self.probe.state = ProbeState::Due;
        }
        self.restart_retransmission(context);
    }

    /// Starts the retransmission timer. If the slot held a probe's or the reordering timer, the RTO counts
    /// from the time at which the first segment was sent, so that those timers do not delay it (Linux:
    /// tcp_rearm_rto).
    pub(super) fn restart_retransmission(&self, context: &mut Context<'_>) {
        let deadline = if context.timers.loss_timer() == TimerKind::Retransmission {
            context.rtt.deadline(context.now)
        } else {
            context.rtt.after(rest_of_rto(context).max(SOON), context.now)
        };
        context.timers.set(TimerKind::Retransmission, deadline);
    }

    /// Takes note of a retransmission. The first segment in flight gets a whole RTO (Linux:
    /// tcp_xmit_retransmit_queue).
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

    /// Takes note of the answer to a probe (RFC 8985 §7.4.2). If the probe repaired a loss, `cwnd` is
    /// reduced (Linux: tcp_process_tlp_ack). Before the acknowledgement `old_outstanding` bytes were in
    /// flight, and the lost segment was among them.
    pub(super) fn on_probe_ack(
        &mut self,
        outcome: &AckOutcome,
        old_outstanding: u64,
        context: &mut Context<'_>,
    ) {
        let ProbeState::Unanswered { end, is_retransmission } = self.probe.state else { return };
        let ack = outcome.incoming.ack;
        if ack < end {
            return;
        }
        if !is_retransmission || outcome.dsack == Dsack::OfProbe {
            self.probe.forget();
        } else if ack > end {
            self.probe.forget();
            // The loss reduces the window even if an ECN echo has reduced it before
            // (tcp_init_cwnd_reduction).
            self.begin_reduction(context);
            let flight_size = context.congestion.flight_size_of(old_outstanding);
            context.congestion.control_mut().reduce(flight_size);
            if !context.congestion.is_rate_based() {
                context.congestion.lower_to_ssthresh();
            }
        } else if outcome.is_bare_duplicate() && !outcome.has_sacked {
            self.probe.forget();
        }
    }
}

/// The rest of the RTO that began when the first segment was sent. Zero if that RTO is over (Linux:
/// tcp_rto_delta_us). A timer for the rest is rounded up to jiffies once more.
fn rest_of_rto(context: &Context<'_>) -> Duration {
    let rto = context.rtt.rto();
    let first = context.scoreboard.first_sent_at();
    first.map_or(rto, |sent_at| sent_at.saturating_add(rto).since(context.now))
}

/// The time for which the far end may delay an ACK (TLP.max_ack_delay), under the stacks `rfc` and
/// `bsd-reno`. RFC 8985 §7.2 leaves it to the implementation. We chose the longest delay of our receivers'
/// ACKs, which is also Linux's TCP_RTO_MIN.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The time to the first probe, before a round trip is measured (Linux: TCP_TIMEOUT_INIT).
const INITIAL_WAIT: Duration = Duration::from_secs(1);
/// The shortest time for which the retransmission timer is set (Linux: tcp_rearm_rto).
const SOON: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Instant, Seed};

    use super::*;
    use crate::tcp::core::Core;
    use crate::tcp::send::NewSegment;
    use talkpath_config::Role;

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
        recovery.arm_loss_timer(ArmedBy::NewData, &mut context);
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
