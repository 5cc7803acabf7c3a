//! Reads the claims of a study and their checks.
//!
//! - A *claim* is one statement of the publication.
//! - A *check* is one comparison that must hold for the claim, such as "the median of the queue lies between
//!   8 and 10 packets".
//! - An *operand* is a metric of a cell. A check compares the medians of its operands.
//!
//! A `check` entry of the file with axes (`each`) stands for several checks. Begin to read with
//! [`Loader::claims`].

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use super::Loader;
use super::axes::{Axes, AxisValue, combinations};
use super::lookup::Lookup;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Bound, Check, Claim, ClaimKind, Formula, Operand, Order, Tolerance, Verdict};
use crate::file::{CheckEntry, ClaimEntry, ExpectedEntry, LineOfCells, OperandEntry, Within};
use crate::mistakes::names_help;
use crate::words::{Place, matches_pattern, places};

/// The key of a check, for messages.
const CHECK: &str = "claim.check";

/// The kind of a check and its operands. The names of the operands can still contain `{AXIS}`.
struct Comparison {
    kind: ClaimKind,
    operands: Vec<Spanned<Operand>>,
}

impl Loader<'_, '_> {
    /// Reads every claim of the file.
    pub(super) fn claims(&mut self, lookup: &Lookup<'_>) -> Vec<Claim> {
        let mut ids = BTreeSet::new();
        let mut claims = Vec::new();
        for entry in &self.file.claim {
            let id = entry.id.get_ref();
            if !ids.insert(id) {
                self.mistakes.add(entry.id.span(), "claim.id", format!("duplicate claim id \"{id}\""));
            }
            claims.push(self.claim(entry, lookup));
        }
        claims
    }

    fn claim(&mut self, entry: &ClaimEntry, lookup: &Lookup<'_>) -> Claim {
        let arenas = claim_arenas(entry);
        let mut checks = Vec::new();
        for check_entry in &entry.check {
            checks.extend(self.checks(check_entry, entry, &arenas, lookup));
        }
        Claim {
            id: entry.id.get_ref().clone(),
            text: entry.text.clone(),
            published: entry.published.clone(),
            expected: self.expected_verdicts(&entry.expected, &arenas),
            why: self.reason(entry, &checks),
            arenas,
            checks,
        }
    }

    /// Reads the reason of the expected verdict. Every claim needs a reason, because a verdict alone does not
    /// say what it rests on.
    fn reason(&mut self, entry: &ClaimEntry, checks: &[Check]) -> String {
        let reason = entry.why.as_deref().unwrap_or_default().trim();
        if reason.is_empty() {
            let message = format!(
                "{} needs a `why`, which says what the verdict rests on: fitted, assumed or predicted figures",
                entry.id.get_ref()
            );
            self.mistakes.add(entry.id.span(), "claim.why", message);
        }
        self.require_places(reason, entry, checks);
        reason.to_owned()
    }

    /// Records a mistake for each place of `why` that no check or no assumption set can fill.
    fn require_places(&mut self, reason: &str, entry: &ClaimEntry, checks: &[Check]) {
        let places = match places(reason) {
            Ok(places) => places,
            Err(why) => return self.mistakes.add(entry.id.span(), "claim.why", why),
        };
        for Place { checks: pattern, set, .. } in places {
            if self.has_all_names && !checks.iter().any(|check| matches_pattern(pattern, &check.name)) {
                let message = format!("{}: there is no check `{pattern}`", entry.id.get_ref());
                let help = names_help(checks.iter().map(|check| check.name.as_str()));
                self.mistakes.add_with_help(entry.id.span(), "claim.why", message, help);
            }
            let names = || self.file.assumption.iter().map(|entry| entry.name.get_ref().as_str());
            if let Some(set) = set.filter(|set| self.is_whole && !names().any(|name| name == *set)) {
                let message = format!("{}: there is no assumption set \"{set}\"", entry.id.get_ref());
                let help = names_help(names());
                self.mistakes.add_with_help(entry.id.span(), "claim.why", message, help);
            }
        }
    }

    /// Reads the verdict that is expected in each arena of the claim.
    fn expected_verdicts(
        &mut self,
        entry: &Spanned<ExpectedEntry>,
        arenas: &[ArenaName],
    ) -> BTreeMap<ArenaName, Verdict> {
        let mut expected = BTreeMap::new();
        for &arena in arenas {
            let verdict = match entry.get_ref() {
                ExpectedEntry::Everywhere(verdict) => Some(*verdict),
                ExpectedEntry::ByArena(verdicts) => verdicts.get(&arena).copied(),
            };
            let message = match verdict {
                Some(Verdict::PartlyJudged | Verdict::Disturbed) => {
                    "expected a verdict of a whole, undisturbed run: reproduced, consistent, differs or \
                     not-tested"
                        .to_owned()
                }
                Some(verdict) => {
                    expected.insert(arena, verdict);
                    continue;
                }
                None => format!("no verdict for {arena}: expected a verdict for each arena of the claim"),
            };
            self.mistakes.add(entry.span(), "claim.expected", message);
        }
        expected
    }

