//! Adds to the summary of a run what is found in its figures, and draws the page of the run.

use std::path::Path;

use talkpath_experiment::findings::{Findings, FinishedRun};
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_measure::summary::Summary;
use talkpath_report::{Page, comparisons, html};
use talkpath_scenario::Plan;

use crate::network::{page_network, setting};
use crate::path_changes::{note_changes, path_changes};
use crate::terminal::{shell_path, shell_word};
use crate::thresholds;

/// Ranks the cells of a run, judges its thresholds, and draws its page.
pub(crate) struct Pages;

impl Findings for Pages {
    fn judge(&self, demanded: &Plan, summary: &mut Summary) {
        summary.understood.setting = vec![setting(demanded, &summary.arena)];
        note_changes(demanded, summary);
        summary.comparisons = comparisons(summary);
        summary.thresholds = thresholds::judge(demanded, summary);
    }

    fn page(&self, run: &FinishedRun<'_>) -> String {
        let FinishedRun { dir, plan, options, summary, chart_data } = *run;
        let command = command_again(dir, plan, options.arena_name(), options.to.as_deref());
        let network = page_network(plan, &summary.arena, dir);
        html(&Page {
            summary,
            chart_data,
            scenario_toml: &plan.resolved,
            command: &command,
            changes: &path_changes(plan, summary, chart_data),
            network: network.as_ref(),
            sounds: None,
        })
    }
}

/// Returns the command that runs `plan` again in `arena`, whose run is in `dir`. Nobody can run a program of
/// `talkpath shell` again, so the command of its run repeats the decisions of the path.
pub(crate) fn command_again(dir: &RunDir, plan: &Plan, arena: &str, to: Option<&str>) -> String {
    let mut programs = plan.cells.iter().filter_map(|cell| cell.scenario.program.as_ref());
    match programs.next() {
        Some(program) if program.is_of_shell => format!(
            "# A person ran the program. This repeats what the path decided on each packet:\ntalkpath replay {}",
            shell_path(dir.path())
        ),
        Some(_) => format!("{} --allow-program", run_command(&dir.file(SCENARIO), arena, to)),
        None => run_command(&dir.file(SCENARIO), arena, to),
    }
}

/// Returns the command that runs `scenario` in `arena`. If the far host of a live run is not known, the
/// command has the word `HOST` in its place.
pub(crate) fn run_command(scenario: &Path, arena: &str, to: Option<&str>) -> String {
    let to = to.or_else(|| (arena == "live").then_some("HOST"));
    let to = to.map_or_else(String::new, |to| format!(" --to {}", shell_word(to)));
    format!("talkpath run {} --arena {arena}{to}", shell_path(scenario))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_is_one_that_a_shell_and_the_program_take() {
        let of = |path: &str, arena: &str, to: Option<&str>| run_command(Path::new(path), arena, to);
        assert_eq!(
            of("my runs/scenario.toml", "sim", None),
            "talkpath run 'my runs/scenario.toml' --arena sim"
        );
        assert_eq!(
            of("a.toml", "live", Some("h.example")),
            "talkpath run a.toml --arena live --to h.example"
        );
        // The directory of a run names the host only as long as the run has parts.
        assert_eq!(of("a.toml", "live", None), "talkpath run a.toml --arena live --to HOST");
    }
}
