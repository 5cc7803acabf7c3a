//! Sentences on how a scenario was understood, where a mistake is likely and would decide the result.
//!
//! - The unit of a trace is not in its file, so each trace is described in a line.
//! - A loss of `0.5` may be meant as 0.5 %, so a large loss is written out.
//! - A datagram that IP fragments is lost with any of its fragments (`crate::fragments`).
//! - An *assumed queue* has the default limit, because the file does not say one.
//!
//! Begin to read with [`Understood`]. Traces that are implausible get a warning (`trace_doubts`).

mod trace_doubts;

use talkpath_model::{LinkIndex, Scenario};
use talkpath_path::{DelayTrace, LossTrace, QueueName, RateTrace};
use talkpath_units::counted;

pub use self::trace_doubts::doubts_about_rates;
pub(crate) use self::trace_doubts::warn_of_traces;
use crate::contents::Contents;
use crate::fragments;
use crate::timeline::Timeline;
use crate::tree::{Meaning, Node, Table};
use crate::words::{file_name, percent, rate, time};

/// Sentences on how a plan was understood, for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Understood {
    /// A line for each trace, for example `x.up: 1000 deliveries, 1.2 Mb/s in the mean, repeats after 10 s`.
    pub traces: Vec<String>,
    /// A line for each link that loses more than a fifth of the packets, for example `The path loses 50 % of
    /// the packets each way.`
    pub losses: Vec<String>,
    /// A line for each flow whose datagrams IP fragments, with the loss of messages that follows from a loss
    /// of packets.
    pub fragments: Vec<String>,
    /// What is said of tables of values over time, for example `x.csv: half of rtt_ms is the delay of each
    /// direction`.
    pub tables: Vec<String>,
    /// When the links change in the first cell. `None` if they do not.
    pub timeline: Option<Timeline>,
    /// What is assumed of the path that a file describes, in sentences.
    pub path: Vec<String>,
    /// Whether the sizes of the queues of that path are assumed.
    pub assumes_queues: bool,
    /// Whether the file has no rates, so that something else gives them.
    pub path_lacks_rate: bool,
    /// The names of the links whose drop-tail queue has the default limit.
    pub assumed_queues: Vec<String>,
    /// Each key `playout` that a file sets to `adaptive`, with a sentence on what this word means now.
    pub renamed: Vec<(String, String)>,
    /// Each key that the simulator ignores, such as `flow.call.dscp`, with a sentence on it.
    pub not_in_sim: Vec<(String, String)>,
}

/// Describes the traces in `contents` and the scenarios of all `cells`.
pub(crate) fn understood(contents: &Contents, cells: &[&Scenario]) -> Understood {
    Understood {
        traces: traces(contents),
        losses: sentences(
            cells,
            losses,
            &format!("links and cells lose more than {} of the packets", percent(LARGE_LOSS)),
        ),
        fragments: sentences(
            cells,
            fragments::fragment_lines,
            "flows and cells send datagrams that are cut into fragments",
        ),
        tables: tables(contents),
        timeline: None,
        path: Vec::new(),
        assumes_queues: false,
        path_lacks_rate: false,
        assumed_queues: Vec::new(),
        renamed: Vec::new(),
        not_in_sim: not_in_sim(cells),
    }
}

impl Understood {
    /// Returns the lines that every run prints.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        self.traces.iter().chain(&self.tables).chain(&self.losses).chain(&self.fragments)
    }
}

/// Returns the keys that the simulator ignores: the DSCP of a flow whose links have no queue with classes.
fn not_in_sim(cells: &[&Scenario]) -> Vec<(String, String)> {
    let mut ignored: Vec<(String, String)> = Vec::new();
    let flows = cells.iter().flat_map(|cell| cell.flows.iter().map(move |flow| (cell, flow)));
    for (cell, flow) in flows {
        let Some(dscp) = flow.dscp else { continue };
        let has_classes = |index: &LinkIndex| {
            let link = cell.links.get(index.0 as usize);
            link.is_some_and(|link| link.config.queue.has_classes())
        };
        if flow.all_links().any(has_classes) {
            continue;
        }
        let message = format!(
            "{dscp} does nothing in `sim`, because no queue on the way has classes (`priority`, `drr`); it marks packets in `emu` and `live`"
        );
        let key = format!("flow.{}.dscp", flow.group);
        // The copies of a flow and the cells of a sweep have the key in common.
        if ignored.iter().all(|(earlier, _)| *earlier != key) {
            ignored.push((key, message));
        }
    }
    ignored
}

/// Returns the keys `playout` that the file of a cell sets to `adaptive`, each with a sentence on what the
/// word means. `cell` is the tree of the cell before it is checked.
pub(crate) fn adaptive_receivers(cell: &Table) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    let flows = cell.get("flow").and_then(Node::as_table);
    for flow in flows.iter().flat_map(|flows| &flows.entries) {
        let workload = flow.node.as_table().and_then(|flow| flow.get("workload")?.as_table());
        let Some(playout) = workload.and_then(|workload| workload.get("playout")) else { continue };
        // Only the word counts, because the resolved form of a scenario writes a table.
        if playout.as_text() == Some(ADAPTIVE) {
            let sentence = "adaptive is the jitter buffer of browsers since this version; the receiver that had this name is \
                            `ramjee`";
            keys.push((format!("flow.{}.workload.playout", flow.name), sentence.to_owned()));
        }
    }
    keys
}

