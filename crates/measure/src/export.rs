//! Text for other tools: the columns of `packets.parquet` as CSV (RFC 4180) and as JSON lines.

use std::io::Write;

use serde::Serialize;
use talkpath_units::Instant;

use crate::record_file::{PacketRow, RecordError};
use crate::{DropCause, Fate, Leg};

/// One row as both formats write it: the columns of `packets.parquet`, in their order.
#[derive(Serialize)]
struct Line<'a> {
    cell: u64,
    repetition: u64,
    flow: &'a str,
    leg: &'static str,
    seq: u64,
    size: u64,
    due_ns: u64,
    sent_ns: Option<u64>,
    wire_ns: Option<u64>,
    received_ns: Option<u64>,
    fate: &'static str,
    drop_cause: Option<&'static str>,
    copies: u32,
    transmissions: u32,
}

/// Writes a header and one line a row; a value that is not known is empty.
///
/// # Errors
/// The rows' own, and [`RecordError::Io`] from `out`.
pub fn export_csv(
    rows: impl IntoIterator<Item = Result<PacketRow, RecordError>>,
    mut out: impl Write,
) -> Result<(), RecordError> {
    writeln!(out, "{CSV_HEADER}")?;
    for row in rows {
        let row = row?;
        let line = Line::of(&row);
        let text = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            line.cell,
            line.repetition,
            quoted(line.flow),
            line.leg,
            line.seq,
            line.size,
            line.due_ns,
            text(line.sent_ns),
            text(line.wire_ns),
            text(line.received_ns),
            line.fate,
            line.drop_cause.unwrap_or_default(),
            line.copies,
            line.transmissions
        )?;
    }
    Ok(())
}

/// Writes one JSON object a row; a value that is not known is `null`.
///
/// # Errors
/// The rows' own, and [`RecordError::Io`] from `out`.
pub fn export_jsonl(
    rows: impl IntoIterator<Item = Result<PacketRow, RecordError>>,
    mut out: impl Write,
) -> Result<(), RecordError> {
    for row in rows {
        serde_json::to_writer(&mut out, &Line::of(&row?)).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

impl<'a> Line<'a> {
    fn of(row: &'a PacketRow) -> Self {
        let message = &row.message;
        Self {
            cell: row.cell,
            repetition: row.repetition,
            flow: &row.flow,
            leg: Leg::name(row.leg),
            seq: message.seq,
            size: message.size.get(),
            due_ns: message.due.as_nanos(),
            sent_ns: message.sent.map(Instant::as_nanos),
            wire_ns: message.wire.map(Instant::as_nanos),
            received_ns: message.received.map(Instant::as_nanos),
            fate: Fate::name(message.fate),
            drop_cause: message.drop_cause.map(DropCause::name),
            copies: message.copies,
            transmissions: message.transmissions,
        }
    }
}

/// RFC 4180 §2: a field with a comma, a quote or a line break stands in quotes, and its quotes are doubled.
fn quoted(field: &str) -> std::borrow::Cow<'_, str> {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}

const CSV_HEADER: &str = "cell,repetition,flow,leg,seq,size,due_ns,sent_ns,wire_ns,received_ns,fate,drop_cause,\
                          copies,transmissions";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_file::packet_rows;
    use crate::testing::{flow, run};

    type Rows = Vec<Result<PacketRow, RecordError>>;

    fn exported(export: fn(Rows, &mut Vec<u8>) -> Result<(), RecordError>) -> String {
        let mut call = flow(&[Some(30), None]);
        call.info.name = "a \"call\", up".to_owned();
        call.forward.messages[1].wire = None;
        let mut out = Vec::new();
        export(packet_rows(&run(vec![call])).map(Ok).collect(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_quotes_what_needs_quotes_and_leaves_the_unknown_empty() {
        let expected = "cell,repetition,flow,leg,seq,size,due_ns,sent_ns,wire_ns,received_ns,fate,drop_cause,copies,transmissions\n\
                        0,0,\"a \"\"call\"\", up\",forward,0,160,0,0,0,30000000,delivered,,1,1\n\
                        0,0,\"a \"\"call\"\", up\",forward,1,160,20000000,20000000,,,missing,queue,0,1\n";
        assert_eq!(exported(|rows, out| export_csv(rows, out)), expected);
    }

    #[test]
    fn json_lines_have_the_same_columns_in_the_same_order() {
        let text = exported(|rows, out| export_jsonl(rows, out));
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        let keys: Vec<_> = lines[1].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys.join(","), CSV_HEADER);
        assert_eq!(lines[1]["wire_ns"], serde_json::Value::Null);
        assert_eq!(lines[0]["received_ns"], 30_000_000);
    }
}
