//! The rows of both tables, in the order in which they are written.
//!
//! A *stretch* is a sequence of rows that have their first four columns in common.

use std::sync::Arc;

use talkpath_units::Instant;

use crate::{Leg, MessageRecord, RunRecord, SeriesKind};

/// A row of packets.parquet: one message on one leg.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketRow {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The number of the repetition.
    pub repetition: u64,
    /// The flow's name.
    pub flow: Arc<str>,
    /// The direction of the message.
    pub leg: Leg,
    /// The message.
    pub message: MessageRecord,
}

/// A row of series.parquet: one change of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// The index of the cell in the sweep.
    pub cell: u64,
    /// The number of the repetition.
    pub repetition: u64,
    /// The name of the flow or link.
    pub entity: Arc<str>,
    /// The quantity.
    pub kind: SeriesKind,
    /// The time of the change.
    pub at: Instant,
    /// The value from `at` on, in the unit of `kind`.
    pub value: f64,
}

/// Rows that follow each other and have the same first four columns.
pub(super) struct Stretch<'r, Row> {
    pub(super) cell: u64,
    pub(super) repetition: u64,
    /// The name of the flow or link.
    pub(super) name: &'r str,
    /// The name of the leg, or of the quantity.
    pub(super) word: &'static str,
    pub(super) rows: &'r [Row],
}

/// Returns the messages of a repetition. The flows are in the order of the scenario, the forward leg of a
/// flow comes before the echoes, and each leg is in the order of `seq`.
pub(super) fn message_stretches(record: &RunRecord) -> impl Iterator<Item = Stretch<'_, MessageRecord>> {
    record.flows.iter().flat_map(|flow| {
        let legs = [(Leg::Forward, Some(&flow.forward)), (Leg::Return, flow.echo.as_ref())];
        legs.into_iter().filter_map(|(leg, leg_record)| {
            let (name, rows) = (&flow.info.name, &leg_record?.messages);
            Some(Stretch { cell: record.cell, repetition: record.repetition, name, word: leg.name(), rows })
        })
    })
}

/// Returns the series of a repetition, one after the other.
pub(super) fn point_stretches(record: &RunRecord) -> impl Iterator<Item = Stretch<'_, (Instant, f64)>> {
    record.series.iter().map(|series| Stretch {
        cell: record.cell,
        repetition: record.repetition,
        name: &series.entity,
        word: series.kind.name(),
        rows: &series.points,
    })
}

/// Returns the rows of packets.parquet of a repetition, as the reader of the file returns them.
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

/// Returns the rows of series.parquet of a repetition, as the reader of the file returns them.
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
