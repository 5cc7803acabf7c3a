//! Groups of cells that can be compared, and the other flows that run in them.
//!
//! - A *condition* is the cells that differ in the transport of the compared flow only.
//! - The *other flows* run at the same time as the compared flow. Its copies are not among them.
//!
//! Begin to read with [`conditions`].

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::{JudgedBy, Summary};

use crate::metric::DelayKind;
use crate::number::distinct;
use crate::view::{CellView, RUN_KEY, is_copy, is_numbered_copy, plain, transport_key};

/// Cells that differ in one flow's transport only, so that the transports can be compared.
#[derive(Debug)]
pub(crate) struct Condition<'a> {
    /// The swept values that all cells have in common, as `path.up.loss = 0.01`. Empty if only the transport
    /// is swept.
    pub label: String,
    pub cells: Vec<CellView<'a>>,
    /// Whether the run is valid ([`Summary::valid`]). A run that is not valid names no best transport.
    pub is_valid: bool,
    /// The links whose queue has the default size
    /// ([`talkpath_measure::summary::Understood::assumed_queues`]).
    pub assumed_queues: &'a [String],
    /// The links that are in a phone's cell ([`talkpath_measure::summary::Understood::links_of_cells`]).
    pub links_of_cells: &'a [String],
}

/// A flow, or a group of copies, that runs at the same time as a compared flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OtherFlow {
    /// One flow, by its name.
    Single(String),
    /// All copies of a transfer.
    Copies {
        /// The name that the copies share.
        group: String,
        /// The number of copies.
        flows: u64,
    },
}

/// Groups the cells into conditions. Within a condition only the transport of `flow` differs. Conditions and
/// cells keep the order of the sweep.
pub(crate) fn conditions<'a>(summary: &'a Summary, flow: &str) -> Vec<Condition<'a>> {
    let mut conditions: Vec<Condition<'a>> = Vec::new();
    // The map finds a condition by its label. Without the map, 100,000 conditions took a minute.
    let mut index_by_label: BTreeMap<String, usize> = BTreeMap::new();
    let transport = transport_key(flow);
    for cell in CellView::all(summary) {
        let label = cell.sweep_label(&[&transport, RUN_KEY]);
        if let Some(&index) = index_by_label.get(&label) {
            conditions[index].cells.push(cell);
            continue;
        }
        index_by_label.insert(label.clone(), conditions.len());
        conditions.push(Condition {
            label,
            cells: vec![cell],
            is_valid: summary.valid,
            assumed_queues: &summary.understood.assumed_queues,
            links_of_cells: &summary.understood.links_of_cells,
        });
    }
    shorten_labels(&mut conditions, flow);
    conditions
}

/// The label of a condition from which each other condition differs in one key.
const AS_GIVEN: &str = "as given";

