//! The sentences of an answer. Every figure that they quote is in the table below them, with as many digits
//! or more.

use talkpath_measure::breaks::DID_NOT_OPEN;
use talkpath_measure::ranking::{Relation, Standing};
use talkpath_measure::summary::{AnswerKind, JudgedBy};

use super::Cause;
use super::cause::{link_words, wait};
use super::figure_style;
use super::ranked::{ALIKE_MS, Candidate, CandidateCause, RankedTransports};
use super::writing::tolerance_words;
use crate::condition::OtherFlow;
use crate::metric::{Metric, Quantile};
use crate::number::{count, counted, distinct, fixed, list, ms, percent};
use crate::rated::outside_sentence;
use crate::view::CellView;

/// The words after the name of a queue whose size the scenario does not state.
const ASSUMED_QUEUE: &str = ", whose size is assumed: the scenario does not say";
/// A sentence lists at most 3 different values. We chose 3 because a reader of more values wants the smallest
/// and the largest, and the table has all of them.
const MAX_VALUES: usize = 3;
/// An answer describes at most 2 other flows. We chose 2 because the table has columns for as many.
const MAX_NEIGHBOURS: usize = 2;
/// An answer proposes at most 10000 further repetitions. We chose 10000 because nobody runs more to tell two
/// transports apart.
pub const HOPELESS: u64 = 10_000;

/// The value of a metric over one transport.
pub(super) struct TransportValue<'a> {
    pub(super) value: f64,
    pub(super) transport: &'a str,
}

/// A judged figure in words: `2.10 or 4.33`, with the note `two outcomes`.
struct FigureText {
    /// The figure without the words around it, for example without `MOS`.
    bare: String,
    /// A remark on the figure, or an empty text.
    note: &'static str,
}

