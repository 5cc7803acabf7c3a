//! `cwnd` and `ssthresh` as RFC 5681 moves them: slow start, congestion avoidance, the two reductions, idle
//! restart.
//!
//! ```text
//!   event                           counted in bytes (RFC)             counted in packets (Linux)
//!   ACK while cwnd < ssthresh       cwnd += min(acked, SMSS)           cwnd += acked
//!   ACK while cwnd >= ssthresh      cwnd += SMSS per cwnd acknowledged, in both
//!   loss                            ssthresh = max(flight / 2, 2 SMSS) ssthresh = max(cwnd / 2, 2)
//!   timeout                         cwnd = SMSS                        cwnd = 1
//!   idle for an RTO                 cwnd = min(cwnd, initial window), in both
//! ```
//!
//! All window-based controllers share these rules; an algorithm's own part is in its file. Amounts are in one
//! unit: bytes as in the RFCs, or packets as in Linux. `smss` is one segment in that unit.

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
    /// Packets of any size, as in Linux: an ACK opens slow start's window by all that it acknowledges
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
    /// The lowest value to which a window falls that the sender did not fill (the restart window of RFC 5681
    /// §4.1). A smaller window stays as it is.
    unused_floor: u64,
    /// True if the window falls half way to what the sender used of it, as in Linux (RFC 2861). If false, it
    /// falls to the floor at once, and only after an RTO without any data.
    decays: bool,
    /// The amount that was acknowledged in congestion avoidance since `cwnd` last grew.
    acked: u64,
}

impl Window {
    /// A window of `initial` full segments. Slow start ends at `ssthresh` segments; with `None`, at the first
    /// loss.
    pub const fn new(counting: Counting, initial: Packets, ssthresh: Option<Packets>) -> Self {
        let cwnd = counting.at_least_one(initial);
        let ssthresh = match ssthresh {
            Some(segments) => segments.get().saturating_mul(counting.smss()),
            None => u64::MAX,
        };
        let growth = Growth::Counted;
        Self { counting, growth, cwnd, ssthresh, unused_floor: cwnd, decays: false, acked: 0 }
    }

    /// Returns this window with another rule for the growth of a window that counts bytes.
    #[must_use]
    pub const fn with_growth(self, growth: Growth) -> Self {
        Self { growth, ..self }
    }

    /// Returns this window for a host whose unused window decays, down to `floor` full segments. Linux's
    /// floor is the configured initial window, also if lost SYNs left a smaller initial window
    /// (tcp_init_cwnd).
    #[must_use]
    pub const fn with_decay(self, floor: Packets) -> Self {
        Self { unused_floor: self.counting.at_least_one(floor), decays: true, ..self }
    }

    /// True if an unused window decays.
    #[inline]
    pub const fn decays(&self) -> bool {
        self.decays
    }

    /// The unit of this window.
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
        // A window is smaller than 2^63. A signed number converts to `f64` in one instruction.
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

    /// `ssthresh` in whole full segments. Before the first loss it is larger than any window.
    #[inline]
    pub const fn whole_ssthresh(&self) -> u64 {
        self.counting.whole_packets(self.ssthresh)
    }

