//! The record files: `packets.parquet` with a row for each message, and `series.parquet` with a row for each
//! change of a state.
//!
//! ```text
//! RunRecord ─ write_packets ─► part (repetition 0) ┐
//! RunRecord ─ write_packets ─► part (repetition 1) ┴ merge_packets ─► packets.parquet ─ read_packets ─► rows
//! ```
//!
//! A *part* holds one repetition and is a complete file. So the finished repetitions of a run can be read
//! even if the run is killed. A merge copies the row groups of the parts without a change. The bytes of a
//! file depend only on the records and on the order of the parts.
//!
//! This module encodes the columns (`columns.rs`), and the parquet library puts the file together. The
//! encodings are plain, dictionary (RLE_DICTIONARY) and DELTA_BINARY_PACKED. There is no compression:
//! differences between neighbouring times are small, and packing them leaves little to gain for a compressor
//! (docs/reference/metrics.md has the figures). Each file names its table and its version, and the reader
//! refuses a version that it does not know. There are no page indexes and no bloom filters, because these
//! only help to find single rows.
//!
//! Begin to read with `writer.rs` and `reader.rs`.

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
