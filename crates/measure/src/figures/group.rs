//! The figures of a group, which is all copies of a flow together.

use super::row::{Figure, Table};
use super::unit::Unit;
use crate::summary::{Basis, Direction, GroupSummary, JudgedBy};

/// The figures of a group in one repetition, in the order of summary.json.
pub static GROUP: Table<GroupSummary> = Table::new(&[SUMS, JUDGED, OTHER_RECEIVER, PATIENT_RECEIVER]);

type Row = Figure<GroupSummary>;

const SUMS: &[Row] = &[
    Row::count("flows", "copies", "how many copies there are", |g| Some(g.flows)),
    Row::flag("summed_up", "summed up", "whether the repetition has no entry for each copy", |g| Some(g.summed_up)),
    Row::word("transport", "transport", "as the copies have it", |g| Some(&g.transport)),
    Row::count("sent", "messages due, not refused", "sum over the copies", |g| Some(g.sent)).short("sent"),
    Row::count("received", "messages received", "sum over the copies", |g| Some(g.received)).more(),
    Row::count("lost", "messages lost", "sum over the copies", |g| Some(g.lost)).short("lost").less(),
    Row::number_of(
        "loss_rate",
        Unit::Share,
        "loss",
        "sum of lost / sum of sent, unfinished ones left out of both",
        |g| g.loss_rate,
    )
    .of_ended_messages(|g| g.received + g.lost, |g| g.sent.saturating_sub(g.received + g.lost))
    .less(),
    Row::number_of("goodput_bps", Unit::Bps, "total goodput", "sum over the copies", |g| g.goodput_bps)
        .short("goodput")
        .more(),
    Row::number_of("goodput_bps_mean", Unit::Bps, "goodput of each", "mean over the copies", |g| g.goodput_bps_mean)
        .more(),
    Row::number_of("retransmit_rate", Unit::Share, "resent", "mean over the copies", |g| g.retransmit_rate).less(),
    Row::count("retransmissions", "resent, packets", "sum over the copies", |g| g.retransmissions).less(),
    Row::count("timeouts", "timeouts", "sum over the copies", |g| g.timeouts).less(),
    Row::number_of("cwnd_packets", Unit::Packets, "mean cwnd", "mean over the copies", |g| g.cwnd_packets),
    Row::number_of(
        "window_packets",
        Unit::Packets,
        "mean of the smaller of cwnd and receiver's window",
        "mean over the copies",
        |g| g.window_packets,
    ),
    Row::number_of(
        "one_way_delay_ms_p50_mean",
        Unit::Ms,
        "one way p50",
        "mean over the copies of each copy's median one-way delay",
        |g| g.one_way_delay_ms_p50_mean,
    )
    .less(),
    Row::number_of(
        "round_trip_delay_ms_p50_mean",
        Unit::Ms,
        "round trip p50",
        "mean over the copies of each copy's median round trip",
        |g| g.round_trip_delay_ms_p50_mean,
    )
    .less(),
    Row::number_of(
        "jain_index",
        Unit::One,
        "Jain's index",
        "fairness of the copies' goodputs, (sum x)² / (n sum x²): 1 if all are equal, 1/n if one has everything (Jain 1984)",
        |g| g.jain_index,
    )
    .within(0.0, 1.0)
    .more(),
];

/// The rows of the figure by which the copies are judged. `$field` is the field of the group, and `$with` is
/// the end of each name.
macro_rules! judged {
    ($field:ident, $with:literal) => {
        [
            Row::word(
                concat!(stringify!($field), ".by"),
                concat!("judged by", $with),
                "what the flow is judged by",
                |g| Some(g.$field.as_ref()?.by.word()),
            ),
            Row::number_of(
                concat!(stringify!($field), ".median"),
                Unit::Judged,
                concat!("median copy", $with),
                "median over the copies of what they are judged by; of two directions the worse counts",
                |g| Some(g.$field.as_ref()?.median),
            )
            .more(),
            Row::number_of(
                concat!(stringify!($field), ".worst"),
                Unit::Judged,
                concat!("worst copy", $with),
                "what the worst copy is judged by",
                |g| Some(g.$field.as_ref()?.worst),
            )
            .more(),
            Row::word(
                concat!(stringify!($field), ".worst_flow"),
                concat!("name of the worst copy", $with),
                "the worst copy's name, with its worse direction",
                |g| Some(&g.$field.as_ref()?.worst_flow),
            ),
            Row::number_of(
                concat!(stringify!($field), ".floor"),
                Unit::Judged,
                concat!("usable from", $with),
                "below this the flow is not usable",
                |g| Some(g.$field.as_ref()?.floor),
            ),
            Row::word(
                concat!(stringify!($field), ".basis"),
                concat!("judged along", $with),
                "along what the worst copy's figure was measured",
                |g| Some(Basis::word(g.$field.as_ref()?.basis)),
            ),
            Row::word(
                concat!(stringify!($field), ".direction"),
                concat!("worse direction", $with),
                "which way of an echo flow decided; null if both together did",
                |g| g.$field.as_ref()?.direction.map(Direction::word),
            ),
            Row::flag(
                concat!(stringify!($field), ".barred"),
                concat!("barred by gaps", $with),
                "whether the gaps of a call, of any copy, bar it from being usable",
                |g| Some(g.$field.as_ref()?.barred),
            )
            .less(),
            Row::number_of(
                concat!(stringify!($field), ".longest_gap_ms"),
                Unit::Ms,
                concat!("longest gap", $with),
                "the longest gap of any copy; null if it is no call",
                |g| g.$field.as_ref()?.longest_gap_ms,
            )
            .less(),
        ]
    };
}

const JUDGED: &[Row] = &judged!(judged, "");

const OTHER_RECEIVER: &[Row] = &judged!(judged_with_other_receiver, " with the second receiver");

const PATIENT_RECEIVER: &[Row] = &judged!(judged_with_patient_receiver, " with the patient receiver");

impl JudgedBy {
    /// Returns the word in summary.json.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mos => "mos",
            Self::Heard => "heard",
            Self::InTime => "in_time",
            Self::Goodput => "goodput",
        }
    }
}
