//! The figures of a link.

use super::row::{Figure, Table};
use super::unit::Unit;
use crate::summary::LinkSummary;

/// The figures of a link in one repetition, in the order of summary.json.
pub static LINK: Table<LinkSummary> = Table::new(&[ROWS]);

type Row = Figure<LinkSummary>;

/// A row for one statistic of the time from a packet's entry into the queue to the start of its service.
macro_rules! delay {
    ($key:ident, $words:literal) => {
        Row::number_of(
            concat!("queue_delay_ms.", stringify!($key)),
            Unit::Ms,
            concat!("wait in the queue ", stringify!($key)),
            concat!("from a packet's entry into the queue to the begin of its service: ", $words),
            |l| Some(l.queue_delay_ms.as_ref()?.$key),
        )
        .short(stringify!($key))
        .decimals(1)
        .less()
    };
}

const ROWS: &[Row] = &[
    Row::word("discipline", "queue", "the discipline of the queue, as the scenario calls it", |l| {
        Some(&l.discipline)
    }),
    Row::number_of(
        "queue_packets.mean",
        Unit::Packets,
        "queue mean",
        "waiting packets without the one being sent: mean weighted by time",
        |l| Some(l.queue_packets.mean),
    )
    .short("mean")
    .less(),
    Row::whole(
        "queue_packets.p99",
        Unit::Packets,
        "queue p99",
        "waiting packets: not exceeded for 99 % of the time",
        |l| Some(l.queue_packets.p99),
    )
    .short("p99")
    .decimals(0)
    .less(),
    Row::whole("queue_packets.max", Unit::Packets, "queue max", "waiting packets: the most", |l| {
        Some(l.queue_packets.max)
    })
    .short("max")
    .decimals(0)
    .less(),
    delay!(mean, "mean"),
    delay!(p50, "median"),
    delay!(p95, "95th percentile"),
    delay!(p99, "99th percentile"),
    Row::count(
        "forwarded",
        "packets forwarded",
        "packets that arrived at the far end, copies included",
        |l| Some(l.forwarded),
    )
    .short("forwarded"),
    Row::count("dropped", "packets dropped", "packets dropped by the queue, for any cause", |l| {
        Some(l.dropped)
    })
    .short("dropped")
    .less(),
    Row::count("dropped_by.full", "packets dropped: full", "packets for which the queue had no room", |l| {
        Some(l.dropped_by.full)
    })
    .short("full")
    .less(),
    Row::count(
        "dropped_by.aqm",
        "packets dropped: AQM",
        "packets dropped as a signal of congestion (active queue management)",
        |l| Some(l.dropped_by.aqm),
    )
    .short("aqm")
    .less(),
    Row::count("marked", "packets marked", "packets marked by the queue (RFC 3168 §5)", |l| Some(l.marked))
        .short("marked"),
    Row::count("lost", "packets lost", "packets eaten by the wire", |l| Some(l.lost)).short("lost").less(),
    Row::count("repeated", "packets repeated", "copies of packets that the wire made", |l| Some(l.repeated))
        .short("repeated"),
    Row::count(
        "damaged",
        "packets damaged",
        "packets that the wire damaged; those whose link noticed it are among `lost`",
        |l| Some(l.damaged),
    )
    .short("damaged")
    .less(),
    Row::number_of("utilisation", Unit::Share, "busy", "busy share of the serialiser", |l| {
        Some(l.utilisation)
    })
    .decimals(1),
];
