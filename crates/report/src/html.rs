//! The one-page report: self-contained (no file, font or script beside it), complete without scripts, light
//! and dark. A module of our own in it (`page.js`) adds what a pointer and a keyboard can do.
//!
//! The page is HTML that is also well-formed XML, so that any XML reader, and the tests, can parse it.
//! maud's templates escape every text by its type. What is not escaped is a `PreEscaped`: constants, the
//! style sheets and the module.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use talkpath_measure::chart_data::CellFigures;
use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_measure::warning;

use crate::animation::{Animation, topology_svg};
use crate::details;
use crate::display::{self, DARK_BACKGROUND, LIGHT_BACKGROUND};
use crate::figure::{
    Figure, Heat, LineKind, ccdf, delay_over_time, heat_map, loss_runs, over_time, sweep_lines,
};
use crate::grid::Grid;
use crate::number::{count, counted, glued};
use crate::path_changes::CellChanges;
use crate::receiver::receivers;
use crate::select::{self, Drawn};
use crate::sweep::table::SweepTable;
use crate::sweep::{MAX_ON_PAGE, Sweep};
use crate::tables::{self, ComparisonTables};
use crate::term::{Term, Terms};
use crate::terms::{self, ComparisonLegend, FlowMeanings, RunLegend};
use crate::usable::receivers_decide;
use crate::verdict::{ConditionVerdict, FlowCells, JudgedFlow, Verdict};
use crate::view::{CellView, is_copy, main_flow};

/// Cells whose tables are open on the page; more are folded.
const OPEN_CELLS: usize = 4;

/// With more cells, the page leaves the table of every figure to summary.json.
pub(crate) const DETAILED_CELLS: usize = 24;

/// Answers that the top of the page has in full; more are counted, and the table over the sweep has each.
const FULL_VERDICTS: usize = 3;

/// What the one-page report shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Every table and sentence.
    pub summary: &'a Summary,
    /// Every figure, one entry a cell; cells without an entry have tables only.
    pub figures: &'a [CellFigures],
    /// The scenario as resolved, in full.
    pub scenario_toml: &'a str,
    /// The command that repeats the run.
    pub command: &'a str,
    /// How the path changed, one entry for each cell whose path does.
    pub changes: &'a [CellChanges],
    /// The network and how to watch it; `None` if it is not known, or the page has several runs.
    pub network: Option<&'a Network>,
}

/// The network of a run on its page.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Nodes, links and flows.
    pub animation: Animation,
    /// The command that plays it; `None` where packets are not seen.
    pub play: Option<String>,
}

/// Elements without an end, closed as XML wants them. maud writes them as `<br>`.
const META: PreEscaped<&str> = PreEscaped(
    "<meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>",
);
pub(crate) const BREAK: PreEscaped<&str> = PreEscaped("<br/>");

/// The style of figures, which a figure in a file of its own needs, too.
const FIGURE_CSS: &str = include_str!("figure.css");
/// What the page can do beyond being read. In a section of character data, because a page is also XML.
const SCRIPT: PreEscaped<&str> =
    PreEscaped(concat!("<script type=\"module\">//<![CDATA[\n", include_str!("page.js"), "//]]></script>"));

/// The page.
pub fn html(page: &Page<'_>) -> String {
    let flows = FlowCells::all(page.summary);
    let judged: Vec<JudgedFlow<'_>> = flows.iter().map(FlowCells::judge).collect();
    let sweeps: Vec<Sweep<'_>> = judged.iter().filter_map(swept).collect();
    let sections = Section::with_content([
        Section { id: ANSWER, title: "Answer", body: answer(page.summary, &judged, &sweeps) },
        Section { id: "sweep", title: "Over the sweep", body: over_the_sweep(page, &sweeps) },
        Section { id: "compared", title: "Transports compared", body: comparisons(page, &judged) },
        Section { id: "figures", title: "Figures", body: drawn(page, &judged) },
        Section { id: "cells", title: "Every flow and link", body: everything(page) },
        Section { id: "network", title: "The network", body: network(page) },
        Section { id: "source", title: "Where this comes from", body: provenance(page) },
    ]);
    let main = html! {
        (validity(page.summary))
        @for Section { id, body, .. } in sections.iter().filter(|section| section.id == ANSWER) {
            section id=(id) {
                (body)
                @for line in page.summary.understood.losses.iter().chain(&page.summary.understood.fragments) {
                    p.about { (line) }
                }
            }
        }
        @for line in page.summary.understood.lines() { p.about { (line) } }
        @for note in page.summary.warnings.iter().filter(|warning| warning::is_note(warning)) {
            p.about { (note) }
        }
        (Section::contents(&sections))
        @for section in sections.iter().filter(|section| section.id != ANSWER) { (section.html()) }
    };
    let about = [Some(terms::about_run(page.summary)), receivers(page.summary)];
    let about = about.into_iter().flatten().collect::<Vec<_>>().join("; ");
    document(&page.summary.name, &about, &main, &page.summary.talkpath)
}

