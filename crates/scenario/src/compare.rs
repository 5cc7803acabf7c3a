//! The scenario that `talkpath compare` runs: keys that are set beside a path, and what is changed in it
//! while the answer is not known yet.

use talkpath_config::Codec;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::options::{Setting, fitting_name};

talkpath_config::words! {
    /// What the compared flow carries, by its word in options and campaign files.
    pub enum ComparedWorkload {
        /// A G.711 call whose far end sends every frame back.
        Voice = "voice",
        /// As much as the transport takes.
        Bulk = "bulk",
        /// States of 200 B at 60 Hz, which the far end sends back; each has 100 ms to come back.
        Game = "game-60hz",
    }
}

impl ComparedWorkload {
    /// What it carries, and what it is judged by, for the help of options.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Voice => "A G.711 call, judged by its opinion score",
            Self::Bulk => "A transfer that takes all it gets, judged by its goodput",
            Self::Game => {
                "States of 200 B at 60 Hz and their echoes, judged by the share that is back within 100 ms"
            }
        }
    }

    /// The flow's name.
    pub const fn flow(self) -> &'static str {
        match self {
            Self::Voice => "call",
            Self::Game => "game",
            Self::Bulk => "transfer",
        }
    }

    /// The value of a scenario's `flow` that has this flow alone, without its transport.
    pub fn flow_alone(self) -> String {
        let flow = InlineTable::from_iter([("workload", self.workload())]);
        InlineTable::from_iter([(self.flow(), flow)]).to_string()
    }

    /// What it is, for the run's name.
    const fn noun(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Game => "a game",
            Self::Bulk => "a transfer",
        }
    }

    /// The workload's table, as TOML.
    pub(crate) fn toml(self) -> String {
        self.workload().to_string()
    }

    fn workload(self) -> Value {
        let keys: &[(&str, Value)] = match self {
            Self::Voice => {
                &[("kind", "voice".into()), ("codec", Codec::default().name().into()), ("echo", true.into())]
            }
            Self::Game => &[
                ("kind", "cbr".into()),
                ("size", "200 B".into()),
                ("message_rate", "60 Hz".into()),
                ("deadline", "100 ms".into()),
                ("state", true.into()),
                ("echo", true.into()),
            ],
            Self::Bulk => &[("kind", "bulk".into())],
        };
        Value::InlineTable(keys.iter().cloned().collect())
    }
}

/// A value, and the option that gives it.
#[derive(Clone, Copy, Debug)]
pub struct ByOption<'a, T> {
    /// The value.
    pub value: T,
    /// The option, as messages quote it.
    pub option: &'a str,
}

/// One flow over each of several transports, one at a time, on one path.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// The path, as the run's name calls it.
    pub path: &'a str,
    /// What the flow carries.
    pub compared: ByOption<'a, ComparedWorkload>,
    /// Names of transports.
    pub transports: ByOption<'a, &'a [String]>,
    /// Congestion controls. Each transport that is TCP is compared with each; the upload has the first. If
    /// there are none, each transport has its own.
    pub cc: ByOption<'a, &'a [String]>,
    /// Whether a bulk upload over TCP runs beside it. It begins at a random instant of the first second:
    /// without randomness on the path every repetition would be identical.
    pub load: bool,
    /// How long it runs.
    pub duration: ByOption<'a, &'a str>,
    /// The value of the key `kernel`.
    pub kernel: Option<&'a str>,
}

