//! How many runs in real time may run at the same time on this machine.
//!
//! A voice call keeps a processor busy for a few hundredths of its time, so an experiment in real time mostly
//! waits, and several emulated runs can wait together. Each has namespaces and an emulator of its own. They
//! share the processors. A run is admitted if the processor shares of all runs, estimated from their packets,
//! stay within `SHARE_OF_PROCESSORS`.
//!
//! The lateness of the runs shows whether too many ran at the same time (docs/models/emulation.md, limits).
//! After a run that was disturbed past its limits, at most half as many other runs are admitted beside any
//! run. After each `QUIET_RUNS` undisturbed runs one more is admitted. If a hypervisor held the processors
//! back, the other runs are not the cause, so the limit stays.
//!
//! Begin to read with [`Room::enter`] and [`AdmittedRun::leave`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talkpath_measure::{MachineRecord, RunRecord};
use talkpath_path::RateModel;
use talkpath_scenario::{Demand, Flow, Scenario};

/// The share of all processors that runs in real time may keep busy together. We chose a half. The other half
/// is left for wake-ups that come late and for other programs. The lateness of the runs shows whether a half
/// was too much.
const SHARE_OF_PROCESSORS: f64 = 0.5;
/// The number of undisturbed runs after which one more run is admitted at the same time. We chose 8.
const QUIET_RUNS: u64 = 8;
/// Processor time for one packet in the emulator and the endpoints, s. Measured: the emulator carries 100,000
/// to 170,000 packets per processor second (docs/models/emulation.md), and the endpoints take as long again.
const WORK_S: f64 = 20e-6;
/// Processor time for the spins of one packet, s: 60 us before its departure, 60 us before it is handed over,
/// and the cost of the wake-ups. Measured: a call of 100 packets/s takes 0.021 of a processor, and four calls
/// with 277 packets/s together take 0.05.
const SPIN_S: f64 = 180e-6;
/// The payload of a full UDP packet, B: 1500 B less the IPv4 and UDP headers.
const MOST_PAYLOAD: u64 = 1472;
/// The size of a full packet, B.
const FULL_PACKET: f64 = 1500.0;
/// Packets per second if no link has a fixed rate. We chose about 200 Mbps of full packets.
const UNKNOWN_RATE: f64 = 16_000.0;
/// How often a run that waits for room checks whether the user wants to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Admits runs as long as the machine has room for them.
pub(crate) struct Room {
    state: Mutex<RoomState>,
    changed: Condvar,
    /// The number of processors that all runs together may keep busy.
    capacity: f64,
}

struct RoomState {
    /// The runs that run now, by their number.
    running: BTreeMap<u64, RunningRun>,
    next_number: u64,
    /// The number of runs that wait until no other run is running. No other run is admitted before them.
    want_alone: u64,
    /// How many other runs are allowed beside any run.
    max_other_runs: u64,
    /// The number of undisturbed runs since the limit changed.
    quiet_runs: u64,
    /// The largest number of runs at the same time so far.
    peak: u64,
}

struct RunningRun {
    /// The estimated share of one processor.
    share: f64,
    /// The largest number of other runs so far.
    other_runs: u64,
}

/// How the machine treated a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// The figures of the run can be used.
    Undisturbed,
    /// The run was later than its limits allow, probably because of the other runs.
    Disturbed,
    /// The run was later than its limits allow, because a hypervisor held the processors back.
    HeldBack,
}

impl Treatment {
    /// `is_usable` says whether the figures of `record` can be used.
    pub(crate) fn of(record: &RunRecord, is_usable: bool) -> Self {
        let is_held_back = record.machine.as_ref().is_some_and(MachineRecord::is_stolen_from);
        if is_usable {
            Self::Undisturbed
        } else if is_held_back {
            Self::HeldBack
        } else {
            Self::Disturbed
        }
    }

    /// Returns how many other runs are allowed when the run is repeated. It had `other_runs`, and was allowed
    /// `max_other_runs`.
    pub(crate) const fn next_max_other_runs(self, other_runs: u64, max_other_runs: u64) -> u64 {
        match self {
            Self::HeldBack => max_other_runs,
            Self::Undisturbed | Self::Disturbed => other_runs / 2,
        }
    }
}

/// A run that was admitted. It leaves the room when this is dropped.
pub(crate) struct AdmittedRun<'a> {
    room: &'a Room,
    number: u64,
    has_left: bool,
}

