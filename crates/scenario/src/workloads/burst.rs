//! The workload `burst`: several messages at once, repeated after a gap.

use talkpath_model::WorkloadConfig;

use super::{FLOOR, FlowTerms, MESSAGE, MeasuredWorkload, Workload};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{ANY_DURATION, Default, Kind, SOME_DURATION, Variant, key, quantity};

pub(super) const BURST: Workload = Workload {
    keys: Variant {
        name: "burst",
        doc: "bursts: `count` messages as fast as the transport accepts them, `repeat` times",
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
                "time from the last message of a burst to the first message of the next burst",
            ),
            key(
                "deadline",
                quantity(SOME_DURATION),
                Default::Absent("no share in time is counted"),
                "the time within which a message must be received, counted from when the transport had room for it",
            ),
            FLOOR,
        ],
    },
    read,
};

fn read(section: &Section<'_>, _: FlowTerms<'_>, _: &mut Log) -> Option<MeasuredWorkload> {
    let workload = WorkloadConfig::Burst {
        count: section.count("count")?,
        size: section.bytes("size")?,
        repeat: section.count("repeat")?,
        gap: section.duration("gap")?,
    };
    Some(MeasuredWorkload { workload, count_key: "count" })
}
