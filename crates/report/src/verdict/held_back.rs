//! Says what held messages back at their sender, or behind lost data: a table from symptoms to sentences.
//!
//! A transport shows a symptom if its messages waited long for one thing. The wait counts if it is at least
//! 10 ms, and at least a quarter of the delay of the same quantile: a shorter wait does not decide how a flow
//! fares. The 90th percentile is looked at first, and then the 99th, for what befalls few messages.
//!
//! | symptom (`waits` in summary.json) | words |
//! | --- | --- |
//! | `for_room_ms` | for room in the send buffer |
//! | `in_transport_ms`, and most of `held_ms` is `congestion_window` | for the congestion window |
//! | the same, `receiver_window` | for the receiver's window |
//! | the same, `nagle` | for an acknowledgement (Nagle's algorithm) |
//! | the same, `pacing` | for their turn by pacing |
//! | `for_lost_ms` over one stream | behind lost data (head of the line) |
//! | `for_lost_ms` over any other transport | for lost data to be sent again |
//!
//! A transfer always waits for its windows. Of a transfer only the receiver's window is named, if it held the
//! data back for a tenth of the time or more.

use talkpath_measure::summary::{FlowSummary, HeldMs, WaitMs};

use crate::metric::{DelayKind, Metric, Quantile};
use crate::view::CellView;

/// A shorter wait is not worth a sentence. Chosen: the tolerance of two delays that are as quick is 1 ms, and
/// a frame of speech has 20 ms.
const LEAST_WAIT_MS: f64 = 10.0;
/// A wait that is a smaller share of the delay is not worth a sentence. Chosen.
const LEAST_SHARE_OF_DELAY: f64 = 0.25;
/// A transfer that the receiver's window held back for a smaller share of the time has no sentence. Chosen.
const LEAST_SHARE_OF_TIME: f64 = 0.1;
/// The transports that deliver all messages of a flow in the order of one stream.
const STREAMS: [&str; 3] = ["tcp", "tcp-nodelay", "quic-stream"];

/// A row of the table.
pub(super) struct Symptom {
    /// What the messages waited for, as the end of `messages waited 34 ms`.
    pub(super) words: &'static str,
    /// Whether messages show the symptom also while no packet leaves the path for a time.
    pub(super) may_be_of_silence: bool,
    /// The waits of a flow in one repetition that show the symptom. `None` if the flow does not have it.
    waits: fn(&FlowSummary) -> Option<WaitMs>,
}

pub(super) const SYMPTOMS: [Symptom; 7] = [
    Symptom::new("for room in the send buffer", true, |flow| flow.waits.as_ref()?.for_room_ms),
    Symptom::new("for the congestion window", true, |flow| mostly(flow, |held| held.congestion_window)),
    Symptom::new("for the receiver's window", false, |flow| mostly(flow, |held| held.receiver_window)),
    Symptom::new("for an acknowledgement (Nagle's algorithm)", false, |flow| mostly(flow, |held| held.nagle)),
    Symptom::new("for their turn by pacing", false, |flow| mostly(flow, |held| held.pacing)),
    Symptom::new("behind lost data (head of the line)", true, |flow| for_lost(flow, true)),
    Symptom::new("for lost data to be sent again", true, |flow| for_lost(flow, false)),
];

/// The waits in the transport, if this cause made up most of the time in which the transport held data back.
fn mostly(flow: &FlowSummary, cause: fn(&HeldMs) -> Option<f64>) -> Option<WaitMs> {
    let waits = flow.waits.as_ref()?;
    let held = waits.held_ms?;
    let all = [held.congestion_window, held.receiver_window, held.nagle, held.pacing];
    let sum: f64 = all.into_iter().flatten().sum();
    waits.in_transport_ms.filter(|_| cause(&held).is_some_and(|time| 2.0 * time > sum))
}

fn for_lost(flow: &FlowSummary, is_stream: bool) -> Option<WaitMs> {
    flow.waits.as_ref()?.for_lost_ms.filter(|_| STREAMS.contains(&flow.transport.as_str()) == is_stream)
}

impl Symptom {
    const fn new(
        words: &'static str,
        may_be_of_silence: bool,
        waits: fn(&FlowSummary) -> Option<WaitMs>,
    ) -> Self {
        Self { words, may_be_of_silence, waits }
    }

    /// The median over the repetitions of the wait of `flow` in `cell`, in ms. Returns `None` if the wait is
    /// too short to be named.
    pub(super) fn wait_ms(&self, cell: &CellView<'_>, flow: &str, quantile: Quantile) -> Option<f64> {
        let waits = cell.runs.iter().filter_map(|run| run.flows.get(flow)).map(|figures| {
            let waits = (self.waits)(figures).unwrap_or_default();
            if quantile == Quantile::P90 { waits.p90 } else { waits.p99 }
        });
        let wait_ms = median(waits.collect())?;
        let one_way = cell.value(flow, Metric::delay(DelayKind::OneWay, quantile));
        let delay_ms = one_way.or_else(|| cell.value(flow, Metric::delay(DelayKind::RoundTrip, quantile)))?;
        (wait_ms >= LEAST_WAIT_MS && wait_ms >= LEAST_SHARE_OF_DELAY * delay_ms).then_some(wait_ms)
    }
}

