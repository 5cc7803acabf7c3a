//! The scheduler of a campaign. It decides what to do next from the plan, the journal and the time.
//!
//! ```text
//!             due, both hosts free
//!   Waiting ───────────────────────► Running ──► Done
//!    │   ▲                              │
//!    │   └──── failed: back-off ────────┘
//!    └──► Abandoned: its window is over
//! ```
//!
//! After a failure at a host, no measurement with this host begins until the back-off is over. So a host that
//! is down causes one failed attempt in that time, and not one for each measurement. If several measurements
//! can begin, the one that has failed less often comes first. If they have failed equally often, the one that
//! was due earlier comes first.
//!
//! A measurement is known by its index in the plan, and a host by its index in the plan's list of hosts.
//! Begin to read with [`Scheduler::step`].

use talkpath_units::{Duration, Instant, times};

use crate::journal::{Entry, Event};
use crate::plan::{Plan, instant};

/// The back-off doubles with each failure, but at most this many times. So it grows up to 16 times the first
/// wait (docs/reference/interface.md), for example from 30 s to 8 min.
const MAX_DOUBLINGS: u32 = 4;

/// The state of a campaign.
#[derive(Clone, Debug)]
pub struct Scheduler<'p> {
    plan: &'p Plan,
    /// The state of each measurement of the plan.
    states: Vec<MeasurementState>,
    hosts: Vec<HostState>,
    /// The back-off after the first failure.
    retry: Duration,
    /// The time at which this process began.
    begun: Instant,
    /// The index before which every measurement is done or abandoned.
    first_open: usize,
}

/// What the caller has to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write [`Event::Begun`] for the measurement with this index, and begin the measurement.
    Begin(usize),
    /// Write [`Event::Abandoned`] with this reason for the measurement with this index.
    Abandon(usize, String),
    /// Wait until this time, or until a measurement ends. With `None`, wait until a measurement ends.
    Wait(Option<Instant>),
    /// Every measurement is done or abandoned.
    Finished,
}

/// The reason why a measurement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason, in words for a person.
    pub why: String,
    /// The host at which the measurement failed, if the host is known.
    pub host: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum MeasurementState {
    Waiting {
        failures: u32,
        /// The end of the back-off.
        not_before: Instant,
        last_fault: Option<String>,
    },
    Running {
        failures: u32,
    },
    Done,
    Abandoned,
}

#[derive(Clone, Debug)]
struct HostState {
    name: String,
    /// The largest number of concurrent measurements with this host.
    max_running: u64,
    /// The number of measurements with this host that run now.
    running: u64,
    /// The number of failures at this host since its last success.
    failures: u32,
    /// The end of the back-off.
    not_before: Instant,
    /// The reason of the last failure since the last success.
    last_fault: Option<String>,
}

/// Whether a measurement can begin now.
enum Readiness {
    /// The measurement is done or abandoned.
    Closed,
    Running,
    /// The measurement is due later, and so are all measurements after it in the plan.
    NotDue {
        due: Instant,
    },
    /// The window of the measurement is over.
    Expired {
        why: String,
    },
    /// A back-off is not over, or a host is busy. Before `until` this changes only if a measurement ends.
    Blocked {
        until: Instant,
    },
    Ready {
        failures: u32,
    },
}

impl<'p> Scheduler<'p> {
    /// Rebuilds the state of a campaign from the `entries` of its journal. `now` is the time at which this
    /// process begins. `max_running` holds the largest number of concurrent measurements of each host of
    /// the plan.
    pub fn new(
        plan: &'p Plan,
        max_running: &[u64],
        retry: Duration,
        entries: &[Entry],
        now: Instant,
    ) -> Self {
        let waiting = MeasurementState::Waiting { failures: 0, not_before: Instant::ZERO, last_fault: None };
        let host_state = |(index, name): (usize, &String)| HostState {
            name: name.clone(),
            max_running: max_running.get(index).copied().unwrap_or(1),
            running: 0,
            failures: 0,
            not_before: Instant::ZERO,
            last_fault: None,
        };
        let mut scheduler = Self {
            plan,
            states: vec![waiting; plan.measurements.len()],
            hosts: plan.hosts.iter().enumerate().map(host_state).collect(),
            retry,
            begun: now,
            first_open: 0,
        };
        // A plan can have many thousand measurements, and a journal as many entries. The plan is in the order
        // of time. So the ids are sorted once, and each entry finds its measurement by binary search.
        let ids = plan.measurements.iter().map(|measurement| measurement.id.as_str());
        let mut sorted_ids: Vec<(&str, usize)> = ids.zip(0..).collect();
        sorted_ids.sort_unstable();
        for entry in entries {
            // Entries of measurements that are not in the plan are ignored.
            if let Ok(position) = sorted_ids.binary_search_by_key(&entry.id.as_str(), |(id, _)| id) {
                scheduler.apply(sorted_ids[position].1, &entry.event, instant(entry.at_ms));
            }
        }
        scheduler
    }

