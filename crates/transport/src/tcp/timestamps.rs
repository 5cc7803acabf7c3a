//! The timestamps option: whether both ends agreed on it, which timestamp the next segment echoes, and the
//! round trip that an echo measures (RFC 7323 §3 to §5).
//!
//! ```text
//!   our segment:      (value: our clock now, echo: TS.Recent)
//!   far end's answer: (value: its clock,     echo: our value)    round trip = our clock now - echo
//! ```

use talkpath_units::{Duration, Instant, SeqNum};

use talkpath_wire::Segment;

/// The state of the option at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamps {
    /// True if our SYN carries the option.
    offered: bool,
    /// True if both SYNs carried the option.
    agreed: bool,
    /// TS.Recent: the timestamp that our next segment echoes (RFC 7323 §4.3).
    recent: u32,
}

impl Timestamps {
    pub(super) const fn new(offered: bool) -> Self {
        Self { offered, agreed: false, recent: 0 }
    }

    /// Takes the option of the far end's SYN.
    pub(super) fn on_syn(&mut self, syn: &Segment) {
        self.agreed = self.offered && syn.timestamps().is_some();
        self.recent = syn.timestamps().map_or(0, |(value, _)| value);
    }

    /// The number of bytes that the option and its padding take of each segment (RFC 7323 appendix A).
    pub(super) const fn option_size(&self) -> u32 {
        if self.agreed { 12 } else { 0 }
    }

    /// Returns the option of a segment that leaves now and is no SYN: value and echo. `None` if the ends did
    /// not agree on the option.
    #[inline]
    pub(super) fn option(&self, now: Instant) -> Option<(u32, u32)> {
        self.agreed.then(|| (clock(now), self.recent))
    }

    /// Returns the option of a SYN, or of a SYN-ACK if `is_answer` is true.
    pub(super) fn syn_option(&self, is_answer: bool, now: Instant) -> Option<(u32, u32)> {
        let has_option = if is_answer { self.agreed } else { self.offered };
        has_option.then(|| (clock(now), self.recent))
    }

    /// True if the timestamp of `segment` is older than TS.Recent (PAWS, RFC 7323 §5.3 R1).
    #[inline]
    pub(super) fn is_old_duplicate(&self, segment: &Segment) -> bool {
        match segment.timestamps() {
            Some((value, _)) if self.agreed => SeqNum::new(value).is_before(SeqNum::new(self.recent)),
            _ => false,
        }
    }

    /// How much older than TS.Recent the timestamp of `segment` is. Zero without one.
    pub(super) fn age(&self, segment: &Segment) -> Duration {
        let ticks = segment.timestamps().map_or(0, |(value, _)| self.recent.wrapping_sub(value));
        TICK.saturating_mul(u64::from(ticks))
    }

    /// Takes the timestamp of a segment that begins at `start` as TS.Recent, unless the segment lies beyond
    /// `acked_to`, the offset that our last ACK acknowledged (RFC 7323 §4.3). So a delayed ACK echoes the
    /// first segment that it acknowledges, and an ACK for data beyond a gap echoes the segment before the
    /// gap.
    #[inline]
    pub(super) fn note(&mut self, segment: &Segment, start: u64, acked_to: u64) {
        if let Some((value, _)) = segment.timestamps()
            && start <= acked_to
            && !SeqNum::new(value).is_before(SeqNum::new(self.recent))
        {
            self.recent = value;
        }
    }

    /// Returns the timestamp that `segment` echoes. `None` if it has no option, or if the ends did not agree.
    #[inline]
    pub(super) fn echo(&self, segment: &Segment) -> Option<u32> {
        segment.timestamps().filter(|_| self.agreed).map(|(_, echo)| echo)
    }

    /// Returns the round trip that the echo in `segment` measures, at least one tick of the clock (RFC 7323
    /// §4.1). `None` if there is no echo, or if the clock has not read the echoed value yet.
    pub(super) fn rtt_sample(&self, segment: &Segment, now: Instant) -> Option<Duration> {
        let ticks = clock(now).wrapping_sub(self.echo(segment)?);
        (ticks < u32::MAX / 2).then(|| TICK.saturating_mul(u64::from(ticks.max(1))))
    }
}

/// Returns the time since the clock read `echo`, at least one tick.
pub(super) const fn since(echo: u32, now: Instant) -> Duration {
    let ticks = clock(now).wrapping_sub(echo);
    TICK.saturating_mul(if ticks == 0 { 1 } else { ticks as u64 })
}

/// Returns what the timestamp clock reads: milliseconds, as in Linux (RFC 7323 §5.4 allows ticks of 1 ms to
/// 1 s).
pub(super) const fn clock(now: Instant) -> u32 {
    (now.as_nanos() / TICK.as_nanos()) as u32
}

const TICK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7323 §5.4: 1 ms to 1 s, so that 2^32 ticks are longer than any segment lives.
    #[test]
    fn the_timestamp_clock_ticks_each_millisecond() {
        assert_eq!(clock(Instant::from_micros(1_999)), 1);
        assert_eq!(clock(Instant::from_micros(2_000)), 2);
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(clock(Instant::ZERO + day), 86_400_000);
        assert_eq!(
            since(clock(Instant::ZERO + day), Instant::ZERO + day + Duration::from_millis(7)),
            Duration::from_millis(7)
        );
    }
}
