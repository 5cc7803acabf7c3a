//! One run: endpoints on both sides of a network, under a virtual clock.
//!
//! ```text
//!   network: next output ─┬─ a packet has arrived ─► its endpoint ─┐
//!        ▲                └─ a timer goes off ─────► its endpoint ─┤ step
//!        └────────────── packets leave, timer armed ───────────────┘
//! ```
//!
//! The network's agenda orders all that happens. Each endpoint has one timer in it.

use core::sync::atomic::Ordering;

use talkpath_arena::RunPlan;
use talkpath_arena::links::{QueueSeries, link_records};
use talkpath_flow::{Exchange, Side};
use talkpath_measure::{DropCause, RunRecord};
use talkpath_path::{
    Carried, Direction, FragmentRange, Network, NetworkEvent, NetworkOutput, PathPacket, Reassembled,
};
use talkpath_scenario::Scenario;
use talkpath_transport::{Ecn, Outlet, Packet, Transmit};
use talkpath_units::{Bytes, Duration, Instant};

use crate::flow::SimFlow;
use crate::packets::{PacketHandle, SimPackets};
use crate::tap::{Sighting, Tap};

/// A run under way.
pub(crate) struct Simulation {
    pub(crate) network: Network<PacketHandle>,
    pub(crate) packets: SimPackets,
    pub(crate) flows: Vec<SimFlow>,
    /// Bytes of each packet that the transports, which count IPv4's header, do not know of.
    pub(crate) extra_header: u64,
    /// Recorded if the plan says so.
    pub(crate) queue_series: Option<QueueSeries>,
    /// Set if a capture is made of the run.
    pub(crate) tap: Option<Box<Tap>>,
    /// Sending stops here.
    pub(crate) duration: Instant,
    /// After that the run ends when nothing was delivered for this long.
    pub(crate) drain: Duration,
    /// Messages and echoes of all flows that are still to be delivered. Known once sending has stopped:
    /// nobody needs it before.
    pub(crate) pending: Option<u64>,
    /// The latest after sending has stopped.
    pub(crate) last_delivery: Instant,
    /// When sending stopped, or the latest event after that.
    pub(crate) ended: Instant,
}

/// How many timers the endpoints of `flows` flows have.
pub(crate) fn timers(flows: usize) -> u32 {
    u32::try_from(2 * flows).expect("fewer than 2^31 flows: they would need terabytes")
}

/// The timer of the endpoint of `flow` at `side`.
const fn timer_of(flow: u32, side: Side) -> u32 {
    2 * flow + side as u32
}

/// Where packets of an endpoint at `side` travel.
const fn direction_from(side: Side) -> Direction {
    match side {
        Side::Near => Direction::Out,
        Side::Far => Direction::Back,
    }
}

impl Simulation {
    /// Runs to the end, or until the plan's interrupt; returns the time at which it ended and whether it was
    /// interrupted.
    pub(crate) fn run(&mut self, plan: &RunPlan<'_>) -> (Instant, bool) {
        self.run_with_tap(plan, &mut |_| {})
    }

    /// As [`Self::run`]; `see` receives what comes by the tap.
    pub(crate) fn run_with_tap(
        &mut self,
        plan: &RunPlan<'_>,
        see: &mut dyn FnMut(&Sighting),
    ) -> (Instant, bool) {
        self.start_flows();
        while let Some(at) = self.handle_outputs(OUTPUTS_BETWEEN_CHECKS) {
            self.empty_tap(see);
            (plan.progress)(at);
            if plan.interrupt.load(Ordering::Relaxed) {
                return (at, true);
            }
        }
        self.empty_tap(see);
        (self.ended, false)
    }