    /// Decides what to do at `now`. If a measurement is to begin, it counts as running from now on.
    pub fn step(&mut self, now: Instant) -> Step {
        self.skip_closed();
        let mut next_change: Option<Instant> = None;
        let mut best: Option<(u32, usize)> = None;
        let mut is_any_open = false;
        for index in self.first_open..self.states.len() {
            let readiness = self.readiness(index, now);
            is_any_open |= !matches!(readiness, Readiness::Closed);
            match readiness {
                Readiness::Closed | Readiness::Running => {}
                Readiness::NotDue { due } => {
                    next_change = Some(next_change.map_or(due, |next| next.min(due)));
                    break;
                }
                Readiness::Expired { why } => return Step::Abandon(index, why),
                Readiness::Blocked { until } => {
                    next_change = Some(next_change.map_or(until, |next| next.min(until)));
                }
                Readiness::Ready { failures } => {
                    // The measurement with the fewest failures comes first, then the one that was due
                    // earlier.
                    let candidate = (failures, index);
                    best = Some(best.map_or(candidate, |best| best.min(candidate)));
                }
            }
        }
        if let Some((failures, index)) = best {
            self.states[index] = MeasurementState::Running { failures };
            for host in self.host_indices(index) {
                self.hosts[host].running += 1;
            }
            return Step::Begin(index);
        }
        if is_any_open { Step::Wait(next_change) } else { Step::Finished }
    }

    /// Moves `first_open` behind the measurements that are done or abandoned.
    fn skip_closed(&mut self) {
        while let Some(MeasurementState::Done | MeasurementState::Abandoned) =
            self.states.get(self.first_open)
        {
            self.first_open += 1;
        }
    }

    /// Finds out whether a measurement can begin at `now`.
    fn readiness(&self, index: usize, now: Instant) -> Readiness {
        let (failures, not_before, last_fault) = match &self.states[index] {
            MeasurementState::Done | MeasurementState::Abandoned => return Readiness::Closed,
            MeasurementState::Running { .. } => return Readiness::Running,
            MeasurementState::Waiting { failures, not_before, last_fault } => {
                (*failures, *not_before, last_fault)
            }
        };
        let measurement = &self.plan.measurements[index];
        let (due, window_end) = (measurement.due(), measurement.until());
        if due > now {
            return Readiness::NotDue { due };
        }
        if window_end <= now {
            return Readiness::Expired { why: self.reason(index, failures, last_fault.as_deref()) };
        }
        let back_off_end = self.back_off_end(index, not_before);
        if back_off_end > now {
            return Readiness::Blocked { until: back_off_end.min(window_end) };
        }
        let are_hosts_free = self
            .host_indices(index)
            .into_iter()
            .all(|host| self.hosts[host].running < self.hosts[host].max_running);
        if are_hosts_free { Readiness::Ready { failures } } else { Readiness::Blocked { until: window_end } }
    }

    /// Records that a measurement has ended. Returns the event for the journal.
    pub fn finish(&mut self, index: usize, outcome: Result<(), Fault>, now: Instant) -> Event {
        for host in self.host_indices(index) {
            self.hosts[host].running = self.hosts[host].running.saturating_sub(1);
        }
        let event = match outcome {
            Ok(()) => Event::Done,
            Err(Fault { why, host }) => Event::Failed { why, host },
        };
        self.apply(index, &event, now);
        event
    }

    /// Marks a measurement as abandoned. Call this when the event of its [`Step::Abandon`] is in the journal.
    pub fn set_abandoned(&mut self, index: usize) {
        self.states[index] = MeasurementState::Abandoned;
    }

