//! Keeps the records of a monitor in run directories, which `report` and `export` read like any other run.
//!
//! ```text
//!  OUT/monitor-HOST/
//!    2026-11-21T19-00-00Z-.../     closed: summary.json, packets.parquet, ..., events.jsonl
//!    2026-11-21T20-00-00Z-.../     open: parts/ grows
//! ```
//!
//! - A *session* is one measurement of the monitor. It is one repetition of a run directory.
//! - The *open* directory receives sessions. It is *full* when it has reached the time or the size of
//!   `--rotate`.
//! - To *close* a directory is to merge its sessions into one run.
//! - *Retention* (`--keep`) removes the oldest closed directories.
//!
//! A killed monitor leaves its directory open, and the next monitor closes it. If a directory cannot be
//! closed, the monitor tries again whenever it closes another one. The age of a directory counts from its
//! newest event, so that no younger event is removed. Begin to read with [`Recorder`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use chrono::{DateTime, Utc};
use talkpath_measure::RunRecord;
use talkpath_scenario::{Options, Plan, Source, with_repetitions};

use crate::arenas::Arenas;
use crate::args::Amount;
use crate::failure::Failure;
use crate::monitor::event_file::last_time;
use crate::page::Pages;
use crate::running::{TerminalObserver, experiment_failure};
use crate::scenario_file::{load_source_beside, read_text};
use crate::terminal::Terminal;
use talkpath_experiment::choice::Records;
use talkpath_experiment::journal::{self, Journal, Packed};
use talkpath_experiment::part::{ExtraFiles, Part, all_parts};
use talkpath_experiment::place::Place;
use talkpath_experiment::run_dir::{PARTS, PartKey, RunDir, SCENARIO, slug};
use talkpath_experiment::run_options::RunOptions;
use talkpath_experiment::stopwatch::{Stopwatch, instant_formatter, start_of_run};
use talkpath_experiment::store::lines::LineFile;
use talkpath_experiment::{Destination, Experiment};
use talkpath_measure::series::SeriesDetail;

/// The name of the file of events in a run directory.
pub(crate) const EVENTS: &str = "events.jsonl";

/// How and where the records are kept.
pub(crate) struct RecordOptions<'a> {
    /// The folder of the run directories, `OUT/monitor-HOST`.
    pub(crate) folder: PathBuf,
    pub(crate) records: Records,
    pub(crate) series: SeriesDetail,
    pub(crate) place: Place,
    pub(crate) arenas: &'a dyn Arenas,
    pub(crate) rotate: Amount,
    pub(crate) keep: Option<Amount>,
    pub(crate) terminal: Terminal,
}

/// The records of one monitor.
pub(crate) struct Recorder<'a> {
    options: RecordOptions<'a>,
    /// The plan of one session.
    plan: &'a Plan,
    open: Option<OpenDir>,
}

/// A run directory that receives sessions.
struct OpenDir {
    dir: RunDir,
    /// The settings with which the directory was made.
    settings: RunOptions,
    stopwatch: Stopwatch,
    opened_at: StdInstant,
    sessions: u64,
    /// The size of the sessions and events, in bytes.
    bytes: u64,
    journal: Journal,
    events: LineFile,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(options: RecordOptions<'a>, plan: &'a Plan) -> Self {
        Self { options, plan, open: None }
    }

    /// Returns the folder of the records.
    pub(crate) fn folder(&self) -> &Path {
        &self.options.folder
    }

    /// Closes the directories of monitors that were killed, and removes the directories that are too old.
    pub(crate) fn clean_up(&self) -> Result<(), Failure> {
        self.close_abandoned();
        self.remove_old()
    }

    /// Closes all open directories on which no monitor works. Their monitor was killed, or could not close
    /// them.
    fn close_abandoned(&self) {
        for path in run_dirs(&self.options.folder) {
            // If one directory cannot be closed, the others are closed all the same.
            if let Err(why) = self.close_if_abandoned(&path) {
                self.options.terminal.warning(&format!("{why}; {} stays as it is", path.display()));
            }
        }
    }