    /// Handles the next `count` outputs; returns when the last of them was, or `None` if the run has ended.
    pub(crate) fn handle_outputs(&mut self, count: u32) -> Option<Instant> {
        let mut last = None;
        for _ in 0..count {
            // Two cases, since an output that another function returned lies in memory: to read it back at
            // once took an eighth of this loop's time.
            last = Some(match self.network.poll_output(self.duration) {
                Some(output) => self.handle(output),
                None => self.handle_after_duration()?,
            });
        }
        last
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

    /// As [`Self::handle_outputs`], for one output once sending has stopped.
    #[cold]
    fn handle_after_duration(&mut self) -> Option<Instant> {
        while let Some(at) = self.network.poll_timeout() {
            if self.is_over(at) {
                return None;
            }
            self.ended = at;
            if let Some(output) = self.network.poll_output(at) {
                return Some(self.handle(output));
            }
        }
        None
    }

    /// Whether the run ends before `at`, when something would happen next, after its duration.
    fn is_over(&mut self, at: Instant) -> bool {
        let count = || self.flows.iter().map(|flow| flow.taps.pending()).sum();
        *self.pending.get_or_insert_with(count) == 0
            || at > self.duration.max(self.last_delivery).saturating_add(self.drain)
    }

    /// The record as of `end`.
    pub(crate) fn finish(mut self, end: Instant, plan: &RunPlan<'_>, scenario: &Scenario) -> RunRecord {
        let mut series = Vec::new();
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
            links: link_records(&mut self.network, scenario, end),
            series,
            valid: true,
            ..RunRecord::default()
        }
    }

    /// Handles what happened; returns when that was.
    #[inline(always)]
    fn handle(&mut self, NetworkOutput { at, event }: NetworkOutput<PacketHandle>) -> Instant {
        match event {
            NetworkEvent::Arrived(packet) => self.deliver(packet, at),
            NetworkEvent::Timer(timer) => self.wake_endpoint(timer, at),
            NetworkEvent::Dropped { packet, .. } => self.record_drop(packet, DropCause::Queue),
            NetworkEvent::Lost { packet, .. } => self.record_drop(packet, DropCause::Loss),
            NetworkEvent::Queue { link, waiting } => {
                if let Some(series) = &mut self.queue_series {
                    series.push(&mut self.network, link, waiting, at);
                }
            }
        }
        at
    }

    /// The timer of an endpoint goes off.
    fn wake_endpoint(&mut self, timer: u32, now: Instant) {
        let (index, side) = (timer / 2, if timer.is_multiple_of(2) { Side::Near } else { Side::Far });
        let flow = &mut self.flows[index as usize];
        let endpoint = match side {
            Side::Near => &mut flow.near,
            Side::Far => &mut flow.far,
        };
        let deadline = endpoint.poll_timeout();
        // Most deadlines have moved since the timer was armed.
        if deadline > now && flow.opened {
            return self.network.arm_timer(timer, deadline);
        }
        endpoint.handle_timeout(now);
        if !flow.opened {
            flow.opened = true;
            endpoint.open(now);
        }
        self.step(index, side, None, now);
    }

    /// A packet, or a fragment of one, has come to its destination.
    #[inline(always)]
    fn deliver(&mut self, packet: PathPacket<PacketHandle>, now: Instant) {
        if !packet.part().is_whole() && !self.reassemble(packet, now) {
            return;
        }
        let side = match packet.direction() {
            Direction::Out => Side::Far,
            Direction::Back => Side::Near,
        };
        self.step(packet.flow(), side, Some((packet.tag, packet.ecn())), now);
    }

    /// A fragment has arrived; returns whether its packet is whole now.
    #[cold]
    fn reassemble(&mut self, fragment: PathPacket<PacketHandle>, now: Instant) -> bool {
        let flow = &mut self.flows[fragment.flow() as usize];
        let reassembly = match fragment.direction() {
            Direction::Out => &mut flow.far_reassembly,
            Direction::Back => &mut flow.near_reassembly,
        };
        // What is given up here lost a fragment, and was recorded as dropped when it did.
        while reassembly.poll_expired(now).is_some() {}
        let identification = self.packets.get(fragment.tag).identification;
        match reassembly.handle_fragment(identification, fragment.part(), now) {
            // All its other fragments have arrived, so the packet is not on the path any longer. The endpoint
            // takes it.
            Reassembled::Whole { .. } => return true,
            Reassembled::Incomplete => self.take_off_path(fragment),
            Reassembled::Refused => self.record_drop(fragment, DropCause::Fragment),
        }
        false
    }

