//! Steps of flows that share a QUIC connection.
//!
//! A packet comes for the connection, and so does a deadline of its engine. Then a flow takes a step if the
//! connection has something new for it ([`talkpath_quic::End::next_ready`]), or if its application is due.
//! The other flows would find nothing to do. So the cost of a packet depends on the flows that it is about,
//! and not on the number of flows that share the connection.
//!
//! **Order.** The first step is that of the flow which takes the packet, or which opens. At a deadline of the
//! engine it is that of the first flow that is open. The other flows follow in the scenario's order. If a
//! step gave others something to do, a second round begins.
//!
//! **Timers.** Each end of a connection has one timer, for the engine and for the applications of its flows.
//! The timer of a flow's near end only opens the flow.

use talkpath_flow::Side;
use talkpath_units::Instant;

use super::{ArrivedPacket, Simulation};
use crate::connections::Connection;
use crate::shared::SharedPlace;

impl Simulation {
    /// Takes the steps after a packet has `arrived` for the connection of the flow at `at`, or after this
    /// flow has opened.
    #[cold]
    pub(super) fn step_shared(
        &mut self,
        at: SharedPlace,
        side: Side,
        arrived: Option<ArrivedPacket>,
        now: Instant,
    ) {
        let first = match arrived {
            Some(_) => self.connections.get(at.connection).shared[side as usize].first_open,
            None => at.place,
        };
        self.step_flows(at.connection, side, Some(first), arrived, now);
    }

    /// Handles the timer of an end of a connection.
    #[cold]
    pub(super) fn wake_connection(&mut self, connection: usize, side: Side, now: Instant) {
        let shared = self.connections.get(connection);
        let mut end = shared.end(side).borrow_mut();
        let is_due = end.poll_timeout().is_some_and(|deadline| deadline <= now);
        if is_due {
            end.handle_timeout(now);
        }
        drop(end);
        // The engine's packets leave in the step of some flow.
        let first = is_due.then(|| shared.shared[side as usize].first_open);
        self.step_flows(connection, side, first, None, now);
    }

    /// Takes a step for the flow `first`, which takes the packet that has `arrived`, and then for each flow
    /// that is due or for which there is something new. If `first` is `None`, the first step is that of the
    /// first flow that is due.
    fn step_flows(
        &mut self,
        connection: usize,
        side: Side,
        first: Option<usize>,
        arrived: Option<ArrivedPacket>,
        now: Instant,
    ) {
        let shared = self.connections.get_mut(connection);
        let flows = shared.flows.len();
        let leader = shared.flows[0];
        let state = &mut shared.shared[side as usize];
        state.find_due(now);
        let Some(first) = first.or_else(|| state.due.first().copied()) else {
            // The deadline for which the timer was armed has moved.
            return self.settle_shared(connection, side, now);
        };
        self.step_member(connection, first, side, arrived, now);
        // The lines of a flow show the state of its connection, so a flow without a step reads it too.
        let mut reads = side == Side::Near && self.flows[leader as usize].meter.draws();
        let mut from = 0;
        loop {
            let next = self.connections.get(connection).next_step(side, from);
            if reads {
                let silent = (from..next.unwrap_or(flows)).filter(|place| *place != first);
                silent.for_each(|place| self.read_meter(connection, place, now));
            }
            match next {
                Some(place) => {
                    self.step_member(connection, place, side, None, now);
                    from = place + 1;
                }
                None if from == 0 => break,
                // A step may have moved a flow before it.
                None => (from, reads) = (0, false),
            }
        }
        self.settle_shared(connection, side, now);
    }

