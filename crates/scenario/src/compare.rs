//! Makes the scenario of `talkpath compare`, and changes a resolved scenario between rounds of a comparison.
//!
//! A comparison sends one *workload* over several transports, one after the other, on one path. The scenario
//! is made of *settings*: keys that the command sets beside the path. A *sweep* over the transport makes a
//! cell for each transport.
//!
//! Begin to read with [`Comparison::settings`].

use talkpath_config::Codec;
use talkpath_units::Rate;
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

/// What a comparison tries beside its cells, on one link whose queue decides.
#[derive(Clone, Copy, Debug)]
pub struct Variants<'a> {
    /// The name of the link in the path.
    pub link: &'a str,
    /// Whether `fq_codel` is tried as the queue of the link.
    pub fq_codel: bool,
    /// Whether half and four times of the queue's limit are tried.
    pub sizes: bool,
    /// The transfer that is tried at a lower rate, and left out.
    pub transfer: Option<Transfer<'a>>,
}

/// A transfer beside the compared flow.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// The name of its flow.
    pub flow: &'a str,
    /// The rate of the link that it fills.
    pub link_rate: Rate,
}

/// Adds every cell of `resolved`, the resolved text of a scenario, again with each of the `variants`. The
/// cells that were there come first and keep their numbers, and the cells with `fq_codel` come last. Returns
/// `None` if the path has no such link, or if no variant applies to it.
pub fn with_variants(resolved: &str, variants: &Variants<'_>) -> Option<String> {
    let mut document: DocumentMut = resolved.parse().ok()?;
    let queue = without_defaults(value_at(&document, &["path", variants.link, "queue"])?);
    let transfer = variants.transfer.and_then(|transfer| {
        let workload = value_at(&document, &["flow", transfer.flow, "workload"])?;
        let is_bulk = workload.as_inline_table()?.get("kind")?.as_str() == Some("bulk");
        is_bulk.then_some((transfer, workload))
    });
    let mut keys = vec![format!("path.{}.queue", variants.link)];
    let mut base = vec![queue.clone()];
    if let Some((Transfer { flow, .. }, workload)) = &transfer {
        keys.extend([format!("flow.{flow}.workload"), format!("flow.{flow}.count")]);
        base.extend([workload.clone(), Value::from(1_i64)]);
    }
    // A row has a value for each key. Each row but the first differs from the first in one value.
    let mut rows = vec![base.clone()];
    let mut add_row = |position: usize, value: Value| {
        let mut row = base.clone();
        row[position] = value;
        rows.push(row);
    };
    if variants.sizes {
        for factor in SIZES_TRIED {
            if let Some(queue) = with_limit_times(&queue, factor) {
                add_row(0, queue);
            }
        }
    }
    if let Some((transfer, _)) = &transfer {
        add_row(1, held_workload(transfer.link_rate));
        add_row(2, Value::from(0_i64));
    }
    if variants.fq_codel {
        add_row(0, "fq_codel".into());
    }
    if rows.len() == 1 {
        return None;
    }
    let values = match keys.len() {
        1 => Array::from_iter(rows.into_iter().flatten()),
        _ => Array::from_iter(rows.into_iter().map(|row| Value::Array(Array::from_iter(row)))),
    };
    let mut sweep = Table::new();
    // The last key of a sweep changes fastest. So the variants come first, and the numbers of the cells
    // remain.
    sweep.insert(&keys.join(", "), value(values));
    if let Some(present_sweep) = document.remove("sweep").as_ref().and_then(Item::as_table) {
        sweep.extend(present_sweep.iter().map(|(key, values)| (key.to_owned(), values.clone())));
    }
    document.insert("sweep", Item::Table(sweep));
    Some(document.to_string())
}

/// A queue whose size is not known may as well be half as large, or four times as large. We chose the factors
/// because the buffers of home routers lie apart by more (Kreibich, Weaver, Nechaev and Paxson, "Netalyzr:
/// Illuminating the Edge Network", IMC 2010).
const SIZES_TRIED: [f64; 2] = [0.5, 4.0];
/// The share of the link that a transfer gets if it is held back. We chose 80 % because it leaves room for
/// the headers of the transfer, a call, and the acknowledgements of a download.
const HELD_SHARE: f64 = 0.8;
/// The payload of a TCP segment on an Ethernet path, with timestamps (RFC 9293 §3.7.1, RFC 7323 §3.2).
const SEGMENT_BYTES: u64 = 1448;
/// A transfer that is held back writes at most 1000 times a second. We chose 1000 because a system's timers
/// are no finer than its clock tick of 1 ms.
const MOST_WRITES: u64 = 1000;

/// Returns the workload of a transfer that is held to four fifths of `link_rate`, as the scenario's text.
pub fn held_transfer(link_rate: Rate) -> String {
    held_workload(link_rate).to_string()
}

/// Returns the workload of a transfer that is held to [`HELD_SHARE`] of `link_rate`: it writes a segment at a
/// time, or more on a fast link.
fn held_workload(link_rate: Rate) -> Value {
    let kbps = (link_rate.as_bps() as f64 * HELD_SHARE / 1e3).round().max(1.0);
    let rate = if kbps < 1e3 { format!("{kbps} kbps") } else { format!("{} Mbps", kbps / 1e3) };
    let bytes = SEGMENT_BYTES.max((kbps * 1e3 / 8.0) as u64 / MOST_WRITES);
    let keys = [("kind", "cbr".to_owned()), ("rate", rate), ("size", format!("{bytes} B"))];
    Value::InlineTable(keys.into_iter().map(|(key, text)| (key, Value::from(text))).collect())
}

