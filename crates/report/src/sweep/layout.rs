//! Makes a sweep from the conditions of a judged flow: it finds the axes and the series, and gives each
//! condition its place on the axes.

use std::collections::BTreeMap;

use talkpath_measure::metrics::confidence::Confidence;
use talkpath_measure::summary::{JudgedBy, RunSummary};

use super::{Axis, Combination, SeriesResult, Sweep};
use crate::condition::Condition;
use crate::display::Look;
use crate::metric::Metric;
use crate::select::distinguish_looks;
use crate::usable::{Usable, second_opinion};
use crate::verdict::{ConditionVerdict, JudgedFlow};
use crate::view::{CellView, TransportView};

impl<'a> Sweep<'a> {
    /// Returns `None` if fewer than two combinations have a place on every axis, or if the flow is not
    /// judged.
    pub(crate) fn new(judged: &'a JudgedFlow<'a>) -> Option<Self> {
        let conditions = &judged.conditions;
        let layout = Layout::new(judged);
        let mut confidence = Confidence::default();
        let combinations: Vec<Combination<'a>> = conditions
            .iter()
            .filter_map(|condition| layout.combination(condition, &mut confidence))
            .collect();
        if combinations.len() < 2 {
            return None;
        }
        let judged_by = layout.judged_by?;
        let first = conditions.first()?.condition;
        let Layout { axes, series, .. } = layout;
        let mut looks: Vec<Look> = series.iter().map(|transport| Look::from(transport.display)).collect();
        distinguish_looks(looks.iter_mut());
        Some(Self {
            flow: judged.flow,
            axes,
            series,
            looks,
            not_placed: conditions.len() - combinations.len(),
            combinations,
            other_flows: first.other_flows(judged.flow),
            judged_by,
        })
    }
}

/// The axes and the series of a sweep, before its combinations are known.
struct Layout<'a> {
    flow: &'a str,
    axes: Vec<Axis>,
    /// For each axis: the index of each value, by the value's JSON.
    value_indices: Vec<BTreeMap<String, usize>>,
    series: Vec<TransportView>,
    /// The kind of figure of all combinations. `None` if the flow is not judged.
    judged_by: Option<JudgedBy>,
    /// Whether some calls have a score and others none. All are then judged by what is heard.
    has_some_scores: bool,
}

impl<'a> Layout<'a> {
    fn new(judged: &'a JudgedFlow<'a>) -> Self {
        let flow = judged.flow;
        let conditions = || judged.conditions.iter().map(|judged| judged.condition);
        let axes = Axis::all(conditions().flat_map(|condition| condition.common_pairs(flow)));
        let mut series: Vec<TransportView> = Vec::new();
        for cell in conditions().flat_map(|condition| &condition.cells) {
            let transport = cell.transport(flow);
            if series.iter().all(|known| known.label != transport.label) {
                series.push(transport);
            }
        }
        let value_indices = axes.iter().map(Axis::index_by_json).collect();
        let mut layout = Self { flow, value_indices, axes, series, judged_by: None, has_some_scores: false };
        let kinds: Vec<JudgedBy> = conditions().filter_map(|condition| layout.kind(condition)).collect();
        layout.has_some_scores = [JudgedBy::Mos, JudgedBy::Heard].iter().all(|kind| kinds.contains(kind));
        layout.judged_by =
            if layout.has_some_scores { Some(JudgedBy::Heard) } else { kinds.first().copied() };
        layout
    }

    /// The index of the condition's value on each axis. Returns `None` if the condition does not set the key
    /// of an axis.
    fn place(&self, condition: &Condition<'_>) -> Option<Vec<usize>> {
        let mut place = Vec::new();
        for (axis, indices) in self.axes.iter().zip(&self.value_indices) {
            let (_, value) = condition.common_pairs(self.flow).find(|(key, _)| **key == axis.key)?;
            place.push(*indices.get(&value.to_string())?);
        }
        Some(place)
    }

    /// The kind of figure that the flow is judged by under `condition`. Returns `None` if the condition has
    /// no place.
    fn kind(&self, condition: &Condition<'_>) -> Option<JudgedBy> {
        self.place(condition)?;
        condition.judged_by(self.flow)
    }

