//! Explains the words of the tables, for the foot of a table and for the page.

mod meanings;

use std::collections::BTreeSet;

use talkpath_measure::figures::FLOW;
use talkpath_measure::judge::judge_flow;
use talkpath_measure::ranking::Standing;
use talkpath_measure::summary::{
    Basis, CallSummary, FlowSummary, JudgedBy, JudgedFigure, RunSummary, Summary,
};

use self::meanings::{
    OVER_REPETITIONS, delays, difference, fairness, half_round_trip, in_time, judged_figure, late,
    message_columns, missing, only_shown, opening, outside_the_model, resent, second_receiver, turn_round,
    unfinished, usable_from,
};
pub(crate) use self::meanings::{Term, TermKind, Terms};
use crate::condition::Condition;
use crate::number::{UNKNOWN, counted};
use crate::rated::outside_meaning;
use crate::sweep::Sweep;
use crate::tables::{ECHOED_PACKETS, IN_TIME, MOS, TWO_OUTCOMES, VERSUS, WAIT_IN};
use crate::verdict::{JudgedFlow, Verdict, rule};
use crate::view::{CellView, DelayKind, names};

/// Describes the run in a few words: `sim, 1 repetition, seed 1, percentiles exact`.
pub(crate) fn about_run(summary: &Summary) -> String {
    let counts = || summary.cells.iter().map(|cell| cell.n);
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let first = summary.counted_runs().min_by_key(|run| (run.repetition, run.cell));
    let seed = match (first, most) {
        (None, _) => "no finished repetition".to_owned(),
        (Some(run), 0 | 1) => format!("1 repetition, seed {}", run.seed),
        (Some(run), most) if least < most => {
            format!("{least} to {most} repetitions, first seed {}", run.seed)
        }
        (Some(run), most) => format!("{}, first seed {}", counted(most, "repetition"), run.seed),
    };
    format!("{}, {seed}, percentiles {}", summary.arena, summary.percentiles)
}

/// Explains the words of the tables that compare transports.
pub(crate) struct ComparisonWords<'a> {
    pub summary: &'a Summary,
    pub judged: &'a JudgedFlow<'a>,
    /// The tables as text. Only words that stand in this text are explained.
    pub shown: &'a str,
}

impl<'a> ComparisonWords<'a> {
    pub(crate) fn terms(&self) -> Terms {
        let mut terms = self.transports();
        terms.extend(self.judged_figure());
        terms.extend(self.difference());
        terms.extend(self.two_outcomes());
        terms.extend(self.ranking());
        terms.extend(self.wait());
        terms.extend(self.playout());
        terms.extend(outside_the_model(self.cells(), self.judged.flow));
        terms.extend(self.calls().find_map(second_receiver));
        terms.extend(delays(["round trip", "one way"], |kind| self.has_delay(kind)));
        terms.extend(turn_round(self.shown));
        terms.extend(opening(self.shown));
        terms.extend(self.messages());
        terms.extend(self.unfinished());
        terms.extend(self.has_other_flows().then(resent));
        terms.extend(fairness(self.shown));
        let is_repeated = self.cells().any(|cell| cell.cell.n > 1);
        terms.extend(is_repeated.then(|| Term::finding("repetitions", OVER_REPETITIONS)));
        terms.extend(self.missing());
        only_shown(terms, self.shown)
    }

