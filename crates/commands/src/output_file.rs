//! The files that the user names as outputs. A command must not write them over the records of a run.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use talkpath_experiment::part::{ARRIVALS, CAPTURES, LOG, PACKETS, QLOGS, REPORT, SERIES, SUMMARY};
use talkpath_experiment::run_dir::{PARTS, SCENARIO};
use talkpath_experiment::store::whole::{WRITE_AT_ONCE, write_whole};

/// The files and folders of a run directory that a command writes (docs/reference/records.md).
const RUN_RECORDS: [&str; 13] = [
    SCENARIO,
    SUMMARY,
    PACKETS,
    SERIES,
    LOG,
    REPORT,
    PLAY,
    ARRIVALS,
    CAPTURES,
    QLOGS,
    PARTS,
    "traces",
    "events.jsonl",
];

/// The files and folders that only the directories of studies and of campaigns have.
const OTHER_RECORDS: [&str; 7] =
    ["study.json", "study", "plan.json", "journal.jsonl", "uploads.jsonl", "lock", "records"];

/// Refuses to write `target`, which `option` names, if it is a file that belongs to a run. The command works
/// on the directories `dirs`. In these, it may write the file with the name `own`.
///
/// Paths are compared after the system has resolved them, so a symbolic link or a relative path does not get
/// around the refusal.
pub fn refuse_records(option: &str, target: &Path, dirs: &[&Path], own: Option<&str>) -> Result<(), Failure> {
    let dirs: Vec<PathBuf> = dirs.iter().filter_map(|dir| fs::canonicalize(dir).ok()).collect();
    // If the target is a symbolic link, neither the link nor the file to which it leads may be written.
    for path in [with_resolved_folder(target), fs::canonicalize(target).ok()].into_iter().flatten() {
        let folder =
            folder_of_record(&path, &dirs, own).or_else(|| folder_of_linked_record(&path, &dirs, own));
        if let Some(folder) = folder {
            return Err(Failure::Usage(format!(
                "{option} {}: belongs to what was recorded in {}, and would be lost; name another file",
                target.display(),
                folder.display()
            )));
        }
    }
    Ok(())
}

/// Returns the directory whose record is at `path`, or `None` if `path` is not a record of any directory.
fn folder_of_record(path: &Path, dirs: &[PathBuf], own: Option<&str>) -> Option<PathBuf> {
    for folder in path.ancestors().skip(1) {
        let inner = path.strip_prefix(folder).ok()?;
        let first = inner.iter().next()?;
        let is_given = dirs.iter().any(|dir| dir == folder);
        if is_given && own.is_some_and(|own| inner == Path::new(own)) {
            continue;
        }
        let is_record_of_run = RUN_RECORDS.iter().any(|name| first == *name);
        let is_other_record = OTHER_RECORDS.iter().any(|name| first == *name);
        if is_record_of_run && (is_given || is_run(folder)) || is_other_record && is_given {
            return Some(folder.to_owned());
        }
    }
    None
}

/// Returns the directory of `dirs` that has a record which is a symbolic link to `path`, or to a folder above
/// `path`. Such a link puts large records on another disk.
fn folder_of_linked_record(path: &Path, dirs: &[PathBuf], own: Option<&str>) -> Option<PathBuf> {
    for dir in dirs {
        for name in RUN_RECORDS {
            let leads_here = fs::canonicalize(dir.join(name)).is_ok_and(|record| path.starts_with(record));
            if leads_here && own != Some(name) {
                return Some(dir.clone());
            }
        }
    }
    None
}

/// Refuses the file of `--junit`, if there is one, as [`refuse_records`] does.
pub(crate) fn refuse_junit(junit: Option<&Path>, dirs: &[&Path]) -> Result<(), Failure> {
    junit.map_or(Ok(()), |path| refuse_records("--junit", path, dirs, None))
}

/// Returns whether `folder` holds a run, or a part of a run.
pub(crate) fn is_run(folder: &Path) -> bool {
    let holds = |name: &str| folder.join(name).exists();
    holds(SCENARIO) && (holds(SUMMARY) && holds(LOG) || holds(PARTS))
}

/// Returns the path of `target` with its folder resolved by the system. The target itself may be a symbolic
/// link.
fn with_resolved_folder(target: &Path) -> Option<PathBuf> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(target.file_name()?))
}

