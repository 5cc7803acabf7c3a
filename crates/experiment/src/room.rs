//! How many runs in real time may stand beside each other.
//!
//! A voice call keeps a processor busy for a few hundredths of its time, so most of an experiment in real
//! time is waiting, and emulated runs can wait together: each has namespaces and an emulator of its own, and
//! what they share is the machine. A run is let in while the processor shares of all that run, estimated from
//! their packets, stay within `SHARE_OF_PROCESSORS`.
//!
//! The lateness of the runs shows whether that was too many (docs/models/emulation.md, limits). A run that is
//! disturbed past its limits runs again beside at most half as many others, each time. No run has more beside
//! it than that until `QUIET_RUNS` in a row were undisturbed. If a hypervisor gave the processors to others
//! meanwhile, the neighbours are not the cause, and the run is repeated beside as many.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talkpath_measure::{MachineRecord, RunRecord};
use talkpath_path::RateModel;
use talkpath_scenario::{Demand, Flow, Scenario};

/// The machine, as the runs share it.
pub(crate) struct Room {
    state: Mutex<State>,
    changed: Condvar,
    /// Processors that all runs together may keep busy.
    capacity: f64,
}

struct State {
    /// Of each run that is here: its share, and the most others that were here with it.
    here: BTreeMap<u64, (f64, u64)>,
    next: u64,
    /// Runs that wait until nobody is here; nobody else comes in before them.
    want_alone: u64,
    /// The most others that any run may have beside it.
    most_others: u64,
    /// Runs since the last that was disturbed.
    quiet: u64,
    /// The most at a time until now.
    peak: u64,
}

/// How it went for a run that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peace {
    /// Its figures stand.
    Kept,
    /// Past its limits, probably because of what ran beside it.
    Disturbed,
    /// Past its limits while a hypervisor held the processors back.
    Stolen,
}

impl Peace {
    /// What the machine did to the run of `record`, whose figures `stand` or do not.
    pub(crate) fn of(record: &RunRecord, stand: bool) -> Self {
        let is_stolen_from = record.machine.as_ref().is_some_and(MachineRecord::is_stolen_from);
        match stand {
            true => Self::Kept,
            false if is_stolen_from => Self::Stolen,
            false => Self::Disturbed,
        }
    }

    /// Beside how many others at most a run may be repeated that had `others` beside it and was allowed
    /// `most_others`. A hypervisor's doing is not the neighbours'.
    pub(crate) const fn next_beside(self, others: u64, most_others: u64) -> u64 {
        match self {
            Self::Stolen => most_others,
            Self::Kept | Self::Disturbed => others / 2,
        }
    }
}

/// A run that was let in.
pub(crate) struct Stay<'a> {
    room: &'a Room,
    id: u64,
    left: bool,
}