    fn conditions(&self) -> impl Iterator<Item = &'a Condition<'a>> + use<'a> {
        self.judged.conditions.iter().map(|judged| judged.condition)
    }

    fn cells(&self) -> impl Iterator<Item = &'a CellView<'a>> + use<'a> {
        self.conditions().flat_map(|condition| &condition.cells)
    }

    /// The call of each cell, if the compared flow is a call.
    fn calls(&self) -> impl Iterator<Item = &'a CallSummary> {
        self.cells().filter_map(|cell| cell.flow(cell.resolve(self.judged.flow)?)?.call.as_deref())
    }

    fn verdicts(&self) -> impl Iterator<Item = &'a Verdict> + use<'a> {
        self.judged.conditions.iter().filter_map(|judged| judged.verdict.as_deref())
    }

    fn standings(&self) -> impl Iterator<Item = &'a Standing> + use<'a> {
        self.verdicts().flat_map(|verdict| &verdict.ranking.standings)
    }

    fn judged_by(&self) -> Option<JudgedBy> {
        self.verdicts().next().map(|verdict| verdict.judged_by)
    }

    fn has_delay(&self, kind: DelayKind) -> bool {
        self.conditions().any(|condition| condition.delay_kind(self.judged.flow) == kind)
    }

    fn has_other_flows(&self) -> bool {
        self.conditions().any(|condition| !condition.other_flows(self.judged.flow).is_empty())
    }

    /// The transports whose names alone do not say what they are.
    fn transports(&self) -> Terms {
        let mut terms = Terms::new();
        for display in self.cells().map(|cell| cell.transport(self.judged.flow).display) {
            if !display.about.is_empty() && terms.iter().all(|term| term.name != display.name) {
                terms.push(Term::new(display.name, display.about));
            }
        }
        terms
    }

    fn judged_figure(&self) -> Option<Term> {
        let floors = self.verdicts().map(|verdict| verdict.floor);
        Some(judged_figure(self.judged_by()?, floors, self.cells(), self.judged.flow))
    }

    fn difference(&self) -> Option<Term> {
        let standings: Vec<&Standing> = self.standings().collect();
        let by = self.judged_by().unwrap_or(JudgedBy::Mos);
        self.shown.contains(VERSUS).then(|| Term::new("vs", difference(&standings, by)))
    }

    fn two_outcomes(&self) -> Option<Term> {
        let meaning = "the repetitions fall into two clusters (Hartigan's dip test, 1 %): the mean of each, and its share; \
                       `usable` is a share, too, if the floor lies between them";
        self.shown.contains(TWO_OUTCOMES).then(|| Term::new(TWO_OUTCOMES, meaning))
    }

    fn ranking(&self) -> Option<Term> {
        self.judged_by().map(|by| Term::new("ranking", rule(by)))
    }

    fn wait(&self) -> Option<Term> {
        self.shown.contains(WAIT_IN).then(|| Term::new("wait", "median time in that link's queue"))
    }

    /// The words on the playout of a call.
    fn playout(&self) -> Terms {
        let calls: Vec<&CallSummary> = self.calls().collect();
        if calls.is_empty() {
            return Terms::new();
        }
        let mouth_to_ear = Term::defined("mouth to ear", &FLOW, "call.mouth_to_ear_ms.p50");
        vec![mouth_to_ear, Term::new("late", late(&calls))]
    }

    /// The columns that every flow of messages has. The goodput of a transfer is left out here, because it is
    /// explained as the judged figure.
    fn messages(&self) -> Terms {
        let has_delay = |kind| self.has_delay(kind);
        let mut terms = message_columns(has_delay(DelayKind::RoundTrip), has_delay(DelayKind::OneWay));
        terms.retain(|term| term.name != "goodput" || self.judged_by() != Some(JudgedBy::Goodput));
        terms
    }

    fn unfinished(&self) -> Option<Term> {
        let share = |cell: &CellView<'_>| cell.many_unfinished(cell.resolve(self.judged.flow)?);
        let has_many = self.cells().any(|cell| share(cell).is_some());
        has_many.then(unfinished)
    }

    fn missing(&self) -> Terms {
        // A difference off the scale is written as a dash, too, but has an explanation of its own.
        let off_scale = self.standings().filter(|standing| standing.is_off_scale).count();
        missing(self.summary, self.shown.matches(UNKNOWN).count() > off_scale)
    }
}

