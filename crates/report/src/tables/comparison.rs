//! The table that compares transports, with one row for each cell of a condition.

use talkpath_measure::figures::Scale;
use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::Standing;
use talkpath_measure::summary::JudgedBy;

use super::titles::{
    IN_TIME, JAIN, MOS, OPENS_AFTER, OTHER_RECEIVER, OWN_RECEIVER, TURN_ROUND, TWO_OUTCOMES, UNFINISHED,
    USABLE, VERSUS, WAIT_IN, both_outcomes, opens_late, row_name, short_name,
};
use crate::condition::{Condition, OtherFlow};
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count, decimals, fixed};
use crate::usable::{Usable, with_both};
use crate::verdict::{self, Cause, FigureStyle, Verdict};
use crate::view::{CellView, Metric, Quantile};

/// Makes the table that compares the transports of `flow` under a condition. The columns that the answer
/// rests on come first, then the other figures of the flow, then the figures of other flows.
pub(crate) fn comparison(condition: &Condition<'_>, flow: &str, verdict: Option<&Verdict>) -> Grid {
    ComparisonTable { condition, flow, verdict }.grid()
}

struct ComparisonTable<'a> {
    condition: &'a Condition<'a>,
    /// The flow whose transports are compared.
    flow: &'a str,
    /// `None` if there is no answer.
    verdict: Option<&'a Verdict>,
}

/// A column that the answer rests on.
struct AnswerColumn {
    head: Column,
    /// One text for each cell of the condition.
    texts: Vec<String>,
}

/// A column that shows one metric.
struct FigureColumn {
    head: Column,
    metric: Metric,
    scale: Scale,
    /// The flow that the metric belongs to. `None` for the compared flow.
    other_flow: Option<String>,
}

impl FigureColumn {
    fn new(metric: Metric, scale: Scale, head: Column) -> Self {
        Self { head, metric, scale, other_flow: None }
    }

    fn of_other_flow(self, name: &str) -> Self {
        Self { other_flow: Some(name.to_owned()), ..self }
    }
}

