//! The directory of a campaign, which holds the whole state of the campaign.
//!
//! ```text
//! campaign-NAME/
//!   lock               held by the coordinator
//!   plan.json          written once, when the campaign begins
//!   journal.jsonl      one line for each event of a measurement; each line is synced to the disk
//!   records/ID/        the run directory of a measurement
//!   records/.ID.NS/    a run directory that is being fetched
//!   uploads.jsonl      with a `store_command`: a line for each attempt to copy a measurement
//!   report.html
//! ```
//!
//! A run directory gets its name without a dot only when it is complete. It is renamed and synced to the disk
//! before the journal says that it is there. If a process dies between the two, the next process adds the
//! line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use talkpath_campaign::{Entry, Event, Plan, millis};
use talkpath_measure::summary::Summary;

use super::load::Loaded;
use super::now;
use crate::args::CampaignFileArgs;
use crate::failure::Failure;
use crate::terminal::program;
use talkpath_experiment::json::json;
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::run_dir::slug;
use talkpath_experiment::store::lines::{LineFile, each_line};
use talkpath_experiment::store::lock::{Lock, LockError};
use talkpath_experiment::store::whole::{find_file, read_json, sync_folder, write_lasting};

const LOCK: &str = "lock";
const PLAN: &str = "plan.json";
const JOURNAL: &str = "journal.jsonl";
const RECORDS: &str = "records";
/// The lock is tried this many times. `campaign status` holds it only for microseconds, so we chose 5 tries.
const LOCK_TRIES: u32 = 5;
/// The time between two tries to take the lock. With 5 tries we wait 0.25 s, which a person does not notice.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// The directory of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
}

/// The directory of a campaign, opened by a coordinator.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) plan: Plan,
    pub(crate) journal: OpenJournal,
    pub(crate) entries: Vec<Entry>,
    /// Whether the plan was made by this process.
    pub(crate) is_new: bool,
    /// The number of complete records that had no line in the journal. The lines were added.
    pub(crate) repaired: usize,
}

/// The journal, opened to add lines. Only one process can have it.
#[derive(Debug)]
pub(crate) struct OpenJournal {
    lines: LineFile,
    _lock: Lock,
}

impl Store {
    /// Makes the directory of the campaign. It is the directory that the flags name, or `campaign-NAME` under
    /// `out`.
    pub(crate) fn new(args: &CampaignFileArgs, loaded: &Loaded, out: &Path) -> Self {
        let default_path = || out.join(format!("campaign-{}", slug(&loaded.campaign.name)));
        Self { path: args.dir.clone().unwrap_or_else(default_path) }
    }

    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn plan_file(&self) -> PathBuf {
        self.file(PLAN)
    }

    /// Returns the folder of the records of a measurement.
    pub(crate) fn records(&self, id: &str) -> PathBuf {
        self.path.join(RECORDS).join(id)
    }

    /// Returns a folder into which an attempt fetches the records of a measurement. Each attempt gets a
    /// folder of its own, because an attempt of a coordinator that was killed may still be writing.
    pub(crate) fn draft(&self, id: &str) -> PathBuf {
        self.path.join(RECORDS).join(format!(".{id}.{}", now().as_nanos()))
    }

    /// Opens the directory for a coordinator, and keeps other coordinators out. If the directory has no plan
    /// yet, the plan is made.
    pub(crate) fn begin(&self, loaded: &Loaded) -> Result<Opened, Failure> {
        let records = self.file(RECORDS);
        fs::create_dir_all(&records).map_err(|why| Failure::folder(&records, why))?;
        sync_folder(self.path.parent().unwrap_or(Path::new("")))?;
        let lock = self.lock()?;
        let path = self.plan_file();
        let is_new = !path.exists();
        let plan = if is_new { self.make_plan(loaded)? } else { self.plan(loaded)? };
        let (mut journal, mut entries) = self.open_journal(lock)?;
        let missing_entries = self.tidy_up(&plan, &entries)?;
        let repaired = missing_entries.len();
        for entry in missing_entries {
            journal.add(&entry)?;
            entries.push(entry);
        }
        Ok(Opened { plan, journal, entries, is_new, repaired })
    }

    fn make_plan(&self, loaded: &Loaded) -> Result<Plan, Failure> {
        let version = env!("CARGO_PKG_VERSION");
        let plan = Plan::new(&loaded.campaign, loaded.fingerprint.clone(), version, now())
            .map_err(|error| Failure::Usage(format!("schedule: {error}")))?;
        write_lasting(&self.plan_file(), &json(&plan))?;
        Ok(plan)
    }

