//! Finds the breaks of a flow: the times in which it delivered nothing although it should have.
//!
//! A break is an outage of the path, or the time before a connection opens.
//!
//! ```text
//!  due        |  |  |  |  |  |  |  |  |  |  |
//!  delivered  |  |  |                 ||||  |
//!                   └── the break ────┘         at least MIN_OUTAGE long
//! ```
//!
//! If the transport repairs losses, one message that waits is enough for an outage. Otherwise at least
//! `MIN_LOST_DATAGRAMS` must be lost or arrive only after the break, because a single loss is no outage,
//! even if messages are seldom due. Gaps and bursts of losses are figures of their own, and are not breaks.

use talkpath_units::{Duration, Instant};

use crate::{BreakRecord, Fate, FlowRecord, MessageRecord};

/// The shortest break. It is the second of a "severely errored second" (ITU-T G.826 §4.2).
const MIN_OUTAGE: Duration = Duration::from_secs(1);
const MIN_OUTAGE_NS: i64 = MIN_OUTAGE.as_nanos() as i64;

/// How many datagrams in a row must be lost, or arrive after the break, for an outage. We chose 5, because at
/// a random loss of 20 % five datagrams in a row are lost only once in 3,000.
const MIN_LOST_DATAGRAMS: usize = 5;

/// The opening of a connection whose messages are due on a clock.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The start of the flow. Messages that are due before the connection is open are never sent.
    pub start: Instant,
    /// The time at which the connection opened. `None` if it never did.
    pub opened: Option<Instant>,
    /// The time until which messages were due.
    pub stop: Instant,
}

/// What a break says of a connection that did not open, if nobody knows why.
pub const DID_NOT_OPEN: &str = "the connection did not open";

impl Opening {
    /// Returns the break at the start of the flow. Returns `None` if the connection opened soon enough.
    pub fn as_break(&self) -> Option<BreakRecord> {
        let closed_ns = self.opened.unwrap_or(self.stop).signed_since(self.start).as_nanos();
        let (is_break, why) = match self.opened {
            Some(_) => {
                let why = format!("the connection was not open for {:.1} s", closed_ns as f64 / 1e9);
                (closed_ns >= MIN_OUTAGE_NS, why)
            }
            None => (closed_ns > 0, DID_NOT_OPEN.to_owned()),
        };
        is_break.then_some(BreakRecord { from: self.start, to: self.opened, why })
    }
}

/// Returns the outages of `flow` in the order of time. The messages of the flow were due until `stop`.
/// `is_reliable` says whether the transport repairs losses. The outages of an echo flow are those of its
/// round trips.
pub fn outages(flow: &FlowRecord, is_reliable: bool, stop: Instant) -> Vec<BreakRecord> {
    let Some(first_message) = flow.forward.messages.iter().find(|row| row.fate != Fate::Refused) else {
        return Vec::new();
    };
    let search = OutageSearch { flow, is_reliable, stop };
    let mut outages = Vec::new();
    for gap in search.gaps(first_message.due) {
        // On a long path the first delivery cannot come early, so the delay of the path is no part of the
        // gap.
        let path_delay_ns = if gap.from == first_message.due { search.smallest_delay_ns() } else { 0 };
        let gap_ns = gap.end(stop).signed_since(gap.from).as_nanos() - path_delay_ns;
        if gap_ns >= MIN_OUTAGE_NS {
            outages.extend(search.outage_in(gap));
        }
    }
    outages
}

/// A time without deliveries.
#[derive(Clone, Copy)]
struct Gap {
    from: Instant,
    /// The time of the next delivery. `None` if there was none before the run ended.
    to: Option<Instant>,
}

impl Gap {
    /// Returns the end of the gap. A gap without a delivery at its end ends at `stop`.
    fn end(self, stop: Instant) -> Instant {
        self.to.unwrap_or(stop)
    }
}

