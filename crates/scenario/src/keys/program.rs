//! The keys of `[program]`: a program of the user on the path.

use crate::spec::{Default, Kind, Listed, SOME_DURATION, TableSpec, Words, key, quantity};

/// A program of the user.
pub(crate) static PROGRAM: TableSpec = TableSpec {
    noun: "a program",
    keys: &[
        key(
            "command",
            Kind::Names(&COMMAND),
            Default::Required,
            "the words of the command, which runs at the near end. No shell reads them. In the record of `talkpath shell` the name of the program; with `--names` all words",
        ),
        key(
            "server",
            Kind::Names(&SERVER),
            Default::Absent(
                "nothing of the user's runs at the far end, and the near end reaches this machine's network if pasta is installed",
            ),
            "the words of a command that runs at the far end. It starts first, and the command starts when a socket there waits for connections or datagrams. It is ended with the command",
        ),
        key(
            "timeout",
            quantity(SOME_DURATION),
            Default::Follows("`duration`"),
            "the longest time that the command may take, at most `duration`. A command that takes longer is ended, and its repetition has failed",
        ),
        key(
            "figures",
            Kind::Map(&FIGURE),
            Default::Absent("no figure is read back"),
            "`[program.figures.NAME]`: figures in the command's standard output. A command that ends well and does not print one of them has failed",
        ),
        key(
            "shell",
            Kind::Flag,
            Default::Is("false"),
            "whether a person ran it by `talkpath shell`. `run` refuses such a scenario",
        ),
    ],
};

/// A figure in the output of a program.
pub(crate) static FIGURE: TableSpec = TableSpec {
    noun: "a figure of a program",
    keys: &[
        key(
            "json",
            Kind::Text { longest: LONGEST_PATTERN },
            Default::Absent("`regex` then says where the figure is"),
            "a path in JSON (RFC 9535): `$.end.bits_per_second`. The output is JSON as a whole, or its last line is",
        ),
        key(
            "regex",
            Kind::Text { longest: LONGEST_PATTERN },
            Default::Absent("`json` then says where the figure is"),
            "a regular expression in the syntax of the crate regex: `stalled ([0-9.]+) s`. The figure is its group, or all that matches if it has none; the last match counts",
        ),
        key(
            "unit",
            Kind::Text { longest: LONGEST_UNIT },
            Default::Absent("the figure has no unit"),
            "the unit of the figure in tables and charts",
        ),
        key(
            "better",
            Kind::Choice(&BETTER),
            Default::Is("\"more\""),
            "which figure is better: charts colour it",
        ),
    ],
};

/// The words of commands.
static COMMAND: Listed = Listed { one: "a word", many: "words", example: "[\"iperf3\"]", most: MOST_WORDS };
static SERVER: Listed =
    Listed { one: "a word", many: "words", example: "[\"iperf3\", \"-s\"]", most: MOST_WORDS };

static BETTER: Words = Words { noun: "a direction", known: &["more", "less"], later: &[], why: "" };

/// The largest number of words. We chose 1000 because nobody writes more by hand.
const MOST_WORDS: usize = 1000;
/// The largest number of characters of a path or an expression. We chose 1000 for the same reason.
const LONGEST_PATTERN: usize = 1000;
/// The largest number of characters of a unit. We chose 16 because it is in the title of a column.
const LONGEST_UNIT: usize = 16;
