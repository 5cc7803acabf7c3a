//! The state of a campaign: what was measured, what is due, and what failed for which reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talkpath_units::{Duration, Instant};

use crate::journal::{Entry, Event};
use crate::plan::{Measurement, Plan, millis};
use crate::schedule::local;
use crate::scheduler::Scheduler;

/// The state of a campaign, as `talkpath campaign status --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The campaign's name.
    pub name: String,
    /// The number of measurements in the plan.
    pub planned: u64,
    /// The number of planned measurements with records.
    pub done: u64,
    /// The number of planned measurements that were abandoned, or whose window ended while no coordinator
    /// ran.
    pub abandoned: u64,
    /// The number of planned measurements that have begun and not ended. They run now, or the coordinator
    /// ended before them.
    pub begun: u64,
    /// The number of planned measurements that are due, and that have not begun or have to be tried again.
    pub overdue: u64,
    /// The number of planned measurements that are due later.
    pub later: u64,
    /// The next measurement that is due; `null` if none is due later.
    pub next: Option<Measurement>,
    /// The state of each host, in the order of the file.
    pub hosts: Vec<HostStatus>,
    /// The number of attempts that failed at the coordinator, or at a host that is not known.
    pub failures_elsewhere: u64,
    /// The reason of the last of these failures, in words.
    pub last_failure_elsewhere: Option<String>,
    /// The measurements that failed and may be tried again, in the order of the plan.
    pub failing: Vec<Failing>,
    /// The measurements that were not made, in the order of the plan.
    pub missing: Vec<Failing>,
    /// What was copied to the store. It is `null` if the campaign has no `store_command`.
    pub store: Option<StoreStatus>,
}

/// What was copied to a store, by the notes in the directory of the campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// The command that copies to the store, quoted as for a shell.
    pub command: String,
    /// The number of measurements that the command has copied.
    pub there: u64,
    /// The reason of the last failure of a measurement that is still not copied. It is `null` if there is no
    /// such measurement.
    pub failing: Option<String>,
}

/// The counts of the measurements that a host takes part in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in Status")]
pub struct HostStatus {
    pub host: String,
    pub planned: u64,
    pub done: u64,
    pub abandoned: u64,
    /// The number of attempts that failed at this host.
    pub failures: u64,
    /// The reason of the last failure at this host, in words.
    pub last_failure: Option<String>,
    /// The local time until which no measurement with this host begins; `null` if the host has no back-off.
    pub rests_until: Option<String>,
}

/// A measurement that failed, or was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The measurement.
    pub measurement: Measurement,
    /// The number of attempts that failed.
    pub failures: u64,
    /// The reason, in words for a person.
    pub why: String,
    /// The earliest time of the next attempt, in ms since the Unix epoch. The attempt is later if the hosts
    /// are not free then. `null` if there is no next attempt.
    pub next_try_ms: Option<u64>,
    /// The local time of `next_try_ms`.
    pub next_try: Option<String>,
}

/// What the journal says of one measurement.
#[derive(Clone, Debug, Default)]
struct MeasurementHistory {
    /// Whether the last event is [`Event::Begun`].
    is_begun: bool,
    is_done: bool,
    failures: u64,
    last_failure: Option<String>,
    /// The reason why the measurement was abandoned, if it was.
    abandoned: Option<String>,
}

/// Returns the state of `plan` after the `entries` of its journal, at `now` (ns since the Unix epoch).
/// `retry` is the back-off after a first failure.
pub fn status(plan: &Plan, entries: &[Entry], retry: Duration, now: Instant) -> Status {
    let scheduler = Scheduler::new(plan, &[], retry, entries, now);
    let host_status = |host: &String| HostStatus { host: host.clone(), ..HostStatus::default() };
    let mut status = Status {
        name: plan.name.clone(),
        planned: plan.measurements.len() as u64,
        hosts: plan.hosts.iter().map(host_status).collect(),
        ..Status::default()
    };
    let mut histories: BTreeMap<&str, MeasurementHistory> = BTreeMap::new();
    for entry in entries {
        histories.entry(&entry.id).or_default().add(&entry.event);
        if let Event::Failed { why, host } = &entry.event {
            status.add_failure(host.as_deref(), why);
        }
    }
    for (index, measurement) in plan.measurements.iter().enumerate() {
        let history = histories.remove(measurement.id.as_str()).unwrap_or_default();
        let next_try = scheduler.next_try(index);
        let failing = |why: String| Failing {
            measurement: measurement.clone(),
            failures: history.failures,
            why,
            next_try_ms: next_try.map(millis),
            next_try: next_try.map(|at| local(&plan.zone, at)),
        };
        status.add_measurement(measurement, &history, failing, now);
        status.add_to_hosts(measurement, &history);
    }
    for (index, host) in status.hosts.iter_mut().enumerate() {
        let back_off_end = scheduler.host_back_off_end(index);
        if back_off_end > now {
            host.rests_until = Some(local(&plan.zone, back_off_end));
        }
    }
    status
}

impl MeasurementHistory {
    fn add(&mut self, event: &Event) {
        self.is_begun = *event == Event::Begun;
        match event {
            Event::Begun => {}
            Event::Done => self.is_done = true,
            Event::Failed { why, .. } => {
                self.failures += 1;
                self.last_failure = Some(why.clone());
            }
            Event::Abandoned { why } => self.abandoned = Some(why.clone()),
        }
    }
}

impl Status {
    /// Counts a failed attempt at its host. An attempt that failed at the coordinator, or at a host that is
    /// not known, is counted for the campaign.
    fn add_failure(&mut self, host: Option<&str>, why: &str) {
        match self.hosts.iter_mut().find(|status| Some(status.host.as_str()) == host) {
            Some(status) => {
                status.failures += 1;
                status.last_failure = Some(why.to_owned());
            }
            None => {
                self.failures_elsewhere += 1;
                self.last_failure_elsewhere = Some(why.to_owned());
            }
        }
    }

    /// Counts a measurement in one of the numbers of the status. `failing` makes the entry of a list from a
    /// reason.
    fn add_measurement(
        &mut self,
        measurement: &Measurement,
        history: &MeasurementHistory,
        failing: impl Fn(String) -> Failing,
        now: Instant,
    ) {
        if history.is_done {
            self.done += 1;
        } else if let Some(why) = &history.abandoned {
            self.abandoned += 1;
            self.missing.push(failing(why.clone()));
        } else if history.is_begun {
            self.begun += 1;
        } else if measurement.until() <= now {
            let no_attempt = || "its window ended while no coordinator ran".to_owned();
            self.abandoned += 1;
            self.missing.push(failing(history.last_failure.clone().unwrap_or_else(no_attempt)));
        } else if measurement.due_ms <= millis(now) {
            self.overdue += 1;
            self.failing.extend(history.last_failure.clone().map(failing));
        } else {
            self.later += 1;
            self.next.get_or_insert_with(|| measurement.clone());
        }
    }

    /// Counts a measurement at its two hosts.
    fn add_to_hosts(&mut self, measurement: &Measurement, history: &MeasurementHistory) {
        for status in &mut self.hosts {
            if status.host == measurement.near || status.host == measurement.far {
                status.planned += 1;
                status.done += u64::from(history.is_done);
                status.abandoned += u64::from(!history.is_done && history.abandoned.is_some());
            }
        }
    }
}
