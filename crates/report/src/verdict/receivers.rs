//! Combines the verdicts with two receivers of a call: the adaptive one, and the other one that decides.

use talkpath_measure::summary::{AnswerKind, ReceiverAnswer};

use super::{Verdict, words};
use crate::receiver::named_receiver;

impl Verdict {
    /// Whether more repetitions would change nothing, with either receiver.
    pub(super) fn is_settled(&self) -> bool {
        let is_second_settled = match &self.second_receiver {
            Some(second) => second.ranking.is_settled,
            None => true,
        };
        self.ranking.is_settled && is_second_settled
    }

    /// Whether nothing is usable with the receiver of this verdict.
    pub(super) fn is_unusable(&self) -> bool {
        self.ranking.outcome == AnswerKind::Unusable
    }

    /// Whether nothing is usable with at least one of the two receivers.
    pub(super) fn may_be_unusable(&self) -> bool {
        self.is_unusable() || self.second_receiver.as_ref().is_some_and(|second| second.is_unusable())
    }

    /// Whether the receiver of `other` changes the answer: something is usable with one of the two receivers
    /// alone, or no transport is among the best with both.
    pub(super) fn disagrees_with(&self, other: &Self) -> bool {
        match (self.is_unusable(), other.is_unusable()) {
            (true, true) => false,
            (false, false) => !self.answer.best.iter().any(|kind| other.answer.best.contains(kind)),
            (true, false) | (false, true) => true,
        }
    }

    /// Combines this verdict with the verdict `second` of the second receiver.
    ///
    /// - If nothing is usable with either receiver, or if both name the same best transports, the answer
    ///   stays.
    /// - If both name a common best transport and others besides, the answer stays, and the reason says so.
    /// - Otherwise the answer is that it depends on the receiver.
    pub(super) fn combined_with(mut self, second: Self) -> Self {
        match (self.is_unusable(), second.is_unusable()) {
            (true, true) => {}
            (false, false) => {
                let has_common_best = self.answer.best.iter().any(|kind| second.answer.best.contains(kind));
                if self.answer.best != second.answer.best {
                    if has_common_best {
                        self.add_second_best(&second);
                    } else {
                        self.depend_on_receiver(&second);
                    }
                }
            }
            (true, false) | (false, true) => self.depend_on_receiver(&second),
        }
        self.second_receiver = Some(Box::new(second));
        self
    }

    /// Adds to the reason that the second receiver names other best transports beside the common ones.
    fn add_second_best(&mut self, second: &Self) {
        let is_undecided = [&*self, second].map(|verdict| verdict.answer.outcome == AnswerKind::Undecided);
        let which = if is_undecided.contains(&true) {
            "Which others may be as good"
        } else {
            "Which others are as good"
        };
        let receiver = named_receiver(&second.playout);
        let sentence = format!("{which} depends on the receiver. With {receiver}: {}", second.answer.line);
        self.answer.why = format!("{} {sentence}", self.answer.why).trim_start().to_owned();
        self.answer.receivers = self.answers_with_each(second);
    }

    /// Makes "it depends on the receiver" the answer. The best transports are then those of both receivers.
    fn depend_on_receiver(&mut self, second: &Self) {
        self.answer.receivers = self.answers_with_each(second);
        self.answer.line = format!(
            "The answer depends on the receiver. {} {}",
            self.line_with_receiver(),
            second.line_with_receiver()
        );
        self.answer.outcome = AnswerKind::DependsOnReceiver;
        if !self.answer.why.is_empty() {
            let receiver = named_receiver(&self.playout);
            self.answer.why = format!("{} These are the figures with {receiver}.", self.answer.why);
        }
        let mut best = Vec::new();
        let mut labels: Vec<String> = Vec::new();
        for verdict in [&*self, second] {
            // With this receiver nothing is usable, so its best transports are only the least bad.
            if verdict.is_unusable() {
                continue;
            }
            for (kind, label) in verdict.answer.best.iter().zip(&verdict.best_labels) {
                if !labels.contains(label) {
                    best.push(kind.clone());
                    labels.push(label.clone());
                }
            }
        }
        self.answer.best = best;
        self.best_labels = labels;
        self.best_by_name = words::alternatives(&self.best_labels);
        self.best_cells.clear();
    }

    /// The answer with each receiver, this one first.
    fn answers_with_each(&self, second: &Self) -> Vec<ReceiverAnswer> {
        let answer = |verdict: &Self| ReceiverAnswer {
            playout: verdict.playout.clone(),
            best: verdict.answer.best.clone(),
            outcome: verdict.answer.outcome,
            line: verdict.answer.line.clone(),
        };
        vec![answer(self), answer(second)]
    }

    /// The line of the answer, after the name of its receiver.
    fn line_with_receiver(&self) -> String {
        format!("With {}: {}", named_receiver(&self.playout), self.answer.line)
    }
}