/// The section that has no heading, as it is what the page is read for.
const ANSWER: &str = "answer";

/// A part of a page.
pub(crate) struct Section {
    /// What a link to it names.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    pub body: Markup,
}

impl Section {
    /// Those of `sections` that have a body.
    pub(crate) fn with_content(sections: impl IntoIterator<Item = Self>) -> Vec<Self> {
        sections.into_iter().filter(|section| !section.body.0.is_empty()).collect()
    }

    /// A list of links to `sections`.
    pub(crate) fn contents(sections: &[Self]) -> Markup {
        html! {
            nav.contents aria-label="Contents" {
                ul { @for Self { id, title, .. } in sections { li { a href={ "#" (id) } { (title) } } } }
            }
        }
    }

    pub(crate) fn html(&self) -> Markup {
        html! { section id=(self.id) { h2 { (self.title) } (self.body) } }
    }
}

/// The sweep of a flow, if it is over more than its transport.
fn swept<'a>(judged: &'a JudgedFlow<'a>) -> Option<Sweep<'a>> {
    let is_one = judged.answers().len() == 1;
    Sweep::new(judged).filter(|sweep| !is_one || !sweep.is_compared())
}

/// Each figure of the page as an SVG file that needs nothing beside it: its name without the extension, and
/// its text.
pub fn figure_files(page: &Page<'_>) -> Vec<(String, String)> {
    let named = |figure: Figure| figure_file(&figure).map(|file| (figure.id, file));
    all_figures(page).into_iter().filter_map(named).collect()
}

/// A figure as an SVG file on light ground that needs nothing beside it; `None` if there is nothing to draw.
pub(crate) fn figure_file(figure: &Figure) -> Option<String> {
    let variables = variables();
    let light = variables.split_once("@media").map_or("", |(light, _)| light);
    figure.file(&format!("{light}{FIGURE_CSS}")).map(|file| printable_xml(&file))
}

/// Every figure of the page, in its order.
fn all_figures(page: &Page<'_>) -> Vec<Figure> {
    let flows = FlowCells::all(page.summary);
    let judged: Vec<JudgedFlow<'_>> = flows.iter().map(FlowCells::judge).collect();
    let sweeps = judged.iter().filter_map(swept);
    let over: Vec<Figure> = sweeps.flat_map(|sweep| sweep_figures(page, &sweep)).collect();
    let drawn = drawn_sets(page, &judged).into_iter().flat_map(|set| set.figures);
    over.into_iter().chain(drawn).chain(network_figure(page)).collect()
}

/// The network, and how to watch its packets.
fn network(page: &Page<'_>) -> Markup {
    html! {
        @if let Some(figure) = network_figure(page) { (figure.html()) }
        @if let Some(play) = page.network.and_then(|network| network.play.as_ref()) {
            p { "This writes a page on which its packets move, queues fill and drops fall:" }
            pre tabindex="0" { (play) }
        }
    }
}

fn network_figure(page: &Page<'_>) -> Option<Figure> {
    let network = page.network?;
    let cell = drawn_cell(page.summary).map_or_else(String::new, |cell| format!(" As in {cell}."));
    let (svg, caption) = match topology_svg(&network.animation, "network") {
        Ok(svg) => (Some(svg), format!("Links of one making are described once.{cell}")),
        Err(why) => (None, why),
    };
    Some(Figure {
        id: "network".to_owned(),
        title: "Hosts, routers and links".to_owned(),
        legend: Vec::new(),
        svg,
        caption,
    })
}

