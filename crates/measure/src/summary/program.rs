//! A program of the user on the path, as summary.json has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program of a run, which was the same in each repetition unless the run sweeps its command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSummary {
    /// The words of the command in the first cell.
    pub command: Vec<String>,
    /// The figures that were read back from its output, by their names.
    pub figures: BTreeMap<String, ProgramFigureSummary>,
}

/// The meaning of a figure of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFigureSummary {
    /// The unit. Empty if the figure has none.
    pub unit: String,
    /// Whether a smaller figure is better.
    pub less_is_better: bool,
}

/// What came of the program in one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramRunSummary {
    /// Why the repetition has failed, as a sentence about the program. `None` if it has not.
    pub failure: Option<String>,
    /// How long the command ran, in seconds.
    pub seconds: f64,
    /// The figures that were read back from its output, by their names. `None` if the repetition has failed.
    pub figures: BTreeMap<String, Option<f64>>,
}

impl ProgramRunSummary {
    /// Returns what the program printed, `output`, below a line with the `title` of the repetition and what
    /// came of the program.
    pub fn with_output(&self, title: &str, output: &str) -> String {
        let failure = self.failure.as_deref().unwrap_or("it ended with exit code 0");
        format!("=== {title}: {failure}, after {:.3} s\n{output}", self.seconds)
    }
}