impl RankedTransports<'_> {
    /// The names of the best transports: `UDP or TCP`.
    pub(super) fn best_by_name(&self) -> String {
        alternatives(&self.names(&self.ranking.best()))
    }

    /// The best transports that reach the floor, with their figures: `UDP (MOS 4.37) or TCP_NODELAY (4.36)`.
    pub(super) fn best_with_figures(&self) -> String {
        let mut best = self.ranking.best();
        best.retain(|&candidate| self.ranking.standings[candidate].mean >= self.floor);
        alternatives(&self.names_with_figures(&best))
    }

    /// The answer in one sentence.
    pub(super) fn line(&self) -> String {
        let best = self.ranking.best();
        let worse = self.worse();
        let names = list(&self.names(&best));
        let flow = self.flow_words();
        let against = if worse.is_empty() {
            String::new()
        } else {
            format!(" against {}", self.figures_with_names(&worse))
        };
        match self.ranking.outcome {
            AnswerKind::Distinct => {
                let figure = self.figure(self.ranking.leader);
                format!("{names} is best for {flow}: {figure}{against}.")
            }
            AnswerKind::Alike => {
                let figures = self.figures(&best);
                if worse.is_empty() {
                    format!("It makes no difference for {flow} which of {names} carries it: {figures}.")
                } else {
                    format!("{names} serve {flow} alike: {figures}{against}.")
                }
            }
            AnswerKind::Undecided => self.undecided_line(&best),
            // A ranking rests on one receiver, so its outcome is never `DependsOnReceiver`.
            AnswerKind::Unusable | AnswerKind::DependsOnReceiver => match self.missed_deadline_ms {
                Some(deadline_ms) => self.missed_deadline_line(deadline_ms),
                None => self.unusable_line(&best),
            },
        }
    }

    /// The answer if the repetitions do not decide which of the candidates `best` is best. It says how many
    /// more repetitions would decide.
    fn undecided_line(&self, best: &[usize]) -> String {
        let repetitions = self.repetitions();
        let what_would_decide = match self.ranking.more {
            Some(more) if more > HOPELESS => format!("; not even {} would", count(repetitions + HOPELESS)),
            Some(more) => format!("; about {} more would (--repeat {})", count(more), repetitions + more),
            // One repetition alone says nothing about how many more are needed.
            None => "; try --repeat 20".to_owned(),
        };
        format!(
            "Undecided: {} {} tell whether one of {} is better for {} by more than {}{what_would_decide}.",
            counted(repetitions, "repetition"),
            if repetitions == 1 { "does not" } else { "do not" },
            list(&self.names_with_figures(best)),
            self.flow_words(),
            tolerance_words(self.judged_by),
        )
    }

    /// The answer if nothing is usable. It quotes the figure of the leader.
    fn unusable_line(&self, best: &[usize]) -> String {
        let leader = self.ranking.leader;
        // If all the best candidates have the same figure, down to the last digit, the figure belongs to all
        // of them and no name is given.
        let leader_figure = self.figure(leader);
        let have_same_figure = best.iter().all(|&candidate| self.figure(candidate) == leader_figure);
        let name = if best.len() > 1 && have_same_figure {
            ""
        } else {
            self.candidates[leader].transport.label.as_str()
        };
        let figure = figure_with_name(self.judged_by, self.floor, &self.ranking.standings[leader], name);
        let delay = self.delay_words().map_or_else(String::new, |delay| format!("{delay}, and "));
        format!(
            "No transport makes {} usable{}: {delay}{figure} at best.",
            self.flow_words(),
            self.while_others_run()
        )
    }

    /// The leader's delay in words, where nothing is usable and the share in time alone says too little: `a
    /// p50 round trip of 234 ms`.
    pub(super) fn delay_words(&self) -> Option<String> {
        if self.judged_by != JudgedBy::InTime {
            return None;
        }
        Some(format!(
            "a p50 {} of {}",
            self.condition.delay_kind(self.flow).name(),
            ms(self.leader_delay_ms()?)
        ))
    }

    /// The leader's median delay in ms.
    pub(super) fn leader_delay_ms(&self) -> Option<f64> {
        let kind = self.condition.delay_kind(self.flow);
        self.candidates[self.ranking.leader].value(Metric::delay(kind, Quantile::P50))
    }

    /// The answer if no message over any transport met the deadline. It names the transports that came
    /// nearest to the deadline.
    fn missed_deadline_line(&self, deadline_ms: f64) -> String {
        let delay = self.delay_words().map_or_else(String::new, |delay| format!("{delay}, and "));
        let none_usable = format!(
            "No transport makes {} usable{}: {delay}not one of its messages meets its deadline of {}.",
            self.flow_words(),
            self.while_others_run(),
            ms(deadline_ms)
        );
        let kind = self.condition.delay_kind(self.flow);
        let delays = self.values(|candidate| candidate.value(Metric::delay(kind, Quantile::P50)));
        let Some(delays_text) = self.join_values(&delays, ms) else { return none_usable };

        let shortest = delays.iter().map(|delay| delay.value).fold(f64::INFINITY, f64::min);
        let mut quickest: Vec<String> = Vec::new();
        for delay in &delays {
            if delay.value <= shortest + ALIKE_MS {
                quickest.push(delay.transport.to_owned());
            }
        }
        let quickest_words = if quickest.len() == self.candidates.len() {
            "All are as quick".to_owned()
        } else if quickest.len() == 1 {
            format!("The quickest is {}", list(&quickest))
        } else {
            format!("The quickest are {}", list(&quickest))
        };
        format!("{none_usable} {quickest_words}, by the p50 {}: {delays_text}.", kind.name())
    }

    /// The reasons for the answer, in a few sentences.
    pub(super) fn why(&self) -> String {
        let reason = match &self.unusable_because {
            Some(because) => self.cause_with_effect(because),
            None => self.contrast(),
        };
        let mut sentences: Vec<String> = Vec::new();
        sentences.extend(self.gaps());
        // A path that changes is the first thing to look at, unless a queue is full all the time.
        let is_queue = |because: &CandidateCause| {
            matches!(because.cause, Cause::Queue { .. } | Cause::QueueOnPath { .. })
        };
        let is_of_queue = self.unusable_because.as_ref().is_some_and(is_queue);
        let mut reasons = self.changes_of_path();
        reasons
            .insert(if is_of_queue || self.unusable_because.is_none() { 0 } else { reasons.len() }, reason);
        sentences.extend(reasons);
        sentences.extend(self.within_tolerance());
        sentences.extend(self.lost_or_late());
        sentences.extend(self.held_back());
        sentences.extend(self.control_of_others());
        sentences.extend(self.without_score());
        sentences.extend(self.unfinished());
        sentences.extend(silent_transports(self.condition.cells.iter(), self.flow));
        sentences.extend(self.assumption());
        sentences.extend(self.copies());
        sentences.extend(self.clusters());
        sentences.extend(self.outside_model());
        sentences.retain(|sentence| !sentence.is_empty());
        sentences.join(" ")
    }

    /// The cause why nothing is usable, and what the cause does to a call. The delay from mouth to ear is
    /// given for each transport, because the transport with the shortest delay may not be the best one.
    fn cause_with_effect(&self, because: &CandidateCause) -> String {
        let candidate = &self.candidates[because.candidate];
        let name = &candidate.transport.label;
        let cause = match &because.cause {
            Cause::Queue { link, discipline, .. } => self.queue_waits(link, discipline),
            cause => cause.sentence(name),
        };
        let effect = match &because.cause {
            Cause::Queue { .. }
            | Cause::QueueOnPath { .. }
            | Cause::Distance(_)
            | Cause::HeardWhole { .. } => {
                let delays = self.values(|candidate| candidate.value(Metric::MOUTH_TO_EAR_P50));
                let delays = self.join_values(&delays, ms);
                delays.map(|delays| format!(" From mouth to ear it takes {delays}."))
            }
            Cause::Loss(_) | Cause::Variation(_) => {
                let share = candidate.value(Metric::NOT_PLAYED).map(percent_text);
                share.map(|share| format!(" Over {name} {share} of the frames were late or missing."))
            }
        };
        format!("{cause}{}", effect.unwrap_or_default())
    }

    /// Says by what the calls are ranked, if nobody published the impairment of their coding.
    fn without_score(&self) -> Option<String> {
        let sentence = "There is no score, because nobody published the impairment of this coding: ranked is the share of \
                        speech that was not concealed, and the delay does not count in it.";
        (self.judged_by == JudgedBy::Heard).then(|| sentence.to_owned())
    }

    /// Says how long packets wait in the queue of `link`. The waits are given for each transport, because
    /// another transport may fill another queue.
    fn queue_waits(&self, link: &str, discipline: &str) -> String {
        let waits = self.values(|candidate| wait(candidate.cell, link));
        let waits = self.join_values(&waits, ms).unwrap_or_default();
        let is_assumed = self.condition.assumed_queues.iter().any(|assumed| assumed == link);
        let assumption = if is_assumed { ASSUMED_QUEUE } else { "" };
        let of_cell = self.condition.queue_of_cell(link);
        format!(
            "Packets wait {waits} in the queue of {} ({discipline}){assumption}.{of_cell}",
            link_words(link)
        )
    }

    /// Says in which figures the transports differ, if one of them is usable.
    fn contrast(&self) -> String {
        let values = |metric| self.values(|candidate| candidate.value(metric));
        let mut parts = Vec::new();
        match self.judged_by {
            JudgedBy::Mos | JudgedBy::Heard => {
                if let Some(shares) = self.join_values(&values(Metric::NOT_PLAYED), percent_text) {
                    parts.push(format!("{shares} of the frames were late or missing"));
                }
                if let Some(delays) = self.join_values(&values(Metric::MOUTH_TO_EAR_P50), ms) {
                    parts.push(format!("mouth to ear took {delays}"));
                }
            }
            JudgedBy::InTime => {
                if let Some(shares) = self.join_values(&values(Metric::LOSS_RATE), percent_text) {
                    parts.push(format!("{shares} of the messages were lost"));
                }
                let kind = self.condition.delay_kind(self.flow);
                if let Some(delays) = self.join_values(&values(Metric::delay(kind, Quantile::P99)), ms) {
                    parts.push(format!("the p99 {} was {delays}", kind.name()));
                }
            }
            JudgedBy::Goodput => {
                if let Some(shares) = self.join_values(&values(Metric::RETRANSMIT_RATE), percent_text) {
                    parts.push(format!("{shares} of the segments were sent again"));
                }
            }
        }
        let text = parts.join(", and ");
        match text.chars().next() {
            Some(first) => format!("{}{}.", first.to_uppercase(), &text[first.len_utf8()..]),
            None => text,
        }
    }

    /// Names the transports with many unfinished messages, if the answer quotes shares of lost messages.
    /// Unfinished messages count neither as lost nor as delivered.
    fn unfinished(&self) -> Option<String> {
        let quotes_losses = match &self.unusable_because {
            Some(because) => matches!(because.cause, Cause::Loss(_)),
            None => self.judged_by == JudgedBy::InTime,
        };
        if !quotes_losses {
            return None;
        }
        let shares = self.values(|candidate| candidate.cell.many_unfinished(candidate.flow));
        let shares = self.join_values(&shares, percent_text)?;
        Some(format!("At the end {shares} of the messages were still queued or in flight."))
    }

    /// Says how gaps in the speech bar a call, whatever its score is.
    fn gaps(&self) -> Option<String> {
        let index = self.unusable_because.as_ref()?.candidate;
        let (candidate, standing) = (&self.candidates[index], &self.ranking.standings[index]);
        if !standing.is_barred() {
            return None;
        }
        let barred = candidate.judged.values().filter(|figure| figure.barred);
        let longest = barred.filter_map(|figure| figure.longest_gap_ms).fold(0.0, f64::max);
        let share = (standing.barred * 100.0).round();
        let runs = candidate.cell.runs.iter();
        let calls = runs.filter_map(|run| run.flows.get(candidate.flow)?.call.as_deref());
        let often = match calls.filter_map(|call| call.gaps_in_a_minute).max() {
            Some(most @ 2..) => format!(", up to {} times a minute for 200 ms or more", count(most)),
            _ => String::new(),
        };
        Some(format!(
            "Speech stops in {share} % of the repetitions over {}, for {} at the longest{often}: a gap of 1 s, or two of 200 ms \
             within a minute, bars a call whatever its score is.",
            candidate.transport.label,
            ms(longest)
        ))
    }

    /// Names the transports whose calls lie outside of the tables of the E-model.
    fn outside_model(&self) -> Option<String> {
        let mut calls = Vec::new();
        for candidate in &self.candidates {
            for run in &candidate.cell.runs {
                if let Some(call) = run.flows.get(candidate.flow).and_then(|flow| flow.call.as_deref()) {
                    calls.push((candidate.transport.label.clone(), call));
                }
            }
        }
        outside_sentence(calls.into_iter(), self.candidates.len())
    }

    /// One sentence for each transport whose repetitions fall into two clusters.
    fn clusters(&self) -> Vec<String> {
        let style = figure_style(self.judged_by);
        let mut sentences = Vec::new();
        for (candidate, standing) in self.candidates.iter().zip(&self.ranking.standings) {
            let Some(clusters) = standing.clusters else { continue };
            let low = style.phrase(&style.bare(clusters.low));
            let high = style.phrase(&style.bare(clusters.high));
            let low_percent = (clusters.low_share * 100.0).round();
            sentences.push(format!(
                "{}: two outcomes, {low} in {low_percent} % of the repetitions and {high} in {} %.",
                candidate.transport.label,
                100.0 - low_percent
            ));
        }
        sentences
    }

    /// Says which copy or direction of the flow is judged, if the flow has copies or directions.
    fn copies(&self) -> Option<String> {
        let first = self.candidates.iter().map(|candidate| candidate.flow).find(|copy| *copy != self.flow)?;
        // The worst copy of each transport in each repetition.
        let mut worst_copies: Vec<&str> = Vec::new();
        // Whether every transport has the same worst copy in all its repetitions.
        let mut is_steady = true;
        for candidate in &self.candidates {
            for figure in candidate.judged.values() {
                worst_copies.push(&figure.worst_flow);
                is_steady &= figure.worst_flow == candidate.flow;
            }
        }
        // The name of a direction of a numbered copy has a number before `-up`, so it is not one of these.
        let is_direction = |copy: &str| matches!(copy.strip_prefix(self.flow), Some("-up" | "-down"));
        let have_directions_only = worst_copies.iter().all(|copy| is_direction(copy));
        let which = if have_directions_only { "worse direction" } else { "worst copy" };

        let count_of_first = worst_copies.iter().filter(|copy| **copy == first).count();
        Some(if count_of_first == worst_copies.len() {
            let alone = if have_directions_only { "its worse direction" } else { "the worst of its copies" };
            format!("Judged by {first}, {alone}.")
        } else if is_steady {
            format!("Judged by the {which} of each.")
        } else if 2 * count_of_first > worst_copies.len() {
            format!("Judged by the {which} of each repetition, mostly {first}.")
        } else {
            format!("Judged by the {which} of each repetition.")
        })
    }

    /// Says how the other flows fare that run at the same time. Returns `None` if there are no such flows.
    pub(super) fn neighbours(&self) -> Option<String> {
        let other_flows = self.condition.other_flows_by_group(self.flow);
        let shown = other_flows.iter().take(MAX_NEIGHBOURS);
        let sentences: Vec<String> = shown.filter_map(|other| self.neighbour(other)).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Says how one other flow, or the copies of one other flow, fares. Returns `None` if its figures are not
    /// known.
    fn neighbour(&self, other: &OtherFlow) -> Option<String> {
        let mbps = |bps: f64| format!("{} Mb/s", fixed(Some(bps / 1e6), 3));
        let values = |name: &str, metric| self.values(|candidate| candidate.cell.value(name, metric));
        let flow = self.flow_words();
        let name = match other {
            OtherFlow::Copies { group, flows } => {
                let goodput = self.join_values(&values(group, Metric::Group("goodput_bps")), mbps)?;
                return Some(format!("Beside {flow}, the {flows} flows {group} get {goodput} together."));
            }
            OtherFlow::Single(name) => name,
        };
        match self.condition.judged_by(name) {
            Some(JudgedBy::Mos) => {
                let scores = self.join_values(&values(name, Metric::MOS), |mos| fixed(Some(mos), 2))?;
                Some(format!("Beside {flow}, the flow {name} has MOS {scores}."))
            }
            Some(JudgedBy::Heard) => {
                let shares = self.join_values(&values(name, Metric::CONCEALED), percent_text)?;
                Some(format!("Beside {flow}, {shares} of the flow {name} is concealed."))
            }
            Some(JudgedBy::InTime) => {
                let shares = self.join_values(&values(name, Metric::IN_TIME), percent_text)?;
                let kind = self.condition.delay_kind(name);
                let delays = values(name, Metric::delay(kind, Quantile::P99));
                let delays = match self.join_values(&delays, ms) {
                    Some(delays) => format!(", and a p99 {} of {delays}", kind.name()),
                    None => String::new(),
                };
                Some(format!("Beside {flow}, the flow {name} has {shares} of its messages in time{delays}."))
            }
            Some(JudgedBy::Goodput) | None => {
                let goodput = self.join_values(&values(name, Metric::GOODPUT), mbps)?;
                Some(format!("Beside {flow}, the flow {name}{} gets {goodput}.", self.control_words(name)))
            }
        }
    }

    /// Names the flows that run at the same time, if a queue is the cause: ` while the upload runs`. They are
    /// not named for other causes, because it is not known whether losses end when the other flows end.
    fn while_others_run(&self) -> String {
        let Some(because) = &self.unusable_because else { return String::new() };
        if !matches!(because.cause, Cause::Queue { .. } | Cause::QueueOnPath { .. }) {
            return String::new();
        }
        match self.condition.other_flows(self.flow).as_slice() {
            [] => String::new(),
            [only] => format!(" while the {only} runs"),
            [..] => " while the other flows run".to_owned(),
        }
    }

    /// The compared flow in a sentence: `this call`, `the flow game`.
    pub(super) fn flow_words(&self) -> String {
        if self.judged_by.is_of_call() { "this call".to_owned() } else { format!("the flow {}", self.flow) }
    }

    /// Indices of the candidates that are known to be worse than the leader, the best of them first. A
    /// transport over which nothing came is left out, because the sentence of [`silent_transports`] names it.
    fn worse(&self) -> Vec<usize> {
        let standings = &self.ranking.standings;
        let mut worse: Vec<usize> = Vec::new();
        for (index, candidate) in self.candidates.iter().enumerate() {
            if standings[index].relation == Relation::Distinct && !candidate.cell.is_silent(self.flow) {
                worse.push(index);
            }
        }
        worse.sort_by(|&a, &b| standings[b].mean.total_cmp(&standings[a].mean));
        worse
    }

    /// The value of each candidate that has one: first the best candidates, then the worse ones.
    pub(super) fn values(&self, value: impl Fn(&Candidate<'_>) -> Option<f64>) -> Vec<TransportValue<'_>> {
        let mut values = Vec::new();
        for index in self.ranking.best().into_iter().chain(self.worse()) {
            let candidate = &self.candidates[index];
            if let Some(value) = value(candidate) {
                values.push(TransportValue { value, transport: &candidate.transport.label });
            }
        }
        values
    }

    /// Writes the values with the names of their transports. Returns `None` if there is no value.
    ///
    /// - `92.1 ms`, if all candidates have this value.
    /// - `92.1 ms (UDP) and 250 ms (TCP and QUIC stream)`, if there are few different values.
    /// - `92.1 ms (UDP) to 250 ms (TCP)`, if there are many different values.
    pub(super) fn join_values(
        &self,
        values: &[TransportValue<'_>],
        text: impl Fn(f64) -> String,
    ) -> Option<String> {
        /// The transports whose values have the same text.
        struct Group {
            text: String,
            transports: Vec<String>,
        }
        let mut groups: Vec<Group> = Vec::new();
        for TransportValue { value, transport } in values {
            let text = text(*value);
            match groups.iter_mut().find(|group| group.text == text) {
                Some(group) => group.transports.push((*transport).to_owned()),
                None => groups.push(Group { text, transports: vec![(*transport).to_owned()] }),
            }
        }
        match groups.as_slice() {
            [] => None,
            [only] if only.transports.len() == self.candidates.len() => Some(only.text.clone()),
            few if few.len() <= MAX_VALUES => {
                let parts = few.iter().map(|group| format!("{} ({})", group.text, list(&group.transports)));
                Some(list(&parts.collect::<Vec<_>>()))
            }
            _ => {
                let least = values.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
                let most = values.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
                let with_name = |end: &TransportValue<'_>| format!("{} ({})", text(end.value), end.transport);
                Some(format!("{} to {}", with_name(least), with_name(most)))
            }
        }
    }

    fn names(&self, candidates: &[usize]) -> Vec<String> {
        candidates.iter().map(|&index| self.candidates[index].transport.label.clone()).collect()
    }

    /// The figure of one candidate: `MOS 4.38`, `99.80 % in time`, `MOS 2.10 or 4.33 (two outcomes)`.
    fn figure(&self, candidate: usize) -> String {
        figure(self.judged_by, self.floor, &self.ranking.standings[candidate])
    }

    /// The figures without names: `MOS 4.38 and 4.31`, `99.80 % and 99.70 % in time`.
    fn figures(&self, candidates: &[usize]) -> String {
        let mut figures = Vec::new();
        for &index in candidates {
            let FigureText { bare, note } = self.figure_text(index);
            figures.push(if note.is_empty() { bare } else { format!("{bare} ({note})") });
        }
        figure_style(self.judged_by).phrase(&list(&figures))
    }

    /// The figures, each before its name: `4.12 (TCP_NODELAY) and 2.10 or 4.33 (UDP, two outcomes)`.
    pub(super) fn figures_with_names(&self, candidates: &[usize]) -> String {
        let mut parts = Vec::new();
        for &index in candidates {
            let FigureText { bare, note } = self.figure_text(index);
            let name = &self.candidates[index].transport.label;
            let comma = if note.is_empty() { "" } else { ", " };
            parts.push(format!("{bare} ({name}{comma}{note})"));
        }
        list(&parts)
    }

    /// The names, each before its figure: `UDP (MOS 3.92)`, `TCP (1.58)`, `TCP_NODELAY (2.61)`. The first
    /// figure says what the figures are.
    fn names_with_figures(&self, candidates: &[usize]) -> Vec<String> {
        let mut parts = Vec::new();
        for &index in candidates {
            let FigureText { bare, note } = self.figure_text(index);
            let figure = if parts.is_empty() { figure_style(self.judged_by).phrase(&bare) } else { bare };
            let name = &self.candidates[index].transport.label;
            let colon = if note.is_empty() { "" } else { ": " };
            parts.push(format!("{name} ({note}{colon}{figure})"));
        }
        parts
    }

    fn figure_text(&self, candidate: usize) -> FigureText {
        FigureText::new(self.judged_by, self.floor, &self.ranking.standings[candidate])
    }

    /// The largest number of repetitions among the cells of the condition.
    fn repetitions(&self) -> u64 {
        self.condition.cells.iter().map(|cell| cell.cell.n).max().unwrap_or(0)
    }
}

impl FigureText {
    /// Writes the mean, or both outcomes if the repetitions fall into two clusters, because no repetition has
    /// the mean then.
    fn new(judged_by: JudgedBy, floor: f64, standing: &Standing) -> Self {
        let style = figure_style(judged_by);
        let is_barred = is_barred_by_gaps_alone(standing, floor);
        match standing.clusters {
            Some(clusters) => Self {
                bare: format!("{} or {}", style.bare(clusters.low), style.bare(clusters.high)),
                note: if is_barred { "two outcomes, barred by gaps" } else { "two outcomes" },
            },
            None => {
                Self { bare: style.bare(standing.mean), note: if is_barred { "barred by gaps" } else { "" } }
            }
        }
    }
}

/// Whether gaps in the speech bar a call whose score alone would be usable.
fn is_barred_by_gaps_alone(standing: &Standing, floor: f64) -> bool {
    standing.is_barred() && standing.mean >= floor
}

/// Names the transports whose connection did not open, and the transports over which not one message got
/// through. Then says when the others opened. Returns `None` if messages got through over all transports.
pub(super) fn silent_transports<'a>(
    cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> Option<String> {
    let (silent, heard): (Vec<_>, Vec<_>) = cells.partition(|cell| cell.is_silent(flow));
    let (unopened, unheard): (Vec<_>, Vec<_>) = silent.into_iter().partition(|cell| cell.is_unopened(flow));
    let names = |cells: &[&CellView<'_>]| distinct(cells.iter().map(|cell| cell.transport(flow).label));
    let (not_open, not_heard) = (names(&unopened), names(&unheard));
    let mut sentences = Vec::new();
    if !not_open.is_empty() {
        sentences.push(format!("{} did not open{}.", list(&not_open), why_not_open(&unopened, flow)));
    }
    if !not_heard.is_empty() {
        sentences.push(format!("Nothing got through over {}.", list(&not_heard)));
    }
    if sentences.is_empty() {
        return None;
    }
    sentences.extend(openings(&heard, flow));
    Some(sentences.join(" "))
}

/// Says why connections did not open, if a break of each says the same: `: nothing came back over UDP port
/// 7160`. Otherwise the text is empty, as it is if nobody knows why.
fn why_not_open(cells: &[&CellView<'_>], flow: &str) -> String {
    let why = |cell: &&CellView<'_>| {
        let breaks = &cell.flow(flow)?.breaks;
        breaks.iter().find(|found| found.to_s.is_none()).map(|found| found.why.clone())
    };
    match &distinct(cells.iter().map(why))[..] {
        [Some(only)] if only != DID_NOT_OPEN => format!(": {only}"),
        _ => String::new(),
    }
}

/// Says when the transports opened, the earliest one first. An application that falls back from one transport
/// to the next tries them in this order. Returns `None` if no opening is known.
fn openings(cells: &[&CellView<'_>], flow: &str) -> Option<String> {
    let mut opened: Vec<(f64, String)> = Vec::new();
    for cell in cells {
        if let Some(opening_ms) = cell.value(flow, Metric::OPENING) {
            opened.push((opening_ms, cell.transport(flow).label));
        }
    }
    opened.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let figures: Vec<String> = opened.iter().map(|(at, name)| format!("{} ({name})", ms(*at))).collect();
    (!figures.is_empty()).then(|| format!("What gets through opens after {}.", list(&figures)))
}

/// Writes a candidate's figure: `MOS 4.38`, `goodput 0.941 Mb/s`, `MOS 2.10 or 4.33 (two outcomes)`.
pub(super) fn figure(judged_by: JudgedBy, floor: f64, standing: &Standing) -> String {
    figure_with_name(judged_by, floor, standing, "")
}

/// Writes a candidate's figure with its name: `MOS 3.20 (TCP, barred by gaps)`. The name may be empty.
fn figure_with_name(judged_by: JudgedBy, floor: f64, standing: &Standing, name: &str) -> String {
    let FigureText { bare, note } = FigureText::new(judged_by, floor, standing);
    let figure = figure_style(judged_by).phrase(&bare);
    match (name, note) {
        ("", "") => figure,
        (only, "") | ("", only) => format!("{figure} ({only})"),
        (name, note) => format!("{figure} ({name}, {note})"),
    }
}

pub(super) fn percent_text(share: f64) -> String {
    format!("{} %", percent(Some(share)))
}

/// Joins names with "or": `a`, `a or b`, `a, b or c`.
pub(super) fn alternatives(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}