/// The cell whose network is drawn, `cell 0: path.up.rate = 1 Mbps`; `None` if the cells differ in transports
/// alone.
fn drawn_cell(summary: &Summary) -> Option<String> {
    let first = CellView::of(summary, summary.cells.first()?.cell).filter(|_| summary.cells.len() > 1)?;
    let transports = first.cell.sweep.keys().filter(|key| key.ends_with(".transport"));
    let label = first.sweep_label(&transports.map(String::as_str).collect::<Vec<_>>());
    (!label.is_empty()).then(|| format!("cell {}: {label}", first.cell.cell))
}

/// A whole page around `main`.
pub(crate) fn document(name: &str, about: &str, main: &Markup, talkpath: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (META)
                title { (name) " – talkpath report" }
                style { (PreEscaped(variables())) }
                style id="figure-style" { (PreEscaped(FIGURE_CSS)) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { (name) }
                    p.about { (about) }
                }
                main { (main) }
                footer { p { "Written by talkpath " (talkpath) "." } }
                (SCRIPT)
            }
        }
    };
    printable_xml(&page.into_string())
}

/// `page` without characters that XML 1.0 §2.2 does not allow, and without those that control a device.
fn printable_xml(page: &str) -> String {
    page.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The themes' colours: the page's own and one a transport.
fn variables() -> String {
    let transports = |pick: &dyn Fn(&display::Display) -> &'static str| {
        display::all().map(|display| format!(" --t-{}: {};", display.kind, pick(display))).collect::<String>()
    };
    let light = format!(
        "--page: {LIGHT_BACKGROUND}; --raised: #f4f6f8; --ink: #1b1f26; --soft: #596270; --line: #dfe3e8; \
         --accent: #0072b2; --bad: #c01824; --warn: #a66a00; --shade: #8a94a3;{}",
        transports(&|display| display.light)
    );
    let dark = format!(
        "--page: {DARK_BACKGROUND}; --raised: #1f242b; --ink: #e8eaee; --soft: #a3acb8; --line: #343b45; \
         --accent: #56b4e9; --bad: #ff7b72; --warn: #e6a816; --shade: #6b7685;{}",
        transports(&|display| display.dark)
    );
    format!(":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n")
}

/// What is wrong with the run, before anything that it says.
fn validity(summary: &Summary) -> Markup {
    html! {
        @if !summary.valid {
            p.invalid role="alert" { "Invalid run: do not trust these figures." }
        }
        (warnings(&summary.warnings))
    }
}

pub(crate) fn warnings(warnings: &[String]) -> Markup {
    let warnings: Vec<&String> = warnings.iter().filter(|warning| !warning::is_note(warning)).collect();
    html! {
        @if !warnings.is_empty() {
            div.warnings {
                strong { "Warnings" }
                ul { @for text in warnings {
                    li {
                        @if let Some(reason) = warning::reason(text) {
                            strong { "Invalid because of this: " } (reason)
                        } @else {
                            (text)
                        }
                    }
                } }
            }
        }
    }
}

/// The answers on top: counted over a sweep, and in full if they are few.
fn answer(summary: &Summary, judged: &[JudgedFlow<'_>], sweeps: &[Sweep<'_>]) -> Markup {
    let answered = judged.iter().filter(|judged| !judged.answers().is_empty());
    let answered: Vec<&str> = answered.map(|judged| judged.flow).collect();
    let is_answered = |name: &str| answered.iter().any(|flow| *flow == name || is_copy(name, flow));
    let cells = if summary.cells.len() <= DETAILED_CELLS { CellView::all(summary) } else { Vec::new() };
    html! {
        @for judged in judged {
            @let answers = judged.answers();
            @let sweep = sweeps.iter().find(|sweep| sweep.flow == judged.flow && sweep.has_answers());
            @if !answers.is_empty() || sweep.is_some() {
                div.verdict aria-label={ "Verdict for " (judged.flow) } {
                    @if let Some(sweep) = sweep { p { strong { (sweep.headline()) } } }
                    @if let [only] = &answers[..] {
                        (in_full(only.verdict, ""))
                    } @else if answers.len() <= FULL_VERDICTS {
                        @for answer in &answers { (in_full(answer.verdict, &answer.condition.label)) }
                    }
                }
            }
        }
        @for cell in &cells {
            @for sentence in receivers_decide(cell, is_answered) {
                p { @if !cell.sweep_label(&[]).is_empty() { (cell.sweep_label(&[])) ": " } strong { (sentence) } }
            }
        }
    }
}

