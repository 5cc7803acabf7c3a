//! The comparison of transports: one row a cell.

use talkpath_measure::figures::Scale;
use talkpath_measure::judge::Receiver;
use talkpath_measure::ranking::Standing;
use talkpath_measure::summary::JudgedBy;

use super::titles::{
    CLUSTERS, DIFFERENCE, IN_TIME, JAIN, MOS, OPENS, OTHER_RECEIVER, OWN_RECEIVER, TURN_ROUND, UNFINISHED,
    USABLE, WAIT, opens_late, row_name, shares, short,
};
use crate::condition::{Condition, OtherFlow};
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count, decimals, fixed};
use crate::usable::{Usable, with_both};
use crate::verdict::{self, Cause, FigureStyle, Verdict};
use crate::view::{CellView, Metric, Quantile};

/// The comparison of transports: one row a cell. The columns of the answer come first.
pub(crate) fn comparison(condition: &Condition<'_>, flow: &str, verdict: Option<&Verdict>) -> Grid {
    Comparison { condition, flow, verdict }.grid()
}

struct Comparison<'a> {
    condition: &'a Condition<'a>,
    /// The flow that is compared.
    flow: &'a str,
    verdict: Option<&'a Verdict>,
}

/// A column of one figure.
struct FigureColumn {
    head: Column,
    metric: Metric,
    /// How the figure is written.
    scale: Scale,
    /// The flow that the figure is of, if that is not the compared one.
    neighbour: Option<String>,
}

/// A column that the answer rests on: its head, and a text for each cell.
struct AnswerColumn {
    head: Column,
    texts: Vec<String>,
}

impl FigureColumn {
    fn new(metric: Metric, scale: Scale, head: Column) -> Self {
        Self { head, metric, scale, neighbour: None }
    }

    fn of_neighbour(self, neighbour: &str) -> Self {
        Self { neighbour: Some(neighbour.to_owned()), ..self }
    }
}

