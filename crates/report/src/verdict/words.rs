//! An answer in words, with the figures that decided.

use super::{Candidate, Cut, Step, limit_ms};
use crate::number::{counted, list, ms, rate, share};
use crate::view::{Condition, DelayKind, Metric};

/// The figures of more transports than this are given as a range: the table has them all.
const MOST_SINGLY: usize = 3;

/// What the rule found.
pub(super) struct Told<'a> {
    pub condition: &'a Condition<'a>,
    pub flow: &'a str,
    pub kind: DelayKind,
    /// The rule's steps.
    pub steps: [Step; 3],
    /// Who is left; never empty.
    pub left: &'a [Candidate<'a>],
    /// Who went, in the steps' order.
    pub cuts: &'a [Cut<'a>],
    pub is_usable: bool,
    /// Whether the transports that are left differ by at most the tolerance.
    pub is_alike: bool,
    pub repetitions: u64,
}

impl Told<'_> {
    /// Only the names.
    pub(super) fn short(&self) -> String {
        let names = self.names().join(" or ");
        match (self.is_usable, self.left.len()) {
            (false, _) => format!("nothing is usable, the least bad is {names}"),
            (true, 1) => names,
            (true, _) => format!("{names}, no clear winner"),
        }
    }

    pub(super) fn line(&self) -> String {
        let found = if self.left.len() == 1 { self.one() } else { self.several() };
        let parts = [self.unusable(), self.copies(), Some(found), self.state(), self.behind()];
        let parts = parts.into_iter().flatten().chain(self.beside()).chain(self.basis());
        parts.collect::<Vec<_>>().join(" ")
    }

    fn unusable(&self) -> Option<String> {
        let text = format!(
            "Nothing here is usable for the flow {}: over no transport does more than half of its messages come {} {}.",
            self.flow,
            within(self.kind),
            limit(self.kind)
        );
        (!self.is_usable).then_some(text)
    }

    /// Which copy of the flow each transport is judged by, if there are copies.
    fn copies(&self) -> Option<String> {
        let all = || self.left.iter().chain(self.cuts.iter().flat_map(|cut| &cut.out));
        let first = all().map(|it| it.flow).find(|copy| *copy != self.flow)?;
        if all().all(|it| it.flow == first) {
            return Some(format!("Judged by {first}, the worst of its copies."));
        }
        let each: Vec<_> = all().map(|it| format!("{} over {}", it.flow, it.view.label)).collect();
        Some(format!("Judged by the worst copy of each: {}.", list(&each)))
    }

    /// The only one left, and the step that took the last of the others out.
    fn one(&self) -> String {
        let (Some(first), Some(cut)) = (self.left.first(), self.cuts.last()) else { return String::new() };
        let verb = match (self.is_usable, self.repetitions) {
            (false, _) => "is the least bad",
            (true, 0 | 1) => "did best",
            (true, _) => "wins",
        };
        let step = cut.step;
        let ours = self.in_full(step, first);
        let theirs = each(&cut.out, |it| self.figure(step, it));
        let lead = self.lead(cut).map(|lead| format!(" ({lead})")).unwrap_or_default();
        format!("{} {verb}: {ours} against {theirs}{lead}.", first.view.label)
    }

    /// By how much the winner leads the nearest of those whom the deciding step took out.
    fn lead(&self, cut: &Cut<'_>) -> Option<String> {
        let (first, next) = (self.left.first()?, cut.out.first()?);
        let (low, high) = cut.step.lead(next, first)?.ci95.filter(|(low, high)| low < high)?;
        let than = if cut.out.len() > 1 { format!(" than {}", next.view.label) } else { String::new() };
        Some(match cut.step.is_share() {
            true => format!("{:.1} to {:.1} points more{than}, 95 %", low * 100.0, high * 100.0),
            false => format!("{} to {} less{than}, 95 %", ms(low).trim_end_matches(" ms"), ms(high)),
        })
    }

    fn several(&self) -> String {
        let how = match self.is_alike {
            true => "they are within 1 point of each other's share and 5 % or 1 ms of each other's delays"
                .to_owned(),
            false if self.repetitions < 2 => "1 repetition does not tell them apart".to_owned(),
            false => {
                let repetitions = counted(self.repetitions, "repetition");
                format!("{repetitions} do not tell them apart, more may (--repeat)")
            }
        };
        let [_, p90, p99] = self.steps;
        let who = match (self.is_alike && self.cuts.is_empty(), self.is_usable) {
            (true, _) => "It makes no difference which of",
            (false, true) => "No clear winner between",
            (false, false) => "The least bad are",
        };
        format!(
            "{who} {}: {how}; p90 {} {}, p99 {}.",
            list(&self.names()),
            self.kind.name(),
            each_delay(self.left, p90),
            each_delay(self.left, p99)
        )
    }

    /// Those whom earlier steps took out, each with the figure that did.
    fn behind(&self) -> Option<String> {
        let earlier = if self.left.len() == 1 { self.cuts.len() - 1 } else { self.cuts.len() };
        let told = self.cuts[..earlier].iter().flat_map(|cut| cut.out.iter().map(move |it| (cut.step, it)));
        let told: Vec<_> =
            told.map(|(step, it)| format!("{} ({})", it.view.label, self.briefly(step, it))).collect();
        (!told.is_empty()).then(|| format!("Out before that: {}.", list(&told)))
    }

    /// What those who are left get, as far as it was not the reason.
    fn state(&self) -> Option<String> {
        let [first, ..] = self.steps;
        let is_told = self.left.len() == 1 && self.cuts.last().is_some_and(|cut| cut.step == first);
        let whose = if self.left.len() == 1 { "its" } else { "their" };
        let came = match first {
            Step::InTime => format!("come {} {}", within(self.kind), limit(self.kind)),
            _ => "arrive".to_owned(),
        };
        let shares = range(self.left, |it| first.figure(it));
        let lost = range(self.left, |it| it.cell.value(it.flow, Metric::LossRate).unwrap_or(1.0));
        match (is_told, first) {
            (true, Step::InTime) => Some(format!("It lost {lost}.")),
            (true, _) => None,
            (false, Step::InTime) => Some(format!("{shares} of {whose} messages {came}, {lost} are lost.")),
            (false, _) => Some(format!("{shares} of {whose} messages {came}.")),
        }
    }

    /// What the flows beside it got, if there are any.
    fn beside(&self) -> Vec<String> {
        let all: Vec<_> = self.left.iter().chain(self.cuts.iter().flat_map(|cut| &cut.out)).collect();
        let others = self.condition.other_flows(self.flow);
        let of = |other: &String| {
            let goodput = |it: &&Candidate<'_>| {
                Some((it.cell.value(other, Metric::GoodputBps)?, it.view.label.clone()))
            };
            let figures: Vec<(f64, String)> = all.iter().filter_map(goodput).collect();
            let words = |(bps, label): &(f64, String)| format!("{} beside {label}", rate(*bps));
            let lowest = figures.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
            let highest = figures.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
            if figures.len() > 1 && rate(lowest.0) == rate(highest.0) {
                Some(format!("{other}: {} beside each.", rate(lowest.0)))
            } else if figures.len() > MOST_SINGLY {
                Some(format!("{other}: {} to {}.", words(lowest), words(highest)))
            } else {
                Some(format!("{other}: {}.", list(&figures.iter().map(words).collect::<Vec<_>>())))
            }
        };
        others.iter().take(2).filter_map(of).collect()
    }

    fn basis(&self) -> Option<String> {
        let text = "This rests on 1 repetition: --repeat 20 shows what hangs on chance.";
        (self.repetitions < 2).then(|| text.to_owned())
    }

    fn names(&self) -> Vec<String> {
        self.left.iter().map(|it| it.view.label.clone()).collect()
    }

    /// `98.2 %`, `45.3 ms`.
    fn figure(&self, step: Step, it: &Candidate<'_>) -> String {
        match step.figure(it) {
            value if step.is_share() => share(value),
            value => delay(value),
        }
    }

    /// `98.2 % of its messages come back within 300 ms`, `p90 round trip 45.3 ms`.
    fn in_full(&self, step: Step, it: &Candidate<'_>) -> String {
        let figure = self.figure(step, it);
        match step {
            Step::InTime => {
                format!("{figure} of its messages come {} {}", within(self.kind), limit(self.kind))
            }
            Step::Arrived => format!("{figure} of its messages arrive"),
            Step::P90(kind) => format!("p90 {} {figure}", kind.name()),
            Step::P99(kind) => format!("p99 {} {figure}", kind.name()),
        }
    }

    /// `12 % in time`, `p90 45.3 ms`.
    fn briefly(&self, step: Step, it: &Candidate<'_>) -> String {
        let figure = self.figure(step, it);
        match step {
            Step::InTime => format!("{figure} in time"),
            Step::Arrived => format!("{figure} arrived"),
            Step::P90(_) => format!("p90 {figure}"),
            Step::P99(_) => format!("p99 {figure}"),
        }
    }
}

