//! The queue discipline `drr`.

use talkpath_path::{Drr, QueueKind, QueueName};

use super::classes::{CODEPOINTS, class_sections, classes};
use super::discipline::{CLASS_LIMIT, CLASS_QUANTUM, LinkValues, QUANTUM, Queue, queue_limit};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Default, Kind, TableSpec, Variant, key};

pub(super) const DRR: Queue = Queue {
    keys: Variant {
        name: QueueName::Drr.word(),
        doc: "classes in turn, each with its quantum of bytes (deficit round robin, Shreedhar and Varghese 1995; Linux's sch_drr). An \
              arrival that finds no room in its class is dropped",
        keys: &[
            key(
                "classes",
                Kind::List(&CLASS),
                Default::Required,
                "the classes. Packets of no class are in one more class, the last",
            ),
            QUANTUM,
            CLASS_LIMIT,
        ],
    },
    read,
};

static CLASS: TableSpec = TableSpec { noun: "a class", keys: &[CODEPOINTS, CLASS_QUANTUM] };

fn read(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    let limit = queue_limit(section, link, log);
    let sections = class_sections(section, CLASS.keys);
    let classes = classes(section, &sections, log);
    let shared = section.bytes_or_word("quantum")?;
    let mut quanta = Vec::new();
    for class in &sections {
        // A class without a quantum has that of the queue, as the last class does.
        quanta.push(if class.node("quantum").is_some() { class.bytes_or_word("quantum")? } else { shared });
    }
    quanta.push(shared);
    Some(QueueKind::Drr(Drr { classes: classes?, quanta, limit: limit? }))
}
