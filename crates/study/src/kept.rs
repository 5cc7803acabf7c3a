//! Collects the repetitions of a cell. They end in any order, and a repetition that runs again replaces its
//! earlier attempt. [`CellRepetitions::joined`] returns the same samples as if the repetitions had run one
//! after the other, each once.

use std::collections::BTreeMap;

use talkpath_measure::warning;

use crate::band::is_banded;
use crate::sample::{CellSamples, KeptTrace, Sample, StateTrace};
use crate::study::Cell;

/// The repetitions of a cell that have ended, by their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellRepetitions {
    by_number: BTreeMap<u64, CellSamples>,
}

/// A repetition that has just ended.
#[derive(Clone, Debug)]
pub struct Sampled<'s> {
    /// The metrics that the claims read.
    pub sample: Sample,
    /// The trace that figures may draw, if they may draw one.
    pub trace: Option<StateTrace>,
    /// The warnings of the repetition.
    pub warnings: &'s [String],
}

impl CellSamples {
    /// Makes the samples of `cell` with the repetition `sampled` alone. `assumption` is the name of its
    /// assumption set.
    pub fn of_one(cell: &Cell, assumption: &str, fingerprint: &str, sampled: Sampled<'_>) -> Self {
        let Sampled { sample, trace, warnings } = sampled;
        let mut samples = Self::new(cell, assumption, fingerprint);
        // A disturbed repetition is not drawn, and its warnings are in `Sample::disturbed`.
        if sample.disturbed.is_none() {
            if let Some(trace) = trace {
                let kinds = kinds_of(&sample, cell);
                samples.traces.push(KeptTrace { repetition: sample.repetition, kinds, trace });
            }
            for warning in warnings {
                // The prefix says that the run is not valid, but the figures that the machine did not bend
                // are.
                let reason = warning::reason(warning).unwrap_or(warning);
                samples.add_warning(reason);
            }
        }
        samples.samples.push(sample);
        samples
    }

    /// Adds the samples of `next`, whose repetitions follow the repetitions that are here. The traces are the
    /// first one and the first one of each kind.
    fn append(&mut self, next: &Self) {
        self.samples.extend(next.samples.iter().cloned());
        for kept in &next.traces {
            if self.traces.is_empty() || is_first_of_a_kind(kept, self.traces.iter()) {
                self.traces.push(kept.clone());
            }
        }
        for warning in &next.warnings {
            self.add_warning(warning);
        }
    }

    /// Adds `warning`, unless it is already there.
    fn add_warning(&mut self, warning: &str) {
        if !self.warnings.iter().any(|known| known == warning) {
            self.warnings.push(warning.to_owned());
        }
    }
}

impl CellRepetitions {
    /// Inserts a repetition that was kept before, in place of its earlier attempt. Samples of more or fewer
    /// than one repetition are ignored.
    pub fn insert(&mut self, repetition: CellSamples) {
        if let [sample] = repetition.samples.as_slice() {
            self.by_number.insert(sample.repetition, repetition);
        }
    }

    /// Inserts a repetition of `cell` that has just run, and returns what is kept of it. Its trace is kept
    /// only if it may be the first trace of all or of a kind.
    pub fn add(&mut self, cell: &Cell, mut repetition: CellSamples) -> CellSamples {
        repetition.traces.retain(|kept| {
            self.may_be_first(cell, kept.repetition)
                || is_first_of_a_kind(kept, self.traces_before(kept.repetition))
        });
        self.insert(repetition.clone());
        repetition
    }

    /// Removes the repetitions for which `counts` returns false.
    pub fn retain(&mut self, mut counts: impl FnMut(&CellSamples) -> bool) {
        self.by_number.retain(|_, repetition| counts(repetition));
    }

    /// Joins the samples of all repetitions in order, or returns `None` if there is no repetition. The traces
    /// are the first one and the first one of each kind.
    pub fn joined(&self) -> Option<CellSamples> {
        let mut repetitions = self.by_number.values();
        let mut joined = repetitions.next()?.clone();
        for next in repetitions {
            joined.append(next);
        }
        Some(joined)
    }

    /// Returns whether the record of `repetition` must have series for a figure of `cell`.
    pub fn wants_series(&self, cell: &Cell, repetition: u64) -> bool {
        let has_trace = !cell.kept.traces.is_empty();
        // The kind of a run is known only at its end, and the band of a queue needs all repetitions. The band
        // of a goodput needs all repetitions too, but no series.
        let needs_every = !cell.kept.kinds.is_empty() || cell.kept.traces.contains_key("queue");
        has_trace && (needs_every || self.may_be_first(cell, repetition))
    }

    /// Returns whether figures may draw a trace of `repetition` of `cell`.
    pub fn wants_trace(&self, cell: &Cell, repetition: u64) -> bool {
        let has_kinds = !cell.kept.kinds.is_empty();
        let has_band = cell.kept.traces.keys().any(|series| is_banded(series));
        has_kinds || has_band || self.may_be_first(cell, repetition)
    }

    /// Returns whether `repetition` may be the first repetition of `cell` with a trace. In virtual time this
    /// is repetition 0. In real time the machine may disturb earlier repetitions, and then a later one is the
    /// first.
    fn may_be_first(&self, cell: &Cell, repetition: u64) -> bool {
        if cell.arena.is_real_time() {
            self.traces_before(repetition).next().is_none()
        } else {
            repetition == 0
        }
    }

    /// Returns the traces of the repetitions with smaller numbers.
    fn traces_before(&self, repetition: u64) -> impl Iterator<Item = &KeptTrace> {
        self.by_number.range(..repetition).flat_map(|(_, earlier)| &earlier.traces)
    }
}

