//! Whether a check can tell anything: what it reads exists, it can fail, and its bound has two ends.

use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use talkpath_model::Scenario;
use toml::Spanned;

use super::Loader;
use crate::arena::ArenaName;
use crate::claim::{Bound, Check, ClaimKind, Figure, Operand};
use crate::file::CheckEntry;
use crate::metric::{Metrics, range, unknown};
use crate::shape::shape;
use crate::study::Cell;

/// What a name can mean.
pub(super) struct Known<'a> {
    /// Every cell's scenario under the base set, or the first set that it has, with the paths of its summary.
    cells: BTreeMap<String, KnownCell>,
    /// The metrics that the study derives.
    pub(super) derived: &'a Metrics,
}

struct KnownCell {
    scenario: Arc<Scenario>,
    /// Of its summary: every path that it can have.
    shape: Json,
}

impl<'a> Known<'a> {
    pub(super) fn new(cells: &[Cell], derived: &'a Metrics) -> Self {
        let mut known = BTreeMap::new();
        for cell in cells {
            let scenario = &cell.full.scenario;
            let new = || KnownCell { scenario: Arc::clone(scenario), shape: shape(scenario) };
            // They come by arena and assumption: the first is the base's in the simulator.
            known.entry(cell.name.clone()).or_insert_with(new);
        }
        Self { cells: known, derived }
    }

    fn scenario(&self, cell: &str) -> Option<&Scenario> {
        self.cells.get(cell).map(|known| known.scenario.as_ref())
    }

    /// How long a run of `cell` lasts, s.
    pub(super) fn duration_s(&self, cell: &str) -> Option<f64> {
        self.scenario(cell).map(|scenario| scenario.duration.as_secs_f64())
    }
}

impl Loader<'_, '_> {
    /// A metric that is read of `cell` exists there. Of an unknown cell something else has been said.
    pub(super) fn known_metric(
        &mut self,
        cell: &str,
        metric: &str,
        span: Range<usize>,
        key: &str,
        known: &Known<'_>,
    ) {
        let Some(KnownCell { shape, .. }) = known.cells.get(cell) else { return };
        if let Some((message, help)) = unknown(shape, metric, known.derived) {
            self.mistakes.add(span, key, message, Some(help));
        }
    }

    /// A metric that is read from every cell must exist in at least one.
    pub(super) fn known_somewhere(&mut self, metric: &Spanned<String>, known: &Known<'_>) {
        let mut found =
            known.cells.values().map(|cell| unknown(&cell.shape, metric.get_ref(), known.derived));
        let Some(Some((message, help))) = found.next() else { return };
        if found.all(|it| it.is_some()) {
            self.mistakes.add(metric.span(), "also", message, Some(help));
        }
    }

    pub(super) fn makes_sense(
        &mut self,
        check: &Check,
        entry: &Spanned<CheckEntry>,
        known: &Known<'_>,
        cells: &[Cell],
    ) {
        for operand in &check.operands {
            self.known_metric(&operand.cell, &operand.metric, entry.span(), "claim.check.metric", known);
            self.runs_under_base(&operand.cell, entry, &check.arenas, cells);
            self.is_measured(&operand.cell, entry, &check.arenas, cells);
        }
        if let Some(message) = cannot_fail(check, known) {
            self.mistakes.add(entry.span(), "claim.check", message, None);
        } else if let Some(message) = is_half_open(check, known.derived).filter(|_| check.one_sided.is_none())
        {
            let help = "use `between`, or say in `one_sided` why the claim has no other end".to_owned();
            self.mistakes.add(entry.span(), "claim.check", message, Some(help));
        }
    }