    /// Hands what `arrived` to the endpoint of a flow at `side`, lets it do all that it can do now, and arms
    /// its timer.
    fn step(&mut self, index: u32, side: Side, arrived: Option<(PacketHandle, Ecn)>, now: Instant) {
        let flow = &mut self.flows[index as usize];
        if let (Some(tap), Some((handle, ecn))) = (&mut self.tap, arrived) {
            let direction = match side {
                Side::Near => Direction::Back,
                Side::Far => Direction::Out,
            };
            tap.on_arrival(self.packets.get(handle), (index, direction, ecn), now);
        }
        let direction = direction_from(side);
        let mut context = StepContext {
            network: &mut self.network,
            packets: &mut self.packets,
            tap: self.tap.as_deref_mut(),
            arrived,
            identification: &mut flow.identifications[direction as usize],
            extra_header: self.extra_header,
            flow: index,
            direction,
            now,
        };
        let pending = self.pending.is_some().then(|| flow.taps.pending());
        let deadline = match side {
            Side::Near => {
                let deadline = flow.near.step(Side::Near, &mut flow.taps, now, &mut context);
                flow.meter.read(&flow.near, now);
                deadline
            }
            Side::Far => {
                let deadline = flow.far.step(Side::Far, &mut flow.taps, now, &mut context);
                // Messages arrive at the far end, and for each that comes back as an echo one arrived there.
                flow.tally();
                deadline
            }
        };
        self.network.arm_timer(timer_of(index, side), deadline.max(now));
        if let Some(before) = pending {
            self.note_pending(index, before, now);
        }
    }

    /// A flow had `before` messages pending before its step.
    #[cold]
    fn note_pending(&mut self, index: u32, before: u64, now: Instant) {
        let after = self.flows[index as usize].taps.pending();
        if after < before {
            self.last_delivery = now;
        }
        self.pending = self.pending.map(|pending| pending + after - before);
    }

    /// A packet was dropped or lost, or a fragment of one. A datagram that lost a fragment is lost; a segment
    /// is sent again, so its loss is no message's.
    #[cold]
    fn record_drop(&mut self, dropped: PathPacket<PacketHandle>, cause: DropCause) {
        let seq = self.packets.get(dropped.tag).packet.message();
        self.take_off_path(dropped);
        let Some(seq) = seq else { return };
        let taps = &mut self.flows[dropped.flow() as usize].taps;
        let before = taps.pending();
        let cause = if dropped.part().is_whole() { cause } else { DropCause::Fragment };
        match dropped.direction() {
            Direction::Out => taps.forward.on_dropped(seq, cause),
            Direction::Back => {
                if let Some(tap) = &mut taps.echo {
                    tap.on_dropped(seq, cause);
                }
            }
        }
        self.pending = self.pending.map(|pending| pending + taps.pending() - before);
    }

    /// A packet, or a fragment of one, is not on the path any longer, and no endpoint takes it.
    fn take_off_path(&mut self, packet: PathPacket<PacketHandle>) {
        if self.packets.take_off_path(packet.tag, packet.part()) {
            self.packets.remove(packet.tag);
        }
    }
}

/// What one step of an endpoint exchanges with the network.
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
        // Called once: an endpoint takes one packet a step.
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
            "what made the packet knows its size"
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

/// How many outputs pass between two checks of the interrupt; a check costs more than an output. Chosen.
const OUTPUTS_BETWEEN_CHECKS: u32 = 1 << 14;
