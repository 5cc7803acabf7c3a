//! The table that compares transports, with one row for each cell of a condition.
//!
//! The *compared flow* is the flow whose transports are compared. The *other flows* run at the same time. The
//! columns that the answer rests on are first, and the columns with figures follow.
//!
//! Begin to read with [`ComparisonTables`].

use talkpath_measure::figures::Scale;
use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::Standing;
use talkpath_measure::summary::JudgedBy;

use super::titles::{OWN_RECEIVER, OpeningColumn, both_outcomes, opening_columns, row_name, short_name};
use crate::condition::{Condition, OtherFlow};
use crate::grid::{Column, Grid, Role, Row};
use crate::metric::{Metric, Quantile};
use crate::number::{UNKNOWN, count, decimals, fixed};
use crate::receiver::wait_text;
use crate::term::{Term, Topic};
use crate::terms::ComparedMeanings;
use crate::terms::meanings::{delay, unfinished};
use crate::usable::{Usable, with_both};
use crate::verdict::{self, Cause, FigureStyle, JudgedFlow, Verdict};
use crate::view::{CellView, is_of_program};

/// At most 2 other flows have columns. We chose 2 because an answer describes as many.
const MAX_OTHER_FLOWS: usize = 2;

/// The tables that compare the transports of a flow, one for each condition.
pub(crate) struct ComparisonTables<'a> {
    /// The flow whose transports are compared.
    flow: &'a str,
    meanings: ComparedMeanings,
}

impl<'a> ComparisonTables<'a> {
    pub(crate) fn new(judged: &JudgedFlow<'a>) -> Self {
        Self { flow: judged.flow, meanings: ComparedMeanings::new(judged) }
    }

    /// Makes the table of a condition. Without a `verdict` there is no answer.
    pub(crate) fn grid(&self, condition: &Condition<'_>, verdict: Option<&Verdict>) -> Grid {
        ComparisonTable { condition, flow: self.flow, verdict, meanings: &self.meanings }.grid()
    }
}

struct ComparisonTable<'a> {
    condition: &'a Condition<'a>,
    flow: &'a str,
    verdict: Option<&'a Verdict>,
    meanings: &'a ComparedMeanings,
}

/// A column that the answer rests on.
struct AnswerColumn {
    head: Column,
    /// One text for each cell of the condition.
    texts: Vec<String>,
}

/// A column that shows one metric. All that is known of the column stands where the column is made: its head,
/// its unit, its figure, when a narrow terminal leaves it out, and its word in the legend.
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

    /// Explains `name` in the legend by the definition of the metric.
    fn defined_as(self, name: &'static str, topic: Topic) -> Self {
        let term = self.metric.term(name).about(topic);
        self.explained(term)
    }

    fn explained(self, term: Term) -> Self {
        Self { head: self.head.explained(term), ..self }
    }
}

