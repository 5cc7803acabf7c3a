//! The figures of each direction of a flow over real sockets. They are rows of [`super::FLOW`].

use super::row::Figure;
use super::unit::Unit;
use crate::summary::{FlowSummary, LegSummary};

type Row = Figure<FlowSummary>;

/// The rows of one direction. `$path` is the key of the direction in summary.json, `$way` is the end of each
/// name, and `$leg` is the function that returns the figures of the direction. The macro exists because both
/// directions have the same rows, and a row needs constant texts.
macro_rules! legs {
    ($path:literal, $way:literal, $leg:ident) => {
        [
            legs!($path, $way, $leg, sent, "sent", "messages that were sent in this direction"),
            legs!($path, $way, $leg, received, "received", "of these, delivered").more(),
            legs!($path, $way, $leg, lost, "lost", "of these, missing").less(),
            legs!($path, $way, $leg, unfinished, "unfinished", "still queued or in flight at the end"),
            legs!(
                $path,
                $way,
                $leg,
                duplicates,
                "duplicates",
                "extra copies that arrived; of echoes, beyond those sent"
            ),
            Row::count(
                concat!("legs.", $path, ".late"),
                concat!("late, ", $way),
                "of those delivered, with a delay longer than the deadline; with an echo, than half of it",
                |f| $leg(f)?.late,
            )
            .less(),
            legs!(
                $path,
                $way,
                $leg,
                reordered,
                "reordered",
                "first copies behind a later message (RFC 4737 §3)"
            )
            .less(),
            Row::count(
                concat!("legs.", $path, ".bursts.count"),
                concat!("bursts of losses, ", $way),
                "bursts of two losses or more (RFC 3611 §4.7.2, Gmin 16)",
                |f| Some($leg(f)?.bursts.count),
            )
            .less(),
            legs!($path, $way, $leg, Share, density, "loss within bursts", "lost / all, within bursts"),
            legs!(
                $path,
                $way,
                $leg,
                One,
                messages_mean,
                "mean burst, messages",
                "mean length of a burst, in messages"
            ),
            legs!(
                $path,
                $way,
                $leg,
                Ms,
                ms_mean,
                "mean burst",
                "mean length of a burst, from its first loss until the message after its last is due"
            ),
            legs!(
                $path,
                $way,
                $leg,
                Share,
                gap_density,
                "loss outside of bursts",
                "lost / all, outside of bursts"
            ),
        ]
    };
    ($path:literal, $way:literal, $leg:ident, $key:ident, $name:literal, $definition:literal) => {
        Row::count(
            concat!("legs.", $path, ".", stringify!($key)),
            concat!($name, ", ", $way),
            $definition,
            |f| Some($leg(f)?.$key),
        )
    };
    ($path:literal, $way:literal, $leg:ident, $unit:ident, $key:ident, $name:literal, $definition:literal) => {
        Row::number_of(
            concat!("legs.", $path, ".bursts.", stringify!($key)),
            Unit::$unit,
            concat!($name, ", ", $way),
            $definition,
            |f| $leg(f)?.bursts.$key,
        )
        .less()
    };
}

/// A time of the packets of a flow of a program of the user.
macro_rules! on_path {
    ($part:ident.$key:ident, $name:literal, $definition:literal) => {
        Row::number_of(
            concat!("ip.", stringify!($part), ".", stringify!($key)),
            Unit::Ms,
            $name,
            $definition,
            |f| Some(f.ip.as_ref()?.$part.as_ref()?.$key),
        )
        .less()
    };
}

