//! What to do next, from the plan, the journal and the time.
//!
//! ```text
//!             due, both hosts free
//!   Waiting ───────────────────────► Running ──► Done
//!    │   ▲                              │
//!    │   └──── failed: back-off ────────┘
//!    └──► Abandoned: its window is over
//! ```
//!
//! A host that fails is left alone for the back-off, so that a host that is down costs the others one attempt
//! in that time, not one for each measurement. Of what can begin, what has failed less often comes first,
//! then what was due earlier.

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
    /// Every measurement before it is done or abandoned.
    first_open: usize,
}

/// What the caller does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write [`Event::Begun`] for this measurement and begin it.
    Begin(usize),
    /// Write [`Event::Abandoned`] for this measurement.
    Abandon(usize, String),
    /// Nothing until then, or until a measurement ends; `None` if all that is left is running.
    Wait(Option<Instant>),
    /// Every measurement is done or abandoned.
    Finished,
}

/// Why a measurement came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In words for a person.
    pub why: String,
    /// The host at which it failed, if that is known.
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
    /// Measurements that it takes at the same time.
    at_once: u64,
    running: u64,
    /// One after the other.
    failures: u32,
    not_before: Instant,
    why: Option<String>,
}

impl<'p> Scheduler<'p> {
    /// The state after `entries`, for a process that begins at `now`. `at_once` has, for each host of the
    /// plan, how many measurements it takes at the same time.
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
        // Names of measurements to their places: the plan is in the order of time.
        let mut places: Vec<(&str, usize)> =
            plan.measurements.iter().enumerate().map(|(at, it)| (it.id.as_str(), at)).collect();
        places.sort_unstable();
        for entry in entries {
            if let Ok(found) = places.binary_search_by_key(&entry.id.as_str(), |(id, _)| id) {
                scheduler.replay(places[found].1, entry);
            }
        }
        scheduler
    }

    /// What to do at `now`.
    pub fn step(&mut self, now: Instant) -> Step {
        while self.states.get(self.first_open).is_some_and(|it| matches!(it, State::Done | State::Abandoned))
        {
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
                // The rest is due later.
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

    /// The measurement at `at` has ended; returns what to write down.
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

    /// What [`Step::Abandon`] demanded is written down.
    pub fn abandoned(&mut self, at: usize) {
        self.states[at] = State::Abandoned;
    }

    /// When the measurement at `at` may begin at the earliest, as far as failures decide that; `None` if it
    /// runs, or is not tried any more.
    pub fn next_try(&self, at: usize) -> Option<Instant> {
        let State::Waiting { not_before, .. } = self.states.get(at)? else { return None };
        let measurement = &self.plan.measurements[at];
        let next = self.ready(at, *not_before).max(measurement.due());
        (next < measurement.until()).then_some(next)
    }

    /// Until when nothing is begun with the host at this place of the plan's, because of a failure.
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
            // It ran in a process that has ended: it waits again.
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

    /// When the rest of the measurement at `at`, which ends at `not_before`, and of its hosts is over.
    fn ready(&self, at: usize, not_before: Instant) -> Instant {
        self.pair(at).into_iter().map(|host| self.hosts[host].not_before).fold(not_before, Instant::max)
    }

    /// Doubles with each failure, up to 16 times the first.
    fn wait(&self, failures: u32) -> Duration {
        self.retry.saturating_mul(1 << failures.saturating_sub(1).min(MOST_DOUBLINGS))
    }

    /// Why a measurement was not made in its window.
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

    /// The places of its hosts.
    fn pair(&self, at: usize) -> [usize; 2] {
        let measurement = &self.plan.measurements[at];
        let place = |name: &str| self.hosts.iter().position(|host| host.name == name).unwrap_or(0);
        [place(&measurement.near), place(&measurement.far)]
    }
}

/// docs/reference/interface.md: up to 16 times the first wait. Chosen: from 30 s to 8 min.
const MOST_DOUBLINGS: u32 = 4;
