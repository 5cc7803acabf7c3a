//! The figures of a call. They are rows of [`super::FLOW`].

use super::row::Figure;
use super::unit::Unit;
use crate::summary::{Basis, CallSummary, Direction, FlowSummary};

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
        ", with the second receiver, which waits for 60 ms; null if the call's own receiver is not adaptive"
    };
}

macro_rules! patient {
    () => {
        ", with the patient receiver, which waits for 200 ms; null if the call's own receiver is not adaptive"
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
        "mean opinion score of a conversation in the worse direction, 1 to 4.5 (ITU-T G.107); 1 if delay or loss lie beyond the model; null if the coding has no published impairment",
        |f| call(f)?.score(),
    )
    .short("MOS")
    .more(),
    Row::number_of(
        "call.r",
        Unit::One,
        "rating factor (R)",
        "rating factor of the E-model, 93.2 at best and 0 at worst",
        |f| call(f)?.r,
    )
    .decimals(1)
    .more(),
    Row::count("call.played", "frames played", "frames that were played", |f| {
        Some(call(f)?.played)
    })
    .more(),
    Row::count("call.late", "frames late for playout", "frames that came too late to be played", |f| {
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
        "call.concealed",
        Unit::Share,
        "concealed",
        "share of what is heard that was made up, because its frame was missing or not there yet; what was due before the first frame came counts",
        |f| call(f)?.concealed,
    )
    .less(),
    Row::number_of(
        "call.stretched",
        Unit::Share,
        "stretched",
        "speech that was removed or repeated to change the delay, as a share of what is heard; null if the receiver changes none",
        |f| call(f)?.stretched,
    )
    .less(),
    Row::count(
        "call.late_played",
        "late frames played",
        "frames that came after their time and were played all the same, later; null if the receiver plays none",
        |f| call(f)?.late_played,
    )
    .less(),
    Row::count("call.discarded", "frames discarded", "frames that came and were not played", |f| {
        call(f)?.discarded
    })
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
    Row::count("call.gaps", "gaps", "gaps: consecutive time without a frame that was played", |f| call(f)?.gaps)
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
    Row::count("call.windows.count", "windows", "windows in which the call was rated; null if as a whole", |f| {
        Some(call(f)?.windows?.count)
    }),
    Row::number_of("call.windows.seconds", Unit::Seconds, "length of a window", "length of a window: 8 to 10 s, less if the call is shorter", |f| {
        Some(call(f)?.windows?.seconds)
    }),
    Row::number_of(
        "call.opening_second.lost",
        Unit::Share,
        "lost in the opening second",
        "share of the second after the first speech that was not played; it does not count; null if it counts",
        |f| Some(call(f)?.opening_second?.lost),
    )
    .less(),
    Row::count(
        "call.opening_second.first_target_ms",
        "first target",
        "first delay, in ms, that the adaptive receiver sets itself",
        |f| Some(u64::from(call(f)?.opening_second?.first_target_ms?)),
    ),
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

/// The figures of a call with one of the other receivers, below `call.$receiver`.
macro_rules! other_receiver {
    ($receiver:literal, $field:ident, $name:literal, $which:ident) => {
        [
            Row::word(
                concat!("call.", $receiver, ".playout"),
                concat!("playout of the ", $name, " receiver"),
                concat!("how it chooses its playout delay", $which!()),
                |f| Some(&call(f)?.$field.as_ref()?.playout),
            ),
            Row::number_of(
                concat!("call.", $receiver, ".mos"),
                Unit::Score,
                concat!("opinion score (MOS) with the ", $name, " receiver"),
                concat!("mean opinion score, 1 to 4.5 (ITU-T G.107)", $which!()),
                |f| call(f)?.$field.as_ref()?.mos,
            )
            .short("MOS")
            .more(),
            Row::number_of(
                concat!("call.", $receiver, ".r"),
                Unit::One,
                concat!("rating factor (R) with the ", $name, " receiver"),
                concat!("rating factor of the E-model", $which!()),
                |f| call(f)?.$field.as_ref()?.r,
            )
            .decimals(1)
            .more(),
            Row::count(
                concat!("call.", $receiver, ".played"),
                concat!("frames played by the ", $name, " receiver"),
                concat!("frames that were there at their playout time", $which!()),
                |f| Some(call(f)?.$field.as_ref()?.played),
            )
            .more(),
            Row::count(
                concat!("call.", $receiver, ".late"),
                concat!("frames late for the ", $name, " receiver"),
                concat!("frames that came after their playout time", $which!()),
                |f| Some(call(f)?.$field.as_ref()?.late),
            )
            .less(),
            Row::number_of(
                concat!("call.", $receiver, ".mouth_to_ear_ms"),
                Unit::Ms,
                concat!("mouth to ear with the ", $name, " receiver"),
                concat!(mouth_to_ear!(), ", the same for all frames", $which!()),
                |f| call(f)?.$field.as_ref()?.mouth_to_ear_ms,
            )
            .less(),
            Row::number_of(
                concat!("call.", $receiver, ".burst_ratio"),
                Unit::One,
                concat!("burst ratio with the ", $name, " receiver"),
                concat!(burst_ratio!(), $which!()),
                |f| Some(call(f)?.$field.as_ref()?.burst_ratio),
            )
            .decimals(2)
            .within(1.0, f64::INFINITY)
            .less(),
            Row::number_of(
                concat!("call.", $receiver, ".longest_gap_ms"),
                Unit::Ms,
                concat!("longest gap with the ", $name, " receiver"),
                concat!(longest_gap!(), $which!()),
                |f| Some(call(f)?.$field.as_ref()?.longest_gap_ms),
            )
            .less(),
            Row::count(
                concat!("call.", $receiver, ".gaps_in_a_minute"),
                concat!("gaps of 200 ms or more within a minute with the ", $name, " receiver"),
                concat!(gaps_in_a_minute!(), $which!()),
                |f| Some(call(f)?.$field.as_ref()?.gaps_in_a_minute),
            )
            .less(),
            Row::flag(
                concat!("call.", $receiver, ".usable"),
                concat!("usable with the ", $name, " receiver"),
                concat!(usable!(), $which!()),
                |f| call(f)?.$field.as_ref()?.usable,
            )
            .more(),
            Row::word(
                concat!("call.", $receiver, ".direction"),
                concat!("worse direction with the ", $name, " receiver"),
                concat!("which way of an echo flow is the worse one, if they are told apart", $which!()),
                |f| call(f)?.$field.as_ref()?.direction.map(Direction::word),
            ),
        ]
    };
}

pub(super) const OTHER_RECEIVER: &[Row] =
    &other_receiver!("other_receiver", other_receiver, "second", second);

pub(super) const PATIENT_RECEIVER: &[Row] =
    &other_receiver!("patient_receiver", patient_receiver, "patient", patient);

pub(super) const RECEIVER_MATTERS: &[Row] = &[
    Row::word(
        "call.receiver_matters.playout",
        "playout that decides",
        "the first of the other receivers that disagrees with the call's own on whether the call is usable; else null",
        |f| Some(&call(f)?.receiver_matters.as_ref()?.playout),
    ),
    Row::number_of(
        "call.receiver_matters.mos",
        Unit::Score,
        "opinion score (MOS) of the playout that decides",
        "the score with the receiver that decides; else null",
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
