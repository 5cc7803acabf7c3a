//! The one-page report: self-contained (no file, font or script beside it), complete without scripts, light
//! and dark.
//!
//! The page is HTML that is also well-formed XML, so that any XML reader, and the tests, can parse it.
//! maud's templates escape every text by its type. What is not escaped is a `PreEscaped`: two constants and
//! the style sheet.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use talkpath_measure::figures::CellFigures;
use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_measure::warning;

use crate::animation::{Animation, topology_svg};
use crate::details;
use crate::display::{self, DARK_BACKGROUND, LIGHT_BACKGROUND};
use crate::figure::{Figure, LineKind, ccdf, delay_over_time, loss_runs, over_time};
use crate::number::{counted, glued};
use crate::receiver::receivers;
use crate::select;
use crate::tables;
use crate::terms::{self, Terms};
use crate::verdict::{Verdict, answers, judge};
use crate::view::{CellView, Condition, conditions, main_flow};

/// Cells whose tables stand open on the page; more are folded.
const OPEN_CELLS: usize = 4;

/// With more cells, the page leaves the table of every figure to summary.json.
const DETAILED_CELLS: usize = 24;

/// Conditions whose verdicts stand on top in full; with more, the sentences stand under their tables.
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
    /// The network and how to watch it; `None` if it is not known, or several runs stand on the page.
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

