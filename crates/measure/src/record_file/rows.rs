//! The rows of both tables, in the order in which they are written.

use std::sync::Arc;

use talkpath_units::Instant;

use crate::{Leg, LegRecord, MessageRecord, RunRecord, SeriesKind};

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

/// A repetition's messages: flow by flow in the scenario's order, forward leg first, each leg in order of
/// `seq`.
pub fn packet_rows(record: &RunRecord) -> impl Iterator<Item = PacketRow> + '_ {
    record.flows.iter().flat_map(move |flow| {
        let name: Arc<str> = flow.info.name.as_str().into();
        let legs = [(Leg::Forward, Some(&flow.forward)), (Leg::Return, flow.echo.as_ref())];
        legs.into_iter().flat_map(move |(leg, record_of_leg)| {
            let name = Arc::clone(&name);
            let messages = record_of_leg.map_or(&[][..], |leg: &LegRecord| &leg.messages);
            messages.iter().map(move |&message| PacketRow {
                cell: record.cell,
                repetition: record.repetition,
                flow: Arc::clone(&name),
                leg,
                message,
            })
        })
    })
}

/// A repetition's series, one after the other.
pub fn series_rows(record: &RunRecord) -> impl Iterator<Item = SeriesRow> + '_ {
    record.series.iter().flat_map(move |series| {
        let entity: Arc<str> = series.entity.as_str().into();
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
