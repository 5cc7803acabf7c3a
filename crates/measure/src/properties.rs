//! What holds for every run, whatever happened in it.

use proptest::collection::vec;
use proptest::prelude::*;
use talkpath_units::{Bytes, Duration, Instant};

use crate::record_file::{
    merge_packets, packet_rows, read_packets, read_series, series_rows, write_packets, write_series,
};
use crate::summarise::summarise_flow;
use crate::summary::{Direction, FlowSummary, Ledger};
use crate::testing::{flow_of, leg, run};
use crate::{
    CallTerms, Carriage, Codec, DropCause, Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, PlayoutRule,
    RunRecord, Series, SeriesKind, SeriesTap, Terms, chart_data,
};

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Delivered),
        2 => Just(Fate::Missing),
        1 => Just(Fate::Unfinished),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Expired),
        1 => Just(Fate::NoNetwork),
        1 => Just(Fate::NotOpen),
    ]
}

fn some_instant() -> impl Strategy<Value = Option<Instant>> {
    proptest::option::of((0..i64::MAX as u64).prop_map(Instant::from_nanos))
}

fn drop_cause() -> impl Strategy<Value = Option<DropCause>> {
    const CAUSES: &[DropCause] =
        &[DropCause::Queue, DropCause::Aqm, DropCause::Loss, DropCause::Fragment, DropCause::SocketBuffer];
    proptest::option::of(proptest::sample::select(CAUSES))
}

/// One message of a leg, its `seq` still to be given.
fn any_message() -> impl Strategy<Value = MessageRecord> {
    let stamps = (0..4_000_000_000_u64, 0..400_000_000_u64, some_instant(), some_instant());
    (fate(), stamps, 0..70_000_u64, 1..4_u32, drop_cause()).prop_map(
        |(fate, (due, delay, sent, wire), size, copies, drop_cause)| {
            let delivered = fate == Fate::Delivered;
            MessageRecord {
                seq: 0,
                size: Bytes::new(size),
                due: Instant::from_nanos(due),
                sent,
                wire,
                received: delivered.then(|| Instant::from_nanos(due + delay)),
                fate,
                drop_cause: drop_cause.filter(|_| !delivered),
                copies: if delivered { copies } else { 0 },
                transmissions: copies,
            }
        },
    )
}

/// A leg whose numbers may have gaps, as an echo's do.
fn any_leg() -> impl Strategy<Value = LegRecord> {
    vec((any_message(), 1..3_u64), 0..60).prop_map(|rows| {
        let mut seq = 0;
        let number = |(row, step): (MessageRecord, u64)| {
            seq += step;
            MessageRecord { seq, ..row }
        };
        leg(rows.into_iter().map(number).collect())
    })
}

fn any_flow() -> impl Strategy<Value = FlowRecord> {
    (any_leg(), proptest::option::of(any_leg()), any::<bool>(), any::<bool>()).prop_map(
        |(forward, echo, bounded, clock_trusted)| {
            let mut flow = flow_of(forward);
            flow.echo = echo;
            (flow.info.bounded, flow.info.clock_trusted) = (bounded, clock_trusted);
            flow
        },
    )
}

fn any_call() -> impl Strategy<Value = CallTerms> {
    let fixed = (0..500_u64).prop_map(|ms| PlayoutRule::Fixed(Duration::from_millis(ms)));
    let playout = prop_oneof![Just(PlayoutRule::Adaptive), Just(PlayoutRule::Ramjee), fixed];
    (playout, 1..200_u64, any::<bool>(), any::<bool>()).prop_map(|(playout, ms, is_concealed, others)| {
        CallTerms {
            codec: Codec::G711,
            rated: Codec::G711.rated(is_concealed),
            frame: Duration::from_millis(ms),
            carriage: Carriage::default(),
            playout,
            is_concealed,
            others,
        }
    })
}