    fn close_if_abandoned(&self, path: &Path) -> Result<(), Failure> {
        let mut dir = RunDir::open(path)?;
        // Another monitor may work on the directory, or this monitor.
        if !dir.has_parts() || dir.lock().is_err() {
            return Ok(());
        }
        let (settings, scenario) = (RunOptions::read(&dir)?, read_text(&dir.file(SCENARIO))?);
        // If a kill cut the last event short, opening the file removes that event.
        LineFile::open(&dir.file(EVENTS))?;
        let kept = journal::read(&dir)?;
        if says_nothing(&dir.file(EVENTS)) && all_parts(&dir, &kept)?.is_empty() {
            // The monitor was killed before its first session and its first outage.
            return fs::remove_dir_all(path).map_err(|why| Failure::write(path, why));
        }
        self.close(&mut dir, &settings, &scenario, &Stopwatch::start())
    }

    /// Closes the open directory if it is full. Call this before a session and its events are added, so that
    /// both go to the same directory.
    pub(crate) fn rotate_if_full(&mut self) -> Result<(), Failure> {
        if self.open.as_ref().is_some_and(|open| self.is_full(open)) { self.rotate() } else { Ok(()) }
    }

    /// Adds a session that began at `at`.
    pub(crate) fn add_session(&mut self, mut record: RunRecord, at: DateTime<Utc>) -> Result<(), Failure> {
        let (records, plan) = (self.options.records, self.plan);
        let open = self.open_dir()?;
        record.repetition = open.sessions;
        let cell = &plan.cells[0];
        let part = Part::new(&record, plan, cell, false, instant_formatter(at));
        let no_files = ExtraFiles { arrivals: None, capture: None, qlog: None };
        open.bytes += match Packed::new(&part, &record, &no_files, records)? {
            Some(packed) => {
                open.journal.add(&open.dir, &packed)?;
                packed.size()
            }
            None => {
                part.save(&open.dir, &record, &no_files, records, false)?;
                size(&open.dir.part_folder(PartKey::whole(part.id())))
            }
        };
        open.sessions += 1;
        Ok(())
    }

    pub(crate) fn add_events(&mut self, lines: &[u8]) -> Result<(), Failure> {
        let open = self.open_dir()?;
        open.events.add(lines)?;
        open.bytes += lines.len() as u64;
        Ok(())
    }

    /// Closes the open directory and all abandoned ones, and removes the directories that are too old.
    pub(crate) fn rotate(&mut self) -> Result<(), Failure> {
        // Old directories are removed first, because on a full disk no directory can be closed.
        let removed = self.remove_old();
        self.close_abandoned();
        let closed = match self.open.take() {
            Some(mut open) => self.close(&mut open.dir, &open.settings, &self.plan.resolved, &open.stopwatch),
            None => Ok(()),
        };
        let removed_again = self.remove_old();
        closed.and(removed_again).and(removed)
    }

    fn is_full(&self, open: &OpenDir) -> bool {
        match self.options.rotate {
            Amount::Time(time) => open.opened_at.elapsed() >= StdDuration::from_nanos(time.as_nanos()),
            Amount::Bytes(bytes) => open.bytes >= bytes,
        }
    }

    /// Returns the open directory, and makes one if there is none.
    fn open_dir(&mut self) -> Result<&mut OpenDir, Failure> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let stopwatch = Stopwatch::start();
                let RecordOptions { records, series, .. } = self.options;
                let experiment = self.experiment(self.plan, records, series);
                let (dir, settings) = experiment
                    .open(Destination::Under(&self.options.folder), &stopwatch)
                    .map_err(|why| experiment_failure(why, records))?;
                let events = LineFile::open(&dir.file(EVENTS))?;
                let (opened_at, journal) = (StdInstant::now(), Journal::default());
                OpenDir { dir, settings, stopwatch, opened_at, sessions: 0, bytes: 0, journal, events }
            }
        };
        Ok(self.open.insert(open))
    }

    /// Merges the sessions of `dir` into one run. `scenario` is the resolved scenario of one session.
    fn close(
        &self,
        dir: &mut RunDir,
        settings: &RunOptions,
        scenario: &str,
        stopwatch: &Stopwatch,
    ) -> Result<(), Failure> {
        let kept = journal::read(dir)?;
        let sessions = all_parts(dir, &kept)?.len() as u64;
        if sessions == 0 {
            // The directory has only events, because no session was measured in its time.
            return Ok(dir.remove_parts()?);
        }
        let text = with_repetitions(scenario, sessions);
        let plan =
            load_source_beside(&dir.file(SCENARIO), &Source::new(SCENARIO, text), &Options::default())?;
        Ok(self
            .experiment(&plan, settings.records()?, settings.series()?)
            .close(dir, kept, settings, stopwatch)?)
    }

    fn experiment<'p>(&'p self, plan: &'p Plan, records: Records, series: SeriesDetail) -> Experiment<'p> {
        let RecordOptions { place, arenas, terminal, .. } = &self.options;
        let observer = Box::new(TerminalObserver::new(*terminal, records));
        Experiment { records, series, ..Experiment::new(plan, place.clone(), *arenas, observer, &Pages) }
    }

    fn remove_old(&self) -> Result<(), Failure> {
        let Some(keep) = self.options.keep else { return Ok(()) };
        let open = self.open.as_ref().map(|open| open.dir.path());
        let mut closed = run_dirs(&self.options.folder);
        closed.retain(|path| Some(path.as_path()) != open && !path.join(PARTS).is_dir());
        match keep {
            Amount::Time(time) => {
                closed.retain(|path| last_event(path).is_some_and(|at| age_ns(at) > time.as_nanos()));
            }
            Amount::Bytes(bytes) => {
                let newest = count_newest(&closed, bytes);
                closed.truncate(closed.len() - newest);
            }
        }
        for path in closed {
            fs::remove_dir_all(&path).map_err(|why| Failure::write(&path, why))?;
        }
        Ok(())
    }
}

