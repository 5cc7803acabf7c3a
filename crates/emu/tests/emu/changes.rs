//! Paths that change during an emulated run. Each run is replayed, so the changes of the log's run and of the
//! replay come at the same instants.

use talkpath_emu::{ReplayError, replay};
use talkpath_measure::{DropCause, Fate, MessageRecord};
use talkpath_units::{Duration, Instant};

use crate::support::quiet::undisturbed;
use crate::support::{Ran, run};

/// A call of 50 messages a second over 1 Mb/s and 10 ms, for 3 s, on a path with `changes`.
fn call(changes: &str) -> Option<Ran> {
    run(&format!(
        "name = \"changes\"\nduration = \"3 s\"\n\
         [path]\nup = {{ rate = \"1 Mbps\", delay = \"10 ms\" }}\ndown = {{ rate = \"1 Mbps\", delay = \"10 ms\" }}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\", rtp = false, codec = \"g711\" }}\n{changes}"
    ))
}

/// The messages that were due between these milliseconds.
fn due(ran: &Ran, from: u64, to: u64) -> impl Iterator<Item = &MessageRecord> {
    let times = Instant::from_millis(from)..Instant::from_millis(to);
    ran.flow("call").forward.messages.iter().filter(move |row| times.contains(&row.due))
}

/// The delays of the delivered messages, in milliseconds, from the smallest to the largest.
fn delays(ran: &Ran, from: u64, to: u64) -> Vec<f64> {
    let delay = |row: &MessageRecord| Some(row.received?.since(row.due).as_millis_f64());
    let mut delays: Vec<_> = due(ran, from, to).filter_map(delay).collect();
    delays.sort_by(f64::total_cmp);
    delays
}

#[test]
fn an_emulated_path_changes_its_delay_at_the_stated_time_and_the_replay_agrees() {
    undisturbed(|| {
        let changes = "[[change]]\nlink = \"up\"\nat = \"1500 ms\"\ndelay = \"60 ms\"\n";
        let Some(mut ran) = call(changes) else { return };
        let (before, after) = (delays(&ran, 0, 1450), delays(&ran, 1550, 3000));
        let median = |delays: &[f64]| delays[delays.len() / 2];
        let longer = median(&after) - median(&before);
        assert!((48.0..=52.0).contains(&longer), "{longer} ms; {before:?} {after:?}");
        // The machine can delay a message, but no message is earlier than the path. A message takes 188 B
        // (160 B and the headers of UDP and IPv4), which are 1.504 ms at 1 Mb/s.
        assert!(before[0] >= 11.504 && after[0] >= 61.504, "{before:?} {after:?}");
        // Without the change, the replay decides differently.
        ran.scenario.changes.clear();
        assert!(matches!(replay(&ran.log, &ran.scenario), Err(ReplayError::Differs { .. })));
    });
}

#[test]
fn an_outage_of_an_emulated_path_drops_or_keeps_what_comes_as_waiting_says() {
    undisturbed(|| {
        let outage = "[[change]]\nlink = \"up\"\nat = \"1 s\"\noutage = \"500 ms\"\n";
        let Some(ran) = call(&format!("{outage}waiting = \"drop\"\n")) else { return };
        let dropped =
            |row: &&MessageRecord| row.fate != Fate::Delivered && row.drop_cause == Some(DropCause::Queue);
        let (during, whole) = (due(&ran, 1000, 1500).filter(dropped).count(), due(&ran, 0, 3000));
        assert!((24..=26).contains(&during), "{during}");
        assert!(whole.filter(dropped).count() <= during + 1);
        let Some(ran) = call(outage) else { return };
        let first = due(&ran, 1000, 1500).filter_map(|row| row.received).min();
        assert!(first >= Some(Instant::from_millis(1510)), "{first:?}");
        assert!(due(&ran, 0, 3000).all(|row| row.fate == Fate::Delivered));
        assert!(delays(&ran, 1000, 1500).iter().all(|delay| *delay < 540.0 + 200.0));
        assert!(delays(&ran, 1000, 1100).iter().all(|delay| *delay >= 410.0));
    });
}

#[test]
fn a_random_phase_is_the_same_in_the_run_and_in_its_replay() {
    undisturbed(|| {
        let changes = "[[change]]\nevery = \"700 ms\"\nphase = \"random\"\ndelay = \"30 ms\"\n\
                       [[change]]\nevery = \"700 ms\"\nat = \"200 ms\"\nphase = \"random\"\ndelay = \"10 ms\"\n";
        // `run` replays the log, and would fail at the first decision that differs.
        let Some(ran) = call(changes) else { return };
        let longer = delays(&ran, 0, 3000).into_iter().filter(|delay| *delay > 31.0).count();
        let share = longer as f64 / 150.0;
        assert!((0.15..=0.45).contains(&share), "{share}: 200 of every 700 ms have the longer delay");
        assert!(
            ran.scenario.changes.iter().all(|change| change.when.every == Some(Duration::from_millis(700)))
        );
    });
}
