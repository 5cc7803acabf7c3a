//! What the words of the tables mean, for the foot of a table and for the page.

use std::collections::BTreeSet;

use talkpath_measure::figures::{FLOW, GROUP, Table};
use talkpath_measure::judge::judge_flow;
use talkpath_measure::ranking::Standing;
use talkpath_measure::ranking::interval::{MIN_RESAMPLED, Method};
use talkpath_measure::summary::{Basis, CallSummary, FlowSummary, Judged, JudgedBy, RunSummary, Summary};

use crate::grid::LEFT_OUT;
use crate::number::{UNKNOWN, counted};
use crate::plot::scale::tick_label;
use crate::rated::outside_term;
use crate::receiver::named_receiver;
use crate::sweep::Sweep;
use crate::tables::{CLUSTERS, DIFFERENCE, ECHOED, IN_TIME, MOS, OPENS, OTHER_RECEIVER, UNFINISHED, WAIT};
use crate::verdict::{ConditionVerdict, limit_ms, rule, written};
use crate::view::{CellView, DelayKind, names};

/// Which statistic over the repetitions a figure is (`measure::statistic`).
const OVER_REPETITIONS: &str = "scores, shares, counts and goodputs are means over the repetitions; times, windows and queues are medians";

/// Words and their meanings, in the order to show them.
pub(crate) type Terms = Vec<(&'static str, String)>;

/// `sim, 1 repetition, seed 1, percentiles exact`.
pub(crate) fn about_run(summary: &Summary) -> String {
    let counts = || summary.cells.iter().map(|cell| cell.n);
    let (least, n) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let first = summary.counted_runs().min_by_key(|run| (run.repetition, run.cell));
    let seed = match (first, n) {
        (None, _) => "no finished repetition".to_owned(),
        (Some(run), 0 | 1) => format!("1 repetition, seed {}", run.seed),
        (Some(run), n) if least < n => format!("{least} to {n} repetitions, first seed {}", run.seed),
        (Some(run), n) => format!("{}, first seed {}", counted(n, "repetition"), run.seed),
    };
    format!("{}, {seed}, percentiles {}", summary.arena, summary.percentiles)
}

/// The words of a comparison; `shown` is the text above, searched for figures that are not there.
pub(crate) fn of_comparison(
    summary: &Summary,
    judged: &[ConditionVerdict<'_>],
    flow: &str,
    shown: &str,
) -> Terms {
    let mut terms = Terms::new();
    let conditions = || judged.iter().map(|(condition, _)| *condition);
    let cells = || conditions().flat_map(|condition| &condition.cells);
    for cell in cells() {
        let display = cell.transport(flow).display;
        if !display.about.is_empty() && terms.iter().all(|(name, _)| *name != display.name) {
            terms.push((display.name, display.about.to_owned()));
        }
    }
    let verdict = judged.iter().find_map(|(_, verdict)| verdict.as_ref());
    let floors = judged.iter().filter_map(|(_, verdict)| verdict.as_ref()).map(|verdict| verdict.floor);
    terms.extend(verdict.map(|verdict| figure(verdict.by, floors, cells(), flow)));
    let standings: Vec<&Standing> = judged
        .iter()
        .filter_map(|(_, verdict)| verdict.as_ref())
        .flat_map(|verdict| &verdict.ranking.standings)
        .collect();
    let by = verdict.map_or(JudgedBy::Mos, |verdict| verdict.by);
    terms.extend(shown.contains(DIFFERENCE).then(|| ("vs", difference(&standings, by))));
    let text = "the repetitions fall into two clusters (Hartigan's dip test, 1 %): the mean of each, and its share; \
                `usable` is a share, too, if the floor lies between them";
    terms.extend(shown.contains(CLUSTERS).then(|| (CLUSTERS, text.to_owned())));
    terms.extend(verdict.map(|verdict| ("ranking", rule(verdict.by))));
    let text = "median time in that link's queue";
    terms.extend(shown.contains(WAIT).then(|| ("wait", text.to_owned())));
    let calls: Vec<&CallSummary> =
        cells().filter_map(|cell| cell.flow(cell.resolve(flow)?)?.call.as_deref()).collect();
    if !calls.is_empty() {
        terms.push(of_figure("mouth to ear", &FLOW, "call.mouth_to_ear_ms.p50"));
        terms.push(("late", late(&calls)));
    }
    terms.extend(outside_of(cells(), flow));
    terms.extend(calls.iter().find_map(|call| other_receiver(call)));
    let has = |kind| conditions().any(|condition| condition.delay_kind(flow) == kind);
    terms.extend(delay_terms(["round trip", "one way"], has));
    terms.extend(turn_round(shown));
    terms.extend(opening(shown));
    // A transfer's goodput is what it is judged by.
    let is_judged = |name: &str| terms.iter().any(|(known, _)| *known == name);
    let others: Terms = common(has(DelayKind::RoundTrip), has(DelayKind::OneWay))
        .into_iter()
        .filter(|(name, _)| !is_judged(name))
        .collect();
    terms.extend(others);
    let is_unfinished = |cell: &CellView<'_>| cell.many_unfinished(cell.resolve(flow)?);
    terms.extend(cells().find_map(is_unfinished).map(|_| unfinished()));
    let beside = conditions().any(|condition| !condition.other_flows(flow).is_empty());
    terms.extend(beside.then(resent));
    terms.extend(fairness(shown));
    let several = cells().any(|cell| cell.cell.n > 1);
    terms.extend(several.then(|| ("repetitions", OVER_REPETITIONS.to_owned())));
    // A difference off the scale has a dash, too, and its own explanation.
    let dashes = shown.matches(UNKNOWN).count();
    let is_unknown = dashes > standings.iter().filter(|standing| standing.is_off_scale).count();
    terms.extend(missing(summary, is_unknown));
    only_shown(terms, shown)
}

/// The terms without those of columns that are not in `shown`: a table leaves some out at its width.
fn only_shown(mut terms: Terms, shown: &str) -> Terms {
    let columns: String =
        shown.split(LEFT_OUT).enumerate().fold(String::new(), |mut text, (number, part)| {
            // Behind the note that says which columns are left out.
            let table =
                if number == 0 { part } else { part.split_once(")\n").map_or("", |(_, table)| table) };
            text.push_str(table);
            text
        });
    terms.retain(|(name, _)| COLUMNS.iter().all(|(term, head)| term != name || columns.contains(head)));
    terms
}

/// Terms of columns that a narrow table leaves out, and what their heads begin with.
const COLUMNS: [(&str, &str); 10] = [
    ("mouth to ear", "mouth to"),
    ("late", "late or"),
    ("round trip", "round trip"),
    ("one way", "one way"),
    ("rtt", "rtt"),
    ("owd", "owd"),
    ("jitter", "jitter"),
    ("loss", "loss"),
    ("goodput", "goodput"),
    ("resent", "resent"),
];

/// The words of the table over a sweep.
pub(crate) fn of_sweep(sweep: &Sweep<'_>, judged: &[ConditionVerdict<'_>]) -> Terms {
    let mut terms = Terms::new();
    if sweep.is_compared() {
        let text = "of the transports; several if they serve alike or if the repetitions do not decide; the least bad if \
                    nothing is usable";
        terms.push(("best", text.to_owned()));
    }
    let cells = judged.iter().flat_map(|(condition, _)| &condition.cells);
    terms.push(figure(sweep.by, sweep.floors(), cells, sweep.flow));
    terms.extend(sweep.is_compared().then(|| ("ranking", rule(sweep.by))));
    let outcomes: BTreeSet<&str> = sweep.combinations.iter().map(|it| it.outcome().word()).collect();
    let meanings = OUTCOMES.iter().filter(|(word, _)| sweep.is_compared() && outcomes.contains(word));
    let meanings: Vec<String> = meanings.map(|(word, meaning)| format!("{word}: {meaning}")).collect();
    terms.extend((!meanings.is_empty()).then(|| ("outcome", meanings.join("; "))));
    terms.extend(outside_of(judged.iter().flat_map(|(condition, _)| &condition.cells), sweep.flow));
    terms
}

/// The term `outside` of the calls `flow` of these cells, each by its transport's name.
fn outside_of<'a>(
    cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> Option<(&'static str, String)> {
    outside_term(cells.flat_map(|cell| {
        let name = cell.resolve(flow).unwrap_or(flow);
        let calls = cell.runs.iter().filter_map(|run| run.flows.get(name)?.call.as_deref());
        calls.map(|call| (cell.transport(flow).label, call))
    }))
}

/// What the words of a sweep's outcomes mean.
const OUTCOMES: [(&str, &str); 5] = [
    ("distinct", "one is best, by the 95 % intervals of the differences"),
    ("alike", "take any of the named"),
    ("undecided", "more repetitions may decide"),
    ("depends-on-receiver", "with one of two receivers of a call it is another answer than with the other"),
    ("unusable", "even the best is not usable"),
];

/// The intervals of the differences, and how their ends were found.
fn difference(standings: &[&Standing], by: JudgedBy) -> String {
    let methods: BTreeSet<Method> = standings.iter().filter_map(|standing| standing.method).collect();
    let cut = match by {
        JudgedBy::Mos => ", cut at the scale's width of 3.5",
        JudgedBy::InTime => ", cut at 100 points",
        JudgedBy::Goodput => "",
    };
    let student = format!("Student's t, because there are fewer than {MIN_RESAMPLED} pairs{cut}");
    let has = |method| methods.contains(&method);
    let how = match (has(Method::Bootstrap), has(Method::Student)) {
        (true, true) => {
            format!(" (bootstrap; where there are fewer than {MIN_RESAMPLED} pairs Student's t{cut})")
        }
        (true, false) => " (bootstrap)".to_owned(),
        (false, true) => format!(" ({student})"),
        // All pairs are the same: there is nothing to estimate.
        (false, false) => String::new(),
    };
    let off_scale = match standings.iter().any(|standing| standing.is_off_scale) {
        true => format!("; {UNKNOWN} if both are at the scale's lower end, which cannot distinguish them"),
        false => String::new(),
    };
    format!(
        "95 % interval of the mean difference, this row minus that transport, over pairs of repetitions with one \
         seed{how}{off_scale}"
    )
}

/// Which frames are late or missing, and of which direction.
fn late(calls: &[&CallSummary]) -> String {
    // Where the clocks are not trusted, an echo flow's frame and its echo count as one.
    let is_both = calls.iter().any(|call| call.basis == Basis::HalfRoundTrip && call.direction.is_none());
    let way = if is_both { "lost in either direction" } else { "missing, in the worse direction alone" };
    let is_adaptive = calls.iter().any(|call| call.playout == "adaptive");
    let rule = if is_adaptive { " (adaptive: Ramjee et al. 1994)" } else { "" };
    format!("frames that came after their playout time{rule} or are {way}")
}

/// The second receiver of a call, if it has one.
fn other_receiver(call: &CallSummary) -> Option<(&'static str, String)> {
    let other = call.other_receiver.as_ref()?;
    let text = format!(
        "the same call with {}: the scenario names no `playout`, so both receivers are judged; `usable` has both where \
         they differ, all else is with the adaptive one",
        named_receiver(&other.playout)
    );
    Some((OTHER_RECEIVER, text))
}

/// What the flow is judged by, with the `floors` of its conditions.
fn figure<'a>(
    by: JudgedBy,
    floors: impl Iterator<Item = f64>,
    mut cells: impl Iterator<Item = &'a CellView<'a>>,
    flow: &str,
) -> (&'static str, String) {
    match by {
        JudgedBy::Mos => {
            let is_half = cells
                .any(|cell| cell.judged(flow).values().any(|judged| judged.basis == Basis::HalfRoundTrip));
            let (usable, half) = (usable_from(by, floors), half(is_half));
            let text = format!(
                "mean opinion score of the worse direction, 1 to 4.5 (ITU-T G.107), mean over the \
                 repetitions{usable}{half}"
            );
            (MOS, text)
        }
        JudgedBy::Goodput => {
            ("goodput", "payload bits delivered a second, mean over the repetitions".to_owned())
        }
        JudgedBy::InTime => {
            let timed =
                cells.filter_map(|cell| cell.flow(cell.resolve(flow)?).filter(|it| it.in_time.is_some()));
            let (name, text) = in_time_term(timed);
            (name, format!("{text}; mean over the repetitions{}", usable_from(by, floors)))
        }
    }
}