    /// Takes the step of the flow at `place`. A flow that is not open takes none.
    fn step_member(
        &mut self,
        connection: usize,
        place: usize,
        side: Side,
        arrived: Option<ArrivedPacket>,
        now: Instant,
    ) {
        let shared = self.connections.get_mut(connection);
        let (index, leader) = (shared.flows[place], shared.flows[0]);
        shared.shared[side as usize].due.remove(&place);
        #[cfg(test)]
        {
            shared.shared[side as usize].steps += 1;
        }
        if side == Side::Near && !self.flows[index as usize].opened {
            return shared.end(side).borrow_mut().clear_ready(place);
        }
        // The engine's part of the deadline is the connection's.
        let _deadline = self.take_step(index, leader, side, arrived, now);
        let flow = &self.flows[index as usize];
        let endpoint = if side == Side::Near { &flow.near } else { &flow.far };
        let next = endpoint.next_turn();
        self.connections.get_mut(connection).shared[side as usize].set_deadline(place, next);
    }

    /// Reads the state of the sender of the flow at `place`, if it is open.
    fn read_meter(&mut self, connection: usize, place: usize, now: Instant) {
        let index = self.connections.get(connection).flows[place];
        let flow = &mut self.flows[index as usize];
        if flow.opened {
            flow.meter.read(&flow.near, now);
        }
    }

    /// Ends the steps: the flows read the congestion window if it has changed, and the connection's timer is
    /// armed.
    fn settle_shared(&mut self, connection: usize, side: Side, now: Instant) {
        let shared = self.connections.get_mut(connection);
        let end = shared.end(side).borrow();
        let (windows, engine_deadline) = (end.windows_key(), end.poll_timeout().unwrap_or(Instant::MAX));
        drop(end);
        let flows = shared.flows.len();
        let state = &mut shared.shared[side as usize];
        let deadline = engine_deadline.min(state.next());
        let old_windows = core::mem::replace(&mut state.windows, windows);
        if windows != old_windows && side == Side::Near {
            (0..flows).for_each(|place| self.read_meter(connection, place, now));
        }
        let timer = self.timer_of_connection(connection, side);
        self.network.arm_timer(timer, deadline.max(now));
    }
}

impl Connection {
    /// Returns the first flow from `from` on that is due, or for which there is something new.
    fn next_step(&self, side: Side, from: usize) -> Option<usize> {
        let due = self.shared[side as usize].due.range(from..).next().copied();
        due.into_iter().chain(self.end(side).borrow().next_ready(from)).min()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use talkpath_arena::RunPlan;
    use talkpath_scenario::{Options, Source, load};

    use crate::build::build;

    /// Steps of each call at both ends of a connection with this number of calls in it.
    fn steps_of_a_call(calls: u32, carry: &str) -> f64 {
        let path = "{ rate = \"100 Mbps\", delay = \"20 ms\", loss = 0.01 }";
        let mut text = format!("name = \"calls\"\nduration = \"2 s\"\n[path]\nup = {path}\ndown = {path}\n");
        for call in 0..calls {
            text += &format!(
                "[flow.call{call}]\ntransport = {{ kind = \"{carry}\", connection = \"one\", encryption = false }}\n\
                 workload = {{ kind = \"voice\", codec = \"g711\", echo = true }}\n\
                 start = {{ from = \"0 ms\", to = \"500 ms\" }}\n"
            );
        }
        let plan =
            load(&Source::new("calls.toml", text), &Options::default()).expect("the scenario is right");
        let interrupt = AtomicBool::new(false);
        let (cell, repetition, seed) = (0, 0, plan.seed);
        let run = RunPlan {
            cell,
            repetition,
            seed,
            series: None,
            rows: false,
            interrupt: &interrupt,
            progress: &|_| {},
        };
        let mut simulation = build(&plan.cells[0].scenario, &run);
        simulation.start_flows();
        while simulation.handle_outputs(64).is_some() {}
        let steps: u64 = simulation.connections.get(0).shared.iter().map(|end| end.steps).sum();
        steps as f64 / f64::from(calls)
    }

    #[test]
    fn a_flow_takes_as_many_steps_whatever_number_of_flows_shares_its_connection() {
        for carry in ["quic-datagram", "quic-stream", "quic-stream-per-message"] {
            let [few, many] = [4, 40].map(|calls| steps_of_a_call(calls, carry));
            assert!(many < 1.5 * few, "{carry}: {few} and {many}");
        }
    }
}
