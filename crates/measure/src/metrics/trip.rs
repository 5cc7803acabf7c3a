//! Trips: the messages of a flow as the user sees them. A trip goes one way, or forward and back if the flow
//! has an echo.
//!
//! The metrics read trips, so that they need not know which of the two a trip is.
//!
//! The *turn-round* is the time that the far host holds a message before it sends the echo. A round trip does
//! not include it, as in STAMP (RFC 8762 §4.3), because a slow host is not a slow network.
//!
//! ```text
//!   due ─── forward ───► received ── turn-round ── due time of the echo ─── back ───► received
//! ```

use core::ops::Range;

use talkpath_units::{Bytes, Duration, Instant, SignedDuration};

use crate::{Fate, LegRecord, MessageRecord};

/// The trip of one message to the far application, or there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// The number of the message in the flow.
    pub seq: u64,
    /// The size of the payload.
    pub size: Bytes,
    /// The time at which the workload wanted to send the message.
    pub due: Instant,
    /// The time at which the transport took the message.
    pub sent: Option<Instant>,
    /// How the trip ended.
    pub outcome: TripOutcome,
    /// How long the far host held the message before it sent the echo. Zero if the trip goes one way, or if
    /// the time is unknown.
    pub turn_round: Duration,
    /// How many copies came to the end of the trip.
    pub copies: u32,
    /// How the message was lost, if it was lost.
    pub loss: LossKind,
}

/// One message, as the metrics that go through the messages of a flow read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage<'a> {
    /// The whole trip: forward and back if the flow has an echo, one way otherwise.
    pub(crate) trip: &'a Trip,
    /// The one-way trip to the receiver. It is the whole trip if the flow has no echo. `None` if the clocks
    /// of the two hosts are not trusted, because its delay is then unknown.
    pub(crate) out: Option<&'a Trip>,
}

/// How a message was lost, as far as the sender of the message or of its echo knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossKind {
    /// The message was sent and never arrived.
    #[default]
    Missing,
    /// The sender gave the message up because it was too old.
    Expired,
    /// The host had no network for the message.
    NoNetwork,
    /// The connection was not open when the message was due.
    NotOpen,
}

/// How a trip ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripOutcome {
    /// The trip ended at this time, by the sender's clock.
    Received(Instant),
    /// The message never reached the far application.
    MissingForward,
    /// The message reached the far application, but its echo did not come back.
    MissingReturn,
    /// When the run ended, the message was still queued or in flight, or had never been offered to the
    /// transport.
    Unfinished,
    /// The transport would not take the message.
    Refused,
}

impl Trip {
    /// Returns the time from `due` to the end of the trip, without the turn-round. Returns `None` if the trip
    /// did not end. The delay is negative if two clocks differ by more than the delay.
    #[inline]
    pub fn delay(&self) -> Option<SignedDuration> {
        self.received().map(|at| at.signed_since(self.due.saturating_add(self.turn_round)))
    }

    /// Returns the time at which the trip ended.
    #[inline]
    pub fn received(&self) -> Option<Instant> {
        match self.outcome {
            TripOutcome::Received(at) => Some(at),
            TripOutcome::MissingForward
            | TripOutcome::MissingReturn
            | TripOutcome::Unfinished
            | TripOutcome::Refused => None,
        }
    }

    /// Returns whether the message or its echo is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self.outcome, TripOutcome::MissingForward | TripOutcome::MissingReturn)
    }
}

/// Returns the one-way trips on `leg` that were due within `window`, in the order of `seq`.
pub fn one_way_trips(leg: &LegRecord, window: &Range<Instant>) -> Vec<Trip> {
    each_one_way(leg, window).collect()
}

/// Iterates over the trips that [`one_way_trips`] returns.
pub(crate) fn each_one_way<'a>(
    leg: &'a LegRecord,
    window: &'a Range<Instant>,
) -> impl Iterator<Item = Trip> + 'a {
    leg.messages.iter().filter(|row| window.contains(&row.due)).map(one_way_trip)
}

/// Returns the one-way trip of a message.
#[inline]
pub(crate) fn one_way_trip(row: &MessageRecord) -> Trip {
    Trip {
        outcome: one_way_outcome(row),
        copies: row.copies,
        loss: loss_kind(row.fate),
        ..unfinished_trip(row)
    }
}

