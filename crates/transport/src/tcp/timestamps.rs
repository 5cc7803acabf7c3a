//! The timestamps option: whether both ends agreed on it, what it echoes, and what its echo measures
//! (RFC 7323 §3 to §5).

use talkpath_units::{Duration, Instant, SeqNum};

use talkpath_wire::Segment;

/// The state of the option at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamps {
    /// Our SYN carries the option.
    offered: bool,
    /// Both SYNs carried it.
    agreed: bool,
    /// TS.Recent: what our next segment echoes (RFC 7323 §4.3).
    recent: u32,
}

impl Timestamps {
    pub(super) const fn new(offered: bool) -> Self {
        Self { offered, agreed: false, recent: 0 }
    }

    /// The far end's SYN arrived.
    pub(super) fn on_syn(&mut self, syn: &Segment) {
        self.agreed = self.offered && syn.timestamps().is_some();
        self.recent = syn.timestamps().map_or(0, |(value, _)| value);
    }

    /// Bytes that the option and its padding take of each segment (RFC 7323 appendix A).
    pub(super) const fn option_size(&self) -> u32 {
        if self.agreed { 12 } else { 0 }
    }

    /// The option of a segment that leaves now, SYNs excepted.
    #[inline]
    pub(super) fn option(&self, now: Instant) -> Option<(u32, u32)> {
        self.agreed.then(|| (clock(now), self.recent))
    }

    /// The option of a SYN: offered, or the answer to an offer.
    pub(super) fn syn_option(&self, is_answer: bool, now: Instant) -> Option<(u32, u32)> {
        let has = if is_answer { self.agreed } else { self.offered };
        has.then(|| (clock(now), self.recent))
    }

    /// PAWS (RFC 7323 §5.3 R1): true if the timestamp of `segment` is older than TS.Recent.
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

    /// RFC 7323 §4.3: the echo is that of the segment that the next acknowledgement is for. `segment` begins
    /// at `start`, and `acked_to` was acknowledged last.
    #[inline]
    pub(super) fn note(&mut self, segment: &Segment, start: u64, acked_to: u64) {
        if let Some((value, _)) = segment.timestamps()
            && start <= acked_to
            && !SeqNum::new(value).is_before(SeqNum::new(self.recent))
        {
            self.recent = value;
        }
    }

    /// The timestamp that `segment` echoes.
    #[inline]
    pub(super) fn echo(&self, segment: &Segment) -> Option<u32> {
        segment.timestamps().filter(|_| self.agreed).map(|(_, echo)| echo)
    }

    /// The round trip that an echo measures (RFC 7323 §4.1): at least one tick of the clock. An echo from the
    /// future is not ours.
    pub(super) fn rtt_sample(&self, segment: &Segment, now: Instant) -> Option<Duration> {
        let ticks = clock(now).wrapping_sub(self.echo(segment)?);
        (ticks < u32::MAX / 2).then(|| TICK.saturating_mul(u64::from(ticks.max(1))))
    }
}

/// The time since the clock showed `echo`.
pub(super) const fn since(echo: u32, now: Instant) -> Duration {
    let ticks = clock(now).wrapping_sub(echo);
    TICK.saturating_mul(if ticks == 0 { 1 } else { ticks as u64 })
}

/// The timestamp clock: milliseconds, as in Linux (RFC 7323 §5.4 allows 1 ms to 1 s).
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