/// From where on it is usable, as the end of a meaning. Each of a few floors is named; with more the
/// reader has to look at the conditions.
fn usable_from(by: JudgedBy, floors: impl Iterator<Item = f64>) -> String {
    let mut floors: Vec<f64> = floors.collect();
    floors.sort_by(f64::total_cmp);
    floors.dedup();
    if floors.is_empty() || floors.len() > MAX_FLOORS {
        return String::new();
    }
    let floors: Vec<String> =
        floors.into_iter().map(|floor| tick_label(floor * written(by).scale.factor)).collect();
    let (unit, gaps) = match by {
        JudgedBy::Mos => ("", GAP_RULE),
        JudgedBy::InTime => (" %", ""),
        JudgedBy::Goodput => ("", ""),
    };
    format!("; usable from {}{unit}{gaps}", floors.join(" or "))
}

/// What bars a call (`measure::metrics::gaps`).
const GAP_RULE: &str = " with no gap of 1 s, or two of 200 ms a minute";

/// Chosen: more are no longer a meaning, but a list.
const MAX_FLOORS: usize = 3;

/// As the end of a meaning.
const fn half(is_half: bool) -> &'static str {
    if is_half { "; delay is half the round trip" } else { "" }
}

/// The words of the table of every flow.
pub(crate) fn of_run(summary: &Summary, cells: &[CellView<'_>], shown: &str) -> Terms {
    let has = |kind| {
        let flows = cells.iter().filter_map(|cell| Some((cell, cell.run()?)));
        flows.flat_map(|(cell, run)| names(run).map(|flow| cell.delay_kind(flow))).any(|it| it == kind)
    };
    let runs = || cells.iter().filter_map(CellView::run);
    let flows = || runs().flat_map(|run| run.flows.values()).map(Box::as_ref);
    let judged: Vec<Judged> = runs().flat_map(judged_alone).collect();
    let of_kind = |by| judged.iter().filter(move |judged| judged.by == by);
    let floors = |by| of_kind(by).map(|judged| judged.floor);
    let mut terms = Terms::new();
    let several = cells.iter().any(|cell| cell.cell.n > 1);
    let is_half = of_kind(JudgedBy::Mos).any(|judged| judged.basis == Basis::HalfRoundTrip);
    let text = format!(
        "mean opinion score of a call's worse direction, 1 to 4.5 (ITU-T G.107){}{}",
        usable_from(JudgedBy::Mos, floors(JudgedBy::Mos)),
        half(is_half)
    );
    let of = if several { "; the mean over the repetitions" } else { "" };
    terms.extend(of_kind(JudgedBy::Mos).next().map(|_| (MOS, format!("{text}{of}"))));
    let named = cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.flows);
    let named = named.filter_map(|(name, flow)| Some((name.clone(), flow.call.as_deref()?)));
    terms.extend(outside_term(named));
    terms.extend(flows().filter_map(|flow| flow.call.as_deref()).find_map(other_receiver));
    let mut timed = flows().filter(|flow| flow.in_time.is_some() && flow.call.is_none()).peekable();
    if timed.peek().is_some() {
        let (name, text) = in_time_term(timed);
        let usable = usable_from(JudgedBy::InTime, floors(JudgedBy::InTime));
        terms.push((name, format!("{text}{usable}{of}")));
    }
    terms.extend(delay_terms(["rtt", "owd"], has));
    terms.extend(turn_round(shown));
    terms.extend(opening(shown));
    terms.extend(common(has(DelayKind::RoundTrip), has(DelayKind::OneWay)));
    let is_unfinished = |cell: &CellView<'_>| cell.names().find_map(|name| cell.many_unfinished(name));
    terms.extend(cells.iter().find_map(is_unfinished).map(|_| unfinished()));
    terms.push(resent());
    terms.extend(fairness(shown));
    let text = "how Foderaro (1995) would call a burst, by the mean delay";
    let shown_repetition = shown_repetition(runs().map(|run| run.repetition));
    let whose = if several { format!("; of {shown_repetition}") } else { String::new() };
    terms.extend(flows().any(|flow| flow.verdict.is_some()).then(|| ("in words", format!("{text}{whose}"))));
    let text = "delivered while the receiver echoed a mark, which it does until the sender has answered (RFC 3168): more than \
                 were marked";
    terms.extend(shown.contains(ECHOED).then(|| ("echoed", text.to_owned())));
    if several {
        let text = format!("{OVER_REPETITIONS}; the table of links is of {shown_repetition}");
        terms.push(("repetitions", text));
    }
    terms.extend(missing(summary, shown.contains(UNKNOWN)));
    only_shown(terms, shown)
}

