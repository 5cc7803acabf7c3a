//! Joins the results of several runs into one summary, so that one page shows them side by side.
//!
//! - A *run* is one use of talkpath. Its results are a [`RunPart`]: a summary and the data of its charts.
//! - A *cell* is one combination of swept values. It runs in one or more *repetitions*, each of which has a
//!   [`RunSummary`].
//! - A *page cell* is a cell of the joined summary. Cells of several runs with equal swept values become page
//!   cells that follow each other.
//!
//! The joined summary has a further swept key, `run`, whose values are the labels of the runs. So the tables
//! and charts of a sweep can show several runs. A reader wants to see the differences between the runs (for
//! example the simulator beside the emulator, or this week beside last week), so no transport is named the
//! best across them.
//!
//! Begin to read with [`side_by_side`].

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::summary::{CellSummary, Clock, RunSummary, SUMMARY_FORMAT, Summary, Understood};
use talkpath_measure::warning;

use crate::number::distinct;
use crate::view::RUN_KEY;

/// The results of one of several runs.
#[derive(Clone, Debug)]
pub struct RunPart {
    /// The label that distinguishes the run from the others, for example its arena or the name of its
    /// directory.
    pub label: String,
    /// The summary of the run.
    pub summary: Summary,
    /// The data of the run's charts.
    pub chart_data: Vec<CellChartData>,
}

/// Joins the results of several runs. Returns `None` if `parts` is empty.
pub fn side_by_side(parts: &[RunPart]) -> Option<(Summary, Vec<CellChartData>)> {
    let mut joined_summary = join_summaries(parts)?;
    let mut joined_chart_data = Vec::new();
    for (page_number, page_cell) in (0..).zip(order_page_cells(parts)) {
        let PageCell { cell, repetitions, chart_data, run_label } = page_cell;
        let mut sweep = cell.sweep.clone();
        sweep.insert(RUN_KEY.to_owned(), Value::from(run_label));
        for repetition in repetitions {
            let sweep = sweep.clone();
            joined_summary.runs.push(RunSummary { cell: page_number, sweep, ..repetition.clone() });
        }
        for cell_data in chart_data {
            let label = join_labels(&cell_data.label, run_label);
            joined_chart_data.push(CellChartData { cell: page_number, label, ..cell_data.clone() });
        }
        joined_summary.cells.push(CellSummary { cell: page_number, sweep, ..cell.clone() });
    }
    Some((joined_summary, joined_chart_data))
}

/// A cell of one run, with everything that the page shows of it.
struct PageCell<'a> {
    run_label: &'a str,
    cell: &'a CellSummary,
    repetitions: Vec<&'a RunSummary>,
    chart_data: Vec<&'a CellChartData>,
}

/// Lists the cells of all runs. Cells with equal swept values follow each other, in the order of the runs.
/// The groups of such cells are in the order in which their values first appear.
fn order_page_cells(parts: &[RunPart]) -> Vec<PageCell<'_>> {
    let mut groups: Vec<Vec<PageCell<'_>>> = Vec::new();
    let mut group_by_sweep: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts {
        for page_cell in page_cells_of_run(part) {
            let group = *group_by_sweep.entry(sweep_key(page_cell.cell)).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(page_cell);
        }
    }
    groups.into_iter().flatten().collect()
}

/// Writes the swept values of a cell as a text that is equal for equal values. JSON values have no order, so
/// they cannot be keys of a map themselves.
fn sweep_key(cell: &CellSummary) -> String {
    let mut key = String::new();
    for (name, value) in &cell.sweep {
        key.push_str(&format!("{name:?}: {value}\n"));
    }
    key
}

/// Lists the cells of one run, each with its repetitions and its chart data.
fn page_cells_of_run(part: &RunPart) -> Vec<PageCell<'_>> {
    let mut repetitions_by_cell: BTreeMap<u64, Vec<&RunSummary>> = BTreeMap::new();
    for repetition in &part.summary.runs {
        repetitions_by_cell.entry(repetition.cell).or_default().push(repetition);
    }
    let mut chart_data_by_cell: BTreeMap<u64, Vec<&CellChartData>> = BTreeMap::new();
    for cell_data in &part.chart_data {
        chart_data_by_cell.entry(cell_data.cell).or_default().push(cell_data);
    }
    let mut page_cells = Vec::new();
    for cell in &part.summary.cells {
        page_cells.push(PageCell {
            run_label: &part.label,
            cell,
            repetitions: repetitions_by_cell.remove(&cell.cell).unwrap_or_default(),
            chart_data: chart_data_by_cell.remove(&cell.cell).unwrap_or_default(),
        });
    }
    page_cells
}

/// Joins two labels with a comma. An empty label is left out.
fn join_labels(cell_label: &str, run_label: &str) -> String {
    let labels: Vec<&str> = [cell_label, run_label].into_iter().filter(|label| !label.is_empty()).collect();
    labels.join(", ")
}