/// Lines, heat maps and the table of each sweep.
fn over_the_sweep(page: &Page<'_>, sweeps: &[Sweep<'_>]) -> Markup {
    html! {
        @for sweep in sweeps {
            @for figure in sweep_figures(page, sweep) { (figure.html()) }
            @let n = sweep.combinations.len() as u64;
            @if sweep.has_answers() {
                @let SweepTable { grid, note } = sweep.table_within(MAX_ON_PAGE);
                details open=[(sweep.combinations.len() <= OPEN_ROWS).then_some("open")] {
                    summary { "Table for " (sweep.flow) ": " (counted(n, "combination")) }
                    (grid.html(&format!("The best for {} at each combination", sweep.flow)))
                    @if let Some(note) = note { p.about { (note) } }
                }
            }
        }
    }
}

fn sweep_figures(page: &Page<'_>, sweep: &Sweep<'_>) -> Vec<Figure> {
    let conditions = conditions_of(page, sweep);
    let maps = [Heat::Winner, Heat::Figure].map(|heat| heat_map(sweep, heat, &conditions));
    sweep_lines(sweep).into_iter().chain(maps.into_iter().flatten()).collect()
}

/// What a map holds for, as the end of its caption: the receiver, what runs beside the flow, and the links.
fn conditions_of(page: &Page<'_>, sweep: &Sweep<'_>) -> String {
    let mut text = receivers(page.summary).map_or_else(String::new, |receivers| format!(" {receivers}."));
    text += &match &sweep.beside[..] {
        [] => format!(" No other traffic beside {}.", sweep.flow),
        names => format!(" Beside {}: {}.", sweep.flow, few(names.to_vec(), ", ")),
    };
    let Some(network) = page.network else { return text };
    let links = network.animation.links.iter().map(|link| {
        let first = page.summary.runs.first();
        let queue = first.and_then(|run| Some(run.links.get(&link.name)?.discipline.as_str()));
        let queue = queue.filter(|queue| !link.about.contains(queue));
        format!(
            "{} {}{}",
            link.name,
            link.about,
            queue.map_or_else(String::new, |queue| format!(", {queue}"))
        )
    });
    text + &format!(" Links of the first cell: {}.", few(links.collect(), "; "))
}

/// The first few of `names`, and how many more there are.
fn few(mut names: Vec<String>, between: &str) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more > 0 {
        names.push(format!("{} more", count(more as u64)));
    }
    names.join(between)
}

/// Links, or flows, that a caption names; chosen.
const NAMED: usize = 4;

/// Rows of a table over a sweep that are open; chosen: about a screen.
const OPEN_ROWS: usize = 40;

/// The lines of an answer, after what it is the answer for.
fn in_full(verdict: &Verdict, label: &str) -> Markup {
    html! {
        @for (number, line) in verdict.lines().into_iter().enumerate() {
            @if number == 0 {
                p {
                    @if !label.is_empty() { (label) ": " }
                    strong { (glued(line)) }
                }
            } @else {
                p.more { (glued(line)) }
            }
        }
    }
}

/// The tables of transports, if anything is compared; those of a sweep are folded.
fn comparisons(page: &Page<'_>, judged: &[JudgedFlow<'_>]) -> Markup {
    html! {
        @for judged in judged {
            @if judged.conditions.iter().any(|judged| judged.condition.cells.len() > 1) {
                (comparison(page, judged))
            }
        }
    }
}

fn comparison(page: &Page<'_>, judged: &JudgedFlow<'_>) -> Markup {
    let (flow, n) = (judged.flow, judged.conditions.len());
    if n > MAX_ON_PAGE {
        let text = format!(
            "The {} combinations for {flow} are more than a page has tables for: the figures of each transport are in \
             summary.json.",
            count(n as u64)
        );
        return html! { p { (text) } };
    }
    let is_folded = judged.answers().len() > FULL_VERDICTS;
    let tables = ComparisonTables::new(judged);
    let mut columns = Terms::new();
    let mut grids = Vec::new();
    for ConditionVerdict { condition, verdict } in &judged.conditions {
        let grid = tables.grid(condition, verdict.as_deref());
        columns.extend(grid.terms());
        grids.push(grid);
    }
    let tables = html! {
        @for (ConditionVerdict { condition, verdict }, table) in judged.conditions.iter().zip(&grids) {
            @if is_folded {
                details.cell {
                    summary {
                        (condition.label) ": "
                        (verdict.as_deref().map_or_else(String::new, Verdict::in_brief))
                    }
                    @if let Some(verdict) = verdict { (in_full(verdict, "")) }
                    (table.html(&format!("{flow} over each transport")))
                }
            } @else {
                @let caption = match condition.label.is_empty() {
                    true => format!("{flow} over each transport"),
                    false => format!("{flow} over each transport, {}", condition.label),
                };
                (table.html(&caption))
            }
        }
    };
    let terms = ComparisonLegend { summary: page.summary, judged, columns, shown: &tables.0 }.terms();
    html! {
        @if is_folded {
            details {
                summary { (counted(n as u64, "combination")) " for " (flow) ", each with its transports" }
                (tables)
            }
        } @else { (tables) }
        (definitions(&terms))
    }
}

