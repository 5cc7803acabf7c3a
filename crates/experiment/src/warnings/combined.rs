//! Combines the warnings of the repetitions of a run, so that each warning is written once.
//!
//! Two warnings are the same if they differ only in their numbers, or in which copy of a flow they are about.
//! The combined warning has the range of each number, and says how many repetitions and copies it is about:
//! `flow call: held its echoes for p99 1 to 900 ms (in 700 of 700 copies, worst call-17) (3 of 4
//! repetitions)`.

use std::collections::{BTreeMap, BTreeSet};

use super::number_ranges::RangeText;

pub(super) struct RepetitionWarnings<'a> {
    /// How the repetition is called in a warning: `transport = tcp, repetition 3`.
    pub(super) name: String,
    pub(super) warnings: &'a [String],
}

/// For each copy of a flow, the name that the flow has in the scenario file: `call` for the copy `call-3`.
pub(super) type FlowOfCopy<'a> = BTreeMap<&'a str, &'a str>;

/// A warning that one or several repetitions have.
struct CombinedWarning<'a> {
    text: RangeText,
    /// The repetitions that have the warning, in order.
    repetitions: Vec<&'a str>,
    /// The copies that the warning is about. `None` if the warning is not about a copy of a flow.
    copies: Option<WarnedCopies<'a>>,
}

/// The copies of one flow that have the same warning.
struct WarnedCopies<'a> {
    /// The flow's name in the scenario file.
    flow: &'a str,
    copies: BTreeSet<&'a str>,
    /// The copy whose warning has the largest last number, or the first copy.
    worst: &'a str,
    /// The last number in the warning of the worst copy. `None` if the warning has no number.
    worst_number: Option<f64>,
}

