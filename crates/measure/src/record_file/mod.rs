//! The record files: `packets.parquet`, one row a message, and `series.parquet`, one row a change.
//!
//! ```text
//! RunRecord ─ write_packets ─► part (repetition 0) ┐
//! RunRecord ─ write_packets ─► part (repetition 1) ┴ merge_packets ─► packets.parquet ─ read_packets ─► rows
//! ```
//!
//! A part is a whole file of its own, so a run killed at any moment leaves the finished repetitions readable;
//! merging copies their row groups as they are. The bytes depend on the records and on the order of the parts
//! alone.
//!
//! The rows become columns here (`columns.rs`), and the library puts the file together around them. Files are
//! written after the Apache Parquet format with plain, dictionary (RLE_DICTIONARY) and
//! DELTA_BINARY_PACKED encodings and without compression: differences of neighbouring stamps are small, and
//! packing them leaves a general compressor little to do (docs/reference/metrics.md has the figures). Each
//! file names its table and its version; a reader refuses a version that it does not know. Left out: page
//! indexes and bloom filters, which serve queries for single rows.

mod chunk;
mod columns;
mod error;
mod headers;
mod pages;
mod part_file;
mod reader;
mod restore;
mod rows;
mod schema;
mod writer;

pub use error::{MergeError, RecordError};
pub use parquet::file::reader::ChunkReader;
pub use part_file::PartFile;
pub use reader::{PacketRows, SeriesRows, read_packets, read_series};
pub use restore::restore_runs;
pub use rows::{PacketRow, SeriesRow, packet_rows, series_rows};
pub use schema::RECORD_VERSION;
pub use writer::{merge_packets, merge_series, write_packets, write_series};

#[cfg(test)]
mod tests;