/// Returns the drop-tail queue `queue` with a limit that is `factor` times as large. `None` for another
/// queue.
fn with_limit_times(queue: &Value, factor: f64) -> Option<Value> {
    let mut scaled = queue.as_inline_table()?.clone();
    if scaled.get("kind")?.as_str() != Some("drop-tail") {
        return None;
    }
    let limit = scaled.get("limit")?.as_str()?.trim();
    let number_end = limit.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(limit.len());
    let (number, unit) = limit.split_at(number_end);
    let times = number.parse::<f64>().ok()? * factor;
    // A queue holds whole packets, and at least one.
    let times = if unit.contains("packet") { times.ceil() } else { times };
    scaled.insert("limit", format!("{times}{unit}").into());
    Some(Value::InlineTable(scaled))
}

/// Returns the value of a key, with a table written in one line.
fn value_at(document: &DocumentMut, names: &[&str]) -> Option<Value> {
    let item = names.iter().try_fold(document.as_item(), |item, name| item.get(name))?;
    match item {
        Item::Value(value) => Some(value.clone()),
        Item::Table(table) => Some(Value::InlineTable(table.clone().into_inline_table())),
        Item::None | Item::ArrayOfTables(_) => None,
    }
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

    const FQ_CODEL: Variants<'_> = Variants { link: "up", fq_codel: true, sizes: false, transfer: None };

    #[test]
    fn a_cure_leaves_the_cells_that_were_there_as_they_are() {
        let before = compared();
        let after = plan(with_variants(&before.resolved, &FQ_CODEL).unwrap());
        assert_eq!((before.cells.len(), after.cells.len()), (2, 4));
        for (before, after) in before.cells.iter().zip(&after.cells) {
            assert_eq!((before.index, &before.scenario), (after.index, &after.scenario));
        }
        for (number, cell) in (2..).zip(&after.cells[2..]) {
            assert_eq!((cell.index, &cell.sweep["path.up.queue"]), (number, &"fq_codel".into()));
            assert_eq!(cell.scenario.flows, before.cells[number as usize - 2].scenario.flows);
            assert_ne!(cell.scenario.links, before.cells[0].scenario.links);
        }
        assert!(with_variants(&before.resolved, &Variants { link: "sideways", ..FQ_CODEL }).is_none());
        assert!(with_variants(&before.resolved, &Variants { fq_codel: false, ..FQ_CODEL }).is_none());
    }

    #[test]
    fn each_variant_differs_from_the_cells_that_were_there_in_one_key() {
        let before = compared();
        let transfer = Some(Transfer { flow: "upload", link_rate: Rate::from_bps(1_000_000) });
        let after =
            plan(with_variants(&before.resolved, &Variants { sizes: true, transfer, ..FQ_CODEL }).unwrap());
        assert_eq!(after.cells.len(), 2 * 6);
        for (before, after) in before.cells.iter().zip(&after.cells) {
            assert_eq!((before.index, &before.scenario), (after.index, &after.scenario));
        }
        let of = |number: usize| &after.cells[2 * number];
        let swept = |number: usize, key: &str| of(number).sweep[key].clone();
        let limits = [0, 1, 2].map(|number| swept(number, "path.up.queue")["limit"].clone());
        assert_eq!(limits, ["64 kB", "32 kB", "256 kB"].map(serde_json::Value::from));
        assert_eq!(
            swept(3, "flow.upload.workload"),
            serde_json::json!({ "kind": "cbr", "rate": "800 kbps", "size": "1448 B" })
        );
        assert_eq!(of(3).scenario.flows.len(), 2);
        assert_eq!((swept(4, "flow.upload.count"), of(4).scenario.flows.len()), (0.into(), 1));
        assert_eq!(swept(5, "path.up.queue"), "fq_codel");
        for number in 1..6 {
            let differs = |key: &&&str| of(0).sweep[**key] != of(number).sweep[**key];
            let keys = ["path.up.queue", "flow.upload.workload", "flow.upload.count"];
            assert_eq!(keys.iter().filter(differs).count(), 1, "{}", of(number).label);
        }
    }

    #[test]
    fn the_limit_of_a_queue_keeps_its_unit_and_whole_packets() {
        let times = |limit: &str, factor| {
            let queue: Value = format!("{{ kind = \"drop-tail\", limit = \"{limit}\" }}").parse().unwrap();
            let scaled = with_limit_times(&queue, factor)?;
            Some(scaled.as_inline_table()?.get("limit")?.as_str()?.to_owned())
        };
        assert_eq!(times("15 packets", 0.5).as_deref(), Some("8 packets"));
        assert_eq!(times("250ms", 0.5).as_deref(), Some("125ms"));
        assert_eq!(times("1.5 bdp", 4.0).as_deref(), Some("6 bdp"));
        assert!(with_limit_times(&"fq_codel".into(), 4.0).is_none());
    }
}
