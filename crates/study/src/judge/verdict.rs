//! Gives a claim its verdict and its standing, in one arena or over several arenas that the claim compares.
//!
//! - A *claim* is a statement of a publication. A claim holds if all its *checks* hold.
//! - A *check* compares medians of cells. An *arena* is where the cells run: in the simulator, in the
//!   emulator, or live.
//! - An *assumption set* fixes what the publication does not say. The first set is the *base set*.
//! - The *answer* of a set says whether the claim holds under this set.
//! - The *verdict* follows from the answer of the base set.
//! - The *standing* says whether the other sets give the same answer.
//! - A check or a set is *skipped* if only a run without `--quick` judges it.
//!
//! Begin to read with [`JudgedClaim::verdict`].

use super::cells::JudgedCells;
use super::check::{check_without_values, judge_check};
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Check, Claim, Standing, Verdict};
use crate::outcome::{ArenaVerdict, CheckOutcome, SetOutcome};
use crate::selection::SelectedChecks;
use crate::study::BASE_SET;
use crate::words::{self, JudgedPart, NoVerdictReason, SetsByAnswer, VerdictExplanation};

/// A claim whose checks are judged under every assumption set.
pub(super) struct JudgedClaim<'a> {
    claim: &'a Claim,
    /// One arena, or all arenas that the claim compares.
    arenas: &'a [ArenaName],
    cells: &'a JudgedCells<'a>,
    /// The checks that this run judges.
    checks: Vec<&'a Check>,
    skipped_checks: Vec<&'a Check>,
    /// The outcomes under the assumption sets, in the order of the study. A set without a single median has
    /// no outcome.
    set_outcomes: Vec<SetOutcome>,
}

impl<'a> JudgedClaim<'a> {
    /// Judges every check of `claim` under every assumption set.
    pub(super) fn new(claim: &'a Claim, arenas: &'a [ArenaName], cells: &'a JudgedCells<'a>) -> Self {
        let SelectedChecks { judged: checks, skipped: skipped_checks } =
            cells.selection.checks(claim, arenas);
        let mut set_outcomes = Vec::new();
        if has_enough_arenas(claim, arenas) {
            for set_index in 0..cells.study.assumptions.len() {
                let outcome = judge_under_set(set_index, &checks, arenas, cells);
                if outcome.checks.iter().any(|check| !check.values.is_empty()) {
                    set_outcomes.push(outcome);
                }
            }
        }
        Self { claim, arenas, cells, checks, skipped_checks, set_outcomes }
    }

    /// Returns the verdict with everything that explains it.
    pub(super) fn verdict(self) -> ArenaVerdict {
        let base_answer = self.base_answer();
        let no_verdict_reason = match base_answer {
            MedianAnswer::Unknown => Some(self.find_no_verdict_reason()),
            MedianAnswer::Holds | MedianAnswer::Fails => None,
        };
        let verdict = self.decide_verdict(base_answer, no_verdict_reason.as_ref());
        let sets = self.group_sets_by_answer();
        let explanation = VerdictExplanation {
            claim: self.claim,
            verdict,
            expected_verdict: self.expected_verdict(),
            no_verdict_reason,
            skipped_checks: &self.skipped_checks,
            base_outcome: self.base_outcome(),
            set_outcomes: &self.set_outcomes,
        };
        ArenaVerdict {
            arena: arena_list(if self.arenas.is_empty() { &self.claim.arenas } else { self.arenas }),
            reproduced: self.describe_figures(),
            verdict,
            standing: find_standing(verdict, &sets),
            expected: explanation.expected_verdict,
            holds_under_base: holds_under_base(verdict, base_answer),
            under: words::describe_answers(&sets, self.judged_part(verdict).as_ref()),
            why: explanation.in_words(),
            checks_left_out: self.skipped_checks.len() as u64,
            n: self.fewest_repetitions(),
            left_out: explanation.is_claim_unselected(),
            holds_under: sets.holding,
            fails_under: sets.failing,
            undecided_under: sets.undecided,
            without_effect: sets.same_as_base,
            sets_left_out: sets.skipped,
            sets_not_run: sets.not_run,
            sets_without_figure: sets.without_figure,
            by_seed: Vec::new(),
            not_judged: self.checks_without_outcome(),
            by_assumption: self.set_outcomes,
        }
    }

