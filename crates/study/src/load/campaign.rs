//! Which measurements of a campaign are cells: names of hosts, days and transports, cell by cell.

use std::collections::{BTreeMap, BTreeSet};

use super::{Loader, products};
use crate::arena::ArenaName;
use crate::file::CampaignEntry;
use crate::place::known;
use crate::study::{CampaignCell, Cell, Form};

impl Loader<'_, '_> {
    /// Adds the cells that a campaign measures to `cells`. What is read of them is what is read of the cell
    /// in the simulator.
    pub(super) fn campaign(&mut self, cells: &mut Vec<Cell>) -> Vec<CampaignCell> {
        self.runs_nothing_in_a_campaign();
        let mut by_name: BTreeMap<&str, &Cell> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.assumption == 0) {
            by_name.entry(&cell.name).or_insert(cell);
        }
        let (mut measured, mut added, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for entry in &self.file.campaign {
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
                // What there is is judged: how many repetitions that are stands beside each figure.
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
        let fill = |text: &str| {
            values
                .iter()
                .fold(text.to_owned(), |text, (axis, value)| text.replace(&format!("{{{axis}}}"), value))
        };
        let day = match &entry.day {
            None => None,
            Some(text) => {
                let day = fill(text.get_ref()).parse::<u64>().ok().filter(|day| *day > 0);
                if day.is_none() {
                    let message = format!("found \"{}\", expected a day from 1", fill(text.get_ref()));
                    self.mistakes.add(text.span(), "campaign.day", message, None);
                }
                Some(day?)
            }
        };
        Some(CampaignCell {
            cell: fill(entry.cell.get_ref()),
            near: fill(&entry.near),
            far: fill(&entry.far),
            measure: fill(&entry.measure),
            day,
            flows: entry.flows.iter().map(|(flow, it)| (flow.clone(), fill(it.get_ref()))).collect(),
        })
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