/// Returns the round trip of a message. `back` is its echo, if the far application wrote one.
pub(crate) fn round_trip(row: &MessageRecord, back: Option<&MessageRecord>) -> Trip {
    let copies = back.map_or(0, |back| back.copies);
    let turn_round = back.map_or(Duration::ZERO, |back| turn_round(row, back));
    let outcome = round_trip_outcome(row, back);
    let lost = match back {
        Some(back) if outcome == TripOutcome::MissingReturn => back,
        _ => row,
    };
    Trip { outcome, turn_round, copies, loss: loss_kind(lost.fate), ..unfinished_trip(row) }
}

/// Returns how a message with this fate was lost. The result has no meaning if the message was not lost.
#[inline]
const fn loss_kind(fate: Fate) -> LossKind {
    match fate {
        Fate::Expired => LossKind::Expired,
        Fate::NoNetwork => LossKind::NoNetwork,
        Fate::NotOpen => LossKind::NotOpen,
        Fate::Delivered | Fate::Missing | Fate::Unfinished | Fate::Refused => LossKind::Missing,
    }
}

/// Returns how long the far host held the message `row` before it offered the echo `back`. Both times come
/// from the far host's clock. A far host may report anything, so the result is at most the time of the whole
/// trip.
pub(crate) fn turn_round(row: &MessageRecord, back: &MessageRecord) -> Duration {
    let (Some(received), Some(trip_end)) = (row.received, back.received) else { return Duration::ZERO };
    back.due.since(received).min(trip_end.since(row.due))
}

/// Returns the trips that ended, in the order in which their first copies arrived. `trips` is in the order of
/// `seq`, and `arrivals` has the number of each arrival. Arrivals of messages that are not among `trips` are
/// left out.
pub fn first_arrivals<'a>(trips: &'a [Trip], arrivals: &'a [u64]) -> impl Iterator<Item = &'a Trip> + 'a {
    let mut has_arrived = vec![false; trips.len()];
    let mut expected_index = 0;
    arrivals.iter().filter_map(move |&seq| {
        // Most messages arrive in order, so a search is seldom necessary.
        let index = match trips.get(expected_index) {
            Some(trip) if trip.seq == seq => expected_index,
            _ => trips.binary_search_by_key(&seq, |trip| trip.seq).ok()?,
        };
        expected_index = index + 1;
        let is_first = !core::mem::replace(&mut has_arrived[index], true);
        (is_first && trips[index].received().is_some()).then(|| &trips[index])
    })
}

/// Iterates over the round trips of the messages that were due within `window`, in the order of `seq`.
pub(crate) fn each_round_trip<'a>(
    forward: &'a LegRecord,
    echo: &'a LegRecord,
    window: &'a Range<Instant>,
) -> impl Iterator<Item = Trip> + 'a {
    // Both legs are in the order of `seq`, so one pass over the echoes finds the echo of every message.
    let mut echoes = echo.messages.iter().peekable();
    forward.messages.iter().filter(|row| window.contains(&row.due)).map(move |row| {
        while echoes.next_if(|back| back.seq < row.seq).is_some() {}
        round_trip(row, echoes.next_if(|back| back.seq == row.seq))
    })
}

/// Returns the trip of a message that has not ended.
#[inline]
fn unfinished_trip(row: &MessageRecord) -> Trip {
    let MessageRecord { seq, size, due, sent, .. } = *row;
    let (outcome, turn_round) = (TripOutcome::Unfinished, Duration::ZERO);
    Trip { seq, size, due, sent, outcome, turn_round, copies: 0, loss: LossKind::Missing }
}

#[inline]
fn one_way_outcome(row: &MessageRecord) -> TripOutcome {
    match (row.fate, row.received) {
        (Fate::Delivered, Some(at)) => TripOutcome::Received(at),
        // The far end did not note the time of this delivery, so no delay can be computed.
        (Fate::Delivered, None) | (Fate::Unfinished, _) => TripOutcome::Unfinished,
        (Fate::Missing | Fate::Expired | Fate::NoNetwork | Fate::NotOpen, _) => TripOutcome::MissingForward,
        (Fate::Refused, _) => TripOutcome::Refused,
    }
}