/// Shortens the labels to the keys in which each condition differs from the first: the other keys would say
/// the same in each label. It does so if these are few keys, and not the same keys for all conditions.
/// `compare` makes such conditions.
fn shorten_labels(conditions: &mut [Condition<'_>], flow: &str) {
    let [first, others @ ..] = &*conditions else { return };
    let base = first.common(flow);
    let mut changes: Vec<Vec<(String, Value)>> = Vec::new();
    for other in others {
        let swept = other.common(flow);
        if swept.len() != base.len() {
            return;
        }
        let differing = swept.into_iter().filter(|(key, value)| base.get(key) != Some(value));
        let differing: Vec<_> = differing.collect();
        // A queue and the rate of its link are one change: a router before the line.
        if differing.is_empty()
            || differing.len() > 2
            || (differing.len() == 2 && !are_of_one_link(&differing))
        {
            return;
        }
        changes.push(differing);
    }
    let keys = |change: &Vec<(String, Value)>| change.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let Some(first_keys) = changes.first().map(keys) else { return };
    if changes.iter().all(|other| keys(other) == first_keys) {
        return;
    }
    AS_GIVEN.clone_into(&mut conditions[0].label);
    for (condition, change) in conditions[1..].iter_mut().zip(changes) {
        let parts: Vec<String> =
            change.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect();
        condition.label = parts.join(", ");
    }
}

/// Whether two changed keys are the queue and the rate of one link.
fn are_of_one_link(changes: &[(String, Value)]) -> bool {
    let mut keys = changes.iter().map(|(key, _)| key);
    let queue = keys.clone().find_map(|key| key.strip_suffix(".queue"));
    let rate = keys.find_map(|key| key.strip_suffix(".rate"));
    queue.is_some() && queue == rate
}

impl Condition<'_> {
    /// The kind of delay that all cells are compared by: the round trip if any cell measured it, else one
    /// way.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let kinds = self.cells.iter().filter_map(|cell| Some(cell.delay_kind(cell.resolve(flow)?)));
        // The round trip is the least of the enum.
        kinds.min().unwrap_or(DelayKind::OneWay)
    }

    /// Why no router helps against the queue of `link`, if the link is in a phone's cell. Else empty.
    pub(crate) fn queue_of_cell(&self, link: &str) -> &'static str {
        if self.links_of_cells.iter().any(|of_cell| of_cell == link) {
            " It is the cell's own queue: its rate changes with the other users, so a router before it has no rate to shape to."
        } else {
            ""
        }
    }

    /// The kind of figure that `flow` is judged by. Returns `None` if the flow is not judged in any cell.
    pub(crate) fn judged_by(&self, flow: &str) -> Option<JudgedBy> {
        self.cells.iter().find_map(|cell| Some(cell.judged_figures(flow).values().next()?.by))
    }

    /// The names of all flows but `flow` and its copies, in the order of the first cell.
    pub(crate) fn other_flows(&self, flow: &str) -> Vec<String> {
        let names = self.cells.first().into_iter().flat_map(CellView::names);
        names.filter(|name| *name != flow && !is_copy(name, flow)).cloned().collect()
    }

    /// All flows but `flow` and its copies. The copies of a transfer are one entry.
    pub(crate) fn other_flows_by_group(&self, flow: &str) -> Vec<OtherFlow> {
        let others = self.other_flows(flow).into_iter();
        distinct(others.map(|name| self.copies_with(&name).unwrap_or(OtherFlow::Single(name))))
    }

    /// The copies of a transfer that the flow `name` is one of. Returns `None` if `name` is not such a copy.
    fn copies_with(&self, name: &str) -> Option<OtherFlow> {
        let run = self.cells.first()?.run()?;
        let mut groups = run.groups.iter().filter(|(_, group)| !group.summed_up);
        let (group, copies) = groups.find(|(group, _)| is_numbered_copy(name, group))?;
        let is_transfer = matches!(self.judged_by(name), Some(JudgedBy::Goodput) | None);
        is_transfer.then(|| OtherFlow::Copies { group: group.clone(), flows: copies.flows })
    }

    /// The swept keys and values that all cells have in common.
    pub(crate) fn common(&self, flow: &str) -> BTreeMap<String, Value> {
        self.common_pairs(flow).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Iterates over the swept keys and values that all cells have in common.
    pub(crate) fn common_pairs(&self, flow: &str) -> impl Iterator<Item = (&String, &Value)> {
        let differing_keys = [transport_key(flow), RUN_KEY.to_owned()];
        let first = self.cells.first().map(|cell| &cell.cell.sweep);
        first.into_iter().flatten().filter(move |(key, _)| !differing_keys.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::CellSummary;

    use super::*;
    use crate::fixture;

    #[test]
    fn cells_that_differ_in_more_than_the_transport_are_not_compared() {
        let mut summary = fixture::summary(1);
        for (index, cell) in summary.cells.iter_mut().enumerate() {
            cell.sweep.insert("path.up.loss".to_owned(), Value::from(if index == 2 { 0.01 } else { 0.0 }));
        }
        let labels =
            conditions(&summary, "call").iter().map(|c| (c.label.clone(), c.cells.len())).collect::<Vec<_>>();
        assert_eq!(labels, [("path.up.loss = 0.0".to_owned(), 2), ("path.up.loss = 0.01".to_owned(), 1)]);
    }

    #[test]
    fn conditions_that_differ_from_the_first_in_one_key_are_labelled_by_that_key() {
        let labels = |values: [(f64, u64); 3]| {
            let mut summary = fixture::summary(1);
            for (cell, (loss, count)) in summary.cells.iter_mut().zip(values) {
                cell.sweep.insert("path.up.loss".to_owned(), loss.into());
                cell.sweep.insert("flow.upload.count".to_owned(), count.into());
            }
            conditions(&summary, "call").into_iter().map(|condition| condition.label).collect::<Vec<_>>()
        };
        assert_eq!(
            labels([(0.5, 1), (0.5, 0), (0.25, 1)]),
            ["as given", "flow.upload.count = 0", "path.up.loss = 0.25"]
        );
        let in_full = |labels: Vec<String>| labels.iter().all(|label| label.contains(", "));
        assert!(in_full(labels([(0.5, 1), (0.5, 0), (0.25, 0)])), "the third differs in two keys");
        assert!(in_full(labels([(0.5, 2), (0.5, 0), (0.5, 1)])), "all differ in the same key");
    }

    #[test]
    fn cells_far_apart_that_differ_in_the_transport_alone_share_a_condition() {
        const CONDITIONS: u64 = 50;
        let (mut summary, _) = fixture::single();
        let cell = summary.cells.remove(0);
        for (transport, loss) in
            ["udp", "tcp"].iter().flat_map(|name| (0..CONDITIONS).map(move |loss| (name, loss)))
        {
            let transport = (transport_key("call"), Value::from(*transport));
            let sweep = [transport, ("path.up.loss".to_owned(), loss.into())].into();
            summary.cells.push(CellSummary { cell: summary.cells.len() as u64, sweep, ..cell.clone() });
        }
        let conditions = conditions(&summary, "call");
        let cells =
            |condition: &Condition<'_>| condition.cells.iter().map(|cell| cell.cell.cell).collect::<Vec<_>>();
        let found: Vec<_> =
            conditions.iter().map(|condition| (condition.label.clone(), cells(condition))).collect();
        let expected = |loss| (format!("path.up.loss = {loss}"), vec![loss, CONDITIONS + loss]);
        assert!(found.into_iter().eq((0..CONDITIONS).map(expected)));
    }
}
