//! A claim's verdict in one arena, or over several for a claim that compares them.
//!
//! ```text
//! checks of the claim ─► under each assumption set (UnderAssumption) ─► the base set's answer: the verdict
//!                                                                    ─► the other sets' answers: its standing
//! ```

use super::check::judge_check;
use super::ran::Ran;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Check, Claim, Standing, Verdict};
use crate::outcome::{ArenaVerdict, CheckOutcome, UnderAssumption};
use crate::words::{self, Finding, NotTested, Part, Sets};

/// A claim where it is judged, with what its checks gave.
pub(super) struct JudgedClaim<'a> {
    claim: &'a Claim,
    arenas: &'a [ArenaName],
    ran: &'a Ran<'a>,
    checks: Vec<&'a Check>,
    /// Checks that `--quick` leaves out.
    left_out: Vec<&'a Check>,
    /// What each assumption set gave, of those with a value.
    by_assumption: Vec<UnderAssumption>,
}

impl<'a> JudgedClaim<'a> {
    pub(super) fn new(claim: &'a Claim, arenas: &'a [ArenaName], ran: &'a Ran<'a>) -> Self {
        let checks = ran.selection.checks(claim, arenas);
        let sets = if lacks_arena(claim, arenas) { 0 } else { ran.study.assumptions.len() };
        let has_value = |under: &UnderAssumption| under.checks.iter().any(|check| !check.values.is_empty());
        let by_assumption = (0..sets).map(|set| under(&checks, arenas, set, ran)).filter(has_value).collect();
        let left_out = ran.selection.checks_left_out(claim, arenas);
        Self { claim, arenas, ran, checks, left_out, by_assumption }
    }

    pub(super) fn verdict(self) -> ArenaVerdict {
        let finding = self.finding();
        let verdict = finding.verdict;
        let answers = self.answers();
        let sets = answers.sets(self.base());
        let holds_under_base = self.under_base().and_then(|under| under.holds);
        ArenaVerdict {
            arena: arena_list(if self.arenas.is_empty() { &self.claim.arenas } else { self.arenas }),
            reproduced: self.reproduced(),
            verdict,
            standing: standing(verdict, &sets),
            expected: finding.expected,
            holds_under_base: holds_under_base.filter(|holds| verdict != Verdict::PartlyJudged || !holds),
            under: words::under(&sets, self.part(verdict)),
            why: words::why(self.claim, &finding, self.under_base()),
            checks_left_out: self.left_out.len() as u64,
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
            not_judged: self.not_judged(),
            by_assumption: self.by_assumption,
        }
    }