    /// `ssthresh`, in the window's unit; [`u64::MAX`] before the first loss.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Sets `cwnd`, to at least one segment.
    pub fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(self.counting.smss());
    }

    /// Sets `ssthresh`. Data that was acknowledged before no longer counts towards growth.
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

    /// True while `cwnd` grows exponentially. RFC 5681 §3.1 leaves open what happens at `cwnd == ssthresh`.
    /// That is congestion avoidance, as in Linux (tcp_in_slow_start), but slow start under [`Growth::Bsd`].
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
            || matches!((self.growth, self.counting), (Growth::Bsd, Counting::Bytes { .. }))
                && self.cwnd == self.ssthresh
    }

    /// Returns how much may be in flight.
    #[inline]
    pub const fn allowance(&self) -> Allowance {
        match self.counting {
            Counting::Bytes { .. } => Allowance::Window(Bytes::new(self.cwnd)),
            Counting::Packets => Allowance::WindowPackets(Packets::new(self.cwnd)),
        }
    }

    /// Grows by what RFC 5681 §3.1 grants for `ack`. The window does not grow unless it limited the sender
    /// (Linux: tcp_is_cwnd_limited; compare RFC 7661 §4.3).
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

    /// Grows as in slow start (RFC 5681 §3.1 eq. 2). Returns the part of `acked` that was left when `cwnd`
    /// reached `ssthresh`. It counts for congestion avoidance.
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        match self.counting {
            Counting::Bytes { smss } => {
                let smss = u64::from(smss);
                // 4.3BSD-Reno's tcp_input adds a segment for each acknowledgement, of however few bytes.
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

    /// Grows as in congestion avoidance (RFC 5681 §3.1): by one SMSS each time that a whole `cwnd` was
    /// acknowledged. With another [`Growth`] each ACK adds SMSS * SMSS / cwnd (eq. 3), and BSD SMSS / 8 more.
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

    /// Grows by one packet for each `interval` of acknowledged packets (Linux: tcp_cong_avoid_ai).
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

    /// Sets `ssthresh` to half of the flight size, and to at least two segments (RFC 5681 §3.1 eq. 4). A
    /// window that counts packets takes half of `cwnd`.
    pub fn halve(&mut self, flight_size: u64) {
        let base = match self.counting {
            Counting::Bytes { .. } => flight_size,
            Counting::Packets => self.cwnd,
        };
        self.ssthresh = (base / 2).max(2 * self.counting.smss());
        self.acked = 0;
    }

    /// Sets `cwnd` to `ssthresh` and the three segments that have left the network (RFC 5681 §3.2 step 3).
    pub const fn inflate_for_recovery(&mut self) {
        self.cwnd = self.ssthresh.saturating_add(3 * self.counting.smss());
    }

    /// Adds a segment to `cwnd`, because one more segment has left the network (RFC 5681 §3.2 step 4).
    pub const fn inflate(&mut self) {
        self.cwnd = self.cwnd.saturating_add(self.counting.smss());
    }

    /// Subtracts from `cwnd` what a partial acknowledgement acknowledged, and adds one SMSS if that amount is
    /// at least one SMSS (RFC 6582 §3.2 step 3).
    pub fn deflate_partially(&mut self, acked: u64) {
        let smss = self.counting.smss();
        self.cwnd = self.cwnd.saturating_sub(acked);
        if acked >= smss {
            self.cwnd = self.cwnd.saturating_add(smss);
        }
        self.cwnd = self.cwnd.max(smss);
    }

    /// Sets `cwnd` to `ssthresh` (RFC 5681 §3.2 step 6).
    pub const fn deflate(&mut self) {
        self.cwnd = self.ssthresh;
    }

    /// Grows by the acknowledgement that ended a recovery, if the rule for growth is that each
    /// acknowledgement opens the window (BSD's tcp_input).
    pub fn grow_after_recovery(&mut self, ack: Ack) {
        if self.growth != Growth::Counted {
            self.grow(ack);
        }
    }

    /// Sets `cwnd` to `ssthresh`, but at most to what is in flight and one SMSS, so that no burst follows a
    /// full acknowledgement (RFC 6582 §3.2 step 3, choice 1).
    pub fn deflate_without_burst(&mut self, flight_size: u64) {
        let smss = self.counting.smss();
        self.cwnd = self.ssthresh.min(flight_size.max(smss).saturating_add(smss));
    }

    /// Sets `cwnd` to the loss window, which is one segment (RFC 5681 §3.1).
    pub const fn collapse(&mut self) {
        self.cwnd = self.counting.smss();
        self.acked = 0;
    }

    /// Lowers `cwnd` after `idle` time to the restart window: the initial window, or `cwnd` if that is
    /// smaller (RFC 5681 §4.1). A window that decays is instead halved for each `rto` of `idle` time, down
    /// to the restart window, and `ssthresh` remembers the old `cwnd` (RFC 2861 §3.1; Linux:
    /// tcp_cwnd_restart).
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

    /// Returns `ssthresh`, or three quarters of `cwnd` if that is more (RFC 2861 §3.1; Linux:
    /// tcp_current_ssthresh).
    pub fn remembered_ssthresh(&self) -> u64 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }

    /// Lowers `cwnd` halfway to `used`, or to the floor if that is larger, because at most `used` was in
    /// flight for an RTO (RFC 2861 §3.2; Linux: tcp_cwnd_application_limited).
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

    /// The size of `segments` full segments, and at least of one: a window of zero would send nothing.
    const fn at_least_one(self, segments: Packets) -> u64 {
        let amount = segments.get().saturating_mul(self.smss());
        if amount == 0 { self.smss() } else { amount }
    }

    /// The number of whole full segments in an `amount`.
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
