//! The repetitions of a cell, each kept by itself. They end in any order, and one that runs again takes the
//! place of its earlier attempt; [`CellRepetitions::joined`] gives what would be had they run one after the
//! other, each once.

use std::collections::BTreeMap;

use talkpath_measure::warning;

use crate::band::is_banded;
use crate::sample::{CellSamples, KeptTrace, Sample, StateTrace};
use crate::study::Cell;

/// What is kept of a cell, by repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellRepetitions {
    by_number: BTreeMap<u64, CellSamples>,
}

/// What is known of a repetition that ran.
#[derive(Clone, Debug)]
pub struct Sampled<'s> {
    /// What the claims read of it.
    pub sample: Sample,
    /// What the figures draw of it, as far as they may.
    pub trace: Option<StateTrace>,
    /// What it warned of.
    pub warnings: &'s [String],
}

impl CellSamples {
    /// The repetition `sampled` of `cell` alone, whose assumption set is called `assumption`.
    pub fn of_one(cell: &Cell, assumption: &str, fingerprint: &str, sampled: Sampled<'_>) -> Self {
        let Sampled { sample, trace, warnings } = sampled;
        let mut one = Self::begin(cell, assumption, fingerprint);
        // Why a repetition does not count stands with it.
        if sample.disturbed.is_none() {
            let value = |metric: &String| Some((metric.clone(), *sample.values.get(metric)?));
            let kinds = cell.kept.kinds.iter().filter_map(value).collect();
            let repetition = sample.repetition;
            one.traces.extend(trace.map(|trace| KeptTrace { repetition, kinds, trace }));
            // What made some figures of a run invalid left the others as they are.
            let told = |warning: &String| warning::reason(warning).unwrap_or(warning).to_owned();
            warnings.iter().map(told).for_each(|warning| one.warn(warning));
        }
        one.samples.push(sample);
        one
    }

    /// Adds the repetitions `next`, which follow those that are here.
    fn append(&mut self, next: &Self) {
        self.samples.extend(next.samples.iter().cloned());
        for kept in &next.traces {
            if self.traces.is_empty() || brings_a_kind(kept, &self.traces.iter()) {
                self.traces.push(kept.clone());
            }
        }
        next.warnings.iter().for_each(|warning| self.warn(warning.clone()));
    }

    /// Adds `warning`, unless it is there.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

impl CellRepetitions {
    /// Takes in `one`, a repetition that was kept by itself; its earlier attempt goes. Anything else than
    /// one repetition is passed over.
    pub fn insert(&mut self, one: CellSamples) {
        if let [sample] = one.samples.as_slice() {
            self.by_number.insert(sample.repetition, one);
        }
    }

    /// As [`Self::insert`], of a repetition of `cell` that has just run. Returns what is kept of it: its
    /// trace only if it may be the first of a kind.
    pub fn add(&mut self, cell: &Cell, mut one: CellSamples) -> CellSamples {
        one.traces.retain(|kept| {
            self.may_be_first(cell, kept.repetition) || brings_a_kind(kept, &self.before(kept.repetition))
        });
        self.insert(one.clone());
        one
    }

    /// Forgets the repetitions for which `counts` is false.
    pub fn retain(&mut self, mut counts: impl FnMut(&CellSamples) -> bool) {
        self.by_number.retain(|_, one| counts(one));
    }

    /// All of them as one cell's, in order; `None` if there are none. Of their traces, those of the first
    /// repetition and of the first of each kind.
    pub fn joined(&self) -> Option<CellSamples> {
        let mut repetitions = self.by_number.values();
        let mut all = repetitions.next()?.clone();
        repetitions.for_each(|next| all.append(next));
        Some(all)
    }

    /// Whether `repetition` has to keep its series for a figure of `cell`.
    pub fn wants_series(&self, cell: &Cell, repetition: u64) -> bool {
        // A band is of all of them; goodput needs no series.
        let is_every = !cell.kept.kinds.is_empty() || cell.kept.traces.contains_key("queue");
        !cell.kept.traces.is_empty() && (is_every || self.may_be_first(cell, repetition))
    }

    /// Whether figures may draw something of this `repetition` of `cell`.
    pub fn wants_trace(&self, cell: &Cell, repetition: u64) -> bool {
        let is_banded = || cell.kept.traces.keys().any(|series| is_banded(series));
        !cell.kept.kinds.is_empty() || is_banded() || self.may_be_first(cell, repetition)
    }

    /// Whether `repetition` may be the first of `cell` that counts.
    fn may_be_first(&self, cell: &Cell, repetition: u64) -> bool {
        match cell.arena.is_real_time() {
            // The machine may disturb the ones before.
            true => self.before(repetition).next().is_none(),
            false => repetition == 0,
        }
    }

    /// The traces of earlier repetitions.
    fn before(&self, repetition: u64) -> impl Iterator<Item = &KeptTrace> + Clone {
        self.by_number.range(..repetition).flat_map(|(_, one)| &one.traces)
    }
}

/// Whether the run of `kept` is of a kind of which none of those `before` is.
fn brings_a_kind<'k>(kept: &KeptTrace, before: &(impl Iterator<Item = &'k KeptTrace> + Clone)) -> bool {
    kept.kinds.iter().any(|kind| !before.clone().any(|it| it.kinds.contains(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ArenaName;
    use crate::study::{Form, Kept};

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
            full: Form { repeat: 6, scenario, fingerprint: "x".to_owned() },
            quick: None,
            kept: Kept { traces, kinds, ..Kept::default() },
        }
    }

    /// The repetition with this number, which has `losses` and warns of them, or was disturbed.
    fn ran(cell: &Cell, repetition: u64, losses: Option<u64>) -> CellSamples {
        let sample = Sample {
            repetition,
            seed: repetition,
            values: losses.map(|losses| ("losses".to_owned(), losses as f64)).into_iter().collect(),
            beside: 0,
            disturbed: losses.is_none().then(|| "it was late".to_owned()),
            bent: Vec::new(),
            delays: BTreeMap::new(),
            instants: BTreeMap::new(),
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
