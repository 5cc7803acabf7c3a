//! The keys of a campaign file. `crate::campaign` says what a host, a measure, a pair and a round are.

use crate::compare::ComparedWorkload;
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
        "the name of the campaign's directory and the title of its report",
    ),
    key(
        "seed",
        Kind::Count { least: 0, most: i64::MAX as u64 },
        Default::Is("1"),
        "the seed of the random starts and of each measurement",
    ),
    key(
        "key_file",
        Kind::Text { longest: LONGEST_PATH },
        Default::Absent("servers are `--open`, or listen on loopback"),
        "the file with the key of each host that names no `key_file`. It is on the coordinator, which passes the key to the hosts on which it \
         starts a program",
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
        "the timeout of `store_command` for one file. A copy that takes longer is stopped and has failed",
    ),
    key("between", Kind::Tagged(&BETWEEN), Default::Is("\"mesh\""), "the pairs of hosts that are measured"),
    key("host", Kind::Map(&HOST), Default::Required, "`[host.NAME]`: a machine to measure from or to"),
    key(
        "measure",
        Kind::Map(&MEASURE),
        Default::Required,
        "`[measure.NAME]`: what to run, and between which hosts",
    ),
    key("schedule", Kind::Table(&SCHEDULE), Default::Required, "the times of the measurements"),
];

pub(crate) static STORE_COMMAND: Listed = Listed {
    one: "a word",
    many: "words",
    example: "[\"rclone\", \"copyto\", \"{file}\", \"REMOTE:BUCKET/{key}\"]",
    most: 100,
};

static BETWEEN: Tagged = Tagged {
    noun: "a choice of pairs",
    variants: &[
        Variant {
            name: "mesh",
            doc: "each host with each other host, once. The host that the file names first starts the measurement",
            keys: &[],
        },
        Variant {
            name: "hub",
            doc: "one host, the hub, with each other host. The hub starts the measurements",
            keys: &[key("hub", Kind::Text { longest: 64 }, Default::Required, "the name of the hub")],
        },
        Variant {
            name: "pairs",
            doc: "the pairs of a list",
            keys: &[key("pairs", Kind::Names(&PAIRS), Default::Required, PAIR_DOC)],
        },
    ],
    ..Tagged::PLAIN
};

const PAIR_DOC: &str = "pairs as `\"NEAR > FAR\"`. The near host starts the measurement";

static PAIRS: Listed = Listed {
    one: "a pair such as \"berlin > tokyo\"",
    many: "pairs",
    example: "[\"berlin > tokyo\", \"berlin > lima\"]",
    most: 10_000,
};

pub(crate) static HOST: TableSpec = TableSpec {
    noun: "a host",
    keys: &[
        key(
            "address",
            Kind::Text { longest: 300 },
            Default::Absent("nothing can be measured to it, only from it"),
            "the address of its `talkpath serve`: a name or an IP address, with `:PORT` unless the port is 7160",
        ),
        key(
            "key_file",
            Kind::Text { longest: LONGEST_PATH },
            Default::Absent("the campaign's `key_file`"),
            "the file with the key of its server, on the coordinator",
        ),
        key(
            "ssh",
            Kind::Text { longest: 300 },
            Default::Absent("nothing can be started there, unless it is `local`"),
            "the destination for the system's `ssh`, which uses its own configuration and asks nothing (`BatchMode`)",
        ),
        key("local", Kind::Flag, Default::Is("false"), "whether the host is the coordinator"),
        key(
            "via",
            Kind::Names(&WORDS),
            Default::Absent("commands run as they are"),
            "the words to put before each command on that host, for example `[\"ip\", \"netns\", \"exec\", \"lab\"]`",
        ),
        key(
            "program",
            Kind::Text { longest: LONGEST_PATH },
            Default::Is("\"talkpath\""),
            "the name or path of `talkpath` there. On the coordinator \"talkpath\" is the running program itself",
        ),
        key(
            "server",
            Kind::Choice(&SERVER),
            Default::Is("\"standing\""),
            "`standing`: a `talkpath serve` already runs there. `start`: each measurement starts a server there and stops it",
        ),
        key(
            "bind",
            Kind::Text { longest: 300 },
            Default::Absent(
                "`address` if it is an IP address, else every address with the port of `address`",
            ),
            "the address on which a server that a measurement starts listens: ADDR:PORT",
        ),
        key(
            "at_once",
            Kind::Count { least: 1, most: 1000 },
            Default::Is("1"),
            "the largest number of measurements at the same time",
        ),
        key(
            "emulated",
            Kind::Text { longest: LONGEST_PATH },
            Default::Absent("the path is the network"),
            "a file with `path` or `link`, and optionally `far_clock`, `kernel` and `flow` tables, as in a scenario. The path to this host is emulated \
             on the near host, which must be `local`. This host needs no `address`",
        ),
    ],
};

