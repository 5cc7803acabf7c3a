//! Each direction of a flow for itself: lost, duplicate and reordered messages, and the gaps and bursts of
//! losses.
//!
//! A message is late in a direction if its delay there is longer than the flow's deadline. The deadline of a
//! round trip is for both directions, so each has half of it. This needs two clocks that agree.
//!
//! Loss and reordering are counted as for the whole flow ([`super::loss`], [`super::reordering`]). Bursts are
//! those of RFC 3611 §4.7.2: losses in which any two neighbours have fewer than `GMIN` received messages
//! between them. A single loss belongs to the gap around it.
//!
//! Left out: discards. RFC 3611 counts what came too late to be played as lost; here only what never came.

use core::ops::Range;

use talkpath_units::{Duration, Instant};

use super::in_time::InTime;
use super::loss::{LossCounts, rate};
use super::reordering::reordered;
use super::trip::{Trip, TripOutcome, one_way_trips};
use crate::FlowRecord;
use crate::summary::{LegSummary, LegsSummary, LossBursts};

/// The directions of `flow` over the messages due within `window`.
pub fn of(flow: &FlowRecord, window: &Range<Instant>) -> LegsSummary {
    let out = one_way_trips(&flow.forward, window);
    let share = if flow.echo.is_some() { 2 } else { 1 };
    let deadline = flow.info.terms.deadline.map(|deadline| deadline / share);
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
        leg(&back, &echo.arrivals, deadline)
    });
    LegsSummary { forward: leg(&out, &flow.forward.arrivals, deadline), back }
}

/// Counts the directions of `flow` again, if they are known: what became of its messages has changed since.
pub fn recount(flow: &mut FlowRecord, window: &Range<Instant>) {
    if flow.counters.legs.is_some() {
        flow.counters.legs = Some(of(flow, window));
    }
}

fn leg(trips: &[Trip], arrivals: &[u64], deadline: Option<Duration>) -> LegSummary {
    let counts = LossCounts::of(trips);
    LegSummary {
        sent: counts.sent,
        received: counts.received,
        lost: counts.lost(),
        unfinished: counts.unfinished,
        duplicates: counts.duplicates,
        late: deadline.map(|deadline| counts.received - InTime::of(deadline, trips)),
        reordered: reordered(trips, arrivals),
        bursts: bursts(trips),
    }
}

