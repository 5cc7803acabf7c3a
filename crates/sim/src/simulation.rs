//! One run: the endpoints of all flows on both sides of a network, under a virtual clock.
//!
//! ```text
//!   network: next output ─┬─ a packet has arrived ─► its endpoint ─┐
//!        ▲                └─ a timer goes off ─────► its endpoint ─┤ step
//!        └────────────── packets leave, timer armed ───────────────┘
//! ```
//!
//! The network's agenda orders all events. Each endpoint has one timer in the agenda.
//!
//! **How a run ends.** Applications send until `duration`. After that the run goes on until all messages are
//! delivered, or until nothing was delivered for the time `drain`:
//!
//! | field | before `duration` | after |
//! | --- | --- | --- |
//! | `duration`, `drain` | fixed | fixed |
//! | `pending` | `None`: nobody needs the number | messages that are still to be delivered |
//! | `last_delivery` | zero | when the last message was delivered after `duration` |
//! | `ended` | `duration` | when the last event after `duration` was |

use core::sync::atomic::Ordering;

use talkpath_arena::RunPlan;
use talkpath_arena::links::{QueueSeries, cause_of_drop, link_records};
use talkpath_flow::{Exchange, Side};
use talkpath_measure::{DropCause, RunRecord};
use talkpath_path::{
    Carried, Direction, FragmentRange, Network, NetworkEvent, NetworkOutput, PathPacket, Reassembled,
};
use talkpath_scenario::Scenario;
use talkpath_transport::{Ecn, Outlet, Packet, Transmit};
use talkpath_units::{Bytes, Duration, Instant};

use crate::connections::Connections;
use crate::flow::SimFlow;
use crate::packets::{PacketHandle, SimPackets};
use crate::tap::{Sighting, Tap};

/// A run in progress.
pub(crate) struct Simulation {
    pub(crate) network: Network<PacketHandle>,
    pub(crate) packets: SimPackets,
    pub(crate) flows: Vec<SimFlow>,
    /// Whose ends the flows over QUIC share.
    pub(crate) connections: Connections,
    /// The bytes that the IP header of each packet has beyond IPv4's 20. Transports count 20 B for the
    /// header.
    pub(crate) extra_header: u64,
    /// The lengths of the queues over time. `None` if the plan does not record them.
    pub(crate) queue_series: Option<QueueSeries>,
    /// Sees each packet that leaves or arrives. `None` if no capture is made of the run.
    pub(crate) tap: Option<Box<Tap>>,
    /// When applications stop sending.
    pub(crate) duration: Instant,
    /// The run ends if nothing was delivered for this time after `duration`.
    pub(crate) drain: Duration,
    /// The number of messages and echoes of all flows that are still to be delivered. `None` before
    /// `duration`.
    pub(crate) pending: Option<u64>,
    /// When a message or an echo was last delivered after `duration`. Zero before the first one.
    pub(crate) last_delivery: Instant,
    /// `duration`, or when the latest event after it happened.
    pub(crate) ended: Instant,
}

/// The number of timers that the endpoints of `flows` flows have.
pub(crate) fn timers(flows: usize) -> u32 {
    u32::try_from(2 * flows).expect("fewer than 2^31 flows: they would need terabytes")
}

/// The timer of the endpoint of `flow` at `side`.
const fn timer_of(flow: u32, side: Side) -> u32 {
    2 * flow + side as u32
}

/// The flow of a timer, and the side of its endpoint.
const fn endpoint_of(timer: u32) -> (u32, Side) {
    (timer / 2, if timer.is_multiple_of(2) { Side::Near } else { Side::Far })
}

/// The direction of the packets that the endpoint at `side` sends.
const fn direction_from(side: Side) -> Direction {
    match side {
        Side::Near => Direction::Out,
        Side::Far => Direction::Back,
    }
}

