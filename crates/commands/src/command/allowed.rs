//! Whether scenarios may run their programs (`[program]`).

use talkpath_experiment::choice::ArenaKind;
use talkpath_scenario::{Plan, Scenario};

use crate::failure::Failure;

/// The scenarios of all cells of `plan`.
pub(super) fn scenarios(plan: &Plan) -> impl Iterator<Item = &Scenario> {
    plan.cells.iter().map(|cell| &cell.scenario)
}

/// The arena of a run of `plan` whose command line names none.
pub(super) fn usual_arena(plan: &Plan) -> ArenaKind {
    // Only the emulator has hosts in which a program can run.
    if has_program(scenarios(plan)) { ArenaKind::Emu } else { ArenaKind::Sim }
}

/// Refuses a plan with a program unless the user allows it.
pub(super) fn check_plan(plan: &Plan, is_allowed: bool) -> Result<(), Failure> {
    check_program(&format!("the scenario {}", plan.name), scenarios(plan), is_allowed)
}

/// Refuses scenarios with a program unless the user allows it (`--allow-program`), and says what they would
/// run. `what` names them in the message: `the scenario call`.
pub(super) fn check_program<'a>(
    what: &str,
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    is_allowed: bool,
) -> Result<(), Failure> {
    if is_allowed {
        return Ok(());
    }
    let mut lines: Vec<String> = Vec::new();
    for program in scenarios.into_iter().filter_map(|scenario| scenario.program.as_ref()) {
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
        "{what} runs a program on this machine: {}{more}. It does so only with --allow-program, because the program has \
         all rights of your user",
        lines.join(", ")
    )))
}

/// Whether one of the scenarios has a program.
pub(super) fn has_program<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> bool {
    scenarios.into_iter().any(|scenario| scenario.program.is_some())
}

/// The most commands that the message names. We chose 3 because more fill a screen.
const MOST_NAMED: usize = 3;
