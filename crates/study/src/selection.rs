//! Selects which claims of a study a run judges, and which cells have to run for them.
//!
//! - A *cell* is a scenario of the publication, in one arena and under one *assumption set*. The first set is
//!   the *base set*.
//! - A *claim* is a statement of the publication. It consists of *checks*, and each check reads some cells.
//! - An *arena* is where cells run: in the simulator, in the emulator, or live.
//! - A *full run* runs every cell. A *quick run* (`--quick`) skips some cells and checks, and repeats the
//!   other cells less often.
//!
//! Begin to read with [`Selection::cells`].

use std::collections::BTreeSet;

use crate::arena::ArenaName;
use crate::claim::{Check, Claim};
use crate::study::{BASE_SET, Cell, CellRuns, Figure, FigureKind, MedianLine, Study};

/// The part of a study that one run runs and judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The arenas of the run. The first one is the base arena, where a claim is judged first.
    pub arenas: Vec<ArenaName>,
    /// Whether this is a quick run.
    pub is_quick: bool,
    /// The ids of the claims that are judged. If the list is empty, all claims are judged.
    pub claim_ids: Vec<String>,
}

impl Default for Selection {
    /// Selects a full run of the whole study in the simulator.
    fn default() -> Self {
        Self { arenas: vec![ArenaName::Sim], is_quick: false, claim_ids: Vec::new() }
    }
}

/// The checks of a claim, divided by whether a run judges them.
pub struct SelectedChecks<'s> {
    /// The checks that the run judges.
    pub judged: Vec<&'s Check>,
    /// The checks that a full run would judge, but that this quick run skips.
    pub(crate) skipped: Vec<&'s Check>,
}

impl Selection {
    /// Returns the cells that have to run, in the order of the study.
    ///
    /// A cell has to run if a selected claim reads it, or if a figure or a table shows it. But figures and
    /// tables are drawn only if all claims are selected.
    pub fn cells<'s>(&self, study: &'s Study) -> Vec<&'s Cell> {
        let draws_figures = self.claim_ids.is_empty();
        let mut cells = Vec::new();
        for cell in &study.cells {
            if !self.arenas.contains(&cell.arena) || self.runs(cell).is_none() {
                continue;
            }
            if self.is_read_by_claim(cell, study) || (draws_figures && study.shows(cell)) {
                cells.push(cell);
            }
        }
        cells
    }

    /// Returns the scenario and the repetitions of `cell` in this run. Returns `None` if the cell does not
    /// run.
    pub fn runs<'s>(&self, cell: &'s Cell) -> Option<&'s CellRuns> {
        if self.is_quick { cell.quick_runs.as_ref() } else { Some(&cell.full_runs) }
    }

    /// Returns the claims of `study` that this run judges.
    pub fn claims<'s>(&self, study: &'s Study) -> impl Iterator<Item = &'s Claim> {
        let selects_all = self.claim_ids.is_empty();
        study.claims.iter().filter(move |claim| selects_all || self.claim_ids.contains(&claim.id))
    }

    /// Returns the arenas of this run where `claim` is judged. The base arena comes first.
    pub fn arenas_of(&self, claim: &Claim) -> Vec<ArenaName> {
        self.arenas.iter().copied().filter(|arena| claim.arenas.contains(arena)).collect()
    }

    /// Divides the checks of `claim` that can be judged in every arena of `arenas`.
    pub fn checks<'s>(&self, claim: &'s Claim, arenas: &[ArenaName]) -> SelectedChecks<'s> {
        let mut checks = SelectedChecks { judged: Vec::new(), skipped: Vec::new() };
        for check in &claim.checks {
            if !contains_all(&check.arenas, arenas) {
                continue;
            }
            if self.is_quick && !contains_all(&check.quick_arenas, arenas) {
                checks.skipped.push(check);
            } else {
                checks.judged.push(check);
            }
        }
        checks
    }

    /// Returns the indices of the assumption sets under which this run can judge `checks` in `arenas`.
    pub(crate) fn sets(&self, study: &Study, checks: &[&Check], arenas: &[ArenaName]) -> Vec<usize> {
        if checks.is_empty() || arenas.is_empty() {
            return Vec::new();
        }
        (0..study.assumptions.len()).filter(|set| self.can_judge(study, checks, arenas, *set)).collect()
    }

    /// Returns the indices of the assumption sets under which only a full run can judge `claim` in `arenas`.
    pub(crate) fn skipped_sets(&self, study: &Study, claim: &Claim, arenas: &[ArenaName]) -> Vec<usize> {
        let checks = self.checks(claim, arenas).judged;
        if !self.is_quick || checks.is_empty() {
            return Vec::new();
        }
        let full_run = Self { is_quick: false, ..self.clone() };
        let mut sets = full_run.sets(study, &full_run.checks(claim, arenas).judged, arenas);
        let judged_sets = self.sets(study, &checks, arenas);
        sets.retain(|set| !judged_sets.contains(set));
        sets
    }

    /// Returns whether this run can judge `checks` in `arena` under the base set.
    pub(crate) fn judges_base(&self, study: &Study, checks: &[&Check], arena: ArenaName) -> bool {
        self.sets(study, checks, &[arena]).contains(&BASE_SET)
    }

    /// Returns whether every cell that `checks` read runs in every arena of `arenas` under the assumption
    /// set.
    fn can_judge(&self, study: &Study, checks: &[&Check], arenas: &[ArenaName], set: usize) -> bool {
        for cell_name in checks.iter().flat_map(|check| check.cells()) {
            for &arena in arenas {
                let cell = study.cell(cell_name, arena, set);
                if cell.and_then(|cell| self.runs(cell)).is_none() {
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether a check that this run judges reads `cell`.
    fn is_read_by_claim(&self, cell: &Cell, study: &Study) -> bool {
        self.claims(study).any(|claim| !self.metrics_of_claim(claim, cell).is_empty())
    }

    /// Returns the metrics of `cell` that the checks of `claim` read in this run.
    fn metrics_of_claim<'s>(&self, claim: &'s Claim, cell: &Cell) -> Vec<&'s str> {
        if !claim.arenas.contains(&cell.arena) {
            return Vec::new();
        }
        let arenas = if claim.compares_arenas() { self.arenas_of(claim) } else { vec![cell.arena] };
        let operands = self.checks(claim, &arenas).judged.into_iter().flat_map(|check| &check.operands);
        operands.filter(|operand| operand.cell == cell.name).map(|operand| operand.metric.as_str()).collect()
    }

    /// Returns the metrics of `cell` whose medians this run needs for its claims, figures and tables. A claim
    /// that compares arenas has no answer in a run of one arena, but a later comparison reads the medians
    /// under the base set.
    pub(crate) fn metrics_of<'s>(&self, cell: &Cell, study: &'s Study) -> BTreeSet<&'s str> {
        let is_needed = |claim: &&Claim| {
            cell.assumption == BASE_SET || !claim.compares_arenas() || self.arenas_of(claim).len() > 1
        };
        let claims = self.claims(study).filter(is_needed);
        let of_claims = claims.flat_map(|claim| self.metrics_of_claim(claim, cell));
        let mut metrics: BTreeSet<&str> = of_claims.collect();
        if self.claim_ids.is_empty() && cell.assumption == BASE_SET {
            for figure in &study.figures {
                metrics.extend(figure.metrics_of(&cell.name));
            }
            let rows = study.tables.iter().flat_map(|table| &table.rows);
            metrics.extend(rows.filter(|row| row.cell == cell.name).map(|row| row.metric.as_str()));
        }
        metrics
    }
}