/// `repetition 0`: which one is shown where only one of each cell is, by the cells' `repetitions`.
pub(crate) fn shown_repetition(repetitions: impl Iterator<Item = u64>) -> String {
    let shown: BTreeSet<u64> = repetitions.collect();
    match shown.first() {
        Some(first) if shown.len() == 1 => format!("repetition {first}"),
        _ => "the first repetition of each cell that counts".to_owned(),
    }
}

/// What each row of the table of every flow is judged by: each flow alone, and copies that are summed up.
fn judged_alone(run: &RunSummary) -> impl Iterator<Item = Judged> {
    let flows = run.flows.iter().filter_map(|(name, flow)| judge_flow(name, flow));
    flows.chain(run.summed_up().filter_map(|(_, group)| group.judged.clone()))
}

fn delay_terms(
    names: [&'static str; 2],
    has: impl Fn(DelayKind) -> bool,
) -> impl Iterator<Item = (&'static str, String)> {
    let end = [(DelayKind::RoundTrip, "its echo was read"), (DelayKind::OneWay, "the far end read it")];
    let shown: Vec<_> = end.into_iter().zip(names).filter(|((kind, _), _)| has(*kind)).collect();
    shown.into_iter().map(|((_, end), name)| {
        (name, format!("delay from the moment a message was due until {end}; waiting in the sender counts"))
    })
}

/// Where a table has it.
fn turn_round(shown: &str) -> Option<(&'static str, String)> {
    shown.contains("turn-round").then(|| of_figure("turn-round", &FLOW, "turn_round_ms.p99"))
}

/// Where a table has it.
fn opening(shown: &str) -> Option<(&'static str, String)> {
    shown.contains(OPENS).then(|| of_figure("opens after", &FLOW, "opening_ms"))
}

fn unfinished() -> (&'static str, String) {
    let text =
        "of the messages sent, those still queued or in flight at the end: no share of losses has them";
    (UNFINISHED, text.to_owned())
}

/// Where a table has it.
fn fairness(shown: &str) -> Option<(&'static str, String)> {
    shown.contains("Jain's").then(|| of_figure("Jain's index", &GROUP, "jain_index"))
}

/// A column's name with the definition of its figure.
fn of_figure<T>(name: &'static str, table: &'static Table<T>, path: &str) -> (&'static str, String) {
    (name, table.row(path).definition.to_owned())
}

fn common(has_round_trip: bool, has_one_way: bool) -> Terms {
    let way = match (has_round_trip, has_one_way) {
        (true, false) => "lost / due, over the round trip,",
        (true, true) => "lost / due, over the round trip where there is an echo,",
        (false, _) => "lost / due, one way,",
    };
    vec![
        of_figure("jitter", &FLOW, "ipdv_ms.p90"),
        ("loss", format!("{way} by sequence number, sent or not; unfinished ones left out")),
        of_figure("goodput", &FLOW, "goodput_bps"),
    ]
}

/// With the deadlines of the table's flows.
fn in_time_term<'a>(flows: impl Iterator<Item = &'a FlowSummary>) -> (&'static str, String) {
    // What is echoed has its deadline there and back.
    let deadlines = flows.map(|flow| (flow.deadline_ms, flow.lost_return.is_some()));
    let deadlines: Vec<(Option<f64>, bool)> = deadlines.collect();
    let is_usual = |&(deadline, is_echo): &(Option<f64>, bool)| {
        deadline.is_none_or(|deadline| deadline.total_cmp(&limit_ms(is_echo)).is_eq())
    };
    let text = if deadlines.iter().all(is_usual) {
        "of all that were due, those there within 150 ms, or back within 300 ms; a missing message is late (ITU-T G.114)"
            .to_owned()
    } else {
        let mut deadlines: Vec<f64> = deadlines.into_iter().filter_map(|(deadline, _)| deadline).collect();
        deadlines.sort_by(f64::total_cmp);
        deadlines.dedup();
        let deadlines: Vec<String> = deadlines.iter().map(f64::to_string).collect();
        let deadlines = deadlines.join(" or ");
        format!(
            "of all that were due, those that came within their deadline of {deadlines} ms; a missing message is late"
        )
    };
    (IN_TIME, text)
}

