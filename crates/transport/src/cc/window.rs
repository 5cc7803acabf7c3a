//! `cwnd` and `ssthresh` as RFC 5681 moves them: slow start, congestion avoidance, the two reductions, idle
//! restart.
//!
//! What all window-based controllers share is here; an algorithm's own part is in its file. Amounts are
//! counted in one unit: bytes as in the RFCs, or packets as in Linux. `smss` is one segment in that unit.

use talkpath_config::Growth;
use talkpath_units::{Bytes, Duration, Packets};

use super::{Ack, Allowance};

/// The unit of a window, and the rules that come with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Payload bytes, RFC 5681 to the letter: an ACK opens slow start's window by at most one SMSS, and
    /// `ssthresh` comes from the flight size.
    Bytes {
        /// Sender maximum segment size: payload bytes of a full segment.
        smss: u32,
    },
    /// Packets of whatever size, Linux's custom: an ACK opens slow start's window by all that it acknowledges
    /// (tcp_slow_start), and `ssthresh` comes from `cwnd` (tcp_reno_ssthresh).
    Packets,
}

/// Congestion window (`cwnd`) and slow start threshold (`ssthresh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    counting: Counting,
    growth: Growth,
    cwnd: u64,
    ssthresh: u64,
    /// An unused window falls no lower than this, if it was larger (the restart window of RFC 5681 §4.1).
    unused_floor: u64,
    /// True if an unused window decays as in Linux (RFC 2861). If false, only idle time lowers it, at once.
    decays: bool,
    /// Acknowledged in congestion avoidance since `cwnd` last grew.
    acked: u64,
}

impl Window {
    /// A window of `initial` full segments; slow start ends at `ssthresh` segments, if ever.
    pub const fn new(counting: Counting, initial: Packets, ssthresh: Option<Packets>) -> Self {
        let cwnd = counting.at_least_one(initial);
        let ssthresh = match ssthresh {
            Some(segments) => segments.get().saturating_mul(counting.smss()),
            None => u64::MAX,
        };
        let growth = Growth::Counted;
        Self { counting, growth, cwnd, ssthresh, unused_floor: cwnd, decays: false, acked: 0 }
    }

    /// The same, opened in congestion avoidance by `growth`; counting packets it makes no difference.
    #[must_use]
    pub const fn with_growth(self, growth: Growth) -> Self {
        Self { growth, ..self }
    }

    /// The same on a host whose unused window decays down to `floor` full segments. Linux's floor is the
    /// configured initial window, also if lost SYNs left a smaller one (tcp_init_cwnd).
    #[must_use]
    pub const fn with_decay(self, floor: Packets) -> Self {
        Self { unused_floor: self.counting.at_least_one(floor), decays: true, ..self }
    }

    /// True if an unused window decays.
    #[inline]
    pub const fn decays(&self) -> bool {
        self.decays
    }

    /// How this window counts.
    pub const fn counting(&self) -> Counting {
        self.counting
    }

    /// `cwnd`, in the window's unit.
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// `cwnd` in full segments.
    #[inline]
    pub fn cwnd_packets(&self) -> f64 {
        // A window is smaller than 2^63, which converts in one step.
        let cwnd = self.cwnd.cast_signed() as f64;
        match self.counting {
            Counting::Bytes { smss } => cwnd / f64::from(smss),
            Counting::Packets => cwnd,
        }
    }

    /// `cwnd` in whole full segments.
    #[inline]
    pub const fn whole_packets(&self) -> u64 {
        self.counting.whole_packets(self.cwnd)
    }

    /// `ssthresh` in whole full segments; near [`u64::MAX`] before the first loss.
    #[inline]
    pub const fn whole_ssthresh(&self) -> u64 {
        self.counting.whole_packets(self.ssthresh)
    }

