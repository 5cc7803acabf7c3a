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

use talkpath_units::{Duration, Instant, times};

use crate::journal::{Entry, Event};
use crate::plan::{Plan, instant};

/// The state of a campaign.
#[derive(Clone, Debug)]
pub struct Scheduler<'p> {
    plan: &'p Plan,
    states: Vec<State>,
    hosts: Vec<HostState>,
    /// The wait after the first failure.
    retry: Duration,
    /// When this process began.
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
enum State {
    Waiting { failures: u32, not_before: Instant, why: Option<String> },
    Running { failures: u32 },
    Done,
    Abandoned,
}

#[derive(Clone, Debug)]
struct HostState {
    name: String,
    /// The largest number of concurrent measurements with this host.
    at_once: u64,
    /// The number of measurements with this host that run now.
    running: u64,
    /// The number of failures at this host since its last success.
    failures: u32,
    not_before: Instant,
    why: Option<String>,
}

impl<'p> Scheduler<'p> {
    /// Rebuilds the state of a campaign from the `entries` of its journal. `now` is the time at which this
    /// process begins. `at_once` holds the largest number of concurrent measurements of each host of the
    /// plan.
    pub fn new(plan: &'p Plan, at_once: &[u64], retry: Duration, entries: &[Entry], now: Instant) -> Self {
        let waiting = State::Waiting { failures: 0, not_before: Instant::ZERO, why: None };
        let hosts = plan.hosts.iter().enumerate().map(|(at, name)| HostState {
            name: name.clone(),
            at_once: at_once.get(at).copied().unwrap_or(1),
            running: 0,
            failures: 0,
            not_before: Instant::ZERO,
            why: None,
        });
        let mut scheduler = Self {
            plan,
            states: vec![waiting; plan.measurements.len()],
            hosts: hosts.collect(),
            retry,
            begun: now,
            first_open: 0,
        };
        // The plan is in the order of time, so the measurements are looked up by a sorted list of their
        // names.
        let names = plan.measurements.iter().map(|measurement| measurement.id.as_str());
        let mut indices: Vec<(&str, usize)> = names.zip(0..).collect();
        indices.sort_unstable();
        for entry in entries {
            // Entries of measurements that are not in the plan are ignored.
            if let Ok(found) = indices.binary_search_by_key(&entry.id.as_str(), |(id, _)| id) {
                scheduler.replay(indices[found].1, entry);
            }
        }
        scheduler
    }

