//! Settling: when a clocked flow begins to deliver, second by second, what it offers.
//!
//! A transport that starts slowly holds messages back and may deliver them in a rush afterwards; neither a
//! mean rate nor a count of losses shows it. Seconds run from the first message's due time; the last one
//! counts if it is whole.

use core::ops::Range;

use talkpath_units::{Bytes, Duration, Instant};

use crate::summary::Settling;

/// Bits offered and delivered in each whole second since the first message of the window was due.
#[derive(Clone, Debug, PartialEq)]
pub struct Seconds {
    window: Range<Instant>,
    from: Option<Instant>,
    offered: Vec<u64>,
    delivered: Vec<u64>,
}

impl Seconds {
    /// Nothing yet.
    pub fn new(window: Range<Instant>) -> Self {
        Self { window, from: None, offered: Vec::new(), delivered: Vec::new() }
    }

    /// The earliest of `dues` that lies in the window begins the first second, unless one did before.
    pub fn begin(&mut self, dues: impl Iterator<Item = Instant>) {
        if self.from.is_none() {
            self.from = dues.filter(|due| self.window.contains(due)).min();
        }
    }

    /// A message was due.
    #[inline(always)]
    pub fn offer(&mut self, due: Instant, size: Bytes) {
        Self::add(&mut self.offered, self.from, &self.window, due, size);
    }

    /// The far application had `bytes` at `at`.
    #[inline(always)]
    pub fn deliver(&mut self, at: Instant, bytes: Bytes) {
        Self::add(&mut self.delivered, self.from, &self.window, at, bytes);
    }

    #[inline(always)]
    fn add(to: &mut Vec<u64>, from: Option<Instant>, window: &Range<Instant>, at: Instant, bytes: Bytes) {
        let Some(from) = from else { return };
        let Some(second) = second_of(at, from) else { return };
        // Only whole seconds were ever opened.
        match to.get_mut(second) {
            Some(bits) => *bits += bytes.get() * 8,
            None if second < whole_seconds(from, window.end) => open(to, second, bytes),
            None => {}
        }
    }

    /// How the two compare.
    pub fn settling(&self) -> Option<Settling> {
        let count = whole_seconds(self.from?, self.window.end);
        let of = |bits: &[u64], second: usize| bits.get(second).copied().unwrap_or(0);
        let pairs: Vec<_> =
            (0..count).map(|second| (of(&self.delivered, second), of(&self.offered, second))).collect();
        let last = pairs.len().checked_sub(1)?;
        let peak_bps = pairs.iter().map(|&(delivered, _)| delivered).max()?;
        let last_off = pairs.iter().rposition(|&(delivered, offered)| is_off(delivered, offered));
        let seconds = |is: fn(u64, u64) -> bool| {
            pairs.iter().filter(|&&(delivered, offered)| is(delivered, offered)).count() as u64
        };
        Some(Settling {
            settled_after_s: match last_off {
                None => Some(0),
                Some(second) if second == last => None,
                Some(second) => Some(second as u64 + 1),
            },
            peak_bps,
            peak_at_s: pairs.iter().position(|&(delivered, _)| delivered == peak_bps)? as u64,
            seconds_above: seconds(|delivered, offered| delivered * 10 > offered * 11),
            seconds_below: seconds(|delivered, offered| delivered * 10 < offered * 9),
        })
    }
}

/// The first `bytes` of a second.
#[cold]
fn open(to: &mut Vec<u64>, second: usize, bytes: Bytes) {
    to.resize(second + 1, 0);
    to[second] = bytes.get() * 8;
}

/// How many whole seconds lie between the two.
fn whole_seconds(from: Instant, to: Instant) -> usize {
    usize::try_from(to.since(from).as_nanos() / Duration::from_secs(1).as_nanos()).unwrap_or(usize::MAX)
}

/// The whole second after `from` in which `at` lies; `None` before it.
#[inline]
fn second_of(at: Instant, from: Instant) -> Option<usize> {
    let nanos = at.as_nanos().checked_sub(from.as_nanos())?;
    usize::try_from(nanos / Duration::from_secs(1).as_nanos()).ok()
}

/// More than a tenth away from what was offered.
const fn is_off(delivered: u64, offered: u64) -> bool {
    delivered.abs_diff(offered) * 10 > offered
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
    fn what_was_due_before_the_warm_up_ended_is_stepped_over() {
        let settling = held_back().settling(&(ms(2000)..ms(5000))).expect("three seconds");
        assert_eq!(settling.settled_after_s, Some(1));
        assert_eq!((settling.seconds_below, settling.seconds_above), (0, 1));
        assert_eq!((settling.peak_bps, settling.peak_at_s), (75 * 1280, 0));
    }

    #[test]
    fn without_a_clock_or_a_whole_second_there_is_nothing_to_tell() {
        let mut greedy = held_back();
        greedy.info.clocked = false;
        assert_eq!(greedy.settling(&(ms(0)..ms(5000))), None);
        assert_eq!(held_back().settling(&(ms(0)..ms(900))), None);
    }
}
