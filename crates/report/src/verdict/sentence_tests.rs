//! Each sentence of an answer holds for each transport that it names: random runs are judged, every sentence
//! is taken apart, and every figure in it is held against the repetitions, counted here anew. A sentence of a
//! form that is not known here fails: whoever adds one says how it is checked.

mod random_runs;

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::ranking::clusters::clusters;
use talkpath_measure::summary::{
    CallSummary, DelayMs, DropsByCause, FlowSummary, HeldMs, JudgedBy, Ledger, LinkSummary, ModelInput,
    MouthToEarMs, OutsideModel, QueueDelayMs, QueuePackets, RunSummary, Summary, WaitMs, WaitsSummary,
};
use talkpath_units::{Seed, Stream};

use self::random_runs::random_summary;
use super::*;
use crate::condition::Condition;
use crate::fixture;

/// We chose 300 because every form of sentence then comes up.
const RUNS: u64 = 300;

#[test]
fn each_sentence_of_a_random_answer_holds_for_each_transport_that_it_names() {
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    let empty = fixture::summary(1);
    for seed in 0..RUNS {
        let mut random = Seed::new(seed).stream("sentences");
        let (summary, by) = random_summary(&mut random, empty.clone());
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        for ConditionAnswer { condition, verdict } in judged.answers() {
            for line in verdict.lines() {
                for sentence in sentences(line) {
                    let truth = Truth { condition, by, summary: &summary };
                    let form = truth.check(sentence).unwrap_or_else(|why| {
                        panic!("seed {seed}: {why}\n  in: {sentence}\n  of: {:#?}", verdict.lines())
                    });
                    *seen.entry(form).or_default() += 1;
                }
            }
        }
    }
    // A form that never comes up is not checked.
    for form in FORMS {
        assert!(seen.contains_key(form), "no sentence of the form {form:?} came up: {seen:?}");
    }
}

/// Every form of sentence.
const FORMS: [&str; 28] = [
    "did not open",
    "openings",
    "silent",
    "too late",
    "quickest",
    "assumed",
    "best",
    "no difference",
    "alike",
    "undecided",
    "unusable",
    "cure",
    "no cure",
    "late or missing",
    "lost",
    "sent again",
    "waits",
    "much lost",
    "unfinished",
    "too long",
    "whole",
    "vary",
    "neighbour",
    "outside",
    "two outcomes",
    "waited",
    "lost or late",
    "held by the receiver",
];

const FLOW: &str = "call";
const TRANSPORTS: [(&str, &str); 6] = [
    ("udp", "UDP"),
    ("tcp", "TCP"),
    ("tcp-nodelay", "TCP_NODELAY"),
    ("quic-datagram", "QUIC datagrams"),
    ("quic-stream", "QUIC stream"),
    ("quic-stream-per-message", "QUIC stream/msg"),
];

/// Ends at a full stop before a space.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split(". ").map(|sentence| sentence.trim_end_matches('.'))
}

struct Truth<'a> {
    condition: &'a Condition<'a>,
    by: JudgedBy,
    summary: &'a Summary,
}

type Checked<T = ()> = Result<T, String>;

