//! What an option of the sender does: which value of a swept key of the flow serves it best, all else equal.
//!
//! Over several transports the answer of a sweep is the best transport. Over one transport a user sweeps what
//! the sender can choose, such as RED, in-band FEC or the time between packets, and asks whether it helps.
//! The values of such a key are ranked as transports are (`measure::ranking`), once for each combination of
//! the other keys. Values of several such keys that together send at about the same rate are ranked, too
//! (`equal_rate.rs`).

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::ranking::{Ranking, Standing, rank};
use talkpath_measure::summary::{AnswerKind, JudgedBy};

use super::{Axis, Combination, SeriesResult, Sweep};
use crate::number::{count, list};
use crate::verdict::{figure_style, measure};

/// A key with more values has no sentence. We chose 8, which is as many as a reader compares.
const MAX_VALUES: usize = 8;
/// At most 4 combinations of the other keys have a sentence of their own. Of more the answers are put
/// together along the key with the most values, and if there are more than 6 combinations even without that
/// key, they are counted. We chose both numbers, so that a reader sees where the answer turns.
const MAX_IN_FULL: usize = 4;
const MAX_COMBINATIONS: usize = 6;

/// What an answer leaves out that ranks by the share of speech that is heard.
const FEC_NOTE: &str = "Heard is the share of speech that was not made up, whatever it sounds like. In-band FEC sounds worse than it \
                        looks here: its copies are coarser, and its bits are missing in the speech itself. Nobody published by how \
                        much.";

/// The values of a key at one combination of the other keys.
pub(super) struct ChoiceAnswer<'a> {
    /// The combination of the other keys. Empty if there is no other key.
    place: String,
    /// The numbers of the values of all keys at one of the combinations.
    value_indices: Vec<usize>,
    /// The value of each candidate, as the scenario has it.
    values: Vec<String>,
    results: Vec<&'a SeriesResult>,
    /// Whether the answer says what the best value costs.
    has_cost: bool,
    /// `None` if the scores of the candidates lie on different scales.
    ranking: Option<Ranking>,
    /// Whether each candidate has a score.
    is_scored: bool,
}

