use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::summary::{MappingSummary, PathSummary, PathWaySummary, Summary};

use super::*;
use crate::fixture;
use crate::number::glued;
use roxmltree::{Document, Node, ParsingOptions};

const SVG: &str = "http://www.w3.org/2000/svg";

fn page(summary: &Summary, figures: &[CellChartData]) -> String {
    let command = "talkpath compare --seed 1 --path 'a&b'";
    html(&Page {
        summary,
        chart_data: figures,
        scenario_toml: fixture::SCENARIO,
        command,
        changes: &[],
        network: None,
        sounds: None,
    })
}

fn parse(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap()
}

fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|node| node.is_text().then(|| node.text()).flatten()).collect()
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
    assert_eq!((text.matches("<script").count(), text.matches("import(").count()), (1, 0));
    assert!(!text.contains("@import") && !text.contains("url(http") && !text.contains("fetch("));
    let document = parse(&text);
    for node in document.descendants() {
        assert!(!["link", "img", "iframe", "object", "image"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            let is_within = attribute.name() == "href" && attribute.value().starts_with('#');
            let loads = ["src", "href", "srcset", "data"].contains(&attribute.name());
            assert!(is_within || !loads, "{attribute:?}");
        }
    }
    assert_eq!(text.matches("http").count(), text.matches(SVG).count());
}

#[test]
fn every_chart_has_a_title_a_description_and_axes_with_units() {
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
fn the_page_names_the_repetition_that_it_draws_which_is_the_first_that_the_machine_did_not_disturb() {
    let mut summary = fixture::summary(3);
    for run in summary.runs.iter_mut().filter(|run| run.repetition == 0) {
        run.machine.get_or_insert_default().valid = Some(false);
    }
    let shown = summary.shown_repetitions();
    assert_eq!(shown, [(0, 1), (1, 1), (2, 1)].into());
    let figures: Vec<_> = fixture::figures()
        .into_iter()
        .map(|figures| CellChartData { repetition: shown[&figures.cell], ..figures })
        .collect();
    let text = page(&summary, &figures);
    assert!(text.contains("Figures show repetition 1; the tables show all."));
    assert!(text.contains("the table of links is of repetition 1"));
    // Where another cell shows another one, no number is true of all.
    summary.runs.iter_mut().filter(|run| run.cell > 0).for_each(|run| run.machine = None);
    let text = page(&summary, &fixture::figures());
    assert!(text.contains("the table of links is of the first repetition of each cell that counts"));
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
    assert_eq!(text.matches("<script").count(), 1, "the page's own");
    assert!(!text.contains("<img") && !text.contains("<i>"));
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
fn the_sweep_of_an_invalid_run_names_no_transport() {
    let (mut summary, figures) = fixture::sweep_of_two(3, 4);
    summary.valid = false;
    let text = page(&summary, &figures);
    let document = parse(&text);
    let figure = |id| document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap();
    for id in ["figure-heat-winner-call", "figure-heat-figure-call"] {
        for cell in figure(id).descendants().filter(|node| node.attribute("class") == Some("cell")) {
            let words = text_of(cell);
            assert!(!words.contains("UDP") && !words.contains("TCP"), "{words}");
        }
    }
    let table = figure("sweep").descendants().find(|node| node.has_tag_name("table")).unwrap();
    let words = text_of(table);
    assert!(words.contains("best") && !words.contains("UDP") && !words.contains("TCP"), "{words}");
}

#[test]
fn a_sweep_of_500_cells_stays_a_page_and_says_what_it_leaves_out() {
    let (summary, figures) = fixture::sweep_of_two(10, 17);
    assert_eq!(summary.cells.len(), 510);
    let text = page(&summary, &figures);
    let document = parse(&text);
    assert!(text.contains("Of the 170 combinations the first and the last are drawn"));
    let drawn = "Drawn at 6 of the 10 values of path.up.loss; the other 4 are under Transports compared; the table below has the \
                 best of each.";
    assert!(text.contains(drawn));
    assert!(text.contains("The 510 cells have more flows and links than a page can show"));
    assert!(!text.contains("not drawn"), "what is not drawn is counted where it is said");
    assert!(text.len() < 1_500_000, "{} bytes", text.len());
    let open = |node: &Node<'_, '_>| {
        node.ancestors().all(|outer| !outer.has_tag_name("details") || outer.attribute("open").is_some())
    };
    let rows = document.descendants().filter(|node| node.has_tag_name("tr")).filter(open).count();
    assert!(rows < 40, "{rows} rows stand open");
}

#[test]
fn a_page_has_no_table_for_each_of_more_than_2000_combinations_and_refers_to_the_summary() {
    let (summary, _) = fixture::sweep(2001);
    let text = page(&summary, &[]);
    parse(&text);
    assert!(text.matches("<table").count() < 5 && text.len() < 1_500_000, "{} bytes", text.len());
    assert!(text.contains("The 2001 combinations for call are more than a page has tables for"));
    assert!(
        text.contains("combinations are not shown one by one. All are in summary.json under comparisons.")
    );
    let (summary, _) = fixture::sweep(30);
    assert_eq!(page(&summary, &[]).matches("<table").count(), 1 + 30);
}

#[test]
fn a_heat_map_has_a_cell_with_a_text_for_each_combination() {
    let (summary, figures) = fixture::sweep_of_two(5, 7);
    let text = page(&summary, &figures);
    let document = parse(&text);
    for id in ["figure-heat-winner-call", "figure-heat-figure-call"] {
        let figure = document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap();
        let cells: Vec<_> =
            figure.descendants().filter(|node| node.attribute("class") == Some("cell")).collect();
        assert_eq!(cells.len(), 35, "{id}");
        let part = |cell: &Node<'_, '_>, name| {
            cell.children().find(|child| child.has_tag_name((SVG, name))).map(text_of).unwrap_or_default()
        };
        let mut titles: Vec<String> = cells.iter().map(|cell| part(cell, "title")).collect();
        assert!(cells.iter().all(|cell| !part(cell, "text").is_empty()), "{id}");
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), 35, "{id}: each names its own combination");
    }
    let first = "path.up.delay = 5 ms, path.up.loss = 0%: UDP, TCP or TCP_NODELAY, alike, MOS 4.40";
    assert!(text.contains(first), "{:?}", text.find("path.up.delay = 5 ms, path.up.loss = 0%:"));
}