struct OutageSearch<'a> {
    flow: &'a FlowRecord,
    is_reliable: bool,
    /// The time until which messages were due.
    stop: Instant,
}

impl OutageSearch<'_> {
    /// Returns all gaps, long and short: from `first_due` to the first delivery, between two deliveries, and
    /// after the last delivery.
    fn gaps(&self, first_due: Instant) -> Vec<Gap> {
        let last_leg = self.flow.echo.as_ref().unwrap_or(&self.flow.forward);
        let mut deliveries: Vec<Instant> = last_leg.deliveries().map(|(at, _)| at).collect();
        deliveries.sort_unstable();
        let mut gaps = Vec::with_capacity(deliveries.len() + 1);
        let mut from = first_due;
        for delivery in deliveries {
            gaps.push(Gap { from, to: Some(delivery) });
            from = delivery;
        }
        gaps.push(Gap { from, to: None });
        gaps
    }

    /// Returns the smallest delay of a delivered message, or of a round trip if the flow has an echo, in ns.
    /// If the two ends read different clocks, the difference is in the delay, and it is in the gap before the
    /// first delivery as well.
    fn smallest_delay_ns(&self) -> i64 {
        let last_leg = self.flow.echo.as_ref().unwrap_or(&self.flow.forward);
        let delays = last_leg.messages.iter().filter_map(|row| {
            let sent = find_message(&self.flow.forward.messages, row.seq)?;
            Some(row.received?.signed_since(sent.due).as_nanos())
        });
        delays.min().unwrap_or(0)
    }

    /// Returns the outage in `gap`. Returns `None` if too few messages should have been delivered in it.
    fn outage_in(&self, gap: Gap) -> Option<BreakRecord> {
        let rows = &self.flow.forward.messages;
        // A message that is due shortly before the gap ends is no sign of an outage.
        let last_due =
            Instant::from_nanos(gap.end(self.stop).as_nanos().saturating_sub(MIN_OUTAGE.as_nanos()));
        // A stream delivers in order, so a message that waits may have been due long before the gap. A
        // datagram that was due before the gap was lost by itself.
        let begin = if self.is_reliable { 0 } else { rows.partition_point(|row| row.due <= gap.from) };
        let end = rows.partition_point(|row| row.due <= last_due);

        let mut affected_messages = 0;
        let mut first_due = None;
        for row in rows.get(begin..end)?.iter().rev() {
            let is_affected = self.arrives_after(row, gap.from);
            if self.is_reliable && !is_affected {
                // The messages before this one arrived earlier.
                break;
            }
            if is_affected && row.fate != Fate::Refused {
                affected_messages += 1;
                first_due = Some(row.due);
            }
        }
        let min_messages = if self.is_reliable { 1 } else { MIN_LOST_DATAGRAMS };
        if affected_messages < min_messages {
            return None;
        }
        let from = gap.from.max(first_due?);
        let why = match gap.to {
            Some(to) => format!("nothing came for {:.1} s", to.signed_since(from).as_nanos() as f64 / 1e9),
            None => "nothing came any more".to_owned(),
        };
        Some(BreakRecord { from, to: gap.to, why })
    }

    /// Returns whether a message, or its echo, arrived after `at` or never.
    fn arrives_after(&self, row: &MessageRecord, at: Instant) -> bool {
        let received = match &self.flow.echo {
            None => row.received,
            Some(echo) => find_message(&echo.messages, row.seq).and_then(|back| back.received),
        };
        received.is_none_or(|received| received > at)
    }
}

