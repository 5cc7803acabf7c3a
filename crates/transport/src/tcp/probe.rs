//! The tail loss probe (RFC 8985 §7), and the one timer that retransmission, probe and reordering share in Linux.
//!
//! When the last segments of a flight are lost nothing tells of it. Two round trips after the last sending a probe, new data or
//! the last segment again, makes the far end say what it has, long before the retransmission timer would fire.

use talkpath_units::{Duration, Instant};

use super::connection::Tcp;
use super::selective::TIMER_SLACK;
use super::send::SentSegment;
use super::timer::TimerKind;

/// What the retransmission timer runs for (icsk_pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// RFC 6298.
    Retransmission,
    /// RFC 8985 §7.2.
    Probe,
    /// RFC 8985 §6.2 step 5.
    Reordering,
}

/// The state of the probe at one sender.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    allowed: bool,
    pub(super) pending: Pending,
    /// A probe has to leave.
    pub(super) due: bool,
    /// An acknowledgement has restarted the timer, which waits for what it released: that restarts it too.
    pub(super) progressed: bool,
    /// SND.NXT when the probe left (TLP.end_seq), while it is unanswered, and whether it was sent before.
    out: Option<(u64, bool)>,
}

impl Probe {
    pub(super) const fn new(allowed: bool) -> Self {
        Self { allowed, pending: Pending::Retransmission, due: false, progressed: false, out: None }
    }

    /// The timer would start anew for a probe: whether that can wait until what was released has left.
    #[inline]
    pub(super) const fn progress_later(&mut self) -> bool {
        self.progressed = self.allowed;
        self.allowed
    }

    #[inline]
    pub(super) const fn is_out(&self) -> bool {
        self.out.is_some()
    }

    pub(super) fn end(&self) -> u64 {
        self.out.map_or(u64::MAX, |(end, _)| end)
    }

    /// Retransmissions among what is unanswered.
    pub(super) fn retransmissions(&self) -> u64 {
        self.out.map_or(0, |(_, again)| u64::from(again))
    }

    pub(super) const fn forget(&mut self) {
        self.out = None;
        self.due = false;
    }
}

impl Tcp {
    /// Starts the timer anew after progress, or after new data has left: for a probe where one is allowed
    /// (tcp_set_xmit_timer, tcp_schedule_loss_probe).
    #[inline(never)]
    pub(super) fn arm(&mut self, now: Instant, progress: bool) {
        self.selective.probe.progressed = false;
        let allowed = self.selective.probe.allowed && self.selective.enabled;
        debug_assert!(!self.is_plain || !self.is_disordered(), "what is plain is in order");
        if !allowed || (!self.is_plain && self.is_disordered()) {
            if progress || self.selective.probe.pending == Pending::Probe {
                let deadline = self.deadline_of_first(now);
                self.selective.probe.pending = Pending::Retransmission;
                self.timers.set(TimerKind::Retransmit, deadline);
            }
            return;
        }
        // RFC 8985 §7.2: two round trips, and the far end's delayed acknowledgement where a single segment waits for it.
        let wait = match self.rtt.srtt() {
            Some(srtt) if self.sender.flight_segments() == 1 => srtt + srtt + self.rtt.min_rto(),
            Some(srtt) => srtt + srtt + TIMER_SLACK,
            None => INITIAL_WAIT,
        };
        // An RTO that begins now is longer.
        let left = if progress { self.rtt.rto() } else { self.left_of_rto(now) };
        let wait = if left.is_zero() { wait } else { wait.min(left) };
        self.selective.probe.pending = Pending::Probe;
        self.timers.set(TimerKind::Retransmit, self.rtt.after(wait, now));
    }

    /// What is left of the RTO that began when the first segment was sent; nothing once that is over (tcp_rto_delta_us). A timer for it
    /// is set anew, and rounded up to jiffies once more.
    #[inline]
    fn left_of_rto(&self, now: Instant) -> Duration {
        let rto = self.rtt.rto();
        self.sender.first_sent_at().map_or(rto, |sent_at| sent_at.saturating_add(rto).since(now))
    }

    /// When the retransmission timer fires that starts now; where it ran for something else meanwhile, an RTO after the first
    /// segment was sent (tcp_rearm_rto).
    pub(super) fn deadline_of_first(&self, now: Instant) -> Instant {
        if self.selective.probe.pending == Pending::Retransmission {
            return self.rtt.deadline(now);
        }
        self.rtt.after(self.left_of_rto(now).max(SOON), now)
    }

    /// The probe's time has come (tcp_send_loss_probe): one at a time.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        self.selective.probe.due = !self.selective.probe.is_out() && self.sender.is_waiting();
        let deadline = self.deadline_of_first(now);
        self.selective.probe.pending = Pending::Retransmission;
        self.timers.set(TimerKind::Retransmit, deadline);
    }

    /// RFC 8985 §7.3: new data if the far end's window has room, whatever `cwnd` says; else the last segment again.
    pub(super) fn send_probe(&mut self, now: Instant) -> Option<SentSegment> {
        let new = self.sender.plan_forced();
        let sent = match new {
            Some(payload) => self.sender.send_new(payload, false, false, now),
            None => self.sender.send_last_again(now)?,
        };
        self.selective.probe.out = Some((self.sender.snd_max(), new.is_none()));
        self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        Some(sent)
    }
}

/// TCP_TIMEOUT_INIT.
const INITIAL_WAIT: Duration = Duration::from_secs(1);
/// tcp_rearm_rto: no timer is set for a time that has passed.
const SOON: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Seed};

    use super::*;
    use crate::{Role, Stack, TcpConfig};

    const JIFFY: Duration = Duration::from_millis(4);

    /// A sender with a round trip of 10 ms and jiffies of 4 ms, so an RTO of 212 ms, that sent one segment at 100.5 ms and another one
    /// `later`, and arms its timer then.
    fn armed(later: Duration) -> Instant {
        let config = TcpConfig { timer_granularity: JIFFY, ..TcpConfig::preset(Stack::Linux, false) };
        let mut tcp = Tcp::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        tcp.sender.on_syn_sent();
        tcp.sender.on_established(1448);
        tcp.sender.window.start(u16::MAX, 0, 0, 7);
        tcp.sender.write(1608);
        tcp.selective.enabled = true;
        tcp.rtt.on_sample(Duration::from_millis(10), 0, 0);
        let first = Instant::from_micros(100_500);
        tcp.sender.send_new(160, false, false, first);
        tcp.sender.send_new(1448, false, false, first + later);
        tcp.arm(first + later, false);
        assert_eq!(
            (tcp.selective.probe.pending, tcp.rtt.rto()),
            (Pending::Probe, Duration::from_millis(212))
        );
        tcp.timers.next().expect("it runs")
    }

    /// tcp_schedule_loss_probe: what is left of the RTO is rounded up to jiffies, and the timer counts them from the present one.
    #[test]
    fn what_is_left_of_the_rto_is_rounded_up_once_more() {
        // In the jiffy that began at 300 ms three jiffies are left, and no timer is early; a moment sooner they are four.
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