/// Joins what a page shows once for all runs. Different names are listed, and durations are added up. The
/// joined summary is valid if every run is valid. Its cells and repetitions are still empty. Returns `None`
/// if `parts` is empty.
fn join_summaries(parts: &[RunPart]) -> Option<Summary> {
    let first_summary = &parts.first()?.summary;
    Some(Summary {
        format: SUMMARY_FORMAT,
        talkpath: list_distinct(parts, |summary| &summary.talkpath),
        name: list_distinct(parts, |summary| &summary.name),
        arena: list_distinct(parts, |summary| &summary.arena),
        started: list_distinct(parts, |summary| &summary.started),
        wall_s: parts.iter().map(|part| part.summary.wall_s).sum(),
        cpu_s: parts.iter().map(|part| part.summary.cpu_s).sum(),
        valid: parts.iter().all(|part| part.summary.valid),
        warnings: join_warnings(parts),
        percentiles: list_distinct(parts, |summary| &summary.percentiles),
        clock: join_clocks(parts, &first_summary.clock),
        program: first_summary.program.clone(),
        runs: Vec::new(),
        cells: Vec::new(),
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: join_understood(parts),
    })
}

/// Lists the different texts that the summaries have in one field, with commas.
fn list_distinct(parts: &[RunPart], field: fn(&Summary) -> &str) -> String {
    distinct(parts.iter().map(|part| field(&part.summary))).join(", ")
}

/// Joins the clocks of the runs. If the clocks differ, the joined clock has no offset and no uncertainty,
/// because such a figure describes the two clocks of a single run.
fn join_clocks(parts: &[RunPart], first_clock: &Clock) -> Clock {
    if parts.iter().all(|part| part.summary.clock == *first_clock) {
        return first_clock.clone();
    }
    Clock {
        offset_ms: None,
        skew_ppm: None,
        uncertainty_ms: None,
        change_uncertainty_ms: None,
        synchronised: parts.iter().all(|part| part.summary.clock.synchronised),
        trusted: parts.iter().all(|part| part.summary.clock.trusted),
        why: list_distinct(parts, |summary| &summary.clock.why),
    }
}

/// Joins the remarks on how talkpath understood the scenarios. Each different remark is listed once.
fn join_understood(parts: &[RunPart]) -> Understood {
    let distinct_remarks = |remarks: fn(&Understood) -> &Vec<String>| {
        distinct(parts.iter().flat_map(|part| remarks(&part.summary.understood)).cloned())
    };
    Understood {
        setting: distinct_remarks(|understood| &understood.setting),
        traces: distinct_remarks(|understood| &understood.traces),
        losses: distinct_remarks(|understood| &understood.losses),
        fragments: distinct_remarks(|understood| &understood.fragments),
        assumed_queues: distinct_remarks(|understood| &understood.assumed_queues),
        links_of_cells: distinct_remarks(|understood| &understood.links_of_cells),
    }
}