impl Comparison<'_> {
    /// The keys to set beside the path.
    pub fn settings(&self) -> Vec<Setting> {
        let ByOption { value: compared, option } = self.compared;
        let own = "talkpath compare";
        let beside = if self.load { " beside an upload" } else { "" };
        let transports = self.carriers();
        let mut flows = InlineTable::new();
        // The sweep says what carries it.
        flows.insert(compared.flow(), flow("tcp".into(), compared.workload(), None));
        if self.load {
            let start = InlineTable::from_iter([("from", "0 s"), ("to", "1 s")]);
            flows.insert("upload", flow("tcp".into(), ComparedWorkload::Bulk.workload(), Some(start)));
        }
        let name = Value::from(fitting_name(&format!("{} over {}{beside}", compared.noun(), self.path)));
        let sweep = InlineTable::from_iter([(format!("flow.{}.transport", compared.flow()), transports)]);
        let of_transports = if self.cc.value.is_empty() { self.transports.option } else { self.cc.option };
        let mut settings = vec![
            Setting::by(own, "name", name.to_string()),
            Setting::by(self.duration.option, "duration", Value::from(self.duration.value).to_string()),
            Setting::by(option, "flow", flows.to_string()),
            Setting::by(of_transports, "sweep", sweep.to_string()),
        ];
        if let Some(cc) = self.cc.value.first().filter(|_| self.load) {
            settings.push(Setting::by(
                self.cc.option,
                "flow.upload.transport.cc",
                Value::from(cc).to_string(),
            ));
        }
        settings.extend(self.kernel.map(|kernel| Setting::by(own, "kernel", kernel)));
        settings
    }

    /// Each transport, with each congestion control if it has one.
    fn carriers(&self) -> Array {
        let (controls, names) = (self.cc.value, self.transports.value);
        names
            .iter()
            .flat_map(|name| {
                if name.starts_with("tcp") && !controls.is_empty() {
                    controls.iter().map(|cc| carrier(name, Some(cc))).collect()
                } else {
                    vec![carrier(name, None)]
                }
            })
            .collect()
    }
}

fn carrier(name: &str, cc: Option<&str>) -> Value {
    match cc {
        Some(cc) => Value::InlineTable(InlineTable::from_iter([("kind", name), ("cc", cc)])),
        None => name.into(),
    }
}

fn flow(transport: Value, workload: Value, start: Option<InlineTable>) -> Value {
    let mut flow = InlineTable::from_iter([("transport", transport), ("workload", workload)]);
    if let Some(start) = start {
        flow.insert("start", Value::InlineTable(start));
    }
    Value::InlineTable(flow)
}

/// `resolved`, the resolved text of a scenario, with this many repetitions.
pub fn with_repetitions(resolved: &str, repeat: u64) -> String {
    let Ok(mut document) = resolved.parse::<DocumentMut>() else { return resolved.to_owned() };
    document.insert("repeat", value(i64::try_from(repeat).unwrap_or(i64::MAX)));
    document.to_string()
}

