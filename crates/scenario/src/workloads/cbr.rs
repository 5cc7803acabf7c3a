//! The workload `cbr`: messages at a constant rate.
//!
//! The *clock* of a `cbr` is the moments at which its messages are due. The file sets either the bit rate
//! (`rate`) or the frequency of messages (`message_rate`). All messages have one size, or each has a random
//! size.

use talkpath_model::{LEAST_DRAWN, MessageSize, WorkloadConfig};
use talkpath_units::{Bytes, Rate};

use super::{ECHO, ECHO_WRITE_KEY, FLOOR, FlowTerms, MESSAGE, MeasuredWorkload, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Amount, Dimension, DimensionRange, Problem};
use crate::section::Section;
use crate::spec::{ANY_RATE, Default, Kind, SOME_DURATION, Variant, key, quantity, range};
use crate::tree::Meaning;

pub(super) const CBR: Workload = Workload {
    keys: Variant {
        name: "cbr",
        doc: "constant bit rate: a message of `size` bytes at each tick of a clock, which `rate` or `message_rate` sets",
        keys: &[
            key(
                "rate",
                quantity(ANY_RATE),
                Default::Absent("`message_rate` sets the clock; one of the two keys is required"),
                "payload bits per second",
            ),
            key(
                "message_rate",
                quantity(MESSAGE_RATE),
                Default::Absent("`rate` sets the clock"),
                "messages per second; the `rate` that follows is rounded to whole bits per second",
            ),
            key(
                "size",
                quantity(MESSAGE),
                Default::Required,
                "payload of a message; with `min_size` it is the largest payload",
            ),
            key(
                "min_size",
                quantity(DRAWN_MESSAGE),
                Default::Absent("`size`: all messages are of one size"),
                "the smallest payload of a message. The sender chooses each size at random, uniformly from `min_size` to `size`, and `rate` is the mean rate",
            ),
            key(
                "deadline",
                quantity(SOME_DURATION),
                Default::Absent("150 ms, with `echo` 300 ms (ITU-T G.114)"),
                "the time after a message was due within which it must be received. With `echo` its echo must be received within this time",
            ),
            key(
                "state",
                Kind::Flag,
                Default::Is("false"),
                "whether a message replaces all earlier messages, as a game's state does. The flow is then judged by the age of the newest state",
            ),
            FLOOR,
            ECHO,
            ECHO_WRITE_KEY,
        ],
    },
    read,
};

/// A message of random size begins with its size and its number, so it cannot be smaller than these two.
const DRAWN_MESSAGE: &[DimensionRange] = &[range(Dimension::Size, LEAST_DRAWN.get(), 1_000_000_000)];

/// We chose a range from 1 mHz, one message in 17 minutes, to 1 GHz, one message per nanosecond of the
/// simulator's clock.
const MESSAGE_RATE: &[DimensionRange] = &[range(Dimension::Frequency, 1, 1_000_000_000_000)];

fn read(section: &Section<'_>, _: FlowTerms<'_>, log: &mut Log) -> Option<MeasuredWorkload> {
    // Both are read before the first `?`, so that a mistake in one does not hide a mistake in the other.
    let size = read_size(section, log);
    let clock = read_clock(section, log);
    let (clock, size) = (clock?, size?);
    let rate = match clock.amount.dimension {
        Dimension::Frequency => bit_rate(clock.amount.count, size),
        _ => Some(Rate::from_bps(clock.amount.count)),
    };
    let Some(rate) = rate else {
        let mean_size = Bytes::new(size.twice_mean() / 2);
        let message =
            format!("found {} of {mean_size}, expected at least 1 bps and at most 100 Tbps", clock.amount);
        section.problem("message_rate", message, log);
        return None;
    };
    Some(MeasuredWorkload { workload: WorkloadConfig::Cbr { rate, size }, count_key: clock.key })
}

/// The key that sets the clock of a `cbr`, with its value.
struct Clock {
    key: &'static str,
    amount: Amount,
}

fn read_clock(section: &Section<'_>, log: &mut Log) -> Option<Clock> {
    let key = match (section.node("rate"), section.node("message_rate")) {
        (Some(_), None) => "rate",
        (None, Some(_)) => "message_rate",
        (Some(_), Some(_)) => {
            let problem = Problem::new("found both `rate` and `message_rate`, expected one");
            section.problem("message_rate", problem, log);
            return None;
        }
        (None, None) => {
            let problem = Problem::new("missing; expected a rate such as \"1.5 Mbps\"")
                .with_help("or `message_rate`, such as \"60 Hz\"");
            section.problem("rate", problem, log);
            return None;
        }
    };
    match section.meaning(key)? {
        Meaning::Amount(amount) => Some(Clock { key, amount }),
        _ => None,
    }
}

fn read_size(section: &Section<'_>, log: &mut Log) -> Option<MessageSize> {
    let max = section.bytes("size")?;
    if section.node("min_size").is_none() {
        return Some(MessageSize::Constant(max));
    }
    let min = section.bytes("min_size")?;
    if min > max {
        let message = format!("found {min}, expected at most `size`, which is {max}");
        section.problem("min_size", message, log);
        return None;
    }
    Some(MessageSize::Uniform { min, max })
}

/// Returns the mean rate of messages with the frequency `millihertz`, rounded to whole bits per second.
/// Returns `None` if the rate is outside of the bounds of the key `rate`.
fn bit_rate(millihertz: u64, size: MessageSize) -> Option<Rate> {
    // Twice the mean size is a whole number of bytes, so a byte of it has 4 bits.
    let bits_in_1000_s = u128::from(millihertz) * u128::from(size.twice_mean()) * 4;
    let bps = u64::try_from((bits_in_1000_s + 500) / 1_000).ok()?;
    let [DimensionRange { least, most, .. }] = ANY_RATE else { return None };
    (*least..=*most).contains(&bps).then_some(Rate::from_bps(bps))
}
