//! The queue discipline `fq`.

use talkpath_path::{Fq, QueueKind, QueueName};

use super::discipline::{LIMIT, LinkValues, QUANTUM, Queue, queue_limit};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::Variant;

pub(super) const FQ: Queue = Queue {
    keys: Variant {
        name: QueueName::Fq.word(),
        doc: "flows in turn, byte by byte (deficit round robin, Shreedhar and Varghese 1995). An arrival without room drops the newest \
              packet of the flow with the most bytes",
        keys: &[LIMIT, QUANTUM],
    },
    read,
};

fn read(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    let limit = queue_limit(section, link, log)?;
    Some(QueueKind::Fq(Fq { limit, quantum: section.bytes_or_word("quantum")? }))
}