fn contains_all(arenas: &[ArenaName], wanted: &[ArenaName]) -> bool {
    wanted.iter().all(|arena| arenas.contains(arena))
}

impl Study {
    /// Returns whether a figure or a table shows `cell`. Figures and tables show the base set alone.
    fn shows(&self, cell: &Cell) -> bool {
        if cell.assumption != BASE_SET {
            return false;
        }
        let mut rows = self.tables.iter().flat_map(|table| &table.rows);
        self.figures.iter().any(|figure| figure.shows(&cell.name)) || rows.any(|row| row.cell == cell.name)
    }
}

impl Figure {
    fn shows(&self, cell_name: &str) -> bool {
        let has = |cells: &[String]| cells.iter().any(|cell| cell == cell_name);
        match &self.kind {
            FigureKind::Trace { cell, .. } | FigureKind::Quantiles { cell, .. } => cell == cell_name,
            FigureKind::Cells { lines, .. } => lines.iter().any(|line| has(&line.cells)),
            FigureKind::Scatter { points, .. } => points.iter().any(|labelled| has(&labelled.cells)),
            FigureKind::Absent(_) => false,
        }
    }

    /// Returns the metrics whose medians this figure shows of the cell called `cell_name`.
    fn metrics_of(&self, cell_name: &str) -> Vec<&str> {
        match &self.kind {
            FigureKind::Cells { lines, .. } => {
                let shows = |line: &&MedianLine| line.cells.iter().any(|cell| cell == cell_name);
                lines.iter().filter(shows).map(|line| line.metric.as_str()).collect()
            }
            FigureKind::Scatter { x, y, .. } if self.shows(cell_name) => vec![x, y],
            FigureKind::Scatter { .. }
            | FigureKind::Trace { .. }
            | FigureKind::Quantiles { .. }
            | FigureKind::Absent(_) => Vec::new(),
        }
    }
}
