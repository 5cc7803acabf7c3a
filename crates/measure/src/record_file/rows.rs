//! The rows of both tables, in the order in which they are written.

use std::sync::Arc;

use talkpath_units::Instant;

use crate::{Leg, MessageRecord, RunRecord, SeriesKind};

/// One message on one leg.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketRow {
    /// Index of the cell in the sweep.
    pub cell: u64,
    /// Repetition of the cell.
    pub repetition: u64,
    /// The flow's name.
    pub flow: Arc<str>,
    /// Which way it went.
    pub leg: Leg,
    /// The message.
    pub message: MessageRecord,
}

/// One change of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// Index of the cell in the sweep.
    pub cell: u64,
    /// Repetition of the cell.
    pub repetition: u64,
    /// The flow or link.
    pub entity: Arc<str>,
    /// What the quantity is.
    pub kind: SeriesKind,
    /// From when it holds.
    pub at: Instant,
    /// Its value, in the unit of `kind`.
    pub value: f64,
}

/// Rows that follow each other and have their first four columns in common.
pub(super) struct Stretch<'r, Row> {
    pub(super) cell: u64,
    pub(super) repetition: u64,
    /// The flow's, or that of what the series describes.
    pub(super) name: &'r str,
    /// The leg, or the kind of series.
    pub(super) word: &'static str,
    pub(super) rows: &'r [Row],
}

/// A repetition's messages: flow by flow in the scenario's order, forward leg first, each leg in order of
/// `seq`.
pub(super) fn message_stretches(record: &RunRecord) -> impl Iterator<Item = Stretch<'_, MessageRecord>> {
    record.flows.iter().flat_map(|flow| {
        let legs = [(Leg::Forward, Some(&flow.forward)), (Leg::Return, flow.echo.as_ref())];
        legs.into_iter().filter_map(|(leg, of_leg)| {
            let (name, rows) = (&flow.info.name, &of_leg?.messages);
            Some(Stretch { cell: record.cell, repetition: record.repetition, name, word: leg.name(), rows })
        })
    })
}

/// A repetition's series, one after the other.
pub(super) fn point_stretches(record: &RunRecord) -> impl Iterator<Item = Stretch<'_, (Instant, f64)>> {
    record.series.iter().map(|series| Stretch {
        cell: record.cell,
        repetition: record.repetition,
        name: &series.entity,
        word: series.kind.name(),
        rows: &series.points,
    })
}

/// The rows of a repetition's messages, as a reader of its file gives them.
pub fn packet_rows(record: &RunRecord) -> impl Iterator<Item = PacketRow> + '_ {
    message_stretches(record).flat_map(|stretch| {
        let flow = Arc::<str>::from(stretch.name);
        let leg = Leg::from_name(stretch.word).unwrap_or(Leg::Forward);
        stretch.rows.iter().map(move |&message| PacketRow {
            cell: stretch.cell,
            repetition: stretch.repetition,
            flow: Arc::clone(&flow),
            leg,
            message,
        })
    })
}

/// The rows of a repetition's series, as a reader of its file gives them.
pub fn series_rows(record: &RunRecord) -> impl Iterator<Item = SeriesRow> + '_ {
    record.series.iter().flat_map(move |series| {
        let entity = Arc::<str>::from(series.entity.as_str());
        series.points.iter().map(move |&(at, value)| SeriesRow {
            cell: record.cell,
            repetition: record.repetition,
            entity: Arc::clone(&entity),
            kind: series.kind,
            at,
            value,
        })
    })
}
