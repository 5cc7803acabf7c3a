//! Reads campaign files. A campaign measures between pairs of hosts, again and again, by a schedule.
//!
//! ```text
//! text ─► tree (a place for each value) ─► key tables (all mistakes at once) ─► Campaign
//! ```
//!
//! - A *host* is a machine at one end of measurements: `[host.NAME]`.
//! - A *measure* says what to run and between which hosts: `[measure.NAME]`.
//! - A *pair* is two hosts. The *near* host starts a measurement, and the *far* host answers.
//! - A *measurement* is one run of a measure between one pair, at one time of the schedule.
//! - In each *round* of a measurement every transport runs once.
//! - The path to an *emulated* host is emulated on the near host. No program runs on an emulated host.
//! - The *coordinator* is the machine on which `talkpath campaign` runs.
//!
//! Begin to read with [`Campaign::load`]. What a measurement runs is a scenario: [`MeasureScenario`]. The
//! files below `campaign/` read one kind of table each; `campaign/scenario.rs` makes and changes scenarios.

mod hosts;
mod measures;
mod scenario;
mod schedule;
mod tables;
mod types;

use talkpath_units::Duration;

pub use self::types::{Campaign, Host, HostPair, Measure, MeasureScenario, Schedule};
use crate::diagnostic::{Diagnostics, Log, Place, Source};
use crate::keys::CAMPAIGN;
use crate::options::fitting_name;
use crate::pass::check::{self, Checks};
use crate::read::KeyPath;
use crate::section::Section;
pub use crate::store_command::StoreCommand;
use crate::store_command::{OLD_KEYS, refuse_old_keys};
use crate::tree::{self, Table};

impl Campaign {
    /// Reads a campaign file.
    ///
    /// # Errors
    /// Returns every mistake in the file, in the order of the file.
    pub fn load(source: &Source) -> Result<Self, Diagnostics> {
        let mut log = Log::default();
        let campaign = read_campaign(source, &mut log);
        let (mistakes, _) = log.finish(source, &[]);
        match campaign {
            Some(campaign) if mistakes.is_empty() => Ok(campaign),
            _ => Err(Diagnostics { source: source.name.clone(), list: mistakes }),
        }
    }
}

/// Reads as much of a campaign as its mistakes allow. All mistakes go to `log`.
fn read_campaign(source: &Source, log: &mut Log) -> Option<Campaign> {
    let mut root = tree::parse(&source.text, log);
    if log.is_clean() && root.entries.is_empty() {
        let message =
            "found nothing; a campaign needs [host.NAME] and [measure.NAME] tables and a [schedule]";
        log.mistake(&Place::START, "", message);
    }
    // If the text cannot be parsed or is empty, a list of all missing keys would not help.
    let checks = if log.is_clean() { Checks::ALL } else { Checks::PRESENT };
    refuse_old_keys(&take_old_keys(&mut root), log);
    let root = check::check(root, &CAMPAIGN, checks, log);

    let section = Section::new(&root, CAMPAIGN.keys, KeyPath::ROOT, &Place::START);
    let name = section.text("name").map_or_else(|| name_of_file(&source.name), str::to_owned);
    let hosts = hosts::read_hosts(&root, section.text("key_file"), log);
    let campaign_pairs = hosts::read_between(&section, &hosts, log);
    let measures = measures::read_measures(&root, &hosts, &campaign_pairs, log);
    let schedule = schedule::read_schedule(&root, log);
    let store_command = read_store_command(&section, log);
    // A mistake in a host or a pair would cause further messages here that mean nothing.
    if log.is_clean() {
        measures::check_pairs_exist(&root, &measures, log);
        hosts::check_roles(&root, &hosts, &measures, log);
    }
    Some(Campaign { name, seed: section.count("seed")?, hosts, measures, schedule: schedule?, store_command })
}

/// Returns the file's name without its folder and `.toml`, for a campaign without a `name`.
fn name_of_file(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = file.strip_suffix(".toml").filter(|stem| !stem.is_empty());
    fitting_name(stem.unwrap_or("campaign"))
}

/// Takes out the keys that former versions of talkpath had.
fn take_old_keys(root: &mut Table) -> Vec<tree::Entry> {
    OLD_KEYS.iter().filter_map(|key| root.take(key)).collect()
}

fn read_store_command(section: &Section<'_>, log: &mut Log) -> Option<StoreCommand> {
    let timeout = section.duration("store_timeout");
    let Some(names) = section.names("store_command") else {
        if timeout.is_some() && section.node("store_command").is_none() {
            section.problem("store_timeout", "found it without `store_command`", log);
        }
        return None;
    };
    let words = names.map(|(word, _)| word.to_owned()).collect();
    match StoreCommand::new(words, timeout.unwrap_or(STORE_TIMEOUT)) {
        Ok(command) => Some(command),
        Err(problem) => {
            section.problem("store_command", problem, log);
            None
        }
    }
}

/// We chose 10 minutes because 75 MB then arrive at 1 Mb/s. A measurement's largest file is far smaller.
const STORE_TIMEOUT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests;