impl ComparisonTable<'_> {
    fn grid(&self) -> Grid {
        let answer_columns = self.answer_columns();
        let mut figure_columns = self.own_columns();
        figure_columns.extend(self.other_flow_columns());

        let mut values: Vec<Vec<Option<f64>>> = Vec::new();
        for cell in self.cells() {
            values.push(figure_columns.iter().map(|column| self.value(cell, column)).collect());
        }
        let scales = scales_with_same_decimals(&figure_columns, &values);

        let mut rows = Vec::new();
        for (index, cell) in self.cells().iter().enumerate() {
            let transport = cell.transport(self.flow);
            let mut cells = vec![row_name(cell, &transport.label)];
            cells.extend(answer_columns.iter().map(|column| column.texts[index].clone()));
            cells.extend(values[index].iter().zip(&scales).map(|(value, scale)| scale.text(*value)));
            let is_best = self.verdict.is_some_and(|verdict| verdict.best_cells.contains(&index));
            let role = if is_best { Role::Best } else { Role::Plain };
            rows.push(Row { cells, role, display: Some(transport.display) });
        }

        let mut columns = vec![Column::words("transport")];
        columns.extend(answer_columns.into_iter().map(|column| column.head));
        columns.extend(figure_columns.into_iter().map(|column| column.head));
        Grid { columns, rows }
    }

    fn cells(&self) -> &[CellView<'_>] {
        &self.condition.cells
    }

    /// The name of the compared flow in `cell`. If the flow has copies, it is the name of the worst copy.
    fn own_flow<'c>(&'c self, cell: &CellView<'c>) -> &'c str {
        cell.resolve(self.flow).unwrap_or(self.flow)
    }

    fn value(&self, cell: &CellView<'_>, column: &FigureColumn) -> Option<f64> {
        let flow = match &column.other_flow {
            Some(name) => name,
            None => self.own_flow(cell),
        };
        cell.value(flow, column.metric)
    }

    /// Whether `holds` is true of the compared flow in any cell.
    fn any_cell(&self, holds: impl Fn(&CellView<'_>, &str) -> bool) -> bool {
        self.cells().iter().any(|cell| holds(cell, self.own_flow(cell)))
    }

    fn any_cell_knows(&self, metric: Metric) -> bool {
        self.any_cell(|cell, flow| cell.value(flow, metric).is_some())
    }

    fn is_judged_by(&self, judged_by: JudgedBy) -> bool {
        self.verdict.is_some_and(|verdict| verdict.judged_by == judged_by)
    }

    /// The columns with figures of the compared flow.
    fn own_columns(&self) -> Vec<FigureColumn> {
        let kind = self.condition.delay_kind(self.flow);
        let is_call = self.any_cell_knows(Metric::NotPlayed);
        let ms = |metric, head| FigureColumn::new(metric, Scale::MS, head);
        let percent = |metric, head| FigureColumn::new(metric, Scale::PERCENT, head);
        let mut columns = Vec::new();
        if self.any_cell(opens_late) {
            columns.push(ms(Metric::Opening, Column::numbers(OPENS_AFTER, "ms")));
        }
        if is_call {
            columns.push(ms(Metric::MouthToEar50, Column::numbers("mouth to", "ear, ms")));
            columns.push(percent(Metric::NotPlayed, Column::numbers("late or", "missing %")));
        }
        for (quantile, name) in [(Quantile::P50, "p50"), (Quantile::P90, "p90"), (Quantile::P99, "p99")] {
            let head = Column::numbers(&format!("{}, ms", kind.name()), name);
            let head = if is_call { head.omit_order(5) } else { head };
            columns.push(ms(Metric::Delay(kind, quantile), head));
        }
        if self.any_cell_knows(Metric::TurnRound99) {
            columns.push(ms(Metric::TurnRound99, Column::numbers(TURN_ROUND, "p99").omit_order(6)));
        }
        columns.push(ms(Metric::Ipdv90, Column::numbers("jitter", "ms").omit_order(3)));
        let loss = Column::numbers("loss", "%");
        columns.push(percent(Metric::LossRate, if is_call { loss.omit_order(4) } else { loss }));
        if self.any_cell(|cell, flow| cell.many_unfinished(flow).is_some()) {
            columns.push(percent(Metric::Unfinished, Column::numbers(UNFINISHED, "%")));
        }
        if !is_call && self.verdict.is_none() && self.any_cell_knows(Metric::InTime) {
            columns.push(percent(Metric::InTime, Column::numbers(IN_TIME, "%")));
        }
        if !self.is_judged_by(JudgedBy::Goodput) {
            let head = Column::numbers("goodput", "kb/s").omit_order(2);
            columns.push(FigureColumn::new(Metric::GoodputBps, Scale::KBPS, head));
        }
        // The copies of a transfer share the path, so their figures together are shown, too.
        let is_transfer = !is_call && (self.verdict.is_none() || self.is_judged_by(JudgedBy::Goodput));
        let has_copies = self.any_cell(|cell, _| cell.groups().any(|group| group == self.flow));
        if is_transfer && has_copies {
            columns.extend(columns_of_copies(self.flow, "all flows", 0));
        }
        columns
    }

    /// The columns with figures of the flows that run at the same time. The answer quotes the same figures.
    fn other_flow_columns(&self) -> Vec<FigureColumn> {
        let mut columns = Vec::new();
        let others = self.condition.other_flows_by_group(self.flow);
        for (index, other) in others.iter().take(OTHER_FLOWS).enumerate() {
            // On a narrow terminal the columns of the second flow are left out first.
            let omit_order = u8::from(index > 0);
            match other {
                OtherFlow::Copies { group, flows } => {
                    let title = format!("{}, {} copies", short_name(group), count(*flows));
                    columns.extend(columns_of_copies(group, &title, omit_order));
                }
                OtherFlow::Single(name) => columns.extend(self.columns_of_other_flow(name, omit_order)),
            }
        }
        columns
    }

    fn columns_of_other_flow(&self, name: &str, omit_order: u8) -> Vec<FigureColumn> {
        let title = short_name(name);
        let column = |metric, scale, head: &str, omit_order| {
            let head = Column::numbers(&title, head).omit_order(omit_order);
            FigureColumn::new(metric, scale, head).of_other_flow(name)
        };
        match self.condition.judged_by(name) {
            Some(JudgedBy::Mos) => vec![column(Metric::Mos, Scale::SCORE, MOS, omit_order)],
            Some(JudgedBy::InTime) => {
                let kind = self.condition.delay_kind(name);
                let p99 = format!("p99 {}, ms", kind.abbreviation());
                vec![
                    column(Metric::InTime, Scale::PERCENT, "in time %", omit_order),
                    column(Metric::Delay(kind, Quantile::P99), Scale::MS, &p99, omit_order),
                ]
            }
            Some(JudgedBy::Goodput) | None => {
                let resent_omit_order = if omit_order == 0 { 4 } else { 1 };
                vec![
                    column(Metric::GoodputBps, Scale::MBPS, "Mb/s", omit_order),
                    column(Metric::RetransmitRate, Scale::PERCENT, "resent %", resent_omit_order),
                ]
            }
        }
    }

    /// The columns that the answer rests on. Without an answer there are none.
    fn answer_columns(&self) -> Vec<AnswerColumn> {
        let Some(verdict) = self.verdict else { return Vec::new() };
        let style = verdict::figure_style(verdict.judged_by);
        let answer = AnswerColumns { table: self, verdict, style };
        let mut columns = vec![answer.figure()];
        columns.extend(answer.figure_with_second_receiver());
        columns.extend(answer.usable());
        columns.extend(answer.difference());
        columns.extend(answer.two_outcomes());
        columns.extend(answer.queue_wait());
        columns
    }
}

