//! Copies to a folder, and to a store that fails.

use std::cell::Cell;

use super::*;

/// A folder that takes only some objects.
struct Failing {
    folder: folder::Folder,
    left: Cell<u64>,
    /// Objects whose key has this are refused.
    refuses: &'static str,
    /// As an object whose key has this is put, the measurement's rows go.
    spoils: Option<&'static str>,
}

impl Objects for Failing {
    fn list(&self, folder: &str) -> Result<BTreeMap<String, u64>, String> {
        self.folder.list(folder)
    }

    fn sha256(&self, key: &str) -> Result<Option<String>, String> {
        self.folder.sha256(key)
    }

    fn put(&self, key: &str, file: &Path, sha256: &str) -> Result<(), String> {
        if key.contains(self.refuses) {
            return Err("the name is too long".to_owned());
        }
        if self.left.get() == 0 {
            return Err("the store is down".to_owned());
        }
        if self.spoils.is_some_and(|part| key.contains(part)) {
            fs::remove_file(file.with_file_name("../packets.parquet")).unwrap();
        }
        self.left.set(self.left.get() - 1);
        self.folder.put(key, file, sha256)
    }
}

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

    fn push(&self) -> Push {
        let destination = Destination::Folder(self.share().to_string_lossy().into_owned());
        Push::new(&destination, "Two days", self.directory()).unwrap()
    }

    /// A store that takes `left` objects.
    fn failing(&self, left: u64) -> Push {
        self.refusing("no key has this", left)
    }

    /// One that takes `left` objects, and none whose key has `refuses`.
    fn refusing(&self, refuses: &'static str, left: u64) -> Push {
        let folder = folder::Folder::new(&self.share());
        let failing = Failing { folder, left: Cell::new(left), refuses, spoils: None };
        Push { objects: Box::new(failing), ..self.push() }
    }

    fn share_holds(&self) -> Vec<String> {
        files_below(&self.share()).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    fn uploads(&self) -> Uploads {
        uploads(&self.directory(), self.push().url())
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

const A: &str = "two-days/day=2026-12-01/pair=here-to-lima/measurement=a";
const B: &str = "two-days/day=2026-12-01/pair=here-to-tokyo/measurement=b";

#[test]
fn what_is_measured_is_copied_by_day_and_pair_and_once() {
    let lab = Lab::new();
    let copied = lab.push().all(&lab.measurements).unwrap();
    assert_eq!(copied, Copied { copied: 7, bytes: 2 + 2 * (2 + 9), there: 0 });
    let files = ["captures/near.pcapng", "packets.parquet", SUMMARY];
    let expected: Vec<String> =
        [A, B].iter().flat_map(|folder| files.map(|file| format!("{folder}/{file}"))).collect();
    assert_eq!(lab.share_holds(), [expected, vec!["two-days/plan.json".to_owned()]].concat());
    assert_eq!(fs::read(lab.share().join(A).join("packets.parquet")).unwrap(), b"rows of a");
    assert_eq!(lab.push().all(&lab.measurements).unwrap(), Copied { copied: 0, bytes: 0, there: 7 });
    let there = lab.uploads().there;
    assert_eq!(there.into_iter().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_copy_that_is_cut_short_goes_on_with_the_rest() {
    for left in 0..7 {
        let lab = Lab::new();
        let why = lab.failing(left).all(&lab.measurements).unwrap_err();
        assert!(why.contains("the store is down"), "{why}");
        let rest = lab.push().all(&lab.measurements).unwrap();
        assert_eq!((rest.copied, rest.there), (7 - left, left));
        assert_eq!(lab.share_holds().len(), 7);
    }
}

#[test]
fn a_measurement_that_cannot_be_copied_holds_up_none_after_it() {
    let lab = Lab::new();
    let left = uploader::first_pass(lab.refusing("measurement=a", u64::MAX), &lab.measurements);
    let Uploads { there, failing, .. } = lab.uploads();
    assert_eq!((left, there.into_iter().collect::<Vec<_>>()), (1, vec!["b".to_owned()]));
    assert_eq!(failing.as_deref(), Some("the name is too long"), "what is missing has its reason");
    let lab = Lab::new();
    let why = lab.refusing("measurement=a", u64::MAX).all(&lab.measurements).unwrap_err();
    assert_eq!(why, "a: the name is too long");
    assert_eq!(lab.uploads().there.into_iter().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn records_that_cannot_be_read_say_nothing_of_the_store() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d", "e"].map(|id| measurement(id, "lima")).to_vec();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    let folder = folder::Folder::new(&lab.share());
    // The rows of the four measurements to Lima go, those of the fifth stay.
    lab.measurements[4].far = "tokyo".to_owned();
    let spoils = Some("to-lima/measurement=");
    let failing = Failing { folder, left: Cell::new(u64::MAX), refuses: "no key has this", spoils };
    let push = Push { objects: Box::new(failing), ..lab.push() };
    let why = push.all(&lab.measurements).unwrap_err();
    assert!(why.contains("cannot read") && why.contains("4 measurements failed"), "{why}");
    assert_eq!(lab.uploads().there.into_iter().collect::<Vec<_>>(), ["e"]);
}

#[test]
fn a_plan_that_cannot_be_read_is_one_failure_a_pass() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d", "e"].map(|id| measurement(id, "lima")).to_vec();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    fs::remove_file(lab.directory().plan_file()).unwrap();
    assert_eq!(uploader::first_pass(lab.push(), &lab.measurements), 5);
    let Uploads { there, failures, failing } = lab.uploads();
    assert!(there.is_empty());
    assert_eq!(failures.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1)]);
    assert!(failing.is_some_and(|why| why.contains("cannot read") && why.contains("plan.json")));
}

#[test]
fn what_is_given_up_is_said_with_the_store_s_reason() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d"].map(|id| measurement(id, "tokyo")).to_vec();
    lab.measurements[0].far = "lima".to_owned();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    let folder = folder::Folder::new(&lab.share());
    let spoils = Some("to-lima/measurement=");
    let failing = Failing { folder, left: Cell::new(u64::MAX), refuses: "to-tokyo", spoils };
    let push = Push { objects: Box::new(failing), ..lab.push() };
    let why = push.all(&lab.measurements).unwrap_err();
    assert_eq!(why, "b: the name is too long; given up after the store failed 3 times in a row");
}

#[test]
fn what_a_store_refused_before_comes_last_the_next_time() {
    let mut lab = Lab::new();
    lab.measurements = ["a", "b", "c", "d"].map(|id| measurement(id, "lima")).to_vec();
    lab.measurements[3].far = "tokyo".to_owned();
    lab.measurements.iter().for_each(|it| lab.measures(&it.id));
    let push = || lab.refusing("to-lima", u64::MAX).all(&lab.measurements).unwrap_err();
    assert!(push().ends_with("given up after the store failed 3 times in a row"));
    assert!(lab.uploads().there.is_empty());
    push();
    assert_eq!(lab.uploads().there.into_iter().collect::<Vec<_>>(), ["d"]);
}

#[test]
fn an_object_of_another_size_or_content_is_put_again() {
    let lab = Lab::new();
    lab.push().all(&lab.measurements).unwrap();
    for other in ["rows of x", "rows"] {
        let object = lab.share().join(A).join("packets.parquet");
        fs::write(&object, other).unwrap();
        assert_eq!(lab.push().all(&lab.measurements).unwrap().copied, 1, "{other}");
        assert_eq!(fs::read(&object).unwrap(), b"rows of a");
    }
}

#[test]
fn what_a_kill_left_of_a_file_is_no_object() {
    let lab = Lab::new();
    fs::create_dir_all(lab.share().join(A)).unwrap();
    fs::write(lab.share().join(A).join(".packets.parquet.17"), "rows").unwrap();
    assert_eq!(lab.push().objects.list("two-days").unwrap(), BTreeMap::new());
}

#[test]
fn a_share_that_is_not_mounted_is_not_made() {
    let lab = Lab::new();
    fs::remove_dir(lab.share()).unwrap();
    let why = lab.push().all(&lab.measurements).unwrap_err();
    assert!(
        why.contains("there is no folder") && why.contains("mount it, make it, or correct `store`"),
        "{why}"
    );
    assert!(!lab.share().exists());
}

#[test]
fn a_note_after_one_that_was_cut_off_stands_on_a_line_of_its_own() {
    let lab = Lab::new();
    fs::write(lab.directory().file(UPLOADS), "{\"at_ms\":17").unwrap();
    lab.push().note("a", None);
    lab.push().note("b", Some("down"));
    let Uploads { there, failing, .. } = lab.uploads();
    assert_eq!((there.len(), failing.as_deref()), (1, Some("down")));
    assert_eq!(fs::read_to_string(lab.directory().file(UPLOADS)).unwrap().lines().count(), 3);
}