/// The direction of the packets that come to the endpoint at `side`.
const fn direction_to(side: Side) -> Direction {
    match side {
        Side::Near => Direction::Back,
        Side::Far => Direction::Out,
    }
}

/// The side of the endpoint to which packets travel in this direction.
const fn destination(direction: Direction) -> Side {
    match direction {
        Direction::Out => Side::Far,
        Direction::Back => Side::Near,
    }
}

impl Simulation {
    /// Runs until the run ends or the plan interrupts it. Returns the time at which it ended, and true if it
    /// was interrupted.
    pub(crate) fn run(&mut self, plan: &RunPlan<'_>) -> (Instant, bool) {
        self.run_with_tap(plan, &mut |_| {})
    }

    /// As [`Self::run`], and calls `see` for each packet that the tap has seen leave or arrive.
    pub(crate) fn run_with_tap(
        &mut self,
        plan: &RunPlan<'_>,
        see: &mut dyn FnMut(&Sighting),
    ) -> (Instant, bool) {
        self.start_flows();
        while let Some(at) = self.handle_outputs(OUTPUTS_BETWEEN_CHECKS) {
            self.empty_tap(see);
            self.take_queue_changes();
            (plan.progress)(at);
            if plan.interrupt.load(Ordering::Relaxed) {
                return (at, true);
            }
        }
        self.empty_tap(see);
        (self.ended, false)
    }

    /// Handles the next `count` outputs of the network. Returns the time of the last of them, or `None` if
    /// the run has ended.
    pub(crate) fn handle_outputs(&mut self, count: u32) -> Option<Instant> {
        let mut last = None;
        for _ in 0..count {
            // Outputs before `duration` are polled here and not in a function with those after it: such a
            // function returned each output through memory, which took an eighth of this loop's time.
            last = Some(match self.network.poll_output(self.duration) {
                Some(output) => self.handle(output),
                None => self.handle_after_duration()?,
            });
        }
        last
    }

    /// Runs until `end`, which may lie after `duration`. Calls `see` for each output of the network before it
    /// is handled, and ends earlier if `see` returns false. Returns the time at which it ended, or `None` if
    /// the plan interrupts it.
    pub(crate) fn run_observed(
        &mut self,
        plan: &RunPlan<'_>,
        end: Instant,
        see: &mut dyn FnMut(&NetworkOutput<PacketHandle>) -> bool,
    ) -> Option<Instant> {
        self.start_flows();
        loop {
            if plan.interrupt.load(Ordering::Relaxed) {
                return None;
            }
            self.take_queue_changes();
            for _ in 0..OUTPUTS_BETWEEN_CHECKS {
                let Some(output) = self.network.poll_output(end) else { return Some(end) };
                if !see(&output) {
                    return Some(output.at);
                }
                self.handle(output);
            }
        }
    }

    fn take_queue_changes(&mut self) {
        if let Some(series) = &mut self.queue_series {
            series.take(&mut self.network);
        }
    }

    fn empty_tap(&mut self, see: &mut dyn FnMut(&Sighting)) {
        if let Some(tap) = &mut self.tap {
            tap.seen.drain(..).for_each(|sighting| see(&sighting));
        }
    }

    /// Wakes each flow at its start.
    pub(crate) fn start_flows(&mut self) {
        for (index, flow) in (0..).zip(&self.flows) {
            self.network.arm_timer(timer_of(index, Side::Near), flow.start);
        }
    }

    /// Handles the next output after `duration`. Returns its time, or `None` if the run has ended.
    #[cold]
    fn handle_after_duration(&mut self) -> Option<Instant> {
        while let Some(at) = self.network.poll_timeout() {
            self.count_pending();
            if self.ends_before(at) {
                return None;
            }
            self.ended = at;
            if let Some(output) = self.network.poll_output(at) {
                return Some(self.handle(output));
            }
        }
        None
    }