fn round_trip_outcome(row: &MessageRecord, back: Option<&MessageRecord>) -> TripOutcome {
    match (row.fate, back.map(|back| (back.fate, back.received))) {
        (Fate::Refused, _) => TripOutcome::Refused,
        (_, Some((Fate::Delivered, Some(at)))) => TripOutcome::Received(at),
        (Fate::Missing | Fate::Expired | Fate::NoNetwork | Fate::NotOpen, _) => TripOutcome::MissingForward,
        (Fate::Unfinished, _) => TripOutcome::Unfinished,
        // The far application received the message. An echo that its transport refused is lost on the way
        // back.
        (
            Fate::Delivered,
            Some((Fate::Missing | Fate::Refused | Fate::Expired | Fate::NoNetwork | Fate::NotOpen, _)),
        ) => TripOutcome::MissingReturn,
        // The run ended before the far application wrote the echo, or before the echo arrived.
        (Fate::Delivered, Some((Fate::Unfinished | Fate::Delivered, _)) | None) => TripOutcome::Unfinished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, flow_of, leg, message, ms};

    const ALWAYS: Range<Instant> = Instant::ZERO..Instant::MAX;

    fn with_fate(row: MessageRecord, fate: Fate) -> MessageRecord {
        MessageRecord { fate, received: None, copies: 0, ..row }
    }

    #[test]
    fn a_round_trip_is_lost_on_the_leg_that_lost_it() {
        let there = |seq| message(seq, Some(10));
        let mut echoing = flow_of(leg(vec![
            there(0),
            message(1, None),
            there(2),
            there(3),
            there(4),
            there(5),
            with_fate(message(6, None), Fate::Refused),
            with_fate(message(7, None), Fate::Unfinished),
        ]));
        echoing.echo = Some(leg(vec![
            message(0, Some(25)),
            message(2, None),
            with_fate(message(3, None), Fate::Refused),
            with_fate(message(4, None), Fate::Unfinished),
            // The far application never wrote the echo of 5.
        ]));
        let outcomes: Vec<_> = echoing.trips(&ALWAYS).iter().map(|trip| trip.outcome).collect();
        assert_eq!(
            outcomes,
            [
                TripOutcome::Received(ms(25)),
                TripOutcome::MissingForward,
                TripOutcome::MissingReturn,
                TripOutcome::MissingReturn,
                TripOutcome::Unfinished,
                TripOutcome::Unfinished,
                TripOutcome::Refused,
                TripOutcome::Unfinished,
            ]
        );
    }

    #[test]
    fn an_echo_that_came_back_proves_that_its_message_arrived() {
        // The far end died before it reported what it had received; the echo itself shows that the message
        // arrived.
        let mut echoing = flow_of(leg(vec![with_fate(message(0, None), Fate::Unfinished)]));
        echoing.echo = Some(leg(vec![message(0, Some(40))]));
        assert_eq!(echoing.trips(&ALWAYS)[0].outcome, TripOutcome::Received(ms(40)));
    }

    #[test]
    fn what_the_far_host_holds_is_no_part_of_the_round_trip() {
        let delay = |back: MessageRecord| {
            let mut echoing = flow_of(leg(vec![message(0, Some(10))]));
            echoing.echo = Some(leg(vec![back]));
            echoing.trips(&ALWAYS)[0].delay().map(SignedDuration::as_millis_f64)
        };
        let echo = |due, received| MessageRecord {
            due: ms(due),
            received: Some(ms(received)),
            ..message(0, Some(0))
        };
        assert_eq!(delay(echo(10, 25)), Some(25.0));
        assert_eq!(delay(echo(130, 145)), Some(25.0), "120 ms at the far host");
        // An echo per read may be offered before its message was read whole.
        assert_eq!(delay(echo(5, 25)), Some(25.0));
        // A far end may report anything.
        assert_eq!(delay(echo(9_000, 25)), Some(0.0));
    }

    #[test]
    fn the_window_begins_with_its_first_instant_and_ends_before_its_last() {
        // Due at 0, 20, 40 and 60 ms.
        let four = flow(&[Some(1), Some(1), Some(1), Some(1)]);
        let seqs: Vec<_> = four.trips(&(ms(20)..ms(60))).iter().map(|trip| trip.seq).collect();
        assert_eq!(seqs, [1, 2]);
    }
}