/// The figures of messages and queues: of all cells, or of a sweep's first and last combination.
fn drawn(page: &Page<'_>, judged: &[JudgedFlow<'_>]) -> Markup {
    let sets = drawn_sets(page, judged);
    let is_swept = sets.len() > 1;
    if sets.iter().all(|set| set.figures.is_empty()) {
        return html! {};
    }
    let all = judged.first().map_or(0, |judged| judged.conditions.len());
    html! {
        @if page.summary.cells.iter().any(|cell| cell.n > 1) {
            p.about { "Figures show " (shown_repetition(page.figures)) "; the tables show all." }
        }
        @if is_swept {
            p.about {
                "Of the " (counted(all as u64, "combination")) " the first and the last are drawn; the others are in "
                (if all > MAX_ON_PAGE { "summary.json" } else { "the tables" }) "."
            }
        }
        @for set in &sets {
            @if is_swept { h3.set { (set.label) } }
            @for figure in &set.figures { (figure.html()) }
        }
    }
}

/// `repetition 0`: which one the figures show.
fn shown_repetition(figures: &[CellFigures]) -> String {
    terms::shown_repetition(figures.iter().map(|figures| figures.repetition))
}

/// Figures that are drawn of the same cells.
struct FigureSet {
    /// What the cells have in common; empty if they are all.
    label: String,
    figures: Vec<Figure>,
}

fn drawn_sets(page: &Page<'_>, judged: &[JudgedFlow<'_>]) -> Vec<FigureSet> {
    let flow = main_flow(page.summary);
    let figures_of = |cells: Option<&[u64]>, id| {
        let Page { summary, figures: drawn, changes, .. } = *page;
        figures(&Drawn { summary, figures: drawn, changes, cells, flow: &flow, id })
    };
    let set = |ConditionVerdict { condition, .. }: &ConditionVerdict<'_>, id| {
        let cells: Vec<u64> = condition.cells.iter().map(|cell| cell.cell.cell).collect();
        FigureSet { label: condition.label.clone(), figures: figures_of(Some(&cells), id) }
    };
    let conditions = judged.first().map(|judged| judged.conditions.as_slice()).unwrap_or_default();
    match conditions {
        [first, .., last] => vec![set(first, "first-"), set(last, "last-")],
        _ => vec![FigureSet { label: String::new(), figures: figures_of(None, "") }],
    }
}

fn figures(drawn: &Drawn<'_>) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    let by_kind = [true, false].map(|round_trip| (round_trip, drawn.flows(round_trip)));
    figures.extend(by_kind.iter().filter_map(|(round_trip, selection)| ccdf(selection, *round_trip)));
    figures
        .extend(by_kind.iter().filter_map(|(round_trip, selection)| delay_over_time(selection, *round_trip)));
    let cells = drawn.cells();
    let kinds = [LineKind::Goodput, LineKind::Queue, LineKind::Cwnd, LineKind::SendBuffer];
    figures.extend(kinds.into_iter().filter_map(|kind| over_time(&cells, kind, drawn.flow)));
    figures.extend(loss_runs(&select::both(&by_kind[0].1, &by_kind[1].1)));
    figures
}

