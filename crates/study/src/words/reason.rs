//! Writes the reason of a verdict.

use super::check::check_with_values;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Check, Claim, Verdict};
use crate::outcome::{CheckOutcome, UnderAssumption};

/// A reason lists at most this many checks. We chose 4 because a reason is one paragraph of the page.
const MAX_LISTED: usize = 4;

/// The verdict of a claim in one arena, with what its reason needs.
pub(crate) struct Finding<'a> {
    pub(crate) verdict: Verdict,
    /// The reason why the claim was not tested, if it was not.
    pub(crate) not_tested: Option<NotTested>,
    pub(crate) expected: Verdict,
    /// The checks that `--quick` left out.
    pub(crate) left_out: &'a [&'a Check],
}

/// Why a claim has no verdict.
pub(crate) enum NotTested {
    /// The study has no check for the claim.
    NoCheck,
    /// The claim is judged in these arenas, or compares them, but the run did not select them.
    Arena(Vec<ArenaName>),
    /// The cells of the claim do not run in this arena, or not with `--quick`.
    LeftOut {
        /// Whether the run was made with `--quick`.
        quick: bool,
    },
    /// The machine disturbed the runs past its stated limits.
    Disturbed,
    /// The cell ran, but has no number for this metric.
    NoValue { cell: String, metric: String },
    /// The cells ran, but the figure that this check computes from their numbers has no value.
    NoFigure { check: String },
    /// The cells should have run, or a campaign should have measured them.
    NotRun { is_campaign: bool },
}

/// Writes the reason of a verdict. If the verdict is the expected one, the study explains it. If it is
/// another one, the reason says so, and quotes what the study says of the expected verdict.
pub(crate) fn why(claim: &Claim, finding: &Finding<'_>, under_base: Option<&UnderAssumption>) -> String {
    let Finding { verdict, not_tested, expected, left_out } = finding;
    let mut sentences = Vec::new();
    match verdict {
        Verdict::NotTested | Verdict::Disturbed => {
            sentences.extend(not_tested.as_ref().map(NotTested::in_words));
        }
        Verdict::Reproduced | Verdict::Consistent => {}
        Verdict::PartlyJudged => {
            let names = left_out.iter().map(|check| check.name.clone());
            sentences.push(format!("--quick leaves out what decides: {}", shortened_list(names)));
        }
        Verdict::Differs => sentences.extend(under_base.map(failing_checks)),
    }
    if verdict == expected {
        sentences.push(claim.why.clone());
    } else if not_tested.is_none() {
        sentences.push(format!("Of the expected verdict ({expected}) the study says: {}", claim.why));
    }
    sentences.join(". ")
}

impl NotTested {
    fn in_words(&self) -> String {
        match self {
            Self::NoCheck => "the study has no check for it".to_owned(),
            Self::Arena(arenas) => format!("it needs --arena {}", arena_list(arenas)),
            Self::LeftOut { quick: true } => {
                "the shorter run leaves its cells out; run without --quick".to_owned()
            }
            Self::LeftOut { quick: false } => "its cells do not run in this arena".to_owned(),
            Self::Disturbed => {
                "not judged: the machine disturbed its runs past the stated limits; --resume runs those again"
                    .to_owned()
            }
            Self::NoValue { cell, metric } => {
                format!("{cell} ran, and more than half of its repetitions have no number for {metric}")
            }
            Self::NoFigure { check } => {
                format!("{check}: its cells ran, and give no figure: a division by zero, or no spread")
            }
            Self::NotRun { is_campaign: false } => {
                "its cells did not run to their end; --resume goes on".to_owned()
            }
            Self::NotRun { is_campaign: true } => "the campaign has no records of its cells".to_owned(),
        }
    }
}

/// Writes the checks that fail under an assumption set.
fn failing_checks(under: &UnderAssumption) -> String {
    let failing: Vec<&CheckOutcome> =
        under.checks.iter().filter(|check| check.holds == Some(false)).collect();
    let list = shortened_list(failing.iter().map(|check| check_with_values(check)));
    format!("{} of {} checks fail under {}: {list}", failing.len(), under.checks.len(), under.assumption)
}

/// Joins the first [`MAX_LISTED`] texts, and says how many more there are.
fn shortened_list(texts: impl ExactSizeIterator<Item = String>) -> String {
    let more = texts.len().saturating_sub(MAX_LISTED);
    let listed = texts.take(MAX_LISTED).collect::<Vec<_>>().join("; ");
    if more == 0 { listed } else { format!("{listed}; and {more} more") }
}
