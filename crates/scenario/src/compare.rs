//! Makes the scenario of `talkpath compare`, and changes a resolved scenario between rounds of a comparison.
//!
//! A comparison sends one *workload* over several transports, one after the other, on one path. The scenario
//! is made of *settings*: keys that the command sets beside the path. A *sweep* over the transport makes a
//! cell for each transport.
//!
//! Begin to read with [`Comparison::settings`].

use talkpath_config::Codec;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::options::{Setting, fitting_name};

talkpath_config::words! {
    /// The workload of a comparison, by its word in options and campaign files.
    pub enum ComparedWorkload {
        /// A G.711 call. The receiver sends every frame back.
        Voice = "voice",
        /// A transfer that sends as fast as the transport allows.
        Bulk = "bulk",
        /// Game states of 200 B at 60 Hz. The receiver sends each state back, which is in time within 100 ms.
        Game = "game-60hz",
    }
}

impl ComparedWorkload {
    /// Describes the workload and its criterion, for the help of options.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Voice => "A G.711 call, judged by its opinion score",
            Self::Bulk => "A transfer that takes all it gets, judged by its goodput",
            Self::Game => {
                "States of 200 B at 60 Hz and their echoes, judged by the share that is back within 100 ms"
            }
        }
    }

    /// The name of the flow that carries the workload.
    pub const fn flow(self) -> &'static str {
        match self {
            Self::Voice => "call",
            Self::Game => "game",
            Self::Bulk => "transfer",
        }
    }

    /// Writes a value for the scenario key `flow`: one flow with this workload and without a transport.
    pub fn flow_alone(self) -> String {
        let flow = InlineTable::from_iter([("workload", self.workload_table())]);
        InlineTable::from_iter([(self.flow(), flow)]).to_string()
    }

    /// The noun in the name of the run: "voice over home-adsl".
    const fn noun(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Game => "a game",
            Self::Bulk => "a transfer",
        }
    }

    /// Writes the value of a flow's key `workload`, as TOML.
    pub(crate) fn toml(self) -> String {
        self.workload_table().to_string()
    }

    fn workload_table(self) -> Value {
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

/// A value, and the option that it comes from.
#[derive(Clone, Copy, Debug)]
pub struct ByOption<'a, T> {
    /// The value.
    pub value: T,
    /// The option as messages quote it, for example `--duration 10s`.
    pub option: &'a str,
}

/// One workload over each of several transports, one after the other, on one path.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// The name of the path, which becomes a part of the run's name.
    pub path: &'a str,
    /// The workload of the compared flow.
    pub workload: ByOption<'a, ComparedWorkload>,
    /// The names of the transports.
    pub transports: ByOption<'a, &'a [String]>,
    /// The congestion controls. Each TCP transport is compared with each of them, and the upload has the
    /// first. If the list is empty, each transport has its default.
    pub cc: ByOption<'a, &'a [String]>,
    /// Whether a bulk upload over TCP runs beside the compared flow. The upload begins at a random instant of
    /// the first second: without randomness on the path every repetition would be identical.
    pub load: bool,
    /// The time for which the flows send.
    pub duration: ByOption<'a, &'a str>,
    /// The value of the key `kernel`.
    pub kernel: Option<&'a str>,
}

