//! One run: the endpoints of all flows on both sides of a network, under a virtual clock.
//!
//! ```text
//!   network: next output ─┬─ a packet has arrived ─► its endpoint ─┐
//!        ▲                └─ a timer goes off ─────► its endpoint ─┤ step
//!        └────────────── packets leave, timer armed ───────────────┘
//! ```
//!
//! The network's agenda orders all events. Each endpoint has one timer in the agenda, and so has each end of
//! a QUIC connection that several flows share. Of these flows, those take a step that have something to do
//! (`shared`).
//!
//! **How a run ends.** Applications send until `duration`. After that the run drains: it goes on until all
//! messages are delivered, or until nothing was delivered for the time `drain` ([`Draining`]).
//!
//! `journey` has a loop of its own, because an animation sees each output of the network.

mod shared;

use core::sync::atomic::Ordering;

use talkpath_arena::RunPlan;
use talkpath_arena::links::{QueueSeries, cause_of_drop, link_records};
use talkpath_flow::{FlowTaps, Side};
use talkpath_measure::{DropCause, RunRecord};
use talkpath_model::Scenario;
use talkpath_path::{
    Carried, Direction, Dscp, FragmentRange, Network, NetworkEvent, NetworkOutput, PathPacket, Reassembled,
};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed};
use talkpath_wire::{Outlet, Packet, Transmit};

use crate::connections::Connections;
use crate::exchange::Exchange;
use crate::flow::SimFlow;
use crate::packets::{PacketHandle, SimPackets};
use crate::shared::SharedPlace;
use crate::tap::{Sighting, Tap};

/// A run in progress.
pub(crate) struct Simulation {
    pub(crate) network: Network<PacketHandle>,
    /// The seed of the run.
    pub(crate) seed: Seed,
    pub(crate) packets: SimPackets,
    pub(crate) flows: Vec<SimFlow>,
    /// The connections of the flows over QUIC. Several flows may share one.
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
    /// What the end of the run depends on. `None` until `duration` is over.
    pub(crate) draining: Option<Draining>,
    /// The run ends if more packets than these are under way.
    pub(crate) most_under_way: usize,
}

/// The state of a run after `duration`, while packets that were sent before are still under way.
pub(crate) struct Draining {
    /// The number of messages and echoes of all flows that are still to be delivered.
    pending: u64,
    /// When a message or an echo was last delivered. `duration` before the first one.
    last_delivery: Instant,
    /// When the latest event was. `duration` before the first one.
    last_event: Instant,
}

