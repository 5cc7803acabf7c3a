//! When the links of a path change, in words, and the changes that cannot be meant.

use talkpath_scenario::{
    Files, Located, Options, PathText, Plan, Setting, Source, Timeline, load_with_files,
};

/// The path of a satellite: handovers, silences and rain.
const SATELLITE: &str = include_str!("satellite.toml");

/// A folder with path files by name.
struct Paths(&'static [(&'static str, &'static str)]);

impl Paths {
    fn find(&self, name: &str) -> Result<String, String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{name}: no such file"))
    }
}

impl Files for Paths {
    fn text(&self, name: &str) -> Result<String, String> {
        self.find(name)
    }

    fn path(&self, name: &str) -> Result<PathText, String> {
        let text = self.find(name)?;
        let lacks_rate = text.contains("# no rate").then(|| "no rate".to_owned());
        let folder = name.rfind('/').map_or("", |slash| &name[..=slash]).to_owned();
        Ok(PathText { text, file: Some(name.to_owned()), folder, lacks_rate, ..PathText::default() })
    }

    fn locate(&self, _: &str) -> Result<Located, String> {
        Err("no file to be sent".to_owned())
    }
}

const FLOW: &str = "\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";

fn load(
    text: &str,
    options: &Options,
    paths: &'static [(&'static str, &'static str)],
) -> Result<Plan, String> {
    load_with_files(&Source::new("flows.toml", text), options, &Paths(paths)).map_err(|why| why.to_string())
}

/// The timeline of a scenario on the path `path`, and its warnings.
fn timeline(duration: &str, path: &'static str) -> (Vec<String>, Vec<String>) {
    let text = format!("duration = \"{duration}\"\npath = \"a.toml\"\n{FLOW}");
    let paths = Box::leak(Box::new([("a.toml", path)]));
    let plan = load(&text, &Options::default(), paths).unwrap_or_else(|why| panic!("{why}"));
    let lines = plan.understood.timeline.iter().flat_map(Timeline::lines).collect();
    (lines, plan.warnings.iter().map(ToString::to_string).collect())
}

#[test]
fn each_change_has_a_line_with_its_times_and_values_and_each_link_its_extremes() {
    let (lines, warnings) = timeline("900 s", SATELLITE);
    assert_eq!(
        lines,
        [
            "change.1, up and down: at 15 s and then every 30 s, 30 times in the run: delay from 20 ms to 38 ms",
            "change.2, up and down: at 30 s and then every 30 s, 29 times in the run: delay from 38 ms to 20 ms",
            "change.3, up: at 45 s and then every 45 s, 19 times in the run: no service for 2 s, packets that wait are kept",
            "change.4, up: from 150 s to 390 s: rate from 15 Mb/s to 2 Mb/s, loss from 0 % to 2 %, in 48 steps",
            "change.5, up: from 510 s to 750 s: rate from 2 Mb/s to 15 Mb/s, loss from 2 % to 0 %, in 48 steps",
            "up in all: rate 2 Mb/s (first at 390 s) to 15 Mb/s, delay 20 ms to 38 ms (first at 15 s), loss 0 % to 2 % (first at \
             390 s), 19 outages of 38 s together",
            "down in all: rate 100 Mb/s, delay 20 ms to 38 ms (first at 15 s)",
        ]
    );
    assert_eq!(
        warnings,
        [
            "a.toml:5:39: path.up.queue.limit: a limit in time is 187500 B of the rate at the beginning, 15 Mb/s; at 2 Mb/s, the lowest \
          rate, they take 750 ms. Write the limit in bytes, or change `queue.limit` with the rate"
        ]
    );
}

const LINKS: &str =
    "up = { rate = \"10 Mbps\", delay = \"20 ms\" }\ndown = { rate = \"10 Mbps\", delay = \"20 ms\" }\n";

/// The warnings of changes on a path of 900 s.
fn warned(changes: &str) -> String {
    let path: &'static str = Box::leak(format!("{LINKS}{changes}").into_boxed_str());
    timeline("900 s", path).1.join("\n")
}