/// `resolved`, the resolved text of a scenario, with every cell a second time: `fq_codel` then queues on the
/// link `link` of its `path`. The cells that were there come first and keep their numbers. `None` if its path
/// has no such link.
pub fn with_fq_codel(resolved: &str, link: &str) -> Option<String> {
    let mut document: DocumentMut = resolved.parse().ok()?;
    let queue = document.get("path")?.get(link)?.get("queue")?;
    let mut queue = match queue {
        Item::Value(queue) => queue.clone(),
        Item::Table(table) => Value::InlineTable(table.clone().into_inline_table()),
        Item::None | Item::ArrayOfTables(_) => return None,
    };
    // A swept value is a label, too: defaults that say nothing are left out.
    if let Some(keys) = queue.as_inline_table_mut() {
        let is_default = |key: &str, value: &Value| match key {
            "in_service" => value.as_bool() == Some(false),
            "mark_at" => value.as_str() == Some("never"),
            _ => false,
        };
        keys.retain(|key, value| !is_default(key, value));
    }
    let mut sweep = Table::new();
    sweep.insert(&format!("path.{link}.queue"), value(Array::from_iter([queue, "fq_codel".into()])));
    if let Some(swept) = document.remove("sweep").as_ref().and_then(Item::as_table) {
        sweep.extend(swept.iter().map(|(key, values)| (key.to_owned(), values.clone())));
    }
    document.insert("sweep", Item::Table(sweep));
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Plan, Source, load, preset};

    fn plan(text: String) -> Plan {
        load(&Source::new("compared", text), &Options::default()).unwrap()
    }

    fn comparison<'a>(transports: &'a [String], cc: &'a [String]) -> Comparison<'a> {
        Comparison {
            path: "home-adsl",
            compared: ByOption { value: ComparedWorkload::Voice, option: "--workload voice" },
            transports: ByOption { value: transports, option: "--transports" },
            cc: ByOption { value: cc, option: "--cc" },
            load: true,
            duration: ByOption { value: "10 s", option: "--duration 10s" },
            kernel: None,
        }
    }

    fn read(comparison: &Comparison<'_>) -> Result<Plan, crate::Diagnostics> {
        let path = Source::path("home-adsl", preset("home-adsl").unwrap().text);
        load(&path, &Options { set: comparison.settings(), ..Options::default() })
    }

    fn compared() -> Plan {
        read(&comparison(&["udp".to_owned(), "tcp".to_owned()], &[])).unwrap()
    }

    #[test]
    fn each_transport_that_is_tcp_is_compared_with_each_congestion_control() {
        let (transports, cc) = (["udp", "tcp"].map(str::to_owned), ["reno", "bbr"].map(str::to_owned));
        let plan = read(&comparison(&transports, &cc)).unwrap();
        let labels: Vec<_> =
            plan.cells.iter().map(|cell| cell.sweep["flow.call.transport"].to_string()).collect();
        assert_eq!(labels, [r#""udp""#, r#"{"kind":"tcp","cc":"reno"}"#, r#"{"kind":"tcp","cc":"bbr"}"#]);
        for cell in &plan.cells {
            assert_eq!(cell.scenario.flows[1].name, "upload");
            assert_eq!(cell.scenario.flows[1].asked_for, ["cc"]);
        }
    }

    #[test]
    fn every_workload_is_a_scenario() {
        // Nothing would hold a bulk transfer over UDP back.
        let of_bulk = ["tcp".to_owned(), "tcp-nodelay".to_owned()];
        let of_others = ["udp".to_owned(), "tcp".to_owned()];
        for compared in ComparedWorkload::ALL {
            let transports = if compared == ComparedWorkload::Bulk { &of_bulk } else { &of_others };
            let compared_by = ByOption { value: compared, option: "--workload" };
            let comparison = Comparison { compared: compared_by, ..comparison(transports, &[]) };
            let plan = read(&comparison).unwrap();
            assert_eq!((plan.cells.len(), plan.cells[0].scenario.flows.len()), (2, 2), "{compared:?}");
            assert_eq!(plan.cells[0].scenario.flows[0].name, compared.flow());
            assert_eq!(plan.warnings, []);
        }
    }

    #[test]
    fn a_mistake_names_the_option_that_made_it() {
        let transports = ["udp".to_owned(), "quick".to_owned()];
        let mistakes = read(&comparison(&transports, &[])).unwrap_err();
        let options: Vec<_> = mistakes.iter().map(|mistake| mistake.option.as_deref()).collect();
        assert_eq!(options, [Some("--transports")], "{mistakes}");
        let transports = ["udp".to_owned()];
        let soon = ByOption { value: "soon", option: "--duration soon" };
        let late = Comparison { duration: soon, ..comparison(&transports, &[]) };
        let mistakes = read(&late).unwrap_err();
        assert_eq!(mistakes.list[0].option.as_deref(), Some("--duration soon"), "{mistakes}");
    }

    #[test]
    fn more_repetitions_change_nothing_else() {
        let before = compared();
        let after = plan(with_repetitions(&before.resolved, 40));
        assert_eq!((before.repeat, after.repeat), (1, 40));
        for (before, after) in before.cells.iter().zip(&after.cells) {
            assert_eq!(
                (&before.scenario.flows, &before.scenario.links),
                (&after.scenario.flows, &after.scenario.links)
            );
        }
    }

    #[test]
    fn a_cure_leaves_the_cells_that_were_there_as_they_are() {
        let before = compared();
        let after = plan(with_fq_codel(&before.resolved, "up").unwrap());
        assert_eq!((before.cells.len(), after.cells.len()), (2, 4));
        for (before, after) in before.cells.iter().zip(&after.cells) {
            assert_eq!((before.index, &before.scenario), (after.index, &after.scenario));
        }
        for (number, cell) in (2..).zip(&after.cells[2..]) {
            assert_eq!((cell.index, &cell.sweep["path.up.queue"]), (number, &"fq_codel".into()));
            assert_eq!(cell.scenario.flows, before.cells[number as usize - 2].scenario.flows);
            assert_ne!(cell.scenario.links, before.cells[0].scenario.links);
        }
        assert!(with_fq_codel(&before.resolved, "sideways").is_none());
    }
}
