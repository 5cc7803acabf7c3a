//! What is said of a whole run: what its repetitions warn of, each warning once, and which repetitions are
//! missing, left out or the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use talkpath_measure::summary::RunSummary;
use talkpath_measure::warning;
use talkpath_scenario::Plan;
use talkpath_units::{counted, is_or_are, is_same_but_for_plural};

use crate::Error;
use crate::part::{Part, named};
use crate::run_dir::{PartId, SCENARIO};

/// The file's warnings, then those of the repetitions `parts`.
pub(crate) fn warnings(plan: &Plan, parts: &[&Part]) -> Vec<String> {
    let of_file =
        plan.warnings.iter().map(|warning| format!("{SCENARIO}: {}: {}", warning.key, warning.message));
    let of_parts: Vec<_> = parts.iter().map(|part| (name_of(plan, part), part.warnings.as_slice())).collect();
    of_file.chain(gathered(&of_parts, &copies(plan))).collect()
}

/// What a repetition is called among the others.
fn name_of(plan: &Plan, part: &Part) -> String {
    let PartId { cell, repetition } = part.id();
    let label = label(plan, cell);
    match (label.is_empty(), plan.repeat > 1) {
        (true, _) => format!("repetition {repetition}"),
        (false, false) => label.to_owned(),
        (false, true) => format!("{label}, repetition {repetition}"),
    }
}

/// That the figures rest on `all` repetitions but the `left_out` ones, which stayed disturbed, and why.
pub(crate) fn left_out_warning(plan: &Plan, all: usize, left_out: &[&Part]) -> Option<String> {
    let told = |part: &&Part| {
        let reasons = part.warnings.iter().filter_map(|warning| warning::reason(warning));
        let why = reasons.collect::<Vec<_>>().join(", ");
        let name = name_of(plan, part);
        if why.is_empty() { name } else { format!("{name}: {why}") }
    };
    let which = || named(left_out.iter().map(told));
    (!left_out.is_empty()).then(|| warning::left_out(all - left_out.len(), all, which()))
}

/// How many repetitions ran again, if any did.
pub(crate) fn ran_again_note(parts: &[Part]) -> Option<String> {
    let times = || parts.iter().map(Part::reruns).filter(|reruns| *reruns > 0);
    let (count, sum) = (times().count(), times().sum::<u64>());
    let in_all = if sum > count as u64 { format!(", {sum} times in all") } else { String::new() };
    let repetitions = counted(count, "repetition");
    let told = format!("{repetitions} ran again{in_all}: disturbed past the stated limits");
    (count > 0).then(|| warning::note(told))
}

/// The copies of the plan's flows, each with its flow's name in the file.
fn copies(plan: &Plan) -> BTreeMap<&str, &str> {
    let flows = plan.cells.iter().flat_map(|cell| &cell.scenario.flows);
    let names = flows.map(|flow| (flow.name.as_str(), flow.group.as_str()));
    names.filter(|(name, group)| name != group).collect()
}

/// A warning that repetitions and copies have in common.
struct Gathered<'a> {
    pieces: Pieces,
    /// The repetitions that warn, in order.
    names: Vec<&'a str>,
    /// The copies that it is about, if it is about copies, and their flow.
    copies: BTreeSet<&'a str>,
    of: &'a str,
    /// The largest last number, and whose it is.
    worst: (f64, &'a str),
}

/// Each warning once, in the order in which they first came. Warnings that differ in their numbers alone, or
/// in the copy of a flow that they are about, are one, with the range of each number. What only some
/// repetitions warn of says which, or how many.
fn gathered(parts: &[(String, &[String])], copies: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut found: Vec<Gathered<'_>> = Vec::new();
    for (name, warning) in parts.iter().flat_map(|(name, of)| of.iter().map(move |it| (name, it))) {
        let copy = named_flow(warning).and_then(|copy| Some((copy, *copies.get(copy)?)));
        let pieces = match copy {
            Some((copy, group)) => Pieces::of(&renamed(warning, copy, group)),
            None => Pieces::of(warning),
        };
        let last = pieces.last();
        let (copy, of) = copy.unwrap_or_default();
        let at = found.iter().position(|it| it.of == of && it.pieces.differ_in_numbers_alone(&pieces));
        let entry = match at {
            Some(at) => {
                found[at].pieces.widen(&pieces);
                &mut found[at]
            }
            None => {
                let (names, copies) = (Vec::new(), BTreeSet::new());
                found.push(Gathered { pieces, names, copies, of, worst: (f64::NEG_INFINITY, copy) });
                let newest = found.len() - 1;
                &mut found[newest]
            }
        };
        if entry.names.last() != Some(&name.as_str()) {
            entry.names.push(name);
        }
        entry.copies.insert(copy);
        if last > entry.worst.0 {
            entry.worst = (last, copy);
        }
    }
    let all = |group: &str| copies.values().filter(|it| **it == group).count();
    let told = |Gathered { pieces, names, copies, of, worst }: Gathered<'_>| {
        let text = match (of, copies.len()) {
            ("", _) => pieces.text(),
            (_, 1) => renamed(&pieces.text(), of, worst.1),
            (_, count) if worst.0.is_finite() => {
                format!("{} (in {count} of {} copies, worst {})", pieces.text(), all(of), worst.1)
            }
            (_, count) => format!("{} (in {count} of {} copies)", pieces.text(), all(of)),
        };
        match names[..] {
            [name] if parts.len() > 1 => format!("{text} ({name})"),
            _ if names.len() < parts.len() => {
                format!("{text} ({} of {} repetitions)", names.len(), parts.len())
            }
            _ => text,
        }
    };
    found.into_iter().map(told).collect()
}