/// Returns each warning of `repetitions` once, in the order of their first occurrence.
pub(super) fn combine(repetitions: &[RepetitionWarnings<'_>], flow_of_copy: &FlowOfCopy<'_>) -> Vec<String> {
    let mut combined: Vec<CombinedWarning<'_>> = Vec::new();
    for repetition in repetitions {
        for warning in repetition.warnings {
            let new = CombinedWarning::new(warning, &repetition.name, flow_of_copy);
            match combined.iter_mut().find(|earlier| earlier.is_same_as(&new)) {
                Some(earlier) => earlier.include(new),
                None => combined.push(new),
            }
        }
    }
    combined.iter().map(|warning| warning.to_text(repetitions.len(), flow_of_copy)).collect()
}

impl<'a> CombinedWarning<'a> {
    fn new(warning: &'a str, repetition: &'a str, flow_of_copy: &FlowOfCopy<'a>) -> Self {
        let repetitions = vec![repetition];
        let copy = named_flow(warning);
        let flow = copy.and_then(|copy| flow_of_copy.get(copy).copied());
        let (Some(copy), Some(flow)) = (copy, flow) else {
            return Self { text: RangeText::parse(warning), repetitions, copies: None };
        };
        let text = RangeText::parse(&with_other_flow(warning, copy, flow));
        let worst_number = text.last_number();
        let copies = Some(WarnedCopies { flow, copies: [copy].into(), worst: copy, worst_number });
        Self { text, repetitions, copies }
    }

    fn is_same_as(&self, other: &Self) -> bool {
        let flow = self.copies.as_ref().map(|copies| copies.flow);
        let other_flow = other.copies.as_ref().map(|copies| copies.flow);
        flow == other_flow && self.text.differs_only_in_numbers_from(&other.text)
    }

    /// Adds the numbers, the repetitions and the copies of the same warning, which came later.
    fn include(&mut self, later: Self) {
        self.text.include(later.text);
        for repetition in later.repetitions {
            // All warnings of one repetition follow each other.
            if self.repetitions.last() != Some(&repetition) {
                self.repetitions.push(repetition);
            }
        }
        if let (Some(copies), Some(later)) = (&mut self.copies, later.copies) {
            copies.include(later);
        }
    }

    fn to_text(&self, all_repetitions: usize, flow_of_copy: &FlowOfCopy<'_>) -> String {
        let text = match &self.copies {
            Some(copies) => copies.add_to(&self.text.to_text(), flow_of_copy),
            None => self.text.to_text(),
        };
        let count = self.repetitions.len();
        match self.repetitions.first() {
            // If all repetitions have the warning, the reader need not know which.
            _ if count == all_repetitions => text,
            Some(repetition) if count == 1 => format!("{text} ({repetition})"),
            _ => format!("{text} ({count} of {all_repetitions} repetitions)"),
        }
    }
}

impl<'a> WarnedCopies<'a> {
    fn include(&mut self, later: Self) {
        self.copies.extend(later.copies);
        // `None` is less than any number.
        if later.worst_number > self.worst_number {
            (self.worst, self.worst_number) = (later.worst, later.worst_number);
        }
    }

    /// Returns `text`, which names the flow of the copies, with the copies added.
    fn add_to(&self, text: &str, flow_of_copy: &FlowOfCopy<'_>) -> String {
        let count = self.copies.len();
        if count == 1 {
            return with_other_flow(text, self.flow, self.worst);
        }
        let all_copies = flow_of_copy.values().filter(|flow| **flow == self.flow).count();
        match self.worst_number {
            Some(_) => format!("{text} (in {count} of {all_copies} copies, worst {})", self.worst),
            None => format!("{text} (in {count} of {all_copies} copies)"),
        }
    }
}

/// Precedes the name of a flow in a warning.
const FLOW: &str = "flow ";

/// Returns the flow that a warning is about: `call-3` in `flow call-3: ...`.
fn named_flow(warning: &str) -> Option<&str> {
    let (_, after) = warning.split_once(FLOW)?;
    let (name, _) = after.split_once(": ")?;
    Some(name)
}

/// Returns `warning` with the flow name `from` replaced by `to`.
fn with_other_flow(warning: &str, from: &str, to: &str) -> String {
    warning.replacen(&format!("{FLOW}{from}: "), &format!("{FLOW}{to}: "), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Combines the warnings of repetitions that are called `repetition 0`, `repetition 1` and so on.
    fn combine_numbered(repetitions: &[&[String]]) -> Vec<String> {
        let mut numbered = Vec::new();
        for (number, warnings) in repetitions.iter().enumerate() {
            numbered.push(RepetitionWarnings { name: format!("repetition {number}"), warnings });
        }
        combine(&numbered, &BTreeMap::new())
    }

    #[test]
    fn a_warning_of_one_repetition_names_the_repetition_and_a_warning_of_all_names_none() {
        let (late, ignored) = ("sent late: p99 2 ms".to_owned(), "mss is ignored".to_owned());
        let (first, second) = ([ignored.clone()], [ignored.clone(), late.clone()]);
        assert_eq!(
            combine_numbered(&[&first, &second]),
            [ignored.as_str(), "sent late: p99 2 ms (repetition 1)"]
        );
        assert_eq!(combine_numbered(&[&second]), [ignored, late], "the only repetition needs no name");
    }

    #[test]
    fn warnings_that_differ_only_in_their_numbers_are_one_warning_with_ranges() {
        let held =
            |p99: &str, count| [format!("flow a-1: the far host held its {count} echoes for p99 {p99} ms.")];
        assert_eq!(
            combine_numbered(&[&held("1.25", 100), &held("10.5", 99), &[], &held("2.0", 100)]),
            [
                "flow a-1: the far host held its 99 to 100 echoes for p99 1.25 to 10.5 ms. (3 of 4 repetitions)"
            ]
        );
        let addresses = ["stream 1 of 10.0.0.1:80 é".to_owned(), "stream 2 of 10.0.0.2:80 é".to_owned()];
        assert_eq!(combine_numbered(&[&addresses]), addresses, "an address is no number");
    }

    #[test]
    fn a_warning_about_one_packet_and_about_several_is_one_warning_with_a_range() {
        let unsent = |packets: &str| [format!("flow a: this host could not send {packets}: no buffer space")];
        let warnings = [unsent("1 packet"), unsent("3 packets"), unsent("2 packets")];
        for [first, second, third] in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
            assert_eq!(
                combine_numbered(&[&warnings[first], &warnings[second], &warnings[third]]),
                ["flow a: this host could not send 1 to 3 packets: no buffer space"]
            );
        }
        let combined = combine_numbered(&[&unsent("1 packet"), &unsent("2 messages")]);
        assert_eq!(combined.len(), 2, "another noun is another warning");
    }

    #[test]
    fn warnings_about_many_copies_of_a_flow_are_one_warning_that_names_the_worst_copy() {
        let copies: Vec<String> = (1..=700).map(|copy| format!("call-{copy}")).collect();
        let flow_of_copy: FlowOfCopy<'_> = copies.iter().map(|copy| (copy.as_str(), "call")).collect();
        let mut warnings = Vec::new();
        for (index, copy) in copies.iter().enumerate() {
            let p99_ms = if index == 16 { 900 } else { 1 + index % 7 };
            warnings.push(format!("invalid: emu: flow {copy}: held its echoes for p99 {p99_ms} ms"));
        }
        warnings.push("flow call-3: its file is not intact".to_owned());
        let repetition = RepetitionWarnings { name: "repetition 0".to_owned(), warnings: &warnings };
        assert_eq!(
            combine(&[repetition], &flow_of_copy),
            [
                "invalid: emu: flow call: held its echoes for p99 1 to 900 ms (in 700 of 700 copies, worst call-17)",
                "flow call-3: its file is not intact"
            ]
        );
    }
}
