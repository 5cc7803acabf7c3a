//! Settling: when a clocked flow begins to deliver, second by second, what it offers.
//!
//! A transport that starts slowly holds messages back and may deliver them in a rush afterwards; neither a mean rate nor a
//! count of losses shows it. Seconds run from the first message's due time; the last one counts where it is whole.

use core::ops::Range;

use talkpath_units::{Duration, Instant};

use super::goodput;
use crate::FlowRecord;
use crate::summary::Settling;

/// How the deliveries of `flow` compare with what it offered, second by second; `None` for a flow without a clock and
/// where no whole second passed.
pub fn settling(flow: &FlowRecord, window: &Range<Instant>) -> Option<Settling> {
    if !flow.info.clocked {
        return None;
    }
    let due = flow.forward.messages.iter().map(|row| row.due);
    let from = due.filter(|due| window.contains(due)).min()?;
    let window = from..window.end;
    let delivered = goodput::bits_per_second(flow, &window);
    let mut offered = vec![0_u64; delivered.len()];
    for row in &flow.forward.messages {
        if let Some(bits) = offered.get_mut(second_of(row.due, from)?) {
            *bits += row.size.get() * 8;
        }
    }
    let pairs = || delivered.iter().zip(&offered);
    let last = delivered.len().checked_sub(1)?;
    let peak_bps = delivered.iter().copied().max()?;
    let last_off = pairs().rposition(|(&delivered, &offered)| is_off(delivered, offered));
    Some(Settling {
        settled_after_s: match last_off {
            None => Some(0),
            Some(second) if second == last => None,
            Some(second) => Some(second as u64 + 1),
        },
        peak_bps,
        peak_at_s: delivered.iter().position(|&bits| bits == peak_bps)? as u64,
        seconds_above: pairs().filter(|(delivered, offered)| *delivered * 10 > *offered * 11).count() as u64,
        seconds_below: pairs().filter(|(delivered, offered)| *delivered * 10 < *offered * 9).count() as u64,
    })
}

/// The whole second after `from` in which `at` lies; `None` before it.
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
    use super::*;
    use crate::testing::{flow, ms};

    /// 50 messages a second; those of the first second come 1.5 s late, in a rush with those of 1.5 to 2 s.
    fn held_back() -> FlowRecord {
        let delay = |n: u64| if n < 50 { 1500 } else { 30 };
        flow(&(0..250).map(|n| Some(delay(n))).collect::<Vec<_>>())
    }

    #[test]
    fn a_flow_has_settled_when_no_second_is_a_tenth_off_any_more() {
        let settling = settling(&held_back(), &(ms(0)..ms(5000))).expect("five seconds");
        // Second 0 has nothing, second 1 the 49 to 50 of its own and 25 of the first, second 2 the other 25 besides.
        assert_eq!(settling.settled_after_s, Some(3));
        assert_eq!((settling.seconds_below, settling.seconds_above), (1, 2));
        assert_eq!((settling.peak_bps, settling.peak_at_s), (75 * 1280, 2));
    }

    #[test]
    fn a_flow_that_delivers_as_it_offers_has_settled_at_once() {
        let settling = settling(&flow(&[Some(30); 250]), &(ms(0)..ms(5000))).expect("five seconds");
        assert_eq!(
            (settling.settled_after_s, settling.seconds_below, settling.seconds_above),
            (Some(0), 0, 0)
        );
    }

    #[test]
    fn a_flow_that_is_off_in_its_last_second_has_not_settled() {
        let delays: Vec<_> = (0..250).map(|n| (n < 225).then_some(0)).collect();
        assert_eq!(
            settling(&flow(&delays), &(ms(0)..ms(5000))).and_then(|found| found.settled_after_s),
            None
        );
    }

    #[test]
    fn without_a_clock_or_a_whole_second_there_is_nothing_to_tell() {
        let mut greedy = held_back();
        greedy.info.clocked = false;
        assert_eq!(settling(&greedy, &(ms(0)..ms(5000))), None);
        assert_eq!(settling(&held_back(), &(ms(0)..ms(900))), None);
    }
}
