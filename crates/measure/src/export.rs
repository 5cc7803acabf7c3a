//! Writes flat tables for other tools: a header, and rows with one value in each field. A table is written as
//! CSV (RFC 4180), as JSON lines or as Parquet.
//!
//! A table is written row by row. CSV and JSON lines keep one row in memory, and Parquet keeps one row group.
//!
//! Begin to read with [`TableWriter`]. The columns of the two tables of records are in `export/rows.rs`.

mod field;
mod parquet_table;
mod rows;

use std::borrow::Cow;
use std::io::{self, Write};

use talkpath_units::{is_printable, printable};

pub use self::field::{Column, ColumnKind, Field};
use self::parquet_table::ParquetTable;
pub use self::rows::{message_columns, message_row, series_columns, series_row};
use crate::record_file::RecordError;

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// A header, and a line for each row.
    Csv,
    /// A JSON object on a line for each row.
    Jsonl,
    /// Parquet without compression.
    Parquet,
}

/// Writes a table.
pub struct TableWriter<W: Write + Send> {
    columns: Vec<Column>,
    format: FormatWriter<W>,
}

enum FormatWriter<W: Write + Send> {
    Csv(W),
    Jsonl {
        out: W,
        /// The name of each column as a JSON key, with the colon.
        keys: Vec<String>,
    },
    Parquet(Box<ParquetTable<W>>),
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table, and writes its header if the format has one.
    ///
    /// # Errors
    /// Returns [`RecordError::Io`] if `out` cannot be written.
    pub fn new(columns: Vec<Column>, format: TableFormat, mut out: W) -> Result<Self, RecordError> {
        let format = match format {
            TableFormat::Csv => {
                let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                writeln!(out, "{}", names.join(","))?;
                FormatWriter::Csv(out)
            }
            TableFormat::Jsonl => {
                let keys = columns.iter().map(|column| format!("\"{}\":", column.name)).collect();
                FormatWriter::Jsonl { out, keys }
            }
            TableFormat::Parquet => FormatWriter::Parquet(Box::new(ParquetTable::new(&columns, out)?)),
        };
        Ok(Self { columns, format })
    }

    /// Writes a row with a field for each column. A field that is not of its column's kind is written as
    /// unknown, and so is a field that is absent.
    ///
    /// # Errors
    /// Returns [`RecordError::Io`] if the output cannot be written.
    pub fn row(&mut self, fields: &[Field]) -> Result<(), RecordError> {
        let absent = core::iter::repeat(&Field::Unknown);
        let fields = self.columns.iter().zip(fields.iter().chain(absent));
        match &mut self.format {
            FormatWriter::Csv(out) => {
                for (index, (column, field)) in fields.enumerate() {
                    if index > 0 {
                        out.write_all(b",")?;
                    }
                    write_csv(column.kind, field, out)?;
                }
                out.write_all(b"\n")?;
            }
            FormatWriter::Jsonl { out, keys } => {
                for (index, ((column, field), key)) in fields.zip(keys).enumerate() {
                    out.write_all(if index == 0 { b"{" } else { b"," })?;
                    out.write_all(key.as_bytes())?;
                    write_json(column.kind, field, out)?;
                }
                out.write_all(b"}\n")?;
            }
            FormatWriter::Parquet(table) => table.push(fields.map(|(_, field)| field))?,
        }
        Ok(())
    }

    /// Writes the rows that are still in memory, and ends the table.
    ///
    /// # Errors
    /// Returns [`RecordError::Io`] if the output cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        match self.format {
            FormatWriter::Csv(mut out) | FormatWriter::Jsonl { mut out, .. } => out.flush()?,
            FormatWriter::Parquet(table) => table.finish()?,
        }
        Ok(())
    }
}

fn write_csv(kind: ColumnKind, field: &Field, out: &mut impl Write) -> io::Result<()> {
    match field.if_of(kind) {
        Some(Field::Text(text)) => {
            let text = disarmed(text);
            // A text with a comma, a quotation mark or a line break is put in quotation marks, and each
            // quotation mark in it is doubled (RFC 4180 §2).
            if text.contains([',', '"', '\n']) {
                write!(out, "\"{}\"", text.replace('"', "\"\""))
            } else {
                out.write_all(text.as_bytes())
            }
        }
        Some(field) => write_json(kind, field, out),
        None => Ok(()),
    }
}

/// Returns `text` without the power to run something. Another host may have written the text.
///
/// A spreadsheet takes a text for a formula if it begins with certain characters. An apostrophe before the
/// text prevents this (OWASP, "CSV Injection"). Characters that control a terminal are escaped, except for
/// line feeds.
fn disarmed(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if !is_formula && text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<String> = text.split('\n').map(|line| printable(line, usize::MAX)).collect();
    let apostrophe = if is_formula { "'" } else { "" };
    Cow::Owned(format!("{apostrophe}{}", lines.join("\n")))
}

fn write_json(kind: ColumnKind, field: &Field, out: &mut impl Write) -> io::Result<()> {
    match field.if_of(kind) {
        Some(Field::Flag(flag)) => write!(out, "{flag}"),
        Some(Field::Integer(value)) if kind == ColumnKind::Number => {
            Ok(serde_json::to_writer(out, &(*value as f64))?)
        }
        Some(Field::Integer(value)) => write!(out, "{value}"),
        Some(Field::Unsigned(value)) => write!(out, "{value}"),
        Some(Field::Number(value)) => Ok(serde_json::to_writer(out, value)?),
        Some(Field::Text(text)) => Ok(serde_json::to_writer(out, &**text)?),
        Some(Field::Unknown) | None => out.write_all(b"null"),
    }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
