//! `cbr`: messages on one clock, all of one size or of sizes that are drawn.

use talkpath_model::{LEAST_DRAWN, MessageSize, WorkloadConfig};
use talkpath_units::{Bytes, Rate};

use super::{Counted, ECHO, ECHO_WRITE_KEY, FLOOR, FileTerms, MESSAGE, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, Measure, Problem};
use crate::section::Section;
use crate::spec::{ANY_RATE, Default, Kind, SOME_DURATION, Variant, key, measure, quantity};
use crate::tree::Meaning;

/// Constant bit rate.
pub(super) const CBR: Workload = Workload {
    keys: Variant {
        name: "cbr",
        doc: "constant bit rate: `size` bytes on the clock that `rate` or `message_rate` sets",
        keys: &[
            key(
                "rate",
                quantity(ANY_RATE),
                Default::Absent("what `message_rate` sets; one of the two is required"),
                "payload bits a second",
            ),
            key(
                "message_rate",
                quantity(MESSAGE_RATE),
                Default::Absent("what `rate` sets"),
                "messages a second, rounded to a whole `rate`",
            ),
            key(
                "size",
                quantity(MESSAGE),
                Default::Required,
                "payload of a message; with `min_size` the most",
            ),
            key(
                "min_size",
                quantity(DRAWN_MESSAGE),
                Default::Absent("`size`: all messages are of one size"),
                "the least payload of a message: the sender draws each size, uniform from `min_size` to `size`, and `rate` is the mean",
            ),
            key(
                "deadline",
                quantity(SOME_DURATION),
                Default::Absent("150 ms, with `echo` 300 ms (ITU-T G.114)"),
                "until when a message, with `echo` its echo, is in time; counted from when the message was due",
            ),
            key(
                "state",
                Kind::Flag,
                Default::Is("false"),
                "whether each message replaces those before it, so that the age of the newest one counts",
            ),
            FLOOR,
            ECHO,
            ECHO_WRITE_KEY,
        ],
    },
    read,
};

/// A message whose size varies says its size and its number in its first bytes.
const DRAWN_MESSAGE: &[Measure] = &[measure(Dimension::Size, LEAST_DRAWN.get(), 1_000_000_000)];

/// From one message in a quarter of an hour to a message a nanosecond, in mHz. Chosen.
const MESSAGE_RATE: &[Measure] = &[measure(Dimension::Frequency, 1, 1_000_000_000_000)];

fn read(section: &Section<'_>, _: FileTerms<'_>, log: &mut Log) -> Option<Counted> {
    let size = sizes(section, log);
    let clock = match (section.node("rate"), section.node("message_rate")) {
        (Some(_), None) | (None, Some(_)) => section.meaning(clock_key(section)),
        (Some(_), Some(_)) => {
            section.problem(
                "message_rate",
                Problem::new("found both `rate` and `message_rate`, expected one"),
                log,
            );
            None
        }
        (None, None) => {
            let problem = Problem::new("missing; expected a rate such as \"1.5 Mbps\"")
                .with_help("or `message_rate`, such as \"60 Hz\"");
            section.problem("rate", problem, log);
            None
        }
    };
    let (Some(Meaning::Amount(clock)), Some(size)) = (clock, size) else { return None };
    let bps = match clock.dimension {
        Dimension::Frequency => bps_of(clock.count, size),
        _ => Some(clock.count),
    };
    let Some(bps) = bps else {
        let mean = Bytes::new(size.twice_mean() / 2);
        let message = format!("found {clock} of {mean}, expected at least 1 bps and at most 100 Tbps");
        section.problem("message_rate", Problem::new(message), log);
        return None;
    };
    let workload = WorkloadConfig::Cbr { rate: Rate::from_bps(bps), size };
    Some(Counted { workload, by: clock_key(section) })
}

/// The sizes of its messages.
fn sizes(section: &Section<'_>, log: &mut Log) -> Option<MessageSize> {
    let max = section.bytes("size")?;
    if section.node("min_size").is_none() {
        return Some(MessageSize::Constant(max));
    }
    let min = section.bytes("min_size")?;
    if min > max {
        let message = format!("found {min}, expected at most `size`, which is {max}");
        section.problem("min_size", Problem::new(message), log);
        return None;
    }
    Some(MessageSize::Uniform { min, max })
}

/// The key that sets the clock of a `cbr`.
fn clock_key(cbr: &Section<'_>) -> &'static str {
    if cbr.node("message_rate").is_some() { "message_rate" } else { "rate" }
}

/// The mean rate of messages of `size`, with `millihertz` messages in 1000 s, rounded to the nearest; `None`
/// if no link could have it.
fn bps_of(millihertz: u64, size: MessageSize) -> Option<u64> {
    let thousandths = u128::from(millihertz) * u128::from(size.twice_mean()) * 4;
    let bps = u64::try_from((thousandths + 500) / 1_000).ok()?;
    (1..=MAX_BPS).contains(&bps).then_some(bps)
}

/// As the bound of `rate`.
const MAX_BPS: u64 = 100_000_000_000_000;
