//! Claims and their checks.

use core::ops::Range;

use toml::Spanned;

use super::Loader;
use super::each::products;
use super::sense::Known;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Bound, Check, Claim, ClaimKind, Figure, Operand, Tolerance, Verdict};
use crate::file::{CheckEntry, ClaimEntry, ExpectedEntry, LineOfCells, OperandEntry, Within};
use crate::study::Cell;

/// What a check compares.
enum Compared<'a> {
    /// Its own cell.
    Own,
    List(&'a [Spanned<OperandEntry>]),
    Line(&'a LineOfCells),
}

impl Loader<'_, '_> {
    pub(super) fn claims(&mut self, cells: &[Cell], known: &Known<'_>) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for entry in &self.file.claim {
            if claims.iter().any(|claim| claim.id == *entry.id.get_ref()) {
                self.mistakes.add(entry.id.span(), "claim.id", "this claim stands twice", None);
            }
            claims.push(self.claim(entry, cells, known));
        }
        claims
    }

    fn claim(&mut self, entry: &ClaimEntry, cells: &[Cell], known: &Known<'_>) -> Claim {
        let mut checks = Vec::new();
        let arenas = arenas_of(entry);
        for check in &entry.check {
            let Some((kind, operands)) = self.check(check) else { continue };
            self.check_axes(&check.get_ref().each, &check.span(), "claim.check.each");
            let basis = self.basis(entry, check);
            for values in products(&check.get_ref().each) {
                let mut fill =
                    |text: &str, span: Range<usize>| self.filled(text, &values, span, "claim.check");
                let name = fill(&check.get_ref().name, check.span());
                let filled = operands.iter().map(|operand| Operand {
                    cell: fill(&operand.get_ref().cell, operand.span()),
                    metric: fill(&operand.get_ref().metric, operand.span()),
                });
                let filled: Vec<Operand> = filled.collect();
                for (operand, written) in filled.iter().zip(&operands) {
                    self.known_cell(&operand.cell, written.span(), "claim.check");
                }
                let quick = check.get_ref().quick.clone().unwrap_or_else(|| ArenaName::RUNNABLE.to_vec());
                let one_sided = check.get_ref().one_sided.clone();
                let of_check = self.check_arenas(check, &arenas);
                let made = Check { name, operands: filled, kind, basis, one_sided, arenas: of_check, quick };
                self.makes_sense(&made, check, known, cells);
                checks.push(made);
            }
        }
        let expected = |arena: &ArenaName| Some((*arena, self.expected(&entry.expected, *arena)?));
        Claim {
            id: entry.id.get_ref().clone(),
            text: entry.text.clone(),
            published: entry.published.clone(),
            expected: arenas.iter().filter_map(expected).collect(),
            arenas,
            why: self.why(entry),
            checks,
        }
    }

    /// Where a check of a claim of `arenas` is judged.
    fn check_arenas(&mut self, check: &Spanned<CheckEntry>, arenas: &[ArenaName]) -> Vec<ArenaName> {
        let own = check.get_ref().arenas.as_deref().unwrap_or(arenas);
        if let Some(other) = own.iter().find(|arena| !arenas.contains(arena)) {
            let message =
                format!("its claim is not judged in {other}; expected one of {}", arena_list(arenas));
            self.mistakes.add(check.span(), "claim.check.arenas", message, None);
        }
        own.to_vec()
    }

    /// A verdict without a reason says more than is known, so that every claim has one.
    fn why(&mut self, entry: &ClaimEntry) -> String {
        let why = entry.why.as_deref().map(str::trim).unwrap_or_default();
        if why.is_empty() {
            let id = entry.id.get_ref();
            let message = format!(
                "{id} needs a `why`: what its verdict rests on (fitted, assumed or predicted figures)"
            );
            self.mistakes.add(entry.id.span(), "claim.why", message, None);
        }
        why.to_owned()
    }

    /// What a check rests on, by its own word or its claim's.
    fn basis(&mut self, entry: &ClaimEntry, check: &Spanned<CheckEntry>) -> Basis {
        let Some(basis) = check.get_ref().basis.or(entry.basis) else {
            let message =
                "expected a `basis` of the check or of its claim: \"fitted\", \"assumed\" or \"predicted\"";
            self.mistakes.add(check.span(), "claim.check.basis", message, None);
            return Basis::Predicted;
        };
        basis
    }

    fn expected(&mut self, entry: &Spanned<ExpectedEntry>, arena: ArenaName) -> Option<Verdict> {
        let found = match entry.get_ref() {
            ExpectedEntry::Everywhere(verdict) => Some(*verdict),
            ExpectedEntry::ByArena(verdicts) => verdicts.get(&arena).copied(),
        };
        let message = match found {
            Some(Verdict::PartlyJudged | Verdict::Disturbed) => {
                "expected the verdict of a whole, undisturbed run".to_owned()
            }
            Some(_) => return found,
            None => format!("expected a verdict for each arena of the claim, also for {arena}"),
        };
        self.mistakes.add(entry.span(), "claim.expected", message, None);
        None
    }

    /// What a check requires, and its operands, whose axes are not filled in yet.
    fn check(&mut self, check: &Spanned<CheckEntry>) -> Option<(ClaimKind, Vec<Spanned<Operand>>)> {
        let entry = check.get_ref();
        let within = match &entry.within {
            Some(within) => Some(self.tolerance(within)?),
            None => None,
        };
        let agree = match &entry.agree {
            Some(agree) => Some(self.tolerance(agree)?),
            None => None,
        };
        let Some((kind, compared)) = form(entry, within, agree) else {
            self.mistakes.add(check.span(), "claim.check", FORMS, None);
            return None;
        };
        let operands = match compared {
            Compared::Own => {
                let as_entry = |cell: &Spanned<String>| {
                    Spanned::new(cell.span(), OperandEntry::Cell(cell.get_ref().clone()))
                };
                self.operands(check, entry.cell.as_ref().map(as_entry).as_slice())?
            }
            Compared::List(list) => self.operands(check, list)?,
            Compared::Line(line) => line_operands(line),
        };
        self.check_count(check, kind, operands.len())?;
        Some((kind, operands))
    }

    fn check_count(&mut self, check: &Spanned<CheckEntry>, kind: ClaimKind, count: usize) -> Option<()> {
        let (fits, message) = match kind {
            ClaimKind::Figure { of: Figure::Median, .. } | ClaimKind::Agree { .. } => {
                (count == 1, "expected one cell")
            }
            ClaimKind::Figure { of: Figure::Ratio | Figure::Difference, .. } => {
                (count == 2, "expected two to compare")
            }
            ClaimKind::Figure { of: Figure::Slope, .. } => {
                (count >= 2 * 3, "expected at least three cells for a line")
            }
            ClaimKind::Figure { of: Figure::RSquared, .. } => {
                (count >= 2 * 4, "expected at least four cells: R squared of three points has no interval")
            }
            ClaimKind::Rising | ClaimKind::Falling | ClaimKind::Same { .. } => {
                (count >= 2, "expected at least two to compare")
            }
        };
        if !fits {
            self.mistakes.add(check.span(), "claim.check", message, None);
        }
        fits.then_some(())
    }

    /// Those of `list`; cell and metric that one does not name are the check's.
    fn operands(
        &mut self,
        check: &Spanned<CheckEntry>,
        list: &[Spanned<OperandEntry>],
    ) -> Option<Vec<Spanned<Operand>>> {
        let entry = check.get_ref();
        let all: Option<Vec<_>> = list
            .iter()
            .map(|operand| {
                let (cell, metric) = match operand.get_ref() {
                    OperandEntry::Cell(cell) => (Some(cell), None),
                    OperandEntry::Full(full) => (full.cell.as_ref(), full.metric.as_ref()),
                };
                let cell = cell.or(entry.cell.as_ref().map(Spanned::get_ref))?.clone();
                let metric = metric.or(entry.metric.as_ref())?.clone();
                Some(Spanned::new(operand.span(), Operand { cell, metric }))
            })
            .collect();
        if all.is_none() {
            let message = "expected a `metric`, and a `cell`, of the check or of each thing that it compares";
            self.mistakes.add(check.span(), "claim.check", message, None);
        }
        all
    }

    fn tolerance(&mut self, within: &Spanned<Within>) -> Option<Tolerance> {
        let tolerance = match within.get_ref() {
            Within::Number(most) => Some(Tolerance::Absolute(*most)),
            Within::Share(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                percent.map(|percent| Tolerance::Relative(percent / 100.0))
            }
        };
        let is_positive = |tolerance: &Tolerance| match *tolerance {
            Tolerance::Absolute(most) | Tolerance::Relative(most) => most.is_finite() && most > 0.0,
        };
        let tolerance = tolerance.filter(is_positive);
        if tolerance.is_none() {
            let message = "expected a number above 0 in the metric's unit, or a share such as \"3%\"";
            self.mistakes.add(within.span(), "claim.check.within", message, None);
        }
        tolerance
    }
}

