//! The keys of a campaign file (`crate::campaign`).

use crate::compare::Compared;
use crate::spec::{
    ANY_DURATION, Default, Key, Kind, LONGEST_NAME, LONGEST_PATH, Listed, SOME_DURATION, TableSpec, Tagged,
    Variant, Words, key, quantity,
};

/// The file itself.
pub(crate) static CAMPAIGN: TableSpec = TableSpec { noun: "a campaign", keys: ROOT_KEYS };

const ROOT_KEYS: &[Key] = &[
    key(
        "name",
        Kind::Text { longest: LONGEST_NAME },
        Default::Follows("the file's name"),
        "what the directory and the report are called",
    ),
    key(
        "seed",
        Kind::Count { least: 0, most: i64::MAX as u64 },
        Default::Is("1"),
        "the random starts and each measurement's own seed follow from it",
    ),
    key(
        "key_file",
        Kind::Text { longest: LONGEST_PATH },
        Default::Absent("servers are `--open`, or listen on loopback"),
        "the key of the hosts that name none of their own; a file on the coordinator, which hands it to the hosts that it starts \
         something on",
    ),
    key(
        "store_command",
        Kind::Names(&STORE_COMMAND),
        Default::Absent("records are in the campaign's directory alone"),
        "the program, with its arguments, that copies each file of the records to a store as well. `{file}` stands for the path of the file, \
         `{key}` for its name in the store. No shell reads it",
    ),
    key(
        "store_timeout",
        quantity(SOME_DURATION),
        Default::Absent("10 min"),
        "how long `store_command` may take for one file; then it is ended and has failed",
    ),
    key("between", Kind::Tagged(&BETWEEN), Default::Is("\"mesh\""), "which hosts are measured with which"),
    key("host", Kind::Map(&HOST), Default::Required, "`[host.NAME]`: a place to measure from or to"),
    key("measure", Kind::Map(&MEASURE), Default::Required, "`[measure.NAME]`: what runs between two hosts"),
    key("schedule", Kind::Table(&SCHEDULE), Default::Required, "when"),
];

pub(crate) static STORE_COMMAND: Listed = Listed {
    one: "a word",
    many: "words",
    example: "[\"rclone\", \"copyto\", \"{file}\", \"REMOTE:BUCKET/{key}\"]",
    most: 100,
};

/// Which hosts are measured with which.
static BETWEEN: Tagged = Tagged {
    noun: "a choice of pairs",
    variants: &[
        Variant {
            name: "mesh",
            doc: "each host with each other, once; the one that the file names first starts the measurement",
            keys: &[],
        },
        Variant {
            name: "hub",
            doc: "one host with each other; it starts the measurements",
            keys: &[key("hub", Kind::Text { longest: 64 }, Default::Required, "its name")],
        },
        Variant {
            name: "pairs",
            doc: "the pairs of a list",
            keys: &[key("pairs", Kind::Names(&PAIRS), Default::Required, PAIR_DOC)],
        },
    ],
    later: &[],
    number: None,
    quantity: None,
};

const PAIR_DOC: &str = "pairs as `\"NEAR > FAR\"`; the near host starts the measurement";

static PAIRS: Listed = Listed {
    one: "a pair such as \"berlin > tokyo\"",
    many: "pairs",
    example: "[\"berlin > tokyo\", \"berlin > lima\"]",
    most: 10_000,
};

/// A host.
static HOST: TableSpec = TableSpec {
    noun: "a host",
    keys: &[
        key(
            "address",
            Kind::Text { longest: 300 },
            Default::Absent("nothing can be measured to it, only from it"),
            "where its `talkpath serve` is reached: a name or an address, with `:PORT` unless it is 7160",
        ),
        key(
            "key_file",
            Kind::Text { longest: LONGEST_PATH },
            Default::Absent("the campaign's `key_file`"),
            "the key of its server, as a file on the coordinator",
        ),
        key(
            "ssh",
            Kind::Text { longest: 300 },
            Default::Absent("nothing can be started there, unless it is `local`"),
            "what `ssh` calls it; the system's `ssh` runs with its own configuration and asks nothing (`BatchMode`)",
        ),
        key("local", Kind::Flag, Default::Is("false"), "whether it is the machine that coordinates"),
        key(
            "via",
            Kind::Names(&WORDS),
            Default::Absent("commands run as they are"),
            "words before each command on that host, as `[\"ip\", \"netns\", \"exec\", \"lab\"]`",
        ),
        key(
            "program",
            Kind::Text { longest: LONGEST_PATH },
            Default::Is("\"talkpath\""),
            "what `talkpath` is called there; on the coordinator \"talkpath\" is the program itself",
        ),
        key(
            "server",
            Kind::Choice(&SERVER),
            Default::Is("\"standing\""),
            "`standing`: somebody else runs `talkpath serve` there. `start`: each measurement starts one and stops it",
        ),
        key(
            "bind",
            Kind::Text { longest: 300 },
            Default::Absent("`address`, if it is one; else every address at its port"),
            "where a server that is started listens: ADDR:PORT",
        ),
        key(
            "at_once",
            Kind::Count { least: 1, most: 1000 },
            Default::Is("1"),
            "measurements at the same time",
        ),
        key(
            "emulated",
            Kind::Text { longest: LONGEST_PATH },
            Default::Absent("the path is the network"),
            "a file with `path`, and perhaps `far_clock`, `kernel` and `flow` tables of a scenario: the way to this host is emulated on the near \
             host, which must be `local`; it needs no `address`",
        ),
    ],
};

