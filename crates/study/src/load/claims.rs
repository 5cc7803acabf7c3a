//! Claims and their checks.

use core::ops::Range;

use toml::Spanned;

use super::Loader;
use super::each::products;
use super::sense::Known;
use crate::arena::{ArenaName, arena_list};
use crate::claim::{Basis, Bound, Check, Claim, ClaimKind, Figure, Operand, Tolerance, Verdict};
use crate::file::{CheckEntry, ClaimEntry, ExpectedEntry, LineOfCells, OperandEntry, Within};
use crate::metric::Metrics;
use crate::study::Cell;

/// An operand before the axes are filled in, and where it stands.
struct Placed {
    operand: Operand,
    span: Range<usize>,
}

impl Loader<'_, '_> {
    pub(super) fn claims(&mut self, cells: &[Cell], known: (&Known, &Metrics)) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for entry in &self.file.claim {
            if claims.iter().any(|claim| claim.id == *entry.id.get_ref()) {
                self.mistakes.add(entry.id.span(), "claim.id", "this claim stands twice", None);
            }
            claims.push(self.claim(entry, cells, known));
        }
        claims
    }

    fn claim(&mut self, entry: &ClaimEntry, cells: &[Cell], known: (&Known, &Metrics)) -> Claim {
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
                let filled = operands.iter().map(|placed| Operand {
                    cell: fill(&placed.operand.cell, placed.span.clone()),
                    metric: fill(&placed.operand.metric, placed.span.clone()),
                });
                let operands_of_check: Vec<Operand> = filled.collect();
                for (operand, placed) in operands_of_check.iter().zip(&operands) {
                    self.known_cell(&operand.cell, placed.span.clone(), "claim.check");
                }
                let quick = check.get_ref().quick.clone().unwrap_or_else(|| ArenaName::RUNNABLE.to_vec());
                let one_sided = check.get_ref().one_sided.clone();
                let of_check = self.check_arenas(check, &arenas);
                let made = Check {
                    name,
                    operands: operands_of_check,
                    kind,
                    basis,
                    one_sided,
                    arenas: of_check,
                    quick,
                };
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

    /// What a check requires, and of which operands.
    fn check(&mut self, check: &Spanned<CheckEntry>) -> Option<(ClaimKind, Vec<Placed>)> {
        let entry = check.get_ref();
        let one =
            |cell: &Spanned<String>| Spanned::new(cell.span(), OperandEntry::Cell(cell.get_ref().clone()));
        let bound = self.bound(entry);
        let figure = |of: Figure| Some(ClaimKind::Figure { of, bound: bound? });
        let within = match &entry.within {
            Some(within) => Some(self.tolerance(within)?),
            None => None,
        };
        let unbound = bound.is_none() && entry.value.is_none();
        let CheckEntry { cell, ratio, difference, slope, r_squared, rising, falling, same, agree, .. } =
            entry;
        let lists = [ratio, difference, rising, falling, same];
        let is_listed = lists.iter().any(|list| list.is_some()) || slope.is_some() || r_squared.is_some();
        let forms = [
            cell.is_some() && agree.is_none() && !is_listed,
            ratio.is_some(),
            difference.is_some(),
            slope.is_some(),
            r_squared.is_some(),
            rising.is_some(),
            falling.is_some(),
            same.is_some(),
            agree.is_some(),
        ];
        let is_plain = unbound && within.is_none();
        let only_one = forms.iter().filter(|is| **is).count() == 1;
        let kind = match forms.iter().position(|is| *is).filter(|_| only_one) {
            Some(0) => figure(Figure::Median),
            Some(1) => figure(Figure::Ratio),
            Some(2) => figure(Figure::Difference),
            Some(3) => figure(Figure::Slope),
            Some(4) => figure(Figure::RSquared),
            Some(5) if is_plain => Some(ClaimKind::Rising),
            Some(6) if is_plain => Some(ClaimKind::Falling),
            Some(7) if unbound => within.map(|within| ClaimKind::Same { within }),
            Some(8) if is_plain && cell.is_some() => {
                agree.as_ref().and_then(|it| self.tolerance(it)).map(|within| ClaimKind::Agree { within })
            }
            _ => None,
        };
        let Some(kind) = kind else {
            self.mistakes.add(check.span(), "claim.check", FORMS, None);
            return None;
        };
        let cells: Vec<Spanned<OperandEntry>> = cell.iter().map(one).collect();
        let operands =
            match (slope.as_ref().or(r_squared.as_ref()), lists.into_iter().find_map(Option::as_ref)) {
                (Some(line), _) => line_operands(line),
                (None, Some(list)) => self.operands(check, list)?,
                (None, None) => self.operands(check, &cells)?,
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
            ClaimKind::Figure { of: Figure::Slope | Figure::RSquared, .. } => {
                (count >= 6, "expected at least three cells for a line")
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

    fn operands(
        &mut self,
        check: &Spanned<CheckEntry>,
        list: &[Spanned<OperandEntry>],
    ) -> Option<Vec<Placed>> {
        let entry = check.get_ref();
        let all: Option<Vec<Placed>> = list
            .iter()
            .map(|operand| {
                let (cell, metric) = match operand.get_ref() {
                    OperandEntry::Cell(cell) => (Some(cell), None),
                    OperandEntry::Full(full) => (full.cell.as_ref(), full.metric.as_ref()),
                };
                let cell = cell.or(entry.cell.as_ref().map(Spanned::get_ref))?;
                let metric = metric.or(entry.metric.as_ref())?;
                let operand_of = Operand { cell: cell.clone(), metric: metric.clone() };
                Some(Placed { operand: operand_of, span: operand.span() })
            })
            .collect();
        if all.is_none() {
            let message = "expected a `metric`, and a `cell`, of the check or of each thing that it compares";
            self.mistakes.add(check.span(), "claim.check", message, None);
        }
        all
    }

    /// Where the check's figure must lie; `None` if it says nothing of the kind, or more than one thing.
    fn bound(&mut self, entry: &CheckEntry) -> Option<Bound> {
        match (entry.value, &entry.within, entry.at_most, entry.at_least, entry.between) {
            (Some(value), Some(within), None, None, None) => {
                self.tolerance(within).map(|within| Bound::Near { value, within })
            }
            (None, None, Some(value), None, None) => Some(Bound::AtMost { value }),
            (None, None, None, Some(value), None) => Some(Bound::AtLeast { value }),
            (None, None, None, None, Some((low, high))) if low <= high => Some(Bound::Between { low, high }),
            _ => None,
        }
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
fn line_operands(line: &LineOfCells) -> Vec<Placed> {
    let of = |cell: &Spanned<String>, metric: &String| Placed {
        operand: Operand { cell: cell.get_ref().clone(), metric: metric.clone() },
        span: cell.span(),
    };
    line.cells.iter().flat_map(|cell| [of(cell, &line.x), of(cell, &line.y)]).collect()
}

/// The forms of a check.
const FORMS: &str = "expected one of: `cell`, `ratio`, `difference`, `slope` or `r_squared`, each with `value` and `within`, \
                     `at_most`, `at_least` or `between`; `rising` or `falling` with a list of cells; `same` with a list of \
                     cells and `within`; `cell` with `agree`";