/// What `entry` requires, and of what; `None` if it has not exactly one of the forms, with the bound or
/// tolerance that belongs to it.
fn form(
    entry: &CheckEntry,
    within: Option<Tolerance>,
    agree: Option<Tolerance>,
) -> Option<(ClaimKind, Compared<'_>)> {
    let bound = bound(entry, within);
    let figure = |of: Figure| Some(ClaimKind::Figure { of, bound: bound? });
    let is_unbound =
        [entry.value, entry.at_most, entry.at_least].iter().all(Option::is_none) && entry.between.is_none();
    let is_plain = is_unbound && within.is_none();
    let same = within.filter(|_| is_unbound).map(|within| ClaimKind::Same { within });
    let rising = is_plain.then_some(ClaimKind::Rising);
    let falling = is_plain.then_some(ClaimKind::Falling);
    let agrees = |within| (is_plain && entry.cell.is_some()).then_some(ClaimKind::Agree { within });
    let forms = [
        entry.ratio.as_deref().map(|list| (figure(Figure::Ratio), Compared::List(list))),
        entry.difference.as_deref().map(|list| (figure(Figure::Difference), Compared::List(list))),
        entry.slope.as_ref().map(|line| (figure(Figure::Slope), Compared::Line(line))),
        entry.r_squared.as_ref().map(|line| (figure(Figure::RSquared), Compared::Line(line))),
        entry.rising.as_deref().map(|list| (rising, Compared::List(list))),
        entry.falling.as_deref().map(|list| (falling, Compared::List(list))),
        entry.same.as_deref().map(|list| (same, Compared::List(list))),
        agree.map(|within| (agrees(within), Compared::Own)),
    ];
    let mut given = forms.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some((kind, compared)), None) => Some((kind?, compared)),
        (None, _) if entry.cell.is_some() => Some((figure(Figure::Median)?, Compared::Own)),
        _ => None,
    }
}