/// Makes the columns that an answer rests on.
struct AnswerColumns<'a> {
    table: &'a ComparisonTable<'a>,
    verdict: &'a Verdict,
    style: FigureStyle,
}

impl AnswerColumns<'_> {
    /// The judged figure.
    fn figure(&self) -> AnswerColumn {
        let title = match self.verdict.second_receiver {
            Some(_) => OWN_RECEIVER,
            None => self.style.head.0,
        };
        let texts = self.texts(self.verdict, |standing| self.mean_or_both_outcomes(standing));
        AnswerColumn { head: Column::numbers(title, self.style.head.1), texts }
    }

    /// The judged figure with the second receiver of a call.
    fn figure_with_second_receiver(&self) -> Option<AnswerColumn> {
        let second = self.verdict.second_receiver.as_deref()?;
        let texts = self.texts(second, |standing| self.mean_or_both_outcomes(standing));
        Some(AnswerColumn { head: Column::numbers(OTHER_RECEIVER, self.style.head.1), texts })
    }

    /// Whether the flow is usable with each transport. A transfer is always usable, so it does not have this
    /// column.
    fn usable(&self) -> Option<AnswerColumn> {
        if self.verdict.judged_by == JudgedBy::Goodput {
            return None;
        }
        let mut texts = Vec::new();
        for cell in self.table.cells() {
            let usable_with = |receiver| {
                let judged = cell.judged_figures_with(self.table.flow, receiver);
                Usable::new(&judged).map(|usable| usable.text())
            };
            let second = match self.verdict.second_receiver {
                Some(_) => usable_with(Receiver::Other),
                None => None,
            };
            texts.push(match usable_with(Receiver::Own) {
                Some(own) => with_both(&own, second.as_deref()),
                None => UNKNOWN.to_owned(),
            });
        }
        Some(AnswerColumn { head: Column::numbers("", USABLE), texts })
    }

    /// The interval of the difference to the leader.
    fn difference(&self) -> Option<AnswerColumn> {
        if !self.any_standing(|standing| standing.difference.is_some()) {
            return None;
        }
        let texts = self.texts(self.verdict, |standing| match standing.difference {
            _ if standing.is_off_scale => UNKNOWN.to_owned(),
            Some((low, high)) => format!("{} to {}", self.style.signed(low), self.style.signed(high)),
            None => String::new(),
        });
        let leader = match self.table.cells().get(self.verdict.leader_cell) {
            Some(cell) => short_name(&cell.transport(self.table.flow).label),
            None => String::new(),
        };
        let head = Column::numbers(&format!("{VERSUS}{leader}"), "95 %").omit_order(6);
        Some(AnswerColumn { head, texts })
    }

    /// The two clusters of the repetitions, for transports that have two.
    fn two_outcomes(&self) -> Option<AnswerColumn> {
        if !self.any_standing(|standing| standing.clusters.is_some()) {
            return None;
        }
        let texts = self.texts(self.verdict, |standing| match &standing.clusters {
            Some(clusters) => both_outcomes(clusters, |figure| self.style.number(figure)),
            None => String::new(),
        });
        Some(AnswerColumn { head: Column::numbers(TWO_OUTCOMES, "(share)"), texts })
    }

    /// The wait in the queue that is the reason why nothing is usable.
    fn queue_wait(&self) -> Option<AnswerColumn> {
        let Some(Cause::Queue { link, .. }) = &self.verdict.cause else { return None };
        let cells = self.table.cells().iter();
        let texts = cells.map(|cell| fixed(verdict::wait(cell, link), 1)).collect();
        let head = Column::numbers(&format!("{WAIT_IN}{}", short_name(link)), "ms");
        Some(AnswerColumn { head, texts })
    }

    /// Writes the mean, or both outcomes if the repetitions fall into two clusters, because no repetition has
    /// the mean then.
    fn mean_or_both_outcomes(&self, standing: &Standing) -> String {
        match &standing.clusters {
            Some(clusters) => {
                format!("{} or {}", self.style.number(clusters.low), self.style.number(clusters.high))
            }
            None => self.style.number(standing.mean),
        }
    }

    fn any_standing(&self, holds: impl Fn(&Standing) -> bool) -> bool {
        self.verdict.ranking.standings.iter().any(holds)
    }

    /// Writes the text of each cell from the standing that the cell has in `verdict`. A cell that was not
    /// ranked has a dash. A cell whose connection did not open has a dash, too, because it has no score at
    /// all.
    fn texts(&self, verdict: &Verdict, text: impl Fn(&Standing) -> String) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, cell) in self.table.cells().iter().enumerate() {
            texts.push(match verdict.standing(index) {
                Some(standing) if !cell.is_unopened(self.table.flow) => text(standing),
                _ => UNKNOWN.to_owned(),
            });
        }
        texts
    }
}

