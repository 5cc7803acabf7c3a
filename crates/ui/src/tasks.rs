//! What a user can start on the page. One table says the fields of each task: the page makes its forms of it,
//! and the command line is made of it, so that no option is written twice.
//!
//! A value is always one word with its flag (`--line=50/10`), so that no value can become a flag.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Serialize, Serializer};

use crate::files::{GIVEN, RECEIVED, within};
use crate::jobs::{JobKind, Order};

/// The longest value of a field, B. We chose 4 KiB, more than any line of a form.
const MAX_VALUE: usize = 4096;
/// What the page sends if nothing of several is chosen. An empty value is the default.
const NONE_OF_THEM: &str = "none";

/// A task.
#[derive(Debug, Serialize)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// The words with which its command begins.
    command: &'static [&'static str],
    #[serde(skip)]
    kind: JobKind,
    /// The label of the button that starts it.
    start: &'static str,
    fields: &'static [Field],
}

/// A field of a form.
#[derive(Debug, Serialize)]
pub(crate) struct Field {
    name: &'static str,
    label: &'static str,
    /// One line below the field.
    help: &'static str,
    #[serde(flatten)]
    kind: FieldKind,
    /// How its value becomes words. The page has the flag alone, which the program's errors name.
    #[serde(rename = "flag", serialize_with = "flag_alone")]
    form: Form,
    /// Whether the field is under "More".
    more: bool,
    is_needed: bool,
}

/// What a user sees of a field.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum FieldKind {
    /// Words to choose from, each with its label. The first one is the default.
    Choice {
        choices: &'static [(&'static str, &'static str)],
    },
    /// Several words to choose from, each with its label and whether it is chosen at first.
    Several {
        choices: &'static [(&'static str, &'static str, bool)],
    },
    Text {
        example: &'static str,
    },
    /// A file that the user gave to the page.
    File,
    Check,
    /// Nothing: its words are always there.
    Hidden,
}

