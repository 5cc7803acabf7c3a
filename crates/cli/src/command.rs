//! One module a command; what `compare` and `run` print at the end is here.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod mos;
pub(crate) mod play;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod study;
pub(crate) mod transfer;

use std::num::NonZeroUsize;
use std::thread;

use crate::args::Common;
use crate::experiment::Outcome;
use crate::failure::Failure;
use crate::json::json;
use crate::part::REPORT;
use crate::terminal::{self, Terminal};
use crate::thresholds::{self, Demands};

/// `--jobs`, or one for each core.
fn jobs(common: &Common) -> usize {
    common.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Prints what a run has shown, `table` being its words for a person, and decides how the command ends.
fn conclude(
    outcome: Outcome,
    table: &str,
    way_on: &str,
    demands: &Demands<'_>,
    common: &Common,
    strict: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let Outcome { dir, summary, failure } = outcome;
    let judged = thresholds::judge(demands.plan, &summary);
    let lines = judged.as_ref().map_or(String::new(), |judged| thresholds::lines(judged));
    if common.json {
        // The tables say them in their heading.
        for warning in &summary.warnings {
            terminal.warning(warning);
        }
        terminal::print(&json(&summary))?;
    } else {
        let report = dir.file(REPORT);
        let lines = if lines.is_empty() { lines } else { format!("\n{lines}") };
        terminal.result(&format!("{}\n{lines}\nReport: {}\n{way_on}", table.trim_end(), report.display()))?;
    }
    let unwritten = match (&judged, demands.junit) {
        (Ok(judged), Some(path)) => thresholds::write_junit(path, &summary.name, judged).err(),
        _ => None,
    };
    let threshold = match &judged {
        Ok(judged) => thresholds::failure(judged, common.json || common.quiet),
        Err(_) => judged.err(),
    };
    let invalid = (strict && !summary.valid)
        .then(|| Failure::NotHeld("--strict: the run is not valid; the warnings say why".to_owned()));
    ending([failure, threshold, unwritten, invalid], |failure| terminal.error(&failure.to_string()))
}

/// The first of the failures ends the command, as docs/reference/interface.md ranks them: what cut the run
/// short, a threshold, a file that could not be written, `--strict`. The rest are only told.
fn ending(failures: [Option<Failure>; 4], tell: impl Fn(&Failure)) -> Result<(), Failure> {
    let mut failures = failures.into_iter().flatten();
    let Some(first) = failures.next() else { return Ok(()) };
    failures.for_each(|failure| tell(&failure));
    Err(first)
}

/// How the user called this program, for commands that they can copy.
fn program() -> String {
    std::env::args_os()
        .next()
        .map_or_else(|| "talkpath".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    use super::*;

    #[test]
    fn a_lost_far_end_goes_before_a_threshold_and_that_before_strict() {
        let far = || Some(Failure::FarEnd("gone".to_owned()));
        let threshold = || Some(Failure::Threshold("call.mos".to_owned()));
        let unwritten =
            || Some(Failure::Write { what: "junit.xml".to_owned(), why: io::Error::other("full") });
        let strict = || Some(Failure::NotHeld("--strict".to_owned()));
        for (failures, code, told) in [
            ([far(), threshold(), None, strict()], 4, 2),
            ([None, threshold(), unwritten(), strict()], 5, 2),
            ([None, None, unwritten(), None], 1, 0),
            ([None, None, None, strict()], 1, 0),
        ] {
            let count = Cell::new(0);
            let ended = ending(failures, |_| count.set(count.get() + 1)).unwrap_err();
            assert_eq!((ended.exit_code(), count.get()), (code, told), "{ended}");
        }
        assert!(ending([None, None, None, None], |_| ()).is_ok());
    }
}
