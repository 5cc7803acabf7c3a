//! `talkpath check`: every mistake of a scenario at once, the schema for an editor, or the table of keys.

use talkpath_scenario::{Options, key_tables, schema};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::scenario_file::load_file;
use crate::terminal::{Terminal, print};

/// Validates, or prints the schema or the keys.
pub(crate) fn run(args: &CheckArgs, terminal: Terminal) -> Result<(), Failure> {
    if args.keys {
        return print(key_tables().as_bytes());
    }
    let Some(path) = &args.scenario else {
        let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
        return print(format!("{text}\n").as_bytes());
    };
    let plan = load_file(path, &Options::default())?;
    for warning in &plan.warnings {
        terminal.warning(&format!("{}:{warning}", path.display()));
    }
    let cells = plan.cells.len();
    let repetitions = plan.repeat.saturating_mul(cells as u64);
    let cells = if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
    let runs =
        if repetitions == 1 { "1 repetition".to_owned() } else { format!("{repetitions} repetitions") };
    let is_live = plan.cells.iter().any(|cell| !cell.scenario.has_path);
    let live = if is_live { "; without a `path` it runs between live hosts alone" } else { "" };
    terminal.result(&format!("{}: valid: \"{}\", {cells}, {runs} in all{live}\n", path.display(), plan.name))
}
