//! The files that the user names: where a command may write them, which is not over what a run has left, and
//! how.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use talkpath_experiment::part::{ARRIVALS, CAPTURES, LOG, PACKETS, REPORT, SERIES, SUMMARY};
use talkpath_experiment::run_dir::{PARTS, SCENARIO};
use talkpath_experiment::store::whole::{WRITE_AT_ONCE, write_whole};

/// Refuses to write `target`, which `option` names, if it is one of the files of a directory in `dirs`, or of
/// any other run. In `dirs` the command may write the file `own`.
///
/// Paths are compared as the system resolves them: a link or a relative path leads to the same refusal.
pub fn refuse_records(option: &str, target: &Path, dirs: &[&Path], own: Option<&str>) -> Result<(), Failure> {
    let dirs: Vec<PathBuf> = dirs.iter().filter_map(|dir| fs::canonicalize(dir).ok()).collect();
    for place in [named(target), fs::canonicalize(target).ok()].into_iter().flatten() {
        let found = place.ancestors().skip(1).find_map(|folder| {
            let inner = place.strip_prefix(folder).ok()?;
            let is_given = dirs.iter().any(|dir| dir == folder);
            let is_own = is_given && own.is_some_and(|own| inner == Path::new(own));
            let first = Path::new(inner.iter().next()?);
            let is_of = |names: &[&str]| names.iter().any(|name| first == Path::new(name));
            let is_record = is_of(&OF_RUNS) && (is_given || is_run(folder)) || is_of(&OF_OTHERS) && is_given;
            (is_record && !is_own).then(|| folder.to_owned())
        });
        // Records may be links to where there is room.
        let linked = || {
            let mut records = dirs.iter().flat_map(|dir| OF_RUNS.iter().map(move |name| (dir, name)));
            let leads_here = |(dir, name): &(&PathBuf, &&str)| {
                own != Some(**name)
                    && fs::canonicalize(dir.join(name)).is_ok_and(|end| place.starts_with(end))
            };
            records.find(leads_here).map(|(dir, _)| dir.clone())
        };
        if let Some(folder) = found.or_else(linked) {
            return Err(Failure::Usage(format!(
                "{option} {}: belongs to what was recorded in {}, and would be lost; name another file",
                target.display(),
                folder.display()
            )));
        }
    }
    Ok(())
}

/// As [`refuse_records`], of the file that `--junit` names, if it names one.
pub(crate) fn refuse_junit(junit: Option<&Path>, dirs: &[&Path]) -> Result<(), Failure> {
    junit.map_or(Ok(()), |path| refuse_records("--junit", path, dirs, None))
}

/// Whether `folder` holds a run, or a part of one.
pub(crate) fn is_run(folder: &Path) -> bool {
    let holds = |name: &str| folder.join(name).exists();
    holds(SCENARIO) && (holds(SUMMARY) && holds(LOG) || holds(PARTS))
}

/// `target` by its own name, in the folder as the system resolves it.
fn named(target: &Path) -> Option<PathBuf> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(target.file_name()?))
}

/// Writes the file `path`, which the user named on the command line: as `write_whole`, but the end of a
/// symbolic link is written, and a device or a pipe (`/dev/stdout`) is written into, since it cannot be
/// replaced. A link in a run directory is not followed: somebody else may have made the directory.
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
    let end = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path).ok(),
        _ => None,
    };
    write_whole(end.as_deref().unwrap_or(path), fill)
}

/// As [`write_bytes`], to a file that the user named on the command line.
pub(crate) fn write_named_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_named(path, |writer| writer.write_all(bytes).map_err(|why| Failure::write(path, why)))
}

/// The page that `talkpath play` writes into a run directory.
pub const PLAY: &str = "play.html";

/// What a run directory holds, whichever command wrote it (docs/reference/records.md).
const OF_RUNS: [&str; 12] = [
    SCENARIO,
    SUMMARY,
    PACKETS,
    SERIES,
    LOG,
    REPORT,
    PLAY,
    ARRIVALS,
    CAPTURES,
    PARTS,
    "traces",
    "events.jsonl",
];

/// What the directories of studies and of campaigns hold beside that.
const OF_OTHERS: [&str; 7] =
    ["study.json", "study", "plan.json", "journal.jsonl", "uploads.jsonl", "lock", "records"];

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
    fn no_way_leads_to_a_file_of_a_run_whether_it_is_there_or_not() {
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
    fn another_run_is_safe_too_and_a_folder_with_a_scenario_alone_is_no_run() {
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
