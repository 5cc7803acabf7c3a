//! The figures of a flow's opening.

use super::row::Figure;
use super::unit::Unit;
use crate::summary::FlowSummary;

type Row = Figure<FlowSummary>;

pub(crate) const OPENING: &[Row] = &[
    Row::number_of(
        "opening_ms",
        Unit::Ms,
        "opened after",
        "from the flow's start to the moment from which a message could leave; what is due before is lost",
        |f| f.opening_ms,
    )
    .short("opens after")
    .less(),
    Row::number_of(
        "opening.name_ms",
        Unit::Ms,
        "name resolved in",
        "how long the resolver took for the far host's name, once before the run; null of an address",
        |f| f.opening.as_ref()?.name_ms,
    )
    .short("name")
    .less(),
    Row::number_of(
        "opening.socket_ms",
        Unit::Ms,
        "socket made in",
        "how long this host's kernel took to make the socket and set its options; null in `sim`",
        |f| f.opening.as_ref()?.socket_ms,
    )
    .decimals(3)
    .short("socket")
    .less(),
    Row::number_of(
        "opening.handshake_ms",
        Unit::Ms,
        "handshake",
        "from the handshake's first packet to its end at the client; with 0-RTT messages leave before; null over UDP",
        |f| f.opening.as_ref()?.handshake_ms,
    )
    .short("handshake")
    .less(),
    Row::number_of(
        "opening.first_delivered_ms",
        Unit::Ms,
        "first message after",
        "from the flow's start until the first message came to its end: with an echo, back to the sender",
        |f| f.opening.as_ref()?.first_delivered_ms,
    )
    .short("first message")
    .less(),
];
