//! What whole runs are judged by: calls in both directions, copies, deadlines, states.

use std::collections::BTreeMap;

use crate::common;
use talkpath_measure::judge::judge;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::{Basis, CallSummary, Direction, JudgedBy, RunSummary};
use talkpath_measure::{Fate, MessageRecord, RunRecord};
use talkpath_units::Instant;

/// Flows on a line of 1 and 8 Mbps whose uplink has 64 kB of queue, as [`judged_beside`] has it.
const LINE: &str = r#"
    duration = "20 s"
    [path]
    up = { rate = "1 Mbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "64 kB" } }
    down = { rate = "8 Mbps", delay = "20 ms" }
"#;

const UPLOAD: &str = "[flow.upload]\ntransport = \"tcp\"\nworkload = \"bulk\"\nstart = \"1 s\"\n";

fn run(flows: &str) -> (RunRecord, RunSummary) {
    let record = common::run(&format!("{LINE}{flows}"));
    let summary = summarise(&record, &BTreeMap::new());
    (record, summary)
}

fn rows<'a>(record: &'a RunRecord, name: &str) -> &'a [MessageRecord] {
    &record.flows.iter().find(|flow| flow.info.name == name).expect("the flow ran").forward.messages
}

fn call<'a>(run: &'a RunSummary, name: &str) -> &'a CallSummary {
    run.flows[name].call.as_ref().expect("a call was rated")
}

#[test]
fn a_call_both_ways_beside_an_upload_is_as_bad_as_its_way_up() {
    // Nagle's algorithm is left out: it waits for acknowledgements, so that the way down is as bad.
    for transport in ["udp", "tcp-nodelay"] {
        let flow =
            format!("[flow.call]\ntransport = \"{transport}\"\nworkload = \"voice\"\ndirection = \"both\"\n");
        let (_, run) = run(&format!("{flow}{UPLOAD}"));
        let judged = judge(&run, "call").expect("it is judged");
        assert_eq!((judged.by, judged.worst_flow.as_str()), (JudgedBy::Mos, "call-up"), "{transport}");
        let (up, down) = (call(&run, "call-up").score().unwrap(), call(&run, "call-down").score().unwrap());
        assert_eq!(judged.worst.to_bits(), up.to_bits());
        assert!(!judged.is_usable() && down > 4.0, "{transport}: {up} up and {down} down");
    }
}

#[test]
fn an_echo_call_beside_an_upload_says_that_its_way_up_is_the_worse_one() {
    let flow = |direction: &str| {
        format!(
            "[flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\", echo = true }}\n\
             direction = \"{direction}\"\n{UPLOAD}"
        )
    };
    for (direction, worse) in [("up", Direction::Forward), ("down", Direction::Return)] {
        let (_, run) = run(&flow(direction));
        let judged = judge(&run, "call").expect("it is judged");
        assert_eq!((judged.basis, judged.direction), (Basis::OneWay, Some(worse)));
        assert!(!judged.is_usable(), "{judged:?}");
    }
}

/// Over a stream nothing is missing: what a retransmission held up is late.
#[test]
fn a_frame_that_comes_after_its_playout_time_is_late_whatever_carries_it() {
    for transport in ["udp", "tcp", "tcp-nodelay", "dccp-ccid2"] {
        let lossy = LINE.replace("delay = \"20 ms\", queue", "delay = \"20 ms\", loss = 0.03, queue");
        let flow = format!(
            "[flow.call]\ntransport = \"{transport}\"\nworkload = {{ kind = \"voice\", playout = \"ramjee\" }}\ndue = \"opening\"\n"
        );
        let record = common::run(&format!("{lossy}{flow}"));
        let run = summarise(&record, &BTreeMap::new());
        let heard = call(&run, "call");
        let due = rows(&record, "call").len() as u64;
        assert_eq!(heard.played + heard.late + heard.missing, due, "{transport}");
        let arrived = rows(&record, "call").iter().filter(|row| row.fate == Fate::Delivered).count() as u64;
        assert_eq!(heard.missing, due - arrived, "{transport}");
        match transport {
            "udp" => assert!(heard.late == 0 && heard.missing > 10, "{heard:?}"),
            "dccp-ccid2" => assert!(heard.missing > 10, "{heard:?}"),
            _ => assert!(heard.late > 10 && heard.missing == 0, "{transport}: {heard:?}"),
        }
        assert!(heard.score().unwrap() < 4.2, "{transport}: {heard:?}");
    }
}

#[test]
fn of_five_calls_the_median_and_the_worst_are_judged() {
    let flow = "[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\ncount = 5\n";
    let up = LINE.replace("delay = \"20 ms\", queue", "delay = \"20 ms\", loss = 0.02, queue");
    let run = summarise(&common::run(&format!("{up}{flow}")), &BTreeMap::new());
    let judged = judge(&run, "call").expect("they are judged");
    let mut scores: Vec<_> =
        (1..=5).map(|copy| call(&run, &format!("call-{copy}")).score().unwrap()).collect();
    scores.sort_by(f64::total_cmp);
    assert_eq!((judged.worst, judged.median), (scores[0], scores[2]));
    assert_eq!(call(&run, &judged.worst_flow).score().unwrap().to_bits(), scores[0].to_bits());
    assert!(scores[0] < scores[2] && scores[2] < scores[4], "chance makes them differ: {scores:?}");
}

/// Counted here anew, row by row, without the metrics.
#[test]
fn the_share_in_time_and_the_age_of_the_newest_state_are_those_of_the_rows() {
    for transport in ["udp", "tcp", "tcp-nodelay"] {
        let flow = format!(
            "[flow.state]\ntransport = \"{transport}\"\n\
             workload = {{ kind = \"cbr\", message_rate = \"60 Hz\", size = \"100 B\", deadline = \"100 ms\", state = true, floor = 0.8 }}\n"
        );
        let (record, run) = run(&format!("{flow}{UPLOAD}"));
        let rows = rows(&record, "state");
        // 60 a second, from when the connection is open.
        assert!((1_190..=1_200).contains(&rows.len()), "{}", rows.len());
        let arrival = |row: &MessageRecord| row.received.filter(|_| row.fate == Fate::Delivered);
        let in_time = rows
            .iter()
            .filter(|row| arrival(row).is_some_and(|at| at.as_nanos() - row.due.as_nanos() <= 100_000_000));
        let share = in_time.count() as f64 / rows.len() as f64;
        let judged = judge(&run, "state").expect("it is judged");
        assert_eq!((judged.by, judged.floor, judged.worst), (JudgedBy::InTime, 0.8, share), "{transport}");
        assert!(share > 0.01 && share < 0.9, "the upload makes most late: {share}");

        let newest = |tick: Instant| {
            let there = rows.iter().filter(|row| arrival(row).is_some_and(|at| at <= tick));
            there.map(|row| row.due).max()
        };
        let ages = rows.iter().filter_map(|row| Some(row.due.as_nanos() - newest(row.due)?.as_nanos()));
        let mut ages: Vec<_> = ages.collect();
        ages.sort_unstable();
        let at = |percent: usize| ages[(ages.len() * percent).div_ceil(100) - 1] as f64 / 1e6;
        let figures = run.flows["state"].state_age_ms.as_ref().expect("states came");
        assert_eq!((figures.p50, figures.p99), (at(50), at(99)), "{transport}");
        assert!(figures.p99 > 200.0, "{figures:?}");
    }
}