impl Comparison<'_> {
    /// Returns the keys to set beside the path.
    pub fn settings(&self) -> Vec<Setting> {
        // The option of values that no option gives.
        let command = "talkpath compare";
        let mut settings = vec![
            Setting::by(command, "name", self.run_name().to_string()),
            Setting::by(self.duration.option, "duration", Value::from(self.duration.value).to_string()),
            Setting::by(self.workload.option, "flow", self.flows().to_string()),
            Setting::by(self.sweep_option(), "sweep", self.sweep().to_string()),
        ];
        if let Some(first_cc) = self.cc.value.first()
            && self.load
        {
            let cc = Value::from(first_cc).to_string();
            settings.push(Setting::by(self.cc.option, "flow.upload.transport.cc", cc));
        }
        if let Some(kernel) = self.kernel {
            settings.push(Setting::by(command, "kernel", kernel));
        }
        settings
    }

    fn run_name(&self) -> Value {
        let upload = if self.load { " beside an upload" } else { "" };
        Value::from(fitting_name(&format!("{} over {}{upload}", self.workload.value.noun(), self.path)))
    }

    /// Returns the flows. Each has the transport `tcp`, which the sweep replaces for the compared flow.
    fn flows(&self) -> InlineTable {
        let workload = self.workload.value;
        let flow = |workload: ComparedWorkload| {
            InlineTable::from_iter([("transport", "tcp".into()), ("workload", workload.workload_table())])
        };
        let mut flows = InlineTable::new();
        flows.insert(workload.flow(), Value::InlineTable(flow(workload)));
        if self.load {
            let mut upload = flow(ComparedWorkload::Bulk);
            let start = InlineTable::from_iter([("from", "0 s"), ("to", "1 s")]);
            upload.insert("start", Value::InlineTable(start));
            flows.insert("upload", Value::InlineTable(upload));
        }
        flows
    }

    /// Returns the sweep over the transport of the compared flow.
    fn sweep(&self) -> InlineTable {
        let key = format!("flow.{}.transport", self.workload.value.flow());
        InlineTable::from_iter([(key, self.swept_transports())])
    }

    /// Returns the transports. A TCP transport comes once with each congestion control.
    fn swept_transports(&self) -> Array {
        let mut transports = Array::new();
        for name in self.transports.value {
            if name.starts_with("tcp") && !self.cc.value.is_empty() {
                for cc in self.cc.value {
                    let transport = InlineTable::from_iter([("kind", name.as_str()), ("cc", cc.as_str())]);
                    transports.push(transport);
                }
            } else {
                transports.push(name.as_str());
            }
        }
        transports
    }

    const fn sweep_option(&self) -> &str {
        if self.cc.value.is_empty() { self.transports.option } else { self.cc.option }
    }
}

/// Changes the number of repetitions in `resolved`, the resolved text of a scenario.
pub fn with_repetitions(resolved: &str, repeat: u64) -> String {
    let Ok(mut document) = resolved.parse::<DocumentMut>() else { return resolved.to_owned() };
    document.insert("repeat", value(i64::try_from(repeat).unwrap_or(i64::MAX)));
    document.to_string()
}

/// Adds every cell of `resolved`, the resolved text of a scenario, a second time, with `fq_codel` as the
/// queue of the link `link` of the path. The cells that were there come first and keep their numbers. Returns
/// `None` if the path has no such link.
pub fn with_fq_codel(resolved: &str, link: &str) -> Option<String> {
    let mut document: DocumentMut = resolved.parse().ok()?;
    let present_queue = match document.get("path")?.get(link)?.get("queue")? {
        Item::Value(queue) => queue.clone(),
        Item::Table(table) => Value::InlineTable(table.clone().into_inline_table()),
        Item::None | Item::ArrayOfTables(_) => return None,
    };
    let mut sweep = Table::new();
    let queues = Array::from_iter([without_defaults(present_queue), "fq_codel".into()]);
    // The last key of a sweep changes fastest. So the queue comes first, and the numbers of the cells remain.
    sweep.insert(&format!("path.{link}.queue"), value(queues));
    if let Some(present_sweep) = document.remove("sweep").as_ref().and_then(Item::as_table) {
        sweep.extend(present_sweep.iter().map(|(key, values)| (key.to_owned(), values.clone())));
    }
    document.insert("sweep", Item::Table(sweep));
    Some(document.to_string())
}

/// Removes default values from a queue, because the value of a swept key is also a part of the cell's label.
fn without_defaults(mut queue: Value) -> Value {
    if let Some(keys) = queue.as_inline_table_mut() {
        keys.retain(|key, value| match key {
            "in_service" => value.as_bool() != Some(false),
            "mark_at" => value.as_str() != Some("never"),
            _ => true,
        });
    }
    queue
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
            workload: ByOption { value: ComparedWorkload::Voice, option: "--workload voice" },
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
        for workload in ComparedWorkload::ALL {
            let transports = if workload == ComparedWorkload::Bulk { &of_bulk } else { &of_others };
            let by_option = ByOption { value: workload, option: "--workload" };
            let comparison = Comparison { workload: by_option, ..comparison(transports, &[]) };
            let plan = read(&comparison).unwrap();
            assert_eq!((plan.cells.len(), plan.cells[0].scenario.flows.len()), (2, 2), "{workload:?}");
            assert_eq!(plan.cells[0].scenario.flows[0].name, workload.flow());
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
