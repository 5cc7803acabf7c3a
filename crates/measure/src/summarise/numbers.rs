//! The numbers of a flow's summary over the repetitions of a cell, by the rows of [`crate::figures`].

use crate::figures::{FLOW, Figure, GROUP, Unit};
use crate::metrics::share;
use crate::summary::{FlowSummary, GroupSummary, JudgedBy};

/// Every number with its path, in the order of summary.json: `loss_rate`, `round_trip_delay_ms.p90`. What is
/// not known is left out.
pub fn flow_metrics(flow: &FlowSummary) -> Vec<(&'static str, f64)> {
    let mut metrics = Vec::new();
    FLOW.each_number(flow, |figure, value| metrics.push((figure.path, value)));
    metrics
}

/// The values of each metric over repetitions, by path.
#[derive(Default)]
pub(super) struct Columns {
    /// In the order in which they came first.
    columns: Vec<Column>,
    /// What copies are judged by.
    by: Option<JudgedBy>,
    /// Of how many messages all repetitions together know each of [`SHARES`].
    messages: [u64; SHARES.len()],
}

/// A figure's values, one for each repetition that knows it.
pub(super) struct Column {
    pub(super) path: &'static str,
    unit: Unit,
    /// The least and the most that it can be, unless that depends on what the flow is judged by.
    range: (f64, f64),
    pub(super) values: Vec<f64>,
}

/// Shares of messages.
const SHARES: [&str; 2] = ["loss_rate", "in_time"];

impl Columns {
    /// Adds one repetition's figures.
    pub(super) fn add(&mut self, flow: &FlowSummary) {
        let mut expected = 0;
        FLOW.each_number(flow, |figure, value| self.push(&mut expected, figure, value));
        for (share, is_known) in [flow.loss_rate.is_some(), flow.in_time.is_some()].into_iter().enumerate() {
            self.messages[share] += flow.messages_of(SHARES[share]).filter(|_| is_known).unwrap_or(0);
        }
    }

    /// As [`Columns::add`], of a flow's copies together.
    pub(super) fn add_group(&mut self, group: &GroupSummary) {
        self.by = self.by.or(group.judged.as_ref().map(|judged| judged.by));
        let mut expected = 0;
        GROUP.each_number(group, |figure, value| self.push(&mut expected, figure, value));
        self.messages[0] += group.messages_of(SHARES[0]).unwrap_or(0);
    }

    /// The 95 % interval of the share at `path`, whose mean over the repetitions this is, by the number of
    /// its messages alone; `None` of what is no share of messages.
    pub(super) fn interval_of_messages(&self, path: &str, mean: f64) -> Option<(f64, f64)> {
        let messages = self.messages[SHARES.iter().position(|share| *share == path)?];
        let hits = (mean * messages as f64).round().clamp(0.0, messages as f64) as u64;
        // A share that is neither none nor all is not rounded to it.
        let hits = if mean > 0.0 { hits.max(1) } else { hits };
        let hits = if mean < 1.0 { hits.min(messages.saturating_sub(1)) } else { hits };
        share::interval(hits, messages)
    }

    /// The least and the most that the number of `column` can be.
    pub(super) fn possible(&self, column: &Column) -> (f64, f64) {
        match (column.unit, self.by) {
            (Unit::Judged, Some(by)) => by.possible(),
            _ => column.range,
        }
    }

    /// Adds a value of `figure`. Most repetitions have the same numbers, so the search for a number begins at
    /// `expected`, behind the previous number.
    fn push<T>(&mut self, expected: &mut usize, figure: &Figure<T>, value: f64) {
        let is_here = self.columns.get(*expected).is_some_and(|column| column.path == figure.path);
        let found = || self.columns.iter().position(|column| column.path == figure.path);
        let place = if is_here { Some(*expected) } else { found() };
        let place = place.unwrap_or_else(|| {
            let &Figure { path, unit, range, .. } = figure;
            self.columns.push(Column { path, unit, range, values: Vec::new() });
            self.columns.len() - 1
        });
        self.columns[place].values.push(value);
        *expected = place + 1;
    }

    /// Each metric's values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::all_known;

    #[test]
    fn a_metric_that_some_repetitions_lack_has_fewer_values_and_none_is_mixed_up() {
        let mut columns = Columns::default();
        let without = |loss_rate| FlowSummary { loss_rate, ..all_known() };
        for flow in [without(None), all_known(), without(None), without(Some(0.25)), all_known()] {
            columns.add(&flow);
        }
        for Column { path, values, .. } in columns.iter() {
            let expected = match *path {
                "loss_rate" => vec![all_known().loss_rate.unwrap(), 0.25, all_known().loss_rate.unwrap()],
                _ => vec![values[0]; 5],
            };
            assert_eq!(*values, expected, "{path}");
        }
        let mut paths: Vec<_> = columns.iter().map(|column| column.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), columns.iter().count());
    }
}