static WORDS: Listed =
    Listed { one: "a word", many: "words", example: "[\"ip\", \"netns\", \"exec\", \"lab\"]", most: 100 };

static SERVER: Words = Words { noun: "a kind of server", known: &["standing", "start"], later: &[], why: "" };

pub(crate) static MEASURE: TableSpec = TableSpec {
    noun: "a measurement",
    keys: &[
        key(
            "scenario",
            Kind::Text { longest: LONGEST_PATH },
            Default::Absent("`workload`, `transports` and `duration` say what runs"),
            "a scenario file. The keys `workload`, `transports` and `duration` are then not allowed",
        ),
        key(
            "workload",
            Kind::Choice(&WORKLOAD),
            Default::Absent("`voice`"),
            "one of the workloads of `talkpath compare`",
        ),
        key(
            "transports",
            Kind::Names(&TRANSPORTS),
            Default::Absent("`udp`, `tcp` and `tcp-nodelay`; for `bulk` `tcp`"),
            "the transports to compare. In each round they run one after the other, in a random order",
        ),
        key(
            "duration",
            quantity(SOME_DURATION),
            Default::Absent("10 s"),
            "the time for which each transport sends in each round",
        ),
        key(
            "drain",
            quantity(ANY_DURATION),
            Default::Absent("5 s, or the scenario's"),
            "the scenario's `drain`",
        ),
        key(
            "rounds",
            Kind::Count { least: 1, most: 10_000 },
            Default::Absent("3, or the scenario's `repeat`"),
            "the number of rounds of one measurement",
        ),
        key(
            "pairs",
            Kind::Names(&PAIRS),
            Default::Absent("every pair of the campaign"),
            "the pairs between which this measure runs, as `\"NEAR > FAR\"`",
        ),
        key(
            "require",
            Kind::Names(&DEMANDS),
            Default::Absent("the scenario's `[thresholds]`"),
            "what figures must hold over all measurements of a pair, as the values of `--require`. What the scenario has in `[thresholds]` holds too",
        ),
    ],
};

static DEMANDS: Listed = Listed {
    one: "a threshold such as \"call.mos >= 3.6\"",
    many: "thresholds",
    example: "[\"call.mos >= 3.6\"]",
    most: 100,
};

static TRANSPORTS: Listed = Listed {
    one: "the name of a transport",
    many: "transports",
    example: "[\"udp\", \"tcp-nodelay\"]",
    most: 20,
};

static WORKLOAD: Words = Words { noun: "a workload", known: ComparedWorkload::WORDS, later: &[], why: "" };

pub(crate) static SCHEDULE: TableSpec = TableSpec {
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
            "the beginning of the first day in the time of `zone`: `2026-12-01 06:00`",
        ),
        key(
            "every",
            quantity(SOME_DURATION),
            Default::Required,
            "the time between two measurements of a pair, counted from `start` in the time of `zone`. With \"6 h\" a pair is measured at the same \
             four hours each day, also when summer time begins or ends",
        ),
        key("days", Kind::Count { least: 1, most: 3660 }, Default::Required, "the number of days"),
        key("day", quantity(SOME_DURATION), Default::Is("\"24 h\""), "the length of a day of this campaign"),
        key(
            "start_within",
            quantity(ANY_DURATION),
            Default::Is("\"0 s\""),
            "the largest random delay of a measurement after its planned time. The delays are uniform",
        ),
        key(
            "window",
            quantity(SOME_DURATION),
            Default::Absent("`every`"),
            "the time after its planned time within which a measurement may begin. A measurement that could not begin is recorded with the reason",
        ),
        key(
            "retry",
            quantity(SOME_DURATION),
            Default::Is("\"30 s\""),
            "the wait before a failed measurement is tried again. It doubles with each further failure, up to 16 times `retry`",
        ),
    ],
};
