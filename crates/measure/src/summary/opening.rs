//! How a flow opened, in parts: the fields in summary.json and their rows in the table of figures.

use serde::{Deserialize, Serialize};
use talkpath_units::Duration;

use super::FlowSummary;
use crate::OpeningRecord;
use crate::figures::row::Figure;
use crate::figures::unit::Unit;

/// The parts of a flow's opening, ms. A part is `None` if it is unknown, if it never ended, or if the
/// transport or the arena has no such part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpeningSummary {
    /// The time that the resolver took for the name of the far host, once before the run.
    pub name_ms: Option<f64>,
    /// The time that the kernel took to make the socket and to set its options.
    pub socket_ms: Option<f64>,
    /// The time from the first packet of the handshake until it was over at the client. With 0-RTT it is
    /// longer than the time until a message could leave.
    pub handshake_ms: Option<f64>,
    /// The time from the start of the flow until the first message came to its end: with an echo, back to the
    /// sender.
    pub first_delivered_ms: Option<f64>,
}

impl OpeningSummary {
    /// Makes the entry of a flow. `knows_arrivals` says whether it is known when messages came to their end:
    /// between clocks that are not trusted it is not. Returns `None` if no part is known.
    pub(crate) fn of(record: &OpeningRecord, knows_arrivals: bool) -> Option<Self> {
        let ms = |part: Option<Duration>| part.map(Duration::as_millis_f64);
        let parts = Self {
            name_ms: ms(record.name),
            socket_ms: ms(record.socket),
            handshake_ms: ms(record.handshake),
            first_delivered_ms: ms(record.first_delivered.filter(|_| knows_arrivals)),
        };
        (parts != Self::default()).then_some(parts)
    }
}

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
