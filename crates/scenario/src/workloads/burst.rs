//! `burst`: messages at once, again and again.

use talkpath_model::WorkloadConfig;

use super::{Counted, FLOOR, FileTerms, MESSAGE, Workload};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{ANY_DURATION, Default, Kind, SOME_DURATION, Variant, key, quantity};

/// Bursts.
pub(super) const BURST: Workload = Workload {
    keys: Variant {
        name: "burst",
        doc: "`count` messages as fast as the transport takes them, again and again",
        keys: &[
            key(
                "count",
                Kind::Count { least: 1, most: 1_000_000_000 },
                Default::Required,
                "messages in a burst",
            ),
            key("size", quantity(MESSAGE), Default::Required, "payload of a message"),
            key("repeat", Kind::Count { least: 1, most: 1_000_000_000 }, Default::Is("1"), "bursts"),
            key(
                "gap",
                quantity(ANY_DURATION),
                Default::Is("\"0 s\""),
                "time from the last message of a burst to the first of the next",
            ),
            key(
                "deadline",
                quantity(SOME_DURATION),
                Default::Absent("no share in time is counted"),
                "until when a message is in time, counted from when there was room for it",
            ),
            FLOOR,
        ],
    },
    read,
};

fn read(section: &Section<'_>, _: FileTerms<'_>, _: &mut Log) -> Option<Counted> {
    let workload = WorkloadConfig::Burst {
        count: section.count("count")?,
        size: section.bytes("size")?,
        repeat: section.count("repeat")?,
        gap: section.duration("gap")?,
    };
    Some(Counted { workload, by: "count" })
}
