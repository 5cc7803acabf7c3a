//! Makes the legends, which explain the words of the tables. A terminal has a legend below its tables, and
//! the page has one below each group of tables.
//!
//! Some columns have one meaning in every run. The meaning of others depends on the run: [`ComparedMeanings`]
//! and [`FlowMeanings`] have these. The words of the columns that a table shows go into its legend.
//!
//! Begin to read with [`ComparisonLegend`].

pub(crate) mod meanings;

use std::collections::BTreeSet;

use talkpath_measure::judge::judge_flow;
use talkpath_measure::ranking::Standing;
use talkpath_measure::summary::{
    Basis, CAPTURE, CallSummary, FlowSummary, JudgedBy, JudgedFigure, RunSummary, Summary,
};

use self::meanings::{
    difference, half_round_trip, in_time, judged_figure, late, loss, missing, outside, outside_the_model,
    repetitions, second_receiver, usable_from,
};
use crate::condition::Condition;
use crate::metric::DelayKind;
use crate::number::{UNKNOWN, counted};
use crate::rated::outside_meaning;
use crate::sweep::Sweep;
use crate::term::{Term, Terms, Topic, legend};
use crate::verdict::{JudgedFlow, Verdict, rule};
use crate::view::{CellView, names};

/// Describes the run in a few words: `sim, 1 repetition, seed 1, percentiles exact`.
pub(crate) fn about_run(summary: &Summary) -> String {
    if summary.arena == CAPTURE {
        return format!("{CAPTURE}, percentiles {}", summary.percentiles);
    }
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

/// The comparison of one flow under all conditions. The words of the tables depend on the comparison.
#[derive(Clone, Copy)]
struct Compared<'a> {
    judged: &'a JudgedFlow<'a>,
}

impl<'a> Compared<'a> {
    fn conditions(self) -> impl Iterator<Item = &'a Condition<'a>> {
        self.judged.conditions.iter().map(|judged| judged.condition)
    }

    fn cells(self) -> impl Iterator<Item = &'a CellView<'a>> {
        self.conditions().flat_map(|condition| &condition.cells)
    }

    /// The call of each cell, if the compared flow is a call.
    fn calls(self) -> impl Iterator<Item = &'a CallSummary> {
        self.cells().filter_map(move |cell| cell.flow(cell.resolve(self.judged.flow)?)?.call.as_deref())
    }

    fn verdicts(self) -> impl Iterator<Item = &'a Verdict> {
        self.judged.conditions.iter().filter_map(|judged| judged.verdict.as_deref())
    }

    fn standings(self) -> impl Iterator<Item = &'a Standing> {
        self.verdicts().flat_map(|verdict| &verdict.ranking.standings)
    }

    fn judged_by(self) -> Option<JudgedBy> {
        self.verdicts().next().map(|verdict| verdict.judged_by)
    }

    fn has_delay(self, kind: DelayKind) -> bool {
        self.conditions().any(|condition| condition.delay_kind(self.judged.flow) == kind)
    }
}

/// The meanings of those columns that depend on what is compared. They are the same for the tables of all
/// conditions, because one legend explains these tables.
pub(crate) struct ComparedMeanings {
    /// `None` if there is no verdict.
    pub judged_figure: Option<Term>,
    /// The difference to the leader.
    pub difference: Term,
    /// The frames of a call that were late or missing.
    pub late: Term,
    pub loss: Term,
}

impl ComparedMeanings {
    pub(crate) fn new(judged: &JudgedFlow<'_>) -> Self {
        let compared = Compared { judged };
        let floors = || compared.verdicts().map(|verdict| verdict.floor);
        let by = compared.judged_by();
        let standings: Vec<&Standing> = compared.standings().collect();
        let calls: Vec<&CallSummary> = compared.calls().collect();
        Self {
            judged_figure: by.map(|by| judged_figure(by, floors(), compared.cells(), judged.flow)),
            difference: difference(&standings, by.unwrap_or(JudgedBy::Mos)),
            late: late(&calls),
            loss: loss(compared.has_delay(DelayKind::RoundTrip), compared.has_delay(DelayKind::OneWay)),
        }
    }
}