    /// Reads the plan, and checks that it was made from the same campaign file.
    pub(crate) fn plan(&self, loaded: &Loaded) -> Result<Plan, Failure> {
        let plan = self.read_plan()?;
        if plan.fingerprint != loaded.fingerprint {
            return Err(Failure::Usage(format!(
                "{}: its plan was made from another file, by talkpath {} (this is {}): names, pairs, what runs and when may not \
                 change once a campaign has begun. Give the file as it was, that version if the file is the same, or another --dir",
                self.path.display(),
                plan.talkpath,
                env!("CARGO_PKG_VERSION")
            )));
        }
        Ok(plan)
    }

    /// Reads the plan. It may have been made from another campaign file.
    pub(crate) fn read_plan(&self) -> Result<Plan, Failure> {
        let path = self.file(PLAN);
        if !path.exists() {
            return Err(Failure::Usage(format!(
                "{}: this campaign has not begun; `{} campaign run` begins it",
                self.path.display(),
                program()
            )));
        }
        Ok(read_json(&path)?)
    }

    /// Reads the summaries of all finished measurements, each with the index of the measurement in the plan.
    pub(crate) fn summaries(&self, plan: &Plan) -> Result<Vec<(usize, Summary)>, Failure> {
        let mut summaries = Vec::new();
        for (index, measurement) in plan.measurements.iter().enumerate() {
            let path = self.records(&measurement.id).join(SUMMARY);
            if path.is_file() {
                summaries.push((index, read_json(&path)?));
            }
        }
        Ok(summaries)
    }

    /// Reads the summary of the measurement `id`.
    pub(crate) fn summary(&self, id: &str) -> Result<Summary, Failure> {
        Ok(read_json(&self.records(id).join(SUMMARY))?)
    }