/// The flow that a warning is about: `flow call-3: ...`.
fn named_flow(warning: &str) -> Option<&str> {
    let (_, after) = warning.split_once(FLOW)?;
    after.split_once(": ").map(|(name, _)| name)
}

/// The warning with another name in place of that of its flow.
fn renamed(warning: &str, name: &str, other: &str) -> String {
    warning.replacen(&format!("{FLOW}{name}: "), &format!("{FLOW}{other}: "), 1)
}

/// What stands before a flow's name in a warning.
const FLOW: &str = "flow ";

/// A text in words, and the numbers between them: each as its smallest and its largest.
struct Pieces {
    words: Vec<String>,
    numbers: Vec<(String, String)>,
}

impl Pieces {
    /// A number stands by itself: digits with at most one point within, no part of a word.
    fn of(text: &str) -> Self {
        let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | ':' | '-' | '/');
        let (mut words, mut numbers, mut from, mut at) = (Vec::new(), Vec::new(), 0, 0);
        while let Some(length) = text[at..].find(|c: char| !is_inner(c)).or(Some(text.len() - at)) {
            // A point at the end belongs to the sentence.
            let number = text[at..at + length].trim_end_matches(['.', ':']);
            let is_number = number.parse::<f64>().is_ok() && number.starts_with(|c: char| c.is_ascii_digit());
            if is_number && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                words.push(text[from..at].to_owned());
                numbers.push((number.to_owned(), number.to_owned()));
                from = at + number.len();
            }
            at += length;
            let Some(next) = text[at..].chars().next() else { break };
            at += next.len_utf8();
        }
        words.push(text[from..].to_owned());
        Self { words, numbers }
    }

    /// Whether both say the same of other numbers: `1 packet came` and `3 packets came` do.
    fn differ_in_numbers_alone(&self, other: &Self) -> bool {
        self.words.len() == other.words.len()
            && self.words.iter().zip(&other.words).all(|(own, others)| is_same(own, others))
    }

    fn widen(&mut self, other: &Self) {
        for (own, others) in self.words.iter_mut().zip(&other.words) {
            if others.len() > own.len() {
                own.clone_from(others);
            }
        }
        let value = |text: &str| text.parse::<f64>().unwrap_or(0.0);
        for ((least, most), (low, high)) in self.numbers.iter_mut().zip(&other.numbers) {
            if value(low) < value(least) {
                least.clone_from(low);
            }
            if value(high) > value(most) {
                most.clone_from(high);
            }
        }
    }

    /// The last number: of a percentile or a count it is how bad it is.
    fn last(&self) -> f64 {
        let value = |(_, most): &(String, String)| most.parse().ok();
        self.numbers.last().and_then(value).unwrap_or(f64::NEG_INFINITY)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (index, word) in self.words.iter().enumerate() {
            text.push_str(word);
            match self.numbers.get(index) {
                Some((least, most)) if least == most => text.push_str(least),
                Some((least, most)) => text.push_str(&format!("{least} to {most}")),
                None => {}
            }
        }
        text
    }
}

/// Whether the words after a number are the same, but for the plural of the first.
fn is_same(a: &str, b: &str) -> bool {
    let after_space = a.strip_prefix(' ').zip(b.strip_prefix(' '));
    a == b || after_space.is_some_and(|(a, b)| is_same_but_for_plural(a, b))
}

/// What distinguishes a cell from the others; empty if there is only one cell.
fn label(plan: &Plan, cell: u64) -> &str {
    plan.cell(cell).map_or("", |it| it.label.as_str())
}

