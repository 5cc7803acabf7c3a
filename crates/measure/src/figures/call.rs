//! The figures of a call. They are rows of [`super::FLOW`].

use super::row::Figure;
use super::unit::Unit;
use crate::summary::{Basis, CallSummary, Direction, FlowSummary, OtherReceiver};

type Row = Figure<FlowSummary>;

// The definitions that the figures of both receivers share. They are macros, because `concat!` takes no
// constants.

macro_rules! mouth_to_ear {
    () => {
        "from the speaker's mouth to the listener's ear: a frame, the path, the receiver's wait"
    };
}
macro_rules! burst_ratio {
    () => {
        "mean length of the gaps over that of gaps at random, at least 1 (ITU-T G.107 §7.5)"
    };
}
macro_rules! longest_gap {
    () => {
        "the longest gap: consecutive frames that were late or missing"
    };
}
macro_rules! gaps_in_a_minute {
    () => {
        "the most gaps of 200 ms or more that began within one minute"
    };
}
macro_rules! usable {
    () => {
        "whether the score reaches the floor and no gap bars the call: none of 1 s, no two of 200 ms within a minute"
    };
}
macro_rules! second {
    () => {
        ", with the second receiver; null if the scenario names the playout"
    };
}

/// Returns the call of a flow. Returns `None` if the flow is not a call.
fn call(flow: &FlowSummary) -> Option<&CallSummary> {
    flow.call.as_deref()
}

pub(super) const CALL: &[Row] = &[
    Row::number_of(
        "call.mos",
        Unit::Score,
        "opinion score (MOS)",
        "mean opinion score of a conversation in the worse direction, 1 to 4.5 (ITU-T G.107)",
        |f| Some(call(f)?.mos),
    )
    .short("MOS")
    .more(),
    Row::number_of(
        "call.r",
        Unit::One,
        "rating factor (R)",
        "rating factor of the E-model, 93.2 at best and 0 at worst",
        |f| Some(call(f)?.r),
    )
    .decimals(1)
    .more(),
    Row::count("call.played", "frames played", "frames that were there at their playout time", |f| {
        Some(call(f)?.played)
    })
    .more(),
    Row::count("call.late", "frames late for playout", "frames that came after their playout time", |f| {
        Some(call(f)?.late)
    })
    .less(),
    Row::count(
        "call.missing",
        "frames missing",
        "frames that never came: lost, sent or not, refused or unfinished",
        |f| Some(call(f)?.missing),
    )
    .less(),
    Row::number_of(
        "call.mouth_to_ear_ms.mean",
        Unit::Ms,
        "mouth to ear mean",
        concat!("mean ", mouth_to_ear!()),
        |f| Some(call(f)?.mouth_to_ear_ms.as_ref()?.mean),
    )
    .less(),
    Row::number_of(
        "call.mouth_to_ear_ms.p50",
        Unit::Ms,
        "mouth to ear p50",
        concat!("median ", mouth_to_ear!()),
        |f| Some(call(f)?.mouth_to_ear_ms.as_ref()?.p50),
    )
    .short("mouth to ear")
    .less(),
    Row::number_of(
        "call.mouth_to_ear_ms.p95",
        Unit::Ms,
        "mouth to ear p95",
        concat!("95th percentile ", mouth_to_ear!()),
        |f| Some(call(f)?.mouth_to_ear_ms.as_ref()?.p95),
    )
    .less(),
    Row::number_of("call.burst_ratio", Unit::One, "burst ratio", burst_ratio!(), |f| {
        Some(call(f)?.burst_ratio)
    })
    .decimals(2)
    .within(1.0, f64::INFINITY)
    .less(),
    Row::number_of("call.longest_gap_ms", Unit::Ms, "longest gap", longest_gap!(), |f| {
        call(f)?.longest_gap_ms
    })
    .less(),
    Row::count("call.gaps_in_a_minute", "gaps of 200 ms or more within a minute", gaps_in_a_minute!(), |f| {
        call(f)?.gaps_in_a_minute
    })
    .less(),
    Row::flag("call.usable", "usable as a call", usable!(), |f| call(f)?.usable).more(),
    Row::word("call.codec", "codec", "what the speech is coded by", |f| Some(&call(f)?.codec)),
    Row::word(
        "call.scale",
        "scale of the score",
        "the scale of the opinion score: nb, wb, swb or fb; scores of two scales are not comparable",
        |f| Some(&call(f)?.scale),
    ),
    Row::word("call.playout", "playout", "how the receiver chooses its playout delay", |f| {
        Some(&call(f)?.playout)
    }),
    Row::word("call.concealment", "concealment", "what the receiver plays where a frame is missing", |f| {
        Some(&call(f)?.concealment)
    }),
    Row::word("call.basis", "delay measured along", "along what the call's delay was measured", |f| {
        Some(call(f)?.basis.word())
    }),
    Row::word(
        "call.direction",
        "worse direction",
        "which way of an echo flow is the worse one; null if both count as one",
        |f| call(f)?.direction.map(Direction::word),
    ),
];

