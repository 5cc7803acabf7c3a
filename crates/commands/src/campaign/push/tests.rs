//! Copies by a small script in the place of rclone: one that copies, one that fails, one that hangs.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use talkpath_units::Duration as Span;

use super::*;

/// Copies FILE to SHARE/KEY, as `rclone copyto` does: `sh SCRIPT FILE KEY SHARE`.
const COPIES: &str = r#"
test -d "$3" || { echo "there is no folder $3" >&2; exit 3; }
mkdir -p "$(dirname "$3/$2")" && cp "$1" "$3/$2"
"#;

struct Lab {
    folder: tempfile::TempDir,
    measurements: Vec<Measurement>,
}

impl Lab {
    /// A directory with two measurements that are in the records and one that is not.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let measurements =
            vec![measurement("a", "lima"), measurement("b", "tokyo"), measurement("c", "lima")];
        let lab = Self { folder, measurements };
        lab.measures("a");
        lab.measures("b");
        fs::write(lab.directory().plan_file(), "{}").unwrap();
        fs::create_dir(lab.share()).unwrap();
        lab
    }

    /// Puts a measurement into the records.
    fn measures(&self, id: &str) {
        let records = self.directory().records(id);
        fs::create_dir_all(records.join("captures")).unwrap();
        fs::write(records.join("packets.parquet"), format!("rows of {id}")).unwrap();
        fs::write(records.join(SUMMARY), "{}").unwrap();
        fs::write(records.join("captures/near.pcapng"), "").unwrap();
        fs::write(records.join(".draft"), "").unwrap();
    }

    fn directory(&self) -> Store {
        Store::at(&self.folder.path().join("campaign"))
    }

    fn share(&self) -> PathBuf {
        self.folder.path().join("share")
    }

    /// A store whose command is this script, with as much time as it needs.
    fn by(&self, script: &str) -> Push {
        self.within(Span::from_secs(60), script)
    }

    /// A store whose command is this script, which is given FILE, KEY and the share, and so much time.
    fn within(&self, timeout: Span, script: &str) -> Push {
        let share = self.share();
        let words = ["sh", "-c", script, "store", "{file}", "{key}", share.to_str().unwrap()];
        let words = words.map(str::to_owned).to_vec();
        let command = StoreCommand { words, timeout };
        Push::new(&command, "Two days", self.directory(), &Arc::new(AtomicBool::new(false)))
    }

    fn push(&self) -> Push {
        self.by(COPIES)
    }

    /// One that takes no object whose key fits `pattern` of a shell's `case`.
    fn refusing(&self, pattern: &str) -> Push {
        self.by(&format!("case $2 in {pattern}) echo 'the name is too long' >&2; exit 1;; esac\n{COPIES}"))
    }

    fn share_holds(&self) -> Vec<String> {
        files_below(&self.share()).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    fn uploads(&self, push: &Push) -> Uploads {
        uploads(&self.directory(), push.name())
    }
}

fn measurement(id: &str, far: &str) -> Measurement {
    Measurement {
        id: id.to_owned(),
        near: "here".to_owned(),
        far: far.to_owned(),
        measure: "call".to_owned(),
        day: 1,
        local: "2026-12-01 06:00:00".to_owned(),
        due_ms: 0,
        until_ms: 0,
        seed: 0,
    }
}

fn sorted(there: Uploads) -> Vec<String> {
    there.there.into_iter().collect()
}

const A: &str = "two-days/day=2026-12-01/pair=here-to-lima/measurement=a";
const B: &str = "two-days/day=2026-12-01/pair=here-to-tokyo/measurement=b";

#[test]
fn what_is_measured_is_copied_by_day_and_pair_and_once() {
    let lab = Lab::new();
    let push = lab.push();
    let copied = push.all(&lab.measurements, Scope::Left).unwrap();
    assert_eq!(copied, Copied { files: 7, bytes: 2 + 2 * (2 + 9), before: 0 });
    let files = ["captures/near.pcapng", "packets.parquet", SUMMARY];
    let expected: Vec<String> =
        [A, B].iter().flat_map(|folder| files.map(|file| format!("{folder}/{file}"))).collect();
    assert_eq!(lab.share_holds(), [expected, vec!["two-days/plan.json".to_owned()]].concat());
    assert_eq!(fs::read(lab.share().join(A).join("packets.parquet")).unwrap(), b"rows of a");
    // The plan alone is copied each time.
    let again = push.all(&lab.measurements, Scope::Left).unwrap();
    assert_eq!(again, Copied { files: 1, bytes: 2, before: 2 });
    assert_eq!(sorted(lab.uploads(&push)), ["a", "b"]);
}