/// Where the check's figure must lie; `None` if it says nothing of the kind, or more than one thing.
fn bound(entry: &CheckEntry, within: Option<Tolerance>) -> Option<Bound> {
    match (entry.value, within, entry.at_most, entry.at_least, entry.between) {
        (Some(value), Some(within), None, None, None) => Some(Bound::Near { value, within }),
        (None, None, Some(value), None, None) => Some(Bound::AtMost { value }),
        (None, None, None, Some(value), None) => Some(Bound::AtLeast { value }),
        (None, None, None, None, Some((low, high))) if low <= high => Some(Bound::Between { low, high }),
        _ => None,
    }
}

/// Where a claim is judged.
fn arenas_of(entry: &ClaimEntry) -> Vec<ArenaName> {
    let expects = match entry.expected.get_ref() {
        ExpectedEntry::ByArena(verdicts) => verdicts.contains_key(&ArenaName::Campaign),
        ExpectedEntry::Everywhere(_) => false,
    };
    let usual = || ArenaName::RUNNABLE.into_iter().chain(expects.then_some(ArenaName::Campaign)).collect();
    entry.arenas.clone().unwrap_or_else(usual)
}

/// x and y of each cell by turns.
fn line_operands(line: &LineOfCells) -> Vec<Spanned<Operand>> {
    let of = |cell: &Spanned<String>, metric: &String| {
        Spanned::new(cell.span(), Operand { cell: cell.get_ref().clone(), metric: metric.clone() })
    };
    line.cells.iter().flat_map(|cell| [of(cell, &line.x), of(cell, &line.y)]).collect()
}

/// The forms of a check.
const FORMS: &str = "expected one of: `cell`, `ratio`, `difference`, `slope` or `r_squared`, each with `value` and `within`, \
                     `at_most`, `at_least` or `between`; `rising` or `falling` with a list of cells; `same` with a list of \
                     cells and `within`; `cell` with `agree`";