/// The share of the time for which the receiver's window held a transfer back, as the median over the
/// repetitions. Returns `None` if the share is too small to be named.
pub(super) fn share_held_by_receiver(cell: &CellView<'_>, flow: &str) -> Option<f64> {
    let shares = cell.runs.iter().filter_map(|run| run.flows.get(flow)).filter_map(|figures| {
        let all_ms = figures.first_sent_to_last_received_ms?;
        let held = figures.waits.as_ref().and_then(|waits| waits.held_ms?.receiver_window);
        Some(held.unwrap_or(0.0) / all_ms)
    });
    median(shares.collect()).filter(|share| *share >= LEAST_SHARE_OF_TIME).map(|share| share.min(1.0))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::{Summary, WaitsSummary};

    use super::*;
    use crate::fixture;
    use crate::verdict::comparisons;

    const WAIT: WaitMs = WaitMs { p50: 0.0, p90: 34.0, p99: 90.0, max: 120.0 };

    /// Three transports of a call: the waits of cell 1, TCP, are `waits` in each repetition, and its delay is
    /// 80 ms at p90 and 150 ms at p99.
    fn why(waits: WaitsSummary) -> String {
        let mut summary = fixture::summary(3);
        set(&mut summary, 1, |flow| flow.waits = Some(Box::new(waits)));
        comparisons(&summary).remove(0).answer.why
    }

    fn set(summary: &mut Summary, cell: u64, change: impl Fn(&mut FlowSummary)) {
        for run in summary.runs.iter_mut().filter(|run| run.cell == cell) {
            let flow = run.flows.get_mut("call").unwrap();
            let delays = [&mut flow.one_way_delay_ms, &mut flow.round_trip_delay_ms];
            for delay in delays.into_iter().flatten() {
                (delay.p90, delay.p99) = (80.0, 150.0);
            }
            change(flow);
        }
        fixture::refresh(summary);
    }

    fn held(cause: fn(&mut HeldMs) -> &mut Option<f64>) -> WaitsSummary {
        let mut held = HeldMs { congestion_window: Some(40.0), pacing: Some(30.0), ..HeldMs::default() };
        *cause(&mut held) = Some(900.0);
        WaitsSummary { in_transport_ms: Some(WAIT), held_ms: Some(held), ..WaitsSummary::default() }
    }

    #[test]
    fn each_cause_has_its_sentence_if_it_made_messages_wait() {
        let room = WaitsSummary { for_room_ms: Some(WAIT), ..WaitsSummary::default() };
        let lost = WaitsSummary { for_lost_ms: Some(WAIT), ..WaitsSummary::default() };
        let planted = [
            (room, "for room in the send buffer"),
            (held(|held| &mut held.congestion_window), "for the congestion window"),
            (held(|held| &mut held.receiver_window), "for the receiver's window"),
            (held(|held| &mut held.nagle), "for an acknowledgement (Nagle's algorithm)"),
            (held(|held| &mut held.pacing), "for their turn by pacing"),
            (lost, "behind lost data (head of the line)"),
        ];
        for (waits, words) in planted {
            let why = why(waits);
            let sentence = format!("Messages waited 34.0 ms (TCP) {words}, at p90.");
            assert!(why.contains(&sentence), "{sentence} is not in {why}");
            assert_eq!(why.matches("Messages waited").count(), 1, "{why}");
        }
    }

    #[test]
    fn a_wait_that_is_short_or_whose_cause_is_unknown_has_no_sentence() {
        let short = WaitMs { p50: 0.0, p90: 9.0, p99: 9.0, max: 90.0 };
        let lost = |wait| WaitsSummary { for_lost_ms: Some(wait), ..WaitsSummary::default() };
        assert!(!why(lost(short)).contains("Messages waited"));
        let of_long_delay = WaitMs { p50: 0.0, p90: 19.0, p99: 37.0, max: 90.0 };
        assert!(!why(lost(of_long_delay)).contains("Messages waited"), "80 and 150 ms");
        let unknown = WaitsSummary { in_transport_ms: Some(WAIT), ..WaitsSummary::default() };
        assert!(!why(unknown).contains("Messages waited"));
        let of_two = HeldMs { nagle: Some(50.0), pacing: Some(50.0), ..HeldMs::default() };
        assert!(!why(WaitsSummary { held_ms: Some(of_two), ..unknown }).contains("Messages waited"));
        assert!(!why(WaitsSummary::default()).contains("Messages waited"));
    }

    #[test]
    fn what_befalls_few_messages_is_named_at_the_99th_percentile() {
        let seldom = WaitMs { p50: 0.0, p90: 0.0, p99: 90.0, max: 120.0 };
        let why = why(WaitsSummary { for_lost_ms: Some(seldom), ..WaitsSummary::default() });
        assert!(why.contains("waited 90.0 ms (TCP) behind lost data (head of the line), at p99."), "{why}");
    }

    #[test]
    fn messages_on_streams_of_their_own_wait_for_their_own_data_alone() {
        let mut summary = fixture::summary(3);
        set(&mut summary, 1, |flow| {
            flow.transport = "quic-stream-per-message".to_owned();
            let waits = WaitsSummary { for_lost_ms: Some(WAIT), ..WaitsSummary::default() };
            flow.waits = Some(Box::new(waits));
        });
        let why = comparisons(&summary).remove(0).answer.why;
        assert!(why.contains(" for lost data to be sent again, at p90."), "{why}");
    }
}