impl Room {
    /// For at most `most` runs at a time on a machine with this number of `processors`.
    pub(crate) fn new(most: usize, processors: usize) -> Self {
        let state = State {
            here: BTreeMap::new(),
            next: 0,
            want_alone: 0,
            most_others: most.saturating_sub(1) as u64,
            quiet: 0,
            peak: 0,
        };
        let capacity = processors as f64 * SHARE_OF_PROCESSORS;
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// Waits until a run that keeps `share` of a processor busy may begin beside at most `most_others`;
    /// `None` once `stop` is true.
    pub(crate) fn enter(&self, share: f64, most_others: u64, stop: &AtomicBool) -> Option<Stay<'_>> {
        let mut state = self.state();
        let wants_alone = most_others == 0;
        state.want_alone += u64::from(wants_alone);
        loop {
            let is_stopped = stop.load(Ordering::Relaxed);
            if is_stopped || state.has_room(share, most_others, self.capacity) {
                state.want_alone -= u64::from(wants_alone);
                if is_stopped {
                    self.changed.notify_all();
                    return None;
                }
                let id = state.admit(share);
                return Some(Stay { room: self, id, left: false });
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The most runs that were here at a time.
    pub(crate) fn peak(&self) -> u64 {
        self.state().peak
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self, share: f64, most_others: u64, capacity: f64) -> bool {
        let others = self.here.len() as u64;
        let taken: f64 = self.here.values().map(|(share, _)| share).sum();
        let is_turn = most_others == 0 || self.want_alone == 0;
        is_turn && others <= most_others.min(self.most_others) && (others == 0 || taken + share <= capacity)
    }

    fn admit(&mut self, share: f64) -> u64 {
        let others = self.here.len() as u64;
        self.here.insert(self.next, (share, others));
        for (_, most) in self.here.values_mut() {
            *most = (*most).max(others);
        }
        self.peak = self.peak.max(others + 1);
        self.next += 1;
        self.next - 1
    }

    /// Takes a run out; returns the most others that were here with it.
    fn remove(&mut self, id: u64) -> u64 {
        self.here.remove(&id).map_or(0, |(_, most)| most)
    }
}

impl Stay<'_> {
    /// The run is over; returns the most others that were beside it. If they disturbed it, others are let in
    /// more sparingly.
    pub(crate) fn leave(mut self, peace: Peace) -> u64 {
        self.left = true;
        let mut state = self.room.state();
        let others = state.remove(self.id);
        match peace {
            Peace::Disturbed => {
                state.quiet = 0;
                state.most_others = state.most_others.min(others / 2);
            }
            Peace::Kept => {
                state.quiet += 1;
                if state.quiet >= QUIET_RUNS {
                    state.quiet = 0;
                    state.most_others = state.most_others.saturating_add(1);
                }
            }
            Peace::Stolen => {}
        }
        drop(state);
        self.room.changed.notify_all();
        others
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        if !self.left {
            self.room.state().remove(self.id);
            self.room.changed.notify_all();
        }
    }
}

/// The share of one processor that a run with `packets_per_s` keeps busy, emulator, endpoints and spins
/// together.
pub(crate) fn share(packets_per_s: f64) -> f64 {
    let waiting = packets_per_s * SPIN_S;
    // If packets follow each other in less time than a spin takes, one spin serves many.
    packets_per_s * WORK_S + waiting / (1.0 + waiting)
}

/// Packets a second that the emulator will carry for `scenario`, from what its flows send and its links let
/// through.
pub(crate) fn packets_per_s(scenario: &Scenario) -> f64 {
    let mut clocked = 0.0;
    // Of flows without a clock, what the narrowest link of each lets through; they share it.
    let mut narrowest: BTreeMap<u32, f64> = BTreeMap::new();
    for flow in &scenario.flows {
        let is_acknowledged = flow.transport.kind().features().is_acknowledged;
        let acknowledgements = if is_acknowledged { 0.5 } else { 0.0 };
        let ways = if flow.echo.is_some() { 2.0 } else { 1.0 };
        match flow.workload.demand() {
            Demand::Clocked { size, messages, nanos } => {
                let messages_per_s = messages as f64 * 1e9 / nanos.max(1) as f64;
                let pieces = size.get().div_ceil(MOST_PAYLOAD).max(1) as f64;
                clocked += (ways + acknowledgements) * messages_per_s * pieces;
            }
            Demand::Bursts { .. } | Demand::Greedy { .. } => {
                let (link, rate) = bottleneck(scenario, flow);
                narrowest.insert(link, rate * (1.0 + acknowledgements));
            }
        }
    }
    clocked + narrowest.values().sum::<f64>()
}

/// The link of `flow` that lets the fewest packets through, and how many full ones a second.
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

/// Of all processors, how much runs in real time may keep busy together (chosen: half is left for what wakes
/// up late, and for whoever else works here; lateness shows whether it was too much).
const SHARE_OF_PROCESSORS: f64 = 0.5;
/// Undisturbed runs after which one more may stand beside the others (chosen).
const QUIET_RUNS: u64 = 8;
/// Work on one packet in emulator and endpoints, s (measured: 100,000 to 170,000 packets for a processor's
/// second in the emulator, docs/models/emulation.md, and as much again at the ends).
const WORK_S: f64 = 20e-6;
/// Spinning for one packet: 60 us each before a departure and before a hand-over, and what waking up costs, s
/// (measured: a call of 100 packets/s takes 0.021 of a processor, four of 277 together 0.05).
const SPIN_S: f64 = 180e-6;
/// Payload of a full packet, B, and the packet.
const MOST_PAYLOAD: u64 = 1472;
const FULL_PACKET: f64 = 1500.0;
/// Packets a second if no link bounds them (chosen: what some 200 Mbps are).
const UNKNOWN_RATE: f64 = 16_000.0;
/// How often a run that waits checks whether it must stop.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn is_full(room: &Room, share: f64, most_others: u64) -> bool {
        !room.state().has_room(share, most_others, room.capacity)
    }

