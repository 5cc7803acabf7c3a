//! Settling: from which second on a flow delivers what it offers. The messages of the flow are due on a
//! clock.
//!
//! A transport that starts slowly holds messages back, and may deliver them all at once afterwards. Neither a
//! mean rate nor a count of losses shows this, so the bits that are offered and delivered are compared second
//! by second. The first second begins when the first message of the window is due. The last second counts if
//! it is whole.

use core::ops::Range;

use talkpath_units::{Bytes, Duration, Instant};

use crate::summary::Settling;

const SECOND_NS: u64 = Duration::from_secs(1).as_nanos();

/// The most seconds that are compared. No run lasts longer than a million seconds (11.6 days), but the times
/// of a capture whose clock was set may be years apart.
const MOST_SECONDS: usize = 1_000_000;

/// The bits that were offered and delivered in each whole second.
#[derive(Clone, Debug, PartialEq)]
pub struct Seconds {
    window: Range<Instant>,
    /// The beginning of the first second. `None` before the first message.
    start: Option<Instant>,
    /// The bits of each second, as far as there were any.
    offered: Vec<u64>,
    delivered: Vec<u64>,
}

/// The bits of one second.
#[derive(Clone, Copy)]
struct Second {
    offered: u64,
    delivered: u64,
}

impl Seconds {
    /// Makes the counters for the messages that are due within `window`.
    pub fn new(window: Range<Instant>) -> Self {
        Self { window, start: None, offered: Vec::new(), delivered: Vec::new() }
    }

    /// Begins the first second at the earliest of `due_times` in the window. Does nothing if it has begun
    /// before, or if more than a million seconds follow.
    pub fn begin(&mut self, due_times: impl Iterator<Item = Instant>) {
        if self.start.is_none() {
            let first = due_times.filter(|due| self.window.contains(due)).min();
            let end = self.window.end;
            self.start = first.filter(|first| whole_seconds(&(*first..end)) <= MOST_SECONDS);
        }
    }

    /// Counts a message that was due.
    #[inline(always)]
    pub fn offer(&mut self, due: Instant, size: Bytes) {
        if let Some(start) = self.start {
            add_bits(&mut self.offered, start..self.window.end, due, size);
        }
    }

    /// Counts `bytes` that the far application received at `at`.
    #[inline(always)]
    pub fn deliver(&mut self, at: Instant, bytes: Bytes) {
        if let Some(start) = self.start {
            add_bits(&mut self.delivered, start..self.window.end, at, bytes);
        }
    }

    /// Compares the delivered bits with the offered bits. Returns `None` if there is no whole second, or if
    /// there are more than a million.
    pub fn settling(&self) -> Option<Settling> {
        let seconds = self.seconds();
        let last = seconds.len().checked_sub(1)?;
        let peak_bps = seconds.iter().map(|second| second.delivered).max()?;
        let settled_after_s = match seconds.iter().rposition(|second| second.is_more_than_a_tenth_off()) {
            None => Some(0),
            Some(index) if index == last => None,
            Some(index) => Some(index as u64 + 1),
        };
        Some(Settling {
            settled_after_s,
            peak_bps,
            peak_at_s: seconds.iter().position(|second| second.delivered == peak_bps)? as u64,
            seconds_above: seconds.iter().filter(|second| second.is_above()).count() as u64,
            seconds_below: seconds.iter().filter(|second| second.is_below()).count() as u64,
        })
    }

    /// Returns the whole seconds of the window.
    fn seconds(&self) -> Vec<Second> {
        let Some(start) = self.start else { return Vec::new() };
        let bits = |bits: &[u64], index: usize| bits.get(index).copied().unwrap_or(0);
        (0..whole_seconds(&(start..self.window.end)))
            .map(|index| Second {
                offered: bits(&self.offered, index),
                delivered: bits(&self.delivered, index),
            })
            .collect()
    }
}

impl Second {
    const fn is_more_than_a_tenth_off(self) -> bool {
        self.delivered.abs_diff(self.offered) * 10 > self.offered
    }

    /// Returns whether more than 11/10 of the offered bits were delivered.
    const fn is_above(self) -> bool {
        self.delivered * 10 > self.offered * 11
    }