/// Returns the values of `sample` that distinguish kinds of runs in figures of `cell`.
fn kinds_of(sample: &Sample, cell: &Cell) -> Vec<(String, f64)> {
    let mut kinds = Vec::new();
    for metric in &cell.kept.kinds {
        if let Some(&value) = sample.values.get(metric) {
            kinds.push((metric.clone(), value));
        }
    }
    kinds
}

/// Returns whether the run of `kept` is of a kind that no run of the `earlier` traces is of.
fn is_first_of_a_kind<'k>(kept: &KeptTrace, earlier: impl Iterator<Item = &'k KeptTrace>) -> bool {
    let earlier_kinds: Vec<&(String, f64)> = earlier.flat_map(|trace| &trace.kinds).collect();
    kept.kinds.iter().any(|kind| !earlier_kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ArenaName;
    use crate::study::{CellRuns, Kept};

    /// A cell of which the first repetition is drawn, and of kinds of runs by `losses` the first of each.
    fn cell(arena: ArenaName, has_kinds: bool) -> Cell {
        let text = "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\n\
                    workload = { kind = \"voice\" }\n";
        let source = talkpath_scenario::Source::new("a.toml", text);
        let plan = talkpath_scenario::load(&source, &talkpath_scenario::Options::default()).unwrap();
        let scenario = std::sync::Arc::new(plan.cells[0].scenario.clone());
        let kinds = if has_kinds { ["losses".to_owned()].into() } else { [].into() };
        let traces = [("cwnd".to_owned(), crate::stretch::Stretch { from: 0.0, to: 1.0 })].into();
        Cell {
            index: 0,
            name: "a".to_owned(),
            arena,
            assumption: 0,
            full_runs: CellRuns {
                repeat: 6,
                scenario,
                source: std::sync::Arc::default(),
                fingerprint: "x".to_owned(),
                origin: "x".to_owned(),
            },
            quick_runs: None,
            kept: Kept { traces, kinds, ..Kept::default() },
        }
    }

    /// The repetition with this number, which has `losses` and warns of them, or was disturbed.
    fn ran(cell: &Cell, repetition: u64, losses: Option<u64>) -> CellSamples {
        let sample = Sample {
            repetition,
            seed: repetition,
            values: losses.map(|losses| ("losses".to_owned(), losses as f64)).into_iter().collect(),
            disturbed: losses.is_none().then(|| "it was late".to_owned()),
            ..Sample::default()
        };
        let warnings = [format!("{losses:?} losses"), "of all".to_owned()];
        let trace = Some(StateTrace::default());
        CellSamples::of_one(cell, "base", "x", Sampled { sample, trace, warnings: &warnings })
    }

    /// The cell after repetitions with these losses ended in this `order`.
    fn ended(cell: &Cell, order: &[u64], losses: [u64; 6]) -> CellRepetitions {
        let mut kept = CellRepetitions::default();
        for &repetition in order {
            kept.add(cell, ran(cell, repetition, Some(losses[repetition as usize])));
        }
        kept
    }

    fn traced(kept: &CellRepetitions) -> Vec<u64> {
        kept.joined().unwrap().traces.iter().map(|kept| kept.repetition).collect()
    }

    #[test]
    fn in_whatever_order_repetitions_end_they_are_one_and_the_same_cell() {
        for (arena, has_kinds) in [(ArenaName::Sim, true), (ArenaName::Sim, false), (ArenaName::Emu, true)] {
            let cell = cell(arena, has_kinds);
            let losses = [2, 2, 0, 2, 1, 0];
            let one_by_one = ended(&cell, &[0, 1, 2, 3, 4, 5], losses);
            assert_eq!(traced(&one_by_one), if has_kinds { vec![0, 2, 4] } else { vec![0] });
            let joined = one_by_one.joined().unwrap();
            assert_eq!(joined.warnings, ["Some(2) losses", "of all", "Some(0) losses", "Some(1) losses"]);
            for order in [[5, 4, 3, 2, 1, 0], [1, 0, 5, 3, 2, 4]] {
                assert_eq!(ended(&cell, &order, losses).joined().unwrap(), joined, "{arena}, {order:?}");
            }
        }
    }

    #[test]
    fn the_first_that_the_machine_did_not_disturb_is_drawn_until_an_earlier_one_has_run_again() {
        let cell = cell(ArenaName::Emu, false);
        let mut kept = CellRepetitions::default();
        assert!(kept.wants_series(&cell, 0) && kept.wants_series(&cell, 1));
        kept.add(&cell, ran(&cell, 0, None));
        kept.add(&cell, ran(&cell, 1, Some(2)));
        kept.add(&cell, ran(&cell, 2, Some(2)));
        assert_eq!(traced(&kept), [1]);
        assert!(!kept.wants_series(&cell, 2) && kept.wants_series(&cell, 0));
        kept.add(&cell, ran(&cell, 0, Some(1)));
        assert_eq!(traced(&kept), [0]);
        let joined = kept.joined().unwrap();
        assert_eq!(joined.samples.len(), 3);
        assert_eq!(joined.warnings, ["Some(1) losses", "of all", "Some(2) losses"]);
    }

    #[test]
    fn in_the_simulator_only_the_first_repetition_keeps_its_series() {
        let cell = cell(ArenaName::Sim, false);
        let kept = CellRepetitions::default();
        assert!(kept.wants_series(&cell, 0) && !kept.wants_series(&cell, 1));
    }
}