pub(crate) fn missing_warning(plan: &Plan, missing: &[PartId], failure: Option<&Error>) -> String {
    let name = |id: &PartId| {
        let label = label(plan, id.cell);
        let cell = if label.is_empty() { String::new() } else { format!("{label} ") };
        format!("{cell}repetition {}", id.repetition)
    };
    let named = named(missing.iter().map(name));
    let why = failure.map_or(String::new(), |failure| {
        format!(" ({})", failure.to_string().lines().next().unwrap_or_default())
    });
    let all = plan.cells.len() as u64 * plan.repeat;
    let (count, all) = (missing.len() as u64, counted(all, "repetition"));
    format!("{count} of {all} {} missing or cut short{why}: {named}", is_or_are(count))
}

/// If nothing random affects a cell, its repetitions are identical, and an interval over them would suggest
/// certainty. Of some cells of a sweep it is a note: the others vary. Cells in which nothing was delivered
/// have no figures that could be equal, and are left out.
pub(crate) fn alike_warning(runs: &[RunSummary]) -> Option<String> {
    let mut by_cell: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
    runs.iter().for_each(|run| by_cell.entry(run.cell).or_default().push(run));
    by_cell.retain(|_, runs| runs.iter().any(|run| has_figures(run)));
    let same = |a: &RunSummary, b: &RunSummary| (&a.flows, &a.links) == (&b.flows, &b.links);
    let all_alike = |runs: &[&RunSummary]| runs.len() > 1 && runs.iter().all(|run| same(run, runs[0]));
    let sweeps: Vec<(&BTreeMap<String, Value>, bool)> =
        by_cell.values().map(|runs| (&*runs[0].sweep, all_alike(runs))).collect();
    let alike = sweeps.iter().filter(|(_, is_alike)| *is_alike).count();
    if alike == 0 {
        return None;
    }
    if alike == sweeps.len() {
        return Some(
            "all repetitions are the same: nothing random touched them, and intervals over them say nothing; \
             give a flow `start = { from = \"0 s\", to = \"1 s\" }` or `send_jitter` to see how much hangs on chance"
                .to_owned(),
        );
    }
    Some(warning::note(format!(
        "the repetitions of {} are the same, because nothing random happens there: their intervals have no width. \
         `--set 'flow.*.start={{ from = \"0 s\", to = \"1 s\" }}'` varies them.",
        alike_cells(&sweeps, alike)
    )))
}

/// Whether any message of any flow was delivered.
fn has_figures(run: &RunSummary) -> bool {
    run.flows.values().any(|flow| flow.received > 0) || run.groups.values().any(|group| group.received > 0)
}