fn resent() -> (&'static str, String) {
    of_figure("resent", &FLOW, "retransmit_rate")
}

/// Why figures are missing, if any are, and how well two clocks are known.
fn missing(summary: &Summary, is_unknown: bool) -> Terms {
    let mut terms = Terms::new();
    if is_unknown {
        let text = "not known in this arena, or there is no such thing: no arrival, or a transport that never resends";
        terms.push((UNKNOWN, text.to_owned()));
    }
    let clock = &summary.clock;
    if !clock.trusted {
        terms.push(("clock", format!("one-way figures are left out: {}", clock.why)));
    } else if clock.uncertainty_ms.is_some_and(|bound| bound > 0.0) {
        // Two clocks.
        terms.push(("clock", clock.why.clone()));
    }
    terms
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::{ModelInput, OutsideModel};

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
        in_time_term(flows.iter()).1
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
        let terms = of_run(summary, &CellView::all(summary), "");
        terms.into_iter().map(|(name, text)| format!("{name} {text}\n")).collect()
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
        let judged = flows[0].judged();
        let terms = of_sweep(&Sweep::new("call", &judged).unwrap(), &judged);
        let (_, text) = terms.iter().find(|(name, _)| *name == "outside").unwrap();
        assert!(text.contains("at the furthest: UDP (loss 30.00 %)"), "{text}");
    }

    #[test]
    fn more_floors_than_a_few_are_left_out() {
        assert_eq!(usable_from(JudgedBy::Mos, [2.0, 3.0, 3.5, 4.0].into_iter()), "");
        assert_eq!(usable_from(JudgedBy::Mos, [].into_iter()), "");
    }
}
