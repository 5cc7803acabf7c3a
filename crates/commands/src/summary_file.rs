//! Reads the summary.json of a run directory.

use serde::Deserialize;
use talkpath_measure::summary::{SUMMARY_FORMAT, Summary};
use talkpath_scenario::Options;

use crate::failure::Failure;
use crate::scenario_file::load_file;
use crate::terminal::{Terminal, program, shell_path};
use talkpath_experiment::part::SUMMARY;
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_experiment::run_options::RunOptions;
use talkpath_experiment::store::whole::read_json;

/// Reads the summary of the run in `dir`. If its format is older, a warning says which figures it may lack.
pub(crate) fn read_summary(dir: &RunDir, terminal: Terminal) -> Result<Summary, Failure> {
    check_ended(dir)?;
    // If the file cannot be read, it may have a later format. The format alone is read only in that case,
    // because the file may be large.
    let read = read_json(&dir.file(SUMMARY)).map_err(Failure::from);
    let summary: Summary = read.or_else(|why| refuse_later_format(dir).and(Err(why)))?;
    if summary.format != SUMMARY_FORMAT {
        refuse_later_format(dir)?;
        let lacks = match summary.format {
            1 => {
                "opinion scores, states, losses of each direction, queue delays, provenance, times to open and ledgers"
            }
            _ => "times to open and ledgers",
        };
        terminal.warning(&format!(
            "{}: talkpath {} made it, in format {}: it may lack {lacks}, which are left out; what was due before a \
             connection was open, or without a network, is not counted as lost there",
            dir.path().display(),
            summary.talkpath,
            summary.format
        ));
    }
    Ok(summary)
}

/// Refuses the run in `dir` if it has not ended, or if its summary has a later format than this program
/// knows. A later format may have other keys, so the format is read before any other key.
pub(crate) fn refuse_later_format(dir: &RunDir) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Version {
        format: Option<u32>,
        talkpath: Option<String>,
    }
    check_ended(dir)?;
    let path = dir.file(SUMMARY);
    let Version { format, talkpath } = read_json(&path)?;
    match format {
        // A summary without the key has format 1.
        None | Some(1..=SUMMARY_FORMAT) => Ok(()),
        Some(format) => Err(Failure::Usage(format!(
            "{}: format {format}, made by talkpath {}; this talkpath reads formats 1 to {SUMMARY_FORMAT}",
            path.display(),
            talkpath.as_deref().unwrap_or("of an unknown version")
        ))),
    }
}

/// The keys of a summary that describe the run as a whole. The cells and the repetitions, of which there may
/// be many thousands, are skipped and take no memory.
#[derive(Debug, Deserialize)]
pub struct Head {
    /// The arena of the run.
    pub arena: String,
    /// The version of talkpath that made the run.
    pub talkpath: String,
}

/// Reads the head of the summary of the run in `dir`.
pub fn head_of(dir: &RunDir) -> Result<Head, Failure> {
    refuse_later_format(dir)?;
    Ok(read_json(&dir.file(SUMMARY))?)
}

/// Checks that the run in `dir` has ended. If it has not, the failure names the command that goes on with it.
pub fn check_ended(dir: &RunDir) -> Result<(), Failure> {
    let path = dir.path();
    if dir.file(SUMMARY).is_file() {
        return Ok(());
    }
    if !RunDir::is_begun(path) {
        return Err(Failure::Usage(format!(
            "{}: no {SUMMARY} in it, and nothing from which the run could continue: run its scenario again",
            path.display()
        )));
    }
    let program = program();
    let why = match RunOptions::read(dir)?.shard()? {
        Some(shard) => {
            format!("part {shard} of a run; `{program} merge DIR... -o RUN` makes a run of all parts")
        }
        None if is_of_shell(dir) => {
            format!(
                "`{program} shell` was killed before it wrote the record, and no command can go on with it"
            )
        }
        None => {
            format!("the run has not ended; `{program} run --resume {}` goes on with it", shell_path(path))
        }
    };
    Err(Failure::Usage(format!("{}: {why}", path.display())))
}

/// Whether `talkpath shell` made the run in `dir`.
fn is_of_shell(dir: &RunDir) -> bool {
    let plan = load_file(&dir.file(SCENARIO), &Options::default());
    let mut cells = plan.iter().flat_map(|plan| &plan.cells);
    cells.any(|cell| cell.scenario.program.as_ref().is_some_and(|program| program.is_of_shell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_read_without_the_runs() {
        let folder = tempfile::tempdir().unwrap();
        let runs = r#"[{ "cell": "that no summary has" }]"#;
        let text = format!(r#"{{ "talkpath": "0", "arena": "emu", "runs": {runs} }}"#);
        std::fs::write(folder.path().join(SUMMARY), text).unwrap();
        std::fs::write(folder.path().join(SCENARIO), "").unwrap();
        let dir = RunDir::open(folder.path()).unwrap();
        assert!(read_json::<Summary>(&dir.file(SUMMARY)).is_err());
        let head = head_of(&dir).unwrap();
        assert_eq!((head.arena.as_str(), head.talkpath.as_str()), ("emu", "0"));
    }

    #[test]
    fn a_later_format_is_refused_by_its_number_whatever_else_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SCENARIO), "").unwrap();
        let text = r#"{ "format": 4, "talkpath": "9", "runs": "elsewhere" }"#;
        std::fs::write(folder.path().join(SUMMARY), text).unwrap();
        let dir = RunDir::open(folder.path()).unwrap();
        let refusals = [
            read_summary(&dir, Terminal::plain()).map(drop),
            head_of(&dir).map(drop),
            refuse_later_format(&dir),
        ];
        for refusal in refusals {
            let why = refusal.unwrap_err().to_string();
            assert!(
                why.ends_with("format 4, made by talkpath 9; this talkpath reads formats 1 to 3"),
                "{why}"
            );
        }
    }
}