impl Truth<'_> {
    /// The form of the sentence, once each of its figures holds.
    fn check(&self, text: &str) -> Checked<&'static str> {
        let who = if self.by == JudgedBy::Mos { "this call" } else { "the flow call" };
        if let Some((names, rest)) = text.split_once(&format!(" is best for {who}: ")) {
            let (figure, against) = rest.split_once(" against ").unwrap_or((rest, ""));
            self.judged(names, figure)?;
            self.each(against)?;
            return Ok("best");
        }
        if let Some((names, figures)) = between(text, "It makes no difference for ", "")
            .and_then(|text| text.strip_prefix(&format!("{who} which of ")))
            .and_then(|text| text.split_once(" carries it: "))
        {
            self.in_order(names, figures)?;
            return Ok("no difference");
        }
        if let Some((names, rest)) = text.split_once(&format!(" serve {who} alike: ")) {
            let (figures, against) = rest.split_once(" against ").unwrap_or((rest, ""));
            self.in_order(names, figures)?;
            self.each(against)?;
            return Ok("alike");
        }
        if let Some(rest) = text.strip_prefix("Undecided: ") {
            let (named, _) = between(rest, "", "")
                .and_then(|rest| rest.split_once("whether one of "))
                .and_then(|(_, rest)| rest.split_once(&format!(" is better for {who} by more than ")))
                .ok_or("no names")?;
            self.with_figures(named, " and ")?;
            return Ok("undecided");
        }
        if text.starts_with("No transport makes ")
            && text.contains("not one of its messages meets its deadline of 2000 ms")
        {
            let best = self.labels().map(|label| self.mean_judged(label)).fold(f64::MIN, f64::max);
            return if best > 0.0 { Err(format!("{best} % is in time")) } else { Ok("too late") };
        }
        if let Some((names, delays)) = text.split_once(", by the p50 one way: ") {
            let p50 = |flow: &FlowSummary| Some(flow.one_way_delay_ms.as_ref()?.p50);
            let of = |label: &str| median(self.values(label, &p50));
            self.figures(delays, " ms", &of)?;
            let least = self.labels().filter_map(of).fold(f64::MAX, f64::min);
            let names = names.trim_start_matches("The quickest is ").trim_start_matches("The quickest are ");
            for name in items(names).into_iter().filter(|name| *name != "All are as quick") {
                if of(name).is_none_or(|delay| delay > least + 1.0) {
                    return Err(format!("{name} is not quick"));
                }
            }
            return Ok("quickest");
        }
        if let Some(rest) = between(text, "No transport makes ", " at best") {
            let (_, figure) = rest.split_once(": ").ok_or("no figure")?;
            let figure = self.without_delay(figure)?;
            let (figure, notes) = figure.trim_end_matches(')').split_once(" (").unwrap_or((figure, ""));
            let name = notes.split(", ").find(|it| !["two outcomes", "barred by gaps", ""].contains(it));
            match name {
                Some(name) => self.judged(name, figure)?,
                // The best of several: at least the mean of each.
                None => {
                    let best = self.labels().map(|label| self.mean_judged(label)).fold(f64::MIN, f64::max);
                    if !figure.contains(" or ") {
                        close(&self.bare(figure), best, self.decimals())?;
                    }
                }
            }
            return Ok("unusable");
        }
        self.check_why(text)
    }

    fn check_why(&self, whole: &str) -> Checked<&'static str> {
        let whole = whole.strip_prefix("Without it: ").unwrap_or(whole);
        let text = whole;
        if let Some(rest) = text.strip_prefix("With fq_codel on the uplink") {
            // Of the cells with the cure.
            let flows = FlowCells::all(self.summary);
            let of_cure = |condition: &&Condition<'_>| condition.label.contains("fq_codel");
            let condition = flows[0].conditions.iter().find(of_cure).ok_or("no cure")?;
            let cured = Truth { condition, ..*self };
            if let Some(figure) = between(rest, " it is not usable: ", " at best") {
                let figure = cured.without_delay(figure)?;
                let best = cured.labels().map(|label| cured.mean_judged(label)).fold(f64::MIN, f64::max);
                if !figure.contains(" or ") {
                    close(&cured.bare(figure), best, cured.decimals())?;
                }
                return Ok("no cure");
            }
            let (delay, best) = rest
                .strip_prefix(" it is usable")
                .and_then(|rest| rest.split_once(", best over "))
                .ok_or("no names")?;
            if let Some(delay) = delay.strip_prefix(", with ") {
                cured.without_delay(&format!("{delay}, and "))?;
            }
            cured.with_figures(best, " or ")?;
            return Ok("cure");
        }
        if let Some((label, rest)) = text.split_once(": two outcomes, ") {
            let values = self.values(label, &|flow| self.figure(flow));
            let found = clusters(&values, cluster_gap(self.by, &values)).ok_or("one outcome")?;
            let figures = rest.split(" in ").collect::<Vec<_>>();
            close(&self.bare(figures[0]), self.scaled(found.low), self.decimals())?;
            return Ok("two outcomes");
        }
        if let Some((_, rest)) = text.strip_prefix("Beside ").and_then(|it| it.split_once(", the flow ")) {
            return self.neighbour(rest);
        }
        if let Some((scores, rest)) = text.split_once(" outside of what the E-model was made for (") {
            return self.outside(scores, rest);
        }
        if let Some(shares) = between(text, "At the end ", " of the messages were still queued or in flight")
        {
            let share = |flow: &FlowSummary| Some(flow.unfinished as f64 / flow.sent as f64);
            let many = |label: &str| self.mean(label, &share).filter(|share| *share > 0.1);
            self.figures(shares, " %", &|label| Some(100.0 * many(label)?))?;
            return Ok("unfinished");
        }
        if let Some(rest) = text.strip_prefix("Messages waited ") {
            return self.waited(rest);
        }
        if let Some(shares) = between(text, "The receiver's window held data back for ", " of the time") {
            let share = |flow: &FlowSummary| {
                let held = flow.waits.as_ref().and_then(|waits| waits.held_ms?.receiver_window);
                Some(held.unwrap_or(0.0) / flow.first_sent_to_last_received_ms?)
            };
            let of = |label: &str| median(self.values(label, &share)).filter(|share| *share >= 0.1);
            self.figures(shares, " %", &|label| Some(100.0 * of(label)?))?;
            return Ok("held by the receiver");
        }
        if let Some(rest) = text.strip_prefix("Within 1 point of the best, and still below the floor of ") {
            self.each(rest.split_once(": ").ok_or("no floor")?.1)?;
            return Ok("below the floor");
        }
        if let Some(rest) = text.strip_prefix("Lost, and not only late, are ") {
            let (shares, most) = rest.split_once("; over the others at most ").ok_or("no others")?;
            let loss = |label: &str| self.mean(label, &|flow| flow.loss_rate);
            let least = self.labels().filter_map(loss).fold(f64::MAX, f64::min);
            let is_losing = |loss: &f64| *loss >= 0.001 && *loss >= 4.0 * least;
            self.figures(shares, " %", &|label| loss(label).filter(is_losing).map(|loss| 100.0 * loss))?;
            let others = self.labels().filter_map(loss).filter(|loss| !is_losing(loss));
            same(most, 100.0 * others.fold(0.0, f64::max), " %")?;
            return Ok("lost or late");
        }
        if text == "What arrives is not enough" {
            return Ok("not enough");
        }
        let is_open = |label: &str| !self.values(label, &|flow| flow.opening_ms).is_empty();
        if let Some(names) = text.strip_suffix(" did not open") {
            let names = items(names);
            let is_told = |label: &str| names.contains(&label) != is_open(label);
            let told = self.labels().all(is_told);
            return if told { Ok("did not open") } else { Err("somebody opened".to_owned()) };
        }
        if let Some(rest) = text.strip_prefix("What gets through opens after ") {
            let opening = |label: &str| median(self.values(label, &|flow| flow.opening_ms));
            self.figures(rest, " ms", &|label| opening(label).filter(|_| !self.is_silent(label)))?;
            return Ok("openings");
        }
        if let Some(names) = text.strip_prefix("Nothing got through over ") {
            let names = items(names);
            for label in self.labels() {
                let received: f64 = self.values(label, &|flow| Some(flow.received as f64)).iter().sum();
                if names.contains(&label) != (received <= 0.0 && is_open(label)) {
                    return Err(format!("{label} got {received} through"));
                }
            }
            return Ok("silent");
        }
        if text.starts_with("The size of the queue of the uplink is assumed: ") {
            return Ok("assumed");
        }
        let text = text.strip_suffix(", whose size is assumed: the scenario does not say");
        let text = text.unwrap_or(whole);
        if let Some(waits) = between(text, "Packets wait ", " in the queue of the uplink (drop-tail)") {
            self.figures(waits, " ms", &|label| {
                let cell = self.cell(label)?;
                let waits = cell
                    .runs
                    .iter()
                    .filter_map(|run| Some(run.links.get("up")?.queue_delay_ms.as_ref()?.p50));
                median(waits.collect())
            })?;
            return Ok("waits");
        }
        if let Some(rest) = text.strip_prefix("Packets wait in a queue on the path: over ") {
            let (label, rest) = rest.split_once(" the median delay, ").ok_or("no delay")?;
            self.one(label, rest, &|flow| Some(flow.one_way_delay_ms.as_ref()?.p50), median)?;
            return Ok("waits on the path");
        }
        if let Some((label, rest)) = between(text, "The path is too long: even the shortest delay over ", "")
            .and_then(|text| text.split_once(" is "))
        {
            let least = |values: Vec<f64>| values.into_iter().reduce(f64::min);
            self.one(label, rest, &|flow| Some(flow.one_way_delay_ms.as_ref()?.min), least)?;
            return Ok("too long");
        }
        if let Some(rest) = text.strip_prefix("From mouth to ear it takes ") {
            self.figures(rest, " ms", &|label| median(self.values(label, &mouth_to_ear)))?;
            return Ok("mouth to ear");
        }
        if let Some(rest) = text.strip_prefix("Of ") {
            let (label, _) = rest.split_once(" hardly a frame is late or missing").ok_or("no name")?;
            let not_played = self.mean(label, &not_played).ok_or("unknown")?;
            return if not_played < 0.001 {
                Ok("whole")
            } else {
                Err(format!("{not_played} is not hardly any"))
            };
        }
        if let Some(rest) = text.strip_prefix("The delays of ") {
            let (label, rest) = rest.split_once(" vary ").ok_or("no name")?;
            let (p50, p99) = rest
                .rsplit_once("p50 ")
                .and_then(|(_, rest)| rest.split_once(", p99 "))
                .ok_or("no delays")?;
            self.one(label, p50, &|flow| Some(flow.one_way_delay_ms.as_ref()?.p50), median)?;
            self.one(label, p99, &|flow| Some(flow.one_way_delay_ms.as_ref()?.p99), median)?;
            return Ok("vary");
        }
        if let Some(rest) = text.strip_prefix("Over ") {
            if let Some((named, _)) = rest.split_once(" of the messages were lost") {
                let (label, share) = split_name(named)?;
                close(share, 100.0 * self.mean(label, &|flow| flow.loss_rate).ok_or("unknown")?, 2)?;
                return Ok("much lost");
            }
            let (named, _) = rest.split_once(" of the frames were late or missing").ok_or("unknown form")?;
            let (label, share) = split_name(named)?;
            close(share, 100.0 * self.mean(label, &not_played).ok_or("unknown")?, 2)?;
            return Ok("late or missing");
        }
        let forms: Checked<Vec<&'static str>> =
            text.split(", and ").map(|part| self.contrast(part)).collect();
        forms?.first().copied().ok_or_else(|| "no sentence".to_owned())
    }

    /// What follows `a p50 one way of 234 ms, and `, which must be the median delay of some transport.
    fn without_delay<'t>(&self, text: &'t str) -> Checked<&'t str> {
        let Some(rest) = text.strip_prefix("a p50 one way of ") else { return Ok(text) };
        let (delay, rest) = rest.split_once(", and ").ok_or("no figure after the delay")?;
        let p50 = |flow: &FlowSummary| Some(flow.one_way_delay_ms.as_ref()?.p50);
        let of = |label: &str| median(self.values(label, &p50));
        match self.labels().filter_map(of).any(|p50| same(delay, p50, " ms").is_ok()) {
            true => Ok(rest),
            false => Err(format!("{delay} is nobody's delay")),
        }
    }

    /// `34.0 ms (QUIC datagrams) for the congestion window, at p90`
    fn waited(&self, text: &str) -> Checked<&'static str> {
        let (text, quantile) = text.split_once(", at ").ok_or("no quantile")?;
        let at = |wait: WaitMs| if quantile == "p90" { wait.p90 } else { wait.p99 };
        let is_lost = |words: &str| words.starts_with("behind lost data") || words.starts_with("for lost");
        let end = text.rfind(" for ").or_else(|| text.rfind(" behind ")).ok_or("no cause")?;
        let (waits, words) = (&text[..end], &text[end + 1..]);
        let wait = |flow: &FlowSummary| {
            let waits = flow.waits.as_deref().copied().unwrap_or_default();
            let is_stream = !["quic-datagram", "quic-stream-per-message"].contains(&&*flow.transport);
            let found = match words {
                "for the congestion window" => waits.in_transport_ms,
                words if is_lost(words) && words.contains("head of the line") == is_stream => {
                    waits.for_lost_ms
                }
                _ => None,
            };
            Some(at(found.unwrap_or_default()))
        };
        let delay = |flow: &FlowSummary| {
            let delay = flow.one_way_delay_ms.as_ref()?;
            Some(if quantile == "p90" { delay.p90 } else { delay.p99 })
        };
        let long = |label: &str| {
            let (wait, delay) = (median(self.values(label, &wait))?, median(self.values(label, &delay))?);
            (wait >= 10.0 && wait >= 0.25 * delay).then_some(wait)
        };
        self.figures(waits, " ms", &long)?;
        Ok("waited")
    }

    /// One part of the sentence that contrasts all transports.
    fn contrast(&self, text: &str) -> Checked<&'static str> {
        let delay = |flow: &FlowSummary| Some(flow.one_way_delay_ms.as_ref()?.p99);
        let share = |label: &str, figure: &dyn Fn(&FlowSummary) -> Option<f64>| {
            Some(100.0 * self.mean(label, figure)?)
        };
        if let Some(figures) = between(text, "", " of the frames were late or missing") {
            self.figures(figures, " %", &|label| share(label, &not_played))?;
            return Ok("late or missing");
        }
        if let Some(figures) = between(text, "", " of the messages were lost") {
            self.figures(figures, " %", &|label| share(label, &|flow| flow.loss_rate))?;
            return Ok("lost");
        }
        if let Some(figures) = between(text, "", " of the segments were sent again") {
            self.figures(figures, " %", &|label| share(label, &|flow| flow.retransmit_rate))?;
            return Ok("sent again");
        }
        let of =
            |figure: &dyn Fn(&FlowSummary) -> Option<f64>, label: &str| median(self.values(label, figure));
        if let Some((_, figures)) = text.to_lowercase().split_once("mouth to ear took ") {
            let figures = &text[text.len() - figures.len()..];
            self.figures(figures, " ms", &|label| of(&mouth_to_ear, label))?;
            return Ok("mouth to ear took");
        }
        if let Some((_, figures)) = text.split_once("p99 one way was ") {
            self.figures(figures, " ms", &|label| of(&delay, label))?;
            return Ok("p99");
        }
        Err("a sentence of a form that nobody checks".to_owned())
    }

    /// `The scores of UDP and TCP lie` of those that have inputs outside of the model's table, and
    /// `loss, burst ratio): ...` of these inputs.
    fn outside(&self, scores: &str, inputs: &str) -> Checked<&'static str> {
        let (inputs, _) = inputs.split_once(')').ok_or("no inputs")?;
        let names = scores.trim_start_matches("The scores of ").trim_start_matches("The score of ");
        let names = items(names.trim_end_matches(" lie").trim_end_matches(" lies"));
        let mut found = BTreeSet::new();
        for label in self.labels() {
            let cell = self.cell(label).ok_or("no cell")?;
            let calls = cell.runs.iter().filter_map(|run| run.flows.get(FLOW)?.call.as_deref());
            let outside: BTreeSet<&str> = calls
                .filter(|call| call.played > 0)
                .flat_map(|call| &call.outside_model)
                .map(|it| it.input.name())
                .collect();
            let is_named = scores == "All scores lie" || names.contains(&label);
            if is_named == outside.is_empty() {
                return Err(format!("{label} lies outside in {outside:?}"));
            }
            found.extend(outside);
        }
        let told: BTreeSet<&str> = inputs.split(", ").collect();
        if told == found { Ok("outside") } else { Err(format!("{found:?} lie outside")) }
    }

    /// `upload gets 0.892 Mb/s (UDP) and 0.880 Mb/s (TCP)`
    fn neighbour(&self, text: &str) -> Checked<&'static str> {
        let (flow, rest) = text.split_once(' ').ok_or("no neighbour")?;
        let of = |label: &str, figure: &dyn Fn(&FlowSummary) -> Option<f64>| {
            let cell = self.cell(label)?;
            let values: Vec<f64> = cell.runs.iter().filter_map(|run| figure(run.flows.get(flow)?)).collect();
            (!values.is_empty()).then_some(values)
        };
        let mean_of =
            |label: &str, figure: &dyn Fn(&FlowSummary) -> Option<f64>| Some(mean_over(&of(label, figure)?));
        if let Some(figures) = between(rest, "gets ", "") {
            self.figures(figures, " Mb/s", &|label| Some(mean_of(label, &|flow| flow.goodput_bps)? / 1e6))?;
        } else if let Some(figures) = between(rest, "has MOS ", "") {
            self.figures(figures, "", &|label| mean_of(label, &|flow| flow.call.as_ref()?.score()))?;
        } else {
            let (shares, delays) = between(rest, "has ", "")
                .and_then(|it| it.split_once(" of its messages in time"))
                .ok_or("?")?;
            self.figures(shares, " %", &|label| Some(100.0 * mean_of(label, &|flow| flow.in_time)?))?;
            if let Some(delays) = delays.strip_prefix(", and a p99 one way of ") {
                let p99 = |flow: &FlowSummary| Some(flow.one_way_delay_ms.as_ref()?.p99);
                self.figures(delays, " ms", &|label| median(of(label, &p99)?))?;
            }
        }
        Ok("neighbour")
    }

    /// `2.86 % (UDP and TCP) and 0.00 % (QUIC stream)`, a range with two names, or one figure for all.
    fn figures(&self, text: &str, unit: &str, truth: &dyn Fn(&str) -> Option<f64>) -> Checked {
        if !text.contains('(') {
            for label in self.labels().filter(|label| !self.is_silent(label)) {
                let expected = truth(label).ok_or_else(|| format!("{label} has no such figure: {text}"))?;
                same(text, expected, unit)?;
            }
            return Ok(());
        }
        let is_range = text.contains(") to ");
        let mut named = Vec::new();
        let mut ends = Vec::new();
        for group in text.split(')').filter(|group| group.contains('(')) {
            let (figure, names) = group.split_once('(').ok_or("no name")?;
            let figure = figure.trim_start_matches([',', ';', ' ']);
            let figure = ["and ", "to "].iter().fold(figure, |it, word| it.strip_prefix(word).unwrap_or(it));
            for name in items(names) {
                let expected = truth(name).ok_or_else(|| format!("{name} has no such figure"))?;
                same(figure, expected, unit).map_err(|why| format!("{name}: {why}"))?;
                named.push(name.to_owned());
                ends.push(expected);
            }
        }
        for label in self.labels().filter(|label| !self.is_silent(label)) {
            let Some(value) = truth(label) else { continue };
            let is_within = is_range && ends[0] <= value && value <= ends[1];
            if !is_within && !named.iter().any(|name| name == label) {
                return Err(format!("{label}, {value}, is neither named nor within: {text}"));
            }
        }
        Ok(())
    }

    /// The judged figure of one transport: `MOS 4.38`, `MOS 2.10 or 4.33 (two outcomes)`.
    fn judged(&self, label: &str, text: &str) -> Checked {
        let bare = self.bare(text);
        let values = self.values(label, &|flow| self.figure(flow));
        match bare.split_once(" or ") {
            None => close(&bare, self.mean_judged(label), self.decimals()),
            Some((low, high)) => {
                let found = clusters(&values, cluster_gap(self.by, &values)).ok_or("one outcome")?;
                close(low, self.scaled(found.low), self.decimals())?;
                close(high, self.scaled(found.high), self.decimals())
            }
        }
        .map_err(|why| format!("{label}: {why}"))
    }

    /// `UDP, TCP and QUIC stream` beside `MOS 4.38, 4.37 and 4.31`
    fn in_order(&self, names: &str, figures: &str) -> Checked {
        let (names, figures) = (items(names), items(figures));
        if names.len() != figures.len() {
            return Err(format!("{names:?} and {figures:?}"));
        }
        names.iter().zip(figures).try_for_each(|(name, figure)| self.judged(name, figure))
    }

    /// `4.12 (TCP_NODELAY) and 2.10 or 4.33 (UDP, two outcomes)`
    fn each(&self, text: &str) -> Checked {
        for group in text.split(')').filter(|group| group.contains('(')) {
            let (figure, name) = group.split_once(" (").ok_or("no name")?;
            let figure = figure.trim_start_matches([',', ';', ' ']).trim_start_matches("and ");
            let name = name.trim_end_matches(", two outcomes");
            if self.is_silent(name) {
                return Err(format!("{name} has nothing to compare"));
            }
            self.judged(name, figure)?;
        }
        Ok(())
    }

    /// `UDP (MOS 4.37) or TCP (two outcomes: 2.10 or 4.33)`
    fn with_figures(&self, text: &str, last: &str) -> Checked {
        for group in text.split(')').filter(|group| group.contains('(')) {
            let (name, figure) = group.split_once(" (").ok_or("no figure")?;
            let name = name.trim_start_matches([',', ';', ' ']);
            let name = name.strip_prefix(last.trim_start()).unwrap_or(name);
            self.judged(name, figure.trim_start_matches("two outcomes: "))?;
        }
        Ok(())
    }

    fn one(
        &self,
        label: &str,
        text: &str,
        figure: &dyn Fn(&FlowSummary) -> Option<f64>,
        over: fn(Vec<f64>) -> Option<f64>,
    ) -> Checked {
        let expected = over(self.values(label, figure)).ok_or_else(|| format!("{label} has no figure"))?;
        same(text, expected, " ms").map_err(|why| format!("{label}: {why}"))
    }

    fn labels(&self) -> impl Iterator<Item = &'static str> {
        let kinds = self.condition.cells.iter().map(|cell| cell.transport(FLOW).kind);
        kinds.map(|kind| TRANSPORTS.iter().find(|(known, _)| *known == kind).unwrap().1)
    }

    /// Nothing came over it.
    fn is_silent(&self, label: &str) -> bool {
        self.values(label, &|flow| Some(flow.received as f64)).iter().sum::<f64>() <= 0.0
    }

    fn cell(&self, label: &str) -> Option<&CellView<'_>> {
        self.condition.cells.iter().find(|cell| cell.transport(FLOW).label == label)
    }

    fn values(&self, label: &str, figure: &dyn Fn(&FlowSummary) -> Option<f64>) -> Vec<f64> {
        let runs = self.cell(label).into_iter().flat_map(|cell| &cell.runs);
        runs.filter_map(|run| figure(&run.flows[FLOW])).collect()
    }

    fn mean(&self, label: &str, figure: &dyn Fn(&FlowSummary) -> Option<f64>) -> Option<f64> {
        let values = self.values(label, figure);
        (!values.is_empty()).then(|| mean_over(&values))
    }

    fn figure(&self, flow: &FlowSummary) -> Option<f64> {
        match self.by {
            JudgedBy::Mos => flow.call.as_ref()?.score(),
            JudgedBy::Heard => Some(1.0 - flow.call.as_ref()?.concealed?),
            JudgedBy::InTime => flow.in_time,
            JudgedBy::Goodput => flow.goodput_bps,
        }
    }

    fn scaled(&self, figure: f64) -> f64 {
        figure * [1.0, 100.0, 1e-6, 100.0][self.by as usize]
    }

    fn mean_judged(&self, label: &str) -> f64 {
        self.scaled(mean_over(&self.values(label, &|flow| self.figure(flow))))
    }

    const fn decimals(&self) -> u32 {
        match self.by {
            JudgedBy::Mos | JudgedBy::InTime | JudgedBy::Heard => 2,
            JudgedBy::Goodput => 3,
        }
    }

    /// Without the words and units around it.
    fn bare(&self, text: &str) -> String {
        let words = ["MOS ", "goodput ", " in time", " Mb/s", " %", " (two outcomes)"];
        words.iter().fold(text.to_owned(), |text, word| text.replace(word, ""))
    }
}