#[test]
fn the_page_of_a_live_run_has_what_the_path_did_to_probes() {
    let (mut summary, figures) = fixture::sweep_of_two(2, 2);
    let page = |summary: &Summary| {
        let chart_data = &figures;
        html(&Page {
            summary,
            chart_data,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: None,
            sounds: None,
        })
    };
    assert!(!page(&summary).contains("Probes before the run"));
    let way = |passes| PathWaySummary { passes_bytes: Some(passes), ..PathWaySummary::default() };
    let forward =
        PathWaySummary { fails_bytes: Some(1440), is_reported: Some(false), ttl: Some(60), ..way(1420) };
    let (near, mapped) = ("192.0.2.5:4000".to_owned(), "203.0.113.7:51000".to_owned());
    let mapping = Some(MappingSummary { lasts_s: Some(20), is_gone_s: Some(35) });
    let path = PathSummary { version: 4, near, mapped, mapping, forward, back: way(1500) };
    summary.runs[0].path = Some(Box::new(path));
    let page = page(&summary);
    for said in [
        "over IPv4. This host's address is 192.0.2.5:4000 here and 203.0.113.7:51000 there, by a translator.",
        "<th scope=\"row\">largest packet that passes</th><td>1420 B</td><td>1500 B</td>",
        "<th scope=\"row\">a router reports it</th><td>no</td><td>–</td>",
        "A UDP mapping without packets from this host lasts 20 s, and is gone after 35 s.",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_saved_heat_map_says_in_words_what_it_holds_for() {
    let (mut summary, figures) = fixture::sweep_of_two(3, 4);
    let file = |summary: &Summary| {
        let network = Network { animation: crate::animation::tests::two_hosts(), play: None };
        let page = Page {
            summary,
            chart_data: &figures,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: Some(&network),
            sounds: None,
        };
        let files = chart_files(&page);
        let map = files.iter().find(|file| file.name == "heat-winner-call").unwrap().svg.clone();
        // A caption is broken into rows.
        map.replace("</text>", " ").split('>').map(|part| part.split('<').next().unwrap()).collect::<String>()
    };
    let text = file(&summary).split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "loss, up (path.up.loss)",
        "delay, up (path.up.delay)",
        " 0.2% ",
        " 19 ms ",
        "MOS for G.711 without concealment, adaptive playout.",
        "Beside call: upload.",
        "Links of the first cell: </script>up 1 Mb/s.",
        "U+2: UDP, TCP and TCP_NODELAY",
    ] {
        let said = said.replace("</script>", "&lt;/script&gt;");
        assert!(text.contains(&said), "no {said} in {text}");
    }
    for run in &mut summary.runs {
        run.flows.remove("upload");
    }
    fixture::refresh(&mut summary);
    let text = file(&summary).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("No other traffic beside call."), "{text}");
}

