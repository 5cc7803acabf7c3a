//! Cells that differ in one flow's transport only, and what runs beside that flow.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::summary::{JudgedBy, Summary};

use crate::view::{CellView, DelayKind, RUN_KEY, is_copy, is_numbered_copy, transport_key};

/// Cells that differ in one flow's transport only, and so can be compared.
#[derive(Debug)]
pub(crate) struct Condition<'a> {
    /// What they share, as `path.up.loss = 0.01`; empty if only the transport is swept.
    pub label: String,
    pub cells: Vec<CellView<'a>>,
    /// [`Summary::valid`]: else no transport can be named.
    pub is_valid: bool,
    /// [`talkpath_measure::summary::Understood::assumed_queues`].
    pub assumed_queues: &'a [String],
}

/// Groups the cells so that within a group only the transport of `flow` differs.
pub(crate) fn conditions<'a>(summary: &'a Summary, flow: &str) -> Vec<Condition<'a>> {
    let mut conditions: Vec<Condition<'a>> = Vec::new();
    // By label, because a search among 100,000 conditions for each of their cells takes a minute.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let transport = transport_key(flow);
    for cell in CellView::all(summary) {
        let label = cell.sweep_label(&[&transport, RUN_KEY]);
        match places.get(&label) {
            Some(&at) => conditions[at].cells.push(cell),
            None => {
                places.insert(label.clone(), conditions.len());
                let assumed_queues = summary.understood.assumed_queues.as_slice();
                conditions.push(Condition {
                    label,
                    cells: vec![cell],
                    is_valid: summary.valid,
                    assumed_queues,
                });
            }
        }
    }
    conditions
}

impl Condition<'_> {
    /// Round trip if any of the cells has one.
    pub(crate) fn delay_kind(&self, flow: &str) -> DelayKind {
        let kinds = self.cells.iter().filter_map(|cell| Some(cell.delay_kind(cell.resolve(flow)?)));
        kinds.min().unwrap_or(DelayKind::OneWay)
    }

    /// What `flow` is judged by, if it is in any of the cells.
    pub(crate) fn judged_by(&self, flow: &str) -> Option<JudgedBy> {
        self.cells.iter().find_map(|cell| Some(cell.judged(flow).values().next()?.by))
    }

    /// The flows beside `flow`, in the first cell's order.
    pub(crate) fn other_flows(&self, flow: &str) -> Vec<String> {
        let names = self.cells.first().into_iter().flat_map(CellView::names);
        names.filter(|name| *name != flow && !is_copy(name, flow)).cloned().collect()
    }

    /// The same, with the copies of a transfer as one.
    pub(crate) fn beside(&self, flow: &str) -> Vec<Beside> {
        let mut beside: Vec<Beside> = Vec::new();
        for name in self.other_flows(flow) {
            let neighbour = self.copies_with(&name).unwrap_or(Beside::Flow(name));
            if !beside.contains(&neighbour) {
                beside.push(neighbour);
            }
        }
        beside
    }

    /// The copies of a transfer among which the flow `name` is; `None` if it is no copy.
    fn copies_with(&self, name: &str) -> Option<Beside> {
        let run = self.cells.first()?.run()?;
        let mut groups = run.groups.iter().filter(|(_, group)| !group.summed_up);
        let (group, copies) = groups.find(|(group, _)| is_numbered_copy(name, group))?;
        let is_transfer = matches!(self.judged_by(name), Some(JudgedBy::Goodput) | None);
        is_transfer.then(|| Beside::Copies { group: group.clone(), flows: copies.flows })
    }

    /// The sweep's keys and values that the cells have in common.
    pub(crate) fn common(&self, flow: &str) -> BTreeMap<String, Value> {
        self.pairs(flow).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The same keys and values, by reference.
    pub(crate) fn pairs(&self, flow: &str) -> impl Iterator<Item = (&String, &Value)> {
        let own_keys = [transport_key(flow), RUN_KEY.to_owned()];
        let first = self.cells.first().map(|cell| &cell.cell.sweep);
        first.into_iter().flatten().filter(move |(key, _)| !own_keys.contains(key))
    }
}

/// What runs beside a compared flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Beside {
    /// A flow.
    Flow(String),
    /// All copies of a transfer.
    Copies {
        /// The name of the flow that was copied.
        group: String,
        /// How many there are.
        flows: u64,
    },
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
    fn cells_far_apart_that_differ_in_the_transport_alone_share_a_condition() {
        const CONDITIONS: u64 = 50;
        let (mut summary, _) = fixture::single();
        let cell = summary.cells.remove(0);
        for (transport, loss) in
            ["udp", "tcp"].iter().flat_map(|it| (0..CONDITIONS).map(move |loss| (it, loss)))
        {
            let transport = (transport_key("call"), Value::from(*transport));
            let sweep = [transport, ("path.up.loss".to_owned(), loss.into())].into();
            summary.cells.push(CellSummary { cell: summary.cells.len() as u64, sweep, ..cell.clone() });
        }
        let conditions = conditions(&summary, "call");
        let cells =
            |condition: &Condition<'_>| condition.cells.iter().map(|it| it.cell.cell).collect::<Vec<_>>();
        let found: Vec<_> = conditions.iter().map(|it| (it.label.clone(), cells(it))).collect();
        let expected = |loss| (format!("path.up.loss = {loss}"), vec![loss, CONDITIONS + loss]);
        assert!(found.into_iter().eq((0..CONDITIONS).map(expected)));
    }
}
