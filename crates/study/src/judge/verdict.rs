//! Gives a claim its verdict and its standing, in one arena or over several arenas that the claim compares.
//!
//! ```text
//! checks of the claim ─► outcome under each assumption set (UnderAssumption)
//!                            ├─► answer of the base set ───► verdict
//!                            └─► answers of the other sets ─► standing
//! ```

use super::cells::JudgedCells;
use super::check::{check_without_values, judge_check};
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Check, Claim, Standing, Verdict};
use crate::outcome::{ArenaVerdict, CheckOutcome, UnderAssumption};
use crate::selection::SelectedChecks;
use crate::study::BASE_SET;
use crate::words::{self, Finding, NotTested, Part, SetAnswers};

/// A claim whose checks are judged under every assumption set.
pub(super) struct JudgedClaim<'a> {
    claim: &'a Claim,
    /// One arena, or all arenas that the claim compares.
    arenas: &'a [ArenaName],
    cells: &'a JudgedCells<'a>,
    /// The checks that this run judges.
    checks: Vec<&'a Check>,
    /// The checks that `--quick` leaves out.
    checks_left_out: Vec<&'a Check>,
    /// The outcome under each assumption set for which at least one cell is judged.
    by_assumption: Vec<UnderAssumption>,
}

impl<'a> JudgedClaim<'a> {
    /// Judges every check of `claim` under every assumption set.
    pub(super) fn new(claim: &'a Claim, arenas: &'a [ArenaName], cells: &'a JudgedCells<'a>) -> Self {
        let SelectedChecks { judged: checks, left_out: checks_left_out } =
            cells.selection.checks(claim, arenas);
        let mut by_assumption = Vec::new();
        if !lacks_arena(claim, arenas) {
            for assumption in 0..cells.study.assumptions.len() {
                let outcome = judge_under(assumption, &checks, arenas, cells);
                if outcome.checks.iter().any(|check| !check.values.is_empty()) {
                    by_assumption.push(outcome);
                }
            }
        }
        Self { claim, arenas, cells, checks, checks_left_out, by_assumption }
    }

    /// Returns the verdict with everything that explains it.
    pub(super) fn verdict(self) -> ArenaVerdict {
        let finding = self.finding();
        let verdict = finding.verdict;
        let answers = self.answers();
        ArenaVerdict {
            arena: arena_list(if self.arenas.is_empty() { &self.claim.arenas } else { self.arenas }),
            reproduced: self.reproduced(),
            verdict,
            standing: standing(verdict, &answers),
            expected: finding.expected,
            holds_under_base: self.holds_under_base(verdict),
            under: words::under(&answers, self.judged_part(verdict).as_ref()),
            why: words::why(self.claim, &finding, self.under_base()),
            checks_left_out: self.checks_left_out.len() as u64,
            n: self.fewest_repetitions(),
            left_out: finding.is_left_out(),
            holds_under: answers.holding,
            fails_under: answers.failing,
            undecided_under: answers.undecided,
            without_effect: answers.without_effect,
            sets_left_out: answers.left_out,
            sets_not_run: answers.not_run,
            sets_without_figure: answers.without_figure,
            by_seed: Vec::new(),
            not_judged: self.checks_without_outcome(),
            by_assumption: self.by_assumption,
        }
    }

