//! The queue discipline `priority`.

use talkpath_path::{Priority, QueueKind, QueueName};

use super::classes::{CODEPOINTS, class_sections, classes};
use super::discipline::{CLASS_LIMIT, LinkValues, Queue, queue_limit};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Default, Kind, TableSpec, Variant, key};

pub(super) const PRIORITY: Queue = Queue {
    keys: Variant {
        name: QueueName::Priority.word(),
        doc: "the first class that holds packets sends, and the others wait (Linux's sch_prio). An arrival that finds no room in its \
              class is dropped",
        keys: &[
            key(
                "classes",
                Kind::List(&CLASS),
                Default::Required,
                "the classes, the most important one first. Packets of no class are in one more class, the last",
            ),
            CLASS_LIMIT,
        ],
    },
    read,
};

static CLASS: TableSpec = TableSpec { noun: "a class", keys: &[CODEPOINTS] };

fn read(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    let limit = queue_limit(section, link, log);
    let classes = classes(section, &class_sections(section, CLASS.keys), log);
    Some(QueueKind::Priority(Priority { classes: classes?, limit: limit? }))
}