    /// Returns whether less than 9/10 of the offered bits were delivered.
    const fn is_below(self) -> bool {
        self.delivered * 10 < self.offered * 9
    }
}

/// Adds the bits of a message to the second in which `at` lies. `range` is the time of all seconds.
#[inline(always)]
fn add_bits(bits_of_second: &mut Vec<u64>, range: Range<Instant>, at: Instant, bytes: Bytes) {
    let Some(index) = second_of(at, range.start) else { return };
    match bits_of_second.get_mut(index) {
        Some(bits) => *bits += bytes.get() * 8,
        None if index < whole_seconds(&range) => add_first_bits(bits_of_second, index, bytes),
        // The last second is not whole.
        None => {}
    }
}

#[cold]
fn add_first_bits(bits_of_second: &mut Vec<u64>, index: usize, bytes: Bytes) {
    bits_of_second.resize(index + 1, 0);
    bits_of_second[index] = bytes.get() * 8;
}

/// Returns the number of whole seconds in `range`.
fn whole_seconds(range: &Range<Instant>) -> usize {
    usize::try_from(range.end.since(range.start).as_nanos() / SECOND_NS).unwrap_or(usize::MAX)
}

/// Returns the index of the second in which `at` lies. Returns `None` if `at` is before `start`.
#[inline]
fn second_of(at: Instant, start: Instant) -> Option<usize> {
    let nanos = at.as_nanos().checked_sub(start.as_nanos())?;
    usize::try_from(nanos / SECOND_NS).ok()
}

#[cfg(test)]
mod tests {

    use crate::FlowRecord;
    use crate::testing::{flow, ms};

    /// 50 messages a second; those of the first second come 1.5 s late, in a rush with those of 1.5 to 2 s.
    fn held_back() -> FlowRecord {
        let delay = |n: u64| if n < 50 { 1500 } else { 30 };
        flow(&(0..250).map(|n| Some(delay(n))).collect::<Vec<_>>())
    }

    #[test]
    fn a_flow_has_settled_when_no_second_is_a_tenth_off_any_more() {
        let settling = held_back().settling(&(ms(0)..ms(5000))).expect("five seconds");
        // Second 0 has nothing, second 1 the 49 to 50 of its own and 25 of the first, second 2 the other 25
        // besides.
        assert_eq!(settling.settled_after_s, Some(3));
        assert_eq!((settling.seconds_below, settling.seconds_above), (1, 2));
        assert_eq!((settling.peak_bps, settling.peak_at_s), (75 * 1280, 2));
    }

    #[test]
    fn a_flow_that_delivers_as_it_offers_has_settled_at_once() {
        let settling = flow(&[Some(30); 250]).settling(&(ms(0)..ms(5000))).expect("five seconds");
        assert_eq!(
            (settling.settled_after_s, settling.seconds_below, settling.seconds_above),
            (Some(0), 0, 0)
        );
    }

    #[test]
    fn a_flow_that_is_off_in_its_last_second_has_not_settled() {
        let delays: Vec<_> = (0..250).map(|n| (n < 225).then_some(0)).collect();
        assert_eq!(flow(&delays).settling(&(ms(0)..ms(5000))).and_then(|found| found.settled_after_s), None);
    }

    /// The same flow after a warm-up of two seconds: its first second has the 25 messages that came late
    /// besides.
    #[test]
    fn messages_that_were_due_during_the_warm_up_do_not_count() {
        let settling = held_back().settling(&(ms(2000)..ms(5000))).expect("three seconds");
        assert_eq!(settling.settled_after_s, Some(1));
        assert_eq!((settling.seconds_below, settling.seconds_above), (0, 1));
        assert_eq!((settling.peak_bps, settling.peak_at_s), (75 * 1280, 0));
    }

    #[test]
    fn without_a_clock_or_a_whole_second_there_is_no_settling() {
        let mut greedy = held_back();
        greedy.info.clocked = false;
        assert_eq!(greedy.settling(&(ms(0)..ms(5000))), None);
        assert_eq!(held_back().settling(&(ms(0)..ms(900))), None);
    }

    #[test]
    fn seconds_of_years_are_not_compared() {
        assert!(held_back().settling(&(ms(0)..ms(1_000_000_000))).is_some());
        assert_eq!(held_back().settling(&(ms(0)..talkpath_units::Instant::MAX)), None);
    }
}
