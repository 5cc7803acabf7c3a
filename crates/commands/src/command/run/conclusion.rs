//! What `talkpath run` prints at the end of a whole run, and at the end of a part.

use talkpath_report::run_table;
use talkpath_scenario::Plan;
use talkpath_units::counted;

use crate::args::RunArgs;
use crate::command::allowed::{has_program, scenarios};
use crate::command::{Conclusion, Context, again, conclude, files_of_sweep};
use crate::failure::Failure;
use crate::place;
use crate::running::{EndedPart, Outcome};
use crate::terminal::{self, program};
use talkpath_experiment::PartOutcome;
use talkpath_experiment::json::json;
use talkpath_experiment::place::Place;
use talkpath_experiment::shard::Shard;

/// Prints the tables of a whole run, and proposes what to type next.
pub(super) fn conclude_run(
    outcome: Outcome,
    place: &Place,
    plan: &Plan,
    args: &RunArgs,
    context: Context<'_>,
) -> Result<(), Failure> {
    let table = run_table(&outcome.summary, &terminal::table_style(args.place.tables));
    let mut next_commands = again(&outcome.dir, &flags_again(place, plan));
    if plan.cells.len() > 1 {
        next_commands += &files_of_sweep(&outcome.dir, &outcome.summary);
    }
    let conclusion = Conclusion { table: &table, next_commands: &next_commands, demand: Some(&args.demand) };
    conclude(outcome, &conclusion, context)
}

/// The flags that run `plan` again at `place`.
fn flags_again(place: &Place, plan: &Plan) -> String {
    let program = if has_program(scenarios(plan)) { " --allow-program" } else { "" };
    format!("{}{program}", place::as_flags(place))
}

/// Prints how many repetitions of a part have run.
pub(super) fn conclude_part(part: EndedPart, shard: Shard, context: Context<'_>) -> Result<(), Failure> {
    let EndedPart { outcome, failure } = part;
    let PartOutcome { dir, finished, planned, wall_s, cpu_s, .. } = outcome;
    let printed = if context.common.json() {
        terminal::print(&json(&serde_json::json!({
            "dir": dir.path().to_string_lossy(),
            "shard": shard.to_string(),
            "repetitions": planned,
            "done": finished,
            "wall_s": wall_s,
            "cpu_s": cpu_s,
        })))
    } else {
        context.terminal.result(&format!(
            "Part {shard}: {} has {finished} of its {}\n\
             When all parts are there: {} merge DIR... -o RUN\n",
            dir.path().display(),
            counted(planned, "repetition"),
            program()
        ))
    };
    context.terminal.end_with([failure, printed.err()])
}