/// Explains the words of the table over a sweep.
pub(crate) fn sweep_terms(sweep: &Sweep<'_>, judged: &JudgedFlow<'_>) -> Terms {
    let cells = || judged.conditions.iter().flat_map(|judged| &judged.condition.cells);
    let mut terms = Terms::new();
    if sweep.is_compared() {
        let best = "of the transports; several if they serve alike or if the repetitions do not decide; the least bad if \
                    nothing is usable";
        terms.push(Term::new("best", best));
    }
    terms.push(judged_figure(sweep.by, sweep.floors(), cells(), sweep.flow));
    if sweep.is_compared() {
        terms.push(Term::new("ranking", rule(sweep.by)));
        terms.extend(outcomes(sweep));
    }
    terms.extend(outside_the_model(cells(), sweep.flow));
    terms
}

/// Explains the outcomes that occur in this sweep. Returns `None` if none of them needs an explanation.
fn outcomes(sweep: &Sweep<'_>) -> Option<Term> {
    let found: BTreeSet<&str> =
        sweep.combinations.iter().map(|combination| combination.outcome().word()).collect();
    let meanings = OUTCOMES.iter().filter(|(word, _)| found.contains(word));
    let meanings: Vec<String> = meanings.map(|(word, meaning)| format!("{word}: {meaning}")).collect();
    (!meanings.is_empty()).then(|| Term::new("outcome", meanings.join("; ")))
}

/// The words for the outcomes of a sweep, with their meanings.
const OUTCOMES: [(&str, &str); 5] = [
    ("distinct", "one is best, by the 95 % intervals of the differences"),
    ("alike", "take any of the named"),
    ("undecided", "more repetitions may decide"),
    ("depends-on-receiver", "with one of two receivers of a call it is another answer than with the other"),
    ("unusable", "even the best is not usable"),
];

/// Explains the words of the tables of all flows.
pub(crate) struct RunWords<'a> {
    pub summary: &'a Summary,
    pub cells: &'a [CellView<'a>],
    /// The tables as text. Only words that stand in this text are explained.
    pub shown: &'a str,
}

impl<'a> RunWords<'a> {
    pub(crate) fn terms(&self) -> Terms {
        let mut terms = Terms::new();
        terms.extend(self.mos());
        terms.extend(self.outside_the_model());
        terms.extend(self.flows().filter_map(|flow| flow.call.as_deref()).find_map(second_receiver));
        terms.extend(self.in_time());
        terms.extend(delays(["rtt", "owd"], |kind| self.has_delay(kind)));
        terms.extend(turn_round(self.shown));
        terms.extend(opening(self.shown));
        terms
            .extend(message_columns(self.has_delay(DelayKind::RoundTrip), self.has_delay(DelayKind::OneWay)));
        terms.extend(self.unfinished());
        terms.push(resent());
        terms.extend(fairness(self.shown));
        terms.extend(self.burst());
        terms.extend(self.echoed());
        terms.extend(self.repetitions());
        terms.extend(missing(self.summary, self.shown.contains(UNKNOWN)));
        only_shown(terms, self.shown)
    }

    /// The repetition that is shown of each cell.
    fn runs(&self) -> impl Iterator<Item = &'a RunSummary> + use<'a> {
        self.cells.iter().filter_map(CellView::run)
    }

    fn flows(&self) -> impl Iterator<Item = &'a FlowSummary> + use<'a> {
        self.runs().flat_map(|run| run.flows.values()).map(Box::as_ref)
    }

    fn is_repeated(&self) -> bool {
        self.cells.iter().any(|cell| cell.cell.n > 1)
    }

    fn has_delay(&self, kind: DelayKind) -> bool {
        let shown = self.cells.iter().filter_map(|cell| Some((cell, cell.run()?)));
        let mut kinds = shown.flat_map(|(cell, run)| names(run).map(|flow| cell.delay_kind(flow)));
        kinds.any(|found| found == kind)
    }

    /// The judged figures of this kind, for each flow and each copy, and for copies that are summed up.
    fn judged_figures(&self, by: JudgedBy) -> Vec<JudgedFigure> {
        self.runs().flat_map(judged_figures_of_rows).filter(|judged| judged.by == by).collect()
    }

