//! The workload `file`: the bytes of a file, sent as a bulk transfer.

use talkpath_model::{LARGEST_BULK_MESSAGE, WorkloadConfig};

use super::{FlowTerms, MeasuredWorkload, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange};
use crate::section::Section;
use crate::spec::{Default, FileKind, Kind, Variant, key, range};

pub(super) const FILE: Workload = Workload {
    keys: Variant {
        name: "file",
        doc: "the bytes of a file, sent as `bulk`. In real arenas the far end checks their SHA-256, and over a transport that \
              keeps messages whole lists what is missing",
        keys: &[
            key(
                "source",
                Kind::File(FileKind::Source),
                Default::Required,
                "the file, relative to the scenario's folder; it is not copied",
            ),
            key(
                "size",
                Kind::Quantity { ranges: FILE_MESSAGE, words: &["auto"] },
                Default::Is("\"auto\""),
                "the largest message; `\"auto\"` is 64 KiB, over QUIC datagrams 1162 B, over UDP and DCCP what crosses the routes' smallest \
                 `mtu` unfragmented",
            ),
        ],
    },
    read,
};

/// The smallest message has room for a header and some bytes of the file. We chose 64 B.
const FILE_MESSAGE: &[DimensionRange] = &[range(Dimension::Size, 64, LARGEST_BULK_MESSAGE.get())];

fn read(section: &Section<'_>, terms: FlowTerms<'_>, _: &mut Log) -> Option<MeasuredWorkload> {
    let size = section.bytes_or_word("size")?.unwrap_or(terms.file_message);
    let source = section.text("source")?;
    let bytes = (terms.size)(source)?;
    let workload = WorkloadConfig::File { source: source.to_owned(), bytes, size, header: terms.file_header };
    Some(MeasuredWorkload { workload, count_key: "source" })
}
