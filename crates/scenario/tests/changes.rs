//! `[[change]]`: what it resolves to, and its mistakes.

use talkpath_path::{Change, LinkState, LossModel, RateModel};
use talkpath_scenario::{Files, Located, Options, Source, load_with_files};
use talkpath_units::{Duration, Rate};

use crate::loading::{self, GOOD, plan, set};
use crate::mistakes::check;

/// The changes of [`GOOD`] with `text` after it.
fn changes(text: &str) -> Vec<Change> {
    plan(&format!("{GOOD}\n{text}"), &Options::default()).cells[0].scenario.changes.clone()
}

#[test]
fn a_change_without_a_link_is_for_both_directions_and_one_with_a_link_for_that() {
    let both = changes("[[change]]\nat = \"15 s\"\ndelay = \"38 ms\"\n");
    assert_eq!(both.iter().map(|change| change.link).collect::<Vec<_>>(), [0, 1]);
    assert!(both.iter().all(|change| change.to.delay == Some(Duration::from_millis(38))));
    let down = changes("[[change]]\nlink = \"down\"\nat = \"15 s\"\nup = false\nwaiting = \"drop\"\n");
    assert_eq!((down.len(), down[0].link), (1, 1));
    assert_eq!(down[0].to.state, Some(LinkState::Down { drops: true }));
}

#[test]
fn a_period_without_a_time_begins_after_one_period_and_a_phase_shifts_it_within() {
    let first =
        |text: &str| changes(&format!("[[change]]\nlink = \"up\"\nloss = \"2%\"\n{text}"))[0].when.first;
    assert_eq!(first("every = \"15 s\"\n"), Duration::from_secs(15));
    assert_eq!(first("every = \"15 s\"\nat = \"2 s\"\n"), Duration::from_secs(2));
    assert_eq!(first("every = \"15 s\"\nat = \"14 s\"\nphase = \"3 s\"\n"), Duration::from_secs(2));
    let random = &changes("[[change]]\nlink = \"up\"\nloss = 0\nevery = \"15 s\"\nphase = \"random\"\n")[0];
    assert!(random.when.random_phase && random.when.first.is_zero());
}

#[test]
fn the_resolved_form_loads_to_the_same_changes_and_a_key_of_a_change_can_be_set_and_swept() {
    let text = format!(
        "{GOOD}\n[[change]]\nat = \"5 s\"\nrate = \"1 Mbps\"\nover = \"2 s\"\nsteps = 4\n\
         [[change]]\nat = \"9 s\"\nqueue.limit = \"10 packets\"\nlink = \"up\"\n\
         [sweep]\n\"change.2.at\" = [\"9 s\", \"10 s\"]\n"
    );
    let plan = plan(&text, &Options::default());
    let first = |cell: usize| plan.cells[cell].scenario.changes.last().map(|change| change.when.first);
    assert_eq!((first(0), first(1)), (Some(Duration::from_secs(9)), Some(Duration::from_secs(10))));
    let plan = loading::plan(&text, &set(&[("change.1.steps", "8")]));
    assert_eq!(plan.cells[0].scenario.changes[0].ramp.map(|ramp| ramp.steps), Some(8));
}

#[test]
fn the_resolved_form_writes_each_change_as_a_table_of_its_own() {
    let resolved = plan(
        &format!("{GOOD}\n[[change]]\nat = \"5 s\"\nqueue.limit = \"3 packets\"\n"),
        &Options::default(),
    )
    .resolved;
    assert!(resolved.contains("\n[[change]]\nat = \"5 s\"\nqueue = { limit = "), "{resolved}");
}

