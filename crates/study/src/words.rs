//! Writes the values, checks and verdicts of a study for a person. The table in the terminal, the page and
//! the JSON have the same words.

mod check;
mod numbers;
mod reason;
mod sets;

pub(crate) use self::check::describe_figures;
pub use self::check::{format_figure, format_requirement, value_labels};
pub use self::numbers::{format_median, format_number, format_range, unit_suffix};
pub(crate) use self::reason::{NoVerdictReason, VerdictExplanation};
pub(crate) use self::sets::{JudgedPart, SetsByAnswer, describe_answers};
