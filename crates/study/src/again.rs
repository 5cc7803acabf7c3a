//! A study that ran more than once: with another seed, with `--quick`, by another version. Which verdicts
//! changed, and how that changes a claim's standing.

use crate::claim::{Standing, Verdict};
use crate::outcome::{ArenaVerdict, CellOutcome, Drawing, Outcome, SeedVerdict, UnderAssumption};

/// A claim whose verdict differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictChange {
    /// The claim's id.
    pub claim: String,
    /// Where it is judged.
    pub arena: String,
    /// The verdict of the first run, and its standing.
    pub before: (Verdict, Option<Standing>),
    /// Those of the second one.
    pub after: (Verdict, Option<Standing>),
    /// Whether they contradict each other, rather than differ in their standing or in how much was judged.
    pub contradicts: bool,
}

impl Outcome {
    /// The claims whose verdict differs in `later`, in this run's order. A claim that one of the runs left
    /// out is no change.
    ///
    /// # Errors
    /// If it is the run of another study.
    pub fn changes(&self, later: &Self) -> Result<Vec<VerdictChange>, String> {
        if self.study != later.study {
            return Err(format!("runs of two studies: {} and {}", self.study, later.study));
        }
        let is_same_length = self.quick == later.quick;
        let all = self.claims.iter().flat_map(|claim| claim.verdicts().map(move |found| (claim, found)));
        let change = |(claim, found): (&crate::ClaimOutcome, &ArenaVerdict)| {
            let other = later.verdict(&claim.id, &found.arena)?;
            let (before, after) = ((found.verdict, found.standing), (other.verdict, other.standing));
            let contradicts = contradict(found.verdict, other.verdict, is_same_length);
            (before != after).then(|| VerdictChange {
                claim: claim.id.clone(),
                arena: found.arena.clone(),
                before,
                after,
                contradicts,
            })
        };
        Ok(all.filter_map(change).collect())
    }

    /// The claims for which this run, a shorter one, favours the publication more than the whole run `full`:
    /// here such a claim holds, or holds under every set, or under a certain set, and in `full` it does not.
    pub fn better_than<'a>(&'a self, full: &'a Self) -> impl Iterator<Item = &'a str> {
        let holds = |verdict: &ArenaVerdict| match verdict.verdict {
            Verdict::Reproduced => 2,
            Verdict::Consistent => 1,
            Verdict::PartlyJudged | Verdict::Differs | Verdict::NotTested | Verdict::Disturbed => 0,
        };
        let is_better = move |found: &ArenaVerdict, whole: &ArenaVerdict| {
            let is_robust = |it: &ArenaVerdict| holds(it) > 0 && it.standing == Some(Standing::Robust);
            // Of checks that were left out the sets say nothing.
            let is_whole = found.checks_left_out == 0;
            let holds_more = found.holds_under.iter().any(|set| whole.fails_under.contains(set));
            holds(found) > holds(whole) || is_robust(found) && !is_robust(whole) || is_whole && holds_more
        };
        self.claims
            .iter()
            .filter(move |claim| {
                claim.verdicts().any(|found| {
                    full.verdict(&claim.id, &found.arena).is_some_and(|whole| is_better(found, whole))
                })
            })
            .map(|claim| claim.id.as_str())
    }

    /// Adds what runs with other seeds found. A verdict that such a run contradicts, or finds less than
    /// robust, is not robust.
    ///
    /// # Errors
    /// If another run differs in more than its seed.
    pub fn add_seeds(&mut self, others: &[Self]) -> Result<(), String> {
        for other in others {
            let Some(seed) = other.seed else {
                return Err(format!("a run of {} with no seed of its own", other.study));
            };
            if self.seed == Some(seed) {
                return Err(format!("{} with seed {seed}: the run has that seed itself", other.study));
            }
            let of = |it: &Self| (it.study.clone(), it.arenas.clone(), it.quick, it.set.clone());
            if of(self) != of(other) {
                let what = "the runs differ in more than their seed";
                return Err(format!(
                    "{} with seed {seed}: {what}: study, arenas, --quick or --set",
                    other.study
                ));
            }
            for claim in &mut self.claims {
                let id = &claim.id;
                for found in core::iter::once(&mut claim.base).chain(&mut claim.elsewhere) {
                    if let Some(&ArenaVerdict { verdict, standing, .. }) = other.verdict(id, &found.arena) {
                        found.by_seed.retain(|it| it.seed != seed);
                        found.by_seed.push(SeedVerdict { seed, verdict, standing });
                    }
                }
            }
        }
        for claim in &mut self.claims {
            core::iter::once(&mut claim.base).chain(&mut claim.elsewhere).for_each(stand_by_seeds);
        }
        Ok(())
    }

    /// What pages quote: the outcome without the curves of figures, and without the cells of other sets than
    /// the base, whose medians are in the claims' checks.
    pub fn for_pages(mut self) -> Self {
        let base = self.assumptions.first().map(|it| it.0.clone()).unwrap_or_default();
        self.cells.retain(|cell: &CellOutcome| cell.assumption == base);
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

    /// What it found of the claim `id` in `arena`.
    pub fn verdict(&self, id: &str, arena: &str) -> Option<&ArenaVerdict> {
        let claim = self.claims.iter().find(|claim| claim.id == id)?;
        claim.verdicts().find(|found| found.arena == arena)
    }
}

impl ArenaVerdict {
    /// The seeds with which another verdict was found than with the run's own, or another set of assumptions
    /// that changes it.
    pub fn contradicting_seeds(&self) -> impl Iterator<Item = &SeedVerdict> {
        let is_weaker = |it: &SeedVerdict| it.standing.is_some_and(|standing| standing != Standing::Robust);
        let is_robust = self.fails_under.is_empty() || self.holds_under.is_empty();
        self.by_seed.iter().filter(move |it| {
            contradict(self.verdict, it.verdict, true)
                || it.verdict == self.verdict && is_robust && is_weaker(it)
        })
    }

    /// What was found under the set `name`.
    pub fn under_set(&self, name: &str) -> Option<&UnderAssumption> {
        self.by_assumption.iter().find(|under| under.assumption == name)
    }
}

/// A verdict that another seed contradicts is as one that another set contradicts.
fn stand_by_seeds(found: &mut ArenaVerdict) {
    if found.contradicting_seeds().next().is_none() {
        return;
    }
    found.standing = match found.verdict {
        Verdict::Reproduced | Verdict::Consistent => Some(Standing::Fragile),
        Verdict::Differs => Some(Standing::OnlyUnder),
        Verdict::PartlyJudged | Verdict::NotTested | Verdict::Disturbed => found.standing,
    };
}

/// Whether two verdicts exclude each other. What was not judged excludes nothing. Of runs of equal length
/// that were judged in part the checks are the same; a whole run has others beside.
fn contradict(one: Verdict, other: Verdict, is_same_length: bool) -> bool {
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
        assert!(contradict(Verdict::Reproduced, Verdict::Differs, true));
        assert!(!contradict(Verdict::Reproduced, Verdict::Reproduced, true));
        assert!(!contradict(Verdict::Differs, Verdict::NotTested, true));
        assert!(!contradict(Verdict::Differs, Verdict::Disturbed, true));
        assert!(contradict(Verdict::PartlyJudged, Verdict::Differs, true));
        assert!(!contradict(Verdict::PartlyJudged, Verdict::Differs, false));
    }
}