/// The page.
pub fn html(page: &Page<'_>) -> String {
    let flow = main_flow(page.summary);
    let conditions = conditions(page.summary, &flow);
    let judged: Vec<(&Condition<'_>, Option<Verdict>)> =
        conditions.iter().zip(judge(&conditions, &flow)).collect();
    let main = html! {
        (validity(page.summary))
        (verdicts(&judged, &flow))
        (comparison(page, &judged, &flow))
        (figures(page, &flow))
        (everything(page))
        (network(page.network))
        (provenance(page))
    };
    let about = [Some(terms::about_run(page.summary)), receivers(page.summary)];
    let about = about.into_iter().flatten().collect::<Vec<_>>().join("; ");
    document(&page.summary.name, &about, &main, &page.summary.talkpath)
}

/// The network, and how to watch its packets.
fn network(network: Option<&Network>) -> Markup {
    html! {
        @if let Some(network) = network {
            section {
                h2 { "The network" }
                figure {
                    div class="scroll plot" tabindex="0" {
                        (PreEscaped(topology_svg(&network.animation, "network")))
                    }
                    figcaption { "Hosts, routers and links; links of one making are described once." }
                }
                @if let Some(play) = &network.play {
                    p { "This writes a page on which its packets move, queues fill and drops fall:" }
                    pre { (play) }
                }
            }
        }
    }
}

/// A whole page around `main`.
pub(crate) fn document(name: &str, about: &str, main: &Markup, talkpath: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (META)
                title { (name) " – talkpath report" }
                style { (PreEscaped(variables())) (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { (name) }
                    p.about { (about) }
                }
                main { (main) }
                footer { p { "Written by talkpath " (talkpath) "." } }
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
        display::all().map(|it| format!(" --t-{}: {};", it.kind, pick(it))).collect::<String>()
    };
    let light = format!(
        "--page: {LIGHT_BACKGROUND}; --raised: #f4f6f8; --ink: #1b1f26; --soft: #596270; --line: #dfe3e8; \
         --accent: #0072b2; --bad: #c01824; --warn: #a66a00; --shade: #8a94a3;{}",
        transports(&|it| it.light)
    );
    let dark = format!(
        "--page: {DARK_BACKGROUND}; --raised: #1f242b; --ink: #e8eaee; --soft: #a3acb8; --line: #343b45; \
         --accent: #56b4e9; --bad: #ff7b72; --warn: #e6a816; --shade: #6b7685;{}",
        transports(&|it| it.dark)
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

/// The verdict on top: in full, or if there are many conditions each one's winner by name.
fn verdicts(judged: &[(&Condition<'_>, Option<Verdict>)], flow: &str) -> Markup {
    let answers = answers(judged);
    html! {
        @if !answers.is_empty() {
            section.verdict aria-label={ "Verdict for " (flow) } {
                @for (condition, verdict) in &answers {
                    @if answers.len() == 1 {
                        (in_full(verdict, ""))
                    } @else if answers.len() <= FULL_VERDICTS {
                        (in_full(verdict, &condition.label))
                    } @else {
                        p { strong { (condition.label) } ": " (verdict.summed_up()) }
                    }
                }
            }
        }
    }
}

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

/// The comparison's tables, if anything is compared.
fn comparison(page: &Page<'_>, judged: &[(&Condition<'_>, Option<Verdict>)], flow: &str) -> Markup {
    if judged.iter().all(|(condition, _)| condition.cells.len() < 2) {
        return html! {};
    }
    let in_place = answers(judged).len() > FULL_VERDICTS;
    let tables = html! {
        @for (condition, verdict) in judged {
            @let caption = match condition.label.is_empty() {
                true => format!("{flow} over each transport"),
                false => format!("{flow} over each transport, {}", condition.label),
            };
            (tables::comparison(condition, flow, verdict.as_ref()).html(&caption))
            @if let Some(verdict) = verdict && in_place { (in_full(verdict, "")) }
        }
    };
    let terms = terms::of_comparison(page.summary, judged, flow, &tables.0);
    html! {
        section {
            h2 { "Transports compared" }
            (tables)
            (definitions(&terms))
        }
    }
}

fn figures(page: &Page<'_>, flow: &str) -> Markup {
    let mut figures: Vec<Figure> = Vec::new();
    let by_kind = [true, false]
        .map(|round_trip| (round_trip, select::flows(page.summary, page.figures, flow, round_trip)));
    figures.extend(by_kind.iter().filter_map(|(round_trip, selection)| ccdf(selection, *round_trip)));
    figures
        .extend(by_kind.iter().filter_map(|(round_trip, selection)| delay_over_time(selection, *round_trip)));
    let messages = select::both(&by_kind[0].1, &by_kind[1].1);
    figures.extend(loss_runs(&messages));
    let cells = select::cells(page.summary, page.figures, flow);
    let kinds = [LineKind::Queue, LineKind::Cwnd, LineKind::SendBuffer];
    figures.extend(kinds.into_iter().filter_map(|kind| over_time(&cells, kind, flow)));
    if figures.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Figures" }
            @if page.summary.cells.iter().any(|cell| cell.n > 1) {
                p.about { "Figures show repetition 0; the tables show all." }
            }
            @for figure in &figures { (figure.html()) }
        }
    }
}

/// Every flow, group and link of every cell.
fn everything(page: &Page<'_>) -> Markup {
    let cells = CellView::all(page.summary);
    let tables = html! {
        @for cell in &cells {
            @let label = if cells.len() > 1 { cell.sweep_label(&[]) } else { "Every flow".to_owned() };
            @let caption = format!("{label} ({})", counted(cell.cell.n, "repetition"));
            (tables::flows(cell).html(&caption))
            @if let Some(run) = cell.run() { (everything_of(run, cells.len() <= DETAILED_CELLS)) }
        }
    };
    let terms = terms::of_run(page.summary, &cells, &tables.0);
    let open = (cells.len() <= OPEN_CELLS).then_some("open");
    html! {
        section {
            h2 { "Every flow and link" }
            details open=[open] {
                summary { (counted(cells.len() as u64, "cell")) }
                (tables)
                (definitions(&terms))
            }
        }
    }
}

/// One repetition's tables; the table of every figure if the page has room for it.
fn everything_of(run: &RunSummary, is_detailed: bool) -> Markup {
    html! {
        @if is_detailed {
            @let caption = format!("Repetition {}, seed {}", run.repetition, run.seed);
            details {
                summary { "Every figure" }
                (details::details(run).html(&caption))
            }
        }
        @if let Some(groups) = tables::groups(run) { (groups.html("Copies together")) }
        @if let Some(links) = tables::links(run) { (links.html("Links")) }
        @if let Some(marks) = tables::marks(run) { (marks.html("Marks")) }
        @if let Some(machine) = tables::machine(run) { (machine.html("Lateness of this machine")) }
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
        (true, Some(offset), Some(uncertainty)) => {
            format!("{}; offset {offset:.3} ms, give or take {uncertainty:.3} ms", clock.why)
        }
        (true, _, _) => clock.why.clone(),
        (false, _, _) => format!("not trusted, one-way figures are left out: {}", clock.why),
    };
    let facts: Terms = vec![
        ("talkpath", summary.talkpath.clone()),
        ("arena", summary.arena.clone()),
        ("started", summary.started.clone()),
        ("took", format!("{:.1} s, {:.1} s of CPU time", summary.wall_s, summary.cpu_s)),
        ("seeds", seed_text),
        ("percentiles", summary.percentiles.clone()),
        ("clock", clock_text),
        ("valid", if summary.valid { "yes" } else { "no" }.to_owned()),
    ];
    html! {
        section {
            h2 { "Where this comes from" }
            (definitions(&facts))
            p { "To repeat it:" }
            pre { code { (page.command) } }
            details {
                summary { "The scenario as resolved" }
                pre { code { (page.scenario_toml) } }
            }
        }
    }
}

fn definitions(terms: &Terms) -> Markup {
    html! {
        dl.terms {
            @for (term, text) in terms { dt { (term) } dd { (text) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use roxmltree::{Document, Node, ParsingOptions};

    const SVG: &str = "http://www.w3.org/2000/svg";

    fn page(summary: &Summary, figures: &[CellFigures]) -> String {
        let command = "talkpath compare --seed 1 --path 'a&b'";
        html(&Page { summary, figures, scenario_toml: fixture::SCENARIO, command, network: None })
    }

    fn parse(text: &str) -> Document<'_> {
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        Document::parse_with_options(text, options).unwrap()
    }

    fn text_of(node: Node<'_, '_>) -> String {
        node.descendants().filter_map(|it| it.is_text().then(|| it.text()).flatten()).collect()
    }

    #[test]
    fn the_page_is_well_formed_and_its_ids_are_unique() {
        let text = page(&fixture::summary(5), &fixture::figures());
        let document = parse(&text);
        let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert!(all >= 10);
    }

    #[test]
    fn the_page_needs_nothing_beside_it() {
        let text = page(&fixture::summary(1), &fixture::figures());
        assert!(!text.contains("<script") && !text.contains("@import") && !text.contains("url("));
        let document = parse(&text);
        for node in document.descendants() {
            assert!(!["link", "img", "iframe", "object", "image"].contains(&node.tag_name().name()));
            for attribute in node.attributes() {
                assert!(!["src", "href", "srcset", "data"].contains(&attribute.name()), "{attribute:?}");
            }
        }
        assert_eq!(text.matches("http").count(), text.matches(SVG).count());
    }

    #[test]
    fn every_figure_has_a_title_a_description_and_axes_with_units() {
        let text = page(&fixture::summary(1), &fixture::figures());
        let document = parse(&text);
        let mut figures = 0;
        for svg in document.descendants().filter(|node| node.attribute("role") == Some("img")) {
            let child = |name| svg.children().find(|node| node.has_tag_name((SVG, name))).map(text_of);
            assert!(child("title").is_some_and(|text| !text.is_empty()));
            assert!(child("desc").is_some_and(|text| text.contains("UDP") || text.contains("up")));
            let texts: Vec<String> =
                svg.descendants().filter(|n| n.has_tag_name((SVG, "text"))).map(text_of).collect();
            let units = [", ms", ", s", "packets", "messages", "share", "runs", "kB"];
            assert!(
                texts.iter().filter(|text| units.iter().any(|unit| text.contains(unit))).count() >= 2,
                "{texts:?}"
            );
            figures += 1;
        }
        assert_eq!(figures, 5);
    }

    #[test]
    fn the_pages_table_has_the_summarys_numbers_and_the_verdict() {
        let summary = fixture::summary(1);
        let text = page(&summary, &fixture::figures());
        let document = parse(&text);
        let table = document.descendants().find(|node| node.has_tag_name("table")).unwrap();
        let rows: Vec<Vec<String>> = table
            .descendants()
            .filter(|node| node.has_tag_name("tr"))
            .map(|row| row.children().filter(Node::is_element).map(text_of).collect())
            .collect();
        for (row, run) in rows[2..].iter().zip(&summary.runs) {
            let delay = run.flows["call"].round_trip_delay_ms.as_ref().unwrap();
            assert!(row.contains(&format!("{:.1}", delay.p90)), "{row:?}");
        }
        assert_eq!(rows.len(), 5);
        let sentence = &crate::comparisons(&summary)[0].answer.line;
        assert!(text_of(document.root_element()).contains(&glued(sentence)));
    }

    #[test]
    fn what_a_scenario_says_cannot_become_markup() {
        let mut summary = fixture::summary(1);
        summary.name = "</title><script>alert(1)</script>".to_owned();
        summary.warnings = vec!["<img src=x>".to_owned()];
        for run in &mut summary.runs {
            let upload = run.flows.remove("upload").unwrap();
            run.flows.insert("<b>\"up&".to_owned(), upload);
        }
        let mut figures = fixture::figures();
        figures[0].flows[0].transport = "\"><script>".to_owned();
        figures[1].lines[0].entity = "<i>'\u{0}\u{1b}\u{ffff}".to_owned();
        let text = page(&summary, &figures);
        parse(&text);
        assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("<i>"));
    }

    #[test]
    fn an_invalid_run_says_so_before_its_verdict() {
        let mut summary = fixture::summary(1);
        summary.valid = false;
        let text = page(&summary, &[]);
        assert!(text.find("Invalid run").unwrap() < text.find("class=\"verdict\"").unwrap());
        assert!(!page(&fixture::summary(1), &[]).contains("Invalid run"));
    }

    #[test]
    fn a_sweep_of_many_cells_stays_a_page_and_says_what_it_leaves_out() {
        let (summary, figures) = fixture::sweep(30);
        let text = page(&summary, &figures);
        parse(&text);
        assert!(text.contains("82 more lines are not drawn"));
        assert!(text.contains("path.up.loss = 0.29"));
        assert!(text.len() < 1_000_000, "{} bytes", text.len());
    }

    #[test]
    fn a_run_without_a_sweep_shows_every_flow_and_compares_nothing() {
        let (summary, figures) = fixture::single();
        let text = page(&summary, &figures);
        parse(&text);
        assert!(!text.contains("Transports compared") && !text.contains("class=\"verdict\""));
        assert!(text.contains("id=\"ccdf-rtt-title\"") && text.contains("id=\"ccdf-owd-title\""));
    }

    #[test]
    fn no_figures_and_no_runs_still_make_a_page() {
        let mut summary = fixture::summary(1);
        parse(&page(&summary, &[]));
        (summary.runs, summary.cells) = (Vec::new(), Vec::new());
        parse(&page(&summary, &[]));
    }
}
