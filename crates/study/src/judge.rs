//! From samples to verdicts.
//!
//! A check is held against the medians over repetitions; single repetitions are counted beside it and decide nothing. A
//! claim holds under an assumption set where all its checks do, is `reproduced` where it holds under at least one, and
//! `differs` where it was tested and holds under none.

use std::collections::BTreeMap;

use crate::claim::{Check, Claim, Kind};
use crate::outcome::{
    CellOutcome, CheckOutcome, ClaimOutcome, FigureLine, FigureOutcome, FigurePoint, Outcome, Stands,
    UnderAssumption, Value, Verdict,
};
use crate::sample::CellSamples;
use crate::stats::median;
use crate::study::{Cell, Figure, FigureKind, Study};
use crate::words;

/// Which part of a study is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Fewer repetitions, under fewer assumption sets.
    pub quick: bool,
    /// The claims by id; all where it is empty.
    pub claims: Vec<String>,
}

impl Selection {
    /// The claims of `study` that are judged.
    pub fn claims<'s>(&self, study: &'s Study) -> impl Iterator<Item = &'s Claim> {
        study.claims.iter().filter(|claim| self.claims.is_empty() || self.claims.contains(&claim.id))
    }

    /// The cells that have to run, in the study's order.
    pub fn cells<'s>(&self, study: &'s Study) -> Vec<&'s Cell> {
        let is_read = |cell: &Cell| {
            let by_claim =
                self.claims(study).flat_map(|claim| &claim.checks).any(|it| it.cells.contains(&cell.name));
            by_claim || (self.claims.is_empty() && study.figures.iter().any(|figure| figure.shows(cell)))
        };
        study.cells.iter().filter(|cell| self.runs(study, cell) && is_read(cell)).collect()
    }

    /// How often `cell` runs.
    pub fn repeat(&self, study: &Study, cell: &Cell) -> u64 {
        if self.quick { cell.repeat.min(study.quick.repeat) } else { cell.repeat }
    }

    fn runs(&self, study: &Study, cell: &Cell) -> bool {
        !self.quick || (cell.quick && study.quick.assumptions.contains(&cell.assumption))
    }
}

impl Figure {
    fn shows(&self, cell: &Cell) -> bool {
        cell.assumption == 0
            && match &self.kind {
                FigureKind::Trace { cell: name, .. } => cell.name == *name,
                FigureKind::Cells { lines, .. } => lines.iter().any(|(_, cells)| cells.contains(&cell.name)),
            }
    }
}

/// Judges what `samples` hold; a cell without all its repetitions counts as not run.
pub fn judge(study: &Study, selection: &Selection, arena: &str, samples: &[CellSamples]) -> Outcome {
    let ran = Ran::new(study, selection, samples);
    let wanted = selection.cells(study);
    let mut warnings: Vec<String> = Vec::new();
    for warning in samples.iter().flat_map(|cell| &cell.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    let missing = wanted.iter().filter(|cell| ran.get(&cell.name, cell.assumption).is_none()).count();
    if missing > 0 {
        warnings.push(format!("{missing} of {} cells did not run to their end", wanted.len()));
    }
    Outcome {
        study: study.name.clone(),
        title: study.title.clone(),
        arena: arena.to_owned(),
        quick: selection.quick,
        phases: if selection.quick { study.quick.repeat.min(study.repeat) } else { study.repeat },
        valid: missing == 0 && samples.iter().all(|cell| cell.valid),
        warnings,
        assumptions: study.assumptions.iter().map(|it| (it.name.clone(), it.text.clone())).collect(),
        claims: selection.claims(study).map(|claim| judge_claim(study, claim, &ran)).collect(),
        cells: wanted.iter().filter_map(|cell| ran.cell_outcome(cell)).collect(),
        figures: study.figures.iter().filter_map(|figure| draw(figure, &ran)).collect(),
    }
}

impl Outcome {
    /// The claims whose verdict is not the expected one. What the shorter run leaves out is no disagreement.
    pub fn unexpected(&self) -> impl Iterator<Item = &ClaimOutcome> {
        let left_out = |claim: &ClaimOutcome| self.quick && claim.verdict == Verdict::NotTested;
        self.claims.iter().filter(move |claim| claim.verdict != claim.expected && !left_out(claim))
    }
}

/// Every cell that ran to its end.
struct Ran<'a> {
    study: &'a Study,
    quick: bool,
    cells: BTreeMap<(&'a str, usize), &'a CellSamples>,
}

impl<'a> Ran<'a> {
    fn new(study: &'a Study, selection: &Selection, samples: &'a [CellSamples]) -> Self {
        let mut cells = BTreeMap::new();
        for cell in &study.cells {
            let assumption = &study.assumptions[cell.assumption].name;
            let found = samples.iter().find(|it| it.cell == cell.name && it.assumption == *assumption);
            if let Some(found) = found.filter(|it| it.samples.len() as u64 >= selection.repeat(study, cell)) {
                cells.insert((cell.name.as_str(), cell.assumption), found);
            }
        }
        Self { study, quick: selection.quick, cells }
    }

    fn get(&self, cell: &str, assumption: usize) -> Option<&'a CellSamples> {
        self.cells.iter().find(|((name, under), _)| *name == cell && *under == assumption).map(|(_, it)| *it)
    }

    fn value(&self, cell: &str, assumption: usize, metric: &str) -> Option<Value> {
        let values = self.get(cell, assumption)?.values(metric);
        let found = median(&values)?;
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(found.median);
        Some(Value {
            cell: cell.to_owned(),
            n: found.n,
            median: found.median,
            ci95: found.ci95,
            min: fold(f64::min),
            max: fold(f64::max),
        })
    }

    fn cell_outcome(&self, cell: &Cell) -> Option<CellOutcome> {
        let samples = self.get(&cell.name, cell.assumption)?;
        let value =
            |metric: &String| Some((metric.clone(), self.value(&cell.name, cell.assumption, metric)?));
        Some(CellOutcome {
            cell: cell.name.clone(),
            assumption: samples.assumption.clone(),
            n: samples.samples.len() as u64,
            metrics: self.study.metrics.iter().filter_map(value).collect(),
        })
    }
}