/// Returns the message with the number `seq`. The messages are in the order of their numbers.
fn find_message(messages: &[MessageRecord], seq: u64) -> Option<&MessageRecord> {
    let index = messages.partition_point(|row| row.seq < seq);
    messages.get(index).filter(|row| row.seq == seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flow;

    /// Makes a flow of a message every 20 ms, each of which takes 1 ms. The messages in `lost` are missing.
    fn call(lost: core::ops::Range<u64>) -> FlowRecord {
        flow(&(0..250).map(|seq| (!lost.contains(&seq)).then_some(1)).collect::<Vec<_>>())
    }

    #[test]
    fn two_seconds_of_loss_are_one_break_from_the_first_lost_message_to_the_next_arrival() {
        let stop = Instant::from_secs(5);
        let breaks = outages(&call(100..200), false, stop);
        assert_eq!(breaks.len(), 1, "{breaks:?}");
        assert_eq!(breaks[0].from, Instant::from_millis(2000));
        assert_eq!(breaks[0].to, Some(Instant::from_millis(4001)));
        assert!(breaks[0].why.contains("for 2.0 s"), "{}", breaks[0].why);
        assert_eq!(outages(&call(100..140), false, stop), [], "0.8 s");
        assert_eq!(outages(&call(0..0), false, stop), []);
    }

    #[test]
    fn a_path_of_more_than_a_second_begins_with_no_break() {
        let stop = Instant::from_secs(5);
        let far = |first: u64| flow(&(0..200).map(|seq| (seq >= first).then_some(1_300)).collect::<Vec<_>>());
        assert_eq!(outages(&far(0), false, stop), []);
        let breaks = outages(&far(60), false, stop);
        assert_eq!((breaks.len(), breaks[0].from), (1, Instant::from_millis(20)), "{breaks:?}");
    }

    #[test]
    fn a_stall_after_which_every_datagram_comes_late_is_a_break_too() {
        let held = |seq: u64| (100..200).contains(&seq).then(|| 4_000 - 20 * seq);
        let stalled = flow(&(0..250).map(|seq| Some(held(seq).unwrap_or(1))).collect::<Vec<_>>());
        let breaks = outages(&stalled, false, Instant::from_secs(5));
        assert_eq!(breaks.len(), 1, "{breaks:?}");
        assert_eq!(breaks[0].from, Instant::from_millis(2000));
        assert_eq!(breaks[0].to, Some(Instant::from_millis(4000)));
    }

    #[test]
    fn messages_that_never_left_are_a_break_from_the_first_of_them_on() {
        let unsent = |fate: Fate| {
            let mut flow = call(100..200);
            for row in &mut flow.forward.messages[100..200] {
                (row.fate, row.sent) = (fate, None);
            }
            flow
        };
        let stop = Instant::from_secs(5);
        for fate in [Fate::NoNetwork, Fate::NotOpen] {
            for is_reliable in [false, true] {
                let breaks = outages(&unsent(fate), is_reliable, stop);
                assert_eq!((breaks.len(), breaks[0].from), (1, Instant::from_millis(2000)), "{breaks:?}");
            }
        }
        assert_eq!(outages(&unsent(Fate::Refused), false, stop), [], "the transport had no room");
    }

    #[test]
    fn a_connection_that_opens_a_second_late_or_never_is_a_break_from_the_start_on() {
        let (start, stop) = (Instant::from_secs(2), Instant::from_secs(9));
        let opened_at = |ms| Opening { start, opened: Some(Instant::from_millis(ms)), stop }.as_break();
        assert_eq!(opened_at(2999), None);
        let found = opened_at(3100).unwrap();
        assert_eq!((found.from, found.to), (start, Some(Instant::from_millis(3100))));
        assert_eq!(found.why, "the connection was not open for 1.1 s");
        let never = Opening { start, opened: None, stop }.as_break().unwrap();
        assert_eq!((never.from, never.to), (start, None));
    }

    #[test]
    fn a_break_to_the_end_has_no_end() {
        let breaks = outages(&call(100..250), false, Instant::from_secs(5));
        assert_eq!(breaks.len(), 1, "{breaks:?}");
        assert_eq!((breaks[0].from, breaks[0].to), (Instant::from_millis(2000), None));
    }
}