/// Makes the legend of the tables that compare transports.
pub(crate) struct ComparisonLegend<'a> {
    pub summary: &'a Summary,
    pub judged: &'a JudgedFlow<'a>,
    /// The words of the columns that the tables show.
    pub columns: Terms,
    /// The tables as text. Only a dash that stands in this text is explained.
    pub shown: &'a str,
}

impl ComparisonLegend<'_> {
    pub(crate) fn terms(self) -> Terms {
        let compared = Compared { judged: self.judged };
        let mut terms = transports(compared);
        terms.extend(compared.judged_by().map(|by| Term::new("ranking", rule(by)).about(Topic::Ranking)));
        terms.extend(outside_the_model(compared.cells(), self.judged.flow));
        terms.extend(compared.calls().find_map(second_receiver));
        let is_repeated = compared.cells().any(|cell| cell.cell.n > 1);
        terms.extend(is_repeated.then(|| repetitions("")));
        // A difference off the scale is written as a dash, too, but has an explanation of its own.
        let off_scale = compared.standings().filter(|standing| standing.is_off_scale).count();
        terms.extend(missing(self.summary, self.shown.matches(UNKNOWN).count() > off_scale));
        terms.extend(self.columns);
        legend(terms)
    }
}

/// The transports whose names alone do not say what they are.
fn transports(compared: Compared<'_>) -> Terms {
    let mut terms = Terms::new();
    for display in compared.cells().map(|cell| cell.transport(compared.judged.flow).display) {
        if !display.about.is_empty() && terms.iter().all(|term| term.name != display.name) {
            terms.push(Term::new(display.name, display.about).about(Topic::Transport));
        }
    }
    terms
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
    terms.push(judged_figure(sweep.judged_by, sweep.floors(), cells(), sweep.flow));
    if sweep.is_compared() {
        terms.push(Term::new("ranking", rule(sweep.judged_by)));
        terms.extend(outcomes(sweep));
    }
    terms.extend(outside_the_model(cells(), sweep.flow));
    terms
}

/// Explains the outcomes that occur in this sweep. Returns `None` if none of them needs an explanation.
fn outcomes(sweep: &Sweep<'_>) -> Option<Term> {
    let found: BTreeSet<&str> =
        sweep.combinations.iter().map(|combination| combination.outcome().word()).collect();
    let mut meanings = Vec::new();
    for (word, meaning) in OUTCOMES {
        if found.contains(word) {
            meanings.push(format!("{word}: {meaning}"));
        }
    }
    if meanings.is_empty() {
        return None;
    }
    Some(Term::new("outcome", meanings.join("; ")))
}

/// The words for the outcomes of a sweep, with their meanings. The words are those of `Outcome::word`.
const OUTCOMES: [(&str, &str); 5] = [
    ("distinct", "one is best, by the 95 % intervals of the differences"),
    ("alike", "take any of the named"),
    ("undecided", "more repetitions may decide"),
    ("depends-on-receiver", "with one of two receivers of a call it is another answer than with the other"),
    ("unusable", "even the best is not usable"),
];

/// The cells whose flows the tables show. The words of these tables depend on them.
#[derive(Clone, Copy)]
struct ShownCells<'a> {
    cells: &'a [CellView<'a>],
}

/// The meanings of those columns of the tables of all flows that depend on the flows. They are the same for
/// the tables of all cells, because one legend explains these tables.
pub(crate) struct FlowMeanings {
    /// `None` if no flow is judged by its score.
    pub score: Option<Term>,
    /// `None` if no flow is judged by its share in time.
    pub in_time: Option<Term>,
    pub loss: Term,
    /// The verdict in words on the delay of bursts.
    pub in_words: Term,
}

impl FlowMeanings {
    pub(crate) fn new(cells: &[CellView<'_>]) -> Self {
        let shown = ShownCells { cells };
        Self {
            score: shown.score(),
            in_time: shown.in_time(),
            loss: loss(shown.has_delay(DelayKind::RoundTrip), shown.has_delay(DelayKind::OneWay)),
            in_words: shown.in_words(),
        }
    }
}

/// Makes the legend of the tables of all flows, groups and links.
pub(crate) struct RunLegend<'a> {
    pub summary: &'a Summary,
    pub cells: &'a [CellView<'a>],
    /// The words of the columns that the tables show.
    pub columns: Terms,
    /// The tables as text. Only a dash that stands in this text is explained.
    pub shown: &'a str,
}

