//! The workload `bulk`: a transfer that sends as fast as the transport allows.

use talkpath_model::WorkloadConfig;

use super::{FlowTerms, MeasuredWorkload, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange};
use crate::section::Section;
use crate::spec::{Default, Kind, LARGEST_SIZE, Variant, key, range};

pub(super) const BULK: Workload = Workload {
    keys: Variant {
        name: "bulk",
        doc: "as much data as the transport accepts. A message is as large as the room in the transport, at most 64 KiB; it waits until there is room for 1 KiB",
        keys: &[key(
            "bytes",
            Kind::Quantity { ranges: BULK_BYTES, words: &["unlimited"] },
            Default::Is("\"unlimited\""),
            "the size of the transfer; `\"unlimited\"` sends until `duration`",
        )],
    },
    read,
};

const BULK_BYTES: &[DimensionRange] = &[range(Dimension::Size, 1, 1_000 * LARGEST_SIZE)];

fn read(section: &Section<'_>, _: FlowTerms<'_>, _: &mut Log) -> Option<MeasuredWorkload> {
    let workload = WorkloadConfig::Bulk { bytes: section.bytes_or_word("bytes")? };
    Some(MeasuredWorkload { workload, count_key: "bytes" })
}
