//! The keys at the top of a scenario file.

use crate::spec::{
    ANY_DURATION, Default, Key, Kind, LONGEST_NAME, SOME_DURATION, TableSpec, Words, key, quantity,
};

/// The file itself.
pub(crate) static ROOT: TableSpec = TableSpec { noun: "a scenario", keys: ROOT_KEYS };

const ROOT_KEYS: &[Key] = &[
    key(
        "name",
        Kind::Text { longest: LONGEST_NAME },
        Default::Follows("the file's name"),
        "the name of the run directory and the title of the report",
    ),
    key(
        "duration",
        quantity(SOME_DURATION),
        Default::Required,
        "the time for which flows send, from the beginning of the run; then the run drains. With `[program]` the run ends \
         with the program, and this is its longest time",
    ),
    key(
        "drain",
        quantity(ANY_DURATION),
        Default::Is("\"5 s\""),
        "after `duration`, the run ends when all messages are delivered, or when no message was delivered for this time",
    ),
    key(
        "warm_up",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "messages that are due before this time are left out of the figures; it is less than `duration`",
    ),
    key(
        "repeat",
        Kind::Count { least: 1, most: 1_000_000 },
        Default::Is("1"),
        "the number of repetitions of each cell; each has a seed of its own, which is derived from `seed`",
    ),
    key(
        "seed",
        Kind::Seed,
        Default::Is("1"),
        "the seed of all random numbers. Above 9223372036854775807, the largest integer of TOML, it is written as text",
    ),
    key(
        "path",
        Kind::Path(&super::PATH),
        Default::Absent("`link` tables then say what lies between the hosts"),
        "two hosts and a bottleneck each way: the name of a preset, a table with `up` and `down`, or a file: one with [up], [down] \
         and [[change]], or a table or trace as `--path` takes it. A name with a point or a slash is a file, beside the scenario",
    ),
    key(
        "link",
        Kind::Map(&super::LINK),
        Default::Absent("`path` then says what lies between the hosts"),
        "`[link.NAME]`: one-way links, for the flows' `route`s; with `{n}` in its name, one for each copy of the flows \
         that name it",
    ),
    key(
        "change",
        Kind::List(&super::CHANGE),
        Default::Absent("the links stay as they are"),
        "`[[change]]`: values of links that change at stated times, and outages; in `sim` and `emu`. Errors, `--set` and `--sweep` \
         count them from 1: `change.1.at`. Those of a path's file or preset come behind the scenario's own",
    ),
    key(
        "far_clock",
        Kind::Table(&FAR_CLOCK),
        Default::Absent("both hosts read one clock"),
        "the error of the second host's clock, in `sim` and `emu`. It changes the host's timestamps, but not the times at which the host sends. Two-way probes \
         then estimate the clock; one-way figures that they cannot correct are `null`",
    ),
    key(
        "ip",
        Kind::Choice(&IP),
        Default::Is("\"ipv4\""),
        "the version of IP that carries the flows. IPv6 has 20 B more of header in each packet and needs links of 1280 B and \
         more; `live` then needs the far host's IPv6 address",
    ),
    key(
        "kernel",
        Kind::Tagged(&super::KERNEL),
        Default::Absent("each transport has the defaults of its own keys"),
        "the kernel of both hosts: a set of defaults for the transports with `stack = \"linux\"`. A key of a transport wins",
    ),
    key(
        "flow",
        Kind::Map(&super::FLOW),
        Default::Absent("only `program` sends. A scenario without `program` needs at least one flow"),
        "`[flow.NAME]`: what is sent, over what",
    ),
    key(
        "program",
        Kind::Table(&super::PROGRAM),
        Default::Absent("only flows of our own cross the path"),
        "a program of the user on the path. `run --allow-program` and `study run --allow-program` run it, in the arena `emu`; nothing else does",
    ),
    key(
        "sweep",
        Kind::Sweep,
        Default::Absent("one cell"),
        "`\"KEY\" = [VALUES]`: one cell per combination, the last key moving fastest",
    ),
    key(
        "thresholds",
        Kind::Thresholds,
        Default::Absent("nothing is demanded"),
        "`\"FLOW.FIGURE\" = \">= 3.6\"`, or a list of bounds: figures of summary.json that must hold, else the exit code is 5. \
         They do not change what runs",
    ),
];

/// RFC 791, RFC 8200.
static IP: Words = Words { noun: "a version of IP", known: &["ipv4", "ipv6"], later: &[], why: "" };

/// The second host's clock.
pub(crate) static FAR_CLOCK: TableSpec = TableSpec {
    noun: "a clock",
    keys: &[
        key(
            "offset",
            quantity(ANY_DURATION),
            Default::Is("\"0 s\""),
            "the time by which the clock is ahead of the first host's clock at the beginning of the run",
        ),
        key(
            "skew",
            Kind::Number { above: -MOST_SKEW_PPM, most: MOST_SKEW_PPM },
            Default::Is("0.0"),
            "the excess of the clock's frequency, in parts per million; a negative value is a slow clock",
        ),
        key(
            "jump",
            quantity(ANY_DURATION),
            Default::Is("\"0 s\""),
            "the size of the clock's jumps, which go ahead and back in turns",
        ),
        key(
            "jump_every",
            quantity(SOME_DURATION),
            Default::Absent("it never jumps"),
            "the time before the first jump, and between two jumps",
        ),
    ],
};

/// We chose 10 %, because no clock that works is so wrong.
const MOST_SKEW_PPM: f64 = 100_000.0;