#[test]
fn what_cannot_be_meant_is_warned_of() {
    let hidden = warned(
        "[[change]]\nat = \"15 s\"\nevery = \"15 s\"\ndelay = \"38 ms\"\n[[change]]\nevery = \"30 s\"\ndelay = \"20 ms\"\n",
    );
    assert!(
        hidden.contains(
            "change.1.delay: at 30 s, and 28 times more, change.2 sets the delay at the same instant"
        ),
        "{hidden}"
    );
    let overlapping = warned(
        "[[change]]\nat = \"100 s\"\nover = \"200 s\"\nrate = \"2 Mbps\"\n[[change]]\nat = \"250 s\"\nover = \"99 s\"\nrate = \"9 Mbps\"\n",
    );
    assert!(
        overlapping.contains(
            "change.2.rate: it begins at 250 s within the ramp of change.1, whose next step sets the rate"
        ),
        "{overlapping}"
    );
    let late = warned("[[change]]\nat = \"800 s\"\nover = \"240 s\"\nloss = \"2%\"\n");
    assert!(late.contains("change.1.over: the ramp ends at 1040 s, but the run sends for 900 s"), "{late}");
    let nothing = warned("[[change]]\nat = \"1 s\"\ndelay = \"20 ms\"\n");
    assert!(
        nothing.contains("change.1.at: it changes nothing: whenever it comes, delay 20 ms holds already"),
        "{nothing}"
    );
    // Ramps one after the other, and phases that are drawn, are meant.
    for right in [
        "[[change]]\nat = \"10 s\"\nover = \"10 s\"\nrate = \"2 Mbps\"\n[[change]]\nat = \"20 s\"\nover = \"10 s\"\nrate = \"9 Mbps\"\n",
        "[[change]]\nevery = \"15 s\"\nphase = \"random\"\noutage = \"40 ms\"\n",
    ] {
        assert_eq!(warned(right), "");
    }
}

#[test]
fn values_that_hold_for_no_time_are_no_extremes() {
    let path = format!(
        "{LINKS}[[change]]\nat = \"0 s\"\ndelay = \"7 ms\"\n[[change]]\nat = \"3 s\"\ndelay = \"90 ms\"\n\
         [[change]]\nat = \"3 s\"\ndelay = \"8 ms\"\n"
    );
    let (lines, _) = timeline("9 s", Box::leak(path.into_boxed_str()));
    // 20 ms and 90 ms are replaced at the instant at which they begin.
    assert_eq!(lines[3], "up in all: rate 10 Mb/s, delay 7 ms to 8 ms (first at 3 s)");
}

#[test]
fn of_too_many_changes_the_extremes_say_how_far_they_go() {
    let path = format!(
        "{LINKS}[[change]]\nlink = \"up\"\nat = \"1 ms\"\nevery = \"1 ms\"\ndelay = \"7 ms\"\n\
         [[change]]\nlink = \"up\"\nat = \"150 s\"\ndelay = \"90 ms\"\n"
    );
    let (lines, _) = timeline("200 s", Box::leak(path.into_boxed_str()));
    assert_eq!(
        lines,
        [
            "change.1, up: at 1 ms and then every 1 ms: delay from 20 ms or 7 ms to 7 ms",
            "change.2, up: at 150 s: delay to 90 ms",
            "up in all: rate 10 Mb/s, delay 7 ms to 20 ms (first at 0 s); those of the first 100000 changes, until 100 s",
        ]
    );
}

#[test]
fn a_change_with_a_name_is_called_by_it() {
    let path = format!("{LINKS}[[change]]\nname = \"rain\"\nat = \"1 s\"\nloss = \"2%\"\n");
    let (lines, _) = timeline("9 s", Box::leak(path.into_boxed_str()));
    assert!(lines[0].starts_with("change.1 (rain), up and down: at 1 s: loss from 0 % to 2 %"), "{lines:?}");
}