/// The most other flows that have columns of their own; chosen.
const OTHER_FLOWS: usize = 2;

/// The columns with figures of all copies of `group` together. With an `omit_order` of 0 every table keeps
/// their goodput.
fn columns_of_copies(group: &str, title: &str, omit_order: u8) -> [FigureColumn; 3] {
    let column = |path, scale, head: &str, omit_order| {
        let head = Column::numbers(title, head).omit_order(omit_order);
        FigureColumn::new(Metric::Group(path), scale, head).of_other_flow(group)
    };
    [
        column("goodput_bps", Scale::MBPS, "Mb/s", omit_order),
        column("jain_index", Scale::INDEX, JAIN, omit_order.max(1)),
        column("retransmit_rate", Scale::PERCENT, "resent %", omit_order.max(4)),
    ]
}

/// The scale of each column. All columns in milliseconds have the same number of decimals, so that delays can
/// be compared across columns.
fn scales_with_same_decimals(columns: &[FigureColumn], rows: &[Vec<Option<f64>>]) -> Vec<Scale> {
    let mut longest_ms = 0.0_f64;
    for row in rows {
        for (column, value) in columns.iter().zip(row) {
            if column.scale == Scale::MS {
                longest_ms = longest_ms.max(value.unwrap_or(0.0).abs());
            }
        }
    }
    let ms_decimals = decimals(longest_ms);
    let scale = |column: &FigureColumn| {
        let decimals = column.scale.decimals.unwrap_or(ms_decimals);
        Scale { decimals: Some(decimals), ..column.scale }
    };
    columns.iter().map(scale).collect()
}