impl Sweep<'_> {
    /// Says for each swept key of the flow which of its values serves the flow best. Empty if the transports
    /// are compared.
    pub(crate) fn choices(&self) -> Vec<String> {
        if self.is_compared() || self.series.len() != 1 {
            return Vec::new();
        }
        let of_flow = format!("flow.{}.", self.flow);
        let is_choice = |axis: &usize| {
            self.axes[*axis].key.starts_with(&of_flow) && self.axes[*axis].values.len() <= MAX_VALUES
        };
        let choices = (0..self.axes.len()).filter(is_choice).filter_map(|axis| self.choice(axis));
        choices.chain(self.choices_at_equal_rates()).chain(self.fec_note()).collect()
    }

    /// Returns [`FEC_NOTE`] if calls are ranked by the share that is heard, and in-band FEC is swept.
    fn fec_note(&self) -> Option<String> {
        let has_fec = self.axes.iter().any(|axis| axis.key.ends_with(".fec"));
        (has_fec && self.judged_by == JudgedBy::Heard).then(|| FEC_NOTE.to_owned())
    }

    fn choice(&self, axis: usize) -> Option<String> {
        let others: Vec<usize> = (0..self.axes.len()).filter(|other| *other != axis).collect();
        let groups = self.group_by_values(&others);
        let answers: Vec<ChoiceAnswer<'_>> =
            groups.iter().filter_map(|group| self.choice_answer(axis, &others, group)).collect();
        Some(format!("{}: {}.", self.axes[axis].key, self.answers_in_words(&others, &answers)?))
    }

    /// The answers at the combinations of the `others` keys. Returns `None` if there are none.
    pub(super) fn answers_in_words(&self, others: &[usize], answers: &[ChoiceAnswer<'_>]) -> Option<String> {
        match answers {
            [] => None,
            [only] if only.place.is_empty() => Some(self.choice_words(only)),
            few if few.len() <= MAX_IN_FULL => {
                let parts =
                    few.iter().map(|answer| format!("at {}: {}", answer.place, self.choice_words(answer)));
                Some(parts.collect::<Vec<_>>().join("; "))
            }
            many => Some(self.choices_along(others, many).unwrap_or_else(|| counted_choices(many))),
        }
    }

    /// The answers along one of the other keys, for each combination of what is left: `0 and 1 serve alike at
    /// 0%, 1 is best from 1% on, for 66 kb/s on IPv4 with 1 against 40 with 0`. That key is the one with the
    /// most values among those of the path, or else of all. Returns `None` if too many combinations are left.
    pub(super) fn choices_along(&self, others: &[usize], answers: &[ChoiceAnswer<'_>]) -> Option<String> {
        let of_flow = format!("flow.{}.", self.flow);
        let is_of_path = |axis: &&usize| !self.axes[**axis].key.starts_with(&of_flow);
        let longest = |axes: &mut dyn Iterator<Item = &usize>| {
            axes.max_by_key(|axis| self.axes[**axis].values.len()).copied()
        };
        let of_path = longest(&mut others.iter().filter(is_of_path));
        let along_path = of_path.and_then(|along| self.choices_along_key(along, others, answers));
        along_path.or_else(|| self.choices_along_key(longest(&mut others.iter())?, others, answers))
    }

    fn choices_along_key(
        &self,
        along: usize,
        others: &[usize],
        answers: &[ChoiceAnswer<'_>],
    ) -> Option<String> {
        let left = || others.iter().copied().filter(|axis| *axis != along);
        let mut groups: Vec<(String, Vec<&ChoiceAnswer<'_>>)> = Vec::new();
        for answer in answers {
            let place = self.values_text_of(&answer.value_indices, left(), Axis::percent_label);
            match groups.iter_mut().find(|(known, _)| *known == place) {
                Some((_, group)) => group.push(answer),
                None => groups.push((place, vec![answer])),
            }
        }
        if groups.len() > MAX_COMBINATIONS {
            return None;
        }
        let key = &self.axes[along].key;
        let parts = groups.iter_mut().map(|(place, group)| {
            group.sort_by_key(|answer| answer.value_indices[along]);
            let ranges = group.chunk_by(|left, right| left.outcome() == right.outcome()).map(|range| {
                let value =
                    |answer: &ChoiceAnswer<'_>| self.axes[along].percent_label(answer.value_indices[along]);
                let last = range.last().copied().unwrap_or(&answers[0]);
                let is_last =
                    Some(last.value_indices[along]) == group.last().map(|it| it.value_indices[along]);
                let first = value(range[0]);
                let from = match range.len() {
                    1 => format!("at {first}"),
                    _ if is_last => format!("from {first} on"),
                    _ => format!("from {first} to {}", value(last)),
                };
                let costs: Vec<(Cost, &str, &str)> =
                    range.iter().filter_map(|answer| answer.cost()).collect();
                format!("{} {from}{}", last.outcome(), cost_words(&costs))
            });
            let ranges = ranges.collect::<Vec<_>>().join(", ");
            if place.is_empty() { ranges } else { format!("at {place}: {ranges}") }
        });
        Some(format!("by {key}: {}", parts.collect::<Vec<_>>().join("; ")))
    }

    /// Ranks the values of `axis` among combinations that are equal on `others`. Returns `None` if there are
    /// not two values with a result.
    fn choice_answer<'b>(
        &self,
        axis: usize,
        others: &[usize],
        group: &[&'b Combination<'_>],
    ) -> Option<ChoiceAnswer<'b>> {
        let mut by_value: Vec<(usize, &SeriesResult)> = group
            .iter()
            .filter_map(|combination| Some((combination.value_indices[axis], combination.best_result()?)))
            .collect();
        by_value.sort_by_key(|(index, _)| *index);
        let candidates =
            by_value.into_iter().map(|(index, result)| (self.axes[axis].label(index), result)).collect();
        let answer = self.ranked_choice(others, group.first()?, candidates)?;
        Some(ChoiceAnswer { has_cost: true, ..answer })
    }

    /// Ranks candidates at a combination of the `others` keys, which is that of `place`. Each candidate has
    /// its name. Returns `None` if there are fewer than two candidates.
    pub(super) fn ranked_choice<'b>(
        &self,
        others: &[usize],
        place: &Combination<'_>,
        candidates: Vec<(String, &'b SeriesResult)>,
    ) -> Option<ChoiceAnswer<'b>> {
        let first = candidates.first()?.1;
        let results: Vec<&SeriesResult> = candidates.iter().map(|(_, result)| *result).collect();
        let figures: Vec<BTreeMap<u64, f64>> = results.iter().map(|result| result.figures.clone()).collect();
        let barred: Vec<f64> = results.iter().map(|result| result.usable.barred()).collect();
        let is_on_one_scale = results.iter().all(|result| result.scale == first.scale);
        let ranking = rank(&figures, &barred, &measure(self.judged_by, first.usable.floor, &figures));
        if ranking.is_none() && is_on_one_scale {
            return None;
        }
        Some(ChoiceAnswer {
            place: self.values_text(place, others.iter().copied(), Axis::percent_label),
            value_indices: place.value_indices.clone(),
            is_scored: self.judged_by == JudgedBy::Mos,
            values: candidates.into_iter().map(|(name, _)| name).collect(),
            results,
            has_cost: false,
            ranking: ranking.filter(|_| is_on_one_scale),
        })
    }

    /// The answer in words: `1 is best, MOS 4.29 against 3.32 with 0 (95 % of the difference: 0.95 to 0.99),
    /// for 98 kb/s on IPv4 with 1 against 50 with 0`.
    fn choice_words(&self, answer: &ChoiceAnswer<'_>) -> String {
        let Some(ranking) = &answer.ranking else {
            return "not compared, because the scores lie on different scales".to_owned();
        };
        let style = figure_style(self.judged_by);
        let named = |index: usize| answer.values[index].clone();
        let best = ranking.best();
        let names = list(&best.iter().map(|index| named(*index)).collect::<Vec<_>>());
        let leader = ranking.leader;
        let mean = |index: usize| ranking.standings[index].mean;
        let has = |index: usize| style.phrase(&style.bare(mean(index)));
        match ranking.outcome {
            AnswerKind::Unusable => format!("{}, {} has {}", answer.outcome(), named(leader), has(leader)),
            AnswerKind::Undecided => {
                format!("undecided between {names} ({}); more repetitions may decide", has(leader))
            }
            AnswerKind::Alike if best.len() == answer.values.len() => {
                format!("{names} {}, {}", answer.verb(best.len()), has(leader))
            }
            AnswerKind::Alike | AnswerKind::Distinct | AnswerKind::DependsOnReceiver => {
                let is = answer.verb(best.len());
                let Some(against) = (0..answer.values.len()).find(|index| !best.contains(index)) else {
                    return format!("{names} {is}, {}", has(leader));
                };
                let interval =
                    difference(&ranking.standings[against]).map_or_else(String::new, |(low, high)| {
                        format!(" (95 % of the difference: {} to {})", style.number(low), style.number(high))
                    });
                let cost = cost_words(answer.cost().as_slice());
                format!(
                    "{names} {is}, {} against {} with {}{interval}{cost}",
                    has(leader),
                    style.bare(mean(against)),
                    named(against)
                )
            }
        }
    }
}

