//! `file`: the bytes of a file, as bulk.

use talkpath_model::{LARGEST_BULK_MESSAGE, WorkloadConfig};

use super::{Counted, FileTerms, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, Measure};
use crate::section::Section;
use crate::spec::{Default, FileKind, Kind, Variant, key, measure};

/// A file.
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
                Kind::Quantity { measures: FILE_MESSAGE, words: &["auto"] },
                Default::Is("\"auto\""),
                "the largest message; `\"auto\"` is 64 KiB, over QUIC datagrams 1162 B, over UDP and DCCP what crosses the routes' smallest \
                 `mtu` unfragmented",
            ),
        ],
    },
    read,
};

/// From what a sequence number and a byte take to the largest message of `bulk`.
const FILE_MESSAGE: &[Measure] = &[measure(Dimension::Size, 64, LARGEST_BULK_MESSAGE.get())];

fn read(section: &Section<'_>, terms: FileTerms<'_>, _: &mut Log) -> Option<Counted> {
    let size = section.bytes_or_word("size")?.unwrap_or(terms.message);
    let source = section.text("source")?;
    let bytes = (terms.size)(source)?;
    let workload = WorkloadConfig::File { source: source.to_owned(), bytes, size, header: terms.header };
    Some(Counted { workload, by: "source" })
}