#[test]
fn a_store_that_has_lost_an_object_is_given_every_file_again() {
    let lab = Lab::new();
    let push = lab.push();
    push.all(&lab.measurements, Scope::Left).unwrap();
    let object = lab.share().join(A).join("packets.parquet");
    fs::remove_file(&object).unwrap();
    assert_eq!(push.all(&lab.measurements, Scope::Left).unwrap().files, 1);
    assert!(!object.exists());
    assert_eq!(push.all(&lab.measurements, Scope::Every).unwrap().files, 7);
    assert_eq!(fs::read(&object).unwrap(), b"rows of a");
}

#[test]
fn another_command_is_another_store() {
    let lab = Lab::new();
    lab.push().all(&lab.measurements, Scope::Left).unwrap();
    let other = lab.by(&format!("true\n{COPIES}"));
    assert_eq!(other.all(&lab.measurements, Scope::Left).unwrap().files, 7);
}

#[test]
fn no_shell_reads_the_words_of_a_command() {
    let lab = Lab::new();
    let strange = lab.folder.path().join("a b; touch $(echo c) 'd'");
    fs::rename(lab.directory().path(), &strange).unwrap();
    let share = lab.share();
    let words = ["sh", "-c", COPIES, "store", "{file}", "{key}", share.to_str().unwrap()];
    let words = words.map(str::to_owned).to_vec();
    let command = StoreCommand { words, timeout: Span::from_secs(60) };
    let directory = Store::at(&strange);
    let push = Push::new(&command, "x", directory, &Arc::new(AtomicBool::new(false)));
    assert_eq!(push.all(&lab.measurements, Scope::Left).unwrap().files, 7);
}

#[test]
fn a_copy_that_is_cut_short_goes_on_with_the_rest() {
    // It takes as many objects as the file beside the share says.
    let limited = format!(
        "test $(find \"$3\" -type f | wc -l) -lt $(cat \"${{3%/*}}/most\") || {{ echo 'it is full' >&2; exit 1; }}\n{COPIES}"
    );
    for most in 0..7 {
        let lab = Lab::new();
        let push = lab.by(&limited);
        fs::write(lab.folder.path().join("most"), most.to_string()).unwrap();
        let why = push.all(&lab.measurements, Scope::Left).unwrap_err().to_string();
        assert!(why.contains("sh: exit code 1: it is full"), "{why}");
        fs::write(lab.folder.path().join("most"), "99").unwrap();
        let rest = push.all(&lab.measurements, Scope::Left).unwrap();
        // The plan and the three files of a measurement are four.
        let before = u64::from(most >= 4);
        assert_eq!((rest.before, rest.files), (before, 1 + 3 * (2 - before)), "{most}");
        assert_eq!(lab.share_holds().len(), 7);
    }
}

#[test]
fn a_measurement_that_cannot_be_copied_holds_up_none_after_it() {
    let lab = Lab::new();
    let push = lab.refusing("*measurement=a*");
    let left = uploader::first_pass(lab.refusing("*measurement=a*"), &lab.measurements);
    let Uploads { there, failing, .. } = lab.uploads(&push);
    assert_eq!((left, there.into_iter().collect::<Vec<_>>()), (1, vec!["b".to_owned()]));
    let why = "sh: exit code 1: the name is too long";
    assert_eq!(failing.as_deref(), Some(why), "what is missing has its reason");
    let lab = Lab::new();
    let push = lab.refusing("*measurement=a*");
    let failure = push.all(&lab.measurements, Scope::Left).unwrap_err();
    assert_eq!(
        (failure.exit_code(), failure.to_string()),
        (4, format!("a: {why}; what is copied stays, and the same command goes on"))
    );
    assert_eq!(sorted(lab.uploads(&push)), ["b"]);
}

#[test]
fn records_that_cannot_be_read_say_nothing_of_the_store() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d", "e"].map(|id| measurement(id, "lima")).to_vec();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    // The rows of the four measurements to Lima go while a file before them is copied. The fifth's stay.
    lab.measurements[4].far = "tokyo".to_owned();
    let push =
        lab.by(&format!("case $2 in *to-lima*) rm -f \"${{1%/*}}/../packets.parquet\";; esac\n{COPIES}"));
    let why = push.all(&lab.measurements, Scope::Left).unwrap_err().to_string();
    assert!(why.contains("cannot read") && why.contains("4 measurements failed"), "{why}");
    assert_eq!(sorted(lab.uploads(&push)), ["e"]);
}