impl ChoiceAnswer<'_> {
    /// The verb of the best values. Of speech without a score it is known how much is heard, and not how it
    /// sounds.
    fn verb(&self, best: usize) -> &'static str {
        match (best > 1, self.is_scored) {
            (true, true) => "serve alike",
            (false, true) => "is best",
            (true, false) => "let as much be heard",
            (false, false) => "lets most be heard",
        }
    }

    /// The answer in a few words: `0 and 1 serve alike`.
    fn outcome(&self) -> String {
        let Some(ranking) = &self.ranking else {
            return "not compared, because the scores lie on different scales".to_owned();
        };
        let best = ranking.best();
        let names = list(&best.iter().map(|index| self.values[*index].clone()).collect::<Vec<_>>());
        match ranking.outcome {
            AnswerKind::Unusable if self.results[ranking.leader].usable.is_barred() => {
                "none is usable, because of gaps".to_owned()
            }
            AnswerKind::Unusable => "none is usable".to_owned(),
            AnswerKind::Undecided => "undecided".to_owned(),
            _ => format!("{names} {}", self.verb(best.len())),
        }
    }

    /// What the best value costs against the first one that is worse, and both values.
    fn cost(&self) -> Option<(Cost, &str, &str)> {
        let ranking = self.ranking.as_ref()?;
        if !self.has_cost || matches!(ranking.outcome, AnswerKind::Unusable | AnswerKind::Undecided) {
            return None;
        }
        let best = ranking.best();
        let against = (0..self.results.len()).find(|index| !best.contains(index))?;
        let cost = Cost::new(self.results[ranking.leader], self.results[against])?;
        Some((cost, self.values[ranking.leader].as_str(), self.values[against].as_str()))
    }
}