#[test]
fn a_path_alone_needs_no_run_and_has_no_number_of_times() {
    let set = vec![Setting::by("--path a.toml", "path", "\"a.toml\"")];
    let options = Options { set, is_path_alone: true, ..Options::default() };
    let plan = load("drain = \"5 s\"", &options, &[("a.toml", SATELLITE)]).unwrap();
    let lines: Vec<String> = plan.understood.timeline.unwrap().lines().collect();
    assert_eq!(lines[0], "change.1, up and down: at 15 s and then every 30 s: delay from 20 ms to 38 ms");
    assert_eq!(plan.warnings.len(), 1, "{:?}", plan.warnings);
}

#[test]
fn a_path_file_is_the_path_of_a_scenario_with_its_changes_and_the_files_beside_it() {
    let path = "[up]\nrate = \"1 Mbps\"\n[down]\nrate = { trace = \"x.down\" }\n[[change]]\nlink = \"up\"\nfile = \"x.csv\"\n";
    let paths: &'static [(&str, &str)] = Box::leak(Box::new([
        ("far/a.toml", path),
        ("far/x.down", "1\n2\n"),
        ("far/x.csv", "time_s rate_mbps\n0 5\n1 7\n"),
    ]));
    let text = format!(
        "duration = \"9 s\"\npath = \"far/a.toml\"\n[[change]]\nat = \"3 s\"\ndelay = \"9 ms\"\n{FLOW}"
    );
    let plan = load(&text, &Options::default(), paths).unwrap();
    let changes = &plan.cells[0].scenario.changes;
    assert_eq!(changes.iter().map(|change| change.link).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(
        plan.traces.iter().map(|trace| trace.name.as_str()).collect::<Vec<_>>(),
        ["traces/x.down", "traces/x.csv"]
    );
    // The resolved form has the path itself.
    assert!(!plan.resolved.contains("far/"), "{}", plan.resolved);
    // A setting changes the path of the file.
    let set = vec![Setting::new("path.up.rate", "3 Mbps"), Setting::new("change.2.link", "down")];
    let changed = load(&text, &Options { set, ..Options::default() }, paths).unwrap();
    assert!(changed.resolved.contains("3 Mbps"), "{}", changed.resolved);
    assert_eq!(changed.cells[0].scenario.changes.last().unwrap().link, 1);
}

#[test]
fn a_mistake_in_a_path_file_is_shown_there() {
    let mistake = |text: &'static str| {
        let paths = Box::leak(Box::new([("a.toml", text)]));
        let text = format!("duration = \"9 s\"\npath = \"a.toml\"\n{FLOW}");
        load(&text, &Options::default(), paths).unwrap_err()
    };
    let unknown = mistake("[up]\nrate = \"1 Mbps\"\n[down]\nrtae = \"1 Mbps\"\n");
    assert!(unknown.starts_with("a.toml:4:1: path.down.rtae: unknown key"), "{unknown}");
    let syntax = mistake("[up]\nrate = 1 Mbps\n[down]\n");
    assert!(syntax.starts_with("a.toml:2:"), "{syntax}");
    let change = mistake("[up]\n[down]\n[[change]]\nat = \"1 s\"\n");
    assert!(change.starts_with("a.toml:4:6: change.1.at: found a time and no value"), "{change}");
    let scenario = mistake("duration = \"1 s\"\npath = \"lan\"\n");
    assert!(scenario.contains("a.toml:2:1: path: found `path`, so the file is a scenario"), "{scenario}");
    let rate = mistake("# no rate\n[up]\n[down]\n");
    assert!(rate.contains("flows.toml:2:8: path: no rate"), "{rate}");
    let missing = load(&format!("duration = \"9 s\"\npath = \"b.toml\"\n{FLOW}"), &Options::default(), &[]);
    let missing = missing.unwrap_err();
    assert!(
        missing.starts_with("flows.toml:2:8: path: b.toml: no such file") && missing.lines().count() == 1,
        "{missing}"
    );
    let word = load(&format!("duration = \"9 s\"\npath = \"home-adls\"\n{FLOW}"), &Options::default(), &[]);
    assert!(word.unwrap_err().contains("home-adsl"));
}
