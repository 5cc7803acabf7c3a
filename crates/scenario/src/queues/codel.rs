//! The queue discipline `codel`.

use talkpath_path::{Codel, QueueKind, QueueName};

use super::discipline::{
    CE_THRESHOLD, ECN_DOC, INTERVAL, LIMIT, LinkValues, Queue, TARGET, codel_parameters, queue_limit,
};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Default, Kind, Variant, key};

pub(super) const CODEL: Queue = Queue {
    keys: Variant {
        name: QueueName::Codel.word(),
        doc: "first in, first out; while every packet waits longer than `target`, one is dropped now and then (RFC 8289, with the \
              defaults of Linux's sch_codel)",
        keys: &[LIMIT, TARGET, INTERVAL, key("ecn", Kind::Flag, Default::Is("false"), ECN_DOC), CE_THRESHOLD],
    },
    read,
};

fn read(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    let limit = queue_limit(section, link, log)?;
    Some(QueueKind::Codel(Codel { limit, parameters: codel_parameters(section)? }))
}
