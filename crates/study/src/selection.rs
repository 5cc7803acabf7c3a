//! Which part of a study is run.

use crate::arena::ArenaName;
use crate::claim::{Check, Claim};
use crate::study::{Cell, Figure, FigureKind, Form, Study};

/// Which part of a study is run, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The arenas; claims are judged first in the first, the base.
    pub arenas: Vec<ArenaName>,
    /// Fewer repetitions, under fewer assumption sets.
    pub quick: bool,
    /// The claims by id; all if it is empty.
    pub claims: Vec<String>,
}

impl Default for Selection {
    /// Everything, in the simulator.
    fn default() -> Self {
        Self { arenas: vec![ArenaName::Sim], quick: false, claims: Vec::new() }
    }
}

impl Selection {
    /// The claims of `study` that are judged.
    pub fn claims<'s>(&self, study: &'s Study) -> impl Iterator<Item = &'s Claim> {
        study.claims.iter().filter(|claim| self.claims.is_empty() || self.claims.contains(&claim.id))
    }

    /// The arenas in which `claim` is judged, the base first.
    pub fn arenas_of(&self, claim: &Claim) -> Vec<ArenaName> {
        self.arenas.iter().copied().filter(|arena| claim.arenas.contains(arena)).collect()
    }

    /// The checks of `claim` that are judged in `arenas`: `--quick` leaves out those that it should not judge
    /// in one of the arenas.
    pub fn checks<'s>(&self, claim: &'s Claim, arenas: &[ArenaName]) -> Vec<&'s Check> {
        claim.checks.iter().filter(|check| check.is_of(arenas) && self.judges(check, arenas)).collect()
    }

    /// Those that `--quick` leaves out.
    pub(crate) fn checks_left_out<'s>(&self, claim: &'s Claim, arenas: &[ArenaName]) -> Vec<&'s Check> {
        claim.checks.iter().filter(|check| check.is_of(arenas) && !self.judges(check, arenas)).collect()
    }

    fn judges(&self, check: &Check, arenas: &[ArenaName]) -> bool {
        !self.quick || arenas.iter().all(|arena| check.quick.contains(arena))
    }

    /// The assumption sets, by index, under which a whole run judges `claim` in `arenas` and this one does
    /// not.
    pub(crate) fn sets_left_out(&self, study: &Study, claim: &Claim, arenas: &[ArenaName]) -> Vec<usize> {
        let judged = self.checks(claim, arenas);
        let here = self.sets(study, &judged, arenas);
        let whole = Self { quick: false, ..self.clone() };
        let all = if self.quick && !judged.is_empty() {
            whole.sets(study, &whole.checks(claim, arenas), arenas)
        } else {
            Vec::new()
        };
        all.into_iter().filter(|set| !here.contains(set)).collect()
    }

    /// The assumption sets, by index, under which all cells of `checks` run in all of `arenas`.
    pub(crate) fn sets(&self, study: &Study, checks: &[&Check], arenas: &[ArenaName]) -> Vec<usize> {
        let runs = |name: &str, arena: ArenaName, set: usize| {
            study.cell(name, arena, set).is_some_and(|cell| self.form(cell).is_some())
        };
        let names = || checks.iter().flat_map(|check| check.cells());
        (0..study.assumptions.len())
            .filter(|_| !checks.is_empty() && !arenas.is_empty())
            .filter(|&set| names().all(|name| arenas.iter().all(|&arena| runs(name, arena, set))))
            .collect()
    }

    /// The cells that have to run, in the study's order.
    pub fn cells<'s>(&self, study: &'s Study) -> Vec<&'s Cell> {
        let by_claim = |cell: &Cell| {
            let is_judged = |claim: &&Claim| claim.arenas.contains(&cell.arena);
            self.claims(study).filter(is_judged).any(|claim| {
                let arenas = if claim.compares_arenas() { self.arenas_of(claim) } else { vec![cell.arena] };
                self.checks(claim, &arenas)
                    .iter()
                    .flat_map(|check| check.cells())
                    .any(|name| name == cell.name)
            })
        };
        let is_read = |cell: &Cell| {
            let is_shown = || study.figures.iter().any(|it| it.shows(cell)) || is_printed(study, cell);
            by_claim(cell) || (self.claims.is_empty() && is_shown())
        };
        study
            .cells
            .iter()
            .filter(|cell| self.arenas.contains(&cell.arena) && self.form(cell).is_some() && is_read(cell))
            .collect()
    }

    /// How `cell` runs; `None` if it does not.
    pub fn form<'s>(&self, cell: &'s Cell) -> Option<&'s Form> {
        if self.quick { cell.quick.as_ref() } else { Some(&cell.full) }
    }

    /// Whether there are `checks`, and their cells run in `arena` under the base set.
    pub(crate) fn has_cells_of(&self, study: &Study, checks: &[&Check], arena: ArenaName) -> bool {
        self.sets(study, checks, &[arena]).contains(&0)
    }
}

/// Whether a table of the publication's has a figure for `cell`.
fn is_printed(study: &Study, cell: &Cell) -> bool {
    cell.assumption == 0 && study.tables.iter().flat_map(|table| &table.rows).any(|row| row.cell == cell.name)
}

impl Figure {
    fn shows(&self, cell: &Cell) -> bool {
        cell.assumption == 0
            && match &self.kind {
                FigureKind::Trace { cell: name, .. } | FigureKind::Quantiles { cell: name, .. } => {
                    cell.name == *name
                }
                FigureKind::Cells { lines, .. } => lines.iter().any(|line| line.cells.contains(&cell.name)),
                FigureKind::Scatter { points, .. } => {
                    points.iter().any(|labelled| labelled.cells.contains(&cell.name))
                }
                FigureKind::Absent(_) => false,
            }
    }
}