/// How a value becomes words of the command line.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `--flag=VALUE`, unless the value is empty.
    Value(&'static str),
    /// `--flag` if the box is checked.
    Flag(&'static str),
    /// `--flag=FOLDER` if the box is checked or there is none: a folder of this name in the folder of runs.
    Folder(&'static str, &'static str),
    /// The value is the words themselves: a choice of whole options. An empty value has none.
    Words,
    /// The value alone. It is no flag, because it is a name that was checked.
    Name,
    /// `--flag=PATH` of a file that the user gave.
    GivenFlag(&'static str),
    /// The path of a file that the user gave.
    Given,
    /// The port to listen on. Linux takes IPv4 at `[::]`, too (ipv6(7), IPV6_V6ONLY).
    Port,
}

impl Form {
    /// The flag of the command line.
    const fn flag(self) -> Option<&'static str> {
        match self {
            Self::Value(flag) | Self::Flag(flag) | Self::Folder(flag, _) | Self::GivenFlag(flag) => {
                Some(flag)
            }
            Self::Port => Some("--bind"),
            Self::Words | Self::Name | Self::Given => None,
        }
    }
}

fn flag_alone<S: Serializer>(form: &Form, serializer: S) -> Result<S::Ok, S::Error> {
    form.flag().serialize(serializer)
}

const fn field(name: &'static str, label: &'static str, kind: FieldKind, form: Form) -> Field {
    Field { name, label, help: "", kind, form, more: false, is_needed: false }
}

const fn text(name: &'static str, label: &'static str, example: &'static str, flag: &'static str) -> Field {
    field(name, label, FieldKind::Text { example }, Form::Value(flag))
}

impl Field {
    const fn helped(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    const fn more(self) -> Self {
        Self { more: true, ..self }
    }

    const fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }
}

const TRANSPORTS: FieldKind = FieldKind::Several {
    choices: &[
        ("udp", "UDP", true),
        ("tcp", "TCP", true),
        ("tcp-nodelay", "TCP, Nagle off", true),
        ("quic-datagram", "QUIC datagrams", true),
        ("quic-stream", "QUIC stream", true),
        ("quic-stream-per-message", "QUIC, a stream a message", true),
        ("dccp-ccid2", "DCCP CCID 2", false),
        ("dccp-ccid3", "DCCP CCID 3", false),
        ("dccp-ccid4", "DCCP CCID 4", false),
    ],
};
const WORKLOAD: Field = field(
    "workload",
    "What is sent",
    FieldKind::Choice {
        choices: &[
            ("", "a voice call"),
            ("game-60hz", "a game, 60 messages a second"),
            ("bulk", "a download"),
        ],
    },
    Form::Value("--workload"),
);
const CODEC: Field = field(
    "codec",
    "Codec of the call",
    FieldKind::Choice { choices: &[("", "G.711"), ("g729a", "G.729A"), ("opus", "Opus")] },
    Form::Value("--codec"),
);
const DURATION: Field =
    text("duration", "How long each transport runs", "60s", "--duration").helped("As 30s or 2min.");
const TRANSFER_DURATION: Field =
    text("duration", "Longest time of a transfer", "", "--duration").helped("As 30s or 2min.");
const REPEAT: Field = text("repeat", "Repetitions", "20", "--repeat");
const SEED: Field = text("seed", "Seed of the first repetition", "1", "--seed");
const SET: Field = text("set", "A key of the scenario", "path.up.loss=1%", "--set");
const TO: Field = text("to", "Far end", "host.example or 192.0.2.7:7160", "--to")
    .helped("The computer on which somebody has started \u{201c}Be the far end\u{201d}.")
    .needed();
const KEY: Field = field("key", "Key", FieldKind::File, Form::GivenFlag("--key-file"))
    .helped("The same key file as at the far end. None if it serves everybody.");
const TRANSFER: FieldKind = FieldKind::Choice {
    choices: &[
        ("udp", "UDP"),
        ("tcp", "TCP"),
        ("tcp-nodelay", "TCP, Nagle off"),
        ("quic-stream", "QUIC stream"),
    ],
};
const ARENA: FieldKind = FieldKind::Choice {
    choices: &[("", "simulated: nothing is sent"), ("emu", "emulated: own TCP and UDP (needs rights)")],
};

/// All tasks.
pub(crate) const TASKS: &[Task] = &[
    Task {
        name: "compare",
        command: &["compare"],
        kind: JobKind::Run,
        start: "Compare",
        fields: &[
            field(
                "path",
                "Line",
                FieldKind::Choice {
                    choices: &[
                        ("", "DSL at home: 8 Mb/s down, 1 Mb/s up"),
                        ("home-adsl-fq", "the same, with fq_codel in the router"),
                        ("home-cable", "cable at home"),
                        ("home-cable-fq", "cable, with fq_codel in the router"),
                        ("wifi-busy", "a busy Wi-Fi"),
                        ("lte", "LTE"),
                        ("starlink", "Starlink"),
                        ("geo-satellite", "a geostationary satellite"),
                        ("transatlantic", "across the Atlantic"),
                        ("lan", "a local network"),
                    ],
                },
                Form::Value("--path"),
            ),
            text("line", "Or your own line", "50/10", "--line").helped(
                "Download/upload in Mb/s, and the one-way delay if you know it: 50/10 or 50/10/20ms.",
            ),
            WORKLOAD,
            field(
                "beside",
                "Beside it",
                FieldKind::Choice { choices: &[("", "an upload"), ("--alone", "nothing")] },
                Form::Words,
            ),
            field(
                "queue",
                "Queue of the router",
                FieldKind::Choice {
                    choices: &[
                        ("", "as the line has it"),
                        ("drop-tail", "drop-tail"),
                        ("codel", "CoDel"),
                        ("fq_codel", "fq_codel"),
                        ("fq", "fq"),
                    ],
                },
                Form::Value("--queue"),
            )
            .helped("fq_codel is a router setting, often called SQM or smart queue."),
            field("transports", "Transports", TRANSPORTS, Form::Value("--transports")),
            field("arena", "Where it runs", ARENA, Form::Value("--arena")).more(),
            text("loss", "Random loss each way", "1%", "--loss").more(),
            CODEC.more(),
            text("ptime", "Time between two packets of the call", "30ms", "--ptime").more(),
            field(
                "no_plc",
                "The receiver conceals no missing frames",
                FieldKind::Check,
                Form::Flag("--no-plc"),
            )
            .more(),
            text("cc", "Congestion controls of TCP", "cubic,reno", "--cc").more(),
            DURATION.more(),
            REPEAT.more(),
            SEED.more(),
            SET.more(),
            text("sweep", "Run once with each of these values of a key", "path.up.loss=0,1%", "--sweep")
                .more(),
        ],
    },
    Task {
        name: "measure",
        command: &["compare"],
        kind: JobKind::Run,
        start: "Measure",
        fields: &[
            TO,
            KEY,
            WORKLOAD,
            field(
                "load",
                "Beside it",
                FieldKind::Choice {
                    choices: &[("", "nothing"), ("--load", "an upload, which fills the line")],
                },
                Form::Words,
            ),
            text("repeat", "Rounds", "5", "--repeat").helped("Each transport has a turn in each round."),
            field("transports", "Transports", TRANSPORTS, Form::Value("--transports")),
            DURATION.more(),
            CODEC.more(),
            text("cc", "Congestion controls of TCP", "cubic,reno", "--cc").more(),
            field(
                "clocks",
                "Both computers' clocks agree (GPS or PTP)",
                FieldKind::Check,
                Form::Flag("--clocks-synchronised"),
            )
            .more(),
            SEED.more(),
            SET.more(),
        ],
    },
    Task {
        name: "serve",
        command: &["serve"],
        kind: JobKind::Server,
        start: "Start the far end",
        fields: &[
            field(
                "who",
                "Who is served",
                FieldKind::Choice {
                    choices: &[("", "who has the key"), ("--open", "everybody who reaches the port")],
                },
                Form::Words,
            ),
            field("key", "Key", FieldKind::File, Form::GivenFlag("--key-file"))
                .helped("The other computer needs the same key."),
            field("port", "Port, for UDP and TCP", FieldKind::Text { example: "7160" }, Form::Port),
            field(
                "keep",
                "Keep files that come whole, in the folder received",
                FieldKind::Check,
                Form::Folder("--keep", RECEIVED),
            ),
            field("log", "Log of what came", FieldKind::Hidden, Form::Folder("--log", RECEIVED)),
            text("max_rate", "Most that is sent to a guest", "20Mbps", "--max-rate").more(),
            text("max_sessions", "Sessions at a time", "16", "--max-sessions").more(),
            text("max_duration", "Longest run", "3660s", "--max-duration").more(),
        ],
    },
    Task {
        name: "burst",
        command: &["burst"],
        kind: JobKind::Run,
        start: "Send the burst",
        fields: &[
            TO,
            KEY,
            field("transport", "Protocol", TRANSFER, Form::Value("--transport")),
            text("size", "Size of a message, B", "128", "--size"),
            text("count", "Number of messages", "10000", "--count"),
            text("repeat", "How many times", "1", "--repeat"),
            TRANSFER_DURATION.more(),
        ],
    },
    Task {
        name: "send",
        command: &["send"],
        kind: JobKind::Run,
        start: "Send the file",
        fields: &[
            field("file", "File", FieldKind::File, Form::Given).needed(),
            TO,
            KEY,
            field("transport", "Protocol", TRANSFER, Form::Value("--transport")),
            text("repeat", "How many times", "1", "--repeat"),
            TRANSFER_DURATION.more(),
        ],
    },
    Task {
        name: "study",
        command: &["study", "run"],
        kind: JobKind::Run,
        start: "Run the study",
        fields: &[
            field("study", "Study", FieldKind::Text { example: "" }, Form::Name).needed(),
            field(
                "quick",
                "How much of it",
                FieldKind::Choice {
                    choices: &[("--quick", "the quick form, about a minute"), ("", "all of it")],
                },
                Form::Words,
            ),
            field("arena", "Where it runs", ARENA, Form::Value("--arena")).more(),
        ],
    },
    Task {
        name: "scenario",
        command: &["run"],
        kind: JobKind::Run,
        start: "Run the scenario",
        fields: &[
            field("file", "Scenario file", FieldKind::File, Form::Given).needed(),
            field(
                "arena",
                "Where it runs",
                FieldKind::Choice {
                    choices: &[("", "simulated"), ("emu", "emulated: own TCP and UDP (needs rights)")],
                },
                Form::Value("--arena"),
            ),
            text("to", "Or to a far end", "host.example", "--to"),
            KEY,
            REPEAT.more(),
            SEED.more(),
            SET.more(),
        ],
    },
];

/// What a user filled in: the names of fields with their values. A checked box has the value `true`.
pub(crate) type Values = BTreeMap<String, String>;

/// Makes the command of a task. `out` is the folder of runs.
///
/// # Errors
/// Returns what is wrong, beginning with the label of the field.
pub(crate) fn order(name: &str, values: &Values, out: &Path) -> Result<Order, String> {
    let task = TASKS.iter().find(|task| task.name == name);
    let task = task.ok_or_else(|| format!("{name:?}: there is no such task"))?;
    if let Some(unknown) = values.keys().find(|key| task.fields.iter().all(|field| field.name != **key)) {
        return Err(format!("{unknown:?}: {name} has no such field"));
    }
    if task.name == "serve" && !["who", "key"].iter().any(|name| values.contains_key(*name)) {
        return Err("Key: choose one, press \u{201c}Make a key\u{201d}, or serve everybody".to_owned());
    }
    let mut words: Vec<String> = task.command.iter().map(|&word| word.to_owned()).collect();
    for field in task.fields {
        let value = values.get(field.name).map_or("", |value| value.trim());
        let added = field.words(value, out).map_err(|why| format!("{}: {why}", field.label))?;
        words.extend(added);
    }
    // A line of one's own wins over the list of lines, as its field says.
    if words.iter().any(|word| word.starts_with("--line=")) {
        words.retain(|word| !word.starts_with("--path="));
    }
    // `serve` writes only into a folder that is there.
    let folders = task.fields.iter().filter_map(|field| match field.form {
        Form::Folder(_, name) if field.is_hidden() || values.contains_key(field.name) => Some(out.join(name)),
        _ => None,
    });
    let folders = folders.collect();
    let to = values.get("to").map(|to| to.trim().to_owned()).filter(|to| !to.is_empty());
    Ok(Order { kind: task.kind, task: name.to_owned(), words, to, folders })
}

impl Field {
    fn words(&self, value: &str, out: &Path) -> Result<Vec<String>, String> {
        let value = if self.is_hidden() { "true" } else { value };
        if value.is_empty() {
            return if self.is_needed { Err("please fill it in".to_owned()) } else { Ok(Vec::new()) };
        }
        if value.len() > MAX_VALUE || value.chars().any(char::is_control) {
            return Err(format!("expected one line of at most {MAX_VALUE} B"));
        }
        self.check_choice(value)?;
        let given = || -> Result<String, String> {
            let folder = out.join(GIVEN);
            let path = within(&folder, value)?;
            if !path.is_file() || path.is_symlink() {
                return Err(format!("{value:?}: no such file was given to the page"));
            }
            Ok(path.to_string_lossy().into_owned())
        };
        Ok(match self.form {
            Form::Value(flag) => vec![format!("{flag}={value}")],
            Form::Flag(_) | Form::Folder(..) if value != "true" => {
                return Err("expected a checked box".to_owned());
            }
            Form::Flag(flag) => vec![flag.to_owned()],
            Form::Folder(flag, name) => vec![format!("{flag}={}", out.join(name).to_string_lossy())],
            Form::Words => vec![value.to_owned()],
            Form::Name => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
                if value.starts_with('-') || !value.chars().all(is_plain) {
                    return Err(format!("{value:?}: expected the name of a study"));
                }
                vec![value.to_owned()]
            }
            Form::GivenFlag(flag) => vec![format!("{flag}={}", given()?)],
            Form::Given => vec![given()?],
            Form::Port => {
                let port: u16 =
                    value.parse().ok().filter(|port| *port > 0).ok_or("expected a port, 1 to 65535")?;
                vec![format!("--bind=[::]:{port}")]
            }
        })
    }

    const fn is_hidden(&self) -> bool {
        matches!(self.kind, FieldKind::Hidden)
    }

    /// Checks that the value of a choice is one of its words.
    fn check_choice(&self, value: &str) -> Result<(), String> {
        if matches!(self.kind, FieldKind::Several { .. }) && value == NONE_OF_THEM {
            return Err("choose at least one".to_owned());
        }
        let is_known = match self.kind {
            FieldKind::Choice { choices } => choices.iter().any(|(word, _)| *word == value),
            FieldKind::Several { choices } => {
                value.split(',').all(|one| choices.iter().any(|(word, ..)| *word == one))
            }
            FieldKind::Text { .. } | FieldKind::File | FieldKind::Check | FieldKind::Hidden => true,
        };
        if is_known { Ok(()) } else { Err(format!("{value:?}: is none of the choices")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(task: &str, values: &[(&str, &str)], out: &Path) -> Result<Vec<String>, String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        order(task, &values, out).map(|order| order.words)
    }

    #[test]
    fn an_empty_form_is_the_command_alone_and_a_line_wins_over_the_list() {
        let out = Path::new("/runs");
        assert_eq!(words("compare", &[], out).unwrap(), ["compare"]);
        let filled = [("line", "50/10"), ("path", "lte"), ("beside", "--alone"), ("transports", "udp,tcp")];
        let expected = ["compare", "--line=50/10", "--alone", "--transports=udp,tcp"];
        assert_eq!(words("compare", &filled, out).unwrap(), expected);
    }

    #[test]
    fn no_value_becomes_a_flag_of_its_own() {
        let out = Path::new("/runs");
        let smuggled = [("set", "--allow-program"), ("duration", "--out=/etc")];
        let made = words("compare", &smuggled, out).unwrap();
        assert_eq!(made, ["compare", "--duration=--out=/etc", "--set=--allow-program"]);
        for (task, name, value) in [
            ("compare", "beside", "--allow-program"),
            ("compare", "workload", "--resume"),
            ("compare", "transports", "udp,--x"),
            ("compare", "transports", "none"),
            ("study", "study", "--allow-program"),
            ("study", "study", "../../etc"),
            ("compare", "unknown", "x"),
            ("compare", "line", "a\nb"),
        ] {
            assert!(words(task, &[(name, value)], out).is_err(), "{task} {name}={value}");
        }
        assert!(words("serve", &[("who", "--open"), ("port", "7160")], out).is_ok());
        assert!(words("serve", &[("who", "--open"), ("port", "7160 --open")], out).is_err());
        assert!(words("shell", &[], out).unwrap_err().contains("no such task"));
    }

    #[test]
    fn a_file_is_one_that_was_given_to_the_page() {
        let out = tempfile::tempdir().unwrap();
        let given = out.path().join(GIVEN);
        std::fs::create_dir(&given).unwrap();
        std::fs::write(given.join("a.bin"), "a").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", given.join("link")).unwrap();
        let with = |file: &str| words("send", &[("file", file), ("to", "h")], out.path());
        assert_eq!(with("a.bin").unwrap()[1], given.join("a.bin").to_string_lossy());
        for file in ["../a", "/etc/passwd", "missing", "link"] {
            assert!(with(file).is_err(), "{file}");
        }
        assert!(words("send", &[("to", "h")], out.path()).unwrap_err().contains("File: please fill it in"));
    }

    #[test]
    fn a_far_end_has_a_key_or_serves_everybody_and_writes_its_log_in_any_case() {
        let out = Path::new("/runs");
        assert!(words("serve", &[], out).unwrap_err().starts_with("Key: "));
        let made = words("serve", &[("who", "--open")], out).unwrap();
        assert_eq!(made, ["serve", "--open", "--log=/runs/received"]);
        let values = BTreeMap::from([("who".to_owned(), "--open".to_owned())]);
        assert_eq!(order("serve", &values, out).unwrap().folders, [out.join(RECEIVED)]);
    }

    #[test]
    fn no_form_has_more_than_six_fields_before_the_others() {
        for task in TASKS {
            assert!(task.fields.iter().filter(|field| !field.more).count() <= 6, "{}", task.name);
        }
    }
}