fn not_played(flow: &FlowSummary) -> Option<f64> {
    let call = flow.call.as_ref()?;
    Some((call.late + call.missing) as f64 / (call.played + call.late + call.missing) as f64)
}

fn mouth_to_ear(flow: &FlowSummary) -> Option<f64> {
    Some(flow.call.as_ref()?.mouth_to_ear_ms.as_ref()?.p50)
}

fn mean_over(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// `a, b and c`
fn items(text: &str) -> Vec<&str> {
    text.split([',', ';'])
        .flat_map(|part| part.split(" and "))
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect()
}

/// `UDP 5.00 %`: a name may have spaces.
fn split_name(text: &str) -> Checked<(&str, &str)> {
    let (rest, _) = text.rsplit_once(' ').ok_or("no unit")?;
    rest.rsplit_once(' ').ok_or_else(|| format!("no figure in {text}"))
}

/// Whether `text`, a figure with its unit, is `value` as far as it is written.
fn same(text: &str, value: f64, unit: &str) -> Checked {
    // What follows the figure belongs to the sentence.
    let text = text.split(", ").next().unwrap_or(text).trim();
    let number = text.strip_suffix(unit).ok_or_else(|| format!("no {unit} after {text}"))?;
    let decimals = number.rsplit_once('.').map_or(0, |(_, after)| after.len());
    close(number, value, decimals as u32)
}

fn close(text: &str, value: f64, decimals: u32) -> Checked {
    let unit = 10f64.powi(-(decimals as i32));
    let is_close = match text.strip_prefix('<') {
        Some(bound) => value > 0.0 && bound.parse::<f64>().is_ok_and(|bound| value < bound),
        None => text.parse::<f64>().is_ok_and(|number| (number - value).abs() <= 0.5 * unit + 1e-9),
    };
    if is_close { Ok(()) } else { Err(format!("{text:?} is not {value}")) }
}
