//! Makes the scenario of `talkpath compare`, and changes a resolved scenario between rounds of a comparison.
//!
//! A comparison sends one *workload* over several transports, one after the other, on one path. The scenario
//! is made of *settings*: keys that the command sets beside the path. A *sweep* over the transport makes a
//! cell for each transport.
//!
//! Begin to read with [`Comparison::settings`].

use talkpath_config::Codec;
use talkpath_units::{Duration, Rate};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::options::{Setting, fitting_name};
use crate::quantity::parse_duration;

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
        if let Some(warm_up) = self.warm_up() {
            settings.push(Setting::by(command, "warm_up", Value::from(warm_up).to_string()));
        }
        if let Some(kernel) = self.kernel {
            settings.push(Setting::by(command, "kernel", kernel));
        }
        settings
    }

    /// The time that does not count, in which the upload fills its queue. A call has none: it is judged in
    /// windows, and leaves out its opening second.
    fn warm_up(&self) -> Option<String> {
        if !self.load || self.workload.value != ComparedWorkload::Game {
            return None;
        }
        let duration = parse_duration(self.duration.value, LONGEST_DURATION).ok()?;
        Some(Duration::from_nanos(duration.as_nanos() / WARM_UP_PARTS).to_string())
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

/// The first sixth of a run beside an upload does not count where each message is judged by its own delay. A
/// queue that fills is a transient, which is left out of the figures of a steady state (Law, *Simulation
/// Modeling and Analysis*, 5th ed. 2015, §9.5.1). We chose a sixth, as one of the six windows of a call of a
/// minute.
const WARM_UP_PARTS: u64 = 6;
/// A longer run is refused anyway.
const LONGEST_DURATION: Duration = Duration::from_secs(1_000_000);

/// Changes the number of repetitions in `resolved`, the resolved text of a scenario.
pub fn with_repetitions(resolved: &str, repeat: u64) -> String {
    let Ok(mut document) = resolved.parse::<DocumentMut>() else { return resolved.to_owned() };
    document.insert("repeat", value(i64::try_from(repeat).unwrap_or(i64::MAX)));
    document.to_string()
}

/// What a comparison tries beside its cells, on one link whose queue decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variants<'a> {
    /// The name of the link in the path.
    pub link: &'a str,
    /// Whether `fq_codel` is tried as the queue of the link.
    pub fq_codel: bool,
    /// The rate of the link, if `fq_codel` is tried in a router before it, which is shaped to a little less.
    pub shaped_below: Option<Rate>,
    /// Whether half and four times of the queue's limit are tried.
    pub sizes: bool,
    /// The transfer that is held back, has another congestion control, and is left out.
    pub transfer: Option<Transfer<'a>>,
    /// The cells that the variants are made of, by their numbers.
    pub of_cells: &'a [u64],
}

/// A transfer beside the compared flow.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// The name of its flow.
    pub flow: &'a str,
    /// The lowest rate that the link has over time. `None` if the link has no rate of its own, so that no cap
    /// is tried.
    pub lowest_rate: Option<Rate>,
}

/// The cells of a comparison as rows: a value for each key.
struct Rows {
    keys: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// Reads the sweep of a comparison: one line, over one key or over several together.
    fn read(document: &DocumentMut) -> Option<Self> {
        let mut lines = document.get("sweep")?.as_table()?.iter();
        let (Some((key, values)), None) = (lines.next(), lines.next()) else { return None };
        let keys: Vec<String> = key.split(',').map(|key| key.trim().to_owned()).collect();
        let values = values.as_array()?.iter();
        let rows = match keys.len() {
            1 => values.map(|value| vec![value.clone()]).collect(),
            _ => values.map(|row| Some(row.as_array()?.iter().cloned().collect())).collect::<Option<_>>()?,
        };
        Some(Self { keys, rows })
    }

    /// Adds a key before the others. All rows have the value `base`.
    fn add_key(&mut self, key: &str, base: &Value) {
        if !self.keys.iter().any(|known| known == key) {
            self.keys.insert(0, key.to_owned());
            self.rows.iter_mut().for_each(|row| row.insert(0, base.clone()));
        }
    }

    /// Adds the rows `of_cells` again, with these values in place of their own.
    fn add(&mut self, of_cells: &[u64], changes: &[(&str, Value)]) {
        for &cell in of_cells {
            let Some(mut row) = usize::try_from(cell).ok().and_then(|cell| self.rows.get(cell).cloned())
            else {
                continue;
            };
            for (key, value) in changes {
                if let Some(column) = self.keys.iter().position(|known| known == key) {
                    row[column] = value.clone();
                }
            }
            self.rows.push(row);
        }
    }

    /// Writes the rows as the sweep of `document`.
    fn write(self, document: &mut DocumentMut) {
        let values = match self.keys.len() {
            1 => Array::from_iter(self.rows.into_iter().flatten()),
            _ => Array::from_iter(self.rows.into_iter().map(|row| Value::Array(Array::from_iter(row)))),
        };
        let mut sweep = Table::new();
        sweep.insert(&self.keys.join(", "), value(values));
        document.insert("sweep", Item::Table(sweep));
    }
}