/// Writes the file `path`, which the user named on the command line.
///
/// The new file replaces the old one only when it is complete (`write_whole`). There are two exceptions. If
/// `path` is a symbolic link, the file to which it leads is replaced. A device or a pipe, such as
/// `/dev/stdout`, cannot be replaced, so it is opened and written. In a run directory a symbolic link is
/// replaced and not followed, because somebody else may have made the directory.
pub fn write_named(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if path.with_file_name(SCENARIO).exists() {
        return write_whole(path, fill);
    }
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let file = File::options().write(true).open(path).map_err(|why| Failure::write(path, why))?;
        let mut writer = BufWriter::with_capacity(WRITE_AT_ONCE, file);
        fill(&mut writer)?;
        return writer.flush().map_err(|why| Failure::write(path, why));
    }
    let link_target = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path).ok(),
        _ => None,
    };
    write_whole(link_target.as_deref().unwrap_or(path), fill)
}

/// Writes `bytes` to the file `path`, as [`write_named`] does.
pub(crate) fn write_named_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_named(path, |writer| writer.write_all(bytes).map_err(|why| Failure::write(path, why)))
}

/// The page that `talkpath play` writes into a run directory.
pub const PLAY: &str = "play.html";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a run in `run`.
    fn bench() -> tempfile::TempDir {
        let bench = tempfile::tempdir().unwrap();
        let run = bench.path().join("run");
        fs::create_dir_all(run.join(ARRIVALS)).unwrap();
        for name in [SCENARIO, SUMMARY, LOG] {
            fs::write(run.join(name), "").unwrap();
        }
        bench
    }

    #[test]
    fn a_link_in_a_run_directory_is_not_written_through_where_the_user_names_it() {
        let bench = bench();
        let (victim, page) = (bench.path().join("victim"), bench.path().join("run/play.html"));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &page).unwrap();
        write_named_bytes(&page, b"page").unwrap();
        assert_eq!(fs::read(&page).unwrap(), b"page");
        assert!(fs::symlink_metadata(&page).unwrap().is_file());
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
    }

    #[test]
    fn a_file_of_a_run_is_refused_by_each_of_its_paths_whether_it_exists_or_not() {
        let bench = bench();
        let run = bench.path().join("run");
        symlink(run.join(SUMMARY), bench.path().join("link.html")).unwrap();
        symlink(&run, bench.path().join("same")).unwrap();
        fs::write(bench.path().join("packets"), "").unwrap();
        symlink(bench.path().join("packets"), run.join(PACKETS)).unwrap();
        for target in [
            "run/summary.json",
            "run/../run/series.parquet",
            "run/arrivals/0-0",
            "run/report.html",
            "same/log.txt",
            "link.html",
            "run/packets.parquet",
            "packets",
        ] {
            let refused = refuse_records("-o", &bench.path().join(target), &[&run], Some(PLAY));
            let why = refused.unwrap_err();
            assert!(why.exit_code() == 2 && why.to_string().contains("name another file"), "{target}: {why}");
        }
        for target in ["run/play.html", "run/rows.csv", "summary.json", "missing/summary.json"] {
            refuse_records("-o", &bench.path().join(target), &[&run], Some(PLAY)).unwrap();
        }
    }

    #[test]
    fn another_run_is_safe_too_and_a_folder_with_only_a_scenario_is_not_a_run() {
        let bench = bench();
        let (run, target) = (bench.path().join("run"), bench.path().join("run/play.html"));
        assert!(refuse_records("-o", &target, &[], Some(PLAY)).is_err());
        fs::remove_file(run.join(SUMMARY)).unwrap();
        assert!(refuse_records("-o", &target, &[], None).is_ok());
        assert!(refuse_records("-o", &target, &[&run], None).is_err());
    }

    #[test]
    fn a_link_that_the_user_names_is_followed_and_a_pipe_is_written_into() {
        let out = tempfile::tempdir().unwrap();
        let (end, link, pipe) = (out.path().join("end"), out.path().join("link"), out.path().join("pipe"));
        symlink("end", &link).unwrap();
        fs::write(&end, "old").unwrap();
        write_named_bytes(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&end).unwrap(), b"new");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_named_bytes(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
    }
}