    fn mos(&self) -> Option<Term> {
        let judged = self.judged_figures(JudgedBy::Mos);
        let is_half = judged.iter().any(|judged| judged.basis == Basis::HalfRoundTrip);
        let usable = usable_from(JudgedBy::Mos, judged.iter().map(|judged| judged.floor));
        let meaning = format!(
            "mean opinion score of a call's worse direction, 1 to 4.5 (ITU-T G.107){usable}{}{}",
            half_round_trip(is_half),
            self.mean()
        );
        (!judged.is_empty()).then(|| Term::new(MOS, meaning))
    }

    fn outside_the_model(&self) -> Option<Term> {
        let flows = self.cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.flows);
        let calls = flows.filter_map(|(name, flow)| Some((name.clone(), flow.call.as_deref()?)));
        outside_meaning(calls).map(|meaning| Term::finding("outside", meaning))
    }

    fn in_time(&self) -> Option<Term> {
        let mut timed = self.flows().filter(|flow| flow.in_time.is_some() && flow.call.is_none()).peekable();
        timed.peek()?;
        let floors = self.judged_figures(JudgedBy::InTime);
        let usable = usable_from(JudgedBy::InTime, floors.iter().map(|judged| judged.floor));
        Some(Term::new(IN_TIME, format!("{}{usable}{}", in_time(timed), self.mean())))
    }

    fn unfinished(&self) -> Option<Term> {
        let has_many = |cell: &CellView<'_>| cell.names().any(|name| cell.many_unfinished(name).is_some());
        self.cells.iter().any(has_many).then(unfinished)
    }

    fn burst(&self) -> Option<Term> {
        let whose = match self.is_repeated() {
            true => format!("; of {}", self.shown_repetition()),
            false => String::new(),
        };
        let meaning = format!("how Foderaro (1995) would call a burst, by the mean delay{whose}");
        self.flows().any(|flow| flow.verdict.is_some()).then(|| Term::new("in words", meaning))
    }

    fn echoed(&self) -> Option<Term> {
        let meaning = "delivered while the receiver echoed a mark, which it does until the sender has answered (RFC 3168): more than \
                       were marked";
        self.shown.contains(ECHOED_PACKETS).then(|| Term::new("echoed", meaning))
    }

    fn repetitions(&self) -> Option<Term> {
        let meaning = || format!("{OVER_REPETITIONS}; the table of links is of {}", self.shown_repetition());
        self.is_repeated().then(|| Term::finding("repetitions", meaning()))
    }

    fn shown_repetition(&self) -> String {
        shown_repetition(self.runs().map(|run| run.repetition))
    }

    /// The end of a judged figure's meaning, which says that the figure is a mean.
    fn mean(&self) -> &'static str {
        if self.is_repeated() { "; the mean over the repetitions" } else { "" }
    }
}

/// The judged figure of each row of the table of all flows.
fn judged_figures_of_rows(run: &RunSummary) -> impl Iterator<Item = JudgedFigure> {
    let flows = run.flows.iter().filter_map(|(name, flow)| judge_flow(name, flow));
    flows.chain(run.summed_up().filter_map(|(_, group)| group.judged.clone()))
}