#[test]
fn a_change_that_comes_after_the_senders_stopped_is_warned_of() {
    let warnings = |text: &str| {
        let warnings = plan(&format!("{GOOD}\n{text}"), &Options::default()).warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let late = warnings("[[change]]\nat = \"60 s\"\ndelay = \"38 ms\"\n");
    assert!(
        late.contains("change.1.at: the change comes first at 60 s, but the run sends for 60 s"),
        "{late}"
    );
    let rare = warnings("[[change]]\nevery = \"90 s\"\ndelay = \"38 ms\"\n");
    assert!(rare.contains("change.1.every: the change comes first at 90 s"), "{rare}");
    for quiet in ["at = \"59 s\"", "every = \"90 s\"\nphase = \"random\""] {
        assert_eq!(warnings(&format!("[[change]]\n{quiet}\ndelay = \"38 ms\"\n")), "");
    }
}

/// A folder with one file.
struct OneFile(&'static str);

impl Files for OneFile {
    fn text(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, _: &str) -> Result<Located, String> {
        Err("no file to be sent".to_owned())
    }
}

#[test]
fn a_file_is_a_change_for_each_row_and_repeats_with_every() {
    let text = format!("{GOOD}\n[[change]]\nlink = \"up\"\nfile = \"speeds.txt\"\nevery = \"3 s\"\n");
    let load = |file| load_with_files(&Source::new("f.toml", &text), &Options::default(), &OneFile(file));
    let plan = load("time_s rate_mbps loss_percent\n0 48.2 0\n1.5 0 2\n").unwrap();
    let changes = &plan.cells[0].scenario.changes;
    let at: Vec<_> = changes.iter().map(|change| change.when.first.as_millis()).collect();
    assert_eq!(at, [0, 1500]);
    assert!(changes.iter().all(|change| change.when.every == Some(Duration::from_secs(3))));
    assert_eq!(changes[0].to.rate, Some(RateModel::Fixed(Rate::from_bps(48_200_000))));
    assert_eq!(changes[1].to.loss, Some(LossModel::Bernoulli { rate: 0.02 }));
    let since_1970 = load("time_ms up_mbps down_mbps\n1700000000000 7 50\n1700000002000 8 60\n").unwrap();
    let changes = &since_1970.cells[0].scenario.changes;
    let rates: Vec<_> =
        changes.iter().map(|change| (change.when.first.as_millis(), change.to.rate.clone())).collect();
    let rate = |mbps: u64| Some(RateModel::Fixed(Rate::from_bps(mbps * 1_000_000)));
    assert_eq!(rates, [(0, rate(7)), (2000, rate(8))], "the link is `up`");
    for (file, expected) in [
        ("0 48.2\n1 51.9\n", "speeds.txt:1: found \"0\", expected a header"),
        ("time_s rate_mbps\n0 1\n3 1\n", "found a period of 3 s, but the last row of the file is at 3 s"),
        (
            "time_s rate_mbps\n1700000000 1\n1600000000 1\n",
            "speeds.txt:3: the time 1600000000 s comes after 1700000000 s",
        ),
    ] {
        let mistakes = load(file).unwrap_err().to_string();
        assert!(mistakes.contains(expected), "{mistakes}");
    }
}

#[test]
fn a_change_that_cannot_be_what_it_says_is_refused_with_what_is_right() {
    for (lines, expected) in [
        ("delay = \"1 ms\"", "7:1: change.1.at: missing; expected `at`, `every` or both | at = \"30 s\""),
        ("at = \"1 s\"\ndealy = \"1 ms\"", "9:1: change.1.dealy: unknown key"),
        ("at = \"1 s\"", "8:6: change.1.at: found a time and no value; expected one of rate, delay"),
        (
            "at = \"1 s\"\nlink = \"upp\"\ndelay = \"1 ms\"",
            "9:8: change.1.link: there is no link called \"upp\" | \"up\"",
        ),
        ("at = \"1 s\"\nrate = \"9 Mbps\"\nsteps = 3", "10:9: change.1.steps: found `steps` alone"),
        ("at = \"1 s\"\nphase = \"1 s\"\nrate = \"9 Mbps\"", "9:9: change.1.phase: found `phase` alone"),
        (
            "at = \"1 s\"\nrate = \"9 Mbps\"\nwaiting = \"drop\"",
            "10:11: change.1.waiting: found `waiting` without an outage",
        ),
        ("every = \"1 s\"\noutage = \"1 s\"", "9:10: change.1.outage: found an outage of 1 s every 1 s"),
        ("at = \"1 s\"\noutage = \"1 s\"\nup = true", "10:6: change.1.up: found `up` beside `outage`"),
        (
            "at = \"1 s\"\nrate = \"unlimited\"\nover = \"1 s\"",
            "9:8: change.1.rate: found a ramp to \"unlimited\"",
        ),
        ("at = \"1 s\"\ndelay = \"1 ms\"\noutag = \"1 s\"", "10:1: change.1.outag: unknown | outage"),
        ("every = \"1 us\"\ndelay = \"1 s\"", "7:1: change: found changes at | expected at most 2000000"),
    ] {
        check(&format!("{GOOD}\n[[change]]\n{lines}\n"), &[expected]);
    }
    check(
        &format!("change = \"never\"\n{GOOD}"),
        &["1:10: change: found \"never\", expected a list of tables"],
    );
}
