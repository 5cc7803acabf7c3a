//! Which measurements of a campaign are cells: names of hosts, days and transports, cell by cell.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use super::Loader;
use super::each::products;
use crate::arena::ArenaName;
use crate::file::CampaignEntry;
use crate::place::known;
use crate::study::{CampaignCell, Cell, Form};

impl Loader<'_, '_> {
    /// Adds the cells that a campaign measures to `cells`. The metrics read from them are those read from the
    /// cell in the simulator.
    pub(super) fn campaign(&mut self, cells: &mut Vec<Cell>) -> Vec<CampaignCell> {
        self.runs_nothing_in_a_campaign();
        let mut by_name: BTreeMap<&str, &Cell> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.assumption == 0) {
            by_name.entry(&cell.name).or_insert(cell);
        }
        let (mut measured, mut added, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for entry in &self.file.campaign {
            self.check_axes(&entry.each, &entry.cell.span(), "campaign.each");
            for values in products(&entry.each) {
                let Some(of) = self.campaign_cell(entry, &values) else { continue };
                self.known_cell(&of.cell, entry.cell.span(), "campaign.cell");
                if !seen.insert(of.cell.clone()) {
                    let message = format!("the cell \"{}\" stands twice", of.cell);
                    self.mistakes.add(entry.cell.span(), "campaign.cell", message, None);
                }
                let Some(like) = by_name.get(of.cell.as_str()) else { continue };
                let flows = like.full.scenario.flows.iter().map(|flow| flow.name.as_str());
                let known_flows: BTreeSet<&str> = flows.collect();
                for (flow, transport) in &entry.flows {
                    if !known_flows.contains(flow.as_str()) {
                        let message = format!("\"{}\" has no flow called \"{flow}\"", of.cell);
                        let known = known(known_flows.iter().copied());
                        self.mistakes.add(transport.span(), "campaign.flows", message, known);
                    }
                }
                // As many repetitions as were measured are judged; each figure's `n` says how many.
                let full = Form { repeat: 1, ..like.full.clone() };
                added.push(Cell { arena: ArenaName::Campaign, full, quick: None, ..(*like).clone() });
                measured.push(of);
            }
        }
        let first = cells.len() as u64;
        cells.extend(added.into_iter().zip(first..).map(|(cell, index)| Cell { index, ..cell }));
        measured
    }

    fn campaign_cell(&mut self, entry: &CampaignEntry, values: &[(&str, &str)]) -> Option<CampaignCell> {
        let mut fill =
            |text: &Spanned<String>, key: &str| self.filled(text.get_ref(), values, text.span(), key);
        let cell = fill(&entry.cell, "campaign.cell");
        let near = fill(&entry.near, "campaign.near");
        let far = fill(&entry.far, "campaign.far");
        let measure = fill(&entry.measure, "campaign.measure");
        let flows = entry.flows.iter().map(|(flow, it)| (flow.clone(), fill(it, "campaign.flows"))).collect();
        let day = match &entry.day {
            None => None,
            Some(text) => {
                let filled = fill(text, "campaign.day");
                let day = filled.parse::<u64>().ok().filter(|day| *day > 0);
                if day.is_none() {
                    let message = format!("found \"{filled}\", expected a day from 1");
                    self.mistakes.add(text.span(), "campaign.day", message, None);
                }
                Some(day?)
            }
        };
        Some(CampaignCell { cell, near, far, measure, day, flows })
    }

    /// Cells run in other arenas alone.
    fn runs_nothing_in_a_campaign(&mut self) {
        let message = "a campaign runs by a file of its own; [[campaign]] says which cells it measures";
        if self.file.arena.contains_key(&ArenaName::Campaign) {
            self.mistakes.add(0..0, "arena.campaign", message, None);
        }
        for entry in &self.file.cells {
            if entry.arenas.as_ref().is_some_and(|arenas| arenas.contains(&ArenaName::Campaign)) {
                self.mistakes.add(entry.name.span(), "cells.arenas", message, None);
            }
        }
    }
}