    fn base_name(&self) -> &'a String {
        &self.cells.study.assumptions[BASE_SET].name
    }

    /// Returns the outcome under the base set, or `None` if no cell of the claim is judged under the base
    /// set.
    fn base_outcome(&self) -> Option<&SetOutcome> {
        self.set_outcomes.iter().find(|outcome| outcome.assumption == *self.base_name())
    }

    fn base_answer(&self) -> MedianAnswer {
        self.base_outcome().map_or(MedianAnswer::Unknown, MedianAnswer::from_outcome)
    }

    /// Decides the verdict by the answer of the base set. If that answer is unknown, `no_verdict_reason` says
    /// why.
    fn decide_verdict(
        &self,
        base_answer: MedianAnswer,
        no_verdict_reason: Option<&NoVerdictReason>,
    ) -> Verdict {
        match base_answer {
            MedianAnswer::Fails => Verdict::Differs,
            MedianAnswer::Unknown if matches!(no_verdict_reason, Some(NoVerdictReason::Disturbed { .. })) => {
                Verdict::Disturbed
            }
            MedianAnswer::Unknown => Verdict::NotTested,
            // All judged checks hold, but a skipped check may fail.
            MedianAnswer::Holds if !self.skipped_checks.is_empty() => Verdict::PartlyJudged,
            MedianAnswer::Holds if self.checks.iter().all(|check| check.basis == Basis::Fitted) => {
                Verdict::Consistent
            }
            MedianAnswer::Holds => Verdict::Reproduced,
        }
    }

    /// Returns the verdict that the study expects. If the claim compares arenas, the verdict that is expected
    /// in the first arena is expected in all of them.
    fn expected_verdict(&self) -> Verdict {
        let Some(first_arena) = self.arenas.first().or(self.claim.arenas.first()) else {
            return Verdict::NotTested;
        };
        self.claim.expected.get(first_arena).copied().unwrap_or(Verdict::NotTested)
    }

    /// Finds the reason why the base set gives no answer. If several reasons apply, one is returned: what the
    /// study lacks comes before what this run did not select, and that comes before what it did not measure.
    fn find_no_verdict_reason(&self) -> NoVerdictReason {
        let Self { claim, arenas, cells, checks, .. } = self;
        let is_campaign = **arenas == [ArenaName::Campaign];
        if claim.checks.is_empty() {
            NoVerdictReason::NoCheck
        } else if !has_enough_arenas(claim, arenas) {
            NoVerdictReason::ArenasNotSelected(claim.arenas.clone())
        } else if !self.selects_base_cells() {
            NoVerdictReason::CellsNotSelected { is_quick: cells.selection.is_quick }
        } else if cells.lacks_only_disturbed(checks, arenas) {
            NoVerdictReason::Disturbed { is_campaign }
        } else if let Some(operand) = cells.operand_without_median(checks, arenas) {
            NoVerdictReason::NoMedian { cell: operand.cell.clone(), metric: operand.metric.clone() }
        } else if let Some(check) = self.base_check_without_figure() {
            NoVerdictReason::NoFigure { check: check.name.clone() }
        } else {
            NoVerdictReason::CellsNotRun { is_campaign }
        }
    }

    /// Returns whether this run selects the cells that the checks read under the base set, in every arena.
    fn selects_base_cells(&self) -> bool {
        let Self { arenas, cells, checks, .. } = self;
        arenas.iter().all(|&arena| cells.selection.judges_base(cells.study, checks, arena))
    }

    /// Finds a check that has all its medians under the base set, but whose figure cannot be computed from
    /// them.
    fn base_check_without_figure(&self) -> Option<&CheckOutcome> {
        self.base_outcome()?.checks.iter().find(|check| check.lacks_figure())
    }

    /// Groups the assumption sets by their answer. A set without an answer is listed by the reason for that.
    fn group_sets_by_answer(&self) -> SetsByAnswer {
        let mut sets = SetsByAnswer { base: self.base_name().clone(), ..SetsByAnswer::default() };
        for outcome in &self.set_outcomes {
            if let Some(answer) = self.set_answer(outcome) {
                sets.names_mut(answer).push(outcome.assumption.clone());
            }
        }
        self.list_sets_without_answer(&mut sets);
        // The medians of the base set decide the verdict even if they leave the claim undecided. So an
        // undecided base set is also listed as holding or failing.
        if sets.undecided.contains(self.base_name()) {
            let answer_of_medians = match self.base_answer() {
                MedianAnswer::Holds => SetAnswer::Holds,
                MedianAnswer::Fails | MedianAnswer::Unknown => SetAnswer::Fails,
            };
            sets.names_mut(answer_of_medians).insert(0, self.base_name().clone());
        }
        sets
    }

    /// Returns the answer of one assumption set, or `None` if the set gives no answer.
    fn set_answer(&self, outcome: &SetOutcome) -> Option<SetAnswer> {
        let Self { arenas, cells, checks, .. } = self;
        let median_answer = MedianAnswer::from_outcome(outcome);
        if median_answer == MedianAnswer::Unknown {
            return None;
        }
        let set_index = cells.study.assumption_index(&outcome.assumption)?;
        if cells.equals_base(&self.claim.id, checks, arenas, set_index) {
            return Some(SetAnswer::SameAsBase);
        }
        if median_answer == MedianAnswer::Holds {
            // If one check is undecided, the claim may fail.
            let is_undecided = outcome.checks.iter().any(CheckOutcome::is_undecided);
            return Some(if is_undecided { SetAnswer::Undecided } else { SetAnswer::Holds });
        }
        // One check that fails for certain is enough to make the claim fail.
        let mut failing_checks = outcome.checks.iter().filter(|check| check.holds == Some(false));
        let is_undecided = failing_checks.all(CheckOutcome::is_undecided);
        Some(if is_undecided { SetAnswer::Undecided } else { SetAnswer::Fails })
    }

    /// Lists the sets that gave no answer: sets whose cells did not run to their end, sets under which a
    /// check has no figure, and skipped sets.
    fn list_sets_without_answer(&self, sets: &mut SetsByAnswer) {
        let Self { claim, arenas, cells, checks, .. } = self;
        let study = cells.study;
        for set_index in cells.selection.sets(study, checks, arenas) {
            let name = &study.assumptions[set_index].name;
            if sets.has_answer_of(name) {
                continue;
            }
            if cells.lacks_cells(checks, arenas, set_index) {
                sets.not_run.push(name.clone());
            } else {
                sets.without_figure.push(name.clone());
            }
        }
        for set_index in cells.selection.skipped_sets(study, claim, arenas) {
            sets.skipped.push(study.assumptions[set_index].name.clone());
        }
    }

    /// Writes the figures that the claim has under the first set with an answer, which is the base set if the
    /// base set has an answer.
    fn describe_figures(&self) -> String {
        let has_answer = |outcome: &&SetOutcome| outcome.holds.is_some();
        let outcome = self.set_outcomes.iter().find(has_answer);
        outcome
            .map_or_else(String::new, |outcome| words::describe_figures(outcome, self.skipped_checks.len()))
    }

    /// Returns how many checks were judged, and of how many. Returns `None` unless the claim is partly
    /// judged.
    fn judged_part(&self, verdict: Verdict) -> Option<JudgedPart> {
        if verdict != Verdict::PartlyJudged {
            return None;
        }
        let judged_checks = self.checks.len();
        Some(JudgedPart { judged_checks, all_checks: judged_checks + self.skipped_checks.len() })
    }

    /// Returns the number of repetitions of the compared median that rests on the fewest. It is 0 if no
    /// median was compared.
    fn fewest_repetitions(&self) -> u64 {
        let checks = self.set_outcomes.iter().flat_map(|outcome| &outcome.checks);
        checks.flat_map(|check| &check.values).map(|value| value.n).min().unwrap_or(0)
    }

    /// Returns the checks of a claim that no set judges. They have no values, but they say what would be
    /// compared.
    fn checks_without_outcome(&self) -> Vec<CheckOutcome> {
        if !self.set_outcomes.is_empty() {
            return Vec::new();
        }
        let units = &self.cells.study.units;
        self.claim.checks.iter().map(|check| check_without_values(check, units)).collect()
    }
}