    /// Returns `None` if the condition has no place.
    fn combination(
        &self,
        judged: &'a ConditionVerdict<'a>,
        confidence: &mut Confidence,
    ) -> Option<Combination<'a>> {
        let ConditionVerdict { condition, verdict } = judged;
        let value_indices = self.place(condition)?;
        let results = self.results(judged, confidence);
        let leader = match verdict {
            // The means of the results cannot tell the leader, because the verdict adds its means in another
            // order, and so their last bits differ.
            Some(verdict) => condition.cells.get(verdict.leader_cell).and_then(|cell| self.series_of(cell)),
            None => index_of_best_mean(&results),
        };
        let lost_on_links =
            self.axes.iter().map(|axis| lost_on_links(condition, axis.link_of_loss()?)).collect();
        Some(Combination {
            value_indices,
            results,
            lost_on_links,
            judged_by: self.judged_by?,
            verdict: verdict.as_deref(),
            leader,
        })
    }

    /// The result of each series under a condition.
    fn results(
        &self,
        judged: &ConditionVerdict<'_>,
        confidence: &mut Confidence,
    ) -> Vec<Option<SeriesResult>> {
        let mut results: Vec<Option<SeriesResult>> = self.series.iter().map(|_| None).collect();
        for (cell_index, cell) in judged.condition.cells.iter().enumerate() {
            let figures = if self.has_some_scores {
                cell.heard_figures(self.flow)
            } else {
                cell.judged_figures(self.flow)
            };
            let values: Vec<f64> = figures.values().map(|figure| figure.worst).collect();
            let Some(series) = self.series_of(cell) else { continue };
            let Some(usable) = Usable::new(&figures) else { continue };
            let Some(spread) = confidence.spread(&values) else { continue };
            let clusters = match &judged.verdict {
                // For goodput the least difference of two clusters is a share of the best transport's
                // goodput, which only the verdict knows.
                Some(verdict) if !self.has_some_scores => verdict.clusters(cell_index),
                _ => usable.clusters,
            };
            let usable_with_second = if self.has_some_scores {
                None
            } else {
                second_opinion(|receiver| cell.judged_figures_with(self.flow, receiver), &usable).1
            };
            let call = || cell.runs.iter().find_map(|run| run.flows.get(self.flow)?.call.as_deref());
            results[series] = Some(SeriesResult {
                spread,
                clusters,
                usable,
                usable_with_second,
                figures: figures.iter().map(|(number, figure)| (*number, figure.worst)).collect(),
                scale: match figures.values().next() {
                    Some(figure) if figure.by == JudgedBy::Mos => call().map(|call| call.scale.clone()),
                    _ => None,
                }
                .unwrap_or_default(),
                score: if self.has_some_scores { cell.value(self.flow, Metric::MOS) } else { None },
                goodput_bps: cell.value(self.flow, Metric::GOODPUT),
                sent_bps: sent_bps(cell, self.flow),
            });
        }
        results
    }

    fn series_of(&self, cell: &CellView<'_>) -> Option<usize> {
        let label = cell.transport(self.flow).label;
        self.series.iter().position(|transport| transport.label == label)
    }
}

/// The share of the packets on `link`, or on all links if it is `*`, that the wire lost in the repetitions.
fn lost_on_links(condition: &Condition<'_>, link: &str) -> Option<f64> {
    let links = condition.cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.links);
    let (mut lost, mut all) = (0, 0);
    for (_, figures) in links.filter(|(name, _)| link == "*" || *name == link) {
        lost += figures.lost;
        all += figures.lost + figures.forwarded.saturating_sub(figures.repeated);
    }
    (all > 0).then(|| lost as f64 / all as f64)
}

/// The rate in bit/s at which a flow over UDP sends, with the headers of each datagram, in the mean of its
/// repetitions. `None` if a repetition took no time, and over other transports, whose packets are not the
/// flow's messages.
fn sent_bps(cell: &CellView<'_>, flow: &str) -> Option<f64> {
    let of_run = |run: &RunSummary| {
        let flow = run.flows.get(flow).filter(|flow| flow.transport == UDP && flow.received > 0)?;
        let seconds = flow.first_sent_to_last_received_ms.filter(|ms| *ms > 0.0)? / 1e3;
        let sent = flow.sent as f64;
        let payload = flow.goodput_bps? * sent / flow.received as f64;
        Some(payload + HEADERS * 8.0 * sent / seconds)
    };
    let rates: Option<Vec<f64>> = cell.runs.iter().map(|run| of_run(run)).collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    Some(rates.iter().sum::<f64>() / rates.len() as f64)
}

/// The transport whose messages are datagrams.
const UDP: &str = "udp";
/// The headers of UDP and IPv4 in bytes (RFC 768, RFC 791 §3.1).
const HEADERS: f64 = 28.0;

/// The index of the result with the best mean. Of equal means it is the first.
fn index_of_best_mean(results: &[Option<SeriesResult>]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, result) in results.iter().enumerate() {
        let Some(result) = result else { continue };
        if best.is_none_or(|(_, mean)| result.spread.mean.total_cmp(&mean).is_gt()) {
            best = Some((index, result.spread.mean));
        }
    }
    best.map(|(index, _)| index)
}
