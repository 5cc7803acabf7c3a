//! The figures of each direction of a flow: lost, duplicate, reordered and late messages, and bursts of
//! losses.
//!
//! A *leg* is one direction: forward, or back with the echoes. A message is late on a leg if its delay there
//! is longer than the flow's deadline. The deadline of a round trip is for both legs, so each leg has half of
//! it. Lateness needs two clocks that agree.
//!
//! Losses and reordering are counted as for the whole flow ([`super::loss`], [`super::reordering`]). Bursts
//! follow RFC 3611 §4.7.2: a burst is a sequence of losses in which fewer than `MIN_GAP` received messages
//! lie between any two neighbours. A single loss is no burst and belongs to the gap around it.
//!
//! RFC 3611 also counts a message as lost if it came too late to be played. Here only a message that never
//! came is lost.
//!
//! Begin to read with [`of`].

use core::ops::Range;

use talkpath_units::{Duration, Instant};

use super::in_time::InTime;
use super::loss::{LossCounts, rate};
use super::reordering::reordered;
use super::trip::{Trip, TripOutcome, one_way_trips};
use crate::summary::{LegSummary, LegsSummary, LossBursts};
use crate::{FlowRecord, LegRecord};

/// How many received messages end a burst (RFC 3611 §4.7.2: the recommended Gmin).
const MIN_GAP: u64 = 16;

/// Computes the figures of each leg of `flow` from the messages that were due within `window`.
pub fn of(flow: &FlowRecord, window: &Range<Instant>) -> LegsSummary {
    let forward = one_way_trips(&flow.forward, window);
    let leg_count = if flow.echo.is_some() { 2 } else { 1 };
    let deadline = flow.info.terms.deadline.map(|deadline| deadline / leg_count);
    let back = flow.echo.as_ref().map(|echo| back_summary(&forward, echo, deadline));
    LegsSummary { forward: leg_summary(&forward, &flow.forward.arrivals, deadline), back }
}

/// Computes the figures of each leg again after the fate of messages has changed. Does nothing if the flow
/// has no such figures.
pub fn recount(flow: &mut FlowRecord, window: &Range<Instant>) {
    if flow.counters.legs.is_some() {
        flow.counters.legs = Some(of(flow, window));
    }
}

/// Computes the figures of the way back. An echo counts if its message is among `forward`.
fn back_summary(forward: &[Trip], echo: &LegRecord, deadline: Option<Duration>) -> LegSummary {
    let (Some(first), Some(last)) = (forward.first(), forward.last()) else { return LegSummary::default() };
    let mut back = one_way_trips(echo, &(Instant::ZERO..Instant::MAX));
    back.retain(|echo| (first.seq..=last.seq).contains(&echo.seq));
    remove_forward_duplicates(forward, &mut back);
    leg_summary(&back, &echo.arrivals, deadline)
}

/// Subtracts the duplicates that arose on the way forward from the copies of each echo. The echoing host
/// sends every copy back that arrives, so only the other copies arose on the way back.
fn remove_forward_duplicates(forward: &[Trip], back: &mut [Trip]) {
    let mut forward = forward.iter().peekable();
    for echo in back {
        while forward.next_if(|message| message.seq < echo.seq).is_some() {}
        let copies_forward = match forward.peek() {
            Some(message) if message.seq == echo.seq => message.copies.max(1),
            _ => 1,
        };
        echo.copies = echo.copies.saturating_sub(copies_forward - 1);
    }
}

fn leg_summary(trips: &[Trip], arrivals: &[u64], deadline: Option<Duration>) -> LegSummary {
    let counts = LossCounts::of(trips);
    LegSummary {
        sent: counts.sent,
        received: counts.received,
        lost: counts.lost(),
        unfinished: counts.unfinished,
        duplicates: counts.duplicates,
        late: deadline.map(|deadline| counts.received - InTime::of(deadline, trips)),
        reordered: reordered(trips, arrivals),
        bursts: BurstCounter::count(trips),
    }
}