    #[test]
    fn runs_are_let_in_while_their_shares_leave_half_of_the_processors() {
        let room = Room::new(16, 2);
        let first = room.enter(0.6, MANY, &NEVER).unwrap();
        assert!(is_full(&room, 0.5, MANY), "0.6 and 0.5 of 2 processors are more than half");
        let second = room.enter(0.3, MANY, &NEVER).unwrap();
        assert_eq!((first.leave(Peace::Kept), second.leave(Peace::Kept), room.peak()), (1, 1, 2));
        assert!(room.enter(5.0, MANY, &NEVER).is_some(), "what is too much for the machine runs alone");
    }

    #[test]
    fn a_disturbed_run_halves_what_stands_beside_any_and_quiet_ones_bring_it_back() {
        let room = Room::new(16, 64);
        let mut stays: Vec<_> = (0..5).map(|_| room.enter(0.1, MANY, &NEVER).unwrap()).collect();
        assert_eq!(stays.pop().unwrap().leave(Peace::Disturbed), 4);
        for stay in stays.drain(..3) {
            stay.leave(Peace::Kept);
        }
        drop(room.enter(0.1, MANY, &NEVER).unwrap());
        let two = [room.enter(0.1, MANY, &NEVER).unwrap(), room.enter(0.1, MANY, &NEVER).unwrap()];
        assert!(is_full(&room, 0.1, MANY), "two others at most");
        assert!(is_full(&room, 0.1, 0), "nobody is alone yet");
        two.into_iter().chain(stays).for_each(|stay| _ = stay.leave(Peace::Kept));
        room.enter(0.1, 0, &NEVER).unwrap().leave(Peace::Kept);
        assert_eq!(room.state().most_others, 2);
        room.enter(0.1, MANY, &NEVER).unwrap().leave(Peace::Kept);
        assert_eq!(room.state().most_others, 3, "after eight quiet ones");
    }

    #[test]
    fn what_a_hypervisor_took_neither_halves_nor_counts_as_quiet() {
        let room = Room::new(16, 64);
        for _ in 0..2 * QUIET_RUNS {
            let stays = [room.enter(0.1, MANY, &NEVER).unwrap(), room.enter(0.1, MANY, &NEVER).unwrap()];
            stays.into_iter().for_each(|stay| _ = stay.leave(Peace::Stolen));
        }
        let state = room.state();
        assert_eq!((state.most_others, state.quiet), (15, 0));
    }

    #[test]
    fn a_run_whose_figures_stand_where_they_are_read_takes_no_neighbour_from_others() {
        let machine = |stolen| MachineRecord { stolen_share: Some(stolen), ..MachineRecord::default() };
        let bent =
            |stolen| RunRecord { valid: false, machine: Some(machine(stolen)), ..RunRecord::default() };
        let peace =
            [(0.0, true), (0.0, false), (0.5, false)].map(|(stolen, stand)| Peace::of(&bent(stolen), stand));
        assert_eq!(peace, [Peace::Kept, Peace::Disturbed, Peace::Stolen]);
    }

    #[test]
    fn who_is_to_be_alone_goes_before_those_who_come_later() {
        let room = Room::new(16, 64);
        let here = room.enter(0.1, MANY, &NEVER).unwrap();
        std::thread::scope(|scope| {
            let alone = scope.spawn(|| room.enter(0.1, 0, &NEVER).unwrap().leave(Peace::Kept));
            while room.state().want_alone == 0 {
                std::thread::yield_now();
            }
            assert!(is_full(&room, 0.1, MANY), "the one that waits comes first");
            here.leave(Peace::Kept);
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
        assert!((0.015..0.03).contains(&share(100.0)), "{}", share(100.0));
        assert!((0.8..1.2).contains(&share(15_000.0)), "{}", share(15_000.0));
    }

    const MANY: u64 = u64::MAX;
}