    /// Counts the pending messages when `duration` is over. From then on [`Self::update_pending`] keeps the
    /// number.
    fn count_pending(&mut self) {
        if self.pending.is_none() {
            self.pending = Some(self.flows.iter().map(|flow| flow.taps.pending()).sum());
        }
    }

    /// True if the run ends before the next event, which is at `at`.
    fn ends_before(&self, at: Instant) -> bool {
        let drained_at = self.duration.max(self.last_delivery).saturating_add(self.drain);
        self.pending == Some(0) || at > drained_at
    }

    /// Makes the record of the run, which ended at `end`.
    pub(crate) fn finish(mut self, end: Instant, plan: &RunPlan<'_>, scenario: &Scenario) -> RunRecord {
        let mut series = Vec::new();
        // A link's report first begins all services that are due by `end`. That changes the queue, so the
        // changes are taken after it.
        let links = link_records(&mut self.network, scenario, end);
        self.take_queue_changes();
        let flows = self.flows.into_iter().map(|flow| flow.finish(end, &mut series)).collect();
        series.extend(self.queue_series.into_iter().flat_map(QueueSeries::finish));
        RunRecord {
            cell: plan.cell,
            repetition: plan.repetition,
            seed: plan.seed.get(),
            window_start: Instant::ZERO + scenario.warm_up,
            window_end: Instant::ZERO + scenario.duration,
            drain: scenario.drain,
            flows,
            links,
            series,
            valid: true,
            ..RunRecord::default()
        }
    }

    /// Handles an output of the network. Returns its time.
    #[inline(always)]
    fn handle(&mut self, NetworkOutput { at, event }: NetworkOutput<PacketHandle>) -> Instant {
        match event {
            NetworkEvent::Arrived(packet) => self.deliver(packet, at),
            NetworkEvent::Timer(timer) => self.wake_endpoint(timer, at),
            NetworkEvent::Dropped { packet, cause, .. } => self.record_drop(packet, cause_of_drop(cause)),
            NetworkEvent::Lost { packet, .. } => self.record_drop(packet, DropCause::Loss),
            // Whoever observes hops sees them in [`Self::run_observed`].
            NetworkEvent::Entered { .. } => {}
        }
        at
    }

    /// The timer of an endpoint goes off.
    fn wake_endpoint(&mut self, timer: u32, now: Instant) {
        let (index, side) = endpoint_of(timer);
        let flow = &mut self.flows[index as usize];
        let endpoint = match side {
            Side::Near => &mut flow.near,
            Side::Far => &mut flow.far,
        };
        let deadline = endpoint.poll_timeout();
        // Most deadlines have moved to a later time by now. Then nothing is due, and the timer is armed
        // again.
        let is_waiting = side == Side::Near && !flow.opened;
        if deadline > now && !is_waiting {
            return self.network.arm_timer(timer, deadline);
        }
        endpoint.handle_timeout(now);
        // A flow opens at its near end. (A far end can have a timer earlier, if another flow of the same
        // connection has begun.)
        if is_waiting {
            flow.opened = true;
            endpoint.open(now);
        }
        self.step(index, side, None, now);
    }

    /// A packet, or a fragment of one, has come to its destination.
    #[inline(always)]
    fn deliver(&mut self, packet: PathPacket<PacketHandle>, now: Instant) {
        let mut ecn = packet.ecn();
        if !packet.part().is_whole() {
            match self.reassemble(packet, now) {
                Some(whole) => ecn = whole,
                None => return,
            }
        }
        let side = destination(packet.direction());
        self.step(packet.flow(), side, Some((packet.tag, ecn)), now);
    }

