//! Which claims of a study are judged, and which cells have to run for them.

use crate::arena::ArenaName;
use crate::claim::{Check, Claim};
use crate::study::{BASE_SET, Cell, Figure, FigureKind, Form, Study};

/// The part of a study that is run, and the arenas where it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The arenas. The first one is the base arena, where a claim is judged first.
    pub arenas: Vec<ArenaName>,
    /// Whether the run is shorter: it has fewer repetitions, and runs under fewer assumption sets.
    pub quick: bool,
    /// The ids of the claims that are judged. All claims are judged if the list is empty.
    pub claims: Vec<String>,
}

impl Default for Selection {
    /// Selects the whole study in the simulator.
    fn default() -> Self {
        Self { arenas: vec![ArenaName::Sim], quick: false, claims: Vec::new() }
    }
}

impl Selection {
    /// The claims of `study` that are judged.
    pub fn claims<'s>(&self, study: &'s Study) -> impl Iterator<Item = &'s Claim> {
        study.claims.iter().filter(|claim| self.claims.is_empty() || self.claims.contains(&claim.id))
    }

    /// The arenas in which `claim` is judged. The base arena comes first.
    pub fn arenas_of(&self, claim: &Claim) -> Vec<ArenaName> {
        self.arenas.iter().copied().filter(|arena| claim.arenas.contains(arena)).collect()
    }

    /// The checks of `claim` that are judged in all of `arenas`.
    pub fn checks<'s>(&self, claim: &'s Claim, arenas: &[ArenaName]) -> Vec<&'s Check> {
        let is_judged = |check: &&Check| check.is_of(arenas) && !self.leaves_out(check, arenas);
        claim.checks.iter().filter(is_judged).collect()
    }

    /// The checks of `claim` that a whole run judges in `arenas`, but this run does not.
    pub(crate) fn checks_left_out<'s>(&self, claim: &'s Claim, arenas: &[ArenaName]) -> Vec<&'s Check> {
        let is_left_out = |check: &&Check| check.is_of(arenas) && self.leaves_out(check, arenas);
        claim.checks.iter().filter(is_left_out).collect()
    }

    /// Whether the run is shorter and does not judge `check` in one of `arenas`.
    fn leaves_out(&self, check: &Check, arenas: &[ArenaName]) -> bool {
        self.quick && !arenas.iter().all(|arena| check.quick.contains(arena))
    }

    /// The indices of the assumption sets under which all cells of `checks` run in all of `arenas`.
    pub(crate) fn sets(&self, study: &Study, checks: &[&Check], arenas: &[ArenaName]) -> Vec<usize> {
        if checks.is_empty() || arenas.is_empty() {
            return Vec::new();
        }
        let runs = |cell_name: &str, set: usize| {
            arenas
                .iter()
                .all(|&arena| study.cell(cell_name, arena, set).is_some_and(|cell| self.form(cell).is_some()))
        };
        let all_run =
            |set: &usize| checks.iter().flat_map(|check| check.cells()).all(|name| runs(name, *set));
        (0..study.assumptions.len()).filter(all_run).collect()
    }

    /// The indices of the assumption sets under which a whole run judges `claim` in `arenas`, but this run
    /// does not.
    pub(crate) fn sets_left_out(&self, study: &Study, claim: &Claim, arenas: &[ArenaName]) -> Vec<usize> {
        let judged_checks = self.checks(claim, arenas);
        if !self.quick || judged_checks.is_empty() {
            return Vec::new();
        }
        let judged_sets = self.sets(study, &judged_checks, arenas);
        let whole_run = Self { quick: false, ..self.clone() };
        let mut sets = whole_run.sets(study, &whole_run.checks(claim, arenas), arenas);
        sets.retain(|set| !judged_sets.contains(set));
        sets
    }

    /// Whether there are `checks`, and all their cells run in `arena` under the base set.
    pub(crate) fn has_cells_of(&self, study: &Study, checks: &[&Check], arena: ArenaName) -> bool {
        self.sets(study, checks, &[arena]).contains(&BASE_SET)
    }

    /// The cells that have to run, in the order of the study. If the user selects claims, figures and tables
    /// are not drawn, so only the cells of these claims run.
    pub fn cells<'s>(&self, study: &'s Study) -> Vec<&'s Cell> {
        let has_to_run = |cell: &&Cell| {
            self.arenas.contains(&cell.arena)
                && self.form(cell).is_some()
                && (self.is_judged(cell, study) || self.claims.is_empty() && is_shown(cell, study))
        };
        study.cells.iter().filter(has_to_run).collect()
    }

    /// Whether a claim that is judged reads `cell`.
    fn is_judged(&self, cell: &Cell, study: &Study) -> bool {
        for claim in self.claims(study).filter(|claim| claim.arenas.contains(&cell.arena)) {
            let arenas = if claim.compares_arenas() { self.arenas_of(claim) } else { vec![cell.arena] };
            let checks = self.checks(claim, &arenas);
            if checks.iter().flat_map(|check| check.cells()).any(|name| name == cell.name) {
                return true;
            }
        }
        false
    }

    /// The scenario and the repetitions of `cell` in this run. Returns `None` if the cell does not run.
    pub fn form<'s>(&self, cell: &'s Cell) -> Option<&'s Form> {
        if self.quick { cell.quick.as_ref() } else { Some(&cell.full) }
    }
}

/// Whether a figure or a table shows `cell`. Both show the base set alone.
fn is_shown(cell: &Cell, study: &Study) -> bool {
    let has_printed_figure = || {
        let mut rows = study.tables.iter().flat_map(|table| &table.rows);
        rows.any(|row| row.cell == cell.name)
    };
    cell.assumption == BASE_SET
        && (study.figures.iter().any(|figure| figure.shows(&cell.name)) || has_printed_figure())
}

impl Figure {
    fn shows(&self, cell_name: &String) -> bool {
        match &self.kind {
            FigureKind::Trace { cell, .. } | FigureKind::Quantiles { cell, .. } => cell == cell_name,
            FigureKind::Cells { lines, .. } => lines.iter().any(|line| line.cells.contains(cell_name)),
            FigureKind::Scatter { points, .. } => {
                points.iter().any(|labelled| labelled.cells.contains(cell_name))
            }
            FigureKind::Absent(_) => false,
        }
    }
}