    /// Decides what to do at `now`. If a measurement is to begin, it counts as running from now on.
    pub fn step(&mut self, now: Instant) -> Step {
        let is_closed = |state: &State| matches!(state, State::Done | State::Abandoned);
        while self.states.get(self.first_open).is_some_and(is_closed) {
            self.first_open += 1;
        }
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |next| next.min(at)));
        let mut best: Option<(u32, usize)> = None;
        let mut is_open = false;
        for at in self.first_open..self.states.len() {
            let measurement = &self.plan.measurements[at];
            is_open |= matches!(self.states[at], State::Waiting { .. } | State::Running { .. });
            let State::Waiting { failures, not_before, why } = &self.states[at] else { continue };
            if measurement.due() > now {
                // All measurements after this one are due later.
                sooner(measurement.due());
                break;
            }
            if measurement.until() <= now {
                return Step::Abandon(at, self.reason(at, *failures, why.as_deref()));
            }
            sooner(measurement.until());
            let ready = self.ready(at, *not_before);
            if ready > now {
                sooner(ready);
                continue;
            }
            let is_free =
                self.pair(at).iter().all(|host| self.hosts[*host].running < self.hosts[*host].at_once);
            if is_free && best.is_none_or(|best| (*failures, at) < best) {
                best = Some((*failures, at));
            }
        }
        match best {
            Some((failures, at)) => {
                self.states[at] = State::Running { failures };
                for host in self.pair(at) {
                    self.hosts[host].running += 1;
                }
                Step::Begin(at)
            }
            None if !is_open => Step::Finished,
            None => Step::Wait(next),
        }
    }

    /// Notes that the measurement with the index `at` has ended. Returns the event for the journal.
    pub fn finish(&mut self, at: usize, outcome: Result<(), Fault>, now: Instant) -> Event {
        for host in self.pair(at) {
            self.hosts[host].running = self.hosts[host].running.saturating_sub(1);
        }
        let event = match outcome {
            Ok(()) => Event::Done,
            Err(Fault { why, host }) => Event::Failed { why, host },
        };
        self.apply(at, &event, now);
        event
    }

    /// Notes that the event of a [`Step::Abandon`] is in the journal.
    pub fn abandoned(&mut self, at: usize) {
        self.states[at] = State::Abandoned;
    }

    /// Returns the earliest time at which the measurement with the index `at` may begin, as far as failures
    /// delay it. Returns `None` if the measurement runs, or if it is not tried any more.
    pub fn next_try(&self, at: usize) -> Option<Instant> {
        let State::Waiting { not_before, .. } = self.states.get(at)? else { return None };
        let measurement = &self.plan.measurements[at];
        let next = self.ready(at, *not_before).max(measurement.due());
        (next < measurement.until()).then_some(next)
    }

    /// Returns the end of the back-off of the host with this index in the plan. Before this time no
    /// measurement with the host begins.
    pub fn rests_until(&self, host: usize) -> Instant {
        self.hosts.get(host).map_or(Instant::ZERO, |host| host.not_before)
    }

    fn replay(&mut self, at: usize, entry: &Entry) {
        self.apply(at, &entry.event, instant(entry.at_ms));
    }

    fn apply(&mut self, at: usize, event: &Event, now: Instant) {
        let failures = match &self.states[at] {
            State::Waiting { failures, .. } | State::Running { failures } => *failures,
            State::Done | State::Abandoned => return,
        };
        match event {
            // The process in which the measurement ran has ended, so the measurement still waits.
            Event::Begun => {}
            Event::Done => {
                self.states[at] = State::Done;
                for host in self.pair(at) {
                    let host = &mut self.hosts[host];
                    (host.failures, host.not_before, host.why) = (0, Instant::ZERO, None);
                }
            }
            Event::Failed { why, host } => {
                let failures = failures + 1;
                let not_before = now.saturating_add(self.wait(failures));
                self.states[at] = State::Waiting { failures, not_before, why: Some(why.clone()) };
                let to_blame =
                    self.pair(at).into_iter().find(|at| Some(&self.hosts[*at].name) == host.as_ref());
                if let Some(host) = to_blame {
                    let failures = self.hosts[host].failures + 1;
                    let not_before = now.saturating_add(self.wait(failures));
                    let host = &mut self.hosts[host];
                    (host.failures, host.not_before, host.why) = (failures, not_before, Some(why.clone()));
                }
            }
            Event::Abandoned { .. } => self.states[at] = State::Abandoned,
        }
    }

    /// Returns when the back-offs of a measurement and of its hosts are over. `not_before` is the end of the
    /// measurement's own back-off.
    fn ready(&self, at: usize, not_before: Instant) -> Instant {
        self.pair(at).into_iter().map(|host| self.hosts[host].not_before).fold(not_before, Instant::max)
    }

    /// Returns the back-off after this number of failures. It doubles with each failure, up to 16 times the
    /// first.
    fn wait(&self, failures: u32) -> Duration {
        self.retry.saturating_mul(1 << failures.saturating_sub(1).min(MOST_DOUBLINGS))
    }

    /// Says why a measurement was not made in its window.
    fn reason(&self, at: usize, failures: u32, why: Option<&str>) -> String {
        let measurement = &self.plan.measurements[at];
        if let Some(why) = why {
            let times = times(failures.into());
            return format!("tried {times} in its window; the last time: {why}");
        }
        if measurement.until() <= self.begun {
            return "the coordinator did not run in its window".to_owned();
        }
        let failing = self.pair(at).into_iter().map(|host| &self.hosts[host]);
        match failing.filter(|host| host.not_before > measurement.due()).find_map(|host| host.why.as_ref()) {
            Some(why) => format!("not tried in its window, because of a failure before it: {why}"),
            None => format!("{} and {} were not both free in its window", measurement.near, measurement.far),
        }
    }

    /// Returns the indices of the hosts of the measurement with the index `at`.
    fn pair(&self, at: usize) -> [usize; 2] {
        let measurement = &self.plan.measurements[at];
        let index = |name: &str| self.hosts.iter().position(|host| host.name == name).unwrap_or(0);
        [index(&measurement.near), index(&measurement.far)]
    }
}

/// The largest number of doublings of the back-off (docs/reference/interface.md: up to 16 times the first
/// wait. Chosen: from 30 s to 8 min).
const MOST_DOUBLINGS: u32 = 4;