    fn base_name(&self) -> &'a String {
        &self.cells.study.assumptions[BASE_SET].name
    }

    /// Returns the outcome under the base set, if a cell of it is judged.
    fn under_base(&self) -> Option<&UnderAssumption> {
        self.by_assumption.iter().find(|under| under.assumption == *self.base_name())
    }

    /// Finds the verdict, and if the claim has none, the reason.
    fn finding(&self) -> Finding<'_> {
        let (verdict, not_tested) = match self.under_base().and_then(|under| under.holds) {
            Some(true) => (self.holding_verdict(), None),
            Some(false) => (Verdict::Differs, None),
            None => match self.not_tested() {
                NotTested::Disturbed => (Verdict::Disturbed, Some(NotTested::Disturbed)),
                reason => (Verdict::NotTested, Some(reason)),
            },
        };
        Finding { verdict, not_tested, expected: self.expected(), left_out: &self.checks_left_out }
    }

    /// Returns the verdict of a claim whose judged checks all hold under the base set.
    fn holding_verdict(&self) -> Verdict {
        if !self.checks_left_out.is_empty() {
            // The checks that were left out may fail.
            Verdict::PartlyJudged
        } else if self.checks.iter().all(|check| check.basis == Basis::Fitted) {
            Verdict::Consistent
        } else {
            Verdict::Reproduced
        }
    }

    /// Returns the verdict that the study expects in the first arena, which stands for all arenas that the
    /// claim compares.
    fn expected(&self) -> Verdict {
        let arena = self.arenas.first().or(self.claim.arenas.first());
        arena.and_then(|arena| self.claim.expected.get(arena)).copied().unwrap_or(Verdict::NotTested)
    }

    /// Finds the reason why the base set gives no verdict. The first reason that applies is the one that is
    /// said.
    fn not_tested(&self) -> NotTested {
        let Self { claim, arenas, cells, checks, .. } = self;
        let has_cells =
            || arenas.iter().all(|&arena| cells.selection.judges_base(cells.study, checks, arena));
        let check_without_figure = || self.under_base()?.checks.iter().find(|check| check.lacks_figure());
        if claim.checks.is_empty() {
            NotTested::NoCheck
        } else if lacks_arena(claim, arenas) {
            NotTested::Arena(claim.arenas.clone())
        } else if !has_cells() {
            NotTested::LeftOut { quick: cells.selection.is_quick }
        } else if cells.lacks_only_disturbed(checks, arenas) {
            NotTested::Disturbed
        } else if let Some(operand) = cells.operand_without_median(checks, arenas) {
            NotTested::NoValue { cell: operand.cell.clone(), metric: operand.metric.clone() }
        } else if let Some(check) = check_without_figure() {
            NotTested::NoFigure { check: check.name.clone() }
        } else {
            NotTested::NotRun { is_campaign: **arenas == [ArenaName::Campaign] }
        }
    }

    /// Sorts all assumption sets by their answer to the claim.
    fn answers(&self) -> SetAnswers {
        let mut answers = SetAnswers { base: self.base_name().clone(), ..SetAnswers::default() };
        for under in &self.by_assumption {
            if let Some(answer) = self.answer(under) {
                answers.list(answer).push(under.assumption.clone());
            }
        }
        self.add_sets_without_answer(&mut answers);
        // The base set always decides by its medians, so an undecided base is in one more list.
        if answers.undecided.contains(self.base_name()) {
            let medians_hold = self.under_base().and_then(|under| under.holds) == Some(true);
            let answer_of_medians = if medians_hold { Answer::Holds } else { Answer::Fails };
            answers.list(answer_of_medians).insert(0, self.base_name().clone());
        }
        answers
    }

    /// Returns the answer of one assumption set. Returns `None` if the set does not judge the claim.
    fn answer(&self, under: &UnderAssumption) -> Option<Answer> {
        let holds = under.holds?;
        let Self { arenas, cells, checks, .. } = self;
        let set = cells.study.assumption_index(&under.assumption)?;
        if cells.equals_base(checks, arenas, set) {
            return Some(Answer::SameAsBase);
        }
        let mut deciding = under.checks.iter().filter(|check| check.holds == Some(holds));
        if holds {
            // One undecided check could make the claim fail.
            Some(if deciding.any(CheckOutcome::is_undecided) { Answer::Undecided } else { Answer::Holds })
        } else {
            // One check that fails for certain is enough to make the claim fail.
            Some(if deciding.all(CheckOutcome::is_undecided) { Answer::Undecided } else { Answer::Fails })
        }
    }

    /// Adds the sets that gave no answer, by their reason.
    fn add_sets_without_answer(&self, answers: &mut SetAnswers) {
        let Self { claim, arenas, cells, checks, .. } = self;
        let name = |set: usize| cells.study.assumptions[set].name.clone();
        for set in cells.selection.sets(cells.study, checks, arenas) {
            if answers.contain(&name(set)) {
                continue;
            }
            if cells.lacks_cells(checks, arenas, set) {
                answers.not_run.push(name(set));
            } else {
                answers.without_figure.push(name(set));
            }
        }
        for set in cells.selection.sets_left_out(cells.study, claim, arenas) {
            answers.left_out.push(name(set));
        }
    }

    /// Returns whether the claim holds under the base set. Returns `None` if the base set was not judged, and
    /// also if the checks of a `verdict` of a part hold, because the checks that were left out may fail.
    fn holds_under_base(&self, verdict: Verdict) -> Option<bool> {
        let holds = self.under_base()?.holds?;
        if holds && verdict == Verdict::PartlyJudged { None } else { Some(holds) }
    }

    /// Returns the figures of the claim in words, under the first set that judges it.
    fn reproduced(&self) -> String {
        match self.by_assumption.iter().find(|under| under.holds.is_some()) {
            Some(under) => words::reproduced(under, self.checks_left_out.len()),
            None => String::new(),
        }
    }

    /// How many checks were judged, if `verdict` is the verdict of a part.
    fn judged_part(&self, verdict: Verdict) -> Option<Part> {
        let judged = self.checks.len();
        let all = judged + self.checks_left_out.len();
        (verdict == Verdict::PartlyJudged).then_some(Part { judged, all })
    }

    /// Returns the smallest number of repetitions behind a compared median. It is 0 if no median was
    /// compared.
    fn fewest_repetitions(&self) -> u64 {
        let checks = self.by_assumption.iter().flat_map(|under| &under.checks);
        checks.flat_map(|check| &check.values).map(|value| value.n).min().unwrap_or(0)
    }

    /// Returns the checks of a claim that no set judges, so that a reader sees what would be compared.
    fn checks_without_outcome(&self) -> Vec<CheckOutcome> {
        if !self.by_assumption.is_empty() {
            return Vec::new();
        }
        let units = &self.cells.study.units;
        self.claim.checks.iter().map(|check| check_without_values(check, units)).collect()
    }
}