    /// Reads the entries of the journal. A campaign that has not begun has none.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let path = self.file(JOURNAL);
        let mut entries = Vec::new();
        if find_file(&path).map_err(|why| Failure::read(&path, &why))?.is_none() {
            return Ok(entries);
        }
        each_line(&path, |line| {
            let number = entries.len() + 1;
            entries.push(Entry::parse(line).map_err(|why| unexpected_line(&path, number, &why))?);
            Ok::<_, Failure>(())
        })?;
        Ok(entries)
    }

    /// Returns whether a coordinator is working on the campaign.
    pub(crate) fn is_at_work(&self) -> bool {
        Lock::is_held(&self.file(LOCK)).unwrap_or(false)
    }

    fn lock(&self) -> Result<Lock, Failure> {
        let path = self.file(LOCK);
        // `campaign status` holds the lock for a moment, so the lock is tried several times.
        for _ in 0..LOCK_TRIES {
            match Lock::take(&path) {
                Ok(lock) => return Ok(lock),
                Err(LockError::Busy) => thread::sleep(LOCK_RETRY),
                Err(LockError::Io(why)) => return Err(Failure::write(&path, why)),
            }
        }
        Err(Failure::Usage(format!("{}: another process works on it", self.path.display())))
    }

    fn open_journal(&self, lock: Lock) -> Result<(OpenJournal, Vec<Entry>), Failure> {
        let entries = self.entries()?;
        let lines = LineFile::open(&self.file(JOURNAL))?;
        sync_folder(&self.path)?;
        Ok((OpenJournal { lines, _lock: lock }, entries))
    }

    /// Lists the folders of records, each with what the plan and the journal say about it.
    fn classified_records(&self, plan: &Plan, entries: &[Entry]) -> Result<Vec<RecordFolder>, Failure> {
        let planned: BTreeSet<&str> =
            plan.measurements.iter().map(|measurement| measurement.id.as_str()).collect();
        let done_entries = entries.iter().filter(|entry| entry.event == Event::Done);
        let done: BTreeSet<&str> = done_entries.map(|entry| entry.id.as_str()).collect();
        let folder = |name: String| {
            let state = if name.starts_with('.') {
                RecordState::Draft
            } else if !planned.contains(name.as_str()) {
                RecordState::NotPlanned
            } else if done.contains(name.as_str()) {
                RecordState::Done
            } else if self.records(&name).join(SUMMARY).is_file() {
                RecordState::NotInJournal
            } else {
                RecordState::WithoutSummary
            };
            RecordFolder { name, state }
        };
        Ok(self.names()?.into_iter().map(folder).collect())
    }

    /// Makes the records and the journal agree again, after a process died before it had written both.
    ///
    /// It removes drafts. It also removes records without a summary that the journal does not call done: a
    /// power cut left such a folder without its content, and no other attempt could take its name. It returns
    /// the entries that the journal lacks for complete records.
    fn tidy_up(&self, plan: &Plan, entries: &[Entry]) -> Result<Vec<Entry>, Failure> {
        let mut missing = Vec::new();
        for RecordFolder { name, state } in self.classified_records(plan, entries)? {
            let path = self.records(&name);
            match state {
                // If a process still writes to the draft, a later coordinator removes it.
                RecordState::Draft => drop(fs::remove_dir_all(path)),
                RecordState::WithoutSummary => {
                    fs::remove_dir_all(&path).map_err(|why| Failure::write(&path, why))?;
                }
                RecordState::NotInJournal => {
                    missing.push(Entry { at_ms: millis(now()), id: name, event: Event::Done });
                }
                RecordState::Done | RecordState::NotPlanned => {}
            }
        }
        Ok(missing)
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        let folder = self.file(RECORDS);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|why| Failure::read(&folder, &why))? {
            let entry = entry.map_err(|why| Failure::read(&folder, &why))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns the failure for a whole line of the journal that is not an entry.
fn unexpected_line(path: &Path, number: usize, why: &str) -> Failure {
    Failure::Usage(format!(
        "{}:{number}: not what this talkpath ({}) writes there: {why}; a newer one may have written it: go on with that one",
        path.display(),
        env!("CARGO_PKG_VERSION")
    ))
}

impl OpenJournal {
    /// Adds a line, and syncs it to the disk. If the line cannot be written completely, nothing of it stays.
    pub(crate) fn add(&mut self, entry: &Entry) -> Result<(), Failure> {
        Ok(self.lines.add_lasting(&entry.line())?)
    }
}

/// A folder among the records.
struct RecordFolder {
    name: String,
    state: RecordState,
}

/// What the plan and the journal know about a folder among the records.
enum RecordState {
    /// The folder is being fetched, or the process that fetched it has died.
    Draft,
    /// The plan has no such measurement. The folder stays as it is.
    NotPlanned,
    /// The journal says that the measurement is done.
    Done,
    /// The records are complete, but the journal has no entry about them.
    NotInJournal,
    /// The records have no summary, so they are not complete.
    WithoutSummary,
}

#[cfg(test)]
mod tests {
    use talkpath_campaign::Measurement;

    use super::*;

    #[test]
    fn records_that_a_power_cut_left_without_a_summary_make_room_unless_they_are_done() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { path: folder.path().to_path_buf() };
        let measurement = |id: &str| Measurement {
            id: id.to_owned(),
            near: String::new(),
            far: String::new(),
            measure: String::new(),
            day: 1,
            local: String::new(),
            due_ms: 0,
            until_ms: 0,
            seed: 0,
        };
        let plan = Plan {
            talkpath: String::new(),
            name: String::new(),
            fingerprint: String::new(),
            made_ms: 0,
            zone: String::new(),
            hosts: Vec::new(),
            measurements: ["empty", "whole", "done"].map(measurement).to_vec(),
        };
        for name in ["empty", "whole", "done", "strange", ".empty.1"] {
            fs::create_dir_all(store.records(name)).unwrap();
            fs::write(store.records(name).join("scenario.toml"), "").unwrap();
        }
        fs::write(store.records("whole").join(SUMMARY), "{}").unwrap();
        let done = Entry { at_ms: 0, id: "done".to_owned(), event: Event::Done };
        let unwritten = store.tidy_up(&plan, &[done]).unwrap();
        assert_eq!(store.names().unwrap(), ["done", "strange", "whole"]);
        assert_eq!(unwritten.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["whole"]);
    }

    #[test]
    fn a_part_of_a_line_in_the_journal_is_cut_off_and_a_line_that_nobody_knows_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        assert_eq!(store.entries().unwrap(), []);
        let entry = Entry { at_ms: 1, id: "d01".to_owned(), event: Event::Begun };
        let write = |last: &[u8]| fs::write(store.file(JOURNAL), [&entry.line(), last].concat()).unwrap();
        write(b"{\"at_ms\": 3, \"id\"");
        let (mut journal, entries) = store.open_journal(store.lock().unwrap()).unwrap();
        assert_eq!(entries, std::slice::from_ref(&entry));
        journal.add(&entry).unwrap();
        assert_eq!(store.entries().unwrap(), [entry.clone(), entry.clone()]);
        write(b"{\"at_ms\":2,\"id\":\"d01\",\"event\":\"paused\"}\n");
        let why = store.entries().unwrap_err().to_string();
        assert!(why.contains("journal.jsonl:2: not what this talkpath") && why.contains("paused"), "{why}");
    }
}
