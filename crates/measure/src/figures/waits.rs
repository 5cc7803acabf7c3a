//! The figures of how long messages waited at their sender and for lost data. They are rows of
//! [`super::FLOW`].

use super::row::Figure;
use super::unit::Unit;
use crate::summary::FlowSummary;

type Row = Figure<FlowSummary>;

/// The rows of the waits for one cause.
macro_rules! waits {
    ($part:ident, $name:literal, $words:literal) => {
        [
            waits!($part.p50, $name, "p50", "median", $words),
            waits!($part.p90, $name, "p90", "90th percentile", $words),
            waits!($part.p99, $name, "p99", "99th percentile", $words),
            waits!($part.max, $name, "max", "largest", $words),
        ]
    };
    ($part:ident.$key:ident, $name:literal, $short:literal, $statistic:literal, $words:literal) => {
        Row::number_of(
            concat!("waits.", stringify!($part), ".", stringify!($key)),
            Unit::Ms,
            concat!($name, " ", $short),
            concat!($words, ": ", $statistic),
            |f| Some(f.waits.as_ref()?.$part?.$key),
        )
        .less()
    };
}

macro_rules! held {
    ($key:ident, $name:literal, $definition:literal) => {
        Row::number_of(concat!("waits.held_ms.", stringify!($key)), Unit::Ms, $name, $definition, |f| {
            f.waits.as_ref()?.held_ms?.$key
        })
        .less()
    };
}

pub(super) const WAITS_FOR_ROOM: &[Row] =
    &waits!(for_room_ms, "waited for room", "from due until the transport took the message");

pub(super) const WAITS_IN_TRANSPORT: &[Row] = &waits!(
    in_transport_ms,
    "waited in the transport",
    "from the moment when the transport took the message until its first byte left"
);

pub(super) const WAITS_FOR_LOST: &[Row] = &waits!(
    for_lost_ms,
    "waited for lost data",
    "for data that was sent again, the message's own or earlier data of its stream"
);

pub(super) const HELD: &[Row] = &[
    held!(
        congestion_window,
        "held by the congestion window",
        "time during which unsent data waited for room in the congestion window"
    ),
    held!(
        receiver_window,
        "held by the receiver's window",
        "time during which unsent data waited for room in the far end's window"
    ),
    held!(
        nagle,
        "held by Nagle's algorithm",
        "time during which Nagle's algorithm held a small segment back"
    ),
    held!(
        pacing,
        "held by pacing",
        "time during which unsent data waited for its turn by pacing or by a rate"
    ),
];
