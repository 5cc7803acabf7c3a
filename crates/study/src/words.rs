//! Writes the values, checks and verdicts of a study for a person. The table in the terminal, the page and
//! the JSON have the same words.

mod check;
mod figures;
mod numbers;
mod places;
mod reason;
mod sets;

pub use self::check::{format_figure, format_requirement, value_labels};
pub(crate) use self::figures::describe_figures;
pub use self::figures::{deciding_figures_in_words, figures_in_words};
pub use self::numbers::{format_median, format_number, format_range, unit_suffix};
pub use self::places::matches_pattern;
pub(crate) use self::places::{Place, places};
pub(crate) use self::reason::{NoVerdictReason, VerdictExplanation};
pub(crate) use self::sets::{JudgedPart, SetsByAnswer, describe_answers};
