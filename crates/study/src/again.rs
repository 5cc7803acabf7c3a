//! Compares the outcomes of a study that ran more than once: with another seed, with `--quick`, or by another
//! version. It finds the verdicts that changed, and lowers the standing of a claim that another seed
//! contradicts.

use crate::claim::{Standing, Verdict};
use crate::outcome::{ArenaVerdict, ClaimOutcome, Drawing, Outcome, SeedVerdict, SetOutcome};

/// A claim whose verdict or standing differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictChange {
    /// The id of the claim.
    pub claim: String,
    /// The arena where the claim is judged.
    pub arena: String,
    /// The verdict and the standing of the first run.
    pub before: (Verdict, Option<Standing>),
    /// The verdict and the standing of the second run.
    pub after: (Verdict, Option<Standing>),
    /// Whether the verdicts contradict each other. It is false if only the standing differs, or only how much
    /// was judged.
    pub contradicts: bool,
}

impl Outcome {
    /// Lists the claims whose verdict or standing is different in the run `later`, in the order of this run.
    /// A claim that one of the runs does not have is not a change.
    ///
    /// # Errors
    /// Returns a message if `later` is the run of another study.
    pub fn changes(&self, later: &Self) -> Result<Vec<VerdictChange>, String> {
        if self.study != later.study {
            return Err(format!("runs of two studies: {} and {}", self.study, later.study));
        }
        let is_same_length = self.quick == later.quick;
        let mut changes = Vec::new();
        for (claim, verdict) in self.verdicts() {
            let Some(later_verdict) = later.verdict(&claim.id, &verdict.arena) else { continue };
            let before = (verdict.verdict, verdict.standing);
            let after = (later_verdict.verdict, later_verdict.standing);
            if before != after {
                changes.push(VerdictChange {
                    claim: claim.id.clone(),
                    arena: verdict.arena.clone(),
                    before,
                    after,
                    contradicts: contradicts(verdict.verdict, later_verdict.verdict, is_same_length),
                });
            }
        }
        Ok(changes)
    }

    /// Lists the claims for which this run, made with `--quick`, favours the publication more than the whole
    /// run `full`.
    pub fn better_than<'a>(&'a self, full: &'a Self) -> impl Iterator<Item = &'a str> {
        let is_better = |claim: &&ClaimOutcome| {
            claim.verdicts().any(|quick_verdict| {
                let full_verdict = full.verdict(&claim.id, &quick_verdict.arena);
                full_verdict.is_some_and(|full_verdict| quick_verdict.favours_more_than(full_verdict))
            })
        };
        self.claims.iter().filter(is_better).map(|claim| claim.id.as_str())
    }

    /// Adds the verdicts of runs with other seeds. A verdict that such a run contradicts, or finds less than
    /// robust, is not robust.
    ///
    /// # Errors
    /// Returns a message if another run differs in more than its seed.
    pub fn add_seeds(&mut self, others: &[Self]) -> Result<(), String> {
        for other in others {
            let seed = self.check_differs_in_seed(other)?;
            for claim in &mut self.claims {
                let id = claim.id.clone();
                for found in claim.verdicts_mut() {
                    let Some(with_seed) = other.verdict(&id, &found.arena) else { continue };
                    found.by_seed.retain(|known| known.seed != seed);
                    found.by_seed.push(SeedVerdict {
                        seed,
                        verdict: with_seed.verdict,
                        standing: with_seed.standing,
                    });
                }
            }
        }
        for claim in &mut self.claims {
            claim.verdicts_mut().for_each(lower_standing_by_seeds);
        }
        Ok(())
    }

    /// Checks that `other` differs from this run in its seed and in nothing else, and returns its seed.
    fn check_differs_in_seed(&self, other: &Self) -> Result<u64, String> {
        let study = &other.study;
        let Some(seed) = other.seed else {
            return Err(format!("a run of {study} with no seed of its own"));
        };
        if self.seed == Some(seed) {
            return Err(format!("{study} with seed {seed}: the run has that seed itself"));
        }
        let is_alike = self.study == other.study
            && self.arenas == other.arenas
            && self.quick == other.quick
            && self.set == other.set;
        if !is_alike {
            let what = "the runs differ in more than their seed";
            return Err(format!("{study} with seed {seed}: {what}: study, arenas, --quick or --set"));
        }
        Ok(seed)
    }

