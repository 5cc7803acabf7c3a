//! Reads the `[[campaign]]` entries: they say which measurements of a campaign are which cells. The study
//! does not run these cells. It judges the records of the campaign.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use super::Loader;
use super::axes::{AxisValue, combinations};
use crate::arena::ArenaName;
use crate::file::CampaignEntry;
use crate::mistakes::names_help;
use crate::study::{BASE_SET, CampaignCell, Cell, CellRuns};

impl Loader<'_, '_> {
    /// Adds the cells that a campaign measures to `cells`, and returns their measurements. Such a cell keeps
    /// what the cell of the same name keeps in the simulator.
    pub(super) fn add_campaign_cells(&mut self, cells: &mut Vec<Cell>) -> Vec<CampaignCell> {
        self.require_no_runs_in_campaign();
        let mut simulated: BTreeMap<&str, &Cell> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.assumption == BASE_SET) {
            simulated.entry(&cell.name).or_insert(cell);
        }
        let mut names = BTreeSet::new();
        let mut campaign_cells = Vec::new();
        let mut added = Vec::new();
        for entry in &self.file.campaign {
            self.require_equal_parts(&entry.each, &entry.cell.span(), "campaign.each");
            for combination in combinations(&entry.each) {
                let Some(measured) = self.campaign_cell(entry, &combination) else { continue };
                self.require_cell(&measured.cell, entry.cell.span(), "campaign.cell");
                if !names.insert(measured.cell.clone()) {
                    let message = format!("duplicate cell \"{}\"", measured.cell);
                    self.mistakes.add(entry.cell.span(), "campaign.cell", message);
                }
                let Some(&model) = simulated.get(measured.cell.as_str()) else { continue };
                self.require_flows(entry, model);
                let index = (cells.len() + added.len()) as u64;
                // All measurements are judged, however many there are, so the number of repetitions is not
                // used.
                let full_runs = CellRuns { repeat: 1, ..model.full_runs.clone() };
                added.push(Cell {
                    index,
                    arena: ArenaName::Campaign,
                    full_runs,
                    quick_runs: None,
                    ..model.clone()
                });
                campaign_cells.push(measured);
            }
        }
        cells.extend(added);
        campaign_cells
    }

    fn campaign_cell(
        &mut self,
        entry: &CampaignEntry,
        combination: &[AxisValue<'_>],
    ) -> Option<CampaignCell> {
        let mut fill =
            |text: &Spanned<String>, key: &str| self.fill_axes(text.get_ref(), combination, text.span(), key);
        let cell = fill(&entry.cell, "campaign.cell");
        let near = fill(&entry.near, "campaign.near");
        let far = fill(&entry.far, "campaign.far");
        let measure = fill(&entry.measure, "campaign.measure");
        let mut flows = BTreeMap::new();
        for (flow, transport) in &entry.flows {
            flows.insert(flow.clone(), fill(transport, "campaign.flows"));
        }
        let day = match &entry.day {
            Some(day) => Some(self.campaign_day(day, combination)?),
            None => None,
        };
        Some(CampaignCell { cell, near, far, measure, day, flows })
    }

    fn campaign_day(&mut self, entry: &Spanned<String>, combination: &[AxisValue<'_>]) -> Option<u64> {
        let text = self.fill_axes(entry.get_ref(), combination, entry.span(), "campaign.day");
        let day = text.parse::<u64>().ok().filter(|day| *day > 0);
        if day.is_none() {
            let message = format!("found \"{text}\", expected a day from 1");
            self.mistakes.add(entry.span(), "campaign.day", message);
        }
        day
    }

    /// Records a mistake for each flow of the entry that the scenario of `cell` does not have.
    fn require_flows(&mut self, entry: &CampaignEntry, cell: &Cell) {
        let flow_names: BTreeSet<&str> =
            cell.full_runs.scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        for (flow, transport) in &entry.flows {
            if !flow_names.contains(flow.as_str()) {
                let message = format!("\"{}\" has no flow called \"{flow}\"", cell.name);
                let help = names_help(flow_names.iter().copied());
                self.mistakes.add_with_help(transport.span(), "campaign.flows", message, help);
            }
        }
    }

    /// Records a mistake if cells are to run in a campaign.
    fn require_no_runs_in_campaign(&mut self) {
        let message = "a study cannot run cells in a campaign; a campaign runs by a file of its own, and [[campaign]] says which cells it measures";
        if self.file.arena.contains_key(&ArenaName::Campaign) {
            self.mistakes.add(0..0, "arena.campaign", message);
        }
        for entry in &self.file.cells {
            if entry.arenas.as_ref().is_some_and(|arenas| arenas.contains(&ArenaName::Campaign)) {
                self.mistakes.add(entry.name.span(), "cells.arenas", message);
            }
        }
    }
}