    /// `ssthresh`, in the window's unit; [`u64::MAX`] before the first loss.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Recovery sets `cwnd`, to at least one segment.
    pub fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(self.counting.smss());
    }

    /// An algorithm sets `ssthresh`. What was acknowledged before no longer counts towards growth.
    pub const fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh;
        self.acked = 0;
    }

    /// `ssthresh` in full segments; infinite before the first loss.
    #[inline]
    pub fn ssthresh_packets(&self) -> f64 {
        if self.ssthresh == u64::MAX {
            f64::INFINITY
        } else {
            self.ssthresh as f64 / self.counting.smss() as f64
        }
    }

    /// True while `cwnd` grows exponentially. RFC 5681 §3.1 leaves equality open; Linux (tcp_in_slow_start)
    /// counts it as congestion avoidance, and so do we.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
            || matches!((self.growth, self.counting), (Growth::Bsd, Counting::Bytes { .. }))
                && self.cwnd == self.ssthresh
    }

    /// What may be in flight.
    #[inline]
    pub const fn allowance(&self) -> Allowance {
        match self.counting {
            Counting::Bytes { .. } => Allowance::Window(Bytes::new(self.cwnd)),
            Counting::Packets => Allowance::WindowPackets(Packets::new(self.cwnd)),
        }
    }

    /// Grows by what RFC 5681 §3.1 grants for `ack`; not at all unless the window was what held the sender
    /// back (tcp_is_cwnd_limited; RFC 7661 §4.3 in spirit).
    pub fn grow(&mut self, ack: Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if self.in_slow_start() {
            acked = self.slow_start(acked);
        }
        if acked > 0 {
            self.avoid_congestion(acked);
        }
    }

    /// RFC 5681 §3.1 eq. 2. Returns what was acknowledged beyond the threshold: it counts for congestion
    /// avoidance.
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        match self.counting {
            Counting::Bytes { smss } => {
                let smss = u64::from(smss);
                // 4.3BSD-Reno's tcp_input adds a segment for each acknowledgement, however little it is for.
                let step = if self.growth == Growth::Bsd { smss } else { acked.min(smss) };
                self.cwnd = self.cwnd.saturating_add(step);
                0
            }
            Counting::Packets => {
                let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
                let left = acked - (grown - self.cwnd);
                self.cwnd = grown;
                left
            }
        }
    }

    /// RFC 5681 §3.1: one SMSS each time that a whole `cwnd` was acknowledged, or by [`Growth`].
    fn avoid_congestion(&mut self, acked: u64) {
        if self.growth != Growth::Counted
            && let Counting::Bytes { smss } = self.counting
        {
            let smss = u64::from(smss);
            let eighth = if self.growth == Growth::Bsd { smss / 8 } else { 0 };
            let step = (smss * smss / self.cwnd.max(1) + eighth).max(1);
            self.cwnd = self.cwnd.saturating_add(step);
            return;
        }
        self.acked = self.acked.saturating_add(acked);
        if self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd = self.cwnd.saturating_add(self.counting.smss());
        }
    }

    /// One segment for each `interval` acknowledged, in a window that counts packets (tcp_cong_avoid_ai).
    pub(super) fn grow_each(&mut self, interval: u64, acked: u64) {
        let interval = interval.max(1);
        if self.acked >= interval {
            self.acked = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.acked += acked;
        if self.acked >= interval {
            self.cwnd = self.cwnd.saturating_add(self.acked / interval);
            self.acked %= interval;
        }
    }

    /// RFC 5681 §3.1 eq. 4: `ssthresh` is half of what was in flight, and at least two segments.
    pub fn halve(&mut self, flight_size: u64) {
        let base = match self.counting {
            Counting::Bytes { .. } => flight_size,
            Counting::Packets => self.cwnd,
        };
        self.ssthresh = (base / 2).max(2 * self.counting.smss());
        self.acked = 0;
    }

    /// RFC 5681 §3.2 step 3: `ssthresh` and the three segments that have left the network.
    pub const fn inflate_for_recovery(&mut self) {
        self.cwnd = self.ssthresh.saturating_add(3 * self.counting.smss());
    }

    /// RFC 5681 §3.2 step 4: one more segment has left the network.
    pub const fn inflate(&mut self) {
        self.cwnd = self.cwnd.saturating_add(self.counting.smss());
    }

    /// RFC 6582 §3.2 step 3, partial acknowledgement: less what was acknowledged, and one SMSS back if that
    /// was at least one.
    pub fn deflate_partially(&mut self, acked: u64) {
        let smss = self.counting.smss();
        self.cwnd = self.cwnd.saturating_sub(acked);
        if acked >= smss {
            self.cwnd = self.cwnd.saturating_add(smss);
        }
        self.cwnd = self.cwnd.max(smss);
    }

    /// RFC 5681 §3.2 step 6: back to `ssthresh`.
    pub const fn deflate(&mut self) {
        self.cwnd = self.ssthresh;
    }

    /// The acknowledgement that ended a recovery: if each acknowledgement opens the window, this one does too
    /// (BSD's tcp_input).
    pub fn grow_after_recovery(&mut self, ack: Ack) {
        if self.growth != Growth::Counted {
            self.grow(ack);
        }
    }

    /// RFC 6582 §3.2 step 3, full acknowledgement, choice 1: at most what is in flight and one SMSS, so that
    /// no burst follows.
    pub fn deflate_without_burst(&mut self, flight_size: u64) {
        let smss = self.counting.smss();
        self.cwnd = self.ssthresh.min(flight_size.max(smss).saturating_add(smss));
    }

    /// RFC 5681 §3.1: the loss window is one segment.
    pub const fn collapse(&mut self) {
        self.cwnd = self.counting.smss();
        self.acked = 0;
    }

    /// RFC 5681 §4.1: the restart window is the initial window, or `cwnd` if smaller. A window that decays is
    /// halved for each `rto` of `idle` time down to there (tcp_cwnd_restart; RFC 2861 §3.1), and `ssthresh`
    /// remembers what the window was.
    pub fn restart(&mut self, idle: Duration, rto: Duration) {
        let restart = self.cwnd.min(self.unused_floor);
        if !self.decays {
            self.cwnd = restart;
            return;
        }
        self.ssthresh = self.remembered_ssthresh();
        let halvings = idle.as_nanos().saturating_sub(1) / rto.as_nanos().max(1);
        self.cwnd = (self.cwnd >> halvings.min(63)).max(restart);
    }

    /// RFC 2861 §3.1: three quarters of what the window was, if that is more (tcp_current_ssthresh).
    pub fn remembered_ssthresh(&self) -> u64 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }

    /// RFC 2861 §3.2: for an RTO at most `used` was in flight, and a window that decays falls halfway to that
    /// (tcp_cwnd_application_limited).
    pub fn decay(&mut self, used: u64) {
        let used = used.max(self.unused_floor);
        if used < self.cwnd {
            self.ssthresh = self.remembered_ssthresh();
            self.cwnd = u64::midpoint(self.cwnd, used);
        }
    }
}