pub(super) const HEADERS: &[Row] = &[
    Row::word(
        "ip.dscp",
        "DSCP asked for",
        "the DSCP that the scenario wants; null leaves the system's",
        |f| f.ip.as_ref()?.dscp.as_deref(),
    ),
    Row::counts(
        "ip.forward.dscp",
        "DSCP seen on the way out, datagrams",
        "datagrams that came, by DSCP: its name, or its number if it has none; null if the system does not show it",
        |f| f.ip.as_ref()?.forward.dscp.as_ref(),
    ),
    Row::counts(
        "ip.forward.ecn",
        "ECN field seen on the way out, datagrams",
        "datagrams that came, by ECN field: not-ect, ect0, ect1, ce; null if the system does not show it",
        |f| f.ip.as_ref()?.forward.ecn.as_ref(),
    ),
    Row::count(
        "ip.forward.ttl_min",
        "fewest hops left (TTL), out",
        "the fewest hops that a datagram had left at the receiver",
        |f| Some(f.ip.as_ref()?.forward.ttl_min?.into()),
    ),
    Row::count(
        "ip.forward.ttl_max",
        "most hops left (TTL), out",
        "the most hops that a datagram had left at the receiver",
        |f| Some(f.ip.as_ref()?.forward.ttl_max?.into()),
    ),
    Row::whole(
        "ip.forward.path_mtu_bytes",
        Unit::Bytes,
        "path MTU, out",
        "MTU of the path as the sending host knows it",
        |f| Some(f.ip.as_ref()?.forward.path_mtu_bytes?.into()),
    ),
    Row::counts(
        "ip.return.dscp",
        "DSCP seen on the way back, datagrams",
        "datagrams that came, by DSCP: its name, or its number if it has none; null if the system does not show it",
        |f| f.ip.as_ref()?.back.as_ref()?.dscp.as_ref(),
    ),
    Row::counts(
        "ip.return.ecn",
        "ECN field seen on the way back, datagrams",
        "datagrams that came, by ECN field: not-ect, ect0, ect1, ce; null if the system does not show it",
        |f| f.ip.as_ref()?.back.as_ref()?.ecn.as_ref(),
    ),
    Row::count(
        "ip.return.ttl_min",
        "fewest hops left (TTL), back",
        "the fewest hops that an echo had left at the sender",
        |f| Some(f.ip.as_ref()?.back.as_ref()?.ttl_min?.into()),
    ),
    Row::count(
        "ip.return.ttl_max",
        "most hops left (TTL), back",
        "the most hops that an echo had left at the sender",
        |f| Some(f.ip.as_ref()?.back.as_ref()?.ttl_max?.into()),
    ),
    Row::whole(
        "ip.return.path_mtu_bytes",
        Unit::Bytes,
        "path MTU, back",
        "MTU of the path as the echoing host knows it",
        |f| Some(f.ip.as_ref()?.back.as_ref()?.path_mtu_bytes?.into()),
    ),
    on_path!(
        queue_delay_ms.p50,
        "wait in the queue p50",
        "median of the packets' waits in the first queue of their direction"
    ),
    on_path!(queue_delay_ms.p99, "wait in the queue p99", "99th percentile of these waits"),
    on_path!(queue_delay_ms.max, "longest wait in the queue", "the largest of these waits"),
    on_path!(
        round_trip_ms.p50,
        "TCP's round trip p50",
        "median of TCP's round trips as seen on the wire at the sender's end of the path (RFC 6298 §3)"
    ),
    on_path!(round_trip_ms.p99, "TCP's round trip p99", "99th percentile of these round trips"),
    on_path!(round_trip_ms.max, "TCP's longest round trip", "the largest of these round trips"),
    Row::word("ip.near", "near address", "address and port at the near end; only with `--names`", |f| {
        f.ip.as_ref()?.near.as_deref()
    }),
    Row::word("ip.far", "far address", "address and port at the far end; only with `--names`", |f| {
        f.ip.as_ref()?.far.as_deref()
    }),
    Row::word(
        "ip.name",
        "name",
        "the name under which the program found an address; only with `--names`",
        |f| f.ip.as_ref()?.name.as_deref(),
    ),
    Row::flag(
        "multipath.fell_back",
        "Multipath TCP: fell back",
        "whether the connection was plain TCP all the same (RFC 8684 §3.7); null if it never opened",
        |f| f.multipath?.fell_back,
    ),
    Row::count(
        "multipath.subflows_max",
        "Multipath TCP: subflows at most",
        "the most subflows that the connection had at a time; null if it never opened",
        |f| Some(f.multipath?.subflows_max?.into()),
    ),
];

pub(super) const FORWARD_LEG: &[Row] = &legs!("forward", "out", forward_leg);

pub(super) const RETURN_LEG: &[Row] = &legs!("return", "back", return_leg);

fn forward_leg(flow: &FlowSummary) -> Option<&LegSummary> {
    Some(&flow.legs.as_ref()?.forward)
}

fn return_leg(flow: &FlowSummary) -> Option<&LegSummary> {
    flow.legs.as_ref()?.back.as_ref()
}