    /// Takes a fragment that has arrived. Returns the ECN field of its packet if the packet is whole now.
    #[cold]
    fn reassemble(&mut self, fragment: PathPacket<PacketHandle>, now: Instant) -> Option<Ecn> {
        let flow = &mut self.flows[fragment.flow() as usize];
        let reassembly = match destination(fragment.direction()) {
            Side::Near => &mut flow.near_reassembly,
            Side::Far => &mut flow.far_reassembly,
        };
        // Gives up packets whose fragments did not come in time. Nothing is recorded here, because the path
        // recorded the drop of the missing fragment.
        while reassembly.poll_expired(now).is_some() {}
        let identification = self.packets.get(fragment.tag).identification;
        match reassembly.handle_fragment(identification, fragment.part(), fragment.ecn(), now) {
            // The endpoint's step takes the packet off the path ([`StepContext::release`]).
            Reassembled::Whole { ecn, .. } => return Some(ecn),
            Reassembled::Incomplete => self.take_off_path(fragment),
            Reassembled::Refused => self.record_drop(fragment, DropCause::Fragment),
        }
        None
    }

    /// Lets the endpoint of a flow at `side` do everything that it can do now, and arms its timer. If a
    /// packet has `arrived`, the endpoint takes it first.
    ///
    /// Several flows over QUIC may share one connection. Then a packet can carry data of each of them, and
    /// the endpoints of all these flows take a step.
    fn step(&mut self, index: u32, side: Side, arrived: Option<(PacketHandle, Ecn)>, now: Instant) {
        if self.flows[index as usize].members.is_none() {
            self.step_flow(index, index, side, arrived, now);
        } else {
            self.step_members(index, side, arrived, now);
        }
    }

    /// Takes a step for each flow of the connection that flow `index` belongs to, this flow first. Flows that
    /// have not begun are left out.
    #[cold]
    fn step_members(
        &mut self,
        index: u32,
        side: Side,
        mut arrived: Option<(PacketHandle, Ecn)>,
        now: Instant,
    ) {
        let Some(members) = self.flows[index as usize].members.clone() else { return };
        let others = members.iter().copied().filter(|other| *other != index);
        for member in core::iter::once(index).chain(others) {
            if side == Side::Far || self.flows[member as usize].opened {
                self.step_flow(member, members[0], side, arrived.take(), now);
            }
        }
    }

    /// Takes a step for one flow. Its packets bear the number of the flow `leader`. That is the first flow of
    /// a shared connection; every other flow is its own leader.
    #[inline(always)]
    fn step_flow(
        &mut self,
        index: u32,
        leader: u32,
        side: Side,
        arrived: Option<(PacketHandle, Ecn)>,
        now: Instant,
    ) {
        let flow = &mut self.flows[index as usize];
        if let (Some(tap), Some((handle, ecn))) = (&mut self.tap, arrived) {
            tap.on_arrival(self.packets.get(handle), (index, direction_to(side), ecn), now);
        }
        let direction = direction_from(side);
        let mut context = StepContext {
            network: &mut self.network,
            packets: &mut self.packets,
            tap: self.tap.as_deref_mut(),
            arrived,
            identification: &mut flow.identifications[direction as usize],
            extra_header: self.extra_header,
            flow: leader,
            direction,
            now,
        };
        let pending_before = self.pending.is_some().then(|| flow.taps.pending());
        let deadline = match side {
            Side::Near => {
                let deadline = flow.near.step(Side::Near, &mut flow.taps, now, &mut context);
                flow.meter.read(&flow.near, now);
                deadline
            }
            Side::Far => {
                let deadline = flow.far.step(Side::Far, &mut flow.taps, now, &mut context);
                // The far end's steps are enough to count by: each message arrives there, and each echo
                // begins there.
                flow.tally();
                deadline
            }
        };
        self.network.arm_timer(timer_of(index, side), deadline.max(now));
        if let Some(before) = pending_before {
            self.update_pending(index, before, now);
        }
    }

    /// Updates `pending` after a step of a flow that had `before` messages pending before the step.
    #[cold]
    fn update_pending(&mut self, index: u32, before: u64, now: Instant) {
        let after = self.flows[index as usize].taps.pending();
        if after < before {
            self.last_delivery = now;
        }
        self.pending = self.pending.map(|pending| pending + after - before);
    }