impl CellSamples {
    /// One metric over the repetitions that know it.
    fn values(&self, metric: &str) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| sample.values.get(metric).copied()).collect()
    }
}

fn judge_claim(study: &Study, claim: &Claim, ran: &Ran<'_>) -> ClaimOutcome {
    let by_assumption: Vec<UnderAssumption> = (0..study.assumptions.len())
        .map(|assumption| under(study, claim, assumption, ran))
        .filter(|it| it.checks.iter().any(|check| !check.values.is_empty()))
        .collect();
    let names = |holds: bool| -> Vec<String> {
        let these = by_assumption.iter().filter(|it| it.holds == Some(holds));
        these.map(|it| it.assumption.clone()).collect()
    };
    let (holding, failing) = (names(true), names(false));
    let (verdict, stands) = match (holding.is_empty(), failing.is_empty()) {
        (false, true) => (Verdict::Reproduced, Stands::All),
        (false, false) => (Verdict::Reproduced, Stands::Some),
        (true, false) => (Verdict::Differs, Stands::None),
        (true, true) => (Verdict::NotTested, Stands::Unknown),
    };
    let n = by_assumption.iter().flat_map(|it| &it.checks).flat_map(|it| &it.values).map(|it| it.n).min();
    let why = words::why(study, claim, verdict, &holding, &failing, &by_assumption, ran.quick);
    ClaimOutcome {
        id: claim.id.clone(),
        claim: claim.text.clone(),
        published: claim.published.clone(),
        reproduced: by_assumption
            .iter()
            .find(|it| it.holds.is_some())
            .map_or_else(String::new, words::reproduced),
        verdict,
        expected: claim.expected,
        assumptions: if verdict == Verdict::Reproduced { holding } else { failing },
        why,
        n: n.unwrap_or(0),
        stands,
        by_assumption,
        sensitivity: study.sensitivity.iter().map(|&index| study.assumptions[index].name.clone()).collect(),
    }
}

fn under(study: &Study, claim: &Claim, assumption: usize, ran: &Ran<'_>) -> UnderAssumption {
    let checks: Vec<_> = claim.checks.iter().map(|it| judge_check(it, assumption, ran)).collect();
    let all: Option<Vec<bool>> = checks.iter().map(|check| check.holds).collect();
    UnderAssumption {
        assumption: study.assumptions[assumption].name.clone(),
        holds: all.filter(|all| !all.is_empty()).map(|all| all.iter().all(|holds| *holds)),
        checks,
    }
}

fn judge_check(check: &Check, assumption: usize, ran: &Ran<'_>) -> CheckOutcome {
    let values: Vec<Value> =
        check.cells.iter().filter_map(|cell| ran.value(cell, assumption, &check.metric)).collect();
    let is_whole = values.len() == check.cells.len();
    let medians: Vec<f64> = values.iter().map(|value| value.median).collect();
    let holds = check.kind.holds(&medians).filter(|_| is_whole);
    let (single_hits, single_runs) = singles(check, assumption, ran);
    CheckOutcome {
        name: check.name.clone(),
        metric: check.metric.clone(),
        must: check.kind,
        certain: holds.is_some_and(|holds| is_certain(check.kind, &values, holds)),
        values,
        holds,
        single_hits,
        single_runs,
    }
}

