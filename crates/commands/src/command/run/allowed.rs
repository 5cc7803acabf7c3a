//! Whether a scenario may run its program (`[program]`).

use talkpath_scenario::Plan;

use crate::args::RunArgs;
use crate::failure::Failure;
use talkpath_experiment::choice::ArenaKind;

/// The arena of a run of `plan` whose command line names none.
pub(super) fn usual_arena(plan: &Plan) -> ArenaKind {
    // Only the emulator has hosts in which a program can run.
    if has_program(plan) { ArenaKind::Emu } else { ArenaKind::Sim }
}

/// Refuses a plan with a program unless the user allows it, and says what the plan would run.
pub(super) fn check_program(plan: &Plan, args: &RunArgs) -> Result<(), Failure> {
    if args.allow_program {
        return Ok(());
    }
    let mut lines: Vec<String> = Vec::new();
    for program in plan.cells.iter().filter_map(|cell| cell.scenario.program.as_ref()) {
        if program.is_of_shell {
            // The arena says that nobody can run it again.
            return Ok(());
        }
        let line = program.lines();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let more = match lines.len() {
        0..=MOST_NAMED => String::new(),
        count => format!(" and {} more", count - MOST_NAMED),
    };
    lines.truncate(MOST_NAMED);
    Err(Failure::Usage(format!(
        "the scenario {} runs a program on this machine: {}{more}. It does so only with --allow-program, because the \
         program has all rights of your user",
        plan.name,
        lines.join(", ")
    )))
}

/// Whether a cell of `plan` has a program.
pub(super) fn has_program(plan: &Plan) -> bool {
    plan.cells.iter().any(|cell| cell.scenario.program.is_some())
}

/// The most commands that the message names. We chose 3 because more fill a screen.
const MOST_NAMED: usize = 3;