/// Scores as measured have digits behind the second: means of them differ in the last bit by the order in
/// which they are summed.
#[test]
fn the_winners_colour_fills_its_cell_whatever_the_figures() {
    let (mut summary, figures) = fixture::sweep_of_two(12, 4);
    for run in &mut summary.runs {
        let call = run.flows.get_mut("call").and_then(|flow| flow.call.as_mut()).unwrap();
        let at = (run.cell * 3 + run.repetition) as f64;
        call.mos = Some(if run.cell % 3 == 0 { 4.1 } else { 2.3 } + (at * 1.618).fract() / 17.0);
    }
    fixture::refresh(&mut summary);
    let text = page(&summary, &figures);
    let document = parse(&text);
    let figure =
        document.descendants().find(|node| node.attribute("id") == Some("figure-heat-winner-call")).unwrap();
    let fills: Vec<&str> = figure
        .descendants()
        .filter(|node| node.attribute("class") == Some("cell"))
        .filter_map(|cell| {
            cell.children().find(|child| child.has_tag_name((SVG, "rect")))?.attribute("style")
        })
        .collect();
    assert_eq!(fills.len(), 48);
    for fill in fills {
        assert_eq!(fill, "fill:var(--t-udp);fill-opacity:.55");
    }
}

/// The page's module reads the values of a sweep from the panel, as the scenario writes them.
#[test]
fn a_panel_over_a_sweep_has_its_values_as_written_at_the_places_of_its_lines() {
    let written = |summary: &Summary| {
        let text = page(summary, &[]);
        let document = parse(&text);
        let panel = document.descendants().find(|node| node.attribute("data-kind") == Some("sweep")).unwrap();
        let values: Vec<(f64, String)> =
            serde_json::from_str(panel.attribute("data-swept").unwrap()).unwrap();
        let line = panel.descendants().find(|node| node.attribute("class") == Some("series")).unwrap();
        let corners = line.attribute("d").unwrap().trim_start_matches('M').split('L');
        let places: Vec<f64> =
            corners.map(|corner| corner.split(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(values.iter().map(|(x, _)| *x).collect::<Vec<_>>(), places);
        values.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let (mut summary, _) = fixture::sweep_of_two(1, 3);
    assert_eq!(written(&summary), ["5 ms", "12 ms", "19 ms"]);
    for run in &mut summary.runs {
        let (at, word) = (run.cell / 3, ["drop-tail", "codel", "fq"]);
        run.sweep.remove("path.up.delay");
        run.sweep.insert("path.up.queue".to_owned(), word[at as usize].into());
    }
    fixture::refresh(&mut summary);
    assert_eq!(written(&summary), ["drop-tail", "codel", "fq"]);
}

#[test]
fn a_sweep_has_a_line_and_a_band_for_each_transport() {
    let (mut summary, figures) = fixture::sweep_of_two(4, 1);
    for run in &mut summary.runs {
        let call = run.flows.get_mut("call").and_then(|flow| flow.call.as_mut()).unwrap();
        call.mos = call.mos.map(|mos| mos - 0.02 * run.repetition as f64);
    }
    fixture::refresh(&mut summary);
    let text = page(&summary, &figures);
    let document = parse(&text);
    let figure =
        document.descendants().find(|node| node.attribute("id") == Some("figure-sweep-call")).unwrap();
    for (class, expected) in [("series", 3), ("band", 3), ("mark", 3)] {
        let paths = figure
            .descendants()
            .filter(|node| node.attribute("class") == Some(class) && node.attribute("data-name").is_some());
        assert_eq!(paths.count(), expected, "{class}");
    }
    assert!(!text.contains("figure-heat-"), "one parameter has no map");
}

#[test]
fn each_chart_becomes_a_file_that_needs_no_page() {
    let (summary, figures) = fixture::sweep_of_two(3, 4);
    let network = Network { animation: crate::animation::tests::two_hosts(), play: None };
    let page = Page {
        summary: &summary,
        chart_data: &figures,
        scenario_toml: fixture::SCENARIO,
        command: "",
        changes: &[],
        network: Some(&network),
        sounds: None,
    };
    let text = html(&page);
    let files = chart_files(&page);
    let drawings = parse(&text).descendants().filter(|node| node.attribute("role") == Some("img")).count();
    assert_eq!(files.len(), drawings);
    assert!(files.iter().any(|file| file.name == "network"));
    for ChartFile { name, svg: file } in &files {
        let document = parse(file);
        let root = document.root_element();
        assert!(root.has_tag_name((SVG, "svg")) && text.contains(&format!("id=\"figure-{name}\"")));
        assert!(!file.contains("@media") && !file.contains("href"), "{name}");
        assert_eq!(
            file.matches("http").count(),
            file.matches(SVG).count(),
            "{name} names a place on the net"
        );
        for view in file.split("var(--").skip(1).filter_map(|rest| rest.split_once(')')) {
            assert!(file.contains(&format!("--{}: ", view.0)), "{name} has no {}", view.0);
        }
    }
    let distribution = &files.iter().find(|file| file.name == "first-ccdf-rtt").unwrap().svg;
    assert!(distribution.contains(">TCP_NODELAY</text>"), "the legend is in it");
    assert!(distribution.contains("delay: how many messages came later</text>"), "and the title");
    let map = &files.iter().find(|file| file.name.starts_with("heat-winner")).unwrap().svg;
    assert!(map.contains("nothing is usable"), "and the caption");
}

#[test]
fn the_network_of_a_sweep_names_its_cell() {
    let network = Network { animation: crate::animation::tests::two_hosts(), play: None };
    let page_of = |(summary, figures): &(Summary, Vec<CellChartData>)| {
        html(&Page {
            summary,
            chart_data: figures,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: Some(&network),
            sounds: None,
        })
    };
    let swept = page_of(&fixture::sweep_of_two(2, 3));
    assert!(swept.contains("As in cell 0: path.up.delay = 5 ms, path.up.loss = 0.0."));
    assert!(
        !page_of(&(fixture::summary(1), fixture::figures())).contains("As in cell 0"),
        "one network for all"
    );
    assert!(!page_of(&fixture::single()).contains("As in cell 0"));
}

#[test]
fn the_contents_lead_to_every_section() {
    let (summary, figures) = fixture::sweep_of_two(2, 3);
    let text = page(&summary, &figures);
    let document = parse(&text);
    let nav = document.descendants().find(|node| node.has_tag_name("nav")).unwrap();
    let targets: Vec<&str> =
        nav.descendants().filter_map(|node| node.attribute("href")?.strip_prefix('#')).collect();
    assert_eq!(targets, ["answer", "sweep", "compared", "figures", "cells", "source"]);
    for target in targets {
        assert!(document.descendants().any(|node| node.attribute("id") == Some(target)), "{target}");
    }
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