#[test]
fn a_plan_that_cannot_be_read_is_one_failure_a_pass() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d", "e"].map(|id| measurement(id, "lima")).to_vec();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    fs::remove_file(lab.directory().plan_file()).unwrap();
    assert_eq!(uploader::first_pass(lab.push(), &lab.measurements), 5);
    let Uploads { there, failures, failing } = lab.uploads(&lab.push());
    assert!(there.is_empty());
    assert_eq!(failures.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1)]);
    assert!(failing.is_some_and(|why| why.contains("cannot read") && why.contains("plan.json")));
}

#[test]
fn what_a_store_refused_before_comes_last_the_next_time() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d"].map(|id| measurement(id, "lima")).to_vec();
    lab.measurements[3].far = "tokyo".to_owned();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    let push = lab.refusing("*to-lima*");
    let try_all = || push.all(&lab.measurements, Scope::Left).unwrap_err().to_string();
    let why = try_all();
    let given_up =
        "a: sh: exit code 1: the name is too long; given up after the store failed 3 times in a row";
    assert!(why.starts_with(given_up), "{why}");
    assert!(lab.uploads(&push).there.is_empty());
    try_all();
    assert_eq!(sorted(lab.uploads(&push)), ["d"]);
}

#[test]
fn a_command_that_is_not_there_or_says_nothing_has_its_sentence() {
    let lab = Lab::new();
    let command = |program: &str| StoreCommand {
        words: [program, "{file}", "{key}"].map(str::to_owned).to_vec(),
        timeout: Span::from_secs(60),
    };
    let stop = Arc::new(AtomicBool::new(false));
    for (program, says) in [
        ("no-such-program", "cannot start no-such-program: "),
        ("no-such-program", "install it, or correct `store_command`"),
        ("false", "false: exit code 1: no error message"),
    ] {
        let push = Push::new(&command(program), "x", lab.directory(), &stop);
        let failure = push.all(&lab.measurements, Scope::Left).unwrap_err();
        assert!(failure.exit_code() == 4 && failure.to_string().contains(says), "{failure}");
    }
    let killed = lab.by("kill -9 $$").all(&lab.measurements, Scope::Left).unwrap_err().to_string();
    assert!(killed.starts_with("sh: signal: 9"), "{killed}");
}

/// A script that never ends, nor does what it started; `sh` heeds SIGTERM or not, as `traps` says.
fn hangs(traps: &str) -> String {
    format!("{traps}sleep 600 & echo $! > \"$3/child\"; while :; do sleep 600; done")
}

/// Returns whether the process that a script of [`hangs`] started is there, and no zombie.
fn child_runs(lab: &Lab) -> bool {
    let id = fs::read_to_string(lab.share().join("child")).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[test]
fn a_command_that_hangs_is_ended_after_its_time_with_all_that_it_started() {
    for traps in ["", "trap : TERM\n"] {
        let lab = Lab::new();
        let push = lab.within(Span::from_millis(300), &hangs(traps));
        let since = Instant::now();
        let why = push.all(&lab.measurements, Scope::Left).unwrap_err().to_string();
        assert!(
            why.contains("sh: timeout: it did not end within 300 ms and was stopped; `store_timeout`"),
            "{why}"
        );
        assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
        // It takes the kernel a moment to end what was killed.
        let until = Instant::now() + Duration::from_secs(5);
        while child_runs(&lab) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!child_runs(&lab), "{traps:?}");
    }
}

#[test]
fn a_signal_ends_the_command_and_nothing_has_failed_by_it() {
    let lab = Lab::new();
    let push = lab.by(&hangs(""));
    let stop = Arc::clone(&push.stop);
    let share = lab.share();
    let stops = thread::spawn(move || {
        while !share.join("child").exists() {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let failure = push.all(&lab.measurements, Scope::Left).unwrap_err();
    stops.join().unwrap();
    assert_eq!(failure.exit_code(), 130, "{failure}");
    let Uploads { there, failures, .. } = lab.uploads(&push);
    assert!(there.is_empty() && failures.is_empty());
}

#[test]
fn a_note_after_one_that_was_cut_off_stands_on_a_line_of_its_own() {
    let lab = Lab::new();
    fs::write(lab.directory().file(UPLOADS), "{\"at_ms\":17").unwrap();
    let push = lab.push();
    push.write_note("a", None);
    push.write_note("b", Some("down"));
    let Uploads { there, failing, .. } = lab.uploads(&push);
    assert_eq!((there.len(), failing.as_deref()), (1, Some("down")));
    assert_eq!(fs::read_to_string(lab.directory().file(UPLOADS)).unwrap().lines().count(), 3);
}
