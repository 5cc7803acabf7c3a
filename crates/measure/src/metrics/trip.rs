//! A flow's messages as its user sees them: one trip a message, one way or there and back.
//!
//! An echo flow is judged by its round trips, every other flow by its forward leg; after this join the
//! metrics need not know which of the two a trip is.
//!
//! A round trip is the way there and the way back. What the far host needed between the two, its turn-round,
//! is no part of it, as with STAMP (RFC 8762 §4.3): a host that is late is not the network.
//!
//! ```text
//!   due ─── way there ───► received ── turn-round ── due of the echo ─── way back ───► received
//! ```

use core::ops::Range;

use talkpath_units::{Bytes, Duration, Instant, SignedDuration};

use crate::{Fate, LegRecord, MessageRecord};

/// One message's way to the far application, or there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Number within the flow.
    pub seq: u64,
    /// Payload bytes.
    pub size: Bytes,
    /// When the workload wanted it sent.
    pub due: Instant,
    /// When the transport took it.
    pub sent: Option<Instant>,
    /// How it ended.
    pub outcome: TripOutcome,
    /// How long the far host held it between its ways there and back; zero one way, and if that is unknown.
    pub turn_round: Duration,
    /// How many copies came to the end of the trip.
    pub copies: u32,
    /// How it was lost, if it was.
    pub loss: LossKind,
}

/// One message, as the metrics that go through a flow's messages read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage<'a> {
    /// The whole trip: there and back if the flow has an echo, one way otherwise.
    pub(crate) trip: &'a Trip,
    /// The way to the receiver. It is the whole trip if the flow has no echo. `None` if the clocks of the two
    /// hosts are not trusted, because its delay is then not known.
    pub(crate) out: Option<&'a Trip>,
}

/// How a message was lost, as far as its sender, or its echo's, knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossKind {
    /// It was sent and never arrived.
    #[default]
    Missing,
    /// Its sender gave it up as too old.
    Expired,
    /// Its host had no network for it.
    NoNetwork,
    /// The connection was not open.
    NotOpen,
}

/// How a trip ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripOutcome {
    /// Came to its end at this instant, on the sender's clock.
    Received(Instant),
    /// Never reached the far application, sent or not.
    MissingForward,
    /// Reached the far application; its echo did not come back.
    MissingReturn,
    /// Still queued or in flight, or wanted and never offered, when the run ended.
    Unfinished,
    /// The transport would not take it.
    Refused,
}

impl Trip {
    /// From `due` to the trip's end without the turn-round; `None` if it has no end. Negative if two clocks
    /// disagree by more than the delay.
    #[inline]
    pub fn delay(&self) -> Option<SignedDuration> {
        self.received().map(|at| at.signed_since(self.due.saturating_add(self.turn_round)))
    }

    /// When it came to its end.
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

    /// Whether it went missing on either leg.
    pub fn is_missing(&self) -> bool {
        matches!(self.outcome, TripOutcome::MissingForward | TripOutcome::MissingReturn)
    }
}

/// The forward leg's trips that were due within `window`, in order of `seq`.
pub fn one_way_trips(leg: &LegRecord, window: &Range<Instant>) -> Vec<Trip> {
    each_one_way(leg, window).collect()
}

/// As [`one_way_trips`], one after the other.
pub(crate) fn each_one_way<'a>(
    leg: &'a LegRecord,
    window: &'a Range<Instant>,
) -> impl Iterator<Item = Trip> + 'a {
    leg.messages.iter().filter(|row| window.contains(&row.due)).map(one_way_trip)
}

/// The way out of one message.
#[inline]
pub(crate) fn one_way_trip(row: &MessageRecord) -> Trip {
    Trip { outcome: one_way_outcome(row), copies: row.copies, loss: loss_kind(row.fate), ..untold(row) }
}

/// The way of one message there and, if its echo was written, back.
pub(crate) fn round_trip(row: &MessageRecord, back: Option<&MessageRecord>) -> Trip {
    let copies = back.map_or(0, |back| back.copies);
    let turn_round = back.map_or(Duration::ZERO, |back| turn_round(row, back));
    let outcome = round_trip_outcome(row, back);
    let lost = back.filter(|_| outcome == TripOutcome::MissingReturn).unwrap_or(row);
    Trip { outcome, turn_round, copies, loss: loss_kind(lost.fate), ..untold(row) }
}

/// How a message of this fate was lost, if it was.
#[inline]
const fn loss_kind(fate: Fate) -> LossKind {
    match fate {
        Fate::Expired => LossKind::Expired,
        Fate::NoNetwork => LossKind::NoNetwork,
        Fate::NotOpen => LossKind::NotOpen,
        Fate::Delivered | Fate::Missing | Fate::Unfinished | Fate::Refused => LossKind::Missing,
    }
}

/// How long the far host held the message `row` before it offered its echo `back`; both stamps are of its own
/// clock. At most the whole time between both ends of the trip, whatever a far end reports.
pub(crate) fn turn_round(row: &MessageRecord, back: &MessageRecord) -> Duration {
    let (Some(came), Some(end)) = (row.received, back.received) else { return Duration::ZERO };
    back.due.since(came).min(end.since(row.due))
}

/// The trips that came to their end, in the order in which their first copies did. `trips` is in order of
/// `seq`; arrivals of messages that are not among them, or that were never sent, are passed over.
pub fn first_arrivals<'a>(trips: &'a [Trip], arrivals: &'a [u64]) -> impl Iterator<Item = &'a Trip> + 'a {
    let mut seen = vec![false; trips.len()];
    let mut next = 0;
    arrivals.iter().filter_map(move |&seq| {
        // Most messages arrive in order.
        let index = match trips.get(next) {
            Some(trip) if trip.seq == seq => next,
            _ => trips.binary_search_by_key(&seq, |trip| trip.seq).ok()?,
        };
        next = index + 1;
        let is_first = !core::mem::replace(&mut seen[index], true);
        (is_first && trips[index].received().is_some()).then(|| &trips[index])
    })
}

/// The round trips of messages that were due within `window`, one after the other in order of `seq`.
pub(crate) fn each_round_trip<'a>(
    forward: &'a LegRecord,
    echo: &'a LegRecord,
    window: &'a Range<Instant>,
) -> impl Iterator<Item = Trip> + 'a {
    // Both legs are in order of `seq`, so one pass over the echo answers every message.
    let mut echoes = echo.messages.iter().peekable();
    forward.messages.iter().filter(|row| window.contains(&row.due)).map(move |row| {
        while echoes.next_if(|back| back.seq < row.seq).is_some() {}
        round_trip(row, echoes.next_if(|back| back.seq == row.seq))
    })
}

#[inline]
fn untold(row: &MessageRecord) -> Trip {
    let MessageRecord { seq, size, due, sent, .. } = *row;
    let (outcome, turn_round) = (TripOutcome::Unfinished, Duration::ZERO);
    Trip { seq, size, due, sent, outcome, turn_round, copies: 0, loss: LossKind::Missing }
}

#[inline]
fn one_way_outcome(row: &MessageRecord) -> TripOutcome {
    match (row.fate, row.received) {
        (Fate::Delivered, Some(at)) => TripOutcome::Received(at),
        // Delivered without a stamp says that the far end kept no time: nothing can be computed from it.
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
        // The far application had the message; a transport that refused its echo lost it on the way back.
        (
            Fate::Delivered,
            Some((Fate::Missing | Fate::Refused | Fate::Expired | Fate::NoNetwork | Fate::NotOpen, _)),
        ) => TripOutcome::MissingReturn,
        // Read by the far application, and the run ended before it wrote the echo or before the echo arrived.
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
