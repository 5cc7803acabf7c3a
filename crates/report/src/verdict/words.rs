//! An answer in words. Every figure in it stands in the table beside it, rounded to as many digits or fewer.

use talkpath_measure::ranking::{Ranking, Relation, Standing};
use talkpath_measure::summary::{AnswerKind, JudgedBy};

use super::cause::link_words;
use super::{Candidate, Cause, written};
use crate::number::{count, counted, fixed, list, ms, percent};
use crate::view::{CellView, Condition, Metric, Quantile};

/// What the rule found.
pub(super) struct Words<'a> {
    pub condition: &'a Condition<'a>,
    pub flow: &'a str,
    pub candidates: &'a [Candidate<'a>],
    /// Of the candidates.
    pub ranking: &'a Ranking,
    pub by: JudgedBy,
    /// If nothing is usable: with which candidate, and why.
    pub cause: Option<&'a (usize, Cause)>,
}

impl Words<'_> {
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
            AnswerKind::Unusable => {
                let beside = self.beside();
                let name = match best.as_slice() {
                    [only] => format!(" ({})", self.candidates[*only].view.label),
                    _ => String::new(),
                };
                format!("No transport makes {who} usable{beside}: {}{name} at best.", self.figure(leader))
            }
        }
    }

    /// Why, in one or two sentences.
    pub(super) fn why(&self) -> String {
        let reason = match self.cause {
            Some((at, cause)) => {
                let name = &self.candidates[*at].view.label;
                let effect = match cause {
                    Cause::Queue(..) | Cause::QueueOnPath(_) | Cause::Distance(_) | Cause::Whole(..) => self
                        .mouth_to_ear(*at)
                        .map(|delay| format!(" From mouth to ear it takes {} over {name}.", ms(delay))),
                    Cause::Loss(..) | Cause::Variation(..) => {
                        self.value(*at, Metric::NotPlayed).map(|share| {
                            format!(
                                " Over {name} {} of the frames were late or missing.",
                                percent_text(share)
                            )
                        })
                    }
                };
                format!("{}{}", cause.sentence(name), effect.unwrap_or_default())
            }
            None => self.contrast(),
        };
        let parts = [Some(reason), self.copies()].into_iter().flatten().chain(self.clusters());
        parts.collect::<Vec<_>>().join(" ")
    }

    /// What the flows beside it got; `None` if there are none.
    pub(super) fn neighbours(&self) -> Option<String> {
        let others = self.condition.other_flows(self.flow);
        let of = |other: &String| {
            let goodput = |it: &Candidate<'_>| {
                let bps = it.cell.value(other, Metric::GoodputBps)?;
                Some((fixed(Some(bps / 1e6), 3), it.view.label.clone()))
            };
            let figures: Vec<(String, String)> = self.candidates.iter().filter_map(goodput).collect();
            let (first, _) = figures.first()?;
            if figures.iter().all(|(mbps, _)| mbps == first) {
                return Some(format!("The {other} beside it gets {first} Mb/s with each."));
            }
            let (rate, with): (Vec<_>, Vec<_>) = figures.into_iter().unzip();
            let each = rate.iter().zip(with).map(|(rate, with)| format!("{rate} ({with})"));
            Some(format!("The {other} beside it gets {} Mb/s.", list(&each.collect::<Vec<_>>())))
        };
        let lines: Vec<_> = others.iter().take(MAX_NEIGHBOURS).filter_map(of).collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    }

    /// In which figure the leader and the nearest of those behind it differ, or what all of them get.
    fn contrast(&self) -> String {
        let nearest = self.worse().first().copied();
        let leader = self.ranking.leader;
        let best = self.ranking.best();
        let shown = nearest.map_or(best, |nearest| vec![leader, nearest]);
        let of = |metric: &dyn Fn(usize) -> Option<f64>| -> Option<Vec<(f64, String)>> {
            let figure = |&at: &usize| Some((metric(at)?, self.candidates[at].view.label.clone()));
            shown.iter().map(figure).collect()
        };
        let value = |metric| move |at: usize| self.value(at, metric);
        let kind = self.condition.delay_kind(self.flow);
        let mut parts = Vec::new();
        match self.by {
            JudgedBy::Mos => {
                if let Some(shares) = of(&value(Metric::NotPlayed)) {
                    parts.push(format!("{} of the frames were late or missing", say(&shares, percent_text)));
                }
                if let Some(delays) = of(&|at| self.mouth_to_ear(at)) {
                    parts.push(format!("mouth to ear took {}", say(&delays, ms)));
                }
            }
            JudgedBy::InTime => {
                if let Some(shares) = of(&value(Metric::LossRate)) {
                    parts.push(format!("{} of the messages were lost", say(&shares, percent_text)));
                }
                if let Some(delays) = of(&value(Metric::Delay(kind, Quantile::P99))) {
                    parts.push(format!("p99 {} took {}", kind.name(), say(&delays, ms)));
                }
            }
            JudgedBy::Goodput => {
                if let Some(shares) = of(&value(Metric::RetransmitRate)) {
                    parts.push(format!("{} of the segments were sent again", say(&shares, percent_text)));
                }
            }
        }
        if parts.is_empty() { String::new() } else { format!("{}.", parts.join(", and ")) }
    }

    /// Transports whose repetitions fall into two clusters.
    fn clusters(&self) -> Vec<String> {
        let of = |(it, standing): (&Candidate<'_>, &Standing)| {
            let found = standing.clusters?;
            let (low, high) = (self.text(found.low), self.text(found.high));
            let share = (found.low_share * 100.0).round();
            Some(format!(
                "{}: two outcomes, {low} in {share} % of the repetitions and {high} in {} %.",
                it.view.label,
                100.0 - share
            ))
        };
        self.candidates.iter().zip(&self.ranking.standings).filter_map(of).collect()
    }

    /// Which copy of the flow is judged, if there are copies.
    fn copies(&self) -> Option<String> {
        let first = self.candidates.iter().map(|it| it.flow).find(|copy| *copy != self.flow)?;
        let of =
            |it: &Candidate<'_>| -> Vec<_> { it.judged.values().map(|it| it.worst_flow.clone()).collect() };
        // The copy that counts, of each transport in each repetition.
        let copies: Vec<String> = self.candidates.iter().flat_map(of).collect();
        let is_steady = self.candidates.iter().all(|it| of(it).iter().all(|copy| copy == it.flow));
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
        if !matches!(self.cause, Some((_, Cause::Queue(..) | Cause::QueueOnPath(_)))) {
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

    /// Candidates that are known to be worse, the best of them first.
    fn worse(&self) -> Vec<usize> {
        let standings = &self.ranking.standings;
        let is_worse = |at: &usize| standings[*at].relation == Relation::Distinct;
        let mut worse: Vec<usize> = (0..standings.len()).filter(is_worse).collect();
        worse.sort_by(|&a, &b| standings[b].mean.total_cmp(&standings[a].mean));
        worse
    }

    fn names(&self, of: &[usize]) -> Vec<String> {
        of.iter().map(|&at| self.candidates[at].view.label.clone()).collect()
    }

    /// `MOS 4.38`, `99.80 % in time`, `MOS 2.10 or 4.33 (two outcomes)`
    fn figure(&self, at: usize) -> String {
        figure(self.by, &self.ranking.standings[at])
    }

    fn text(&self, mean: f64) -> String {
        let written = written(self.by);
        written.phrase(&written.bare(mean))
    }

    /// `MOS 4.38 and 4.31`, `99.80 % and 99.70 % in time`
    fn figures(&self, of: &[usize]) -> String {
        let bare = |&at: &usize| {
            let (text, note) = bare(self.by, &self.ranking.standings[at]);
            if note.is_empty() { text } else { format!("{text} ({note})") }
        };
        written(self.by).phrase(&list(&of.iter().map(bare).collect::<Vec<_>>()))
    }

    /// `4.12 (TCP_NODELAY) and 2.10 or 4.33 (UDP, two outcomes)`
    fn each(&self, of: &[usize]) -> String {
        let each = |&at: &usize| {
            let (text, note) = bare(self.by, &self.ranking.standings[at]);
            let comma = if note.is_empty() { "" } else { ", " };
            format!("{text} ({}{comma}{note})", self.candidates[at].view.label)
        };
        list(&of.iter().map(each).collect::<Vec<_>>())
    }

    /// `UDP (MOS 3.92), TCP (1.58) and TCP_NODELAY (2.61)`
    fn names_with_figures(&self, of: &[usize]) -> String {
        let each = |(number, &at): (usize, &usize)| {
            let (text, note) = bare(self.by, &self.ranking.standings[at]);
            let text = if number == 0 { written(self.by).phrase(&text) } else { text };
            let colon = if note.is_empty() { "" } else { ": " };
            format!("{} ({note}{colon}{text})", self.candidates[at].view.label)
        };
        list(&of.iter().enumerate().map(each).collect::<Vec<_>>())
    }

    fn value(&self, at: usize, metric: Metric) -> Option<f64> {
        let it = &self.candidates[at];
        it.cell.value(it.flow, metric)
    }

    fn mouth_to_ear(&self, at: usize) -> Option<f64> {
        self.value(at, Metric::MouthToEar50)
    }

    fn repetitions(&self) -> u64 {
        self.condition.cells.iter().map(|cell: &CellView<'_>| cell.cell.n).max().unwrap_or(0)
    }
}

/// What became of the cells with a cure on the link that `key` names.
pub(super) fn cure(key: &str, names: &str, figure: &str, is_usable: bool) -> String {
    let link = key.trim_end_matches(".queue").rsplit('.').next().unwrap_or(key);
    let link = link_words(link);
    match is_usable {
        true => format!("With fq_codel on {link}: {names}, {figure}."),
        false => format!("With fq_codel on {link} it is not usable either: {figure} at best."),
    }
}

/// `MOS 4.38`, `99.80 % in time`, `goodput 0.941 Mb/s`, `MOS 2.10 or 4.33 (two outcomes)`
pub(super) fn figure(by: JudgedBy, standing: &Standing) -> String {
    let (text, note) = bare(by, standing);
    let text = written(by).phrase(&text);
    if note.is_empty() { text } else { format!("{text} ({note})") }
}

/// The mean, or both outcomes where there are two: no repetition has their mean. And what to say of it.
fn bare(by: JudgedBy, standing: &Standing) -> (String, &'static str) {
    let written = written(by);
    match standing.clusters {
        Some(found) => {
            (format!("{} or {}", written.bare(found.low), written.bare(found.high)), "two outcomes")
        }
        None => (written.bare(standing.mean), ""),
    }
}

fn percent_text(share: f64) -> String {
    format!("{} %", percent(Some(share)))
}

/// `92.1 ms`, or `92.1 ms (UDP) and 250 ms (TCP)` if they differ.
fn say(figures: &[(f64, String)], text: impl Fn(f64) -> String) -> String {
    let texts: Vec<String> = figures.iter().map(|(value, _)| text(*value)).collect();
    match &texts[..] {
        [first, rest @ ..] if rest.iter().all(|text| text == first) => first.clone(),
        _ => {
            let each = texts.iter().zip(figures).map(|(text, (_, name))| format!("{text} ({name})"));
            list(&each.collect::<Vec<_>>())
        }
    }
}

/// `a`, `a or b`, `a, b or c`
fn alternatives(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Chosen: as many flows beside it as the table has columns for.
const MAX_NEIGHBOURS: usize = 2;
/// Chosen: nobody runs more repetitions than this to tell two transports apart.
pub const HOPELESS: u64 = 10_000;
