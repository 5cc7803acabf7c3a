//! The flags `--progress` and `--json`: in which form a command says what it does and what came out.

use clap::ValueEnum;

/// The form of what a command prints on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// Sentences, and a bar on a terminal
    Bar,
    /// One JSON object a line for each event, for programs
    Json,
}

/// Which part of a run's result is printed as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonDetail {
    /// No JSON is printed, because the environment variable switches it off.
    Off,
    /// summary.json without its repetitions is printed.
    WithoutRuns,
    /// The whole summary.json is printed.
    WithRuns,
}

/// Reads the value of `--json`: `runs`, or one of the words for yes and no that an environment variable may
/// have.
pub(super) fn parse_json_detail(text: &str) -> Result<JsonDetail, String> {
    match text.to_ascii_lowercase().as_str() {
        "" | "0" | "n" | "no" | "f" | "false" | "off" => Ok(JsonDetail::Off),
        "1" | "y" | "yes" | "t" | "true" | "on" => Ok(JsonDetail::WithoutRuns),
        "runs" => Ok(JsonDetail::WithRuns),
        _ => Err("expected --json alone, or --json=runs for the repetitions too".to_owned()),
    }
}