    /// The first assumption set, under which a claim has its verdict.
    fn base(&self) -> &'a String {
        &self.ran.study.assumptions[0].name
    }

    fn under_base(&self) -> Option<&UnderAssumption> {
        self.by_assumption.iter().find(|under| under.assumption == *self.base())
    }

    /// The verdict, that under the base set, and if there is none, why.
    fn finding(&self) -> Finding<'_> {
        let (verdict, not_tested) = match self.under_base().and_then(|under| under.holds) {
            Some(false) => (Verdict::Differs, None),
            // Checks that hold say nothing of those that were left out.
            Some(true) if !self.left_out.is_empty() => (Verdict::PartlyJudged, None),
            // The claim may have others, which another arena judges.
            Some(true) if self.checks.iter().all(|check| check.basis == Basis::Fitted) => {
                (Verdict::Consistent, None)
            }
            Some(true) => (Verdict::Reproduced, None),
            None => match self.not_tested() {
                NotTested::Disturbed => (Verdict::Disturbed, Some(NotTested::Disturbed)),
                why => (Verdict::NotTested, Some(why)),
            },
        };
        Finding { verdict, not_tested, expected: self.expected(), left_out: &self.left_out }
    }

    /// The verdict that the study expects here.
    fn expected(&self) -> Verdict {
        let arena = self.arenas.first().or(self.claim.arenas.first());
        arena.and_then(|arena| self.claim.expected.get(arena)).copied().unwrap_or(Verdict::NotTested)
    }

    /// Why the base set gives no verdict.
    fn not_tested(&self) -> NotTested {
        let Self { claim, arenas, ran, checks, .. } = self;
        let has_cells = || arenas.iter().all(|&arena| ran.selection.has_cells_of(ran.study, checks, arena));
        let without_figure = || self.under_base()?.checks.iter().find(|check| check.lacks_figure());
        if claim.checks.is_empty() {
            NotTested::NoCheck
        } else if lacks_arena(claim, arenas) {
            NotTested::Arena(claim.arenas.clone())
        } else if !has_cells() {
            NotTested::LeftOut { quick: ran.selection.quick }
        } else if ran.lacks_only_disturbed(checks, arenas) {
            NotTested::Disturbed
        } else if let Some(operand) = ran.without_value(checks, arenas) {
            NotTested::NoValue { cell: operand.cell.clone(), metric: operand.metric.clone() }
        } else if let Some(check) = without_figure() {
            NotTested::NoFigure { check: check.name.clone() }
        } else {
            NotTested::NotRun { is_campaign: **arenas == [ArenaName::Campaign] }
        }
    }

    /// What every assumption set says.
    fn answers(&self) -> Answers {
        let Self { claim, arenas, ran, checks, .. } = self;
        let mut answers = Answers::default();
        for under in &self.by_assumption {
            if let Some(answer) = self.answer(under) {
                answers.list(answer).push(under.assumption.clone());
            }
        }
        let name = |set: usize| ran.study.assumptions[set].name.clone();
        let wanted = ran.selection.sets(ran.study, checks, arenas).into_iter().map(name);
        let unjudged = wanted.filter(|set| !answers.have(set));
        (answers.not_run, answers.without_figure) =
            unjudged.partition(|set| ran.lacks_cells(checks, arenas, set));
        answers.left_out =
            ran.selection.sets_left_out(ran.study, claim, arenas).into_iter().map(name).collect();
        // The verdict is that of the base's medians, whatever their intervals say.
        if answers.undecided.contains(self.base()) {
            let holds = self.under_base().and_then(|under| under.holds) == Some(true);
            let by_medians = if holds { Answer::Holds } else { Answer::Fails };
            answers.list(by_medians).insert(0, self.base().clone());
        }
        answers
    }

    /// What one set says; `None` if it does not judge the claim.
    fn answer(&self, under: &UnderAssumption) -> Option<Answer> {
        let holds = under.holds?;
        if self.ran.equals_base(&self.checks, self.arenas, &under.assumption) {
            return Some(Answer::AsBase);
        }
        let mut deciding = under.checks.iter().filter(|check| check.holds == Some(holds));
        Some(match holds {
            true if deciding.any(CheckOutcome::is_undecided) => Answer::Undecided,
            false if deciding.all(CheckOutcome::is_undecided) => Answer::Undecided,
            true => Answer::Holds,
            false => Answer::Fails,
        })
    }

    /// The claim's figures under the first set that judges it.
    fn reproduced(&self) -> String {
        let judged = self.by_assumption.iter().find(|under| under.holds.is_some());
        judged.map_or_else(String::new, |under| words::reproduced(under, self.left_out.len()))
    }

    /// How many checks were judged, if `verdict` is that of a part.
    fn part(&self, verdict: Verdict) -> Option<Part> {
        let judged = self.checks.len();
        (verdict == Verdict::PartlyJudged).then(|| Part { judged, all: judged + self.left_out.len() })
    }

    /// Of all medians that were compared; 0 without one.
    fn fewest_repetitions(&self) -> u64 {
        let checks = self.by_assumption.iter().flat_map(|under| &under.checks);
        checks.flat_map(|check| &check.values).map(|value| value.n).min().unwrap_or(0)
    }

    /// What a claim that no set judges would compare.
    fn not_judged(&self) -> Vec<CheckOutcome> {
        if !self.by_assumption.is_empty() {
            return Vec::new();
        }
        self.claim.checks.iter().map(|check| self.without_values(check)).collect()
    }

    fn without_values(&self, check: &Check) -> CheckOutcome {
        let metric = check.operands.first().map(|operand| operand.metric.clone()).unwrap_or_default();
        CheckOutcome {
            name: check.name.clone(),
            own_unit: self.ran.study.units.get(&metric).copied(),
            metric,
            must: check.kind,
            basis: check.basis,
            one_sided: check.one_sided.clone(),
            values: Vec::new(),
            compared: check.operands.clone(),
            figure: None,
            ci95: None,
            holds: None,
            held_by: None,
            certain: false,
            single_hits: 0,
            single_runs: 0,
        }
    }
}