/// By how much the leader is ahead.
fn difference(standing: &Standing) -> Option<(f64, f64)> {
    standing.difference.map(|(low, high)| (-high, -low))
}

/// What the best value costs.
#[derive(Clone, Copy)]
struct Cost {
    /// What the flow sends in bit/s with the best value, and with the first value that is worse.
    leader_bps: f64,
    against_bps: f64,
    /// Which bits are counted, as the end of `62 kb/s`: `on IPv4`.
    what: &'static str,
}

impl Cost {
    /// Returns `None` unless the flow sends a twentieth more or less. We chose a twentieth, which is more
    /// than what losses take from it.
    fn new(leader: &SeriesResult, against: &SeriesResult) -> Option<Self> {
        let (leader_bps, against_bps, what) = match (leader.sent_bps, against.sent_bps) {
            (Some(leader), Some(against)) => (leader, against, "on IPv4"),
            _ => (leader.goodput_bps?, against.goodput_bps?, "of messages"),
        };
        let is_more = (leader_bps / against_bps - 1.0).abs() > 0.05;
        is_more.then_some(Self { leader_bps, against_bps, what })
    }
}

/// Writes the costs of the answers of a range, each with its best value and the first one that is worse:
/// `, for 62 to 139 kb/s on IPv4 with 1 against 30 to 56 with 0`. Empty if they cost nothing.
fn cost_words(costs: &[(Cost, &str, &str)]) -> String {
    let Some((Cost { what, .. }, ..)) = costs.first() else { return String::new() };
    let range = |bps: fn(&Cost) -> f64| {
        let low = costs.iter().map(|(cost, ..)| bps(cost)).fold(f64::INFINITY, f64::min) / 1e3;
        let high = costs.iter().map(|(cost, ..)| bps(cost)).fold(0.0, f64::max) / 1e3;
        // Losses change the rate of what is sent by less than that.
        if high <= 1.05 * low { format!("{high:.0}") } else { format!("{low:.0} to {high:.0}") }
    };
    let values = |of: fn(&(Cost, &str, &str)) -> String| {
        let values: BTreeSet<String> = costs.iter().map(of).collect();
        values.into_iter().collect::<Vec<_>>().join(" or ")
    };
    format!(
        ", for {} kb/s {what} with {} against {} with {}",
        range(|cost| cost.leader_bps),
        values(|(_, leader, _)| (*leader).to_owned()),
        range(|cost| cost.against_bps),
        values(|(.., against)| (*against).to_owned())
    )
}

