//! When a flow over real sockets delivered nothing although it should have: an outage of the path, or the end
//! of its connection.
//!
//! ```text
//!  due        |  |  |  |  |  |  |  |  |  |  |
//!  delivered  |  |  |                 ||||  |
//!                   └── the break ────┘         at least OUTAGE long
//! ```
//!
//! Of a transport that repairs losses, one message that waits is enough. Of any other, several must be lost
//! or come only after the break: the listener hears silence in both cases. A single loss is no outage,
//! however seldom messages are due. Left out: outages shorter than `OUTAGE`; gaps and bursts of losses are
//! figures of their own.

use talkpath_units::{Duration, Instant};

use crate::{BreakRecord, Fate, FlowRecord};

/// The break of a flow on a clock that began at `start` and whose connection was `opened` then, if ever:
/// what was due before was never sent. Messages were due until `stop`.
pub fn opening(start: Instant, opened: Option<Instant>, stop: Instant) -> Option<BreakRecord> {
    let waited = opened.unwrap_or(stop).signed_since(start).as_nanos();
    let why = match opened {
        Some(_) => format!("the connection was not open for {:.1} s", waited as f64 / 1e9),
        None => "the connection did not open".to_owned(),
    };
    let is_break = waited >= if opened.is_some() { OUTAGE_NS } else { 1 };
    is_break.then_some(BreakRecord { from: start, to: opened, why })
}

/// The outages of `flow`, whose messages were due until `stop`, in order of time. An echo flow's are those of
/// its round trips.
pub fn outages(flow: &FlowRecord, is_reliable: bool, stop: Instant) -> Vec<BreakRecord> {
    let back = flow.echo.as_ref().unwrap_or(&flow.forward);
    let mut delivered: Vec<Instant> = back.deliveries().map(|(at, _)| at).collect();
    delivered.sort_unstable();
    let Some(first) = flow.forward.messages.iter().find(|row| row.fate != Fate::Refused) else {
        return Vec::new();
    };
    let begins = core::iter::once(first.due).chain(delivered.iter().copied());
    let ends = delivered.iter().copied().map(Some).chain([None]);
    let is_long = |from: Instant, to: Option<Instant>| {
        // On a long path the first message is no earlier there.
        let least = if from == first.due { least_delay_ns(flow) } else { 0 };
        to.unwrap_or(stop).signed_since(from).as_nanos() - least >= OUTAGE_NS
    };
    let pairs = begins.zip(ends).filter(|(from, to)| is_long(*from, *to));
    pairs.filter_map(|(from, to)| outage(flow, is_reliable, from, to, stop)).collect()
}

/// The smallest delay of what was delivered, of an echo flow that of its round trips, in ns. What two clocks
/// differ by is in it, as it is in the gap before the first delivery.
fn least_delay_ns(flow: &FlowRecord) -> i64 {
    let rows = &flow.forward.messages;
    let back = flow.echo.as_ref().unwrap_or(&flow.forward);
    let delays = back.messages.iter().filter_map(|row| {
        let at = rows.partition_point(|sent| sent.seq < row.seq);
        let sent = rows.get(at).filter(|sent| sent.seq == row.seq)?;
        Some(row.received?.signed_since(sent.due).as_nanos())
    });
    delays.min().unwrap_or(0)
}

/// The break between two deliveries, if messages were to be delivered.
fn outage(
    flow: &FlowRecord,
    is_reliable: bool,
    from: Instant,
    to: Option<Instant>,
    stop: Instant,
) -> Option<BreakRecord> {
    let until = Instant::from_nanos(to.unwrap_or(stop).as_nanos().saturating_sub(OUTAGE.as_nanos()));
    let rows = &flow.forward.messages;
    let waits = |seq: u64, received: Option<Instant>| match &flow.echo {
        None => received.is_none_or(|at| at > from),
        Some(echo) => {
            let index = echo.messages.partition_point(|row| row.seq < seq);
            let back = echo.messages.get(index).filter(|row| row.seq == seq);
            back.and_then(|row| row.received).is_none_or(|at| at > from)
        }
    };
    // A stream delivers in order: who waits may have been due long before. Datagrams that were due before are
    // lost for themselves.
    let begin = if is_reliable { 0 } else { rows.partition_point(|row| row.due <= from) };
    let end = rows.partition_point(|row| row.due <= until);
    let mut waiting = rows
        .get(begin..end)?
        .iter()
        .rev()
        .take_while(|row| !is_reliable || waits(row.seq, row.received))
        .filter(|row| row.fate != Fate::Refused && waits(row.seq, row.received));
    let needed = if is_reliable { 1 } else { MISSED };
    let earliest = waiting.by_ref().enumerate().map(|(index, row)| (index + 1, row.due)).last();
    let (_, due) = earliest.filter(|&(count, _)| count >= needed)?;
    let from = from.max(due);
    let why = match to {
        Some(to) => format!("nothing came for {:.1} s", to.signed_since(from).as_nanos() as f64 / 1e9),
        None => "nothing came any more".to_owned(),
    };
    Some(BreakRecord { from, to, why })
}

/// The shortest outage that is listed: the second of a "severely errored second" (ITU-T G.826 §4.2).
const OUTAGE: Duration = Duration::from_secs(1);
const OUTAGE_NS: i64 = OUTAGE.as_nanos() as i64;
/// Datagrams that an outage loses, or holds back for [`OUTAGE`] or longer, at least (chosen: at 20 % random
/// loss, five in a row are lost once in 3,000).
const MISSED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flow;

    /// 20 ms apart, 1 ms on the way, those in `lost` missing.
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
        let late = |ms| opening(start, Some(Instant::from_millis(ms)), stop);
        assert_eq!(late(2999), None);
        let found = late(3100).unwrap();
        assert_eq!((found.from, found.to), (start, Some(Instant::from_millis(3100))));
        assert_eq!(found.why, "the connection was not open for 1.1 s");
        let never = opening(start, None, stop).unwrap();
        assert_eq!((never.from, never.to), (start, None));
    }

    #[test]
    fn a_break_to_the_end_has_no_end() {
        let breaks = outages(&call(100..250), false, Instant::from_secs(5));
        assert_eq!(breaks.len(), 1, "{breaks:?}");
        assert_eq!((breaks[0].from, breaks[0].to), (Instant::from_millis(2000), None));
    }
}
