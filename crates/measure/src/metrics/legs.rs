//! Each direction of a flow for itself: lost, duplicate and reordered messages, and the gaps and bursts of
//! losses.
//!
//! Loss and reordering are counted as for the whole flow ([`super::loss`], [`super::reordering`]). Bursts are
//! those of RFC 3611 §4.7.2: losses of which any two neighbours have less than `GMIN` received messages
//! between them. A loss that stands alone belongs to the gap around it.
//!
//! Left out: discards. RFC 3611 counts what came too late to be played as lost; here only what never came.

use core::ops::Range;

use talkpath_units::{Duration, Instant};

use super::loss::{LossCounts, rate};
use super::reordering::reordered;
use super::trip::{Trip, TripOutcome, one_way_trips};
use crate::FlowRecord;
use crate::summary::{LegSummary, LegsSummary, LossBursts};

/// The directions of `flow` over the messages due within `window`.
pub fn of(flow: &FlowRecord, window: &Range<Instant>) -> LegsSummary {
    let out = one_way_trips(&flow.forward, window);
    let back = flow.echo.as_ref().map(|echo| {
        let (first, last) = match (out.first(), out.last()) {
            (Some(first), Some(last)) => (first.seq, last.seq),
            _ => return LegSummary::default(),
        };
        let mut back = one_way_trips(echo, &(Instant::ZERO..Instant::MAX));
        back.retain(|trip| (first..=last).contains(&trip.seq));
        // The echoing host sends every copy back that came.
        let mut out = out.iter().peekable();
        for trip in &mut back {
            while out.next_if(|there| there.seq < trip.seq).is_some() {}
            let came =
                out.peek().filter(|there| there.seq == trip.seq).map_or(1, |there| there.copies.max(1));
            trip.copies = trip.copies.saturating_sub(came - 1);
        }
        leg(&back, &echo.arrivals)
    });
    LegsSummary { forward: leg(&out, &flow.forward.arrivals), back }
}

fn leg(trips: &[Trip], arrivals: &[u64]) -> LegSummary {
    let counts = LossCounts::of(trips);
    LegSummary {
        sent: counts.sent,
        received: counts.received,
        lost: counts.lost(),
        unfinished: counts.unfinished,
        duplicates: counts.duplicates,
        reordered: reordered(trips, arrivals),
        bursts: bursts(trips),
    }
}

/// Bursts and gaps of what is lost of `trips`, in order of `seq`.
fn bursts(trips: &[Trip]) -> LossBursts {
    let mut all = LossBursts::default();
    let (mut in_bursts, mut lost_in_bursts, mut time) = (0, 0, Duration::ZERO);
    // The burst that may go on: messages until its last loss, losses, and the due times of both ends.
    let mut open: Option<(u64, u64, Instant, Instant)> = None;
    let (mut messages, mut lost, mut since_loss) = (0, 0, 0);
    let mut close = |open: Option<(u64, u64, Instant, Instant)>| {
        if let Some((length, losses, from, to)) = open.filter(|burst| burst.1 > 1) {
            all.count += 1;
            (in_bursts, lost_in_bursts) = (in_bursts + length, lost_in_bursts + losses);
            time += to.since(from);
        }
    };
    for trip in trips {
        let is_lost = match trip.outcome {
            TripOutcome::MissingForward | TripOutcome::MissingReturn => true,
            TripOutcome::Received(_) => false,
            TripOutcome::Unfinished | TripOutcome::Refused => continue,
        };
        messages += 1;
        if !is_lost {
            since_loss += 1;
            continue;
        }
        lost += 1;
        open = match open {
            Some((length, losses, from, _)) if since_loss < GMIN => {
                Some((length + since_loss + 1, losses + 1, from, trip.due))
            }
            over => {
                close(over);
                Some((1, 1, trip.due, trip.due))
            }
        };
        since_loss = 0;
    }
    close(open);
    all.density = rate(lost_in_bursts, in_bursts);
    all.messages_mean = rate(in_bursts, all.count);
    all.ms_mean = (all.count > 0).then(|| time.as_millis_f64() / all.count as f64);
    all.gap_density = rate(lost - lost_in_bursts, messages - in_bursts);
    all
}

/// RFC 3611 §4.7.2: the recommended Gmin.
const GMIN: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flow;

    /// The bursts of a flow of messages 20 ms apart that arrive (`.`) or not (`x`).
    fn of_story(story: &str) -> LossBursts {
        let delays: Vec<_> = story.chars().map(|letter| (letter == '.').then_some(1)).collect();
        of(&flow(&delays), &(Instant::ZERO..Instant::MAX)).forward.bursts
    }

    #[test]
    fn losses_with_fewer_than_sixteen_messages_between_them_are_one_burst() {
        let apart = |between: usize| of_story(&format!("..x{}x..", ".".repeat(between)));
        let close = apart(15);
        assert_eq!((close.count, close.messages_mean, close.ms_mean), (1, Some(17.0), Some(320.0)));
        assert_eq!((close.density, close.gap_density), (Some(2.0 / 17.0), Some(0.0)));
        let far = apart(16);
        assert_eq!((far.count, far.density, far.gap_density), (0, None, Some(2.0 / 22.0)));
    }

    #[test]
    fn a_burst_and_a_loss_alone_are_told_apart() {
        let story = format!("{g}xx.x{g}x{g}", g = ".".repeat(20));
        let bursts = of_story(&story);
        assert_eq!((bursts.count, bursts.messages_mean, bursts.density), (1, Some(4.0), Some(0.75)));
        assert_eq!(bursts.gap_density, Some(1.0 / 61.0));
    }
}