static WORDS: Listed =
    Listed { one: "a word", many: "words", example: "[\"ip\", \"netns\", \"exec\", \"lab\"]", most: 100 };

static SERVER: Words = Words { noun: "a kind of server", known: &["standing", "start"], later: &[], why: "" };

/// What runs between two hosts.
static MEASURE: TableSpec = TableSpec {
    noun: "a measurement",
    keys: &[
        key(
            "scenario",
            Kind::Text { longest: LONGEST_PATH },
            Default::Absent("`workload`, `transports` and `duration` say what runs"),
            "a scenario file, which then says all this itself",
        ),
        key(
            "workload",
            Kind::Choice(&WORKLOAD),
            Default::Absent("`voice`"),
            "the workloads that `talkpath compare` knows",
        ),
        key(
            "transports",
            Kind::Names(&TRANSPORTS),
            Default::Absent("`udp`, `tcp` and `tcp-nodelay`; for `bulk` `tcp`"),
            "one at a time; each has its turn in every round, in an order drawn anew",
        ),
        key(
            "duration",
            quantity(SOME_DURATION),
            Default::Absent("10 s"),
            "how long each transport sends in each round",
        ),
        key(
            "drain",
            quantity(ANY_DURATION),
            Default::Absent("5 s, or the scenario's"),
            "as the scenario's `drain`",
        ),
        key(
            "rounds",
            Kind::Count { least: 1, most: 10_000 },
            Default::Absent("3, or the scenario's `repeat`"),
            "rounds of one measurement",
        ),
        key(
            "pairs",
            Kind::Names(&PAIRS),
            Default::Absent("every pair of the campaign"),
            "the only pairs that it runs between, as `\"NEAR > FAR\"`",
        ),
    ],
};

static TRANSPORTS: Listed = Listed {
    one: "the name of a transport",
    many: "transports",
    example: "[\"udp\", \"tcp-nodelay\"]",
    most: 20,
};

static WORKLOAD: Words = Words { noun: "a workload", known: Compared::WORDS, later: &[], why: "" };

/// When it runs.
static SCHEDULE: TableSpec = TableSpec {
    noun: "a schedule",
    keys: &[
        key(
            "zone",
            Kind::Text { longest: 100 },
            Default::Is("\"UTC\""),
            "the time zone of `start`, of days and of hours, by its name in the IANA database: `Europe/Berlin`",
        ),
        key(
            "start",
            Kind::Text { longest: 40 },
            Default::Absent("when the campaign is first run"),
            "when the first day begins, as the clocks of `zone` show it: `2026-12-01 06:00`",
        ),
        key(
            "every",
            quantity(SOME_DURATION),
            Default::Required,
            "how often each pair is measured, counted from `start` by the clocks of `zone`: \"6 h\" is at the same four hours each day, also \
             when summer time begins or ends",
        ),
        key("days", Kind::Count { least: 1, most: 3660 }, Default::Required, "how many days it goes on"),
        key("day", quantity(SOME_DURATION), Default::Is("\"24 h\""), "how long a day of this campaign is"),
        key(
            "start_within",
            quantity(ANY_DURATION),
            Default::Is("\"0 s\""),
            "each measurement is due at a moment drawn uniformly from so long after its time",
        ),
        key(
            "window",
            quantity(SOME_DURATION),
            Default::Absent("`every`"),
            "until when after its time a measurement may begin; what could not is recorded with its reason",
        ),
        key(
            "retry",
            quantity(SOME_DURATION),
            Default::Is("\"30 s\""),
            "how long after a failure it is tried again; twice as long after each further one, up to 16 times",
        ),
    ],
};
