//! Joins several runs into one summary, so that one page has them side by side.
//!
//! The joined summary has a further swept key, `run`, whose values are the labels of the runs. So the same
//! tables and charts show several runs. A reader wants to see the differences between the runs (for example
//! the simulator beside the emulator, or this week beside last week), so no transport is named the best
//! across them.
//!
//! Begin to read with [`side_by_side`].

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::summary::{CellSummary, Clock, RunSummary, SUMMARY_FORMAT, Summary, Understood};
use talkpath_measure::warning;

use crate::number::distinct;
use crate::view::RUN_KEY;

/// One of several runs.
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

/// Joins the runs. A cell is followed by the cells of the other runs with the same swept values. Returns
/// `None` if there is no run.
pub fn side_by_side(parts: &[RunPart]) -> Option<(Summary, Vec<CellChartData>)> {
    let mut summary = join_facts(parts)?;
    let mut chart_data = Vec::new();
    let parts_by_cell: Vec<PartByCell<'_>> = parts.iter().map(PartByCell::new).collect();
    for (new_number, PartCell { part, cell, .. }) in (0..).zip(cells_in_order(parts)) {
        let label = &parts[part].label;
        let mut joined_cell = CellSummary { cell: new_number, ..cell.clone() };
        joined_cell.sweep.insert(RUN_KEY.to_owned(), Value::from(label.as_str()));
        for run in parts_by_cell[part].runs(cell.cell) {
            let sweep = joined_cell.sweep.clone();
            summary.runs.push(RunSummary { cell: new_number, sweep, ..run.clone() });
        }
        for cell_data in parts_by_cell[part].chart_data(cell.cell) {
            let joined_label = join_labels(&cell_data.label, label);
            chart_data.push(CellChartData { cell: new_number, label: joined_label, ..cell_data.clone() });
        }
        summary.cells.push(joined_cell);
    }
    Some((summary, chart_data))
}

/// A cell of one of the runs.
struct PartCell<'a> {
    /// Cells with the same swept values have one number.
    group: usize,
    /// The index of the run.
    part: usize,
    cell: &'a CellSummary,
}

/// The cells of all runs. Cells with the same swept values follow each other, in the order of the runs.
fn cells_in_order(parts: &[RunPart]) -> Vec<PartCell<'_>> {
    let mut cells: Vec<PartCell<'_>> = Vec::new();
    let mut group_by_values: BTreeMap<String, usize> = BTreeMap::new();
    for (part, RunPart { summary, .. }) in parts.iter().enumerate() {
        for cell in &summary.cells {
            let values = serde_json::to_string(&cell.sweep).unwrap_or_default();
            let group = *group_by_values.entry(values).or_insert(cells.len());
            cells.push(PartCell { group, part, cell });
        }
    }
    cells.sort_by_key(|part_cell| (part_cell.group, part_cell.part, part_cell.cell.cell));
    cells
}

/// The repetitions and the chart data of one run, by the number of their cell.
struct PartByCell<'a> {
    runs: BTreeMap<u64, Vec<&'a RunSummary>>,
    chart_data: BTreeMap<u64, Vec<&'a CellChartData>>,
}

impl<'a> PartByCell<'a> {
    fn new(part: &'a RunPart) -> Self {
        let mut by_cell = Self { runs: BTreeMap::new(), chart_data: BTreeMap::new() };
        for run in &part.summary.runs {
            by_cell.runs.entry(run.cell).or_default().push(run);
        }
        for cell_data in &part.chart_data {
            by_cell.chart_data.entry(cell_data.cell).or_default().push(cell_data);
        }
        by_cell
    }

    fn runs(&self, cell: u64) -> impl Iterator<Item = &'a RunSummary> {
        self.runs.get(&cell).into_iter().flatten().copied()
    }

    fn chart_data(&self, cell: u64) -> impl Iterator<Item = &'a CellChartData> {
        self.chart_data.get(&cell).into_iter().flatten().copied()
    }
}

fn join_labels(cell_label: &str, run_label: &str) -> String {
    let labels: Vec<&str> = [cell_label, run_label].into_iter().filter(|label| !label.is_empty()).collect();
    labels.join(", ")
}

/// Joins what a page has once: names are listed, times are added, and the runs are valid if all of them are.
/// Returns `None` if there is no run.
fn join_facts(parts: &[RunPart]) -> Option<Summary> {
    let first = &parts.first()?.summary;
    let listed = |text: fn(&Summary) -> &str| {
        distinct(parts.iter().map(|part| text(&part.summary).to_owned())).join(", ")
    };
    let lines = |lines: fn(&Understood) -> &Vec<String>| {
        distinct(parts.iter().flat_map(|part| lines(&part.summary.understood)).cloned())
    };
    let clocks_are_equal = parts.iter().all(|part| part.summary.clock == first.clock);
    let clock = if clocks_are_equal {
        first.clock.clone()
    } else {
        Clock {
            offset_ms: None,
            skew_ppm: None,
            uncertainty_ms: None,
            change_uncertainty_ms: None,
            synchronised: parts.iter().all(|part| part.summary.clock.synchronised),
            trusted: parts.iter().all(|part| part.summary.clock.trusted),
            why: listed(|summary| &summary.clock.why),
        }
    };
    Some(Summary {
        format: SUMMARY_FORMAT,
        talkpath: listed(|summary| &summary.talkpath),
        name: listed(|summary| &summary.name),
        arena: listed(|summary| &summary.arena),
        started: listed(|summary| &summary.started),
        wall_s: parts.iter().map(|part| part.summary.wall_s).sum(),
        cpu_s: parts.iter().map(|part| part.summary.cpu_s).sum(),
        valid: parts.iter().all(|part| part.summary.valid),
        warnings: join_warnings(parts),
        percentiles: listed(|summary| &summary.percentiles),
        clock,
        program: parts.first().and_then(|part| part.summary.program.clone()),
        runs: Vec::new(),
        cells: Vec::new(),
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood {
            setting: lines(|understood| &understood.setting),
            traces: lines(|understood| &understood.traces),
            losses: lines(|understood| &understood.losses),
            fragments: lines(|understood| &understood.fragments),
            assumed_queues: lines(|understood| &understood.assumed_queues),
        },
    })
}

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
        });
        assert!(page.contains(&format!("UDP, {long}</th>")), "a row says in full which run it is");
        assert!(side_by_side(&[]).is_none());
    }
}
