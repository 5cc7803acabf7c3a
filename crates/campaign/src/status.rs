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
    /// What of it is in the store; `null` without a `store_command`.
    pub store: Option<StoreStatus>,
}

/// What was copied to a store, by the notes in the campaign's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// The command that copies, as for a shell.
    pub command: String,
    /// Measurements that it has copied.
    pub there: u64,
    /// Why the last attempt failed at what is still not there; `null` if nothing is known to be missing.
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

/// The events of one measurement, summed up.
#[derive(Clone, Debug, Default)]
struct Fate {
    is_begun: bool,
    is_done: bool,
    failures: u64,
    last: Option<String>,
    abandoned: Option<String>,
}

/// Returns the state of `plan` after the `entries` of its journal, at `now` (ns since the Unix epoch).
/// `retry` is the schedule's wait after a first failure.
pub fn status(plan: &Plan, entries: &[Entry], retry: Duration, now: Instant) -> Status {
    let scheduler = Scheduler::new(plan, &[], retry, entries, now);
    let mut elsewhere = (0, None);
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    let mut hosts: Vec<HostStatus> =
        plan.hosts.iter().map(|host| HostStatus { host: host.clone(), ..HostStatus::default() }).collect();
    for entry in entries {
        let fate = fates.entry(&entry.id).or_default();
        fate.is_begun = entry.event == Event::Begun;
        match &entry.event {
            Event::Begun => {}
            Event::Done => fate.is_done = true,
            Event::Failed { why, host } => {
                fate.failures += 1;
                fate.last = Some(why.clone());
                match hosts.iter_mut().find(|status| Some(&status.host) == host.as_ref()) {
                    Some(host) => {
                        host.failures += 1;
                        host.last_failure = Some(why.clone());
                    }
                    None => elsewhere = (elsewhere.0 + 1, Some(why.clone())),
                }
            }
            Event::Abandoned { why } => fate.abandoned = Some(why.clone()),
        }
    }
    let mut status = Status {
        name: plan.name.clone(),
        planned: plan.measurements.len() as u64,
        failures_elsewhere: elsewhere.0,
        last_failure_elsewhere: elsewhere.1,
        ..Status::default()
    };
    for (at, measurement) in plan.measurements.iter().enumerate() {
        let fate = fates.remove(measurement.id.as_str()).unwrap_or_default();
        let next_try = || scheduler.next_try(at).map(|at| (millis(at), local(&plan.zone, at)));
        count(&mut status, &fate, measurement, &next_try, now);
        let takes_part =
            |status: &&mut HostStatus| [&measurement.near, &measurement.far].contains(&&status.host);
        for host in hosts.iter_mut().filter(takes_part) {
            host.planned += 1;
            host.done += u64::from(fate.is_done);
            host.abandoned += u64::from(!fate.is_done && fate.abandoned.is_some());
        }
    }
    for (at, host) in hosts.iter_mut().enumerate() {
        host.rests_until = Some(scheduler.rests_until(at))
            .filter(|until| *until > now)
            .map(|until| local(&plan.zone, until));
    }
    status.hosts = hosts;
    status
}

/// Adds one measurement to the counts and lists of `status`.
fn count(
    status: &mut Status,
    fate: &Fate,
    measurement: &Measurement,
    next_try: &dyn Fn() -> Option<(u64, String)>,
    now: Instant,
) {
    let failing = |why: &String| {
        let (next_try_ms, next_try) = next_try().unzip();
        Failing {
            measurement: measurement.clone(),
            failures: fate.failures,
            why: why.clone(),
            next_try_ms,
            next_try,
        }
    };
    match (fate.is_done, &fate.abandoned) {
        (true, _) => status.done += 1,
        (false, Some(why)) => {
            status.abandoned += 1;
            status.missing.push(failing(why));
        }
        (false, None) if fate.is_begun => status.begun += 1,
        (false, None) if measurement.until() <= now => {
            status.abandoned += 1;
            let why = || "its window ended while no coordinator ran".to_owned();
            status.missing.push(failing(&fate.last.clone().unwrap_or_else(why)));
        }
        (false, None) if measurement.due_ms <= millis(now) => {
            status.overdue += 1;
            status.failing.extend(fate.last.as_ref().map(failing));
        }
        (false, None) => {
            status.later += 1;
            status.next.get_or_insert_with(|| measurement.clone());
        }
    }
}
