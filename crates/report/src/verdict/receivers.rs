//! One answer of two receivers. A call whose scenario names no playout is judged with both; this module says
//! where they disagree.

use talkpath_measure::summary::{AnswerKind, ReceiverAnswer};

use super::{Verdict, words};
use crate::receiver::named_receiver;

impl Verdict {
    /// Whether no more repetitions are needed, with either receiver.
    pub(super) fn is_settled(&self) -> bool {
        self.ranking.is_settled && self.other.as_ref().is_none_or(|other| other.ranking.is_settled)
    }

    /// Whether nothing is usable with this receiver.
    pub(super) fn is_unusable(&self) -> bool {
        self.ranking.outcome == AnswerKind::Unusable
    }

    /// Whether nothing is usable with one of the receivers.
    pub(super) fn may_be_unusable(&self) -> bool {
        self.is_unusable() || self.other.as_ref().is_some_and(|other| other.is_unusable())
    }

    /// This answer beside that with the second receiver. Where they differ, in whether something is usable or
    /// in what is best, that is the answer. Where they share one that is best, it stays, and the reason says
    /// the rest.
    pub(super) fn beside(mut self, other: Self) -> Self {
        let is_common = |kind: &String| other.answer.best.contains(kind);
        match (self.is_unusable(), other.is_unusable()) {
            (true, true) => {}
            (false, false) if self.answer.best == other.answer.best => {}
            (false, false) if self.answer.best.iter().any(is_common) => self.share_the_best(&other),
            _ => self.depend_on(&other),
        }
        self.other = Some(Box::new(other));
        self
    }

    /// Says that one transport is best with both receivers, but that others are as good with one receiver
    /// alone.
    fn share_the_best(&mut self, other: &Self) {
        let with = named_receiver(&other.playout);
        let is_decided = |verdict: &Self| verdict.answer.outcome != AnswerKind::Undecided;
        let what = match is_decided(self) && is_decided(other) {
            true => "Which others are as good",
            false => "Which others may be as good",
        };
        let sentence = format!("{what} depends on the receiver. With {with}: {}", other.answer.line);
        self.answer.why = format!("{} {sentence}", self.answer.why).trim_start().to_owned();
        self.answer.receivers = self.answers(other);
    }

    /// The answer with each receiver.
    fn answers(&self, other: &Self) -> Vec<ReceiverAnswer> {
        let answer = |verdict: &Self| ReceiverAnswer {
            playout: verdict.playout.clone(),
            best: verdict.answer.best.clone(),
            outcome: verdict.answer.outcome,
            line: verdict.answer.line.clone(),
        };
        vec![answer(self), answer(other)]
    }

    /// Makes the answer that it depends on the receiver.
    fn depend_on(&mut self, other: &Self) {
        let part =
            |verdict: &Self| format!("With {}: {}", named_receiver(&verdict.playout), verdict.answer.line);
        let receivers = self.answers(other);
        let line = format!("The answer depends on the receiver. {} {}", part(self), part(other));
        if !self.answer.why.is_empty() {
            let own = named_receiver(&self.playout);
            self.answer.why = format!("{} These are the figures with {own}.", self.answer.why);
        }
        let (own_best, own_named) =
            (core::mem::take(&mut self.answer.best), core::mem::take(&mut self.named));
        let (own_serves, other_serves) = (!self.is_unusable(), !other.is_unusable());
        let own = own_best.into_iter().zip(own_named).filter(|_| own_serves);
        let others = other.answer.best.iter().cloned().zip(other.named.iter().cloned());
        for (kind, name) in own.chain(others.filter(|_| other_serves)) {
            if !self.named.contains(&name) {
                self.answer.best.push(kind);
                self.named.push(name);
            }
        }
        self.short = words::alternatives(&self.named);
        self.best.clear();
        self.answer.line = line;
        self.answer.outcome = AnswerKind::DependsOnReceiver;
        self.answer.receivers = receivers;
    }
}