/// Adds cells of `resolved`, the resolved text of a comparison, again with each of the `variants`. The cells
/// that were there come first and keep their numbers, and the cells with `fq_codel` come last. Returns `None`
/// if the path has no such link, or if no variant applies to it.
pub fn with_variants(resolved: &str, variants: &Variants<'_>) -> Option<String> {
    let mut document: DocumentMut = resolved.parse().ok()?;
    let Variants { link, of_cells, .. } = *variants;
    let queue_key = format!("path.{link}.queue");
    let queue = without_defaults(value_at(&document, &["path", link, "queue"])?);
    let mut rows = Rows::read(&document)?;
    let cells_before = rows.rows.len();
    let shaped = variants.shaped_below.zip(value_at(&document, &["path", link, "rate"]));
    let shaped = shaped.filter(|_| variants.fq_codel);
    let rate_key = format!("path.{link}.rate");
    let transfer = variants.transfer.and_then(|transfer| {
        let workload = value_at(&document, &["flow", transfer.flow, "workload"])?;
        let is_bulk = workload.as_inline_table()?.get("kind")?.as_str() == Some("bulk");
        is_bulk.then_some((transfer, workload))
    });
    // The keys of the rows, in the order of the labels.
    let of_flow =
        |key: &str| variants.transfer.map_or_else(String::new, |it| format!("flow.{}.{key}", it.flow));
    let [workload_key, count_key, control_key] = ["workload", "count", "transport.cc"].map(of_flow);
    let control = transfer.as_ref().and_then(|(transfer, _)| {
        let control = value_at(&document, &["flow", transfer.flow, "transport", "cc"])?;
        (control.as_str() != Some(SHORT_QUEUES)).then_some(control)
    });
    if let Some(control) = &control {
        rows.add_key(&control_key, control);
    }
    if let Some((_, workload)) = &transfer {
        rows.add_key(&count_key, &Value::from(1_i64));
        rows.add_key(&workload_key, workload);
    }
    if let Some((_, rate)) = &shaped {
        rows.add_key(&rate_key, rate);
    }
    rows.add_key(&queue_key, &queue);
    if variants.sizes {
        for limit in SIZES_TRIED.iter().filter_map(|factor| with_limit_times(&queue, *factor)) {
            rows.add(of_cells, &[(&queue_key, limit)]);
        }
    }
    if let Some((transfer, _)) = &transfer {
        if let Some(lowest_rate) = transfer.lowest_rate {
            rows.add(of_cells, &[(&workload_key, held_workload(lowest_rate))]);
        }
        if control.is_some() {
            rows.add(of_cells, &[(&control_key, SHORT_QUEUES.into())]);
        }
        rows.add(of_cells, &[(&count_key, Value::from(0_i64))]);
    }
    match shaped {
        Some((rate, _)) => {
            let shaped = rate_text(rate.as_bps() as f64 * SHAPED_SHARE);
            rows.add(of_cells, &[(&queue_key, "fq_codel".into()), (&rate_key, shaped.into())]);
        }
        None if variants.fq_codel => rows.add(of_cells, &[(&queue_key, "fq_codel".into())]),
        None => {}
    }
    if rows.rows.len() == cells_before {
        return None;
    }
    rows.write(&mut document);
    Some(document.to_string())
}

/// Adds the cells `of_cells` of `resolved`, the resolved text of a comparison with variants, again with
/// another limit of the drop-tail queue of `link`. Returns `None` if the comparison does not sweep that
/// queue.
pub fn with_queue_limit(resolved: &str, link: &str, limit: &str, of_cells: &[u64]) -> Option<String> {
    let mut document: DocumentMut = resolved.parse().ok()?;
    let mut rows = Rows::read(&document)?;
    let key = format!("path.{link}.queue");
    let column = rows.keys.iter().position(|known| *known == key)?;
    let mut queue = rows.rows.first()?.get(column)?.as_inline_table()?.clone();
    queue.insert("limit", limit.into());
    rows.add(of_cells, &[(&key, Value::InlineTable(queue))]);
    rows.write(&mut document);
    Some(document.to_string())
}

/// The congestion control that is tried for a transfer that fills a queue: it aims at a short queue
/// (draft-cardwell-iccrg-bbr-congestion-control-00 §2).
const SHORT_QUEUES: &str = "bbr";
/// The share of the link's rate to which a router before it is shaped, so that packets wait in its queue and
/// not in that of the link. OpenWrt's page on SQM advises 80 % to 95 % of the measured rate; we chose the
/// upper end.
const SHAPED_SHARE: f64 = 0.95;
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

/// Returns the workload of a transfer that is held to four fifths of `link_rate`, the lowest rate of its
/// link, as the scenario's text.
pub fn held_transfer(link_rate: Rate) -> String {
    held_workload(link_rate).to_string()
}

