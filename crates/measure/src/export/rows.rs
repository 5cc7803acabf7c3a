//! The columns of the tables of messages and of series. They are the columns of packets.parquet and
//! series.parquet, with the swept values behind the number of the repetition.

use talkpath_units::Instant;

use super::field::{Column, ColumnKind, Field};
use crate::record_file::{PacketRow, SeriesRow};
use crate::{DropCause, Fate, Leg, SeriesKind};

/// A column of a table, and the field that each item of type `T` has in it.
struct TableColumn<T> {
    name: &'static str,
    kind: ColumnKind,
    field: fn(&T) -> Field,
}

const fn integer<T>(name: &'static str, field: fn(&T) -> Field) -> TableColumn<T> {
    TableColumn { name, kind: ColumnKind::Integer, field }
}

const fn number<T>(name: &'static str, field: fn(&T) -> Field) -> TableColumn<T> {
    TableColumn { name, kind: ColumnKind::Number, field }
}

const fn text<T>(name: &'static str, field: fn(&T) -> Field) -> TableColumn<T> {
    TableColumn { name, kind: ColumnKind::Text, field }
}

/// How many columns come before the swept values.
const SWEPT_COLUMNS_AT: usize = 2;

const MESSAGE_COLUMNS: [TableColumn<PacketRow>; 14] = [
    integer("cell", |packet| Field::integer(packet.cell)),
    integer("repetition", |packet| Field::integer(packet.repetition)),
    text("flow", |packet| Field::Text(packet.flow.clone())),
    text("leg", |packet| Field::text(Leg::name(packet.leg))),
    integer("seq", |packet| Field::integer(packet.message.seq)),
    integer("size", |packet| Field::integer(packet.message.size.get())),
    integer("due_ns", |packet| instant(Some(packet.message.due))),
    integer("sent_ns", |packet| instant(packet.message.sent)),
    integer("wire_ns", |packet| instant(packet.message.wire)),
    integer("received_ns", |packet| instant(packet.message.received)),
    text("fate", |packet| Field::text(Fate::name(packet.message.fate))),
    text("drop_cause", |packet| {
        packet.message.drop_cause.map(DropCause::name).map_or(Field::Unknown, Field::text)
    }),
    integer("copies", |packet| Field::integer(packet.message.copies.into())),
    integer("transmissions", |packet| Field::integer(packet.message.transmissions.into())),
];

const SERIES_COLUMNS: [TableColumn<SeriesRow>; 6] = [
    integer("cell", |point| Field::integer(point.cell)),
    integer("repetition", |point| Field::integer(point.repetition)),
    text("entity", |point| Field::Text(point.entity.clone())),
    text("kind", |point| Field::text(SeriesKind::name(point.kind))),
    integer("time_ns", |point| instant(Some(point.at))),
    number("value", |point| Field::Number(point.value)),
];

/// Returns the columns of the table of messages. `swept` has the columns of the swept values.
pub fn message_columns(swept: &[Column]) -> Vec<Column> {
    columns(&MESSAGE_COLUMNS, swept)
}

/// Replaces the fields in `row` by those of a message, in the order of [`message_columns`].
pub fn message_row(packet: &PacketRow, swept: &[Field], row: &mut Vec<Field>) {
    fill_row(&MESSAGE_COLUMNS, packet, swept, row);
}

/// Returns the columns of the table of series. `swept` has the columns of the swept values.
pub fn series_columns(swept: &[Column]) -> Vec<Column> {
    columns(&SERIES_COLUMNS, swept)
}

/// Replaces the fields in `row` by those of a point of a series, in the order of [`series_columns`].
pub fn series_row(point: &SeriesRow, swept: &[Field], row: &mut Vec<Field>) {
    fill_row(&SERIES_COLUMNS, point, swept, row);
}

fn columns<T>(table: &[TableColumn<T>], swept: &[Column]) -> Vec<Column> {
    let (before, after) = table.split_at(SWEPT_COLUMNS_AT);
    let column = |column: &TableColumn<T>| Column::new(column.name, column.kind);
    before.iter().map(column).chain(swept.iter().cloned()).chain(after.iter().map(column)).collect()
}

fn fill_row<T>(table: &[TableColumn<T>], item: &T, swept: &[Field], row: &mut Vec<Field>) {
    let (before, after) = table.split_at(SWEPT_COLUMNS_AT);
    row.clear();
    row.extend(before.iter().map(|column| (column.field)(item)));
    row.extend_from_slice(swept);
    row.extend(after.iter().map(|column| (column.field)(item)));
}

fn instant(at: Option<Instant>) -> Field {
    at.map_or(Field::Unknown, |at| Field::integer(at.as_nanos()))
}
