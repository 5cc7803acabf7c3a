//! The scenarios that a campaign's measurements run, and what the campaign changes in them.

use talkpath_units::Duration;
use toml_edit::{Array, DocumentMut, Item, TableLike, Value};

use super::types::{Host, Measure, MeasureScenario};
use crate::diagnostic::Source;
use crate::options::Setting;

impl Measure {
    /// Writes the scenario of a comparison. Returns `None` if the measure names a scenario file.
    pub fn comparison_source(&self) -> Option<Source> {
        let MeasureScenario::Comparison { workload, transports, duration } = &self.scenario else {
            return None;
        };
        let name = Value::from(self.name.as_str());
        let drain = self.drain.unwrap_or(DRAIN);
        let rounds = self.rounds.unwrap_or(ROUNDS);
        let (flow, workload) = (workload.flow(), workload.toml());
        let transports: Array = transports.iter().map(String::as_str).collect();
        // The sweep replaces the transport of the flow, which a flow must have.
        let text = format!(
            "name = {name}\n\
             duration = \"{duration}\"\n\
             drain = \"{drain}\"\n\
             repeat = {rounds}\n\
             \n\
             [flow.{flow}]\n\
             transport = \"tcp\"\n\
             workload = {workload}\n\
             \n\
             [sweep]\n\
             \"flow.{flow}.transport\" = {transports}\n"
        );
        Some(Source::new(format!("measure.{}", self.name), text))
    }

    /// Returns the keys that the measure sets in its scenario file. There are none for a comparison, because
    /// [`Self::comparison_source`] has written them already.
    pub fn file_settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        if let MeasureScenario::File(_) = self.scenario {
            if let Some(drain) = self.drain {
                settings.push(self.setting("drain", format!("\"{drain}\"")));
            }
            if let Some(rounds) = self.rounds {
                settings.push(self.setting("repeat", rounds.to_string()));
            }
        }
        settings
    }

    fn setting(&self, key: &str, value: String) -> Setting {
        Setting::by(&format!("measure.{}: {key} = {value}", self.name), key, value)
    }
}

/// The default of `drain` in scenarios.
const DRAIN: Duration = Duration::from_secs(5);

/// We chose 3 rounds because four measurements a day then make 12 values a day, which are enough for the
/// confidence interval of a median.
pub(super) const ROUNDS: u64 = 3;

impl Host {
    /// Returns the keys to set in `scenario` so that it runs over the emulated path to this host.
    /// `emulated_text` is the content of the file [`Host::emulated`]. If that file has flows, they run beside
    /// the flows of the scenario.
    ///
    /// # Errors
    /// Returns the reason if `emulated_text` is not valid TOML, has a key that does not describe a path, or
    /// has a flow with the name of a flow of the scenario.
    pub fn emulated_settings(&self, emulated_text: &str, scenario: &Source) -> Result<Vec<Setting>, String> {
        let file = self.emulated.as_deref().unwrap_or_default();
        let mut settings = Vec::new();
        for (key, item) in parse_toml(emulated_text)?.iter() {
            let value = match (key, item.as_table_like()) {
                ("path" | "link" | "far_clock" | "kernel", _) => inline_text(key, item)?,
                ("flow", Some(emulated_flows)) => match merge_flows(scenario, emulated_flows)? {
                    Some(flows) => inline_text(key, &flows)?,
                    None => continue,
                },
                _ => {
                    return Err(format!(
                        "found the key {key}, expected path, link, far_clock, kernel or flow tables"
                    ));
                }
            };
            settings.push(Setting::by(&format!("{file}: {key}"), key, value));
        }
        Ok(settings)
    }
}

/// Returns the flows of `scenario` together with `emulated_flows`, or `None` if the scenario's `flow` is not
/// a table. Loading the scenario then reports that mistake, and also a scenario that is not valid TOML.
fn merge_flows(scenario: &Source, emulated_flows: &dyn TableLike) -> Result<Option<Item>, String> {
    let document = parse_toml(&scenario.text).unwrap_or_default();
    let mut flows = document.get("flow").cloned().unwrap_or_else(|| Item::Table(toml_edit::Table::new()));
    let Some(table) = flows.as_table_like_mut() else { return Ok(None) };
    for (name, flow) in emulated_flows.iter() {
        if table.insert(name, flow.clone()).is_some() {
            return Err(format!("found the flow {name}, expected a name that no flow of the scenario has"));
        }
    }
    Ok(Some(flows))
}

fn parse_toml(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|why| why.to_string().trim().to_owned())
}

/// Writes `item`, the value of `key`, on one line, as a [`Setting`] has it.
fn inline_text(key: &str, item: &Item) -> Result<String, String> {
    match item.clone().into_value() {
        Ok(value) => Ok(value.to_string().trim().to_owned()),
        Err(_) => Err(format!("{key} is not a value")),
    }
}