    /// Reads a `check` entry. Returns one check for each combination of the values of its axes.
    fn checks(
        &mut self,
        entry: &Spanned<CheckEntry>,
        claim: &ClaimEntry,
        claim_arenas: &[ArenaName],
        lookup: &Lookup<'_>,
    ) -> Vec<Check> {
        let Some(comparison) = self.comparison(entry) else { return Vec::new() };
        let CheckEntry { name, each, pool, one_sided, quick, .. } = entry.get_ref();
        self.require_equal_parts(each, &entry.span(), "claim.check.each");
        self.require_equal_parts(pool, &entry.span(), "claim.check.pool");
        let Some(kind) = pooled_kind(comparison.kind, comparison.operands.len(), pool) else {
            let message = "only a share of repetitions can be pooled: `rising` or `falling` with a bound";
            self.mistakes.add(entry.span(), "claim.check.pool", message);
            return Vec::new();
        };
        let basis = self.basis(entry, claim);
        let arenas = self.check_arenas(entry, claim_arenas);
        let quick_arenas = quick.clone().unwrap_or_else(|| ArenaName::RUNNABLE.to_vec());
        let mut checks = Vec::new();
        for combination in combinations(each) {
            let check = Check {
                name: self.fill_axes(name, &combination, entry.span(), CHECK),
                operands: self.pooled_operands(&comparison.operands, &combination, pool),
                kind,
                basis,
                one_sided: one_sided.clone(),
                arenas: arenas.clone(),
                quick_arenas: quick_arenas.clone(),
            };
            self.require_meaningful(&check, &entry.span(), lookup);
            checks.push(check);
        }
        checks
    }

    /// Reads what the figure of a check rests on: the basis of the check, or else that of its claim.
    fn basis(&mut self, entry: &Spanned<CheckEntry>, claim: &ClaimEntry) -> Basis {
        if let Some(basis) = entry.get_ref().basis.or(claim.basis) {
            return basis;
        }
        let message =
            "expected a `basis` in the check or in its claim: \"fitted\", \"assumed\" or \"predicted\"";
        self.mistakes.add(entry.span(), "claim.check.basis", message);
        Basis::Predicted
    }

    /// Reads the arenas where a check is judged. A check is judged only where its claim is judged.
    fn check_arenas(&mut self, entry: &Spanned<CheckEntry>, claim_arenas: &[ArenaName]) -> Vec<ArenaName> {
        let arenas = entry.get_ref().arenas.as_deref().unwrap_or(claim_arenas);
        if let Some(arena) = arenas.iter().find(|arena| !claim_arenas.contains(arena)) {
            let message =
                format!("the claim is not judged in {arena}; expected one of {}", arena_list(claim_arenas));
            self.mistakes.add(entry.span(), "claim.check.arenas", message);
        }
        arenas.to_vec()
    }

