//! The queue discipline `fq_codel`.

use talkpath_path::{FqCodel, QueueKind, QueueName};

use super::discipline::{
    CE_THRESHOLD, ECN_DOC, INTERVAL, LinkValues, QUANTUM, Queue, TARGET, codel_parameters,
    warn_of_small_limit,
};
use crate::diagnostic::Log;
use crate::section::Section;
use crate::spec::{Default, Kind, SOME_PACKETS, SOME_SIZE, Variant, key, quantity};

pub(super) const FQ_CODEL: Queue = Queue {
    keys: Variant {
        name: QueueName::FqCodel.word(),
        doc: "flows in turn, those with little to send first, and CoDel for each (RFC 8290, with the defaults of Linux's sch_fq_codel)",
        keys: &[
            key(
                "limit",
                quantity(SOME_PACKETS),
                Default::Is("\"10240 packets\""),
                "how many packets may wait. Without room the longest queue loses packets, until half of its bytes or 64 packets are gone",
            ),
            key(
                "memory_limit",
                quantity(SOME_SIZE),
                Default::Is("\"32 MiB\""),
                "how many bytes of packets may wait; Linux counts the memory of their buffers",
            ),
            key(
                "flows",
                Kind::Count { least: 1, most: 65_536 },
                Default::Is("1024"),
                "queues that flows are hashed to; flows with one hash share a queue",
            ),
            QUANTUM,
            TARGET,
            INTERVAL,
            key("ecn", Kind::Flag, Default::Is("true"), ECN_DOC),
            CE_THRESHOLD,
        ],
    },
    read,
};

fn read(section: &Section<'_>, link: &LinkValues, log: &mut Log) -> Option<QueueKind> {
    let memory_limit = section.bytes("memory_limit")?;
    warn_of_small_limit("memory_limit", memory_limit, section, link.mtu, log);
    Some(QueueKind::FqCodel(FqCodel {
        limit: section.packets_or_word("limit")??,
        memory_limit,
        flows: u32::try_from(section.count("flows")?).ok()?,
        quantum: section.bytes_or_word("quantum")?,
        parameters: codel_parameters(section)?,
    }))
}