    /// Records that the path dropped or lost a packet, or a fragment of one. A datagram that lost a fragment
    /// is lost, and its message with it. A lost TCP segment is sent again, so no message is lost.
    #[cold]
    fn record_drop(&mut self, dropped: PathPacket<PacketHandle>, cause: DropCause) {
        let cause = if dropped.part().is_whole() { cause } else { DropCause::Fragment };
        let (leader, direction) = (dropped.flow(), dropped.direction());
        match &self.packets.get(dropped.tag).packet {
            Packet::Quic(packet) => {
                let members = self.flows[leader as usize].members.clone();
                for (flow, seq) in packet.messages().collect::<Vec<_>>() {
                    let member = members.as_deref().and_then(|members| members.get(flow as usize));
                    let index = member.copied().unwrap_or(leader);
                    self.record_dropped_message((index, direction), seq, cause);
                }
            }
            other => {
                if let Some(seq) = other.message() {
                    self.record_dropped_message((leader, direction), seq, cause);
                }
            }
        }
        self.take_off_path(dropped);
    }

    fn record_dropped_message(&mut self, way: (u32, Direction), seq: u64, cause: DropCause) {
        let taps = &mut self.flows[way.0 as usize].taps;
        let before = taps.pending();
        match way.1 {
            Direction::Out => taps.forward.on_dropped(seq, cause),
            Direction::Back => {
                if let Some(tap) = &mut taps.echo {
                    tap.on_dropped(seq, cause);
                }
            }
        }
        self.pending = self.pending.map(|pending| pending + taps.pending() - before);
    }

    /// Removes a packet, or a fragment of one, that has left the path without an endpoint taking it.
    fn take_off_path(&mut self, packet: PathPacket<PacketHandle>) {
        if self.packets.take_off_path(packet.tag, packet.part()) {
            self.packets.remove(packet.tag);
        }
    }
}

/// The network as one step of an endpoint sees it: the packet that has arrived, and the way out for packets.
struct StepContext<'a> {
    network: &'a mut Network<PacketHandle>,
    packets: &'a mut SimPackets,
    tap: Option<&'a mut Tap>,
    arrived: Option<(PacketHandle, Ecn)>,
    identification: &'a mut u32,
    extra_header: u64,
    flow: u32,
    direction: Direction,
    now: Instant,
}

impl Exchange for StepContext<'_> {
    #[inline(always)]
    fn arrived(&self) -> Option<(&Packet, Ecn)> {
        let (handle, ecn) = self.arrived?;
        Some((&self.packets.get(handle).packet, ecn))
    }

    #[inline(always)]
    fn release(&mut self) {
        // An endpoint calls this once per step, because it takes one packet per step.
        if let Some((handle, _)) = self.arrived {
            self.packets.remove(handle);
        }
    }
}

impl Outlet for StepContext<'_> {
    #[inline(always)]
    fn take(&mut self, transmit: Transmit) {
        *self.identification = self.identification.wrapping_add(1);
        let Transmit { packet, ecn, wire_size, .. } = transmit;
        debug_assert_eq!(
            u64::from(wire_size),
            packet.wire_size().get(),
            "the transport gives the packet's size with the packet"
        );
        let (flow, direction) = (self.flow, self.direction);
        let whole = FragmentRange::whole(Bytes::new(u64::from(wire_size) + self.extra_header));
        let handle = self.packets.insert(packet, *self.identification, whole);
        if let Some(tap) = &mut self.tap {
            tap.on_departure(self.packets.get(handle), (flow, direction, ecn), self.now);
        }
        self.network.handle_packet(PathPacket::new(flow, direction, whole, ecn, handle), self.now);
    }
}

/// The number of outputs between two checks of the interrupt. A check costs more than an output. Chosen.
const OUTPUTS_BETWEEN_CHECKS: u32 = 1 << 14;
