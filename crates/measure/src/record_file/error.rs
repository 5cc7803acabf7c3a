//! The errors of record files.

use parquet::errors::ParquetError;

use super::schema::{RECORD_VERSION, VERSION_KEY};

/// Why a record file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is cut short or damaged, or it is not a parquet file.
    #[error("not a readable parquet file: {0}")]
    Parquet(ParquetError),
    /// The file is a parquet file that talkpath did not write.
    #[error("a parquet file without `{VERSION_KEY}` in its metadata: not a talkpath record")]
    NotARecord,
    /// The file has a record version that this version of talkpath does not know.
    #[error("record version {found}; this talkpath reads version {RECORD_VERSION}")]
    Version {
        /// The version that the file names.
        found: String,
    },
    /// The file holds the other table, or columns that this version does not have.
    #[error("expected the columns of the {expected} table, found {found}")]
    Columns {
        /// The expected table.
        expected: &'static str,
        /// The name of the file's table, and its columns.
        found: String,
    },
    /// Another program has compressed the file. talkpath reads what it writes, so that a small file cannot
    /// become a large one in memory.
    #[error(
        "column `{column}` is compressed ({codec}); talkpath reads record files without compression: write it again so \
         (in pyarrow `write_table(table, FILE, compression=\"none\", row_group_size={rows})`)",
        rows = super::schema::GROUP_ROWS
    )]
    Compressed {
        /// The first compressed column.
        column: String,
        /// The name of the compression.
        codec: String,
    },
    /// A column has a value that no record can hold, or the columns have different lengths.
    #[error("column `{column}`: {what}")]
    Damaged {
        /// The name of the column.
        column: String,
        /// What is wrong with the column.
        what: String,
    },
    /// Each row is valid, but together they do not form a run.
    #[error("flow `{flow}`: {what}")]
    Inconsistent {
        /// The name of the flow.
        flow: String,
        /// What is wrong with the flow.
        what: String,
    },
}

/// Why parts could not be merged into one file.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A part could not be read.
    #[error("part {index}: {why}")]
    Part {
        /// The index of the part, from 0.
        index: usize,
        /// The reason.
        why: RecordError,
    },
    /// The merged file could not be written.
    #[error("{0}")]
    Out(RecordError),
}

impl From<ParquetError> for RecordError {
    fn from(error: ParquetError) -> Self {
        match error {
            // An I/O error keeps its kind, so that the caller can recognise a full disk.
            ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => Self::Io(*io),
                Err(inner) => Self::Parquet(ParquetError::External(inner)),
            },
            error => Self::Parquet(error),
        }
    }
}