    /// Removes what pages do not quote: the curves of figures, and the cells under other sets than the base,
    /// whose medians are also in the checks of the claims.
    pub fn for_pages(mut self) -> Self {
        let base = self.assumptions.first().map(|(name, _)| name.clone()).unwrap_or_default();
        self.cells.retain(|cell| cell.assumption == base);
        for figure in &mut self.figures {
            if let Drawing::Traces { panels, .. } = &mut figure.drawing {
                for panel in panels {
                    panel.steps.clear();
                    panel.loss_runs.clear();
                    panel.bands.clear();
                }
            }
        }
        self
    }

    /// Finds the verdict of the claim `id` in `arena`.
    pub fn verdict(&self, id: &str, arena: &str) -> Option<&ArenaVerdict> {
        let claim = self.claims.iter().find(|claim| claim.id == id)?;
        claim.verdicts().find(|found| found.arena == arena)
    }
}

impl ArenaVerdict {
    /// Returns the seeds that contradict this verdict. A seed contradicts it if it gives another verdict. If
    /// all sets of this run have the same answer, a seed also contradicts it if the same verdict is not
    /// robust with that seed.
    pub fn contradicting_seeds(&self) -> impl Iterator<Item = &SeedVerdict> {
        let all_sets_agree = self.fails_under.is_empty() || self.holds_under.is_empty();
        let is_not_robust =
            |seed: &SeedVerdict| seed.standing.is_some_and(|standing| standing != Standing::Robust);
        self.by_seed.iter().filter(move |seed| {
            let is_less_robust = seed.verdict == self.verdict && all_sets_agree && is_not_robust(seed);
            contradicts(self.verdict, seed.verdict, true) || is_less_robust
        })
    }

    /// Finds the outcome under the assumption set `name`.
    pub fn under_set(&self, name: &str) -> Option<&SetOutcome> {
        self.by_assumption.iter().find(|under| under.assumption == name)
    }

    /// Returns whether this verdict favours the publication more than `other`: it is the better verdict, or
    /// it is robust and the other is not, or the claim holds under a set under which it fails in the other
    /// run.
    fn favours_more_than(&self, other: &Self) -> bool {
        let is_robust = self.holds_robustly() && !other.holds_robustly();
        // A set that judged only a part of the checks does not show that the claim holds.
        let is_whole = self.checks_left_out == 0;
        let holds_under_more = self.holds_under.iter().any(|set| other.fails_under.contains(set));
        self.rank() > other.rank() || is_robust || is_whole && holds_under_more
    }

    /// Returns whether the claim holds and its verdict is robust.
    fn holds_robustly(&self) -> bool {
        self.rank() > 0 && self.standing == Some(Standing::Robust)
    }

    /// How much the verdict favours the publication, from 0 for a claim that was not found to hold.
    const fn rank(&self) -> u8 {
        match self.verdict {
            Verdict::Reproduced => 2,
            Verdict::Consistent => 1,
            Verdict::PartlyJudged | Verdict::Differs | Verdict::NotTested | Verdict::Disturbed => 0,
        }
    }
}

/// Lowers the standing of a verdict that another seed contradicts, as if another assumption set contradicted
/// it.
pub(crate) fn lower_standing_by_seeds(found: &mut ArenaVerdict) {
    if found.contradicting_seeds().next().is_none() {
        return;
    }
    found.standing = match found.verdict {
        Verdict::Reproduced | Verdict::Consistent => Some(Standing::Fragile),
        Verdict::Differs => Some(Standing::OnlyUnder),
        Verdict::PartlyJudged | Verdict::NotTested | Verdict::Disturbed => found.standing,
    };
}

/// Returns whether two verdicts exclude each other. A claim that was not judged excludes nothing. Runs of the
/// same length judge the same part of a claim, but a whole run judges more checks than a run with `--quick`,
/// so that `partly-judged` excludes nothing there.
fn contradicts(one: Verdict, other: Verdict, is_same_length: bool) -> bool {
    let is_open = |verdict| match verdict {
        Verdict::NotTested | Verdict::Disturbed => true,
        Verdict::PartlyJudged => !is_same_length,
        Verdict::Reproduced | Verdict::Consistent | Verdict::Differs => false,
    };
    one != other && !is_open(one) && !is_open(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_judged_contradicts_nothing_and_a_part_contradicts_runs_of_its_length() {
        assert!(contradicts(Verdict::Reproduced, Verdict::Differs, true));
        assert!(!contradicts(Verdict::Reproduced, Verdict::Reproduced, true));
        assert!(!contradicts(Verdict::Differs, Verdict::NotTested, true));
        assert!(!contradicts(Verdict::Differs, Verdict::Disturbed, true));
        assert!(contradicts(Verdict::PartlyJudged, Verdict::Differs, true));
        assert!(!contradicts(Verdict::PartlyJudged, Verdict::Differs, false));
    }
}