/// Returns whether `arenas` are enough to judge `claim`. A claim that compares arenas needs two.
fn has_enough_arenas(claim: &Claim, arenas: &[ArenaName]) -> bool {
    let needed_arenas = if claim.compares_arenas() { 2 } else { 1 };
    arenas.len() >= needed_arenas
}

/// Judges `checks` under the assumption set with the index `set_index`.
fn judge_under_set(
    set_index: usize,
    checks: &[&Check],
    arenas: &[ArenaName],
    cells: &JudgedCells<'_>,
) -> SetOutcome {
    let checks: Vec<CheckOutcome> =
        checks.iter().map(|check| judge_check(check, arenas, set_index, cells)).collect();
    let has_failing_check = checks.iter().any(|check| check.holds == Some(false));
    let all_checks_hold = !checks.is_empty() && checks.iter().all(|check| check.holds == Some(true));
    // One failing check makes the claim fail, even if other checks are not judged.
    let holds = if has_failing_check {
        Some(false)
    } else if all_checks_hold {
        Some(true)
    } else {
        None
    };
    SetOutcome { assumption: cells.study.assumptions[set_index].name.clone(), holds, checks }
}

/// What the medians under one assumption set say about a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MedianAnswer {
    Holds,
    Fails,
    /// No check fails, but a check lacks a median or its figure.
    Unknown,
}

