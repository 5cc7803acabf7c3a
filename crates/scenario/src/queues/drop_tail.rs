//! The queue discipline `drop-tail`.

use talkpath_path::{DropTail, QueueKind, QueueName};

use super::discipline::{LIMIT, LinkValues, Queue, queue_limit};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Default, Kind, SOME_PACKETS, Variant, key};

pub(super) const DROP_TAIL: Queue = Queue {
    keys: Variant {
        name: QueueName::DropTail.word(),
        doc: "first in, first out; an arrival that finds no room is dropped",
        keys: &[
            LIMIT,
            key("in_service", Kind::Flag, Default::Is("false"), "whether the packet in service counts too"),
            key(
                "mark_at",
                Kind::Quantity { ranges: SOME_PACKETS, words: &["never"] },
                Default::Is("\"never\""),
                "an arrival that finds this many packets waiting is marked (ECN, RFC 3168), if its transport takes marks: TCP, \
                 DCCP or UDP with `ecn = true`, and QUIC",
            ),
        ],
    },
    read,
};

fn read(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    Some(QueueKind::DropTail(DropTail {
        limit: queue_limit(section, link, log)?,
        in_service: section.flag("in_service")?,
        mark_at: section.packets_or_word("mark_at")?,
    }))
}