/// Returns the workload of a transfer that is held to [`HELD_SHARE`] of `link_rate`: it writes a segment at a
/// time, or more on a fast link.
fn held_workload(link_rate: Rate) -> Value {
    let bits = link_rate.as_bps() as f64 * HELD_SHARE;
    let (rate, kbps) = (rate_text(bits), whole_kbps(bits));
    let bytes = SEGMENT_BYTES.max((kbps * 1e3 / 8.0) as u64 / MOST_WRITES);
    let keys = [("kind", "cbr".to_owned()), ("rate", rate), ("size", format!("{bytes} B"))];
    Value::InlineTable(keys.into_iter().map(|(key, text)| (key, Value::from(text))).collect())
}

/// Writes a rate in bit/s: `800 kbps`, `9.5 Mbps`.
fn rate_text(bits: f64) -> String {
    let kbps = whole_kbps(bits);
    if kbps < 1e3 { format!("{kbps} kbps") } else { format!("{} Mbps", kbps / 1e3) }
}

fn whole_kbps(bits: f64) -> f64 {
    (bits / 1e3).round().max(1.0)
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

    const FQ_CODEL: Variants<'_> = Variants {
        link: "up",
        fq_codel: true,
        shaped_below: None,
        sizes: false,
        transfer: None,
        of_cells: &[0, 1],
    };

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
    fn a_router_before_the_line_is_shaped_to_a_little_less() {
        let before = compared();
        let shaped_below = Some(Rate::from_bps(1_000_000));
        let variants = Variants { shaped_below, of_cells: &[1], ..FQ_CODEL };
        let after = plan(with_variants(&before.resolved, &variants).unwrap());
        assert_eq!(after.cells.len(), 3, "one of the two transports");
        let shaped = &after.cells[2];
        assert_eq!(
            (&shaped.sweep["path.up.rate"], &shaped.sweep["path.up.queue"]),
            (&"950 kbps".into(), &"fq_codel".into())
        );
        assert_eq!(shaped.sweep["flow.call.transport"], "tcp");
    }

    #[test]
    fn each_variant_differs_from_the_cells_that_were_there_in_one_key() {
        let before = compared();
        let transfer = Some(Transfer { flow: "upload", lowest_rate: Some(Rate::from_bps(1_000_000)) });
        let after =
            plan(with_variants(&before.resolved, &Variants { sizes: true, transfer, ..FQ_CODEL }).unwrap());
        assert_eq!(after.cells.len(), 2 * 7);
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
        assert_eq!(swept(4, "flow.upload.transport.cc"), "bbr");
        assert_eq!((swept(5, "flow.upload.count"), of(5).scenario.flows.len()), (0.into(), 1));
        assert_eq!(swept(6, "path.up.queue"), "fq_codel");
        for number in 1..7 {
            let differs = |key: &&&str| of(0).sweep[**key] != of(number).sweep[**key];
            let keys =
                ["path.up.queue", "flow.upload.workload", "flow.upload.count", "flow.upload.transport.cc"];
            assert_eq!(keys.iter().filter(differs).count(), 1, "{}", of(number).label);
        }
        let more = plan(with_queue_limit(&after.resolved, "up", "100 kB", &[1]).unwrap());
        assert_eq!(more.cells.len(), 15);
        assert_eq!(more.cells[14].sweep["path.up.queue"]["limit"], "100 kB");
        assert_eq!(more.cells[14].sweep["flow.call.transport"], "tcp");
        assert!(with_queue_limit(&before.resolved, "up", "100 kB", &[1]).is_none(), "nothing is swept yet");
    }

    #[test]
    fn no_cap_is_tried_where_the_link_has_no_rate_of_its_own() {
        let transfer = Some(Transfer { flow: "upload", lowest_rate: None });
        let after = with_variants(&compared().resolved, &Variants { transfer, fq_codel: false, ..FQ_CODEL });
        let keys: Vec<_> = plan(after.unwrap())
            .cells
            .into_iter()
            .map(|cell| cell.sweep["flow.upload.count"].clone())
            .collect();
        assert_eq!(keys, [1, 1, 1, 1, 0, 0].map(serde_json::Value::from));
    }

    #[test]
    fn a_game_beside_an_upload_counts_from_the_second_sixth_on_and_a_call_from_the_start() {
        let transports = ["udp".to_owned(), "tcp".to_owned()];
        let warm_up = |workload, load| {
            let by_option = ByOption { value: workload, option: "--workload" };
            let comparison = Comparison { workload: by_option, load, ..comparison(&transports, &[]) };
            read(&comparison).unwrap().cells[0].scenario.warm_up.as_millis()
        };
        assert_eq!(warm_up(ComparedWorkload::Game, true), 1_666);
        assert_eq!(warm_up(ComparedWorkload::Game, false), 0);
        assert_eq!(warm_up(ComparedWorkload::Voice, true), 0);
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