impl Finding<'_> {
    /// Whether the claim has no verdict because this run did not select what it takes.
    const fn is_left_out(&self) -> bool {
        matches!(self.not_tested, Some(NotTested::Arena(_) | NotTested::LeftOut { .. }))
    }
}

/// Whether `arenas` are too few to judge `claim`.
fn lacks_arena(claim: &Claim, arenas: &[ArenaName]) -> bool {
    arenas.is_empty() || (claim.compares_arenas() && arenas.len() < 2)
}

fn under(checks: &[&Check], arenas: &[ArenaName], assumption: usize, ran: &Ran<'_>) -> UnderAssumption {
    let checks: Vec<_> = checks.iter().map(|it| judge_check(it, arenas, assumption, ran)).collect();
    let all: Option<Vec<bool>> = checks.iter().map(|check| check.holds).collect();
    let whole = all.filter(|all| !all.is_empty()).map(|all| all.iter().all(|holds| *holds));
    // What ran can make the claim fail, whatever the rest would say; that it holds takes all of it.
    let fails = checks.iter().any(|check| check.holds == Some(false));
    UnderAssumption {
        assumption: ran.study.assumptions[assumption].name.clone(),
        holds: whole.or(fails.then_some(false)),
        checks,
    }
}

/// What one set says of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Holds,
    Fails,
    /// The checks that decide lie within the medians' intervals.
    Undecided,
    /// Every run equals the base's: it could not have said anything else.
    AsBase,
}

/// The names of the assumption sets, by what each says of a claim, in the study's order.
#[derive(Default)]
struct Answers {
    holding: Vec<String>,
    failing: Vec<String>,
    /// The base, if it is one, is listed in one of the above, too.
    undecided: Vec<String>,
    without_effect: Vec<String>,
    /// A whole run judges the claim under these, and this one does not.
    left_out: Vec<String>,
    /// Not run, or not to the end.
    not_run: Vec<String>,
    /// Run, and without a figure of a check.
    without_figure: Vec<String>,
}

impl Answers {
    const fn list(&mut self, answer: Answer) -> &mut Vec<String> {
        match answer {
            Answer::Holds => &mut self.holding,
            Answer::Fails => &mut self.failing,
            Answer::Undecided => &mut self.undecided,
            Answer::AsBase => &mut self.without_effect,
        }
    }

    /// Whether `set` gave one of the four answers.
    fn have(&self, set: &str) -> bool {
        let lists = [&self.holding, &self.failing, &self.undecided, &self.without_effect];
        lists.into_iter().flatten().any(|name| name == set)
    }

    fn sets<'s>(&'s self, base: &'s str) -> Sets<'s> {
        Sets {
            base,
            holding: &self.holding,
            failing: &self.failing,
            undecided: &self.undecided,
            without_effect: &self.without_effect,
            left_out: self.left_out.len(),
            not_run: self.not_run.len(),
            without_figure: self.without_figure.len(),
        }
    }
}

/// How a verdict fares under the other sets; `None` if that is open.
fn standing(verdict: Verdict, sets: &Sets<'_>) -> Option<Standing> {
    let others = sets.holding.len() + sets.failing.len() > 1;
    let are_all_judged = sets.unjudged() == 0 && sets.undecided.is_empty();
    match verdict {
        Verdict::Reproduced | Verdict::Consistent if !sets.failing.is_empty() => Some(Standing::Fragile),
        Verdict::Differs if !sets.holding.is_empty() => Some(Standing::OnlyUnder),
        Verdict::Reproduced | Verdict::Consistent | Verdict::Differs => {
            (others && are_all_judged).then_some(Standing::Robust)
        }
        Verdict::PartlyJudged | Verdict::NotTested | Verdict::Disturbed => None,
    }
}