impl Room {
    /// Makes a room for at most `max_runs` runs at the same time on a machine with `processors` processors.
    pub(crate) fn new(max_runs: usize, processors: usize) -> Self {
        let state = RoomState {
            running: BTreeMap::new(),
            next_number: 0,
            want_alone: 0,
            max_other_runs: max_runs.saturating_sub(1) as u64,
            quiet_runs: 0,
            peak: 0,
        };
        let capacity = processors as f64 * SHARE_OF_PROCESSORS;
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// Waits until a run may begin. `share` is the share of one processor that it keeps busy, and
    /// `max_other_runs` is how many other runs it allows. Returns `None` once `stop` is true.
    pub(crate) fn enter(
        &self,
        share: f64,
        max_other_runs: u64,
        stop: &AtomicBool,
    ) -> Option<AdmittedRun<'_>> {
        let mut state = self.state();
        let wants_alone = max_other_runs == 0;
        state.want_alone += u64::from(wants_alone);
        loop {
            let is_stopped = stop.load(Ordering::Relaxed);
            if is_stopped || state.has_room(share, max_other_runs, self.capacity) {
                state.want_alone -= u64::from(wants_alone);
                if is_stopped {
                    self.changed.notify_all();
                    return None;
                }
                let number = state.admit(share);
                return Some(AdmittedRun { room: self, number, has_left: false });
            }
            let waited = self.changed.wait_timeout(state, STOP_CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the largest number of runs at the same time so far.
    pub(crate) fn peak(&self) -> u64 {
        self.state().peak
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    fn has_room(&self, share: f64, max_other_runs: u64, capacity: f64) -> bool {
        if self.want_alone > 0 && max_other_runs > 0 {
            return false;
        }
        let other_runs = self.running.len() as u64;
        if other_runs > max_other_runs.min(self.max_other_runs) {
            return false;
        }
        // A run that is too much for the machine runs alone.
        let busy: f64 = self.running.values().map(|run| run.share).sum();
        other_runs == 0 || busy + share <= capacity
    }

    /// Adds a run, and returns its number.
    fn admit(&mut self, share: f64) -> u64 {
        let other_runs = self.running.len() as u64;
        let number = self.next_number;
        self.next_number += 1;
        self.running.insert(number, RunningRun { share, other_runs });
        for run in self.running.values_mut() {
            run.other_runs = run.other_runs.max(other_runs);
        }
        self.peak = self.peak.max(other_runs + 1);
        number
    }

    /// Removes a run, and returns the largest number of other runs that it had.
    fn remove(&mut self, number: u64) -> u64 {
        self.running.remove(&number).map_or(0, |run| run.other_runs)
    }
}

impl AdmittedRun<'_> {
    /// Ends the run, and adapts the limit of the room to how the machine treated the run. Returns the largest
    /// number of other runs that it had.
    pub(crate) fn leave(mut self, treatment: Treatment) -> u64 {
        self.has_left = true;
        let mut state = self.room.state();
        let other_runs = state.remove(self.number);
        match treatment {
            Treatment::Disturbed => {
                state.quiet_runs = 0;
                state.max_other_runs = state.max_other_runs.min(other_runs / 2);
            }
            Treatment::Undisturbed => {
                state.quiet_runs += 1;
                if state.quiet_runs >= QUIET_RUNS {
                    state.quiet_runs = 0;
                    state.max_other_runs = state.max_other_runs.saturating_add(1);
                }
            }
            Treatment::HeldBack => {}
        }
        drop(state);
        self.room.changed.notify_all();
        other_runs
    }
}

impl Drop for AdmittedRun<'_> {
    fn drop(&mut self) {
        if !self.has_left {
            self.room.state().remove(self.number);
            self.room.changed.notify_all();
        }
    }
}

/// Returns the share of one processor that a run with `packets_per_s` keeps busy. This includes the work of
/// the emulator and the endpoints, and the time in which they spin before a deadline.
pub(crate) fn processor_share(packets_per_s: f64) -> f64 {
    let spinning = packets_per_s * SPIN_S;
    // If packets follow each other faster than a spin takes, one spin serves several packets.
    packets_per_s * WORK_S + spinning / (1.0 + spinning)
}

/// Estimates the packets per second that the emulator carries for `scenario`, from the demand of its flows
/// and the rates of its links.
pub(crate) fn packets_per_s(scenario: &Scenario) -> f64 {
    let mut clocked = 0.0;
    // A flow without a clock sends as fast as its narrowest link allows, and flows on the same narrowest link
    // share it. By the index of the link.
    let mut narrowest: BTreeMap<u32, f64> = BTreeMap::new();
    for flow in &scenario.flows {
        let is_acknowledged = flow.transport.kind().features().is_acknowledged;
        let acknowledgements = if is_acknowledged { 0.5 } else { 0.0 };
        let directions = if flow.echo.is_some() { 2.0 } else { 1.0 };
        match flow.workload.demand() {
            Demand::Clocked { size, messages, nanos } => {
                let messages_per_s = messages as f64 * 1e9 / nanos.max(1) as f64;
                let packets = size.get().div_ceil(MOST_PAYLOAD).max(1) as f64;
                clocked += (directions + acknowledgements) * messages_per_s * packets;
            }
            Demand::Bursts { .. } | Demand::Greedy { .. } => {
                let (link, rate) = bottleneck(scenario, flow);
                narrowest.insert(link, rate * (1.0 + acknowledgements));
            }
        }
    }
    clocked + narrowest.values().sum::<f64>()
}

/// Returns the index of the slowest link on the route of `flow`, and its rate in full packets per second.
fn bottleneck(scenario: &Scenario, flow: &Flow) -> (u32, f64) {
    let rates = flow.route.iter().filter_map(|index| {
        let link = &scenario.links.get(index.0 as usize)?.config;
        match &link.rate {
            RateModel::Fixed(rate) => Some((index.0, rate.as_bps() as f64 / (8.0 * FULL_PACKET))),
            RateModel::Unlimited | RateModel::Trace(_) => None,
        }
    });
    rates.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((u32::MAX, UNKNOWN_RATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn is_full(room: &Room, share: f64, max_other_runs: u64) -> bool {
        !room.state().has_room(share, max_other_runs, room.capacity)
    }

    #[test]
    fn runs_are_let_in_while_their_shares_leave_half_of_the_processors() {
        let room = Room::new(16, 2);
        let first = room.enter(0.6, MANY, &NEVER).unwrap();
        assert!(is_full(&room, 0.5, MANY), "0.6 and 0.5 of 2 processors are more than half");
        let second = room.enter(0.3, MANY, &NEVER).unwrap();
        assert_eq!(
            (first.leave(Treatment::Undisturbed), second.leave(Treatment::Undisturbed), room.peak()),
            (1, 1, 2)
        );
        assert!(room.enter(5.0, MANY, &NEVER).is_some(), "what is too much for the machine runs alone");
    }

    #[test]
    fn a_disturbed_run_halves_what_stands_beside_any_and_quiet_ones_bring_it_back() {
        let room = Room::new(16, 64);
        let mut stays: Vec<_> = (0..5).map(|_| room.enter(0.1, MANY, &NEVER).unwrap()).collect();
        assert_eq!(stays.pop().unwrap().leave(Treatment::Disturbed), 4);
        for stay in stays.drain(..3) {
            stay.leave(Treatment::Undisturbed);
        }
        drop(room.enter(0.1, MANY, &NEVER).unwrap());
        let two = [room.enter(0.1, MANY, &NEVER).unwrap(), room.enter(0.1, MANY, &NEVER).unwrap()];
        assert!(is_full(&room, 0.1, MANY), "two others at most");
        assert!(is_full(&room, 0.1, 0), "nobody is alone yet");
        two.into_iter().chain(stays).for_each(|stay| _ = stay.leave(Treatment::Undisturbed));
        room.enter(0.1, 0, &NEVER).unwrap().leave(Treatment::Undisturbed);
        assert_eq!(room.state().max_other_runs, 2);
        room.enter(0.1, MANY, &NEVER).unwrap().leave(Treatment::Undisturbed);
        assert_eq!(room.state().max_other_runs, 3, "after eight quiet ones");
    }

    #[test]
    fn what_a_hypervisor_took_neither_halves_nor_counts_as_quiet() {
        let room = Room::new(16, 64);
        for _ in 0..2 * QUIET_RUNS {
            let stays = [room.enter(0.1, MANY, &NEVER).unwrap(), room.enter(0.1, MANY, &NEVER).unwrap()];
            stays.into_iter().for_each(|stay| _ = stay.leave(Treatment::HeldBack));
        }
        let state = room.state();
        assert_eq!((state.max_other_runs, state.quiet_runs), (15, 0));
    }

    #[test]
    fn a_run_whose_figures_stand_where_they_are_read_takes_no_neighbour_from_others() {
        let machine = |stolen| MachineRecord { stolen_share: Some(stolen), ..MachineRecord::default() };
        let bent =
            |stolen| RunRecord { valid: false, machine: Some(machine(stolen)), ..RunRecord::default() };
        let peace = [(0.0, true), (0.0, false), (0.5, false)]
            .map(|(stolen, stand)| Treatment::of(&bent(stolen), stand));
        assert_eq!(peace, [Treatment::Undisturbed, Treatment::Disturbed, Treatment::HeldBack]);
    }

    #[test]
    fn who_is_to_be_alone_goes_before_those_who_come_later() {
        let room = Room::new(16, 64);
        let here = room.enter(0.1, MANY, &NEVER).unwrap();
        std::thread::scope(|scope| {
            let alone = scope.spawn(|| room.enter(0.1, 0, &NEVER).unwrap().leave(Treatment::Undisturbed));
            while room.state().want_alone == 0 {
                std::thread::yield_now();
            }
            assert!(is_full(&room, 0.1, MANY), "the one that waits comes first");
            here.leave(Treatment::Undisturbed);
            assert_eq!(alone.join().unwrap(), 0);
        });
    }

    #[test]
    fn nobody_waits_on_after_the_user_stopped_it() {
        let room = Room::new(1, 2);
        let _here = room.enter(0.1, MANY, &NEVER).unwrap();
        assert!(room.enter(0.1, MANY, &AtomicBool::new(true)).is_none());
    }

    #[test]
    fn a_call_takes_some_hundredths_of_a_processor_and_a_busy_link_most_of_one() {
        assert!((0.015..0.03).contains(&processor_share(100.0)), "{}", processor_share(100.0));
        assert!((0.8..1.2).contains(&processor_share(15_000.0)), "{}", processor_share(15_000.0));
    }

    const MANY: u64 = u64::MAX;
}
