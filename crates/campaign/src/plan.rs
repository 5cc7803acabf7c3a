//! The plan of a campaign: all measurements, in the order in which they are due.

use serde::{Deserialize, Serialize};
use serde_json::json;
use talkpath_scenario::campaign::{Campaign, Schedule};
use talkpath_units::{Duration, Instant, Seed, fnv1a};

use crate::schedule::{Slot, slots};

/// The number of bits of a measurement's seed.
const SEED_BITS: u32 = 53;

/// `plan.json` of a campaign's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of talkpath that made the plan.
    pub talkpath: String,
    /// The campaign's name.
    pub name: String,
    /// The [`fingerprint`] of the file and the scenarios that the plan was made from.
    pub fingerprint: String,
    /// The time at which the plan was made, in ms since the Unix epoch.
    pub made_ms: u64,
    /// The time zone of all local times.
    pub zone: String,
    /// The names of the hosts, in the order of the file.
    pub hosts: Vec<String>,
    /// The measurements, in the order in which they are due.
    pub measurements: Vec<Measurement>,
}

/// One measurement between two hosts at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The name of the measurement in the journal, and of its directory.
    pub id: String,
    /// The host that starts the measurement.
    pub near: String,
    /// The host that the near host measures to.
    pub far: String,
    /// The NAME of the measure (`[measure.NAME]`).
    pub measure: String,
    /// The campaign's day, from 1.
    pub day: u64,
    /// The local time of the measurement's slot, without the random delay of the start: `2026-12-01
    /// 06:00:00`.
    pub local: String,
    /// The time at which the measurement is due, in ms since the Unix epoch.
    pub due_ms: u64,
    /// The end of the window in which the measurement may begin, in ms since the Unix epoch.
    pub until_ms: u64,
    /// The seed of the scenario.
    pub seed: u64,
}

/// A measurement before the plan is sorted.
struct UnsortedMeasurement {
    measurement: Measurement,
    /// Measurements that are due at the same moment are sorted by this random number, so that no host is
    /// always the first.
    random_order: u64,
}

impl Plan {
    /// Makes the plan of `campaign`. `made` is the time at which the plan is made, in ns since the Unix
    /// epoch.
    ///
    /// # Errors
    /// Returns a text if a time of the schedule is beyond the calendar, or if the time zone is unknown.
    pub fn new(
        campaign: &Campaign,
        fingerprint: String,
        version: &str,
        made: Instant,
    ) -> Result<Self, String> {
        let mut unsorted = Vec::new();
        for slot in slots(&campaign.schedule, made)? {
            for measure in &campaign.measures {
                for pair in &measure.pairs {
                    let names = [&campaign.hosts[pair.near].name, &campaign.hosts[pair.far].name];
                    unsorted.push(measurement(campaign, &slot, &measure.name, names));
                }
            }
        }
        unsorted.sort_by_key(|unsorted| (unsorted.measurement.due_ms, unsorted.random_order));
        Ok(Self {
            talkpath: version.to_owned(),
            name: campaign.name.clone(),
            fingerprint,
            made_ms: millis(made),
            zone: campaign.schedule.zone.clone(),
            hosts: campaign.hosts.iter().map(|host| host.name.clone()).collect(),
            measurements: unsorted.into_iter().map(|unsorted| unsorted.measurement).collect(),
        })
    }

    /// Returns the index of the measurement `id` in the plan.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.measurements.iter().position(|measurement| measurement.id == id)
    }
}

/// Makes the measurement of one pair of hosts (near, far) in one slot.
fn measurement(
    campaign: &Campaign,
    slot: &Slot,
    measure: &str,
    [near, far]: [&String; 2],
) -> UnsortedMeasurement {
    let schedule = &campaign.schedule;
    let id = format!("d{:02}.t{:04}.{near}.{far}.{measure}", slot.day, slot.number);
    // Each measurement has its own stream of random numbers, so that a measurement that is added to the file
    // does not change the others.
    let mut random = Seed::new(campaign.seed).stream(&format!("campaign/{id}"));
    let start_delay = random.span(Duration::ZERO, schedule.start_within);
    let random_order = random.bits();
    // JSON readers hold numbers as floats, which are exact up to 53 bits.
    let seed = random.bits() >> (u64::BITS - SEED_BITS);
    let measurement = Measurement {
        id,
        near: near.clone(),
        far: far.clone(),
        measure: measure.to_owned(),
        day: slot.day,
        local: slot.local.clone(),
        due_ms: millis(slot.at.saturating_add(start_delay)),
        until_ms: millis(slot.at.saturating_add(schedule.window)),
        seed,
    };
    UnsortedMeasurement { measurement, random_order }
}

impl Measurement {
    /// Returns the time at which the measurement is due, in ns since the Unix epoch.
    pub fn due(&self) -> Instant {
        instant(self.due_ms)
    }

    /// Returns the end of the window in which the measurement may begin, in ns since the Unix epoch.
    pub fn until(&self) -> Instant {
        instant(self.until_ms)
    }
}

/// Returns a fingerprint of everything that the plan and its measurements follow from. `scenarios` holds the
/// texts of the scenarios. The addresses and keys of hosts, and the commands that reach them, may change
/// while a campaign runs, so they are not part of the fingerprint. The names, the pairs, the scenarios and
/// the times are.
pub fn fingerprint(campaign: &Campaign, scenarios: &[String]) -> String {
    let hosts: Vec<_> = campaign.hosts.iter().map(|host| (&host.name, &host.emulated)).collect();
    let measures: Vec<_> = campaign
        .measures
        .iter()
        .map(|measure| {
            let pairs: Vec<_> = measure.pairs.iter().map(|pair| (pair.near, pair.far)).collect();
            (&measure.name, pairs)
        })
        .collect();
    let Schedule { zone, start, every, days, day, start_within, window, retry } = &campaign.schedule;
    let start = start.map(|start| start.to_string());
    let times = [every, day, start_within, window, retry].map(|time| time.as_nanos());
    // Only values of the file are used, so that another version of talkpath makes the same fingerprint.
    let Campaign { name, seed, .. } = campaign;
    let text = json!([name, seed, hosts, measures, zone, start, days, times, scenarios]).to_string();
    // A fingerprint only has to differ for different texts, so a simple hash is enough.
    format!("{:016x}", fnv1a(text.bytes()))
}

/// Turns a time into milliseconds since the Unix epoch, rounded down.
pub fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

pub(crate) fn instant(ms: u64) -> Instant {
    Instant::from_nanos(ms.saturating_mul(1_000_000))
}
