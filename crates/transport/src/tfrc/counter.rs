//! The window counter (RFC 4342 §8.1): a clock of quarter round trips that rides in each data packet.
//!
//! ```text
//!   time      ├──R/4──┼──R/4──┼──R/4──┼──R/4──┼──R/4──┤ the receiver takes T(K+4) - T(K) for the round trip,
//!   counter      K       K+1     K+2     K+3     K+4    and losses with a gap over 4 for two events
//! ```

use talkpath_units::{Duration, Instant};

/// How far `to` lies after `from`, modulo 16.
pub const fn steps(from: u8, to: u8) -> u8 {
    to.wrapping_sub(from) & MASK
}

/// The sender's counter.
#[derive(Clone, Debug, Default)]
pub struct WindowCounter {
    /// last_WC.
    last: u8,
    /// last_WC_time; `None` before the first packet.
    since: Option<Instant>,
}

impl WindowCounter {
    /// The value for a data packet that leaves now, the round-trip time being `rtt`.
    pub fn on_send(&mut self, rtt: Duration, now: Instant) -> u8 {
        let since = *self.since.get_or_insert(now);
        let quarters = now.since(since).as_nanos().saturating_mul(4) / rtt.as_nanos().max(1);
        if quarters > 0 {
            // RFC 4342 §8.1: neighbours never differ by more than five, so that they cannot wrap.
            self.advance(quarters.min(5) as u8, now);
        }
        self.last
    }

    /// A packet sent with `counter` was acknowledged: what follows is at least four further.
    pub fn on_acknowledged(&mut self, counter: u8, now: Instant) {
        let ahead = steps(counter, self.last);
        if ahead < 4 {
            self.advance(4 - ahead, now);
        }
    }

    fn advance(&mut self, by: u8, now: Instant) {
        self.last = (self.last + by) & MASK;
        self.since = Some(now);
    }
}

/// The receiver's estimate of the round-trip time from the counters that arrive (RFC 4342 §8.1).
#[derive(Clone, Debug, Default)]
pub struct CounterClock {
    /// T(I) of the last five values: how many steps ago it was, and when; the newest last.
    firsts: Vec<(u8, Instant)>,
    newest: Option<u8>,
    rtt: Option<Duration>,
    /// Whether `rtt` comes from values with less than four steps between them.
    coarse: bool,
}

impl CounterClock {
    /// A data packet newer than all before it arrived with `counter`. Returns how many steps further that is.
    pub fn on_arrival(&mut self, counter: u8, now: Instant) -> u8 {
        let step = self.newest.map_or(0, |newest| steps(newest, counter));
        if self.newest.is_some() && step == 0 {
            return 0;
        }
        self.newest = Some(counter);
        for (age, _) in &mut self.firsts {
            *age = age.saturating_add(step);
        }
        self.firsts.retain(|(age, _)| *age <= 4);
        self.measure(now);
        self.firsts.push((0, now));
        step
    }

    /// The round-trip time, once two values with two to four steps between them were seen.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Takes the round-trip time that the handshake measured, if there is none yet.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt.get_or_insert(rtt);
    }

    /// RFC 4342 §8.1: (T(K + D) - T(K)) 4 / D, D = 4 preferred. Smoothed as the sender's own estimate is
    /// (RFC 5348 §4.3).
    fn measure(&mut self, now: Instant) {
        // Oldest first, so that 4 comes before 3 and 2. The coarser ones serve only while there is nothing
        // better.
        let Some(&(age, first)) = self.firsts.iter().find(|(age, _)| *age >= 2) else { return };
        let sample = now.since(first).saturating_mul(4) / u64::from(age);
        match self.rtt {
            Some(_) if age < 4 => {}
            Some(rtt) if !self.coarse => self.rtt = Some(rtt.saturating_mul(9).saturating_add(sample) / 10),
            _ => (self.rtt, self.coarse) = (Some(sample), age < 4),
        }
    }
}

/// WCTRMAX - 1.
const MASK: u8 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4342 §8.1: one step a quarter round trip, five at the most, and the time counts from the step.
    #[test]
    fn the_counter_steps_each_quarter_round_trip_and_five_at_most() {
        let (mut counter, rtt) = (WindowCounter::default(), Duration::from_millis(100));
        let at = |ms: u64| Instant::from_millis(1000 + ms);
        assert_eq!(counter.on_send(rtt, at(0)), 0);
        assert_eq!(counter.on_send(rtt, at(24)), 0);
        assert_eq!(counter.on_send(rtt, at(30)), 1);
        assert_eq!(counter.on_send(rtt, at(54)), 1, "25 ms from 30 ms on");
        assert_eq!(counter.on_send(rtt, at(55)), 2);
        assert_eq!(counter.on_send(rtt, at(900)), 7);
        assert_eq!(counter.on_send(rtt, at(5000)), 12);
        assert_eq!(counter.on_send(rtt, at(9000)), 1, "modulo 16");
    }

    #[test]
    fn an_acknowledgement_moves_the_counter_four_past_what_it_acknowledges() {
        let (mut counter, rtt) = (WindowCounter::default(), Duration::from_millis(400));
        let now = Instant::from_millis(10);
        assert_eq!(counter.on_send(rtt, now), 0);
        counter.on_acknowledged(0, now);
        assert_eq!(counter.on_send(rtt, now), 4);
        counter.on_acknowledged(0, now);
        assert_eq!(counter.on_send(rtt, now), 4, "far enough already");
        counter.on_acknowledged(2, now);
        assert_eq!(counter.on_send(rtt, now), 6);
    }

    /// RFC 4342 §8.1's picture: K-1 K-1 K K K+1 K+3 K+4 K+3 K+4, at T1 to T9; T7 - T3 is the round trip. The
    /// late K+3 at T8 is not newer than what came before it, so the clock does not take it.
    #[test]
    fn the_receiver_reads_the_round_trip_from_first_arrivals_four_steps_apart() {
        let mut clock = CounterClock::default();
        let k = 14;
        let arrivals = [(60, -1), (100, -1), (140, 0), (160, 0), (210, 1), (340, 3), (380, 4)];
        for (ms, offset) in arrivals {
            clock.on_arrival((k + offset) as u8 & 15, Instant::from_millis(ms));
            if ms == 340 {
                // K-1 to K+3 is four steps too: 340 - 60.
                assert_eq!(clock.rtt(), Some(Duration::from_millis(280)));
            }
        }
        // T7 - T3 = 240 ms, a tenth of the mean.
        assert_eq!(clock.rtt(), Some(Duration::from_millis(276)));
    }

    #[test]
    fn steps_of_five_say_nothing_about_the_round_trip() {
        let mut clock = CounterClock::default();
        for n in 0..10_u64 {
            clock.on_arrival((n * 5) as u8 & 15, Instant::from_millis(n * 700));
        }
        assert_eq!(clock.rtt(), None);
    }
}