/// When a run ended, and why.
pub(crate) struct RunEnd {
    pub(crate) at: Instant,
    pub(crate) cause: EndCause,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndCause {
    /// It was complete.
    Complete,
    /// The plan interrupted it.
    Interrupted,
    /// More than [`Simulation::most_under_way`] packets were under way.
    Overfull,
}

/// The messages and echoes of a flow.
#[derive(Clone, Copy)]
struct MessageCounts {
    /// The number of those that are still to be delivered.
    pending: u64,
    /// The number of those that were delivered.
    delivered: u64,
}

impl MessageCounts {
    fn read(taps: &FlowTaps) -> Self {
        Self { pending: taps.pending(), delivered: taps.delivered() }
    }
}

/// A packet that has come to an endpoint.
#[derive(Clone, Copy)]
struct ArrivedPacket {
    handle: PacketHandle,
    ecn: Ecn,
}

/// The number of timers of a run. Timers are numbered: two for the endpoints of each flow, the near one
/// first, and after all flows two for the ends of each QUIC connection that flows share.
pub(crate) fn timers(flows: usize, connections: usize) -> u32 {
    u32::try_from(2 * (flows + connections)).expect("fewer than 2^30 flows: they would need terabytes")
}

/// The timer of the endpoint of `flow` at `side`.
const fn timer_of(flow: u32, side: Side) -> u32 {
    2 * flow + side as u32
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
    /// Runs until the run is complete, the plan interrupts it, or too many packets are under way. Calls
    /// `on_sighting` for each packet that the tap saw leave or arrive. Without a tap it is never called.
    pub(crate) fn run(&mut self, plan: &RunPlan<'_>, on_sighting: &mut dyn FnMut(&Sighting)) -> RunEnd {
        self.start_flows();
        loop {
            // Many outputs are handled between two checks of the interrupt, because a check costs more than
            // an output.
            let last_output = self.handle_outputs(OUTPUTS_BETWEEN_CHECKS);
            self.empty_tap(on_sighting);
            let Some(at) = last_output else {
                let last_event = self.draining.as_ref().map(|draining| draining.last_event);
                return RunEnd { at: last_event.unwrap_or(self.duration), cause: EndCause::Complete };
            };
            self.take_queue_changes();
            (plan.progress)(at);
            if plan.interrupt.load(Ordering::Relaxed) {
                return RunEnd { at, cause: EndCause::Interrupted };
            }
            if self.packets.under_way() > self.most_under_way {
                return RunEnd { at, cause: EndCause::Overfull };
            }
        }
    }

    /// Handles the next `count` outputs of the network. Returns the time of the last output, or `None` if the
    /// run is complete.
    pub(crate) fn handle_outputs(&mut self, count: u32) -> Option<Instant> {
        let mut last = None;
        for _ in 0..count {
            // Outputs until `duration` and later outputs have a function each. A function for both would
            // return each output through memory, which took an eighth of this loop's time.
            last = Some(match self.network.poll_output(self.duration) {
                Some(output) => self.handle(output),
                None => self.handle_after_duration()?,
            });
        }
        last
    }

    /// Moves the changes of the queues' lengths from the network to the series.
    pub(crate) fn take_queue_changes(&mut self) {
        if let Some(series) = &mut self.queue_series {
            series.take(&mut self.network);
        }
    }

    /// Calls `on_sighting` for each packet that the tap saw since the last call.
    fn empty_tap(&mut self, on_sighting: &mut dyn FnMut(&Sighting)) {
        if let Some(tap) = &mut self.tap {
            tap.seen.drain(..).for_each(|sighting| on_sighting(&sighting));
        }
    }

    /// Wakes each flow at its start.
    pub(crate) fn start_flows(&mut self) {
        for (index, flow) in (0..).zip(&self.flows) {
            self.network.arm_timer(timer_of(index, Side::Near), flow.start);
        }
    }

    /// Handles the next output after `duration`. Returns its time, or `None` if the run is complete.
    #[cold]
    fn handle_after_duration(&mut self) -> Option<Instant> {
        while let Some(at) = self.network.poll_timeout() {
            // The pending messages are counted once, at the first event after `duration`. From then on each
            // step and each drop updates the number.
            let draining = self.draining.get_or_insert_with(|| Draining::begin(&self.flows, self.duration));
            if draining.ends_before(at, self.drain, &self.flows, self.duration) {
                return None;
            }
            draining.last_event = at;
            // An event without an output is possible: a link begins to serve a packet.
            if let Some(output) = self.network.poll_output(at) {
                return Some(self.handle(output));
            }
        }
        None
    }

    /// Makes the record of the run, which ended at `end`.
    pub(crate) fn finish(mut self, end: Instant, plan: &RunPlan<'_>, scenario: &Scenario) -> RunRecord {
        let mut series = Vec::new();
        // The report of a link begins all services that are due by `end`, and so shortens the queue. The
        // changes of the queue are therefore taken after the report.
        let links = link_records(&mut self.network, scenario, end);
        self.take_queue_changes();
        let stop = self.duration;
        let flows = self.flows.into_iter().map(|flow| flow.finish(end, stop, &mut series)).collect();
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
    pub(crate) fn handle(&mut self, output: NetworkOutput<PacketHandle>) -> Instant {
        let NetworkOutput { at, event } = output;
        match event {
            NetworkEvent::Arrived(packet) => self.deliver(packet, at),
            NetworkEvent::Timer(timer) => self.wake(timer, at),
            NetworkEvent::Dropped { packet, cause, .. } => self.record_drop(packet, cause_of_drop(cause)),
            NetworkEvent::Lost { packet, .. } => self.record_drop(packet, DropCause::Loss),
            NetworkEvent::Repeated { packet, .. } => {
                let copy = self.packets.copy(packet.tag, packet.part());
                self.network.handle_copy(packet.with_tag(copy));
            }
            NetworkEvent::Entered { packet, link } => self.pass(&packet, link, at),
        }
        at
    }

    /// A packet comes to a link. Only an animation and the capture of a router need this, and an animation
    /// has seen it. A router sees a packet that is cut into fragments with its first fragment.
    #[cold]
    fn pass(&mut self, packet: &PathPacket<PacketHandle>, link: u32, now: Instant) {
        let Some(tap) = &mut self.tap else { return };
        if packet.part().offset == 0 {
            let way = (packet.flow(), packet.direction(), packet.ecn());
            tap.on_link(self.packets.get(packet.tag), way, link, now);
        }
        // The links note the service of each packet, which nobody needs here.
        if let Some(services) = self.network.services(link) {
            services.clear();
        }
    }

    /// Handles a timer that goes off.
    #[inline]
    fn wake(&mut self, timer: u32, now: Instant) {
        let index = timer / 2;
        let side = if timer.is_multiple_of(2) { Side::Near } else { Side::Far };
        match (index as usize).checked_sub(self.flows.len()) {
            None => self.wake_endpoint(index, side, now),
            Some(connection) => self.wake_connection(connection, side, now),
        }
    }

    /// The timer of the end of a shared connection at `side`.
    fn timer_of_connection(&self, connection: usize, side: Side) -> u32 {
        timer_of((self.flows.len() + connection) as u32, side)
    }

    /// Handles the timer of the endpoint of the flow `index`. The first timer of a near end opens its flow.
    fn wake_endpoint(&mut self, index: u32, side: Side, now: Instant) {
        let flow = &mut self.flows[index as usize];
        let endpoint = match side {
            Side::Near => &mut flow.near,
            Side::Far => &mut flow.far,
        };
        let opens_flow = side == Side::Near && !flow.opened;
        // The network keeps a timer at the earliest time for which it was armed. Most deadlines have moved to
        // a later time when the timer goes off. Then nothing is due, and the timer is armed again.
        let deadline = endpoint.poll_timeout();
        if deadline > now && !opens_flow {
            return self.network.arm_timer(timer_of(index, side), deadline);
        }
        endpoint.handle_timeout(now);
        if opens_flow {
            flow.opened = true;
            endpoint.open(now);
            if let Some(SharedPlace { connection, place }) = flow.shared {
                self.connections.get_mut(connection).shared[side as usize].on_open(place);
            }
        }
        self.step(index, side, None, now);
    }

    /// Gives a packet that has come to its destination to the endpoint there. A fragment waits until its
    /// packet is whole.
    #[inline(always)]
    fn deliver(&mut self, packet: PathPacket<PacketHandle>, now: Instant) {
        if packet.is_damaged() && self.notices_damage(&packet) {
            return self.record_drop(packet, DropCause::Damage);
        }
        let mut ecn = packet.ecn();
        if !packet.part().is_whole() {
            match self.reassemble(packet, now) {
                Some(ecn_of_whole) => ecn = ecn_of_whole,
                None => return,
            }
        }
        let arrived = ArrivedPacket { handle: packet.tag, ecn };
        self.step(packet.flow(), destination(packet.direction()), Some(arrived), now);
    }

    /// True if the host notices the damage of a packet that has come. One of its bits behind the IP header
    /// has changed, drawn with equal probability. A transport's checksum may leave out the end of the data
    /// (RFC 4340 §9.2). A fragment counts as noticed, because the datagram is discarded when it is whole.
    #[cold]
    fn notices_damage(&self, packet: &PathPacket<PacketHandle>) -> bool {
        let unchecked = match &self.packets.get(packet.tag).packet {
            Packet::Encapsulated(inside) if packet.part().is_whole() => inside.unchecked_bytes(),
            _ => 0,
        };
        let length = u64::from(packet.part().length).saturating_sub(self.extra_header);
        let name = &self.flows[packet.flow() as usize].info.name;
        let identification = self.packets.get(packet.tag).identification;
        let direction = packet.direction() as u32;
        let mut stream = self.seed.stream(&format!("flow/{name}/damage/{direction}/{identification}"));
        stream.below(length.max(1)) < length.saturating_sub(u64::from(unchecked))
    }

    /// Takes a fragment that has arrived. Returns the packet's ECN field if the packet is whole now. Returns
    /// `None` if the packet lacks other fragments, or if the fragment is refused.
    #[cold]
    fn reassemble(&mut self, fragment: PathPacket<PacketHandle>, now: Instant) -> Option<Ecn> {
        let flow = &mut self.flows[fragment.flow() as usize];
        let reassembly = match destination(fragment.direction()) {
            Side::Near => &mut flow.near_reassembly,
            Side::Far => &mut flow.far_reassembly,
        };
        // Packets whose fragments did not come in time are given up. A fragment that comes later begins anew,
        // and is recorded when the last one is off the path.
        while reassembly.poll_expired(now).is_some() {}
        let identification = self.packets.get(fragment.tag).identification;
        match reassembly.handle_fragment(identification, fragment.part(), fragment.ecn(), now) {
            // The packet stays on the path until the endpoint's step takes it ([`StepContext::release`]).
            Reassembled::Whole { ecn, .. } => return Some(ecn),
            Reassembled::Incomplete => {
                if self.packets.take_off_path(fragment.tag, fragment.part()) {
                    // No part is on its way, so the packet will never be whole. Fragments that the path
                    // dropped were recorded then, and are not recorded twice.
                    if self.packets.counts_if_lost(fragment.tag) {
                        self.record_loss(&fragment, DropCause::Fragment);
                    }
                    self.packets.remove(fragment.tag);
                }
            }
            Reassembled::Refused => self.record_drop(fragment, DropCause::Fragment),
        }
        None
    }

    /// Lets the endpoint of a flow at `side` do everything that it can do now, and arms its timer. If a
    /// packet has `arrived`, the endpoint takes it first.
    ///
    /// Several flows over QUIC may share one connection. Then a packet can carry data of each flow, and other
    /// flows take a step too.
    fn step(&mut self, index: u32, side: Side, arrived: Option<ArrivedPacket>, now: Instant) {
        match self.flows[index as usize].shared {
            None => {
                let deadline = self.take_step(index, index, side, arrived, now);
                self.network.arm_timer(timer_of(index, side), deadline);
            }
            Some(at) => self.step_shared(at, side, arrived, now),
        }
    }

    /// Takes a step for the flow `index`. Its packets bear the number of the flow `leader`. The leader is the
    /// first flow of a shared connection. A flow with a connection of its own is its own leader. Returns when
    /// the endpoint wants its next step.
    #[inline(always)]
    fn take_step(
        &mut self,
        index: u32,
        leader: u32,
        side: Side,
        arrived: Option<ArrivedPacket>,
        now: Instant,
    ) -> Instant {
        let flow = &mut self.flows[index as usize];
        if let (Some(tap), Some(ArrivedPacket { handle, ecn })) = (&mut self.tap, arrived) {
            tap.on_arrival(self.packets.get(handle), (leader, direction_to(side), ecn), now);
        }
        let direction = direction_from(side);
        let mut context = StepContext {
            network: &mut self.network,
            packets: &mut self.packets,
            tap: self.tap.as_deref_mut(),
            arrived,
            // The flow's own count, though the leader's buffer reassembles: several flows share QUIC alone,
            // whose packets fit the path's MTU, so none is a fragment.
            identification: &mut flow.identifications[direction as usize],
            extra_header: self.extra_header,
            dscp: flow.dscp,
            flow: leader,
            direction,
            now,
        };
        // The messages matter only after `duration`, and are not counted before.
        let before = self.draining.is_some().then(|| MessageCounts::read(&flow.taps));
        let deadline = match side {
            Side::Near => {
                let deadline = flow.near.step(Side::Near, &mut flow.taps, now, &mut context);
                flow.meter.read(&flow.near, now);
                deadline
            }
            Side::Far => {
                let deadline = flow.far.step(Side::Far, &mut flow.taps, now, &mut context);
                // The near end's steps need no tally: each message arrives at the far end, and each echo
                // begins there.
                flow.tally();
                deadline
            }
        };
        if let Some(before) = before {
            self.update_pending(index, before, now);
        }
        deadline.max(now)
    }

    /// Updates the number of pending messages after a step of the flow `index`, which had the counts `before`
    /// the step.
    #[cold]
    fn update_pending(&mut self, index: u32, before: MessageCounts, now: Instant) {
        let after = MessageCounts::read(&self.flows[index as usize].taps);
        let Some(draining) = &mut self.draining else { return };
        if after.delivered > before.delivered {
            draining.last_delivery = now;
        }
        draining.pending = draining.pending + after.pending - before.pending;
    }

    /// Records that the path dropped or lost a packet, or a fragment of one. A datagram that lost a fragment
    /// is lost, and its message with it. A lost TCP segment is sent again, so no message is lost.
    #[cold]
    fn record_drop(&mut self, dropped: PathPacket<PacketHandle>, cause: DropCause) {
        let cause = if dropped.part().is_whole() { cause } else { DropCause::Fragment };
        if self.packets.counts_if_lost(dropped.tag) {
            self.record_loss(&dropped, cause);
        }
        self.take_off_path(dropped);
    }

    /// Records that the messages in a packet will not arrive.
    fn record_loss(&mut self, dropped: &PathPacket<PacketHandle>, cause: DropCause) {
        let (leader, direction) = (dropped.flow(), dropped.direction());
        match &self.packets.get(dropped.tag).packet {
            Packet::Quic(packet) => {
                let shared = self.flows[leader as usize].shared;
                for (flow, seq) in packet.messages().collect::<Vec<_>>() {
                    let members = shared.map(|at| &self.connections.get(at.connection).flows);
                    let index = members.and_then(|flows| flows.get(flow as usize)).copied().unwrap_or(leader);
                    self.record_dropped_message(index, direction, seq, cause);
                }
            }
            other => {
                if let Some(seq) = other.message() {
                    self.record_dropped_message(leader, direction, seq, cause);
                }
            }
        }
    }

    /// Records that message `seq` of the flow `index` will not arrive. `direction` is that of the message, or
    /// of its echo.
    fn record_dropped_message(&mut self, index: u32, direction: Direction, seq: u64, cause: DropCause) {
        let taps = &mut self.flows[index as usize].taps;
        let before = taps.pending();
        match direction {
            Direction::Out => taps.forward.on_dropped(seq, cause),
            Direction::Back => {
                if let Some(tap) = &mut taps.echo {
                    tap.on_dropped(seq, cause);
                }
            }
        }
        if let Some(draining) = &mut self.draining {
            draining.pending = draining.pending + taps.pending() - before;
        }
    }

    /// Removes a packet, or a fragment of one, that has left the path without an endpoint taking it.
    fn take_off_path(&mut self, packet: PathPacket<PacketHandle>) {
        if self.packets.take_off_path(packet.tag, packet.part()) {
            self.packets.remove(packet.tag);
        }
    }
}

impl Draining {
    /// `duration` is over. Counts the messages that are still to be delivered.
    fn begin(flows: &[SimFlow], duration: Instant) -> Self {
        let pending = flows.iter().map(|flow| flow.taps.pending()).sum();
        Self { pending, last_delivery: duration, last_event: duration }
    }

    /// True if the run ends before the event at `next`: all messages are delivered, also those that a late
    /// application hands over after `duration`, or nothing was delivered for the time `drain`.
    fn ends_before(&self, next: Instant, drain: Duration, flows: &[SimFlow], duration: Instant) -> bool {
        let is_delivered = || self.pending == 0 && !flows.iter().any(|flow| flow.near.owes(duration));
        next > self.last_delivery.saturating_add(drain) || is_delivered()
    }
}

/// The network as one step of an endpoint sees it: the packet that has arrived, and the way out for packets.
struct StepContext<'a> {
    network: &'a mut Network<PacketHandle>,
    packets: &'a mut SimPackets,
    tap: Option<&'a mut Tap>,
    arrived: Option<ArrivedPacket>,
    identification: &'a mut u32,
    extra_header: u64,
    dscp: Dscp,
    flow: u32,
    direction: Direction,
    now: Instant,
}

impl Exchange for StepContext<'_> {
    #[inline(always)]
    fn arrived(&self) -> Option<(&Packet, Ecn)> {
        let ArrivedPacket { handle, ecn } = self.arrived?;
        Some((&self.packets.get(handle).packet, ecn))
    }

    #[inline(always)]
    fn release(&mut self) {
        // An endpoint calls this once per step, because it takes one packet per step.
        if let Some(ArrivedPacket { handle, .. }) = self.arrived {
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
        let packet = PathPacket::new(flow, direction, whole, ecn, handle).with_dscp(self.dscp);
        self.network.handle_packet(packet, self.now);
    }
}

/// The largest number of packets under way. We chose the packets of 100 Gb/s with 1,500 B in 240 ms. A window
/// that nothing on the path bounds reaches this number in half a minute, with at most 4 GB of memory.
pub(crate) const MOST_UNDER_WAY: usize = 2_000_000;

/// The number of outputs between two checks of the interrupt. We chose it because a check costs more than an
/// output.
pub(crate) const OUTPUTS_BETWEEN_CHECKS: u32 = 1 << 14;
