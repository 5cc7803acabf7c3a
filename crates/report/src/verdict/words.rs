//! An answer in words. The table beside it has every figure of the answer, with as many digits or more.

use talkpath_measure::ranking::{Relation, Standing};
use talkpath_measure::summary::{AnswerKind, JudgedBy};

use super::cause::{LONG_WAIT_MS, link_words, wait};
use super::{ALIKE_MS, Blamed, Candidate, Cause, Judgement, written};
use crate::condition::Beside;
use crate::number::{count, counted, fixed, list, ms, percent};
use crate::rated::outside_sentence;
use crate::view::{CellView, Metric, Quantile};

/// A figure over a transport.
struct ValueOver<'a> {
    value: f64,
    /// As a person calls it.
    transport: &'a str,
}

impl Judgement<'_> {
    /// The names that the answer gives: `UDP or TCP`.
    pub(super) fn short(&self) -> String {
        alternatives(&self.names(&self.ranking.best()))
    }

    /// The answer.
    pub(super) fn line(&self) -> String {
        let (best, worse) = (self.ranking.best(), self.worse());
        let names = list(&self.names(&best));
        let who = self.who();
        let leader = self.ranking.leader;
        let against = match worse.len() {
            0 => String::new(),
            _ => format!(" against {}", self.each(&worse)),
        };
        match self.ranking.outcome {
            AnswerKind::Distinct => {
                format!("{names} is best for {who}: {}{against}.", self.figure(leader))
            }
            AnswerKind::Alike if worse.is_empty() => {
                format!(
                    "It makes no difference for {who} which of {names} carries it: {}.",
                    self.figures(&best)
                )
            }
            AnswerKind::Alike => format!("{names} serve {who} alike: {}{against}.", self.figures(&best)),
            AnswerKind::Undecided => {
                let n = self.repetitions();
                let more = match self.ranking.more {
                    Some(more) if more > HOPELESS => {
                        format!("; not even {} would", count(n + HOPELESS))
                    }
                    Some(more) => {
                        format!("; about {} more would (--repeat {})", count(more), n + more)
                    }
                    None => "; try --repeat 20".to_owned(),
                };
                let do_not = if n == 1 { "does not" } else { "do not" };
                let n = counted(n, "repetition");
                let names = self.names_with_figures(&best);
                format!("Undecided: {n} {do_not} tell which of {names} is best for {who}{more}.")
            }
            AnswerKind::Unusable if let Some(deadline) = self.too_late => self.quickest(deadline),
            // A ranking rests on one receiver, and never depends on two.
            AnswerKind::Unusable | AnswerKind::DependsOnReceiver => {
                let beside = self.beside();
                // If the best have equal figures to the last digit, no name is set apart.
                let is_one = |&at: &usize| self.figure(at) == self.figure(leader);
                let name = match best.len() > 1 && best.iter().all(is_one) {
                    true => "",
                    false => self.candidates[leader].view.label.as_str(),
                };
                let figure = figure_of(self.by, self.floor, &self.ranking.standings[leader], name);
                format!("No transport makes {who} usable{beside}: {figure} at best.")
            }
        }
    }

    /// Why, in one or two sentences.
    pub(super) fn why(&self) -> String {
        let reason = match &self.blamed {
            Some(Blamed { candidate, cause }) => {
                let name = &self.candidates[*candidate].view.label;
                let sentence = match cause {
                    Cause::Queue(link, queue, _) => self.waits(link, queue),
                    _ => cause.sentence(name),
                };
                let effect = match cause {
                    Cause::Queue(..) | Cause::QueueOnPath(_) | Cause::Distance(_) | Cause::Whole(..) => self
                        .mouth_to_ear(*candidate)
                        .map(|delay| format!(" From mouth to ear it takes {} over {name}.", ms(delay))),
                    Cause::Loss(..) | Cause::Variation(..) => {
                        self.value(*candidate, Metric::NotPlayed).map(|share| {
                            format!(
                                " Over {name} {} of the frames were late or missing.",
                                percent_text(share)
                            )
                        })
                    }
                };
                format!("{sentence}{}", effect.unwrap_or_default())
            }
            None => self.contrast(),
        };
        let silent = silent(self.condition.cells.iter(), self.flow);
        let parts = [self.gaps(), Some(reason), self.unfinished(), silent, self.assumption(), self.copies()];
        let parts = parts.into_iter().flatten().chain(self.clusters()).chain(self.outside());
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// If the answer names shares of lost messages: the transports with many messages that are in no share.
    fn unfinished(&self) -> Option<String> {
        let has_losses = match &self.blamed {
            Some(blamed) => matches!(blamed.cause, Cause::Loss(..)),
            None => self.by == JudgedBy::InTime,
        };
        let shares = self.each_of(|candidate| candidate.cell.many_unfinished(candidate.flow));
        let shares = self.say(&shares, percent_text).filter(|_| has_losses)?;
        Some(format!("At the end {shares} of the messages were still queued or in flight."))
    }

    /// Nothing is in time: which transport is nearest to it.
    fn quickest(&self, deadline: f64) -> String {
        let kind = self.condition.delay_kind(self.flow);
        let (who, beside) = (self.who(), self.beside());
        let none = format!(
            "No transport makes {who} usable{beside}: not one of its messages meets its deadline of {}.",
            ms(deadline)
        );
        let delays = self
            .each_of(|candidate| candidate.cell.value(candidate.flow, Metric::Delay(kind, Quantile::P50)));
        let least = delays.iter().map(|delay| delay.value).fold(f64::INFINITY, f64::min);
        let quick = delays.iter().filter(|delay| delay.value <= least + ALIKE_MS);
        let names: Vec<String> = quick.map(|delay| delay.transport.to_owned()).collect();
        let Some(delays) = self.say(&delays, ms) else { return none };
        let quickest = match names.len() {
            all if all == self.candidates.len() => "All are as quick".to_owned(),
            1 => format!("The quickest is {}", list(&names)),
            _ => format!("The quickest are {}", list(&names)),
        };
        format!("{none} {quickest}, by the p50 {}: {delays}.", kind.name())
    }

    /// That nobody said how much a queue holds in which packets wait long.
    fn assumption(&self) -> Option<String> {
        let Blamed { cause, .. } = self.blamed.as_ref()?;
        let is_said = |link: &str| matches!(cause, Cause::Queue(said, ..) if said == link);
        let is_long = |link: &str| {
            let waits_long = |candidate: &Candidate<'_>| {
                let waits = candidate.cell.links(|link| Some(link.queue_delay_ms.as_ref()?.p99));
                waits.get(link).is_some_and(|wait| *wait >= LONG_WAIT_MS)
            };
            self.candidates.iter().any(waits_long)
        };
        let link = self.condition.assumed_queues.iter().find(|link| !is_said(link) && is_long(link))?;
        Some(format!(
            "This assumes that the queue of {} holds 1000 packets: the scenario does not say, and yours decides.",
            link_words(link)
        ))
    }

    /// How long packets wait in the queue that is the cause: with each transport, as another fills another
    /// queue.
    fn waits(&self, link: &str, queue: &str) -> String {
        let waits = self.each_of(|candidate| wait(candidate.cell, link));
        let wait = self.say(&waits, ms).unwrap_or_default();
        let (link_words, is_assumed) =
            (link_words(link), self.condition.assumed_queues.iter().any(|assumed| assumed == link));
        let assumed = if is_assumed { ASSUMING } else { "" };
        format!("Packets wait {wait} in the queue of {link_words} ({queue}){assumed}.")
    }

    /// What the flows beside it got; `None` if there are none.
    pub(super) fn neighbours(&self) -> Option<String> {
        let mbps = |bps: f64| format!("{} Mb/s", fixed(Some(bps / 1e6), 3));
        let sentence = |beside: &Beside| {
            let (Beside::Flow(other) | Beside::Copies { group: other, .. }) = beside;
            let each = |metric| self.each_of(|candidate| candidate.cell.value(other, metric));
            if let Beside::Copies { flows, .. } = beside {
                let all = self.say(&each(Metric::Group("goodput_bps")), mbps)?;
                return Some(format!("Beside {}, the {flows} flows {other} get {all} together.", self.who()));
            }
            let flow = format!("Beside {}, the flow {other}", self.who());
            Some(match self.condition.judged_by(other) {
                Some(JudgedBy::Mos) => {
                    let scores = self.say(&each(Metric::Mos), |mos| fixed(Some(mos), 2))?;
                    format!("{flow} has MOS {scores}.")
                }
                Some(JudgedBy::InTime) => {
                    let kind = self.condition.delay_kind(other);
                    let shares = self.say(&each(Metric::InTime), percent_text)?;
                    let delays = self.say(&each(Metric::Delay(kind, Quantile::P99)), ms);
                    let delays = delays
                        .map_or_else(String::new, |p99| format!(", and a p99 {} of {p99}", kind.name()));
                    format!("{flow} has {shares} of its messages in time{delays}.")
                }
                Some(JudgedBy::Goodput) | None => {
                    format!("{flow} gets {}.", self.say(&each(Metric::GoodputBps), mbps)?)
                }
            })
        };
        let beside = self.condition.beside(self.flow);
        let lines: Vec<_> = beside.iter().take(MAX_NEIGHBOURS).filter_map(sentence).collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    }

    /// In which figures those that are compared differ.
    fn contrast(&self) -> String {
        let value = |metric| self.each_of(|candidate| candidate.cell.value(candidate.flow, metric));
        let kind = self.condition.delay_kind(self.flow);
        let mut parts = Vec::new();
        match self.by {
            JudgedBy::Mos => {
                let shares = self.say(&value(Metric::NotPlayed), percent_text);
                parts.extend(shares.map(|shares| format!("{shares} of the frames were late or missing")));
                let delays = self.say(&value(Metric::MouthToEar50), ms);
                parts.extend(delays.map(|delays| format!("mouth to ear took {delays}")));
            }
            JudgedBy::InTime => {
                let shares = self.say(&value(Metric::LossRate), percent_text);
                parts.extend(shares.map(|shares| format!("{shares} of the messages were lost")));
                let delays = self.say(&value(Metric::Delay(kind, Quantile::P99)), ms);
                parts.extend(delays.map(|delays| format!("the p99 {} was {delays}", kind.name())));
            }
            JudgedBy::Goodput => {
                let shares = self.say(&value(Metric::RetransmitRate), percent_text);
                parts.extend(shares.map(|shares| format!("{shares} of the segments were sent again")));
            }
        }
        let text = parts.join(", and ");
        match text.chars().next() {
            Some(first) => format!("{}{}.", first.to_uppercase(), &text[first.len_utf8()..]),
            None => text,
        }
    }

    /// A figure of each candidate that knows it: the best first, then those that are worse.
    fn each_of(&self, figure: impl Fn(&Candidate<'_>) -> Option<f64>) -> Vec<ValueOver<'_>> {
        let all = self.ranking.best().into_iter().chain(self.worse());
        let candidates = all.map(|at| &self.candidates[at]);
        candidates
            .filter_map(|candidate| {
                Some(ValueOver { value: figure(candidate)?, transport: &candidate.view.label })
            })
            .collect()
    }

    /// `92.1 ms` if that is every candidate's; `92.1 ms (UDP) and 250 ms (TCP and QUIC stream)`; of more than
    /// a few `92.1 ms (UDP) to 250 ms (TCP)`. `None` without a figure.
    fn say(&self, figures: &[ValueOver<'_>], text: impl Fn(f64) -> String) -> Option<String> {
        /// Transports whose figures are written alike.
        struct Alike {
            text: String,
            names: Vec<String>,
        }
        let mut groups: Vec<Alike> = Vec::new();
        for ValueOver { value, transport } in figures {
            let (text, name) = (text(*value), (*transport).to_owned());
            match groups.iter_mut().find(|group| group.text == text) {
                Some(group) => group.names.push(name),
                None => groups.push(Alike { text, names: vec![name] }),
            }
        }
        if let [Alike { text, names }] = &groups[..]
            && names.len() == self.candidates.len()
        {
            return Some(text.clone());
        }
        let in_full = |figure: &ValueOver<'_>| format!("{} ({})", text(figure.value), figure.transport);
        if groups.len() > MAX_FIGURES {
            let least = figures.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
            let most = figures.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
            return Some(format!("{} to {}", in_full(least), in_full(most)));
        }
        let each = groups.iter().map(|Alike { text, names }| format!("{text} ({})", list(names)));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| list(&each))
    }

    /// If the score alone would call it usable: that gaps bar it.
    fn gaps(&self) -> Option<String> {
        let at = self.blamed.as_ref()?.candidate;
        let standing = &self.ranking.standings[at];
        if !standing.is_barred() || standing.mean < self.floor {
            return None;
        }
        let gaps = self.candidates[at].judged.values().filter(|judged| judged.barred);
        let longest = gaps.filter_map(|judged| judged.longest_gap_ms).fold(0.0, f64::max);
        let share = (standing.barred * 100.0).round();
        let Candidate { cell, flow, .. } = self.candidates[at];
        let calls = cell.runs.iter().filter_map(|run| run.flows.get(flow)?.call.as_deref());
        let often = match calls.filter_map(|call| call.gaps_in_a_minute).max() {
            Some(most @ 2..) => format!(", up to {} times a minute for 200 ms or more", count(most)),
            _ => String::new(),
        };
        Some(format!(
            "Speech stops in {share} % of the repetitions over {}, for {} at the longest{often}: a gap of 1 s, or two of 200 ms \
             within a minute, bars a call whatever its score is.",
            self.candidates[at].view.label,
            ms(longest)
        ))
    }

    /// Transports that are rated where the E-model has no table.
    fn outside(&self) -> Option<String> {
        let calls = self.candidates.iter().flat_map(|candidate| {
            let calls =
                candidate.cell.runs.iter().filter_map(|run| run.flows.get(candidate.flow)?.call.as_deref());
            calls.map(|call| (candidate.view.label.clone(), call))
        });
        outside_sentence(calls, self.candidates.len())
    }

    /// Transports whose repetitions fall into two clusters.
    fn clusters(&self) -> Vec<String> {
        let sentence = |(candidate, standing): (&Candidate<'_>, &Standing)| {
            let found = standing.clusters?;
            let (low, high) = (self.text(found.low), self.text(found.high));
            let share = (found.low_share * 100.0).round();
            Some(format!(
                "{}: two outcomes, {low} in {share} % of the repetitions and {high} in {} %.",
                candidate.view.label,
                100.0 - share
            ))
        };
        self.candidates.iter().zip(&self.ranking.standings).filter_map(sentence).collect()
    }

    /// Which copy of the flow is judged, if there are copies.
    fn copies(&self) -> Option<String> {
        let first = self.candidates.iter().map(|candidate| candidate.flow).find(|copy| *copy != self.flow)?;
        let worst_of = |candidate: &Candidate<'_>| -> Vec<_> {
            candidate.judged.values().map(|judged| judged.worst_flow.clone()).collect()
        };
        // The copy that counts, of each transport in each repetition.
        let copies: Vec<String> = self.candidates.iter().flat_map(worst_of).collect();
        let is_steady = self
            .candidates
            .iter()
            .all(|candidate| worst_of(candidate).iter().all(|copy| copy == candidate.flow));
        // The directions of a flow that has no other copies: where it has, their numbers are before that.
        let is_direction = |copy: &String| ["-up", "-down"].map(Some).contains(&copy.strip_prefix(self.flow));
        let (which, alone) = match copies.iter().all(is_direction) {
            true => ("worse direction", "its worse direction"),
            false => ("worst copy", "the worst of its copies"),
        };
        let same = copies.iter().filter(|copy| *copy == first).count();
        Some(match (same == copies.len(), is_steady) {
            (true, _) => format!("Judged by {first}, {alone}."),
            (false, true) => format!("Judged by the {which} of each."),
            (false, false) if 2 * same > copies.len() => {
                format!("Judged by the {which} of each repetition, mostly {first}.")
            }
            (false, false) => format!("Judged by the {which} of each repetition."),
        })
    }

    /// ` while the upload runs`, if that fills the queue that is the cause: of losses and of delays that vary
    /// it is not known that they end with it.
    fn beside(&self) -> String {
        let cause = self.blamed.as_ref().map(|blamed| &blamed.cause);
        if !matches!(cause, Some(Cause::Queue(..) | Cause::QueueOnPath(_))) {
            return String::new();
        }
        match self.condition.other_flows(self.flow).as_slice() {
            [] => String::new(),
            [only] => format!(" while the {only} runs"),
            [..] => " while the other flows run".to_owned(),
        }
    }

    fn who(&self) -> String {
        match self.by {
            JudgedBy::Mos => "this call".to_owned(),
            JudgedBy::InTime | JudgedBy::Goodput => format!("the flow {}", self.flow),
        }
    }

    /// Candidates that are known to be worse, the best first. Transports over which nothing came have no
    /// figures to compare: a sentence of their own names them.
    fn worse(&self) -> Vec<usize> {
        let standings = &self.ranking.standings;
        let is_silent = |at: &usize| self.candidates[*at].cell.is_silent(self.flow);
        let is_worse = |at: &usize| standings[*at].relation == Relation::Distinct && !is_silent(at);
        let mut worse: Vec<usize> = (0..standings.len()).filter(is_worse).collect();
        worse.sort_by(|&a, &b| standings[b].mean.total_cmp(&standings[a].mean));
        worse
    }

    fn names(&self, of: &[usize]) -> Vec<String> {
        of.iter().map(|&at| self.candidates[at].view.label.clone()).collect()
    }

    /// `MOS 4.38`, `99.80 % in time`, `MOS 2.10 or 4.33 (two outcomes)`
    fn figure(&self, at: usize) -> String {
        figure(self.by, self.floor, &self.ranking.standings[at])
    }

    fn text(&self, mean: f64) -> String {
        let written = written(self.by);
        written.phrase(&written.bare(mean))
    }

    /// `MOS 4.38 and 4.31`, `99.80 % and 99.70 % in time`
    fn figures(&self, of: &[usize]) -> String {
        let bare = |&at: &usize| {
            let (text, note) = bare(self.by, self.floor, &self.ranking.standings[at]);
            if note.is_empty() { text } else { format!("{text} ({note})") }
        };
        written(self.by).phrase(&list(&of.iter().map(bare).collect::<Vec<_>>()))
    }

    /// `4.12 (TCP_NODELAY) and 2.10 or 4.33 (UDP, two outcomes)`
    fn each(&self, of: &[usize]) -> String {
        let each = |&at: &usize| {
            let (text, note) = bare(self.by, self.floor, &self.ranking.standings[at]);
            let comma = if note.is_empty() { "" } else { ", " };
            format!("{text} ({}{comma}{note})", self.candidates[at].view.label)
        };
        list(&of.iter().map(each).collect::<Vec<_>>())
    }

    /// `UDP (MOS 3.92), TCP (1.58) and TCP_NODELAY (2.61)`
    fn names_with_figures(&self, of: &[usize]) -> String {
        list(&self.each_with_figure(of))
    }

    /// `UDP (MOS 4.37) or TCP_NODELAY (4.36)`: those that the answer calls best, and that reach the floor.
    pub(super) fn short_with_figures(&self) -> String {
        let mut best = self.ranking.best();
        best.retain(|&at| self.ranking.standings[at].mean >= self.floor);
        alternatives(&self.each_with_figure(&best))
    }

    fn each_with_figure(&self, of: &[usize]) -> Vec<String> {
        let each = |(number, &at): (usize, &usize)| {
            let (text, note) = bare(self.by, self.floor, &self.ranking.standings[at]);
            let text = if number == 0 { written(self.by).phrase(&text) } else { text };
            let colon = if note.is_empty() { "" } else { ": " };
            format!("{} ({note}{colon}{text})", self.candidates[at].view.label)
        };
        of.iter().enumerate().map(each).collect()
    }

    fn value(&self, at: usize, metric: Metric) -> Option<f64> {
        let candidate = &self.candidates[at];
        candidate.cell.value(candidate.flow, metric)
    }

    fn mouth_to_ear(&self, at: usize) -> Option<f64> {
        self.value(at, Metric::MouthToEar50)
    }

    fn repetitions(&self) -> u64 {
        self.condition.cells.iter().map(|cell: &CellView<'_>| cell.cell.n).max().unwrap_or(0)
    }
}

/// The transports that did not open, and those over which not one message got through; `None` if there are
/// none.
pub(super) fn silent<'a>(cells: impl Iterator<Item = &'a CellView<'a>>, flow: &str) -> Option<String> {
    let (mut unopened, mut silent): (Vec<String>, Vec<String>) = Default::default();
    for cell in cells.filter(|cell| cell.is_silent(flow)) {
        let names = if cell.is_unopened(flow) { &mut unopened } else { &mut silent };
        let name = cell.transport(flow).label;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let unopened = (!unopened.is_empty()).then(|| format!("{} did not open.", list(&unopened)));
    let silent = (!silent.is_empty()).then(|| format!("Nothing got through over {}.", list(&silent)));
    let said: Vec<String> = unopened.into_iter().chain(silent).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// `MOS 4.38`, `99.80 % in time`, `goodput 0.941 Mb/s`, `MOS 2.10 or 4.33 (two outcomes)`
pub(super) fn figure(by: JudgedBy, floor: f64, standing: &Standing) -> String {
    figure_of(by, floor, standing, "")
}

/// `MOS 3.20 (TCP, barred by gaps)`; the same without a name if that is empty.
fn figure_of(by: JudgedBy, floor: f64, standing: &Standing, name: &str) -> String {
    let (text, note) = bare(by, floor, standing);
    let text = written(by).phrase(&text);
    let notes: Vec<&str> = [name, note].into_iter().filter(|text| !text.is_empty()).collect();
    if notes.is_empty() { text } else { format!("{text} ({})", notes.join(", ")) }
}

/// The mean, or both outcomes where there are two: no repetition has their mean. Then a remark, if gaps bar
/// what the score alone would call usable.
fn bare(by: JudgedBy, floor: f64, standing: &Standing) -> (String, &'static str) {
    let written = written(by);
    let text = match standing.clusters {
        Some(found) => format!("{} or {}", written.bare(found.low), written.bare(found.high)),
        None => written.bare(standing.mean),
    };
    let is_barred = standing.is_barred() && standing.mean >= floor;
    let note = match (standing.clusters.is_some(), is_barred) {
        (true, true) => "two outcomes, barred by gaps",
        (true, false) => "two outcomes",
        (false, true) => "barred by gaps",
        (false, false) => "",
    };
    (text, note)
}

fn percent_text(share: f64) -> String {
    format!("{} %", percent(Some(share)))
}

/// `a`, `a or b`, `a, b or c`
pub(super) fn alternatives(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// The default of `queue`, which decides where nothing else does.
const ASSUMING: &str = ", assuming that it holds 1000 packets: the scenario does not say, and yours decides";
/// Chosen: of more figures a reader wants the ends; the table has each.
const MAX_FIGURES: usize = 3;
/// Chosen: as many flows beside it as the table has columns for.
const MAX_NEIGHBOURS: usize = 2;
/// Chosen: nobody runs more repetitions than this to tell two transports apart.
pub const HOPELESS: u64 = 10_000;