impl Finding<'_> {
    /// Returns whether the claim has no verdict because this run did not select the arenas or the cells of
    /// the claim.
    const fn is_left_out(&self) -> bool {
        matches!(self.not_tested, Some(NotTested::Arena(_) | NotTested::LeftOut { .. }))
    }
}

/// Returns whether `arenas` are too few to judge `claim`. A claim that compares arenas needs two.
fn lacks_arena(claim: &Claim, arenas: &[ArenaName]) -> bool {
    arenas.is_empty() || (claim.compares_arenas() && arenas.len() < 2)
}

/// Judges `checks` under the assumption set with index `assumption`.
fn judge_under(
    assumption: usize,
    checks: &[&Check],
    arenas: &[ArenaName],
    cells: &JudgedCells<'_>,
) -> UnderAssumption {
    let checks: Vec<CheckOutcome> =
        checks.iter().map(|check| judge_check(check, arenas, assumption, cells)).collect();
    let one_fails = checks.iter().any(|check| check.holds == Some(false));
    let all_hold = !checks.is_empty() && checks.iter().all(|check| check.holds == Some(true));
    // One check is enough to make the claim fail, even if other checks are not judged.
    let holds = if one_fails {
        Some(false)
    } else if all_hold {
        Some(true)
    } else {
        None
    };
    UnderAssumption { assumption: cells.study.assumptions[assumption].name.clone(), holds, checks }
}

/// The answer of an assumption set to a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Holds,
    Fails,
    /// The checks that decide hold or fail by less than the confidence intervals of the medians.
    Undecided,
    /// Every run equals the run under the base set, so the answer could not differ from the answer of the
    /// base.
    SameAsBase,
}

impl SetAnswers {
    const fn list(&mut self, answer: Answer) -> &mut Vec<String> {
        match answer {
            Answer::Holds => &mut self.holding,
            Answer::Fails => &mut self.failing,
            Answer::Undecided => &mut self.undecided,
            Answer::SameAsBase => &mut self.without_effect,
        }
    }

    /// Returns whether `set` gave an answer.
    fn contain(&self, set: &str) -> bool {
        let answered = [&self.holding, &self.failing, &self.undecided, &self.without_effect];
        answered.into_iter().flatten().any(|name| name == set)
    }
}

/// Says whether a verdict is the same under the other sets. Returns `None` if this is open.
fn standing(verdict: Verdict, sets: &SetAnswers) -> Option<Standing> {
    let contradicting = match verdict {
        Verdict::Reproduced | Verdict::Consistent => &sets.failing,
        Verdict::Differs => &sets.holding,
        Verdict::PartlyJudged | Verdict::NotTested | Verdict::Disturbed => return None,
    };
    if !contradicting.is_empty() {
        let is_differing = verdict == Verdict::Differs;
        return Some(if is_differing { Standing::OnlyUnder } else { Standing::Fragile });
    }
    // The base set is one of the sets that answered. A robust verdict needs at least one other.
    let has_other_answer = sets.holding.len() + sets.failing.len() > 1;
    let are_all_decided = sets.unjudged() == 0 && sets.undecided.is_empty();
    (has_other_answer && are_all_decided).then_some(Standing::Robust)
}