    /// Returns the earliest time at which a measurement is tried again. Busy hosts may delay it further.
    /// Returns `None` if the measurement runs now, or if it is not tried any more.
    pub fn next_try(&self, index: usize) -> Option<Instant> {
        let MeasurementState::Waiting { not_before, .. } = self.states.get(index)? else { return None };
        let measurement = &self.plan.measurements[index];
        let next = self.back_off_end(index, *not_before).max(measurement.due());
        (next < measurement.until()).then_some(next)
    }

    /// Returns the end of the back-off of a host. Before this time no measurement with the host begins.
    pub fn host_back_off_end(&self, host: usize) -> Instant {
        self.hosts.get(host).map_or(Instant::ZERO, |host| host.not_before)
    }

    /// Changes the state of a measurement by an event of the journal.
    fn apply(&mut self, index: usize, event: &Event, now: Instant) {
        let failures = match &self.states[index] {
            MeasurementState::Waiting { failures, .. } | MeasurementState::Running { failures } => *failures,
            MeasurementState::Done | MeasurementState::Abandoned => return,
        };
        match event {
            // The measurement stays in the state `Waiting`. If no later event follows in the journal, the
            // coordinator was killed during the measurement, so the measurement has to begin again.
            Event::Begun => {}
            Event::Done => {
                self.states[index] = MeasurementState::Done;
                for host in self.host_indices(index) {
                    let host = &mut self.hosts[host];
                    (host.failures, host.not_before, host.last_fault) = (0, Instant::ZERO, None);
                }
            }
            Event::Failed { why, host } => {
                let failures = failures + 1;
                let not_before = now.saturating_add(self.back_off(failures));
                self.states[index] =
                    MeasurementState::Waiting { failures, not_before, last_fault: Some(why.clone()) };
                if let Some(host) = host {
                    self.fail_host(index, host, why, now);
                }
            }
            Event::Abandoned { .. } => self.states[index] = MeasurementState::Abandoned,
        }
    }

    /// Begins the back-off of the host called `name`, if it takes part in the measurement.
    fn fail_host(&mut self, index: usize, name: &str, why: &str, now: Instant) {
        let Some(host) = self.host_indices(index).into_iter().find(|host| self.hosts[*host].name == name)
        else {
            return;
        };
        let failures = self.hosts[host].failures + 1;
        let not_before = now.saturating_add(self.back_off(failures));
        let host = &mut self.hosts[host];
        (host.failures, host.not_before, host.last_fault) = (failures, not_before, Some(why.to_owned()));
    }

    /// Returns the time at which the back-offs of a measurement and of its hosts are over. `not_before` is
    /// the end of the measurement's own back-off.
    fn back_off_end(&self, index: usize, not_before: Instant) -> Instant {
        self.host_indices(index)
            .into_iter()
            .map(|host| self.hosts[host].not_before)
            .fold(not_before, Instant::max)
    }

    /// Returns the back-off after this number of failures.
    fn back_off(&self, failures: u32) -> Duration {
        self.retry.saturating_mul(1 << failures.saturating_sub(1).min(MAX_DOUBLINGS))
    }

    /// Says why a measurement was not made in its window.
    fn reason(&self, index: usize, failures: u32, last_fault: Option<&str>) -> String {
        let measurement = &self.plan.measurements[index];
        if let Some(fault) = last_fault {
            let times = times(failures.into());
            return format!("tried {times} in its window; the last time: {fault}");
        }
        if measurement.until() <= self.begun {
            return "the coordinator did not run in its window".to_owned();
        }
        let mut hosts = self.host_indices(index).into_iter().map(|host| &self.hosts[host]);
        let is_in_back_off =
            |host: &&HostState| host.not_before > measurement.due() && host.last_fault.is_some();
        match hosts.find(is_in_back_off).and_then(|host| host.last_fault.as_ref()) {
            Some(why) => format!("not tried in its window, because of a failure before it: {why}"),
            None => format!("{} and {} were not both free in its window", measurement.near, measurement.far),
        }
    }

    fn host_indices(&self, index: usize) -> [usize; 2] {
        let measurement = &self.plan.measurements[index];
        let host = |name: &str| self.hosts.iter().position(|host| host.name == name).unwrap_or(0);
        [host(&measurement.near), host(&measurement.far)]
    }
}