/// The cells of `sweeps` that are alike: `all cells with path.*.loss=0`, `3 of the 6 cells with
/// path.*.loss=0`, or `3 of 12 cells`.
fn alike_cells(sweeps: &[(&BTreeMap<String, Value>, bool)], alike: usize) -> String {
    let pairs = sweeps.iter().find(|(_, is_alike)| *is_alike).into_iter().flat_map(|(sweep, _)| *sweep);
    let counted = pairs.filter_map(|(key, value)| {
        let with = || sweeps.iter().filter(|(sweep, _)| sweep.get(key) == Some(value));
        let holds =
            with().filter(|(_, is_alike)| *is_alike).count() == alike && with().count() < sweeps.len();
        holds.then(|| (with().count(), key, value))
    });
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match counted.min_by_key(|(count, ..)| *count) {
        Some((count, key, only)) if count == alike => format!("all cells with {key}={}", value(only)),
        Some((count, key, only)) => format!("{alike} of the {count} cells with {key}={}", value(only)),
        None => format!("{alike} of {} cells", sweeps.len()),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::FlowSummary;

    use super::*;

    #[test]
    fn what_one_repetition_warns_of_is_named_after_it_and_what_several_do_is_told_once() {
        let (late, ignored) = ("sent late: p99 2 ms".to_owned(), "mss is ignored".to_owned());
        let (both, one) = ([ignored.clone(), late.clone()], [ignored.clone()]);
        let parts = [("transport = udp".to_owned(), &one[..]), ("transport = tcp".to_owned(), &both[..])];
        assert_eq!(
            gathered(&parts, &BTreeMap::new()),
            [ignored.as_str(), "sent late: p99 2 ms (transport = tcp)"]
        );
        assert_eq!(gathered(&parts[1..], &BTreeMap::new()), [ignored, late], "alone it needs no name");
    }

    #[test]
    fn warnings_that_differ_in_their_numbers_alone_are_one_with_ranges() {
        let held = |p99: &str, count| {
            vec![format!("flow a-1: the far host held its {count} echoes for p99 {p99} ms.")]
        };
        let all = [held("1.25", 100), held("10.5", 99), vec![], held("2.0", 100)];
        let parts: Vec<_> =
            (0..).zip(&all).map(|(at, of): (u64, _)| (format!("repetition {at}"), &of[..])).collect();
        let told =
            "flow a-1: the far host held its 99 to 100 echoes for p99 1.25 to 10.5 ms. (3 of 4 repetitions)";
        assert_eq!(gathered(&parts, &BTreeMap::new()), [told]);
        let other = ["stream 1 of 10.0.0.1:80 é".to_owned(), "stream 2 of 10.0.0.2:80 é".to_owned()];
        assert_eq!(gathered(&[(String::new(), &other)], &BTreeMap::new()), other, "an address is no number");
    }

    #[test]
    fn a_warning_of_one_packet_and_of_several_is_one_with_a_range() {
        let unsent =
            |packets: &str| vec![format!("flow a: this host could not send {packets}: no buffer space")];
        let all = [unsent("1 packet"), unsent("3 packets"), unsent("2 packets")];
        for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
            let parts: Vec<_> = order.iter().map(|&at| (format!("repetition {at}"), &all[at][..])).collect();
            assert_eq!(
                gathered(&parts, &BTreeMap::new()),
                ["flow a: this host could not send 1 to 3 packets: no buffer space"]
            );
        }
        let other = [unsent("1 packet"), unsent("2 messages")];
        let parts: Vec<_> = other.iter().map(|of| (String::new(), &of[..])).collect();
        assert_eq!(gathered(&parts, &BTreeMap::new()).len(), 2, "another noun is another warning");
    }

    #[test]
    fn what_many_copies_of_a_flow_warn_of_is_one_line_with_the_worst() {
        let names: Vec<String> = (1..=700).map(|copy| format!("call-{copy}")).collect();
        let copies: BTreeMap<&str, &str> = names.iter().map(|name| (name.as_str(), "call")).collect();
        let of = |(name, late): (&String, u64)| {
            format!("invalid: emu: flow {name}: held its echoes for p99 {late} ms")
        };
        let late: Vec<u64> = (0..700).map(|copy| if copy == 16 { 900 } else { 1 + copy % 7 }).collect();
        let mut warnings: Vec<String> = names.iter().zip(late).map(of).collect();
        warnings.push("flow call-3: its file is not intact".to_owned());
        let told = gathered(&[("repetition 0".to_owned(), &warnings)], &copies);
        assert_eq!(
            told,
            [
                "invalid: emu: flow call: held its echoes for p99 1 to 900 ms (in 700 of 700 copies, worst call-17)",
                "flow call-3: its file is not intact"
            ]
        );
    }

    #[test]
    fn cells_whose_repetitions_are_all_the_same_are_named() {
        let run = |cell, repetition, received, loss: f64, delay: &str| RunSummary {
            cell,
            repetition,
            seed: repetition,
            sweep: [("path.*.loss".to_owned(), loss.into()), ("path.*.delay".to_owned(), delay.into())]
                .into(),
            flows: [("call".to_owned(), Box::new(FlowSummary { received, ..FlowSummary::default() }))].into(),
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            machine: None,
        };
        let alike = |cell, loss, delay: &str| [run(cell, 0, 50, loss, delay), run(cell, 1, 50, loss, delay)];
        let varied = |cell, loss, delay: &str| [run(cell, 0, 49, loss, delay), run(cell, 1, 48, loss, delay)];
        let begins = |runs: &[[RunSummary; 2]], text: &str| {
            let told = alike_warning(&runs.concat()).expect("some are the same");
            assert!(told.starts_with(text), "{told}");
        };
        begins(&[alike(0, 0.0, "1ms")], "all repetitions are the same:");
        begins(
            &[alike(0, 0.0, "1ms"), alike(1, 0.0, "2ms"), varied(2, 0.1, "1ms"), varied(3, 0.1, "2ms")],
            "note: the repetitions of all cells with path.*.loss=0.0 are the same, ",
        );
        begins(
            &[alike(0, 0.0, "1ms"), varied(1, 0.0, "1ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of 1 of the 2 cells with path.*.loss=0.0 are the same, ",
        );
        begins(
            &[alike(0, 0.0, "1ms"), alike(1, 0.1, "2ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of 2 of 3 cells are the same, ",
        );
        // What delivered nothing is the same, too, and is neither counted nor named.
        let silent = |cell, loss, delay: &str| [run(cell, 0, 0, loss, delay), run(cell, 1, 0, loss, delay)];
        begins(
            &[alike(0, 0.0, "1ms"), silent(1, 1.0, "1ms"), varied(2, 0.1, "1ms")],
            "note: the repetitions of all cells with path.*.loss=0.0 are the same, ",
        );
        assert_eq!(alike_warning(&[silent(0, 1.0, "1ms"), silent(1, 1.0, "2ms")].concat()), None);
        assert_eq!(alike_warning(&[silent(0, 1.0, "1ms"), varied(1, 0.1, "1ms")].concat()), None);
        assert_eq!(alike_warning(&varied(1, 0.1, "1ms")), None);
        assert_eq!(alike_warning(&alike(0, 0.0, "1ms")[..1]), None, "one repetition has no interval");
    }
}
