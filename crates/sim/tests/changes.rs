//! Whole runs over paths that change: the frames of a call around a change can be reckoned by hand.

use crate::common;
use talkpath_measure::summarise::summarise;
use talkpath_measure::{Fate, MessageRecord, RunRecord};
use talkpath_units::Instant;

/// A call over 1 Mb/s and 20 ms: a frame of 160 B in a packet of 200 B, 1.6 ms on the wire.
fn run(changes: &str) -> RunRecord {
    common::run(&format!(
        "name = \"a\"\nduration = \"10 s\"\n\
         [path]\nup = {{ rate = \"1 Mbps\", delay = \"20 ms\" }}\ndown = {{ rate = \"1 Mbps\", delay = \"20 ms\" }}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n{changes}"
    ))
}

/// The frames that are due in these milliseconds.
fn due(record: &RunRecord, from: u64, to: u64) -> impl Iterator<Item = &MessageRecord> {
    let within =
        move |row: &&MessageRecord| (Instant::from_millis(from)..Instant::from_millis(to)).contains(&row.due);
    record.flows[0].forward.messages.iter().filter(within)
}

fn delays(record: &RunRecord, from: u64, to: u64) -> Vec<f64> {
    let delay = |row: &MessageRecord| Some(row.received?.since(row.due).as_millis_f64());
    due(record, from, to).filter_map(delay).collect()
}

#[test]
fn without_changes_each_frame_takes_the_same_time() {
    let delays = delays(&run(""), 0, 10_000);
    assert!(delays.len() > 490 && delays.iter().all(|delay| *delay == delays[0]), "{delays:?}");
}

#[test]
fn a_longer_delay_holds_from_its_time_on() {
    let record = run("[[change]]\nat = \"5 s\"\ndelay = \"38 ms\"\n");
    let (before, after) = (delays(&record, 0, 4_980), delays(&record, 5_020, 10_000));
    assert!(before.iter().all(|delay| *delay == before[0]));
    assert!(after.iter().all(|delay| (*delay - before[0] - 18.0).abs() < 1e-9), "{before:?} {after:?}");
}

#[test]
fn after_an_outage_the_frames_that_waited_come_at_once_and_those_that_were_dropped_do_not() {
    let kept = run("[[change]]\nlink = \"up\"\nat = \"5 s\"\noutage = \"500 ms\"\n");
    let late = delays(&kept, 4_990, 5_500);
    assert!(late.len() >= 25 && late.iter().all(|delay| *delay > 21.0), "{late:?}");
    // The first one waits for the whole outage, less at most one frame's time.
    assert!((500.0..=522.0).contains(&late[0]) || (480.0..=522.0).contains(&late[1]), "{late:?}");
    assert_eq!(delays(&kept, 6_000, 10_000).len(), due(&kept, 6_000, 10_000).count());
    let dropped = run("[[change]]\nlink = \"up\"\nat = \"5 s\"\noutage = \"500 ms\"\nwaiting = \"drop\"\n");
    let gone = due(&dropped, 5_000, 5_500).filter(|row| row.fate != Fate::Delivered).count();
    assert!((24..=26).contains(&gone), "{gone}");
    assert_eq!(summarise(&dropped, &Default::default()).links["up"].dropped, gone as u64);
}

#[test]
fn a_run_with_a_random_phase_is_repeated_exactly_and_ends() {
    let text = "[[change]]\nevery = \"1 s\"\nphase = \"random\"\noutage = \"100 ms\"\n";
    let (one, other) = (delays(&run(text), 0, 10_000), delays(&run(text), 0, 10_000));
    assert_eq!(one, other);
    assert!(one.iter().filter(|delay| **delay > 50.0).count() > 20, "{one:?}");
}