/// The answers of many combinations, counted: `1 is best in 5; 0 and 1 serve alike in 2`.
fn counted_choices(answers: &[ChoiceAnswer<'_>]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer.outcome()).or_default() += 1;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
    let parts = counts.iter().map(|(words, times)| format!("{words} in {}", count(*times)));
    parts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::Summary;

    use super::*;
    use crate::fixture;
    use crate::verdict::FlowCells;

    /// Calls over UDP with 20 repetitions, over two losses and three values of RED. `mos` is the score by the
    /// numbers of the loss, of RED and of the repetition.
    fn swept(mos: impl Fn(u64, u64, u64) -> Option<f64>) -> Summary {
        let mut summary = fixture::summary(20);
        let runs = core::mem::take(&mut summary.runs);
        for (loss, red) in (0..2_u64).flat_map(|loss| (0..3_u64).map(move |red| (loss, red))) {
            for run in runs.iter().filter(|run| run.cell == 0) {
                let mut run = run.clone();
                run.cell = loss * 3 + red;
                run.sweep = [
                    ("path.up.loss".to_owned(), (loss as f64 / 100.0).into()),
                    ("flow.call.workload.red".to_owned(), red.into()),
                ]
                .into();
                let flow = run.flows.get_mut("call").unwrap();
                flow.goodput_bps = Some(64_000.0 * (red + 1) as f64);
                let call = flow.call.as_mut().unwrap();
                (call.mos, call.concealed) = (mos(loss, red, run.repetition), Some(0.02 / (red + 1) as f64));
                if call.mos.is_none() {
                    call.r = None;
                }
                summary.runs.push(run);
            }
        }
        fixture::refresh(&mut summary);
        summary
    }

    #[test]
    fn a_cost_against_nothing_is_no_range() {
        let cost = |leader_bps| (Cost { leader_bps, against_bps: 0.0, what: "of messages" }, "1", "0");
        assert_eq!(cost_words(&[62e3, 64e3].map(cost)), ", for 64 kb/s of messages with 1 against 0 with 0");
    }

    fn choices(summary: &Summary) -> Vec<String> {
        let flows = FlowCells::all(summary);
        let judged = flows[0].judge();
        Sweep::new(&judged).unwrap().choices()
    }

    #[test]
    fn the_best_value_of_a_senders_key_is_named_at_each_loss_with_its_gain_and_its_cost() {
        let summary = swept(|loss, red, repetition| {
            Some(if loss == 0 { 4.3 } else { 3.5 + 0.4 * red as f64 + 0.001 * (repetition % 3) as f64 })
        });
        let [red] = &choices(&summary)[..] else { panic!("the loss is no choice of the sender") };
        let expected = "flow.call.workload.red: at path.up.loss = 0%: 0, 1 and 2 serve alike, MOS 4.30; at path.up.loss = 1%: \
                        2 is best, MOS 4.30 against 3.50 with 0 (95 % of the difference: 0.80 to 0.80), for 192 kb/s \
                        of messages with 2 against 64 with 0.";
        assert_eq!(red, expected);
    }

    #[test]
    fn along_many_losses_the_answers_are_ranges_of_the_loss() {
        let mut summary = swept(|_, red, _| Some(3.5 + 0.4 * red as f64));
        let runs = summary.runs.clone();
        summary.runs.clear();
        for (number, percent) in [0_u64, 1, 2, 3, 4, 5, 6, 8].into_iter().enumerate() {
            for run in runs.iter().filter(|run| run.cell < 3) {
                let mut run = run.clone();
                let red = run.cell;
                run.cell += 3 * number as u64;
                run.sweep.insert("path.up.loss".to_owned(), (percent as f64 / 100.0).into());
                let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
                call.mos = Some(match percent {
                    0..=1 => 4.3,
                    2..=4 => 3.5 + 0.5 * red.min(1) as f64,
                    _ => 3.2 + 0.4 * red as f64,
                });
                summary.runs.push(run);
            }
        }
        fixture::refresh(&mut summary);
        let expected = "flow.call.workload.red: by path.up.loss: 0, 1 and 2 serve alike from 0% to 1%, 1 and 2 serve alike \
                        from 2% to 4%, for 128 kb/s of messages with 1 against 64 with 0, 2 is best from 5% on, for 192 \
                        kb/s of messages with 2 against 64 with 0.";
        assert_eq!(choices(&summary), [expected]);
    }

    #[test]
    fn values_that_the_repetitions_do_not_tell_apart_are_undecided() {
        let summary = swept(|_, red, repetition| Some(3.5 + 0.1 * (red * (repetition % 3)) as f64));
        assert!(choices(&summary)[0].contains("undecided between"), "{:?}", choices(&summary));
    }

    #[test]
    fn if_a_value_has_no_score_all_are_judged_by_what_is_heard_and_the_scores_stay_in_the_table() {
        let summary = swept(|_, red, _| (red != 1).then_some(4.0));
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let sweep = Sweep::new(&judged).unwrap();
        let text = sweep.choices().join("");
        assert!(
            text.contains("1 and 2 let as much be heard, 99.33 % heard against 98.00 % with 0"),
            "{text}"
        );
        let grid = sweep.table_within(10).grid;
        let heads: Vec<&str> = grid.columns.iter().map(|column| column.head.as_str()).collect();
        let last = |row: usize| grid.rows[row].cells[heads.len() - 3..].to_vec();
        assert_eq!(heads[heads.len() - 3..], ["%", "MOS", "outcome"]);
        assert_eq!(last(0), ["98.00", "4.00", "–"], "no floor says which share is usable");
        assert_eq!(last(1)[1], crate::number::UNKNOWN, "one earlier frame has no score");
        assert!(!sweep.headline().contains("MOS"), "{}", sweep.headline());
    }
}
