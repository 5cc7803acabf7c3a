//! The columns of the two tables, and the version of the record files.

use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;

/// The version of both tables. A change of a column's name, type or meaning raises it. The reader of the old
/// version and a sample file of that version then stay in the repository.
pub const RECORD_VERSION: u32 = 1;

/// The metadata key that holds [`RECORD_VERSION`].
pub(super) const VERSION_KEY: &str = "talkpath.record_version";

/// The metadata key that holds the table's name.
pub(super) const TABLE_KEY: &str = "talkpath.table";

/// The prefix of the metadata keys that hold units: `talkpath.unit.due_ns` is `ns`.
pub(super) const UNIT_KEY: &str = "talkpath.unit.";

/// The columns of a record file.
pub(super) struct Table {
    /// The name of the table in the metadata.
    pub(super) name: &'static str,
    /// The columns in Parquet's own language.
    schema: &'static str,
    /// The unit of each column that has one. The unit of `value` depends on the row's `kind`, so there is a
    /// unit for each kind.
    pub(super) units: &'static [(&'static str, &'static str)],
}

/// `packets.parquet`.
pub(super) const PACKETS: Table = Table {
    name: "packets",
    schema: "message packets {
        REQUIRED INT64 cell;
        REQUIRED INT64 repetition;
        REQUIRED BYTE_ARRAY flow (STRING);
        REQUIRED BYTE_ARRAY leg (STRING);
        REQUIRED INT64 seq;
        REQUIRED INT64 size;
        REQUIRED INT64 due_ns;
        OPTIONAL INT64 sent_ns;
        OPTIONAL INT64 wire_ns;
        OPTIONAL INT64 received_ns;
        REQUIRED BYTE_ARRAY fate (STRING);
        OPTIONAL BYTE_ARRAY drop_cause (STRING);
        REQUIRED INT64 copies;
        REQUIRED INT64 transmissions;
    }",
    units: &[("size", "B"), ("due_ns", "ns"), ("sent_ns", "ns"), ("wire_ns", "ns"), ("received_ns", "ns")],
};

/// `series.parquet`.
pub(super) const SERIES: Table = Table {
    name: "series",
    schema: "message series {
        REQUIRED INT64 cell;
        REQUIRED INT64 repetition;
        REQUIRED BYTE_ARRAY entity (STRING);
        REQUIRED BYTE_ARRAY kind (STRING);
        REQUIRED INT64 time_ns;
        REQUIRED DOUBLE value;
    }",
    units: &[
        ("time_ns", "ns"),
        ("value.cwnd", "packets"),
        ("value.ssthresh", "packets"),
        ("value.srtt", "ms"),
        ("value.rto", "ms"),
        ("value.queue", "packets"),
        ("value.queue_delay", "ms"),
        ("value.send_buffer", "B"),
        ("value.pacing_rate", "bit/s"),
        ("value.bottleneck_rate", "bit/s"),
        ("value.pto", "ms"),
        ("value.bytes_in_flight", "B"),
        ("value.lost_packets", "packets"),
    ],
};

impl Table {
    /// Returns the columns as the library needs them.
    pub(super) fn schema(&self) -> Result<TypePtr, ParquetError> {
        Ok(Arc::new(parse_message_type(self.schema)?))
    }

    /// Returns the metadata of the file. The encodings are not part of it, because `columns.rs` encodes the
    /// columns.
    pub(super) fn properties(&self) -> Arc<WriterProperties> {
        let entry = |key: &str, value: String| KeyValue { key: key.to_owned(), value: Some(value) };
        let units =
            self.units.iter().map(|(column, unit)| entry(&format!("{UNIT_KEY}{column}"), (*unit).to_owned()));
        let about = [entry(VERSION_KEY, RECORD_VERSION.to_string()), entry(TABLE_KEY, self.name.to_owned())];
        let properties = WriterProperties::builder()
            .set_created_by(concat!("talkpath version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(about.into_iter().chain(units).collect()))
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::Chunk);
        Arc::new(properties.build())
    }
}

/// The largest number of rows in a row group. We chose 131,072, because a group then takes a few megabytes of
/// memory in the writer and in the reader.
pub(super) const GROUP_ROWS: usize = 1 << 17;
