//! What can be wrong with a record file.

use parquet::errors::ParquetError;

use super::schema::{RECORD_VERSION, VERSION_KEY};

/// Why a record file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is cut short, damaged, or no parquet file.
    #[error("not a readable parquet file: {0}")]
    Parquet(ParquetError),
    /// A parquet file that talkpath did not write.
    #[error("a parquet file without `{VERSION_KEY}` in its metadata: not a talkpath record")]
    NotARecord,
    /// Written by a version that this one does not know.
    #[error("record version {found}; this talkpath reads version {RECORD_VERSION}")]
    Version {
        /// The version that the file names.
        found: String,
    },
    /// The other table, or columns that this version does not have.
    #[error("expected the columns of the {expected} table, found {found}")]
    Columns {
        /// The table that was wanted.
        expected: &'static str,
        /// What the file calls itself, and its columns.
        found: String,
    },
    /// A value that no record can hold, or columns of unequal length.
    #[error("column `{column}`: {what}")]
    Damaged {
        /// The column's name.
        column: String,
        /// What is wrong with it.
        what: String,
    },
    /// The rows are sound and do not make a run.
    #[error("flow `{flow}`: {what}")]
    Inconsistent {
        /// The flow's name.
        flow: String,
        /// What is wrong with it.
        what: String,
    },
}

/// Why parts could not be merged into one file.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A part could not be read.
    #[error("part {index}: {why}")]
    Part {
        /// Its place among the parts, from 0.
        index: usize,
        /// What is wrong with it.
        why: RecordError,
    },
    /// The merged file could not be written.
    #[error("{0}")]
    Out(RecordError),
}

impl From<ParquetError> for RecordError {
    fn from(error: ParquetError) -> Self {
        match error {
            // An error of the writer or reader underneath keeps its kind, so that "no space left" can be
            // recognised.
            ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => Self::Io(*io),
                Err(inner) => Self::Parquet(ParquetError::External(inner)),
            },
            error => Self::Parquet(error),
        }
    }
}