impl RunLegend<'_> {
    pub(crate) fn terms(self) -> Terms {
        let shown = ShownCells { cells: self.cells };
        let mut terms = Terms::new();
        terms.extend(shown.outside_the_model());
        terms.extend(shown.flows().filter_map(|flow| flow.call.as_deref()).find_map(second_receiver));
        terms.extend(shown.repetitions());
        terms.extend(missing(self.summary, self.shown.contains(UNKNOWN)));
        terms.extend(self.columns);
        legend(terms)
    }
}

impl<'a> ShownCells<'a> {
    /// The repetition that is shown of each cell.
    fn runs(self) -> impl Iterator<Item = &'a RunSummary> {
        self.cells.iter().filter_map(CellView::run)
    }

    fn flows(self) -> impl Iterator<Item = &'a FlowSummary> {
        self.runs().flat_map(|run| run.flows.values()).map(Box::as_ref)
    }

    fn is_repeated(self) -> bool {
        self.cells.iter().any(|cell| cell.cell.n > 1)
    }

    fn has_delay(self, kind: DelayKind) -> bool {
        let shown = self.cells.iter().filter_map(|cell| Some((cell, cell.run()?)));
        let mut kinds = shown.flat_map(|(cell, run)| names(run).map(|flow| cell.delay_kind(flow)));
        kinds.any(|found| found == kind)
    }

    /// The judged figures of this kind, for each flow and each copy, and for copies that are summed up.
    fn judged_figures(self, by: JudgedBy) -> Vec<JudgedFigure> {
        self.runs().flat_map(judged_figures_of_rows).filter(|judged| judged.by == by).collect()
    }

    fn score(self) -> Option<Term> {
        let judged = self.judged_figures(JudgedBy::Mos);
        if judged.is_empty() {
            return None;
        }
        let is_half = judged.iter().any(|judged| judged.basis == Basis::HalfRoundTrip);
        let usable = usable_from(JudgedBy::Mos, judged.iter().map(|judged| judged.floor));
        let meaning = format!(
            "mean opinion score of a call's worse direction, 1 to 4.5 (ITU-T G.107){usable}{}{}",
            half_round_trip(is_half),
            self.mean_note()
        );
        Some(Term::new("MOS", meaning).about(Topic::JudgedFigure))
    }

    fn outside_the_model(self) -> Option<Term> {
        let flows = self.cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.flows);
        let calls = flows.filter_map(|(name, flow)| Some((name.clone(), flow.call.as_deref()?)));
        outside_meaning(calls).map(outside)
    }

    fn in_time(self) -> Option<Term> {
        let mut timed = self.flows().filter(|flow| flow.in_time.is_some() && flow.call.is_none()).peekable();
        timed.peek()?;
        let floors = self.judged_figures(JudgedBy::InTime);
        let usable = usable_from(JudgedBy::InTime, floors.iter().map(|judged| judged.floor));
        let meaning = format!("{}{usable}{}", in_time(timed), self.mean_note());
        Some(Term::new("in time", meaning).about(Topic::InTime))
    }

    fn in_words(self) -> Term {
        let repetition =
            if self.is_repeated() { format!("; of {}", self.shown_repetition()) } else { String::new() };
        Term::new(
            "in words",
            format!("how Foderaro (1995) would call a burst, by the mean delay{repetition}"),
        )
    }

    fn repetitions(self) -> Option<Term> {
        if !self.is_repeated() {
            return None;
        }
        Some(repetitions(&format!("; the table of links is of {}", self.shown_repetition())))
    }

    fn shown_repetition(self) -> String {
        shown_repetition(self.runs().map(|run| run.repetition))
    }

    /// The end of a judged figure's meaning. It says that the figure is a mean, if there are repetitions.
    fn mean_note(self) -> &'static str {
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
    use crate::tables::flows;
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
        let cells = CellView::all(summary);
        let meanings = FlowMeanings::new(&cells);
        let columns = cells.iter().flat_map(|cell| flows(cell, &meanings).terms()).collect();
        let legend = RunLegend { summary, cells: &cells, columns, shown: "" };
        legend.terms().into_iter().map(|term| format!("{} {}\n", term.name, term.meaning)).collect()
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