/// Bursts and gaps of what is lost of `trips`, in order of `seq`.
fn bursts(trips: &[Trip]) -> LossBursts {
    let mut all = LossBursts::default();
    let (mut in_bursts, mut lost_in_bursts, mut time) = (0, 0, Duration::ZERO);
    // The burst that may go on: messages until its last loss, losses, when its first loss was due, and which
    // of the trips its last loss is.
    let mut open: Option<(u64, u64, Instant, usize)> = None;
    let (mut messages, mut lost, mut since_loss) = (0, 0, 0);
    let mut close = |open: Option<(u64, u64, Instant, usize)>| {
        if let Some((length, losses, from, last)) = open.filter(|burst| burst.1 > 1) {
            all.count += 1;
            (in_bursts, lost_in_bursts) = (in_bursts + length, lost_in_bursts + losses);
            time += end(trips, last).since(from);
        }
    };
    for (at, trip) in trips.iter().enumerate() {
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
                Some((length + since_loss + 1, losses + 1, from, at))
            }
            over => {
                close(over);
                Some((1, 1, trip.due, at))
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

/// When the message `trips[at]` ends (RFC 3611 §4.7.2: a burst lasts until the end packet's time plus its
/// duration): when the next is due, or, of the last, after as long as it was due after the one before.
fn end(trips: &[Trip], at: usize) -> Instant {
    let due = trips[at].due;
    let following = &trips[at..];
    if let Some(next) = following.get(following.partition_point(|trip| trip.due <= due)) {
        return next.due;
    }
    let earlier = trips[..at].partition_point(|trip| trip.due < due);
    let spacing = earlier.checked_sub(1).map_or(Duration::ZERO, |before| due.since(trips[before].due));
    due.saturating_add(spacing)
}

/// RFC 3611 §4.7.2: the recommended Gmin.
const GMIN: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, leg as leg_of, message, ms};
    use crate::{Fate, MessageRecord};

    /// The bursts of a flow of messages 20 ms apart that arrive (`.`) or not (`x`).
    fn of_story(story: &str) -> LossBursts {
        let delays: Vec<_> = story.chars().map(|letter| (letter == '.').then_some(1)).collect();
        of(&flow(&delays), &(Instant::ZERO..Instant::MAX)).forward.bursts
    }

    #[test]
    fn losses_with_fewer_than_sixteen_messages_between_them_are_one_burst() {
        let apart = |between: usize| of_story(&format!("..x{}x..", ".".repeat(between)));
        let close = apart(15);
        assert_eq!((close.count, close.messages_mean, close.ms_mean), (1, Some(17.0), Some(340.0)));
        assert_eq!((close.density, close.gap_density), (Some(2.0 / 17.0), Some(0.0)));
        let far = apart(16);
        assert_eq!((far.count, far.density, far.gap_density), (0, None, Some(2.0 / 22.0)));
    }

    #[test]
    fn a_burst_lasts_until_its_last_message_has_ended() {
        assert_eq!(of_story("..xx..").ms_mean, Some(40.0));
        assert_eq!(
            of_story("..xx").ms_mean,
            Some(40.0),
            "the last spacing stands for the one that is not there"
        );
        assert_eq!(of_story("xx").ms_mean, Some(40.0));
    }

    #[test]
    fn a_burst_and_a_loss_alone_are_told_apart() {
        let story = format!("{g}xx.x{g}x{g}", g = ".".repeat(20));
        let bursts = of_story(&story);
        assert_eq!((bursts.count, bursts.messages_mean, bursts.density), (1, Some(4.0), Some(0.75)));
        assert_eq!(bursts.gap_density, Some(1.0 / 61.0));
    }

    #[test]
    fn each_direction_of_an_echo_is_late_beyond_half_of_the_deadline() {
        // Out in 100, 160, 149 and 150 ms, of which 300 ms there and back give 150.
        let mut call = flow(&[Some(100), Some(160), Some(149), Some(150), None]);
        call.info.terms.deadline = Some(Duration::from_millis(300));
        let one_way = of(&call, &(Instant::ZERO..Instant::MAX));
        assert_eq!((one_way.forward.late, one_way.back), (Some(0), None), "one way it has all of it");
        let back = |seq: u64, out: u64, delay: u64| MessageRecord {
            due: ms(20 * seq + out),
            received: Some(ms(20 * seq + out + delay)),
            ..message(seq, Some(0))
        };
        call.echo =
            Some(leg_of(vec![back(0, 100, 151), back(1, 160, 20), back(2, 149, 200), back(3, 150, 150)]));
        let legs = of(&call, &(Instant::ZERO..Instant::MAX));
        assert_eq!((legs.forward.late, legs.back.unwrap().late), (Some(1), Some(2)));
        call.info.terms.deadline = None;
        assert_eq!(of(&call, &(Instant::ZERO..Instant::MAX)).forward.late, None);
    }

    #[test]
    fn directions_that_are_known_are_counted_again_and_no_others() {
        let window = Instant::ZERO..Instant::MAX;
        let mut call = flow(&[Some(100), None]);
        recount(&mut call, &window);
        assert_eq!(call.counters.legs, None);
        call.counters.legs = Some(of(&call, &window));
        call.forward.messages[1].fate = Fate::Unfinished;
        recount(&mut call, &window);
        let forward = call.counters.legs.unwrap().forward;
        assert_eq!((forward.lost, forward.unfinished), (0, 1));
    }
}