impl Counting {
    /// One full segment in this unit.
    pub const fn smss(self) -> u64 {
        match self {
            Self::Bytes { smss } => smss as u64,
            Self::Packets => 1,
        }
    }

    /// This many full segments in this unit, but no fewer than one: a window of none would send nothing.
    const fn at_least_one(self, segments: Packets) -> u64 {
        let amount = segments.get().saturating_mul(self.smss());
        if amount == 0 { self.smss() } else { amount }
    }

    /// How many whole full segments an `amount` in this unit is.
    #[inline]
    const fn whole_packets(self, amount: u64) -> u64 {
        match self {
            Self::Bytes { smss } => amount / smss as u64,
            Self::Packets => amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_secs(1);

    /// A window that began with two packets, and has 40.
    fn grown(begin: Window) -> Window {
        let mut window = begin;
        window.set_cwnd(40);
        window
    }

    /// RFC 5681 §4.1, RFC 2861 §3.1 (tcp_cwnd_restart): the unit of the window does not matter.
    #[test]
    fn idle_time_restarts_a_window_at_once_or_halves_it() {
        let begin = Window::new(Counting::Packets, Packets::new(2), Some(Packets::new(8)));
        let mut rfc = grown(begin);
        rfc.restart(RTO + RTO / 2, RTO);
        assert_eq!((rfc.cwnd(), rfc.ssthresh()), (2, 8));
        let mut linux = grown(begin.with_decay(Packets::new(2)));
        linux.restart(RTO + RTO / 2, RTO);
        assert_eq!((linux.cwnd(), linux.ssthresh()), (20, 30));
        linux.restart(RTO * 100, RTO);
        assert_eq!(linux.cwnd(), 2);
    }

    /// tcp_init_cwnd: the floor of decay is what is configured, and not the segment that lost SYNs left.
    #[test]
    fn a_window_decays_to_the_initial_window_though_it_began_smaller() {
        let begin = Window::new(Counting::Packets, Packets::new(1), None).with_decay(Packets::new(10));
        let mut idle = grown(begin);
        idle.restart(RTO * 100, RTO);
        assert_eq!(idle.cwnd(), 10);
        let mut unused = grown(begin);
        unused.decay(1);
        assert_eq!(unused.cwnd(), 25);
        let mut small = begin;
        small.restart(RTO * 100, RTO);
        small.decay(1);
        assert_eq!(small.cwnd(), 1);
    }
}
