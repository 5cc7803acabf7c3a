//! The keys of a change: `[[change]]`.

use crate::quantity::{Dimension, DimensionRange};
use crate::spec::{
    ANY_DURATION, ANY_RATE, Default, FileKind, Key, Kind, LARGEST_SIZE, SOME_DURATION, TableSpec, Words, key,
    quantity, range,
};

/// Values of a link that change at a stated time.
pub(crate) static CHANGE: TableSpec = TableSpec { noun: "a change", keys: CHANGE_KEYS };

/// What a change sets of a queue.
pub(crate) static CHANGED_QUEUE: TableSpec = TableSpec {
    noun: "a changed queue",
    keys: &[key(
        "limit",
        quantity(ANY_LIMIT),
        Default::Required,
        "how much may wait from then on. What has no room is dropped by the discipline's own rule",
    )],
};

const CHANGE_KEYS: &[Key] = &[
    key(
        "name",
        Kind::Text { longest: 64 },
        Default::Absent("what it changes, as in `up: rate down to 2 Mb/s`"),
        "what people call the change, as in `\"rain\"`. Changes with one name are one cause in an answer",
    ),
    key(
        "link",
        Kind::Text { longest: 64 },
        Default::Absent("every link"),
        "the link that changes: `up` or `down` of a path, or the name of a `link` table",
    ),
    key(
        "at",
        quantity(ANY_DURATION),
        Default::Absent("with `every`, one period after the run's beginning"),
        "when the change comes, counted from the run's beginning; with `every`, the first time",
    ),
    key(
        "every",
        quantity(SOME_DURATION),
        Default::Absent("the change comes once"),
        "the change comes again each time this has passed",
    ),
    key(
        "phase",
        Kind::Quantity { ranges: ANY_DURATION, words: &["random"] },
        Default::Absent("the period begins with the run"),
        "by how much the change is shifted within its period. `\"random\"` draws it in each repetition; changes with the same \
         `every` share the draw",
    ),
    key(
        "rate",
        Kind::Quantity { ranges: ANY_RATE, words: &["unlimited"] },
        Default::Absent("the rate stays"),
        "the rate from then on. The packet in service ends at the rate at which it began",
    ),
    key(
        "delay",
        quantity(ANY_DURATION),
        Default::Absent("the delay stays"),
        "the propagation delay of packets whose service begins then or later",
    ),
    key(
        "loss",
        Kind::Tagged(&super::link::LOSS),
        Default::Absent("the loss stays"),
        "which packets the wire eats from then on; a bare number is `bernoulli`",
    ),
    key("queue", Kind::Table(&CHANGED_QUEUE), Default::Absent("the queue stays"), "the queue's `limit`"),
    key(
        "over",
        quantity(SOME_DURATION),
        Default::Absent("the values hold at once"),
        "a ramp: the values go from the present ones to these in `steps` equal steps, which end after this time",
    ),
    key(
        "steps",
        Kind::Count { least: 1, most: 10_000 },
        Default::Absent("10"),
        "the number of steps of a ramp; the first comes after `over` divided by this",
    ),
    key(
        "outage",
        quantity(SOME_DURATION),
        Default::Absent("no outage begins"),
        "no service begins for this long. The packet in service, and packets on the wire, go on",
    ),
    key(
        "up",
        Kind::Flag,
        Default::Absent("the link stays up or down"),
        "false is an outage that ends when a later change has true",
    ),
    key(
        "waiting",
        Kind::Choice(&WAITING),
        Default::Absent("`\"keep\"`"),
        "what an outage does to packets that wait or come: they are kept within the queue's limit, or dropped",
    ),
    key(
        "overtake",
        Kind::Flag,
        Default::Absent("false: a packet waits for those before it"),
        "whether packets with a shorter `delay` may overtake packets that began before the change",
    ),
    key(
        "file",
        Kind::File(FileKind::ChangeTable),
        Default::Absent("the values are in this table"),
        "values over time from a file. Its first line names the columns: `time_s`, `time_ms`, `time_us`, `time_ns` or `time` (dates), and \
         any of `rate_bps`, `rate_kbps`, `rate_mbps`, `delay_ms`, `rtt_ms` (half each way), `loss`, `loss_percent`, or with one \
         direction as in `up_kbps` and `down_delay_ms`. Dates and times since 1970 count from the first row. `at` is added to its \
         times, and with `every` it repeats",
    ),
];

/// What happens to packets that wait.
static WAITING: Words =
    Words { noun: "what happens to waiting packets", known: &["keep", "drop"], later: &[], why: "" };

/// As the disciplines have it, and zero: no packet may wait.
const ANY_LIMIT: &[DimensionRange] = &[
    range(Dimension::Packets, 0, talkpath_config::LARGEST_WINDOW.get()),
    range(Dimension::Size, 0, LARGEST_SIZE),
];