/// Every flow, group and link of every cell; of many cells the page leaves them to summary.json.
fn everything(page: &Page<'_>) -> Markup {
    if page.summary.cells.len() > DETAILED_CELLS {
        let text = format!(
            "The {} cells have more flows and links than a page can show: every figure of each is in summary.json.",
            count(page.summary.cells.len() as u64)
        );
        return html! { p { (text) } };
    }
    let cells = CellView::all(page.summary);
    let meanings = FlowMeanings::new(&cells);
    let mut columns = Terms::new();
    let mut tables: Vec<Markup> = Vec::new();
    for cell in &cells {
        let label = if cells.len() > 1 { cell.sweep_label(&[]) } else { "Every flow".to_owned() };
        let caption = format!("{label} ({})", counted(cell.cell.n, "repetition"));
        let flows = tables::flows(cell, &meanings);
        columns.extend(flows.terms());
        tables.push(flows.html(&caption));
        if let Some(run) = cell.run() {
            tables.push(everything_of(cell, run, &mut columns));
        }
    }
    let tables = html! { @for table in &tables { (table) } };
    let terms = RunLegend { summary: page.summary, cells: &cells, columns, shown: &tables.0 }.terms();
    let open = (cells.len() <= OPEN_CELLS).then_some("open");
    html! {
        details open=[open] {
            summary { (counted(cells.len() as u64, "cell")) }
            (tables)
            (definitions(&terms))
        }
    }
}

/// Flows for which the page has every figure. Chosen: each takes a column of some kB.
const DETAILED_FLOWS: usize = 100;

/// The tables of a cell's groups, and of what one repetition has. Adds the words of the columns to `columns`.
fn everything_of(cell: &CellView<'_>, run: &RunSummary, columns: &mut Terms) -> Markup {
    let caption = format!("Repetition {}, seed {}", run.repetition, run.seed);
    let grids = [
        ("Copies together", tables::groups(cell)),
        ("Links", tables::links(run)),
        ("Marks", tables::ecn_marks(run)),
        ("Breaks", tables::breaks(run)),
        ("Lateness of this machine", tables::machine(run)),
    ];
    columns.extend(grids.iter().filter_map(|(_, grid)| grid.as_ref()).flat_map(Grid::terms));
    html! {
        @if run.flows.len() <= DETAILED_FLOWS {
            details {
                summary { "Every figure" }
                (details::details(run).html(&caption))
            }
        } @else {
            p { "Every figure of the " (count(run.flows.len() as u64)) " flows is in summary.json." }
        }
        @for (caption, grid) in &grids {
            @if let Some(grid) = grid { (grid.html(caption)) }
        }
        @if let Some(line) = tables::machine_line(run) { p { (line) } }
    }
}

/// What ran, when, with which seed, and how to run it again.
fn provenance(page: &Page<'_>) -> Markup {
    let summary = page.summary;
    let mut seeds: Vec<u64> = summary.runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let more = seeds.len().saturating_sub(10);
    let mut seed_text = seeds.iter().take(10).map(u64::to_string).collect::<Vec<_>>().join(", ");
    if more > 0 {
        seed_text.push_str(&format!(" and {more} more (summary.json)"));
    }
    let clock = &summary.clock;
    let clock_text = match (clock.trusted, clock.offset_ms, clock.uncertainty_ms) {
        // Two clocks: the reason says how well their offset is known.
        (true, Some(offset), Some(bound)) if bound > 0.0 => {
            format!("offset {offset:.3} ms; {}", clock.why)
        }
        (true, _, _) => clock.why.clone(),
        (false, _, _) => format!("not trusted, one-way figures are left out: {}", clock.why),
    };
    let facts = [
        Term::new("talkpath", &*summary.talkpath),
        Term::new("arena", &*summary.arena),
        Term::new("started", &*summary.started),
        Term::new("took", format!("{:.1} s, {:.1} s of CPU time", summary.wall_s, summary.cpu_s)),
        Term::new("seeds", seed_text),
        Term::new("percentiles", &*summary.percentiles),
        Term::new("clock", clock_text),
        Term::new("valid", if summary.valid { "yes" } else { "no" }),
    ];
    html! {
        (definitions(&facts))
        p { "To repeat it:" }
        pre tabindex="0" { code { (page.command) } }
        details {
            summary { "The scenario as resolved" }
            pre tabindex="0" { code { (page.scenario_toml) } }
        }
    }
}

fn definitions(terms: &[Term]) -> Markup {
    html! {
        dl.terms {
            @for Term { name, meaning, .. } in terms { dt { (name) } dd { (meaning) } }
        }
    }
}

#[cfg(test)]
mod tests;
