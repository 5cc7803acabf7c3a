//! The figures of the machine: how it disturbed a repetition over real sockets.

use super::row::{Figure, Table};
use super::unit::Unit;
use crate::summary::MachineSummary;

/// The figures of the machine in one repetition, in the order of summary.json.
pub static MACHINE: Table<MachineSummary> = Table::new(&[ROWS]);

type Row = Figure<MachineSummary>;

/// A row for one percentile of a lateness.
macro_rules! late {
    ($part:ident.$key:ident, $name:literal, $definition:literal) => {
        Row::number_of(
            concat!(stringify!($part), ".", stringify!($key)),
            Unit::Ms,
            concat!($name, " ", stringify!($key)),
            $definition,
            |m| Some(m.$part.as_ref()?.$key),
        )
        .decimals(3)
        .less()
    };
}

const ROWS: &[Row] = &[
    Row::flag("valid", "valid", "whether the machine stayed within the stated limits", |m| m.valid).more(),
    Row::count(
        "ran_again",
        "runs again",
        "how often the repetition ran again because the machine had disturbed it",
        |m| Some(m.ran_again),
    )
    .less(),
    late!(
        emulator_late_ms.p50,
        "emulator's writes",
        "from a packet's promised departure to the emulator's write"
    ),
    late!(
        emulator_late_ms.p99,
        "emulator's writes",
        "from a packet's promised departure to the emulator's write"
    ),
    late!(
        emulator_late_ms.max,
        "emulator's writes",
        "from a packet's promised departure to the emulator's write"
    ),
    late!(
        emulator_backlog_ms.p50,
        "emulator's backlog",
        "how long packets waited before the emulator read them"
    ),
    late!(
        emulator_backlog_ms.p99,
        "emulator's backlog",
        "how long packets waited before the emulator read them"
    ),
    late!(
        emulator_backlog_ms.max,
        "emulator's backlog",
        "how long packets waited before the emulator read them"
    ),
    late!(senders_late_ms.p50, "senders here", "from a message's due time to its hand-over to the socket"),
    late!(senders_late_ms.p99, "senders here", "from a message's due time to its hand-over to the socket"),
    late!(senders_late_ms.max, "senders here", "from a message's due time to its hand-over to the socket"),
    late!(far_senders_late_ms.p50, "senders at the far host", "the same on the far host"),
    late!(far_senders_late_ms.p99, "senders at the far host", "the same on the far host"),
    late!(far_senders_late_ms.max, "senders at the far host", "the same on the far host"),
    Row::count("packets", "packets through the emulator", "packets that the emulator carried", |m| m.packets),
    Row::count(
        "device_drops",
        "packets dropped by devices",
        "packets that a device had no room for, or the emulator no memory",
        |m| m.device_drops,
    )
    .less(),
    Row::count(
        "socket_drops",
        "datagrams dropped by receiving sockets",
        "lower bound of the datagrams that found no room in a socket",
        |m| m.socket_drops,
    )
    .less(),
    Row::count(
        "checksum_errors",
        "wrong checksums here",
        "UDP datagrams with a wrong checksum on this host",
        |m| m.checksum_errors,
    )
    .less(),
    Row::count(
        "far_checksum_errors",
        "wrong checksums at the far host",
        "UDP datagrams with a wrong checksum on the far host",
        |m| m.far_checksum_errors,
    )
    .less(),
    Row::number_of(
        "emulator_cpu_share",
        Unit::Share,
        "emulator's share of a processor",
        "share of one processor that the emulator's thread took",
        |m| m.emulator_cpu_share,
    )
    .less(),
    Row::flag("real_time", "real-time priority", "whether the timed threads had real-time priority", |m| {
        m.real_time
    }),
    Row::number_of(
        "stolen_share",
        Unit::Share,
        "taken by a hypervisor",
        "share of all processors' time that a hypervisor gave to others",
        |m| m.stolen_share,
    )
    .less(),
    Row::count(
        "stops",
        "stops of the path",
        "how often the emulator's thread did not run for more than a millisecond",
        |m| m.stops,
    )
    .less(),
    Row::number_of("longest_stop_ms", Unit::Ms, "longest stop of the path", "for how long at most", |m| {
        m.longest_stop_ms
    })
    .less(),
];
