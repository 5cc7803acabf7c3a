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
    pub(super) fn arm(&mut self, now: Instant, progress: bool) {
        self.selective.probe.progressed = false;
        let allowed = self.selective.probe.allowed && self.selective.enabled;
        if !allowed || self.is_disordered() {
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
        let rto = self.rtt.rto();
        let deadline = match self.sender.first_sent_at() {
            Some(sent_at) if !progress => self.sooner_of(self.rtt.after(wait, now), rto, sent_at, now),
            _ => self.rtt.after(wait.min(rto), now),
        };
        self.selective.probe.pending = Pending::Probe;
        self.timers.set(TimerKind::Retransmit, deadline);
    }

    /// The `probe`, or the timeout after `rto` of what was sent at `sent_at`, if that is to come and sooner.
    #[inline]
    fn sooner_of(&self, probe: Instant, rto: Duration, sent_at: Instant, now: Instant) -> Instant {
        if self.rtt.is_never_early() && probe <= sent_at.saturating_add(rto) {
            return probe;
        }
        let retransmission = self.rtt.after(rto, sent_at);
        if retransmission > now { probe.min(retransmission) } else { probe }
    }

    /// When the retransmission timer fires that starts now; where it ran for something else meanwhile, an RTO after the first
    /// segment was sent (tcp_rearm_rto).
    pub(super) fn deadline_of_first(&self, now: Instant) -> Instant {
        if self.selective.probe.pending == Pending::Retransmission {
            return self.rtt.deadline(now);
        }
        let sent_at = self.sender.first_sent_at().unwrap_or(now);
        self.rtt.after(self.rtt.rto(), sent_at).max(self.rtt.after(SOON, now))
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
/// A jiffy.
const SOON: Duration = Duration::from_millis(1);