/// In how many repetitions the check holds by itself; repetition k of one cell is held against repetition k of the other.
fn singles(check: &Check, assumption: usize, ran: &Ran<'_>) -> (u64, u64) {
    let cells: Option<Vec<_>> = check.cells.iter().map(|cell| ran.get(cell, assumption)).collect();
    let Some(cells) = cells else { return (0, 0) };
    let runs = cells.iter().map(|cell| cell.samples.len()).min().unwrap_or(0);
    let hits = (0..runs).filter(|&run| {
        let values: Option<Vec<f64>> =
            cells.iter().map(|cell| cell.samples[run].values.get(&check.metric).copied()).collect();
        values.and_then(|values| check.kind.holds(&values)) == Some(true)
    });
    (hits.count() as u64, runs as u64)
}

/// Whether the answer is the same at every corner of the confidence intervals that could change it.
fn is_certain(kind: Kind, values: &[Value], holds: bool) -> bool {
    let bounds: Option<Vec<(f64, f64)>> = values.iter().map(|value| value.ci95).collect();
    let Some(bounds) = bounds else { return false };
    match kind {
        Kind::Near { value, within } => {
            let most = within.around(value);
            let (low, high) = bounds[0];
            if holds {
                low >= value - most && high <= value + most
            } else {
                high < value - most || low > value + most
            }
        }
        Kind::AtMost { value } => {
            if holds {
                bounds[0].1 <= value
            } else {
                bounds[0].0 > value
            }
        }
        Kind::AtLeast { value } => {
            if holds {
                bounds[0].0 >= value
            } else {
                bounds[0].1 < value
            }
        }
        Kind::Rising => ordered(&bounds, holds),
        Kind::Falling => {
            let turned: Vec<_> = bounds.iter().rev().copied().collect();
            ordered(&turned, holds)
        }
        Kind::Same { within } => {
            let (first, rest) = (bounds[0], &bounds[1..]);
            let most = within.around(values[0].median);
            if holds {
                rest.iter().all(|it| it.1 - first.0 <= most && first.1 - it.0 <= most)
            } else {
                rest.iter().any(|it| it.0 - first.1 > most || first.0 - it.1 > most)
            }
        }
    }
}

/// A rising order holds for certain where no two neighbours' intervals touch, and fails for certain where two lie the
/// other way round.
fn ordered(bounds: &[(f64, f64)], holds: bool) -> bool {
    if holds {
        bounds.windows(2).all(|pair| pair[0].1 < pair[1].0)
    } else {
        bounds.windows(2).any(|pair| pair[0].0 > pair[1].1)
    }
}

fn draw(figure: &Figure, ran: &Ran<'_>) -> Option<FigureOutcome> {
    let mut drawn = FigureOutcome {
        number: figure.number.clone(),
        title: figure.title.clone(),
        x_title: String::new(),
        y_title: String::new(),
        steps: Vec::new(),
        loss_runs: Vec::new(),
        lines: Vec::new(),
        seconds: None,
    };
    match &figure.kind {
        FigureKind::Trace { series, entity, cell, seconds } => {
            let trace = ran.get(cell, 0)?.trace.as_ref()?;
            let within = |at: f64| at >= seconds.0 && at <= seconds.1;
            drawn.x_title = "simulated time, s".to_owned();
            drawn.seconds = Some(*seconds);
            if series == "loss-runs" {
                drawn.y_title = "packets lost in a row".to_owned();
                let runs =
                    trace.loss_runs.iter().filter(|run| run.flow.starts_with(entity) && within(run.at_s));
                drawn.loss_runs = runs.cloned().collect();
            } else {
                drawn.y_title = if series == "cwnd" { "cwnd, packets" } else { "waiting packets" }.to_owned();
                let of = |line: &&crate::TraceLine| line.kind == *series && line.entity.starts_with(entity);
                drawn.steps = trace.lines.iter().filter(of).cloned().collect();
            }
        }
        FigureKind::Cells { metric, x_title, y_title, x, lines } => {
            drawn.x_title.clone_from(x_title);
            drawn.y_title.clone_from(y_title);
            for (label, cells) in lines {
                let point = |(x, cell): (&f64, &String)| {
                    ran.value(cell, 0, metric).map(|value| FigurePoint {
                        x: *x,
                        median: value.median,
                        ci95: value.ci95,
                    })
                };
                let points: Vec<_> = x.iter().zip(cells).filter_map(point).collect();
                drawn.lines.push(FigureLine { label: label.clone(), points });
            }
            drawn.lines.retain(|line| !line.points.is_empty());
            if drawn.lines.is_empty() {
                return None;
            }
        }
    }
    Some(drawn)
}
