//! Collects the numbers of a flow over the repetitions of a cell. The tables of [`crate::figures`] say which
//! numbers there are.

use crate::figures::{FLOW, Figure, GROUP, Table, Unit};
use crate::metrics::confidence::Level;
use crate::metrics::share;
use crate::summary::{FlowSummary, GroupSummary, JudgedBy};

/// Lists every number of a flow with its path, for example `round_trip_delay_ms.p90`, in the order of
/// summary.json. A number that is not known is left out.
pub fn flow_metrics(flow: &FlowSummary) -> Vec<(&'static str, f64)> {
    let mut metrics = Vec::new();
    FLOW.each_number(flow, |figure, value| metrics.push((figure.path, value)));
    metrics
}

/// The numbers of one flow, or of one group of copies, over the repetitions of a cell.
#[derive(Default)]
pub(super) struct Columns {
    /// One column for each figure, in the order in which the figures were first met.
    columns: Vec<Column>,
    /// The kind of figure that the copies of a group are judged by.
    judged_by: Option<JudgedBy>,
}

/// The values of one figure.
pub(super) struct Column {
    /// The path of the figure in summary.json.
    pub(super) path: &'static str,
    unit: Unit,
    /// The least and the greatest possible value. [`Columns::possible`] knows the exception.
    range: (f64, f64),
    /// How many independent messages the values rest on, if the figure is a share of messages.
    messages: Option<f64>,
    /// One value for each repetition that knows the figure.
    pub(super) values: Vec<f64>,
}

impl Columns {
    /// Adds the figures of a flow in one repetition.
    pub(super) fn add(&mut self, flow: &FlowSummary) {
        self.add_all(&FLOW, flow);
    }

    /// Adds the figures of a group of copies in one repetition.
    pub(super) fn add_group(&mut self, group: &GroupSummary) {
        if self.judged_by.is_none() {
            self.judged_by = group.judged.as_ref().map(|judged| judged.by);
        }
        self.add_all(&GROUP, group);
    }

    fn add_all<T>(&mut self, table: &'static Table<T>, owner: &T) {
        let mut expected = 0;
        table.each_number(owner, |figure, value| {
            let messages = figure.messages.as_ref().map(|messages| messages.independent(owner));
            self.push(&mut expected, figure, value, messages);
        });
    }

    /// The least and the greatest possible value of a figure. The range of a judged figure depends on its
    /// kind.
    pub(super) fn possible(&self, column: &Column) -> (f64, f64) {
        match (column.unit, self.judged_by) {
            (Unit::Judged, Some(judged_by)) => judged_by.possible(),
            _ => column.range,
        }
    }

    /// Adds a value to the column of `figure`, and the number of independent `messages` behind a share.
    /// `expected` is the index behind the column of the previous value. Most repetitions have the same
    /// figures in the same order, so the column is usually there.
    fn push<T>(&mut self, expected: &mut usize, figure: &Figure<T>, value: f64, messages: Option<f64>) {
        let is_as_expected = self.columns.get(*expected).is_some_and(|column| column.path == figure.path);
        let index = if is_as_expected { *expected } else { self.find_or_add(figure) };
        let column = &mut self.columns[index];
        column.values.push(value);
        column.messages = messages.map(|count| column.messages.unwrap_or(0.0) + count);
        *expected = index + 1;
    }

    /// Returns the index of the column of `figure`, and adds the column if it is new.
    fn find_or_add<T>(&mut self, figure: &Figure<T>) -> usize {
        if let Some(index) = self.columns.iter().position(|column| column.path == figure.path) {
            return index;
        }
        let &Figure { path, unit, range, .. } = figure;
        self.columns.push(Column { path, unit, range, messages: None, values: Vec::new() });
        self.columns.len() - 1
    }

    /// Every column.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }
}

impl Column {
    /// Computes the 95 % interval that the number of messages alone gives for the share. `mean` is the mean
    /// of the share over the repetitions. Returns `None` if the figure is not a share of messages.
    pub(super) fn interval_of_messages(&self, mean: f64) -> Option<(f64, f64)> {
        share::interval(mean, self.messages?, Level::Shown)
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