/// Joins the warnings of the runs. Each warning names its run.
fn join_warnings(parts: &[RunPart]) -> Vec<String> {
    let mut warnings = Vec::new();
    for RunPart { label, summary, .. } in parts {
        warnings.extend(summary.warnings.iter().map(|text| warning::of_part(label, text)));
    }
    warning::sort(&mut warnings);
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::conditions;
    use crate::fixture;
    use crate::view::CellView;

    fn parts() -> Vec<RunPart> {
        ["sim", "emu"]
            .map(|label| RunPart {
                label: label.to_owned(),
                summary: Summary { arena: label.to_owned(), ..fixture::summary(1) },
                chart_data: fixture::figures(),
            })
            .into()
    }

    #[test]
    fn a_transport_of_one_run_is_beside_the_same_transport_of_the_other() {
        let (summary, figures) = side_by_side(&parts()).unwrap();
        let conditions = conditions(&summary, "call");
        assert_eq!(conditions.len(), 1);
        let labels: Vec<String> =
            conditions[0].cells.iter().map(|cell| cell.transport("call").label).collect();
        assert_eq!(
            labels,
            ["UDP, sim", "UDP, emu", "TCP, sim", "TCP, emu", "TCP_NODELAY, sim", "TCP_NODELAY, emu"]
        );
        assert_eq!(summary.arena, "sim, emu");
        for drawn in &figures {
            let cell = CellView::all(&summary).into_iter().find(|view| view.cell.cell == drawn.cell).unwrap();
            assert_eq!(cell.flow("call").unwrap().transport, drawn.flows[0].transport);
        }
    }

    #[test]
    fn the_page_of_several_names_no_winner_and_is_as_valid_as_its_worst_run() {
        let mut parts = parts();
        parts[1].summary.valid = false;
        parts[1].summary.warnings = vec!["slow".to_owned(), "invalid: late".to_owned()];
        let (summary, figures) = side_by_side(&parts).unwrap();
        assert!(crate::comparisons(&summary).is_empty());
        let page = crate::html(&crate::Page {
            summary: &summary,
            chart_data: &figures,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: None,
            sounds: None,
        });
        assert!(page.contains("Invalid run") && summary.warnings == ["invalid: emu: late", "emu: slow"]);
        assert!(!page.contains("class=\"verdict\"") && page.contains("UDP, emu"));
        assert!(!page.contains("ranking"), "the rule stands without a ranking");
    }

    #[test]
    fn sweeps_side_by_side_share_axes_and_keep_colours_and_no_best_is_named() {
        let (one, chart_data) = fixture::sweep_of_two(2, 3);
        let part = |label: &str| RunPart {
            label: label.to_owned(),
            summary: one.clone(),
            chart_data: chart_data.clone(),
        };
        let (summary, figures) = side_by_side(&[part("monday"), part("tuesday")]).unwrap();
        let page = crate::html(&crate::Page {
            summary: &summary,
            chart_data: &figures,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: None,
            sounds: None,
        });
        assert!(!page.contains("class=\"verdict\"") && !page.contains("figure-heat-"));
        let line = |name: &str| {
            let at = page.find(&format!("data-name=\"{name}\" d=\"M")).unwrap();
            page[..at].rsplit("style=\"").next().unwrap().split('"').next().unwrap().to_owned()
        };
        let has_colour_of_udp = |style: &str| style.contains("var(--t-udp)");
        assert!(has_colour_of_udp(&line("UDP, monday")) && has_colour_of_udp(&line("UDP, tuesday")));
        assert_ne!(legend_of(&page, "UDP, monday"), legend_of(&page, "UDP, tuesday"));
    }

    #[test]
    fn a_run_that_did_not_sweep_a_key_has_no_place_on_its_axis() {
        let (two, _) = fixture::sweep_of_two(2, 3);
        let (one, _) = fixture::sweep(4);
        let part = |label: &str, summary: &Summary| RunPart {
            label: label.to_owned(),
            summary: summary.clone(),
            chart_data: Vec::new(),
        };
        let page_of = |parts: &[RunPart]| {
            let (summary, figures) = side_by_side(parts).unwrap();
            crate::html(&crate::Page {
                summary: &summary,
                chart_data: &figures,
                scenario_toml: "",
                command: "",
                changes: &[],
                network: None,
                sounds: None,
            })
        };
        let page = page_of(&[part("both", &two), part("loss", &one)]);
        let says = "4 more combinations do not set all of path.up.delay and path.up.loss and are not drawn.";
        assert!(page.contains(says));
        let lines = page.split_once("id=\"figure-sweep-call\"").unwrap().1.split_once("</figure>").unwrap().0;
        let path = |name: &str| {
            let line = lines
                .split("class=\"series\"")
                .find(|path| path.contains(&format!("data-name=\"{name}\" d=")))?;
            Some(line.split_once(" d=\"M")?.1.split('"').next()?.len())
        };
        assert!(path("UDP, both").is_some_and(|length| length > 0));
        assert_eq!(path("UDP, loss"), None, "it has no delay");

        let mut other = two.clone();
        for sweep in other
            .cells
            .iter_mut()
            .map(|cell| &mut cell.sweep)
            .chain(other.runs.iter_mut().map(|run| &mut run.sweep))
        {
            if let Some(delay) = sweep.remove("path.up.delay") {
                sweep.insert("path.down.delay".to_owned(), delay);
            }
        }
        let page = page_of(&[part("up", &two), part("down", &other)]);
        assert!(!page.contains("figure-sweep-call"), "no combination has all three keys");
    }

    /// The style of a name's sample.
    fn legend_of(page: &str, name: &str) -> String {
        let item = page.split_once(&format!("<span data-name=\"{name}\">")).unwrap().1;
        item.split_once("style=\"").unwrap().1.split('"').next().unwrap().to_owned()
    }

    #[test]
    fn runs_without_a_sweep_share_one_table() {
        let (one, chart_data) = fixture::single();
        let part = |label: &str| RunPart {
            label: label.to_owned(),
            summary: one.clone(),
            chart_data: chart_data.clone(),
        };
        let (summary, figures) = side_by_side(&[part("monday"), part("tuesday")]).unwrap();
        let page = crate::html(&crate::Page {
            summary: &summary,
            chart_data: &figures,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: None,
            sounds: None,
        });
        assert!(page.contains("Transports compared") && page.contains(", tuesday"));
        let long = "the same path, and ten times as much in its queue";
        let (summary, figures) = side_by_side(&[part("monday"), part(long)]).unwrap();
        let page = crate::html(&crate::Page {
            summary: &summary,
            chart_data: &figures,
            scenario_toml: "",
            command: "",
            changes: &[],
            network: None,
            sounds: None,
        });
        assert!(page.contains(&format!("UDP, {long}</th>")), "a row says in full which run it is");
        assert!(side_by_side(&[]).is_none());
    }
}