/// Names the repetition that is shown if only one of each cell is shown: `repetition 0`. `repetitions` are
/// the numbers of the shown repetitions.
pub(crate) fn shown_repetition(repetitions: impl Iterator<Item = u64>) -> String {
    let shown: BTreeSet<u64> = repetitions.collect();
    match shown.first() {
        Some(first) if shown.len() == 1 => format!("repetition {first}"),
        _ => "the first repetition of each cell that counts".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::{ModelInput, OutsideModel};

    use super::meanings::GAP_RULE;
    use super::*;
    use crate::fixture;
    use crate::verdict::FlowCells;

    #[test]
    fn repetitions_are_those_on_which_the_figures_of_a_cell_rest() {
        let mut summary = fixture::summary(3);
        assert!(about_run(&summary).contains("sim, 3 repetitions, first seed"), "{}", about_run(&summary));
        summary.cells[1].n = 2;
        assert!(about_run(&summary).contains("sim, 2 to 3 repetitions, first"), "{}", about_run(&summary));
    }

    /// The meaning of `in time` for flows with these deadlines, each with an echo or without.
    fn in_time_of(flows: &[(Option<f64>, bool)]) -> String {
        let flow = |&(deadline_ms, is_echo): &(Option<f64>, bool)| FlowSummary {
            deadline_ms,
            lost_return: is_echo.then_some(0),
            ..FlowSummary::default()
        };
        let flows: Vec<FlowSummary> = flows.iter().map(flow).collect();
        in_time(flows.iter())
    }

    #[test]
    fn a_share_in_time_says_the_deadline_that_it_counts_against() {
        let (way, echo) = ((Some(150.0), false), (Some(300.0), true));
        for usual in [&[(None, false)][..], &[way], &[echo], &[way, echo]] {
            assert!(in_time_of(usual).contains("150 ms, or back within 300 ms"), "{usual:?}");
        }
        let own = in_time_of(&[(Some(300.0), true), (Some(100.0), false), (Some(100.0), true)]);
        assert!(own.contains("within their deadline of 100 or 300 ms"), "{own}");
    }

    #[test]
    fn the_deadline_of_an_echo_is_none_of_the_usual_ones_one_way_and_the_other_way_round() {
        let own = in_time_of(&[(Some(300.0), false)]);
        assert!(own.contains("within their deadline of 300 ms"), "{own}");
        let own = in_time_of(&[(Some(150.0), true)]);
        assert!(own.contains("within their deadline of 150 ms"), "{own}");
    }

    /// The meanings of the table of every flow.
    fn words(summary: &Summary) -> String {
        let words = RunWords { summary, cells: &CellView::all(summary), shown: "" };
        words.terms().into_iter().map(|term| format!("{} {}\n", term.name, term.meaning)).collect()
    }

    #[test]
    fn the_table_of_every_flow_says_the_floors_that_the_flows_have() {
        let mut summary = fixture::summary(1);
        let usable = |floors: &str| format!("usable from {floors}{GAP_RULE}\n");
        assert!(words(&summary).contains(&usable("3.1")));
        let with = |summary: &mut Summary, floors: &[f64]| {
            for (run, floor) in summary.runs.iter_mut().zip(floors) {
                run.flows.get_mut("call").unwrap().floor = Some(*floor);
            }
        };
        with(&mut summary, &[3.6; 3]);
        assert!(words(&summary).contains(&usable("3.6")), "{}", words(&summary));
        with(&mut summary, &[3.6, 3.6, 3.1]);
        assert!(words(&summary).contains(&usable("3.1 or 3.6")), "{}", words(&summary));
        for run in &mut summary.runs {
            let flow = run.flows.get_mut("call").unwrap();
            (flow.call, flow.in_time, flow.deadline_ms, flow.floor) = (None, Some(0.5), None, Some(0.57));
        }
        assert!(words(&summary).contains("usable from 57 %\n"), "{}", words(&summary));
    }

    #[test]
    fn the_words_of_a_sweep_say_how_far_outside_of_the_model_its_calls_lie() {
        let (mut summary, _) = fixture::sweep(4);
        for run in &mut summary.runs {
            let call = run.flows.get_mut("call").unwrap().call.as_mut().unwrap();
            let outside = OutsideModel { input: ModelInput::Loss, value: 0.3, range: (0.0, 0.2) };
            (call.played, call.outside_model) = (call.played.max(1), vec![outside]);
        }
        let flows = FlowCells::all(&summary);
        let judged = flows[0].judge();
        let terms = sweep_terms(&Sweep::new(&judged).unwrap(), &judged);
        let outside = terms.iter().find(|term| term.name == "outside").unwrap();
        assert!(outside.meaning.contains("at the furthest: UDP (loss 30.00 %)"), "{outside:?}");
    }

    #[test]
    fn more_floors_than_a_few_are_left_out() {
        assert_eq!(usable_from(JudgedBy::Mos, [2.0, 3.0, 3.5, 4.0].into_iter()), "");
        assert_eq!(usable_from(JudgedBy::Mos, [].into_iter()), "");
    }
}