/// A sequence of losses that the next loss may continue.
#[derive(Clone, Copy)]
struct OpenBurst {
    /// The messages from the first to the last loss, both included.
    messages: u64,
    losses: u64,
    /// The index of the first loss among the trips.
    first: usize,
    /// The index of the last loss among the trips.
    last: usize,
}

/// Counts the bursts of a leg.
struct BurstCounter<'a> {
    /// The trips in the order of `seq`.
    trips: &'a [Trip],
    bursts: u64,
    messages_in_bursts: u64,
    losses_in_bursts: u64,
    time_in_bursts: Duration,
}

impl<'a> BurstCounter<'a> {
    fn count(trips: &'a [Trip]) -> LossBursts {
        let mut counter = Self {
            trips,
            bursts: 0,
            messages_in_bursts: 0,
            losses_in_bursts: 0,
            time_in_bursts: Duration::ZERO,
        };
        let (mut messages, mut losses, mut received_since_loss) = (0, 0, 0);
        let mut open: Option<OpenBurst> = None;
        for (index, trip) in trips.iter().enumerate() {
            match trip.outcome {
                TripOutcome::Received(_) => {
                    messages += 1;
                    received_since_loss += 1;
                }
                TripOutcome::MissingForward | TripOutcome::MissingReturn => {
                    messages += 1;
                    losses += 1;
                    open = Some(match open {
                        Some(burst) if received_since_loss < MIN_GAP => OpenBurst {
                            messages: burst.messages + received_since_loss + 1,
                            losses: burst.losses + 1,
                            last: index,
                            ..burst
                        },
                        finished => {
                            counter.add(finished);
                            OpenBurst { messages: 1, losses: 1, first: index, last: index }
                        }
                    });
                    received_since_loss = 0;
                }
                TripOutcome::Unfinished | TripOutcome::Refused => {}
            }
        }
        counter.add(open);
        counter.finish(messages, losses)
    }

    /// Adds a finished burst. A single loss is no burst.
    fn add(&mut self, finished: Option<OpenBurst>) {
        if let Some(burst) = finished
            && burst.losses > 1
        {
            self.bursts += 1;
            self.messages_in_bursts += burst.messages;
            self.losses_in_bursts += burst.losses;
            self.time_in_bursts += end_of_message(self.trips, burst.last).since(self.trips[burst.first].due);
        }
    }

    /// Returns the figures of a leg with so many `messages` and `losses`.
    fn finish(self, messages: u64, losses: u64) -> LossBursts {
        LossBursts {
            count: self.bursts,
            density: rate(self.losses_in_bursts, self.messages_in_bursts),
            messages_mean: rate(self.messages_in_bursts, self.bursts),
            ms_mean: (self.bursts > 0).then(|| self.time_in_bursts.as_millis_f64() / self.bursts as f64),
            gap_density: rate(losses - self.losses_in_bursts, messages - self.messages_in_bursts),
        }
    }
}

/// Returns the end of the message `trips[index]`, which is the time when the next message is due. The last
/// message is as long as the one before it. (RFC 3611 §4.7.2: a burst lasts until the end packet's time plus
/// its duration.)
fn end_of_message(trips: &[Trip], index: usize) -> Instant {
    let due = trips[index].due;
    let following = &trips[index..];
    if let Some(next) = following.get(following.partition_point(|trip| trip.due <= due)) {
        return next.due;
    }
    let first_of_this_time = trips[..index].partition_point(|trip| trip.due < due);
    let spacing = match first_of_this_time.checked_sub(1) {
        Some(previous) => due.since(trips[previous].due),
        None => Duration::ZERO,
    };
    due.saturating_add(spacing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, leg as leg_of, message, ms};
    use crate::{Fate, MessageRecord};

    /// Returns the bursts of a flow of messages 20 ms apart that arrive (`.`) or not (`x`).
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
        assert_eq!(of_story("..xx").ms_mean, Some(40.0), "the last message is as long as the one before it");
        assert_eq!(of_story("xx").ms_mean, Some(40.0));
    }

    #[test]
    fn a_single_loss_is_no_burst() {
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
    fn only_directions_that_were_counted_are_counted_again() {
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
