//! Reads a campaign file and the scenarios that it names, and checks them together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use talkpath_campaign::fingerprint;
use talkpath_scenario::campaign::{Campaign, Host, Measure, MeasureScenario};
use talkpath_scenario::{Options, Plan, Scenario, Source};
use talkpath_units::Duration;

use crate::args::demand::required;
use crate::failure::Failure;
use crate::scenario_file::{format_diagnostic, load_source_beside, read_text};
use crate::thresholds::refuse_unknown_figures;

/// The time that a repetition takes to begin: to connect, and to probe the far clock. We chose 5 s, far
/// longer than it usually takes, because a measurement that is stopped too early is lost.
const SET_UP_TIME: Duration = Duration::from_secs(5);

/// A campaign that can run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) campaign: Campaign,
    /// The [`fingerprint`] of the campaign.
    pub(crate) fingerprint: String,
    /// The folder of the campaign file. The campaign names its files by their paths from this folder.
    folder: PathBuf,
    /// The scenarios that run, by the name of the measure and the file of the emulated path, if there is one.
    scenarios: BTreeMap<(String, Option<String>), Prepared>,
}

/// The scenario of one measurement.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The plan of the scenario, with its resolved text.
    pub(crate) plan: Plan,
    /// The number of repetitions of all cells together.
    pub(crate) repetitions: u64,
    /// The longest time that a measurement takes if nothing fails.
    pub(crate) expected: Duration,
}

impl Loaded {
    /// Reads the campaign file `path` and the files that it names.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let source = Source::new(path.display().to_string(), read_text(path)?);
        let campaign = Campaign::load(&source).map_err(|found| Failure::Scenario {
            file: source.name.clone(),
            mistakes: found.iter().map(|mistake| format_diagnostic(&source, mistake)).collect(),
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut scenarios = BTreeMap::new();
        let mut mistakes = Vec::new();
        for measure in &campaign.measures {
            for pair in &measure.pairs {
                let far = &campaign.hosts[pair.far];
                let key = (measure.name.clone(), far.emulated.clone());
                if scenarios.contains_key(&key) {
                    continue;
                }
                match prepare(measure, far, &folder) {
                    Ok(prepared) => drop(scenarios.insert(key, prepared)),
                    Err(Failure::Scenario { mistakes: found, .. }) => {
                        // Several measures may name the same file.
                        for mistake in found {
                            if !mistakes.contains(&mistake) {
                                mistakes.push(mistake);
                            }
                        }
                    }
                    Err(other) => mistakes.push(other.to_string()),
                }
            }
        }
        for host in &campaign.hosts {
            let Some(file) = &host.key_file else { continue };
            if let Err(error) = std::fs::metadata(folder.join(file)) {
                mistakes.push(format!("host.{}.key_file: cannot read {file}: {error}", host.name));
            }
        }
        if !mistakes.is_empty() {
            return Err(Failure::Scenario { file: source.name, mistakes });
        }
        let texts: Vec<String> =
            scenarios.values().map(|prepared: &Prepared| prepared.plan.resolved.clone()).collect();
        Ok(Self { fingerprint: fingerprint(&campaign, &texts), campaign, folder, scenarios })
    }

    /// Returns the scenario that `measure` runs towards the host `far`.
    pub(crate) fn prepared(&self, measure: &str, far: &Host) -> Option<&Prepared> {
        self.scenarios.get(&(measure.to_owned(), far.emulated.clone()))
    }

    /// Returns the path of a file that the campaign names.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Makes the scenario that `measure` runs towards the host `far`.
fn prepare(measure: &Measure, far: &Host, folder: &Path) -> Result<Prepared, Failure> {
    let (path, source) = match (&measure.scenario, measure.comparison_source()) {
        (MeasureScenario::File(file), _) => {
            let path = folder.join(file);
            let source = Source::new(path.display().to_string(), read_text(&path)?);
            (path, source)
        }
        (MeasureScenario::Comparison { .. }, source) => {
            (folder.join("campaign"), source.unwrap_or_else(|| Source::new("", "")))
        }
    };
    let mut set = measure.file_settings();
    for demand in &measure.require {
        let setting = required(demand);
        set.push(setting.map_err(|why| Failure::Usage(format!("measure.{}.require: {why}", measure.name)))?);
    }
    if let Some(file) = &far.emulated {
        let emulated_path = read_text(&folder.join(file))?;
        let settings = far.emulated_settings(&emulated_path, &source);
        set.extend(
            settings.map_err(|why| Failure::Usage(format!("host.{}.emulated: {file}: {why}", far.name)))?,
        );
    }
    let options = Options { set, ..Options::default() };
    let plan = load_source_beside(&path, &source, &options)?;
    refuse_unknown_figures(&plan)?;
    if far.emulated.is_some() && plan.cells.iter().any(|cell| !cell.scenario.has_path) {
        let file = far.emulated.as_deref().unwrap_or_default();
        return Err(Failure::Usage(format!("host.{}.emulated: {file} has no `path`", far.name)));
    }
    for cell in &plan.cells {
        // No host of a campaign is asked whether it allows a program.
        cell.scenario
            .has_no_program()
            .map_err(|why| Failure::Usage(format!("measure.{}: {why}", measure.name)))?;
    }
    if !plan.traces.is_empty() {
        return Err(Failure::Usage(format!("measure.{}: a campaign cannot use traces", measure.name)));
    }
    let expected = longest_time(&plan);
    let repetitions = plan.repeat.saturating_mul(plan.cells.len() as u64);
    Ok(Prepared { plan, repetitions, expected })
}

/// Returns the longest time that a measurement takes if nothing fails. Each repetition takes its duration,
/// its drain, and some time to begin.
fn longest_time(plan: &Plan) -> Duration {
    let mut round = Duration::ZERO;
    for cell in &plan.cells {
        let Scenario { duration, drain, .. } = &cell.scenario;
        round = round.saturating_add(*duration).saturating_add(*drain).saturating_add(SET_UP_TIME);
    }
    round.saturating_mul(plan.repeat)
}