fn any_run() -> impl Strategy<Value = RunRecord> {
    let points = vec((0..1_000_u64, -1e9..1e9_f64), 0..50).prop_map(|steps| {
        let mut at = 0;
        let step = |(step, value): (u64, f64)| {
            at += step;
            (Instant::from_nanos(at), value)
        };
        steps.into_iter().map(step).collect()
    });
    let series =
        points.prop_map(|points| Series { entity: "up".to_owned(), kind: SeriesKind::Queue, points });
    (vec(any_flow(), 0..3), vec(series, 0..2), 0..9_u64, 0..9_u64).prop_map(
        |(mut flows, series, cell, repetition)| {
            for (number, flow) in flows.iter_mut().enumerate() {
                flow.info.name = format!("flow-{number}");
            }
            RunRecord { series, cell, repetition, ..run(flows) }
        },
    )
}

fn figures_of(flow: &FlowRecord) -> FlowSummary {
    summarise_flow(flow, &(Instant::from_millis(500)..Instant::from_millis(3_500)))
}

fn end_leg(flow: &mut FlowRecord) -> &mut LegRecord {
    flow.echo.as_mut().unwrap_or(&mut flow.forward)
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    #[test]
    fn every_sent_message_is_received_lost_or_unfinished(flow in any_flow()) {
        let figures = figures_of(&flow);
        prop_assert_eq!(figures.sent, figures.received + figures.lost + figures.unfinished);
        let ledger = figures.ledger.unwrap();
        prop_assert_eq!(ledger.due, figures.sent + figures.refused);
        let Ledger { due, delivered, expired, refused, no_network, not_open, missing, unfinished } = ledger;
        prop_assert_eq!(due, delivered + expired + refused + no_network + not_open + missing + unfinished);
        prop_assert_eq!(figures.lost, expired + no_network + not_open + missing);
        let split = figures.lost_forward.unwrap_or(0) + figures.lost_return.unwrap_or(0);
        prop_assert_eq!(figures.lost, split);
        let in_runs: u64 = (1..).zip(&figures.loss_runs.histogram).map(|(length, count)| length * count).sum();
        prop_assert_eq!(figures.lost, in_runs);
        prop_assert!(figures.reordered <= figures.received.saturating_sub(1));
    }

    /// Whatever became of a frame, and however its receiver plays.
    #[test]
    fn played_late_and_missing_are_all_the_frames_that_were_due(flow in any_flow(), call in any_call()) {
        let flow = FlowRecord { info: FlowInfo { terms: Terms { call: Some(call), ..flow.info.terms }, ..flow.info }, ..flow };
        let figures = figures_of(&flow);
        let counted = |row: &&MessageRecord| (500_000_000..3_500_000_000).contains(&row.due.as_nanos());
        let wanted: Vec<_> = flow.forward.messages.iter().filter(counted).collect();
        prop_assert_eq!(wanted.len() as u64, figures.sent + figures.refused);
        let Some(heard) = figures.call else {
            prop_assert!(wanted.is_empty() || flow.echo.is_none() && !flow.info.clock_trusted);
            return Ok(());
        };
        let echoes = flow.echo.iter().flat_map(|echo| &echo.messages);
        // Of an echo flow's way back a frame is due once its echo was written.
        let due = match heard.direction {
            Some(Direction::Return) => echoes.filter(|back| wanted.iter().any(|row| row.seq == back.seq)).count(),
            Some(Direction::Forward) | None => wanted.len(),
        };
        prop_assert_eq!(heard.played + heard.late + heard.missing, due as u64);
        if heard.direction == Some(Direction::Forward) {
            let arrived = wanted.iter().filter(|row| row.fate == Fate::Delivered).count() as u64;
            prop_assert_eq!(heard.played + heard.late, arrived);
        }
    }

    #[test]
    fn the_order_of_arrival_moves_reordering_and_rtp_jitter_alone(flow in any_flow(), swaps in vec((0..60_usize, 0..60_usize), 0..60)) {
        let mut shuffled = flow.clone();
        let arrivals = &mut end_leg(&mut shuffled).arrivals;
        for (a, b) in swaps {
            if a.max(b) < arrivals.len() {
                arrivals.swap(a, b);
            }
        }
        let expected = figures_of(&flow);
        let mut figures = figures_of(&shuffled);
        (figures.reordered, figures.rtp_jitter_ms) = (expected.reordered, expected.rtp_jitter_ms);
        figures.rtp_stream = expected.rtp_stream;
        prop_assert_eq!(figures, expected);
    }

    #[test]
    fn duplicates_move_nothing_but_their_own_count(flow in any_flow(), extra in vec((0..60_usize, 0..90_usize), 0..20)) {
        let mut doubled = flow.clone();
        let end = end_leg(&mut doubled);
        for (which, place) in extra {
            let delivered: Vec<_> = (0..end.messages.len()).filter(|&row| end.messages[row].copies > 0).collect();
            if let Some(&row) = delivered.get(which) {
                let seq = end.messages[row].seq;
                let first = end.arrivals.iter().position(|&arrived| arrived == seq).unwrap();
                end.messages[row].copies += 1;
                end.arrivals.insert((first + 1 + place).min(end.arrivals.len()), seq);
            }
        }
        let mut figures = figures_of(&doubled);
        let expected = figures_of(&flow);
        prop_assert!(figures.duplicates >= expected.duplicates);
        figures.duplicates = expected.duplicates;
        prop_assert_eq!(figures, expected);
    }

    #[test]
    fn percentiles_ascend_between_the_extremes(flow in any_flow()) {
        let figures = figures_of(&flow);
        for delay in [figures.one_way_delay_ms, figures.round_trip_delay_ms].into_iter().flatten() {
            let line = [delay.min, delay.p50, delay.p90, delay.p95, delay.p99, delay.p999, delay.max];
            prop_assert!(line.is_sorted(), "{:?}", line);
            prop_assert!(delay.min <= delay.mean && delay.mean <= delay.max);
        }
    }

    #[test]
    fn record_files_give_back_what_was_written(record in any_run()) {
        let (mut packets, mut series, mut again) = (Vec::new(), Vec::new(), Vec::new());
        write_packets(&record, &mut packets).unwrap();
        write_packets(&record, &mut again).unwrap();
        write_series(&record, &mut series).unwrap();
        prop_assert_eq!(&again, &packets);
        let mut merged = Vec::new();
        merge_packets([Ok(bytes::Bytes::from(again))], &mut merged).unwrap();
        for file in [packets, merged] {
            let rows = read_packets(bytes::Bytes::from(file)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
            prop_assert_eq!(rows, packet_rows(&record).collect::<Vec<_>>());
        }
        let rows = read_series(bytes::Bytes::from(series)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        prop_assert_eq!(rows, series_rows(&record).collect::<Vec<_>>());
    }

    #[test]
    fn figures_are_finite_and_within_their_bounds(record in any_run()) {
        for flow in chart_data::cell_chart_data(&record, "").flows {
            prop_assert!(flow.ccdf.len() <= 400 && flow.delay.len() <= 1_500 && flow.losses.len() <= 1_500);
            prop_assert!(flow.ccdf.is_sorted_by(|a, b| a.0 <= b.0 && a.1 > b.1), "{:?}", flow.ccdf);
            prop_assert!(flow.ccdf.iter().all(|&(delay, share)| delay.is_finite() && (0.0..1.0).contains(&share)));
        }
    }

    #[test]
    fn a_series_stays_in_its_bounds_and_keeps_its_extremes(steps in vec((0..5_000_u64, 0..9_u32), 1..900), limit in 16..80_usize) {
        let mut tap = SeriesTap::with_limit("up", SeriesKind::Queue, limit);
        let (mut at, mut held) = (0, Vec::<(Instant, f64)>::new());
        for (step, value) in steps {
            at += step;
            let (now, value) = (Instant::from_nanos(at), f64::from(value));
            tap.push(value, now);
            if held.last().is_some_and(|last| last.0 == now) {
                held.pop();
            }
            held.push((now, value));
        }
        let points = tap.finish().points;
        prop_assert!(points.len() <= limit, "{} of {}", points.len(), limit);
        prop_assert!(points.is_sorted_by(|a, b| a.0 < b.0));
        let most = |points: &[(Instant, f64)]| points.iter().map(|point| point.1).fold(f64::MIN, f64::max);
        let least = |points: &[(Instant, f64)]| points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
        prop_assert_eq!((least(&points), most(&points)), (least(&held), most(&held)));
        prop_assert_eq!(points.last().map(|point| point.1), held.last().map(|point| point.1));
        prop_assert!(points.iter().all(|point| held.contains(point)));
    }
}