const ADAPTIVE: &str = "adaptive";

/// Returns the names of the links in a cell whose drop-tail queue has the default limit. `cell` is its
/// checked tree.
pub(crate) fn assumed_queues(cell: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for links in ["path", "link"].iter().filter_map(|parent| cell.get(parent)?.as_table()) {
        for link in &links.entries {
            if link.node.as_table().and_then(|link| link.get("queue")).is_some_and(has_default_limit) {
                names.push(link.name.clone());
            }
        }
    }
    names
}

/// Whether `queue` is a drop-tail queue whose limit is not in the file.
fn has_default_limit(queue: &Node) -> bool {
    let is_drop_tail = matches!(queue.meaning, Some(Meaning::Variant(variant)) if variant.name == DROP_TAIL);
    let limit = queue.as_table().and_then(|queue| queue.get("limit"));
    is_drop_tail && limit.is_some_and(|limit| limit.is_default)
}

const DROP_TAIL: &str = QueueName::DropTail.word();

/// Describes each trace. One file may be the rate, the loss and the delay of links at once.
fn traces(contents: &Contents) -> Vec<String> {
    let mut lines = Vec::new();
    for trace in &contents.traces {
        let file = file_name(&trace.name);
        if let Some(rate) = contents.rate(&trace.name) {
            lines.push(format!("{file}: {}", describe_rate_trace(rate)));
        }
        if let Some(loss) = contents.loss(&trace.name) {
            lines.push(format!("{file}: {}", describe_loss_trace(loss)));
        }
        if let Some(delay) = contents.delay(&trace.name) {
            lines.push(format!("{file}: {}", describe_delay_trace(delay)));
        }
    }
    lines
}

/// Says how each table of values over time was read, where its header does not say all.
fn tables(contents: &Contents) -> Vec<String> {
    let mut lines = Vec::new();
    for trace in &contents.traces {
        let Some(table) = contents.changes(&trace.name) else { continue };
        let origin = table.origin().map(|origin| format!("times count from the first one, {origin}"));
        let notes = origin.into_iter().chain(table.notes().iter().cloned());
        lines.extend(notes.map(|note| format!("{}: {note}", file_name(&trace.name))));
    }
    lines
}

fn describe_rate_trace(trace: &RateTrace) -> String {
    let deliveries = counted(trace.opportunities().len(), "delivery");
    let mean = match trace.mean_rate().as_bps() {
        0 => "less than 1 b/s".to_owned(),
        _ => rate(trace.mean_rate()),
    };
    format!("{deliveries}, {mean} in the mean, repeats after {}", time(trace.period()))
}

fn describe_loss_trace(trace: &LossTrace) -> String {
    let lost = trace.marks().iter().filter(|is_lost| **is_lost).count();
    let packets = counted(trace.marks().len(), "packet");
    format!("{packets}, {lost} of them lost ({}), repeats after these", percent(trace.share()))
}

fn describe_delay_trace(trace: &DelayTrace) -> String {
    let packets = counted(trace.additions().len(), "packet");
    let (mean, largest) = (time(trace.mean()), time(trace.largest()));
    format!("{packets}, {mean} added in the mean and {largest} at most, repeats after these")
}

/// Makes a sentence of each line that `lines_of_cell` returns. A line that does not hold for all cells gets
/// the number of its cells. If there are more than [`MAX_SENTENCES`] lines, the last sentence has the number
/// of the others and then `others`.
fn sentences(
    cells: &[&Scenario],
    lines_of_cell: impl Fn(&Scenario) -> Vec<String>,
    others: &str,
) -> Vec<String> {
    // Each line with the number of its cells, in the order of the cells.
    let mut lines: Vec<(String, usize)> = Vec::new();
    for line in cells.iter().flat_map(|cell| lines_of_cell(cell)) {
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => lines.push((line, 1)),
        }
    }
    let mut sentences = Vec::new();
    for (line, count) in lines.iter().take(MAX_SENTENCES) {
        if *count == cells.len() {
            sentences.push(format!("{line}."));
        } else {
            sentences.push(format!("{line} (in {count} of {} cells).", cells.len()));
        }
    }
    if lines.len() > MAX_SENTENCES {
        sentences.push(format!("{} more {others}.", lines.len() - MAX_SENTENCES));
    }
    sentences
}

/// We chose at most 5 sentences on losses and 5 on fragments, because more do not help a reader.
const MAX_SENTENCES: usize = 5;

/// Returns a line for each link of a cell that loses more than [`LARGE_LOSS`].
fn losses(scenario: &Scenario) -> Vec<String> {
    let mean_losses = scenario.links.iter().map(|link| (link.name.as_str(), link.config.loss.mean()));
    let large_losses: Vec<(&str, f64)> = mean_losses.filter(|(_, share)| *share > LARGE_LOSS).collect();
    if let [("up", up), ("down", down)] = large_losses.as_slice()
        && percent(*up) == percent(*down)
    {
        return vec![format!("The path loses {} of the packets each way", percent(*up))];
    }
    large_losses
        .iter()
        .map(|(link, share)| format!("The link {link} loses {} of the packets", percent(*share)))
        .collect()
}

/// We chose 20 %: no codec can conceal so much in a call, so the share was perhaps meant in per cent.
const LARGE_LOSS: f64 = 0.2;