impl Comparison<'_> {
    fn grid(&self) -> Grid {
        let answer = self.answer_columns();
        let mut figures = self.own_columns();
        figures.extend(self.neighbour_columns());
        let values: Vec<Vec<Option<f64>>> =
            self.cells().iter().map(|cell| figures.iter().map(|it| self.value(cell, it)).collect()).collect();
        let scales = written_scales(&figures, &values);
        let rows = self.cells().iter().enumerate().map(|(index, cell)| {
            let transport = cell.transport(self.flow);
            let name = row_name(cell, &transport.label);
            let answers = answer.iter().map(|column| column.texts[index].clone());
            let texts = values[index].iter().zip(&scales).map(|(value, scale)| scale.text(*value));
            let is_best = self.verdict.is_some_and(|verdict| verdict.best_cells.contains(&index));
            Row {
                cells: [name].into_iter().chain(answers).chain(texts).collect(),
                role: if is_best { Role::Best } else { Role::Plain },
                display: Some(transport.display),
            }
        });
        let rows = rows.collect();
        let heads = [Column::words("transport")].into_iter().chain(answer.into_iter().map(|it| it.head));
        Grid { columns: heads.chain(figures.into_iter().map(|column| column.head)).collect(), rows }
    }

    fn cells(&self) -> &[CellView<'_>] {
        &self.condition.cells
    }

    /// The compared flow in `cell`; if it has copies, the one that represents them.
    fn own_flow<'c>(&'c self, cell: &CellView<'c>) -> &'c str {
        cell.resolve(self.flow).unwrap_or(self.flow)
    }

    fn value(&self, cell: &CellView<'_>, column: &FigureColumn) -> Option<f64> {
        cell.value(column.neighbour.as_deref().unwrap_or_else(|| self.own_flow(cell)), column.metric)
    }

    fn is_known(&self, metric: Metric) -> bool {
        self.cells().iter().any(|cell| cell.value(self.own_flow(cell), metric).is_some())
    }

    fn is_judged_by(&self, by: JudgedBy) -> bool {
        self.verdict.is_some_and(|verdict| verdict.judged_by == by)
    }

    /// The figures of the compared flow.
    fn own_columns(&self) -> Vec<FigureColumn> {
        let kind = self.condition.delay_kind(self.flow);
        let is_call = self.is_known(Metric::NotPlayed);
        let any = |has: &dyn Fn(&CellView<'_>, &str) -> bool| {
            self.cells().iter().any(|cell| has(cell, self.own_flow(cell)))
        };
        let ms = |metric, head| FigureColumn::new(metric, Scale::MS, head);
        let percent = |metric, head| FigureColumn::new(metric, Scale::PERCENT, head);
        let mut columns = Vec::new();
        if any(&opens_late) {
            columns.push(ms(Metric::Opening, Column::numbers(OPENS, "ms")));
        }
        if is_call {
            columns.push(ms(Metric::MouthToEar50, Column::numbers("mouth to", "ear, ms")));
            columns.push(percent(Metric::NotPlayed, Column::numbers("late or", "missing %")));
        }
        for (quantile, name) in [(Quantile::P50, "p50"), (Quantile::P90, "p90"), (Quantile::P99, "p99")] {
            let head = Column::numbers(&format!("{}, ms", kind.name()), name);
            let head = if is_call { head.dispensable(5) } else { head };
            columns.push(ms(Metric::Delay(kind, quantile), head));
        }
        if self.is_known(Metric::TurnRound99) {
            columns.push(ms(Metric::TurnRound99, Column::numbers(TURN_ROUND, "p99").dispensable(6)));
        }
        columns.push(ms(Metric::Ipdv90, Column::numbers("jitter", "ms").dispensable(3)));
        let loss = Column::numbers("loss", "%");
        columns.push(percent(Metric::LossRate, if is_call { loss.dispensable(4) } else { loss }));
        if any(&|cell, flow| cell.many_unfinished(flow).is_some()) {
            columns.push(percent(Metric::Unfinished, Column::numbers(UNFINISHED, "%")));
        }
        if !is_call && self.verdict.is_none() && self.is_known(Metric::InTime) {
            columns.push(percent(Metric::InTime, Column::numbers(IN_TIME, "%")));
        }
        if !self.is_judged_by(JudgedBy::Goodput) {
            let head = Column::numbers("goodput", "kb/s").dispensable(2);
            columns.push(FigureColumn::new(Metric::GoodputBps, Scale::KBPS, head));
        }
        // Of transfers the copies together.
        let is_transfer = !is_call && (self.verdict.is_none() || self.is_judged_by(JudgedBy::Goodput));
        if is_transfer && any(&|cell, _| cell.groups().any(|group| group == self.flow)) {
            columns.extend(copies(self.flow, "all flows", 0));
        }
        columns
    }

    /// What the answer says of the flows beside the compared one.
    fn neighbour_columns(&self) -> Vec<FigureColumn> {
        let mut columns = Vec::new();
        for (index, other) in
            self.condition.other_flows_by_group(self.flow).iter().take(OTHER_FLOWS).enumerate()
        {
            // The second flow goes first.
            let rank = u8::from(index > 0);
            match other {
                OtherFlow::Copies { group, flows } => {
                    let title = format!("{}, {} copies", short(group), count(*flows));
                    columns.extend(copies(group, &title, rank));
                }
                OtherFlow::Single(name) => columns.extend(self.neighbour(name, rank)),
            }
        }
        columns
    }

    fn neighbour(&self, name: &str, rank: u8) -> Vec<FigureColumn> {
        let title = short(name);
        let column = |metric, scale, head: &str, rank| {
            let head = Column::numbers(&title, head).dispensable(rank);
            FigureColumn::new(metric, scale, head).of_neighbour(name)
        };
        match self.condition.judged_by(name) {
            Some(JudgedBy::Mos) => vec![column(Metric::Mos, Scale::SCORE, MOS, rank)],
            Some(JudgedBy::InTime) => {
                let kind = self.condition.delay_kind(name);
                let p99 = format!("p99 {}, ms", kind.abbreviation());
                vec![
                    column(Metric::InTime, Scale::PERCENT, "in time %", rank),
                    column(Metric::Delay(kind, Quantile::P99), Scale::MS, &p99, rank),
                ]
            }
            Some(JudgedBy::Goodput) | None => vec![
                column(Metric::GoodputBps, Scale::MBPS, "Mb/s", rank),
                column(Metric::RetransmitRate, Scale::PERCENT, "resent %", if rank == 0 { 4 } else { 1 }),
            ],
        }
    }

    /// What the answer rests on; nothing without an answer.
    fn answer_columns(&self) -> Vec<AnswerColumn> {
        let Some(verdict) = self.verdict else { return Vec::new() };
        let answer = Answer { comparison: self, verdict, style: verdict::figure_style(verdict.judged_by) };
        let columns = [
            Some(answer.figure()),
            answer.figure_with_second_receiver(),
            answer.usable(),
            answer.difference(),
            answer.two_outcomes(),
            answer.wait(),
        ];
        columns.into_iter().flatten().collect()
    }
}

/// What the answer of a comparison rests on.
struct Answer<'a> {
    comparison: &'a Comparison<'a>,
    verdict: &'a Verdict,
    style: FigureStyle,
}

