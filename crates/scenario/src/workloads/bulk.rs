//! `bulk`: as much as the transport takes.

use talkpath_model::WorkloadConfig;

use super::{Counted, FileTerms, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, Measure};
use crate::section::Section;
use crate::spec::{Default, Kind, LARGEST_SIZE, Variant, key, measure};

/// A transfer.
pub(super) const BULK: Workload = Workload {
    keys: Variant {
        name: "bulk",
        doc: "as much as the transport takes. Messages are as large as fits, up to 64 KiB; each waits for room for 1 KiB",
        keys: &[key(
            "bytes",
            Kind::Quantity { measures: BULK_BYTES, words: &["unlimited"] },
            Default::Is("\"unlimited\""),
            "how much in all; `\"unlimited\"` continues until `duration`",
        )],
    },
    read,
};

const BULK_BYTES: &[Measure] = &[measure(Dimension::Size, 1, 1_000 * LARGEST_SIZE)];

fn read(section: &Section<'_>, _: FileTerms<'_>, _: &mut Log) -> Option<Counted> {
    let workload = WorkloadConfig::Bulk { bytes: section.bytes_or_word("bytes")? };
    Some(Counted { workload, by: "bytes" })
}
