//! Everything that a campaign will measure, in the order in which it is due.

use serde::{Deserialize, Serialize};
use serde_json::json;
use talkpath_scenario::campaign::{Campaign, Schedule};
use talkpath_units::{Duration, Instant, Seed, fnv1a};

use crate::schedule::slots;

/// `plan.json` of a campaign's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of talkpath that made it.
    pub talkpath: String,
    /// The campaign's name.
    pub name: String,
    /// Of the file and the scenarios that it was made from: [`fingerprint`].
    pub fingerprint: String,
    /// When it was made, in ms since the Unix epoch.
    pub made_ms: u64,
    /// The time zone of all local times.
    pub zone: String,
    /// Hosts in the order of the file.
    pub hosts: Vec<String>,
    /// By when they are due.
    pub measurements: Vec<Measurement>,
}

/// One measurement between two hosts at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Its name in the journal, and its directory's.
    pub id: String,
    /// The host that starts it.
    pub near: String,
    /// The host that it goes to.
    pub far: String,
    /// `[measure.NAME]`.
    pub measure: String,
    /// The campaign's day, from 1.
    pub day: u64,
    /// What clocks show at its time, before the random start: `2026-12-01 06:00:00`.
    pub local: String,
    /// When it is due, in ms since the Unix epoch.
    pub due_ms: u64,
    /// Until when it may begin, in ms since the Unix epoch.
    pub until_ms: u64,
    /// The seed of its scenario.
    pub seed: u64,
}

impl Plan {
    /// The plan of `campaign`, made at `made` (ns since the Unix epoch).
    ///
    /// # Errors
    /// What is beyond the calendar.
    pub fn new(
        campaign: &Campaign,
        fingerprint: String,
        version: &str,
        made: Instant,
    ) -> Result<Self, String> {
        let schedule = &campaign.schedule;
        let seed = Seed::new(campaign.seed);
        let mut drawn = Vec::new();
        for slot in slots(schedule, made)? {
            for measure in &campaign.measures {
                for (near, far) in &measure.pairs {
                    let (near, far) = (&campaign.hosts[*near].name, &campaign.hosts[*far].name);
                    let id = format!("d{:02}.t{:04}.{near}.{far}.{}", slot.day, slot.number, measure.name);
                    let mut stream = seed.stream(&format!("campaign/{id}"));
                    let late = stream.span(Duration::ZERO, schedule.start_within);
                    // What is due at one moment has an order of its own each time; 53 bits are whole in JSON.
                    let (order, own) = (stream.bits(), stream.bits() >> 11);
                    let measurement = Measurement {
                        id,
                        near: near.clone(),
                        far: far.clone(),
                        measure: measure.name.clone(),
                        day: slot.day,
                        local: slot.local.clone(),
                        due_ms: millis(slot.at.saturating_add(late)),
                        until_ms: millis(slot.at.saturating_add(schedule.window)),
                        seed: own,
                    };
                    drawn.push((measurement.due_ms, order, measurement));
                }
            }
        }
        drawn.sort_by_key(|(due, order, _)| (*due, *order));
        Ok(Self {
            talkpath: version.to_owned(),
            name: campaign.name.clone(),
            fingerprint,
            made_ms: millis(made),
            zone: schedule.zone.clone(),
            hosts: campaign.hosts.iter().map(|host| host.name.clone()).collect(),
            measurements: drawn.into_iter().map(|(.., measurement)| measurement).collect(),
        })
    }

    /// The place of the measurement `id`.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.measurements.iter().position(|measurement| measurement.id == id)
    }
}

impl Measurement {
    /// When it is due, in ns since the Unix epoch.
    pub fn due(&self) -> Instant {
        instant(self.due_ms)
    }

    /// Until when it may begin, in ns since the Unix epoch.
    pub fn until(&self) -> Instant {
        instant(self.until_ms)
    }
}

/// What the plan and its measurements follow from: `scenarios` are the texts of what runs. Addresses, keys
/// and the way to a host may change while a campaign runs; names, pairs, what runs and when may not.
pub fn fingerprint(campaign: &Campaign, scenarios: &[String]) -> String {
    let hosts: Vec<_> = campaign.hosts.iter().map(|host| (&host.name, &host.emulated)).collect();
    let measures: Vec<_> = campaign.measures.iter().map(|measure| (&measure.name, &measure.pairs)).collect();
    let Schedule { zone, start, every, days, day, start_within, window, retry } = &campaign.schedule;
    let start = start.map(|start| start.to_string());
    let times = [every, day, start_within, window, retry].map(|time| time.as_nanos());
    // Only what the file says, so that another version of talkpath gives the same.
    let Campaign { name, seed, .. } = campaign;
    let text = json!([name, seed, hosts, measures, zone, start, days, times, scenarios]).to_string();
    // Different texts need different fingerprints, and nothing more.
    format!("{:016x}", fnv1a(text.bytes()))
}

/// Milliseconds since the Unix epoch, rounded down.
pub fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

pub(crate) fn instant(ms: u64) -> Instant {
    Instant::from_nanos(ms.saturating_mul(1_000_000))
}