    /// A check that is judged in a campaign reads cells that a campaign measures.
    fn is_measured(&mut self, name: &str, entry: &Spanned<CheckEntry>, arenas: &[ArenaName], cells: &[Cell]) {
        let here = |cell: &Cell| cell.arena == ArenaName::Campaign && cell.name == name;
        if self.is_whole && arenas.contains(&ArenaName::Campaign) && !cells.iter().any(here) {
            let message =
                format!("\"{name}\" stands in no [[campaign]], and the check is judged in campaign");
            let help = "give the check `arenas`, or the cell an entry".to_owned();
            self.mistakes.add(entry.span(), "claim.check.arenas", message, Some(help));
        }
    }

    /// A verdict is that under the base set, so that a cell that runs somewhere runs there.
    fn runs_under_base(
        &mut self,
        name: &str,
        entry: &Spanned<CheckEntry>,
        arenas: &[ArenaName],
        cells: &[Cell],
    ) {
        for arena in arenas.iter().filter(|_| self.is_whole) {
            let mut here = cells.iter().filter(|cell| cell.arena == *arena && cell.name == name).peekable();
            if here.peek().is_some() && here.all(|cell| cell.assumption > 0) {
                let base = self.file.assumption.first().map_or("", |it| it.name.get_ref());
                let message = format!(
                    "\"{name}\" does not run under the first set, \"{base}\", in {arena}: a verdict is that under the first set"
                );
                self.mistakes.add(entry.span(), "claim.check", message, None);
            }
        }
    }
}

/// Why `check` holds whatever happens, if it does.
fn cannot_fail(check: &Check, known: &Known<'_>) -> Option<String> {
    let is_line = matches!(check.kind, ClaimKind::Figure { of: Figure::Slope | Figure::RSquared, .. });
    if is_line && check.operands.chunks(2).all(|point| point.iter().all(|it| it.metric == point[0].metric)) {
        let metric = check.operands.first().map_or("", |it| it.metric.as_str());
        return Some(format!("it draws {metric} over itself: a line with slope 1 and R squared 1"));
    }
    let pairs = check
        .operands
        .iter()
        .enumerate()
        .flat_map(|(index, first)| check.operands[index + 1..].iter().map(move |second| (first, second)));
    for (first, second) in pairs.filter(|_| !is_line) {
        if first == second {
            let Operand { cell, metric } = first;
            return Some(format!("it compares {metric} of \"{cell}\" with itself"));
        }
        let scenarios = known.scenario(&first.cell).zip(known.scenario(&second.cell));
        if first.metric == second.metric && scenarios.is_some_and(|(first, second)| first == second) {
            return Some(format!(
                "\"{}\" and \"{}\" are the same scenario with the same seeds: both sides are the same by construction",
                first.cell, second.cell
            ));
        }
    }
    let (least, most) = figure_range(check, known.derived)?;
    let (low, high) = check.kind.bound()?.ends();
    (low <= least && most <= high).then(|| "no value lies outside its bound: it cannot fail".to_owned())
}

/// Which end a bound lacks that the figure itself does not have, if it lacks one.
fn is_half_open(check: &Check, derived: &Metrics) -> Option<String> {
    let (least, most) = figure_range(check, derived)?;
    match check.kind.bound()? {
        Bound::AtLeast { .. } if most.is_infinite() => {
            Some("`at_least` alone lets any larger value pass".to_owned())
        }
        Bound::AtMost { .. } if least.is_infinite() => {
            Some("`at_most` alone lets any smaller value pass".to_owned())
        }
        _ => None,
    }
}

/// What the figure of a check can be at all; `None` if it has none.
fn figure_range(check: &Check, derived: &Metrics) -> Option<(f64, f64)> {
    let ClaimKind::Figure { of, .. } = check.kind else { return None };
    Some(match of {
        Figure::Median => range(&check.operands.first()?.metric, derived),
        Figure::Ratio if check.operands.iter().all(|it| range(&it.metric, derived).0 >= 0.0) => {
            (0.0, f64::INFINITY)
        }
        Figure::Ratio | Figure::Difference | Figure::Slope => (f64::NEG_INFINITY, f64::INFINITY),
        Figure::RSquared => (0.0, 1.0),
    })
}
