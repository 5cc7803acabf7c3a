use talkpath_scenario::{Files, Located, Options, Source, load, load_with_files};

use super::*;

/// A folder whose only file has this text.
struct Table(&'static str);

impl Files for Table {
    fn text(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, _: &str) -> Result<Located, String> {
        Err("no such file".to_owned())
    }
}

fn timeline(text: &str) -> Timeline {
    let text = format!(
        "duration = \"60 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n{text}"
    );
    let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
    Timeline::new(&plan.cells[0].scenario, Seed::new(1))
}

fn changes(text: &str) -> Vec<(f64, f64, String)> {
    let Timeline { changes, .. } = timeline(text);
    changes.into_iter().map(|change| (change.from_s, change.until_s, change.text)).collect()
}

#[test]
fn a_change_has_its_values_in_words_and_its_link_if_not_all_links_change() {
    let both = "[[change]]\nat = \"15 s\"\ndelay = \"38 ms\"\nloss = \"2%\"\n";
    assert_eq!(changes(both), [(15.0, 15.0, "delay 38 ms, loss 2 %".to_owned())]);
    let up = "[[change]]\nlink = \"up\"\nat = \"30 s\"\noutage = \"2.5 s\"\n";
    assert_eq!(changes(up), [(30.0, 32.5, "up: outage".to_owned())]);
    let ramp = "[[change]]\nlink = \"down\"\nat = \"5 s\"\nrate = \"500 kbps\"\nover = \"2 s\"\n";
    assert_eq!(changes(ramp), [(5.0, 7.0, "down: rate 500 kb/s".to_owned())]);
}

#[test]
fn a_period_is_a_change_each_time() {
    let often = changes("[[change]]\nevery = \"15 s\"\nqueue.limit = \"1 packet\"\n");
    let times: Vec<f64> = often.iter().map(|change| change.0).collect();
    assert_eq!((times, often[0].2.as_str()), (vec![15.0, 30.0, 45.0], "queue 1 packet"));
}

/// The satellite of an operator: handovers, outages at some of them, and rain.
const SATELLITE: &str = "[[change]]\nat = \"5 s\"\nevery = \"10 s\"\ndelay = \"38 ms\"\n\
    [[change]]\nevery = \"10 s\"\ndelay = \"20 ms\"\n\
    [[change]]\nlink = \"up\"\nevery = \"15 s\"\noutage = \"2 s\"\n\
    [[change]]\nlink = \"up\"\nat = \"20 s\"\nover = \"8 s\"\nrate = \"200 kbps\"\nloss = 0.02\n\
    [[change]]\nlink = \"up\"\nat = \"40 s\"\nover = \"8 s\"\nrate = \"1 Mbps\"\nloss = 0\n";

#[test]
fn changes_of_the_same_keys_are_a_group_with_the_furthest_values() {
    let groups = timeline(SATELLITE).groups;
    let words: Vec<_> = groups.iter().map(|group| (group.words.as_str(), group.times)).collect();
    let expected =
        [("delay up to 38 ms", 11), ("up: outage", 3), ("up: rate down to 200 kb/s, loss up to 2 %", 2)];
    assert_eq!(words, expected);
    assert_eq!(groups[1].silences, [(15.0, 17.0), (30.0, 32.0), (45.0, 47.0)]);
    assert_eq!((groups[2].worse.as_slice(), groups[2].until_s()), (&[(20.0, 48.0)][..], 48.0));
    assert!(groups[2].steps.is_empty() && groups[0].steps.len() == 11);
}

#[test]
fn changes_with_one_name_are_one_group() {
    let named = "[[change]]\nname = \"tunnel\"\nat = \"5 s\"\nlink = \"up\"\nrate = \"9 kbps\"\n\
        [[change]]\nname = \"tunnel\"\nat = \"9 s\"\nloss = 0.5\n";
    let groups = timeline(named).groups;
    assert_eq!((groups.len(), groups[0].words.as_str(), groups[0].times), (1, "tunnel", 2));
}

#[test]
fn a_link_that_is_down_is_silent_until_it_is_up_again() {
    let down = "[[change]]\nlink = \"up\"\nat = \"5 s\"\nup = false\n\
        [[change]]\nlink = \"up\"\nat = \"9 s\"\nup = true\n";
    let timeline = timeline(down);
    assert_eq!((timeline.groups[0].silences.as_slice(), timeline.groups[0].times), (&[(5.0, 9.0)][..], 1));
    assert_eq!(timeline.changes[0].kind, ChangeKind::Silence);
}

#[test]
fn a_link_that_gets_another_rate_while_it_is_down_stays_silent() {
    let down = "[[change]]\nlink = \"up\"\nat = \"5 s\"\nup = false\n\
        [[change]]\nlink = \"up\"\nat = \"7 s\"\nrate = \"2 Mbps\"\n\
        [[change]]\nlink = \"up\"\nat = \"9 s\"\nup = true\n";
    assert_eq!(timeline(down).groups[0].silences, [(5.0, 9.0)]);
}

/// The groups of a call whose path follows `table`, and changes as `more` says.
fn groups_of_table(table: &'static str, more: &str) -> Vec<ChangeGroup> {
    let text = format!(
        "duration = \"60 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n\
         [[change]]\nfile = \"a.txt\"\n{more}"
    );
    let plan = load_with_files(&Source::new("x.toml", text), &Options::default(), &Table(table)).unwrap();
    Timeline::new(&plan.cells[0].scenario, Seed::new(1)).groups
}

fn group<'a>(groups: &'a [ChangeGroup], words: &str) -> &'a ChangeGroup {
    groups.iter().find(|group| group.words.contains(words)).unwrap()
}

#[test]
fn the_rows_of_a_table_are_a_group_and_its_silences_another() {
    let groups = groups_of_table("time_s up_mbps down_mbps\n0 8 8\n10 0 8\n12 0 8\n14 1 8\n20 8 8\n", "");
    assert_eq!(group(&groups, "up: silence (rate 0)").silences, [(10.0, 14.0)]);
    let low = group(&groups, "below half");
    assert_eq!((low.worse.as_slice(), low.times), (&[(14.0, 20.0)][..], 1));
}

#[test]
fn a_low_rate_of_a_table_ends_with_a_silence_and_another_change_is_no_part_of_its_mean() {
    let table = "time_s up_mbps down_mbps\n0 8 8\n10 2 8\n12 0 8\n14 8 8\n";
    assert_eq!(group(&groups_of_table(table, ""), "below half").worse, [(10.0, 12.0)]);
    let unlimited = "[[change]]\nlink = \"up\"\nat = \"30 s\"\nrate = \"unlimited\"\n";
    assert_eq!(group(&groups_of_table(table, unlimited), "below half").worse, [(10.0, 12.0)]);
}

#[test]
fn many_changes_are_listed_by_group() {
    let often = "[[change]]\nevery = \"500 ms\"\ndelay = \"30 ms\"\n[[change]]\nat = \"9 s\"\nloss = 0.5\n";
    let listed = timeline(often).listed();
    let found: Vec<_> = listed.iter().map(|change| (change.text.as_str(), change.times)).collect();
    assert_eq!(found, [("delay 30 ms", 119), ("loss 50 %", 1)]);
}

#[test]
fn the_keys_of_a_link_that_change_are_named() {
    let text = format!(
        "duration = \"60 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n{SATELLITE}"
    );
    let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
    let of = |link: &str| changing_keys(&plan.cells[0].scenario, link);
    assert_eq!(of("down").as_deref(), Some("delay changes over time"));
    assert_eq!(of("up").as_deref(), Some("rate, delay, loss and outages change over time"));
}