/// Returns the figures of a call with the second receiver.
fn other(flow: &FlowSummary) -> Option<&OtherReceiver> {
    call(flow)?.other_receiver.as_ref()
}

pub(super) const OTHER_RECEIVER: &[Row] = &[
    Row::word(
        "call.other_receiver.playout",
        "playout of the second receiver",
        concat!("how it chooses its playout delay", second!()),
        |f| Some(&other(f)?.playout),
    ),
    Row::number_of(
        "call.other_receiver.mos",
        Unit::Score,
        "opinion score (MOS) with the second receiver",
        concat!("mean opinion score, 1 to 4.5 (ITU-T G.107)", second!()),
        |f| Some(other(f)?.mos),
    )
    .short("MOS")
    .more(),
    Row::number_of(
        "call.other_receiver.r",
        Unit::One,
        "rating factor (R) with the second receiver",
        concat!("rating factor of the E-model", second!()),
        |f| Some(other(f)?.r),
    )
    .decimals(1)
    .more(),
    Row::count(
        "call.other_receiver.played",
        "frames played by the second receiver",
        concat!("frames that were there at their playout time", second!()),
        |f| Some(other(f)?.played),
    )
    .more(),
    Row::count(
        "call.other_receiver.late",
        "frames late for the second receiver",
        concat!("frames that came after their playout time", second!()),
        |f| Some(other(f)?.late),
    )
    .less(),
    Row::number_of(
        "call.other_receiver.mouth_to_ear_ms",
        Unit::Ms,
        "mouth to ear with the second receiver",
        concat!(mouth_to_ear!(), ", the same for all frames", second!()),
        |f| other(f)?.mouth_to_ear_ms,
    )
    .less(),
    Row::number_of(
        "call.other_receiver.burst_ratio",
        Unit::One,
        "burst ratio with the second receiver",
        concat!(burst_ratio!(), second!()),
        |f| Some(other(f)?.burst_ratio),
    )
    .decimals(2)
    .within(1.0, f64::INFINITY)
    .less(),
    Row::number_of(
        "call.other_receiver.longest_gap_ms",
        Unit::Ms,
        "longest gap with the second receiver",
        concat!(longest_gap!(), second!()),
        |f| Some(other(f)?.longest_gap_ms),
    )
    .less(),
    Row::count(
        "call.other_receiver.gaps_in_a_minute",
        "gaps of 200 ms or more within a minute with the second receiver",
        concat!(gaps_in_a_minute!(), second!()),
        |f| Some(other(f)?.gaps_in_a_minute),
    )
    .less(),
    Row::flag(
        "call.other_receiver.usable",
        "usable with the second receiver",
        concat!(usable!(), second!()),
        |f| Some(other(f)?.usable),
    )
    .more(),
    Row::word(
        "call.other_receiver.direction",
        "worse direction with the second receiver",
        "which way of an echo flow is the worse one with the second receiver; null if both count as one, or if the scenario names the playout",
        |f| other(f)?.direction.map(Direction::word),
    ),
    Row::word(
        "call.receiver_matters.playout",
        "playout that decides",
        "the playout of the second receiver, if the call is usable with one receiver and not with the other; else null",
        |f| Some(&call(f)?.receiver_matters.as_ref()?.playout),
    ),
    Row::number_of(
        "call.receiver_matters.mos",
        Unit::Score,
        "opinion score (MOS) of the playout that decides",
        "the second receiver's score, if the call is usable with one receiver and not with the other; else null",
        |f| Some(call(f)?.receiver_matters.as_ref()?.mos),
    )
    .more(),
];

impl Basis {
    /// Returns the word in summary.json.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OneWay => "one-way",
            Self::HalfRoundTrip => "half-round-trip",
            Self::RoundTrip => "round-trip",
        }
    }
}

impl Direction {
    /// Returns the word in summary.json.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }
}