impl MedianAnswer {
    const fn from_outcome(outcome: &SetOutcome) -> Self {
        match outcome.holds {
            Some(true) => Self::Holds,
            Some(false) => Self::Fails,
            None => Self::Unknown,
        }
    }
}

/// The answer of an assumption set to a claim. It considers the confidence intervals of the medians, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetAnswer {
    Holds,
    Fails,
    /// Other values within the confidence intervals of the medians would give another answer.
    Undecided,
    /// Every repetition measured what it measured under the base set, so the set could not give another
    /// answer than the base set.
    SameAsBase,
}

impl SetsByAnswer {
    const fn names_mut(&mut self, answer: SetAnswer) -> &mut Vec<String> {
        match answer {
            SetAnswer::Holds => &mut self.holding,
            SetAnswer::Fails => &mut self.failing,
            SetAnswer::Undecided => &mut self.undecided,
            SetAnswer::SameAsBase => &mut self.same_as_base,
        }
    }

    fn has_answer_of(&self, set_name: &str) -> bool {
        let sets_with_answer = [&self.holding, &self.failing, &self.undecided, &self.same_as_base];
        sets_with_answer.into_iter().flatten().any(|name| name == set_name)
    }
}

/// Returns whether the whole claim holds under the base set, or `None` if this is unknown. It is unknown,
/// too, if the claim is only partly judged, because a skipped check may fail.
fn holds_under_base(verdict: Verdict, base_answer: MedianAnswer) -> Option<bool> {
    match base_answer {
        MedianAnswer::Unknown => None,
        MedianAnswer::Fails => Some(false),
        MedianAnswer::Holds if verdict == Verdict::PartlyJudged => None,
        MedianAnswer::Holds => Some(true),
    }
}

/// Compares the verdict with the answers of the other sets. Returns `None` if there is no verdict, or if
/// another set might still contradict it.
fn find_standing(verdict: Verdict, sets: &SetsByAnswer) -> Option<Standing> {
    let (contradicting_sets, standing_if_contradicted) = match verdict {
        Verdict::Reproduced | Verdict::Consistent => (&sets.failing, Standing::Fragile),
        Verdict::Differs => (&sets.holding, Standing::OnlyUnder),
        Verdict::PartlyJudged | Verdict::NotTested | Verdict::Disturbed => return None,
    };
    if !contradicting_sets.is_empty() {
        return Some(standing_if_contradicted);
    }
    // The base set is one of the sets that answered. A robust verdict needs at least one other.
    let has_other_answer = sets.holding.len() + sets.failing.len() > 1;
    let are_all_decided = sets.count_without_answer() == 0 && sets.undecided.is_empty();
    (has_other_answer && are_all_decided).then_some(Standing::Robust)
}