fn within(kind: DelayKind) -> &'static str {
    match kind {
        DelayKind::RoundTrip => "back within",
        DelayKind::OneWay => "there within",
    }
}

fn limit(kind: DelayKind) -> String {
    ms(limit_ms(kind == DelayKind::RoundTrip))
}

/// `98.2 %`, or `97 to 98.2 %`.
fn range(of: &[Candidate<'_>], value: impl Fn(&Candidate<'_>) -> f64) -> String {
    let values = || of.iter().map(&value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let (low, high) = (share(low), share(high));
    if low == high { low } else { format!("{} to {high}", low.trim_end_matches(" %")) }
}

/// `420 ms (TCP) and 610 ms (UDP)`; once if several say the same.
fn each(of: &[Candidate<'_>], text: impl Fn(&Candidate<'_>) -> String) -> String {
    match of {
        [first, _, ..] if of.iter().all(|it| text(it) == text(first)) => {
            format!("{} (the others)", text(first))
        }
        _ => list(&of.iter().map(|it| format!("{} ({})", text(it), it.view.label)).collect::<Vec<_>>()),
    }
}

/// `420 ms and 610 ms`; once if all say the same, and `420 to 610 ms` if they are many.
fn each_delay(of: &[Candidate<'_>], step: Step) -> String {
    let mut delays: Vec<_> = of.iter().map(|it| step.figure(it)).collect();
    if delays.len() > MOST_SINGLY {
        delays.sort_by(f64::total_cmp);
        delays = vec![delays[0], delays[delays.len() - 1]];
    }
    let texts: Vec<_> = delays.into_iter().map(delay).collect();
    match &texts[..] {
        [first, rest @ ..] if rest.iter().all(|text| text == first) => first.clone(),
        [low, high] if of.len() > MOST_SINGLY => format!("{} to {high}", low.trim_end_matches(" ms")),
        _ => list(&texts),
    }
}

fn delay(value: f64) -> String {
    if value.is_infinite() { "unknown, as nothing arrived".to_owned() } else { ms(value) }
}
