//! The figures of the clocks of two hosts: how they differ, and how well the difference is known.

use super::row::{Figure, Table};
use super::unit::Unit;
use crate::summary::Clock;

/// The figures of the clocks, in the order of summary.json.
pub static CLOCK: Table<Clock> = Table::new(&[ROWS]);

type Row = Figure<Clock>;

const ROWS: &[Row] = &[
    Row::number_of("offset_ms", Unit::Ms, "clock offset", "the far clock minus ours", |c| c.offset_ms)
        .within(f64::NEG_INFINITY, f64::INFINITY),
    Row::number_of("skew_ppm", Unit::Ppm, "clock skew", "drift of the far clock against ours", |c| {
        c.skew_ppm
    })
    .within(f64::NEG_INFINITY, f64::INFINITY),
    Row::number_of(
        "uncertainty_ms",
        Unit::Ms,
        "clock uncertainty",
        "half the smallest round trip: how far an asymmetry of the path can put the offset off",
        |c| c.uncertainty_ms,
    )
    .less(),
    Row::number_of(
        "change_uncertainty_ms",
        Unit::Ms,
        "clock change uncertainty",
        "how far the far clock can have left its straight line during the run",
        |c| c.change_uncertainty_ms,
    )
    .less(),
    Row::flag(
        "synchronised",
        "clocks synchronised",
        "whether the user vouches that both hosts read one time",
        |c| Some(c.synchronised),
    ),
    Row::flag("trusted", "clocks trusted", "whether one-way figures are shown", |c| Some(c.trusted)).more(),
    Row::word("why", "why", "why they are trusted, or why not", |c| Some(&c.why)),
];