impl ComparisonTable<'_> {
    fn grid(&self) -> Grid {
        let answer_columns = self.answer_columns();
        let mut figure_columns = self.compared_flow_columns();
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
    fn compared_flow<'c>(&'c self, cell: &CellView<'c>) -> &'c str {
        cell.resolve(self.flow).unwrap_or(self.flow)
    }

    fn value(&self, cell: &CellView<'_>, column: &FigureColumn) -> Option<f64> {
        let flow = match &column.other_flow {
            Some(name) => name,
            None => self.compared_flow(cell),
        };
        cell.value(flow, column.metric)
    }

    /// Whether `holds` is true for the compared flow in any cell.
    fn any_cell(&self, holds: impl Fn(&CellView<'_>, &str) -> bool) -> bool {
        self.cells().iter().any(|cell| holds(cell, self.compared_flow(cell)))
    }

    fn any_cell_knows(&self, metric: Metric) -> bool {
        self.any_cell(|cell, flow| cell.value(flow, metric).is_some())
    }

    fn is_judged_by(&self, judged_by: JudgedBy) -> bool {
        self.verdict.is_some_and(|verdict| verdict.judged_by == judged_by)
    }

    fn compared_flow_columns(&self) -> Vec<FigureColumn> {
        let is_call = self.any_cell_knows(Metric::NOT_PLAYED);
        let mut columns = Vec::new();
        for OpeningColumn { head, metric } in opening_columns(&|holds| self.any_cell(holds)) {
            columns.push(FigureColumn::new(metric, Scale::MS, head));
        }
        if is_call {
            let head = Column::numbers("mouth to", "ear, ms");
            let column = FigureColumn::new(Metric::MOUTH_TO_EAR_P50, Scale::MS, head);
            columns.push(column.defined_as("mouth to ear", Topic::Playout));
            let head = Column::numbers("late or", "missing %").explained(self.meanings.late.clone());
            columns.push(FigureColumn::new(Metric::NOT_PLAYED, Scale::PERCENT, head));
        }
        columns.extend(self.delay_columns(is_call));
        let head = Column::numbers("jitter", "ms").omit_order(3);
        let column = FigureColumn::new(Metric::IPDV_P90, Scale::MS, head);
        columns.push(column.defined_as("jitter", Topic::Jitter));
        let head = Column::numbers("loss", "%").explained(self.meanings.loss.clone());
        let head = if is_call { head.omit_order(4) } else { head };
        columns.push(FigureColumn::new(Metric::LOSS_RATE, Scale::PERCENT, head));
        if self.any_cell(|cell, flow| cell.many_unfinished(flow).is_some()) {
            let head = Column::numbers("unfinished", "%").explained(unfinished());
            columns.push(FigureColumn::new(Metric::UNFINISHED, Scale::PERCENT, head));
        }
        if !is_call && self.verdict.is_none() && self.any_cell_knows(Metric::IN_TIME) {
            let head = Column::numbers("in time", "%");
            columns.push(FigureColumn::new(Metric::IN_TIME, Scale::PERCENT, head));
        }
        if !self.is_judged_by(JudgedBy::Goodput) {
            let head = Column::numbers("goodput", "kb/s").omit_order(2);
            let column = FigureColumn::new(Metric::GOODPUT, Scale::KBPS, head);
            columns.push(column.defined_as("goodput", Topic::Goodput));
        }
        // The copies of a transfer share the path, so their figures together are shown, too.
        let is_transfer = !is_call && (self.verdict.is_none() || self.is_judged_by(JudgedBy::Goodput));
        let has_copies = self.any_cell(|cell, _| cell.groups().any(|group| group == self.flow));
        if is_transfer && has_copies {
            columns.extend(columns_of_copies(self.flow, "all flows", 0));
        }
        columns
    }

    /// The columns with the delays of the compared flow.
    fn delay_columns(&self, is_call: bool) -> Vec<FigureColumn> {
        let kind = self.condition.delay_kind(self.flow);
        let has_program = self.any_cell(|cell, flow| cell.flow(flow).is_some_and(is_of_program));
        let mut columns = Vec::new();
        // A call is hurt by its longest delays, so a narrow terminal keeps these.
        let quantiles = [(Quantile::P50, "p50", 6), (Quantile::P90, "p90", 7), (Quantile::P99, "p99", 8)];
        for (quantile, name, omit_order) in quantiles {
            let head = Column::numbers(&format!("{}, ms", kind.name()), name);
            let head = head.explained(delay(kind.name(), kind, has_program));
            let head = if is_call { head.omit_order(omit_order) } else { head };
            columns.push(FigureColumn::new(Metric::delay(kind, quantile), Scale::MS, head));
        }
        if self.any_cell_knows(Metric::TURN_ROUND_P99) {
            let head = Column::numbers("turn-round, ms", "p99").omit_order(10);
            let column = FigureColumn::new(Metric::TURN_ROUND_P99, Scale::MS, head);
            columns.push(column.defined_as("turn-round", Topic::Delay));
        }
        columns
    }

    /// The columns with figures of the flows that run at the same time. The answer quotes the same figures.
    fn other_flow_columns(&self) -> Vec<FigureColumn> {
        let mut columns = Vec::new();
        let others = self.condition.other_flows_by_group(self.flow);
        for (index, other) in others.iter().take(MAX_OTHER_FLOWS).enumerate() {
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
            Some(JudgedBy::Mos) => vec![column(Metric::MOS, Scale::SCORE, "MOS", omit_order)],
            Some(JudgedBy::Heard) => {
                vec![column(Metric::CONCEALED, Scale::PERCENT, "concealed %", omit_order)]
            }
            Some(JudgedBy::InTime) => {
                let kind = self.condition.delay_kind(name);
                let p99 = format!("p99 {}, ms", kind.abbreviation());
                vec![
                    column(Metric::IN_TIME, Scale::PERCENT, "in time %", omit_order),
                    column(Metric::delay(kind, Quantile::P99), Scale::MS, &p99, omit_order),
                ]
            }
            Some(JudgedBy::Goodput) | None => {
                let resent_omit_order = if omit_order == 0 { 5 } else { 1 };
                vec![
                    column(Metric::GOODPUT, Scale::MBPS, "Mb/s", omit_order),
                    column(Metric::RETRANSMIT_RATE, Scale::PERCENT, "resent %", resent_omit_order)
                        .defined_as("resent", Topic::Resent),
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
            None => self.style.column_group,
        };
        let texts = self.texts(self.verdict, |standing| self.mean_or_both_outcomes(standing));
        let head = Column::numbers(title, self.style.column_head);
        AnswerColumn { head: head.explained(self.table.meanings.judged_figure.clone()), texts }
    }

    /// The judged figure with the second receiver of a call.
    fn figure_with_second_receiver(&self) -> Option<AnswerColumn> {
        let second = self.verdict.second_receiver.as_deref()?;
        let texts = self.texts(second, |standing| self.mean_or_both_outcomes(standing));
        Some(AnswerColumn {
            head: Column::numbers(wait_text(second.receiver), self.style.column_head),
            texts,
        })
    }

    /// Whether the flow is usable with each transport. A transfer and a call that is not rated have no floor,
    /// so they do not have this column.
    fn usable(&self) -> Option<AnswerColumn> {
        if !self.verdict.judged_by.has_floor() {
            return None;
        }
        let mut texts = Vec::new();
        for cell in self.table.cells() {
            let usable_with = |receiver| {
                let judged = cell.judged_figures_with(self.table.flow, receiver);
                Usable::new(&judged).map(|usable| usable.text())
            };
            let second = self.verdict.second_receiver.as_ref();
            let second = second.and_then(|second| usable_with(second.receiver));
            texts.push(match usable_with(Receiver::Own) {
                Some(own) => with_both(&own, second.as_deref()),
                None => UNKNOWN.to_owned(),
            });
        }
        Some(AnswerColumn { head: Column::numbers("", "usable"), texts })
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
        let head = Column::numbers(&format!("vs {leader}"), "95 %").omit_order(9);
        Some(AnswerColumn { head: head.explained(self.table.meanings.difference.clone()), texts })
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
        let meaning = "the repetitions fall into two clusters (Hartigan's dip test, 1 %): the mean of each, and its share; \
                       `usable` is a share, too, if the floor lies between them";
        let term = Term::new("two outcomes", meaning).about(Topic::JudgedFigure);
        Some(AnswerColumn { head: Column::numbers("two outcomes", "(share)").explained(term), texts })
    }

    /// The wait in the queue that is the reason why nothing is usable.
    fn queue_wait(&self) -> Option<AnswerColumn> {
        let Some(Cause::Queue { link, .. }) = &self.verdict.cause else { return None };
        let cells = self.table.cells().iter();
        let texts = cells.map(|cell| fixed(verdict::wait(cell, link), 1)).collect();
        let head = Column::numbers(&format!("wait in {}", short_name(link)), "ms");
        let term = Term::new("wait", "median time in that link's queue").about(Topic::Ranking);
        Some(AnswerColumn { head: head.explained(term), texts })
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

/// The columns with figures of all copies of `group` together. With an `omit_order` of 0 every table keeps
/// their goodput.
fn columns_of_copies(group: &str, title: &str, omit_order: u8) -> [FigureColumn; 3] {
    let column = |path, scale, head: &str, omit_order| {
        let head = Column::numbers(title, head).omit_order(omit_order);
        FigureColumn::new(Metric::Group(path), scale, head).of_other_flow(group)
    };
    [
        column("goodput_bps", Scale::MBPS, "Mb/s", omit_order),
        column("jain_index", Scale::INDEX, "Jain's index", omit_order.max(1))
            .defined_as("Jain's index", Topic::Fairness),
        // A share of each copy's packets, as in the columns of a single flow.
        column("retransmit_rate", Scale::PERCENT, "resent %", omit_order.max(5))
            .explained(Metric::RETRANSMIT_RATE.term("resent").about(Topic::Resent)),
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