impl Answer<'_> {
    /// The figure that the flow is judged by.
    fn figure(&self) -> AnswerColumn {
        let group = match self.verdict.second_receiver {
            Some(_) => OWN_RECEIVER,
            None => self.style.head.0,
        };
        let texts = self.texts(self.verdict, |standing| self.judged(standing));
        AnswerColumn { head: Column::numbers(group, self.style.head.1), texts }
    }

    fn figure_with_second_receiver(&self) -> Option<AnswerColumn> {
        // The cells of both answers are the same.
        let texts = self.texts(self.verdict.second_receiver.as_deref()?, |standing| self.judged(standing));
        Some(AnswerColumn { head: Column::numbers(OTHER_RECEIVER, self.style.head.1), texts })
    }

    /// Whether each transport is usable, with either receiver. Any goodput is.
    fn usable(&self) -> Option<AnswerColumn> {
        if self.verdict.judged_by == JudgedBy::Goodput {
            return None;
        }
        let flow = self.comparison.flow;
        let text = |cell: &CellView<'_>| {
            let with =
                |receiver| Usable::new(&cell.judged_figures_with(flow, receiver)).map(|usable| usable.text());
            let other = self.verdict.second_receiver.as_ref().and_then(|_| with(Receiver::Other));
            with(Receiver::Own).map_or_else(|| UNKNOWN.to_owned(), |own| with_both(&own, other.as_deref()))
        };
        let texts = self.comparison.cells().iter().map(text).collect();
        Some(AnswerColumn { head: Column::numbers("", USABLE), texts })
    }

    /// The interval of the difference to the leader.
    fn difference(&self) -> Option<AnswerColumn> {
        if !self.has(|standing| standing.difference.is_some()) {
            return None;
        }
        let texts = self.texts(self.verdict, |standing| match standing.difference {
            _ if standing.is_off_scale => UNKNOWN.to_owned(),
            Some((low, high)) => format!("{} to {}", self.style.signed(low), self.style.signed(high)),
            None => String::new(),
        });
        let leader = self.comparison.cells().get(self.verdict.leader_cell);
        let leader = leader.map(|cell| short(&cell.transport(self.comparison.flow).label));
        let title = format!("{DIFFERENCE}{}", leader.unwrap_or_default());
        Some(AnswerColumn { head: Column::numbers(&title, "95 %").dispensable(6), texts })
    }

    fn two_outcomes(&self) -> Option<AnswerColumn> {
        if !self.has(|standing| standing.clusters.is_some()) {
            return None;
        }
        let texts = self.texts(self.verdict, |standing| {
            let both = standing.clusters.map(|found| shares(&found, |value| self.style.number(value)));
            both.unwrap_or_default()
        });
        Some(AnswerColumn { head: Column::numbers(CLUSTERS, "(share)"), texts })
    }

    /// The wait that is the cause if nothing is usable.
    fn wait(&self) -> Option<AnswerColumn> {
        let Some(Cause::Queue { link, .. }) = &self.verdict.cause else { return None };
        let texts = self.comparison.cells().iter().map(|cell| fixed(verdict::wait(cell, link), 1)).collect();
        Some(AnswerColumn { head: Column::numbers(&format!("{WAIT}{}", short(link)), "ms"), texts })
    }

    /// The mean, or of two outcomes both: no repetition has their mean.
    fn judged(&self, standing: &Standing) -> String {
        let figure = |value| self.style.number(value);
        match standing.clusters {
            Some(found) => format!("{} or {}", figure(found.low), figure(found.high)),
            None => figure(standing.mean),
        }
    }

    fn has(&self, holds: impl Fn(&Standing) -> bool) -> bool {
        self.verdict.ranking.standings.iter().any(holds)
    }

    /// `text` of each cell's standing in `verdict`; a dash for a cell that is not judged, or whose connection
    /// did not open: it has no score, and not the worst one.
    fn texts(&self, verdict: &Verdict, text: impl Fn(&Standing) -> String) -> Vec<String> {
        let Comparison { flow, .. } = self.comparison;
        let cells = self.comparison.cells().iter().enumerate();
        let texts = cells.map(|(index, cell)| match verdict.standing(index) {
            Some(standing) if !cell.is_unopened(flow) => text(standing),
            _ => UNKNOWN.to_owned(),
        });
        texts.collect()
    }
}

/// How many flows beside the compared one get columns of their own.
const OTHER_FLOWS: usize = 2;

/// The copies of `group` together. A `rank` of 0 keeps their goodput in every table.
fn copies(group: &str, title: &str, rank: u8) -> [FigureColumn; 3] {
    let column = |path, scale, head: &str, rank| {
        let head = Column::numbers(title, head).dispensable(rank);
        FigureColumn::new(Metric::Group(path), scale, head).of_neighbour(group)
    };
    [
        column("goodput_bps", Scale::MBPS, "Mb/s", rank),
        column("jain_index", Scale::INDEX, JAIN, rank.max(1)),
        column("retransmit_rate", Scale::PERCENT, "resent %", rank.max(4)),
    ]
}

/// How each column is written: all milliseconds with the same decimals, so that delays can be compared across
/// columns.
fn written_scales(columns: &[FigureColumn], rows: &[Vec<Option<f64>>]) -> Vec<Scale> {
    let times = rows.iter().flat_map(|row| row.iter().zip(columns));
    let times = times.filter(|(_, column)| column.scale == Scale::MS).filter_map(|(value, _)| *value);
    let ms = decimals(times.fold(0.0, |largest: f64, value| largest.max(value.abs())));
    let scale =
        |column: &FigureColumn| Scale { decimals: Some(column.scale.decimals.unwrap_or(ms)), ..column.scale };
    columns.iter().map(scale).collect()
}
