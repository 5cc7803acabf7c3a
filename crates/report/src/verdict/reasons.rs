//! Further reasons of an answer: changes of the path, what held messages back, what a tolerance hides, and
//! the congestion control of another flow.

use talkpath_measure::ranking::Measure;
use talkpath_measure::summary::JudgedBy;

use super::cause::{LONG_WAIT_MS, link_words};
use super::held_back::{SYMPTOMS, Symptom, share_held_by_receiver};
use super::path_change::{Blame, GroupBlame, Harm};
use super::ranked::{Candidate, RankedTransports, measure};
use super::variant::SHORT_QUEUES;
use super::words::percent_text;
use super::writing::tolerance_words;
use super::{Cause, figure_style};
use crate::metric::{Metric, Quantile};
use crate::number::{list, ms};

/// The congestion control of systems that nobody asked for another: the default of Linux, Windows and macOS.
const USUAL_CONTROL: &str = "cubic";
/// With a smaller share of lost messages an answer does not distinguish lost from late messages. Chosen, as
/// for a call that is heard whole.
const LOSS_WORTH_A_WORD: f64 = 0.001;
/// A transport loses much more than others from this ratio on. Chosen.
const MUCH_MORE: f64 = 4.0;

impl RankedTransports<'_> {
    /// Says which changes of the path the lost and late messages belong to, and which frequent changes cost
    /// no message.
    pub(super) fn changes_of_path(&self) -> Vec<String> {
        let blame = |candidate: &Candidate<'_>| Blame::find(candidate.cell, candidate.flow);
        let Some(first) = self.candidates.iter().find_map(blame) else { return Vec::new() };
        if self.judged_by == JudgedBy::Goodput {
            return Vec::new();
        }
        let is_slight = |candidate: &Candidate<'_>| {
            let sent = candidate.cell.runs.iter().filter_map(|run| run.flows.get(candidate.flow));
            let sent = sent.map(|flow| flow.sent).sum();
            blame(candidate).is_none_or(|blame| blame.is_slight(sent))
        };
        if self.candidates.iter().all(is_slight) {
            return vec![
                "Hardly a message was lost or late, so no change of the path costs messages.".to_owned(),
            ];
        }
        let mut sentences = Vec::new();
        for harm in Harm::ALL {
            let mut parts = Vec::new();
            for (index, group) in first.groups.iter().enumerate() {
                let shares = self.values(|candidate| blame(candidate)?.share(harm, index));
                let Some(shares) = self.join_values(&shares, percent_text) else { continue };
                parts.push(format!("{shares} was due in or soon after {}", group.words));
            }
            if !parts.is_empty() {
                sentences.push(format!("Of what was {}, {}.", harm.word(), parts.join("; ")));
            }
        }
        let blames: Vec<Blame> = self.candidates.iter().filter_map(blame).collect();
        let is_free = |index: &usize| {
            blames.iter().all(|blame| blame.groups.get(*index).is_some_and(GroupBlame::is_free_and_frequent))
        };
        let free = (0..first.groups.len()).filter(is_free).map(|index| first.groups[index].words.clone());
        let free: Vec<String> = free.collect();
        match free.len() {
            0 => {}
            1 => sentences.push(format!("The change {} costs no message.", list(&free))),
            _ => sentences.push(format!("The changes {} cost no message.", list(&free))),
        }
        sentences
    }

    /// Says what held messages back at their sender, or behind lost data.
    pub(super) fn held_back(&self) -> Vec<String> {
        if self.judged_by == JudgedBy::Goodput {
            let shares = self.values(|candidate| share_held_by_receiver(candidate.cell, candidate.flow));
            let shares = self.join_values(&shares, percent_text);
            let sentence = |shares| format!("The receiver's window held data back for {shares} of the time.");
            return shares.map(sentence).into_iter().collect();
        }
        let mut sentences: Vec<String> = SYMPTOMS.iter().filter_map(|symptom| self.waited(symptom)).collect();
        sentences.extend(self.waited_for_silence());
        sentences
    }

    /// Says how long messages waited because no packet left for a time. The silence is also the reason of
    /// other waits, so the largest wait at the 99th percentile is named. A symptom that has a wait at the
    /// 90th has a sentence of its own.
    fn waited_for_silence(&self) -> Option<String> {
        let waits = self.values(|candidate| {
            let wait = |symptom: &Symptom, at| symptom.wait_ms(candidate.cell, candidate.flow, at);
            let of_silence = SYMPTOMS.iter().filter(|symptom| symptom.may_be_of_silence);
            let seldom = of_silence.filter(|symptom| wait(symptom, Quantile::P90).is_none());
            let waits = seldom.filter_map(|symptom| wait(symptom, Quantile::P99));
            waits.filter(|_| is_late_by_silence(candidate)).reduce(f64::max)
        });
        let waits = self.join_values(&waits, ms)?;
        Some(format!("While no packet left, messages waited {waits}, at p99."))
    }

    /// Says how long messages waited with this symptom. The 99th percentile is named if no transport has the
    /// symptom at the 90th.
    fn waited(&self, symptom: &Symptom) -> Option<String> {
        [(Quantile::P90, "p90"), (Quantile::P99, "p99")].into_iter().find_map(|(quantile, name)| {
            let waits = self.values(|candidate| {
                // If most late messages are late by a silence, it also explains the waits of few messages.
                let is_silence = symptom.may_be_of_silence && quantile == Quantile::P99;
                let is_silence = is_silence && is_late_by_silence(candidate);
                let wait = symptom.wait_ms(candidate.cell, candidate.flow, quantile);
                wait.filter(|_| !is_silence)
            });
            let waits = self.join_values(&waits, ms)?;
            Some(format!("Messages waited {waits} {}, at {name}.", symptom.words))
        })
    }

    /// Names the transports that are within the tolerance of the best and miss the floor.
    pub(super) fn within_tolerance(&self) -> Option<String> {
        if !self.is_usable_by_time() {
            return None;
        }
        let Measure { tolerance, .. } = measure(self.judged_by, self.floor, &[]);
        let standings = &self.ranking.standings;
        let best = standings[self.ranking.leader].mean;
        let misses =
            |index: &usize| standings[*index].mean < self.floor && standings[*index].mean >= best - tolerance;
        let missing: Vec<usize> = (0..standings.len()).filter(misses).collect();
        let floor = figure_style(self.judged_by).bare(self.floor);
        (!missing.is_empty()).then(|| {
            format!(
                "Within {} of the best, and still below the floor of {floor}: {}.",
                tolerance_words(self.judged_by),
                self.figures_with_names(&missing)
            )
        })
    }

    /// Says which transports lose much more than the others, whose messages are late.
    pub(super) fn lost_or_late(&self) -> Option<String> {
        if !self.is_usable_by_time() {
            return None;
        }
        let losses = self.values(|candidate| candidate.value(Metric::LOSS_RATE));
        let least = losses.iter().map(|loss| loss.value).fold(f64::INFINITY, f64::min);
        let is_losing = |loss: f64| loss >= LOSS_WORTH_A_WORD && loss >= MUCH_MORE * least;
        let (losing, others): (Vec<_>, Vec<_>) = losses.into_iter().partition(|loss| is_losing(loss.value));
        let most = others.iter().map(|loss| loss.value).reduce(f64::max)?;
        let losing = self.join_values(&losing, percent_text)?;
        Some(format!(
            "Lost, and not only late, are {losing}; over the others at most {}.",
            percent_text(most)
        ))
    }

    fn is_usable_by_time(&self) -> bool {
        self.unusable_because.is_none() && self.judged_by == JudgedBy::InTime
    }

    /// Says that the size of a queue with long waits is assumed. A queue that is the cause is left out,
    /// because the cause's own sentence says so.
    pub(super) fn assumption(&self) -> Option<String> {
        let because = self.unusable_because.as_ref()?;
        let is_cause = |link: &str| match &because.cause {
            Cause::Queue { link: cause, .. } => cause == link,
            _ => false,
        };
        let mut assumed = self.condition.assumed_queues.iter();
        let link = assumed.find(|link| !is_cause(link) && self.has_long_waits(link))?;
        Some(format!("The size of the queue of {} is assumed: the scenario does not say.", link_words(link)))
    }

    /// Whether the slowest packets wait long on `link` over any transport.
    fn has_long_waits(&self, link: &str) -> bool {
        self.candidates.iter().any(|candidate| {
            let waits_ms = candidate.cell.links(|link| Some(link.queue_delay_ms.as_ref()?.p99));
            waits_ms.get(link).is_some_and(|wait_ms| *wait_ms >= LONG_WAIT_MS)
        })
    }

    /// The congestion control of another flow if it keeps queues short, for after the name: ` (bbr)`. Empty
    /// otherwise.
    pub(super) fn control_words(&self, name: &str) -> String {
        let mut controls =
            self.candidates.iter().filter_map(|candidate| candidate.cell.flow(name)?.cc.as_ref());
        match controls.next() {
            Some(first) if first == SHORT_QUEUES && controls.all(|other| other == first) => {
                format!(" ({first})")
            }
            _ => String::new(),
        }
    }

    /// Says that another flow has a congestion control that keeps queues short, by which the compared flow
    /// gains.
    pub(super) fn control_of_others(&self) -> Option<String> {
        let others = self.condition.other_flows(self.flow);
        let name = others.into_iter().find(|name| !self.control_words(name).is_empty())?;
        Some(format!(
            "The flow {name} runs {SHORT_QUEUES}, which keeps queues short; {USUAL_CONTROL}, the usual congestion control, fills them."
        ))
    }
}

/// Whether most late messages of a candidate are late because no packet leaves for a time.
fn is_late_by_silence(candidate: &Candidate<'_>) -> bool {
    Blame::find(candidate.cell, candidate.flow).is_some_and(|blame| blame.is_late_by_silence())
}