    /// Returns the operands of each combination of the values of `pool`, one after the other. Without axes in
    /// `pool` these are the operands once.
    fn pooled_operands(
        &mut self,
        operands: &[Spanned<Operand>],
        combination: &[AxisValue<'_>],
        pool: &Axes,
    ) -> Vec<Operand> {
        let mut pooled = Vec::new();
        for of_pool in combinations(pool) {
            pooled.extend(self.filled_operands(operands, &[combination, &of_pool].concat()));
        }
        pooled
    }

    /// Returns the operands with the values of a combination in place of `{AXIS}`.
    fn filled_operands(
        &mut self,
        operands: &[Spanned<Operand>],
        combination: &[AxisValue<'_>],
    ) -> Vec<Operand> {
        let mut filled = Vec::new();
        for operand in operands {
            let Operand { cell, metric } = operand.get_ref();
            let cell = self.fill_axes(cell, combination, operand.span(), CHECK);
            let metric = self.fill_axes(metric, combination, operand.span(), CHECK);
            self.require_cell(&cell, operand.span(), CHECK);
            filled.push(Operand { cell, metric });
        }
        filled
    }

    /// Reads what a check compares, and how.
    fn comparison(&mut self, entry: &Spanned<CheckEntry>) -> Option<Comparison> {
        let check = entry.get_ref();
        let within = match &check.within {
            Some(within) => Some(self.tolerance(within, "claim.check.within")?),
            None => None,
        };
        let agree = match &check.agree {
            Some(agree) => Some(self.tolerance(agree, "claim.check.agree")?),
            None => None,
        };
        let Some((kind, source)) = kind_and_source(check, within, agree) else {
            self.mistakes.add(entry.span(), CHECK, CHECK_FORMS);
            return None;
        };
        let operands = match source {
            OperandSource::Cell(cell) => {
                let only = Spanned::new(cell.span(), OperandEntry::Cell(cell.get_ref().clone()));
                self.listed_operands(&[only], entry)?
            }
            OperandSource::List(list) => self.listed_operands(list, entry)?,
            OperandSource::Line(line) => line_operands(line),
        };
        if let Some(message) = wrong_operand_count(kind, operands.len()) {
            self.mistakes.add(entry.span(), CHECK, message);
            return None;
        }
        Some(Comparison { kind, operands })
    }

    /// Reads a tolerance, such as `2.5` or `"3%"`.
    fn tolerance(&mut self, entry: &Spanned<Within>, key: &str) -> Option<Tolerance> {
        let tolerance = match entry.get_ref() {
            Within::Number(number) => Some(Tolerance::Absolute(*number)),
            Within::Share(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                percent.map(|percent| Tolerance::Relative(percent / 100.0))
            }
        };
        if let Some(Tolerance::Absolute(size) | Tolerance::Relative(size)) = tolerance
            && size.is_finite()
            && size > 0.0
        {
            return tolerance;
        }
        let message = "expected a number above 0 in the metric's unit, or a share such as \"3%\"";
        self.mistakes.add(entry.span(), key, message);
        None
    }

    /// Reads a list of operands. An operand that names no cell has the cell of the check, and an operand that
    /// names no metric has the metric of the check.
    fn listed_operands(
        &mut self,
        list: &[Spanned<OperandEntry>],
        entry: &Spanned<CheckEntry>,
    ) -> Option<Vec<Spanned<Operand>>> {
        let check = entry.get_ref();
        let check_cell = check.cell.as_ref().map(Spanned::get_ref);
        let mut operands = Vec::new();
        for listed in list {
            let (cell, metric) = match listed.get_ref() {
                OperandEntry::Cell(cell) => (Some(cell), None),
                OperandEntry::Full(full) => (full.cell.as_ref(), full.metric.as_ref()),
            };
            let (Some(cell), Some(metric)) = (cell.or(check_cell), metric.or(check.metric.as_ref())) else {
                let message = "an operand needs a `cell` and a `metric`; \
                               expected each of the two in the operand or in the check";
                self.mistakes.add(entry.span(), CHECK, message);
                return None;
            };
            let operand = Operand { cell: cell.clone(), metric: metric.clone() };
            operands.push(Spanned::new(listed.span(), operand));
        }
        Some(operands)
    }
}

/// The message for a check that has none of the forms, or several.
const CHECK_FORMS: &str = "expected one of: `cell`, `ratio`, `difference`, `slope` or `r_squared`, each with `value` and `within`, \
                           `at_most`, `at_least` or `between`; `rising` or `falling` with a list of cells, and with one of these bounds \
                           if the share of single repetitions is asked; `same` with a list of \
                           cells and `within`; `cell` with `agree`";

/// Returns the arenas where a claim is judged. Without the key `arenas` these are all arenas where cells run.
/// A campaign is added if the claim expects a verdict there.
fn claim_arenas(entry: &ClaimEntry) -> Vec<ArenaName> {
    if let Some(arenas) = &entry.arenas {
        return arenas.clone();
    }
    let mut arenas = ArenaName::RUNNABLE.to_vec();
    if let ExpectedEntry::ByArena(verdicts) = entry.expected.get_ref()
        && verdicts.contains_key(&ArenaName::Campaign)
    {
        arenas.push(ArenaName::Campaign);
    }
    arenas
}

/// The part of a check entry that names the operands.
enum OperandSource<'a> {
    /// The key `cell`: the check has one operand.
    Cell(&'a Spanned<String>),
    /// A list, such as the value of `ratio` or `rising`.
    List(&'a [Spanned<OperandEntry>]),
    /// The points of `slope` or `r_squared`.
    Line(&'a LineOfCells),
}

/// Returns the kind of a check, and where its operands are. Returns `None` if the check has the keys of no
/// form or of several forms, or if a bound or a tolerance is missing or does not belong to the form.
fn kind_and_source(
    check: &CheckEntry,
    within: Option<Tolerance>,
    agree: Option<Tolerance>,
) -> Option<(ClaimKind, OperandSource<'_>)> {
    let has_bound_key = check.value.is_some()
        || check.at_most.is_some()
        || check.at_least.is_some()
        || check.between.is_some();
    let bound = bound(check, within);
    // The kinds are `None` if the bound or the tolerance that they need is missing, or if there is one that
    // they do not have.
    let figure = |formula: Formula| bound.map(|bound| ClaimKind::Figure { formula, bound });
    let unbound = |kind: ClaimKind| (!has_bound_key && within.is_none()).then_some(kind);
    let ordered = |order: Order, kind: ClaimKind| match bound {
        Some(bound) => Some(ClaimKind::Share { order, bound, of: None }),
        None => unbound(kind),
    };
    let same = within.filter(|_| !has_bound_key).map(|within| ClaimKind::Same { within });

    let mut forms: Vec<(Option<ClaimKind>, OperandSource<'_>)> = Vec::new();
    let lists = [
        (&check.ratio, figure(Formula::Ratio)),
        (&check.difference, figure(Formula::Difference)),
        (&check.rising, ordered(Order::Rising, ClaimKind::Rising)),
        (&check.falling, ordered(Order::Falling, ClaimKind::Falling)),
        (&check.same, same),
    ];
    for (list, kind) in lists {
        forms.extend(list.as_deref().map(|list| (kind, OperandSource::List(list))));
    }
    let lines = [(&check.slope, figure(Formula::Slope)), (&check.r_squared, figure(Formula::RSquared))];
    for (line, kind) in lines {
        forms.extend(line.as_ref().map(|line| (kind, OperandSource::Line(line))));
    }
    if let Some(within) = agree {
        let kind = unbound(ClaimKind::Agree { within });
        forms.push((kind, OperandSource::Cell(check.cell.as_ref()?)));
    }
    if forms.is_empty() {
        forms.push((figure(Formula::Median), OperandSource::Cell(check.cell.as_ref()?)));
    }
    match forms.pop() {
        Some((Some(kind), source)) if forms.is_empty() => Some((kind, source)),
        _ => None,
    }
}

/// Returns the kind of a check whose orders are pooled over the axes of `pool`, of `operand_count` values
/// each. Returns `None` if a check of another kind than a share has such axes.
fn pooled_kind(kind: ClaimKind, operand_count: usize, pool: &Axes) -> Option<ClaimKind> {
    match kind {
        kind if pool.is_empty() => Some(kind),
        ClaimKind::Share { order, bound, .. } => {
            Some(ClaimKind::Share { order, bound, of: Some(operand_count) })
        }
        _ => None,
    }
}

/// Returns the bound of a check. Returns `None` if the check has no bound, or several.
fn bound(check: &CheckEntry, within: Option<Tolerance>) -> Option<Bound> {
    match (check.value, within, check.at_most, check.at_least, check.between) {
        (Some(value), Some(within), None, None, None) => Some(Bound::Near { value, within }),
        (None, None, Some(value), None, None) => Some(Bound::AtMost { value }),
        (None, None, None, Some(value), None) => Some(Bound::AtLeast { value }),
        (None, None, None, None, Some((low, high))) if low <= high => Some(Bound::Between { low, high }),
        _ => None,
    }
}

/// Returns the operands of a line: x and y of the first cell, then x and y of the second cell, and so on.
fn line_operands(line: &LineOfCells) -> Vec<Spanned<Operand>> {
    let mut operands = Vec::new();
    for cell in &line.cells {
        for metric in [&line.x, &line.y] {
            let operand = Operand { cell: cell.get_ref().clone(), metric: metric.clone() };
            operands.push(Spanned::new(cell.span(), operand));
        }
    }
    operands
}

/// Returns the message for a number of operands that does not suit the comparison, or `None` if it does.
fn wrong_operand_count(kind: ClaimKind, operand_count: usize) -> Option<&'static str> {
    // A point of a line has two operands, x and y.
    let point_count = operand_count / 2;
    let (is_right, message) = match kind {
        ClaimKind::Figure { formula: Formula::Median, .. } | ClaimKind::Agree { .. } => {
            (operand_count == 1, "expected one cell")
        }
        ClaimKind::Figure { formula: Formula::Ratio | Formula::Difference, .. } => {
            (operand_count == 2, "expected two cells or operands to compare")
        }
        ClaimKind::Figure { formula: Formula::Slope, .. } => {
            (point_count >= 3, "expected at least three cells for a line")
        }
        ClaimKind::Figure { formula: Formula::RSquared, .. } => (
            point_count >= 4,
            "expected at least four cells, because R squared of three points has no confidence interval",
        ),
        ClaimKind::Rising | ClaimKind::Falling | ClaimKind::Share { .. } | ClaimKind::Same { .. } => {
            (operand_count >= 2, "expected at least two cells or operands to compare")
        }
    };
    (!is_right).then_some(message)
}
