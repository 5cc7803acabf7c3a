//! `talkpath study judge` judges the claims of a study by the measurements of a campaign.

use talkpath_campaign::samples;
use talkpath_report::study_page;
use talkpath_study::{ArenaName, Changes, judge};

use super::find::find;
use super::{check_verdicts, print_outcome, select};
use crate::args::{Common, StudyJudgeArgs};
use crate::campaign::store::Store;
use crate::command::campaign::records;
use crate::failure::Failure;
use crate::output_file::refuse_records;
use crate::output_file::write_named_bytes;
use crate::terminal::{Terminal, shell_word};

/// The length of the day, `YYYY-MM-DD`, at the beginning of a time in RFC 3339.
const DAY_LENGTH: usize = 10;

/// Judges the claims, and writes the page. Nothing runs.
pub(super) fn run(args: &StudyJudgeArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let study = find(&args.name, &Changes::default())?;
    if study.campaign.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: missing [[campaign]]: the study does not say which measurements of a campaign are its cells",
            study.name
        )));
    }
    let selection = select(&study, vec![ArenaName::Campaign], false, &args.claims)?;
    let store = Store::at(&args.campaign);
    let plan = store.read_plan()?;
    if let Some(path) = &args.output {
        refuse_records("-o", path, &[store.path()], None)?;
    }
    let summaries = store.summaries(&plan)?;
    let mut outcome = judge(&study, &selection, &samples(&study, &records(&plan, &summaries)));
    // Measurements do not repeat themselves, so they are quoted with their first day.
    outcome.day = summaries
        .iter()
        .filter_map(|(_, summary)| summary.started.get(..DAY_LENGTH))
        .min()
        .map(str::to_owned);
    let target = args.output.clone().unwrap_or_else(|| store.file(&format!("{}.html", study.name)));
    let page = study_page(&outcome, &[], env!("CARGO_PKG_VERSION"), &same_command(args));
    write_named_bytes(&target, page.as_bytes())?;
    let printed = print_outcome(&outcome, &target, common, terminal);
    let judged = check_verdicts(&outcome, args.strict, terminal);
    terminal.end_with([judged.err(), printed.err()])
}

/// Returns the command that judges the same claims again, for the page.
fn same_command(args: &StudyJudgeArgs) -> String {
    let (name, campaign) = (shell_word(&args.name), shell_word(&args.campaign.to_string_lossy()));
    let claims: String = args.claims.iter().map(|id| format!(" --claim {}", shell_word(id))).collect();
    format!("talkpath study judge {name} --campaign {campaign}{claims}")
}
