//! Several runs on one page: one summary that holds every run's cells, distinguished by a sweep key of its
//! own, so that the same tables and figures lay them side by side. What differs between runs is what a reader
//! wants to see here (the simulator beside the emulator, this week beside last), so no transport is named the
//! winner across them.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::chart_data::CellFigures;
use talkpath_measure::summary::{Clock, SUMMARY_FORMAT, Summary, Understood};
use talkpath_measure::warning;

use crate::view::RUN_KEY;

/// One run of several.
#[derive(Clone, Debug)]
pub struct RunPart {
    /// What distinguishes it from the others: an arena, or its directory's name.
    pub label: String,
    /// All its tables.
    pub summary: Summary,
    /// All its figures.
    pub chart_data: Vec<CellFigures>,
}

/// The runs as one summary: each cell comes beside the same cell of the other runs. `None` without a run.
pub fn side_by_side(parts: &[RunPart]) -> Option<(Summary, Vec<CellFigures>)> {
    let mut all = together(parts)?;
    // The place of the first cell with the same values.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut cells = Vec::new();
    for (part, RunPart { label, summary, .. }) in parts.iter().enumerate() {
        for cell in &summary.cells {
            let sweep = serde_json::to_string(&cell.sweep).unwrap_or_default();
            let place = *places.entry(sweep).or_insert(cells.len());
            cells.push((place, part, cell.clone(), label.clone()));
        }
    }
    cells.sort_by_key(|(place, part, cell, _)| (*place, *part, cell.cell));
    let runs: Vec<_> = parts.iter().map(|part| by_cell(&part.summary.runs, |run| run.cell)).collect();
    let drawn: Vec<_> = parts.iter().map(|part| by_cell(&part.chart_data, |figures| figures.cell)).collect();
    let mut figures = Vec::new();
    for (number, (_, part, mut cell, label)) in (0..).zip(cells) {
        let old = core::mem::replace(&mut cell.cell, number);
        cell.sweep.insert(RUN_KEY.to_owned(), Value::from(label.as_str()));
        for mut run in runs[part].get(&old).into_iter().flatten().copied().cloned() {
            run.cell = number;
            run.sweep.clone_from(&cell.sweep);
            all.runs.push(run);
        }
        for mut drawn in drawn[part].get(&old).into_iter().flatten().copied().cloned() {
            drawn.cell = number;
            drawn.label = [drawn.label.as_str(), &label]
                .iter()
                .filter(|known| !known.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
            figures.push(drawn);
        }
        all.cells.push(cell);
    }
    Some((all, figures))
}

/// The items of each cell, which `cell` says of an item.
fn by_cell<T>(items: &[T], cell: impl Fn(&T) -> u64) -> BTreeMap<u64, Vec<&T>> {
    let mut found: BTreeMap<u64, Vec<&T>> = BTreeMap::new();
    items.iter().for_each(|item| found.entry(cell(item)).or_default().push(item));
    found
}

/// What the page has once: names joined, times added, and only as valid as the least valid run.
fn together(parts: &[RunPart]) -> Option<Summary> {
    let first = parts.first()?;
    let joined = |of: &dyn Fn(&Summary) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        for name in parts.iter().map(|part| of(&part.summary)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    let warnings = parts
        .iter()
        .flat_map(|part| part.summary.warnings.iter().map(|text| warning::of_part(&part.label, text)));
    let mut warnings: Vec<String> = warnings.collect();
    warning::sort(&mut warnings);
    let clocks_agree = parts.iter().all(|part| part.summary.clock == first.summary.clock);
    let clock = match clocks_agree {
        true => first.summary.clock.clone(),
        false => Clock {
            offset_ms: None,
            skew_ppm: None,
            uncertainty_ms: None,
            change_uncertainty_ms: None,
            synchronised: parts.iter().all(|part| part.summary.clock.synchronised),
            trusted: parts.iter().all(|part| part.summary.clock.trusted),
            why: joined(&|summary| &summary.clock.why),
        },
    };
    let said = |of: &dyn Fn(&Understood) -> &Vec<String>| {
        let mut lines: Vec<String> = Vec::new();
        for line in parts.iter().flat_map(|part| of(&part.summary.understood)) {
            if !lines.contains(line) {
                lines.push(line.clone());
            }
        }
        lines
    };
    Some(Summary {
        format: SUMMARY_FORMAT,
        talkpath: joined(&|summary| &summary.talkpath),
        name: joined(&|summary| &summary.name),
        arena: joined(&|summary| &summary.arena),
        started: joined(&|summary| &summary.started),
        wall_s: parts.iter().map(|part| part.summary.wall_s).sum(),
        cpu_s: parts.iter().map(|part| part.summary.cpu_s).sum(),
        valid: parts.iter().all(|part| part.summary.valid),
        warnings,
        percentiles: joined(&|summary| &summary.percentiles),
        clock,
        runs: Vec::new(),
        cells: Vec::new(),
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood {
            setting: said(&|understood| &understood.setting),
            traces: said(&|understood| &understood.traces),
            losses: said(&|understood| &understood.losses),
            fragments: said(&|understood| &understood.fragments),
            assumed_queues: said(&|understood| &understood.assumed_queues),
        },
    })
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
    fn a_transport_of_one_run_stands_beside_the_same_of_the_other() {
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
        let (one, drawn) = fixture::sweep_of_two(2, 3);
        let part = |label: &str| RunPart {
            label: label.to_owned(),
            summary: one.clone(),
            chart_data: drawn.clone(),
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
        let is_line = |text: &str| text.contains("var(--t-udp)");
        assert!(is_line(&line("UDP, monday")) && is_line(&line("UDP, tuesday")));
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
                .find(|it| it.contains(&format!("data-name=\"{name}\" d=")))?;
            Some(line.split_once(" d=\"M")?.1.split('"').next()?.len())
        };
        assert!(path("UDP, both").is_some_and(|length| length > 0));
        assert_eq!(path("UDP, loss"), None, "it has no delay");

        let mut other = two.clone();
        for sweep in other
            .cells
            .iter_mut()
            .map(|it| &mut it.sweep)
            .chain(other.runs.iter_mut().map(|it| &mut it.sweep))
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
    fn runs_without_a_sweep_stand_in_one_table() {
        let (one, drawn) = fixture::single();
        let part = |label: &str| RunPart {
            label: label.to_owned(),
            summary: one.clone(),
            chart_data: drawn.clone(),
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
