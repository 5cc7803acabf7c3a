//! Writes the reason of a verdict.

use super::check::check_with_values;
use super::places::fill_places;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Check, Claim, Verdict};
use crate::outcome::{CheckOutcome, SetOutcome};

/// A reason lists at most this many checks. We chose 4 because a reason is one paragraph of the page.
const MAX_LISTED: usize = 4;

/// Everything that explains the verdict of a claim in one arena.
pub(crate) struct VerdictExplanation<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) verdict: Verdict,
    /// The verdict that the study expects.
    pub(crate) expected_verdict: Verdict,
    /// The reason why the claim is not tested or disturbed. Any other verdict has no such reason.
    pub(crate) no_verdict_reason: Option<NoVerdictReason>,
    /// The checks that `--quick` skipped.
    pub(crate) skipped_checks: &'a [&'a Check],
    /// The outcome under the base set, if a cell of the claim is judged under it.
    pub(crate) base_outcome: Option<&'a SetOutcome>,
    /// The outcomes under all sets, from which the places of the study's text are filled.
    pub(crate) set_outcomes: &'a [SetOutcome],
}

/// The reason why the base set gives no answer to a claim.
pub(crate) enum NoVerdictReason {
    /// The study has no check for the claim.
    NoCheck,
    /// The run did not select these arenas, in which the claim is judged or which it compares.
    ArenasNotSelected(Vec<ArenaName>),
    /// The study has no such cells in this arena, or `--quick` skips them.
    CellsNotSelected { is_quick: bool },
    /// The machine disturbed the runs, or the measurements of a campaign, past its stated limits.
    Disturbed { is_campaign: bool },
    /// The cell ran, but more than half of its repetitions have no number for this metric.
    NoMedian { cell: String, metric: String },
    /// The cells ran, but the figure that this check computes from their medians has no value.
    NoFigure { check: String },
    /// The cells did not run to their end, or the campaign did not measure them.
    CellsNotRun { is_campaign: bool },
}

impl VerdictExplanation<'_> {
    /// Returns whether the claim has no verdict because this run did not select its arenas or its cells.
    pub(crate) const fn is_claim_unselected(&self) -> bool {
        matches!(
            self.no_verdict_reason,
            Some(NoVerdictReason::ArenasNotSelected(_) | NoVerdictReason::CellsNotSelected { .. })
        )
    }

    /// Writes the reason of the verdict. The study explains the verdict that it expects. If the verdict is
    /// another one, the text says why, and quotes the explanation of the expected verdict.
    pub(crate) fn in_words(&self) -> String {
        let mut sentences = Vec::new();
        match self.verdict {
            Verdict::NotTested | Verdict::Disturbed => {
                sentences.extend(self.no_verdict_reason.as_ref().map(NoVerdictReason::in_words));
            }
            Verdict::Reproduced | Verdict::Consistent => {}
            Verdict::PartlyJudged => {
                let names = self.skipped_checks.iter().map(|check| check.name.clone());
                sentences.push(format!("--quick leaves out what decides: {}", shortened_list(names)));
            }
            Verdict::Differs => sentences.extend(self.base_outcome.map(failing_checks)),
        }
        let study_explanation = fill_places(&self.claim.why, self.base_outcome, self.set_outcomes);
        if self.verdict == self.expected_verdict {
            sentences.push(study_explanation);
        } else if self.no_verdict_reason.is_none() {
            sentences.push(format!(
                "Of the expected verdict ({}) the study says: {study_explanation}",
                self.expected_verdict
            ));
        }
        sentences.join(". ")
    }
}

impl NoVerdictReason {
    fn in_words(&self) -> String {
        match self {
            Self::NoCheck => "the study has no check for it".to_owned(),
            Self::ArenasNotSelected(arenas) => format!("it needs --arena {}", arena_list(arenas)),
            Self::CellsNotSelected { is_quick: true } => {
                "the shorter run leaves its cells out; run without --quick".to_owned()
            }
            Self::CellsNotSelected { is_quick: false } => "its cells do not run in this arena".to_owned(),
            Self::Disturbed { is_campaign: true } => {
                "not judged: the machines disturbed its measurements past the stated limits".to_owned()
            }
            Self::Disturbed { is_campaign: false } => {
                "not judged: the machine disturbed its runs past the stated limits; --resume runs those again"
                    .to_owned()
            }
            Self::NoMedian { cell, metric } => {
                format!("{cell} ran, and more than half of its repetitions have no number for {metric}")
            }
            Self::NoFigure { check } => {
                format!("{check}: its cells ran, and give no figure: a division by zero, or no spread")
            }
            Self::CellsNotRun { is_campaign: false } => {
                "its cells did not run to their end; --resume goes on".to_owned()
            }
            Self::CellsNotRun { is_campaign: true } => "the campaign has no records of its cells".to_owned(),
        }
    }
}

/// Writes the checks that fail under an assumption set.
fn failing_checks(set_outcome: &SetOutcome) -> String {
    let SetOutcome { assumption, checks, .. } = set_outcome;
    let failing: Vec<&CheckOutcome> = checks.iter().filter(|check| check.holds == Some(false)).collect();
    let list = shortened_list(failing.iter().map(|check| check_with_values(check)));
    format!("{} of {} checks fail under {assumption}: {list}", failing.len(), checks.len())
}

/// Joins the first [`MAX_LISTED`] texts, and says how many more there are.
fn shortened_list(texts: impl ExactSizeIterator<Item = String>) -> String {
    let more = texts.len().saturating_sub(MAX_LISTED);
    let listed = texts.take(MAX_LISTED).collect::<Vec<_>>().join("; ");
    if more == 0 { listed } else { format!("{listed}; and {more} more") }
}