/// Returns true if the file of events says only that a monitor began.
fn says_nothing(events: &Path) -> bool {
    let text = fs::read_to_string(events).unwrap_or_default();
    text.lines().all(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        event["event"] == "start"
    })
}

/// Counts how many of the newest directories have at most `bytes` together. `dirs` are in the order of time.
fn count_newest(dirs: &[PathBuf], bytes: u64) -> usize {
    let mut total = 0;
    let mut count = 0;
    for path in dirs.iter().rev() {
        total += size(path);
        if total > bytes {
            break;
        }
        count += 1;
    }
    count
}

/// Returns the run directories of a monitor in `folder`, in the order of their names. A name begins with the
/// time at which the directory was made.
fn run_dirs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_ours = |path: &PathBuf| {
        start_of_run(path).is_some() && path.join(EVENTS).is_file() && path.join(SCENARIO).is_file()
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_ours).collect();
    paths.sort();
    paths
}

/// Returns the time of the newest event in the run directory `path`.
fn last_event(path: &Path) -> Option<DateTime<Utc>> {
    let begun = start_of_run(path)?;
    Some(last_time(&path.join(EVENTS)).map_or(begun, |last| last.max(begun)))
}

/// Returns how long ago `at` was, in ns.
fn age_ns(at: DateTime<Utc>) -> u64 {
    (Utc::now() - at).num_nanoseconds().and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0)
}

/// Returns the size of all files below `path`, in bytes. Symbolic links are not followed.
fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let entry_size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(entry_size).sum()
}

/// Returns the folder under `out` that holds the records about `host`.
pub(crate) fn folder(out: &Path, host: &str) -> PathBuf {
    out.join(format!("monitor-{}", slug(host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arenas::NO_ARENAS;
    use crate::monitor::interval::tests::session;
    use crate::scenario_file::load_source;
    use talkpath_experiment::choice::ArenaKind;
    use talkpath_experiment::stopwatch::FILE_NAME_TIME;
    use talkpath_scenario::Setting;
    use talkpath_units::Duration;

    const HOUR: Amount = Amount::Time(Duration::from_secs(3600));

    fn plan() -> Plan {
        let source = Source::new("monitor", "drain = \"2 s\"");
        let call = "{ call = { transport = \"udp\", workload = { kind = \"voice\", codec = \"g711\" } } }";
        let set = [("name", "\"a pair\""), ("duration", "\"1 s\""), ("flow", call)];
        let set = set.into_iter().map(|(key, value)| Setting::new(key, value)).collect();
        load_source(&source, &Options { set, ..Options::default() }).unwrap()
    }

    fn recorder<'a>(folder: &Path, plan: &'a Plan, rotate: Amount, keep: Option<Amount>) -> Recorder<'a> {
        let place = Place::new(ArenaKind::Live, Some("host"));
        let options = RecordOptions {
            folder: folder.to_path_buf(),
            records: Records::All,
            series: SeriesDetail::Sampled,
            place,
            arenas: &NO_ARENAS,
            rotate,
            keep,
            terminal: Terminal::plain(),
        };
        Recorder::new(options, plan)
    }

    fn fill(recorder: &mut Recorder<'_>, sessions: u64) {
        for number in 0..sessions {
            recorder.rotate_if_full().unwrap();
            recorder.add_events(b"{}\n").unwrap();
            let record = session(number, 0, 1_000, 7).record.unwrap();
            recorder.add_session(record, Utc::now()).unwrap();
        }
    }

    /// A line of an interval of 10 s that was over so long ago.
    fn event(ago: StdDuration) -> String {
        let begun_ms = (Utc::now() - ago).timestamp_millis() - 10_000;
        let data = format!("{{\"timestamp\":{{\"timemillisecs\":{begun_ms}}},\"sum\":{{\"seconds\":10}}}}");
        format!("{{\"event\":\"interval\",\"data\":{data}}}\n")
    }

    fn runs_in(path: &Path) -> usize {
        let text = fs::read_to_string(path.join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(
            summary["warnings"]
                .as_array()
                .unwrap()
                .iter()
                .all(|it| !it.to_string().contains("missing or cut"))
        );
        summary["runs"].as_array().unwrap().len()
    }

    #[test]
    fn each_directory_has_its_sessions_as_repetitions_and_is_closed_when_it_is_full() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let mut recorder = recorder(folder.path(), &plan, Amount::Bytes(1), None);
        fill(&mut recorder, 3);
        recorder.rotate().unwrap();
        let dirs = run_dirs(folder.path());
        // Full after each session.
        assert_eq!(dirs.iter().map(|dir| runs_in(dir)).collect::<Vec<_>>(), [1, 1, 1]);
        assert!(dirs.iter().all(|dir| !dir.join("parts").is_dir() && dir.join("packets.parquet").is_file()));
    }

    #[test]
    fn a_directory_that_a_killed_monitor_left_open_is_closed_by_the_next() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let mut killed = recorder(folder.path(), &plan, HOUR, None);
        fill(&mut killed, 2);
        assert!(run_dirs(folder.path())[0].join("parts").is_dir());
        // Still locked: somebody works on it.
        recorder(folder.path(), &plan, HOUR, None).clean_up().unwrap();
        assert!(run_dirs(folder.path())[0].join("parts").is_dir());
        drop(killed);
        // The next one keeps less, and measures something else.
        let another = Plan { resolved: "name = \"another\"".to_owned(), ..plan.clone() };
        let mut other = recorder(folder.path(), &another, HOUR, None);
        other.options.records = Records::Summary;
        other.clean_up().unwrap();
        assert!(run_dirs(folder.path())[0].join("packets.parquet").is_file());
        let dirs = run_dirs(folder.path());
        assert_eq!((dirs.len(), runs_in(&dirs[0])), (1, 2));
    }

    #[test]
    fn a_directory_of_a_monitor_that_was_killed_before_it_measured_is_removed_and_one_with_an_outage_stays() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let begin = |events: &str| {
            let mut killed = recorder(folder.path(), &plan, HOUR, None);
            killed.add_events(events.as_bytes()).unwrap();
        };
        let outage = "{\"event\":\"outage\",\"data\":{}}\n";
        begin("{\"event\":\"start\",\"data\":{}}\n");
        begin(&format!("{{\"event\":\"start\",\"data\":{{}}}}\n{outage}"));
        assert_eq!(run_dirs(folder.path()).len(), 2);
        recorder(folder.path(), &plan, HOUR, None).clean_up().unwrap();
        let dirs = run_dirs(folder.path());
        assert_eq!(dirs.len(), 1);
        assert!(fs::read_to_string(dirs[0].join(EVENTS)).unwrap().contains("outage"));
    }

    #[test]
    fn one_broken_directory_does_not_keep_the_others_from_being_closed() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let broken = folder.path().join("2020-01-01T00-00-00Z-a");
        fs::create_dir_all(broken.join("parts")).unwrap();
        for name in [SCENARIO, EVENTS, "parts/plan.json"] {
            fs::write(broken.join(name), "{").unwrap();
        }
        fill(&mut recorder(folder.path(), &plan, HOUR, None), 2);
        recorder(folder.path(), &plan, HOUR, None).clean_up().unwrap();
        let dirs = run_dirs(folder.path());
        assert_eq!((dirs.len(), runs_in(&dirs[1])), (2, 2));
        assert!(broken.join("parts").is_dir(), "what it holds is not thrown away");
    }

    #[test]
    fn a_directory_that_could_not_be_closed_is_tried_again_when_the_next_is_full() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let mut recorder = recorder(folder.path(), &plan, Amount::Bytes(1), None);
        fill(&mut recorder, 1);
        let first = run_dirs(folder.path())[0].clone();
        let in_the_way = first.join("report.html");
        fs::create_dir_all(in_the_way.join("a")).unwrap();
        assert!(recorder.rotate().is_err() && first.join("parts").is_dir());
        fs::remove_dir_all(in_the_way).unwrap();
        fill(&mut recorder, 1);
        recorder.rotate().unwrap();
        let dirs = run_dirs(folder.path());
        assert_eq!(dirs.iter().map(|dir| runs_in(dir)).collect::<Vec<_>>(), [1, 1]);
        assert!(dirs.iter().all(|dir| !dir.join("parts").is_dir()));
    }

    #[test]
    fn old_directories_are_removed_even_if_the_open_one_cannot_be_closed() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let day = Amount::Time(Duration::from_secs(86_400));
        let mut recorder = recorder(folder.path(), &plan, day, Some(day));
        fill(&mut recorder, 1);
        let open = run_dirs(folder.path())[0].clone();
        // As on a full disk: scenario.toml cannot be written.
        fs::remove_file(open.join(SCENARIO)).unwrap();
        fs::create_dir_all(open.join(SCENARIO).join("in the way")).unwrap();
        let old = folder.path().join("2020-01-01T00-00-00Z-a");
        fs::create_dir(&old).unwrap();
        fs::write(old.join(SCENARIO), "").unwrap();
        fs::write(old.join(EVENTS), event(StdDuration::from_secs(2 * 86_400))).unwrap();
        assert!(recorder.rotate().is_err());
        assert!(!old.exists() && open.join("parts").is_dir());
    }

    #[test]
    fn age_counts_from_the_newest_event_of_a_directory() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let day = StdDuration::from_secs(86_400);
        // As `--rotate 24h --keep 1d` has them: both began more than a day ago.
        for (name, ended) in [("full-now", StdDuration::from_secs(60)), ("full-before", day * 3 / 2)] {
            let begun = (Utc::now() - ended - day).format(FILE_NAME_TIME);
            let path = folder.path().join(format!("{begun}-{name}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(SCENARIO), "").unwrap();
            // Files of a copy are all new.
            fs::write(path.join(EVENTS), event(ended)).unwrap();
        }
        let keep = Amount::Time(Duration::from_secs(day.as_secs()));
        recorder(folder.path(), &plan, keep, Some(keep)).clean_up().unwrap();
        let left = run_dirs(folder.path());
        assert!(left.len() == 1 && left[0].to_string_lossy().ends_with("full-now"), "{left:?}");
    }

    #[test]
    fn a_line_that_a_killed_monitor_cut_short_is_removed_when_its_directory_is_closed() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        fill(&mut recorder(folder.path(), &plan, HOUR, None), 1);
        let events = run_dirs(folder.path())[0].join(EVENTS);
        fs::write(&events, "{}\n{\"eve").unwrap();
        recorder(folder.path(), &plan, HOUR, None).clean_up().unwrap();
        assert_eq!(fs::read_to_string(events).unwrap(), "{}\n");
    }

    #[test]
    fn retention_removes_the_oldest_of_its_own_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan();
        let make = |name: &str, bytes: usize, is_ours: bool| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(SCENARIO), "").unwrap();
            fs::write(path.join("packets.parquet"), vec![0; bytes]).unwrap();
            if is_ours {
                fs::write(path.join(EVENTS), event(StdDuration::from_secs(8 * 86_400))).unwrap();
            }
        };
        let recent = Utc::now().format(FILE_NAME_TIME).to_string();
        make("2020-01-01T00-00-00Z-a", 1_000, true);
        make("2020-01-02T00-00-00Z-a", 1_000, true);
        make("2020-01-01T00-00-00Z-somebodys", 1_000, false);
        make("notes", 1_000, true);
        make(&format!("{recent}-a"), 1_000, true);
        let names = || -> Vec<String> {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let keep =
            |amount| recorder(folder.path(), &plan, Amount::Bytes(1), Some(amount)).clean_up().unwrap();
        keep(Amount::Bytes(2_500));
        assert!(
            !names().contains(&"2020-01-01T00-00-00Z-a".to_owned()) && names().len() == 4,
            "{:?}",
            names()
        );
        keep(Amount::Time(Duration::from_secs(7 * 86_400)));
        assert_eq!(
            names(),
            ["2020-01-01T00-00-00Z-somebodys".to_owned(), format!("{recent}-a"), "notes".to_owned()]
        );
    }
}
