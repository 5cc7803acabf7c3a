//! One run: endpoints, links and the event queue under a virtual clock.
//!
//! ```text
//!        ┌──────────── next: (now, entity) ──────────────────┐
//!        ▼                                                   │
//!   link: what came out ─► next link, or the endpoint ───────┤ arm, settle
//!   endpoint: timeout ─► advance ─► packets ─► first link ───┘
//! ```
//!
//! Each link and each endpoint is one entity with at most one live event: a link's is the arrival of its foremost
//! packet, so a packet costs one event a hop.

use core::sync::atomic::Ordering;

use talkpath_arena::links::link_record;
use talkpath_arena::{Exchange, RunPlan, Side};
use talkpath_measure::series::SeriesTap;
use talkpath_measure::{DropCause, RunRecord};
use talkpath_path::{PathOutput, Reassembled};
use talkpath_scenario::Scenario;
use talkpath_transport::{Ecn, Outlet, Packet, Transmit};
use talkpath_units::{Duration, Instant};

use crate::capture::Sighting;
use crate::flow::SimFlow;
use crate::network::{Direction, Network, Origin, Parcel, Place, Step, Ticket};
use crate::queue::Entity;

/// A run under way.
pub(crate) struct Simulation {
    pub(crate) network: Network,
    /// The names of the scenario's links.
    pub(crate) link_names: Vec<String>,
    pub(crate) flows: Vec<SimFlow>,
    /// Sending stops here.
    pub(crate) duration: Instant,
    /// After that the run ends when nothing was delivered for so long.
    pub(crate) drain: Duration,
    /// Messages and echoes of all flows that are still to be delivered. Known once sending has stopped: nobody asks before.
    pub(crate) pending: Option<u64>,
    /// The latest after sending has stopped.
    pub(crate) last_delivery: Instant,
    /// When sending stopped, or the latest wake after that.
    pub(crate) ended: Instant,
    /// Whether there are so many flows that memory is asked for what comes next ([`crate::prefetch`]).
    pub(crate) looks_ahead: bool,
    /// The link that was asked for last, until the place of its next packet is, too: where that lies stands in the link.
    pub(crate) expected: Option<u32>,
}

impl Simulation {
    /// Runs to the end, or until the plan's interrupt; returns the time at which it ended and whether it was interrupted.
    pub(crate) fn run(&mut self, plan: &RunPlan<'_>) -> (Instant, bool) {
        self.run_seeing(plan, &mut |_| {})
    }

    /// As [`Self::run`]; `see` is shown what comes by the tap.
    pub(crate) fn run_seeing(
        &mut self,
        plan: &RunPlan<'_>,
        see: &mut dyn FnMut(&Sighting),
    ) -> (Instant, bool) {
        match self.looks_ahead || !self.network.queue_series.is_empty() {
            true => self.run_looking::<true>(plan, see),
            false => self.run_looking::<false>(plan, see),
        }
    }

    /// As [`Self::run_seeing`]; `LOOKS` where memory is asked for what comes next or a queue is a series, so that other runs need not
    /// ask.
    fn run_looking<const LOOKS: bool>(
        &mut self,
        plan: &RunPlan<'_>,
        see: &mut dyn FnMut(&Sighting),
    ) -> (Instant, bool) {
        self.arm_flows();
        let mut until_look = EVENTS_BETWEEN_LOOKS;
        // Where nothing is waited for, what comes next is never.
        let last = self.duration.min(BEFORE_NEVER);
        let (mut now, mut entity) = self.network.queue.next();
        loop {
            if now > last && (entity == Entity::NONE || self.is_over(now)) {
                break;
            }
            until_look -= 1;
            if until_look == 0 {
                until_look = EVENTS_BETWEEN_LOOKS;
                self.show(see);
                (plan.progress)(now);
                if plan.interrupt.load(Ordering::Relaxed) {
                    return (now, true);
                }
            }
            if LOOKS && self.looks_ahead {
                self.look_at_next();
            }
            let again = self.wake::<LOOKS>(entity, now);
            (now, entity) = self.network.queue.settle(entity, again);
        }
        self.show(see);
        (self.ended, false)
    }

    /// Shows what came by the tap.
    fn show(&mut self, see: &mut dyn FnMut(&Sighting)) {
        if let Some(tap) = &mut self.network.tap {
            tap.seen.drain(..).for_each(|sighting| see(&sighting));
        }
    }

    /// Wakes each flow at its start.
    pub(crate) fn arm_flows(&mut self) {
        for index in 0..self.flows.len() {
            let near = self.network.endpoint(index, Direction::Out);
            self.network.queue.arm(near, self.flows[index].start);
        }
    }

    /// The record as of `end`.
    pub(crate) fn finish(self, end: Instant, plan: &RunPlan<'_>, scenario: &Scenario) -> RunRecord {
        let mut series = Vec::new();
        let flows = self.flows.into_iter().map(|flow| flow.finish(end, &mut series)).collect();
        let mut links = Vec::new();
        let mut queue_series = self.network.queue_series.into_iter();
        for (mut link, name) in self.network.links.into_iter().zip(self.link_names) {
            let line = queue_series.next().map(SeriesTap::finish);
            series.extend(line.filter(|line| !line.points.is_empty()));
            links.push(link_record(name, &link.report(end)));
        }
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

    /// Whether the run has ended by `at`, the next wake, which lies beyond its duration.
    #[cold]
    pub(crate) fn is_over(&mut self, at: Instant) -> bool {
        let count = || self.flows.iter().map(|flow| flow.taps.pending()).sum();
        let is_over = *self.pending.get_or_insert_with(count) == 0
            || at > self.duration.max(self.last_delivery).saturating_add(self.drain);
        if !is_over {
            self.ended = at;
        }
        is_over
    }

    /// Wakes a link or an endpoint; returns when it wants to be woken again; [`Instant::MAX`] is never.
    #[inline(always)]
    pub(crate) fn wake<const LOOKS: bool>(&mut self, entity: Entity, now: Instant) -> Instant {
        if let Some(link) = self.network.links.get_mut(entity.0 as usize) {
            let Some((ticket, next)) = link.poll_arrival(now) else {
                return self.wake_link_otherwise(entity.0, now);
            };
            return self.wake_link::<LOOKS>(entity.0, ticket, next, now);
        }
        let index = entity.0 as usize - self.network.links.len();
        let direction = if index.is_multiple_of(2) { Direction::Out } else { Direction::Back };
        let again = self.wake_endpoint(index / 2, direction, now);
        self.network.queue.arm_again(entity, again);
        again
    }

    /// A link has something to tell: the parcel of `ticket` comes out. When the `next` one does is known before that one goes on:
    /// packets come out in order. Where none is left, one that comes in again by what this one brings about is scheduled as it enters.
    #[inline(always)]
    fn wake_link<const LOOKS: bool>(
        &mut self,
        index: u32,
        ticket: Ticket,
        next: Instant,
        now: Instant,
    ) -> Instant {
        if LOOKS && self.looks_ahead {
            self.look_ahead(index);
        }
        self.carry_on(ticket, now);
        if next <= now {
            return self.wake_link_again::<LOOKS>(index, now);
        }
        if LOOKS {
            self.network.observe_queue(index, now);
        }
        next
    }

    /// More comes out of a link at the same instant.
    #[cold]
    #[inline(never)]
    fn wake_link_again<const LOOKS: bool>(&mut self, index: u32, now: Instant) -> Instant {
        loop {
            let Some((ticket, next)) = self.network.links[index as usize].poll_arrival(now) else {
                return self.wake_link_otherwise(index, now);
            };
            if LOOKS && self.looks_ahead {
                self.look_ahead(index);
            }
            self.carry_on_apart(ticket, now);
            if next > now {
                if LOOKS {
                    self.network.observe_queue(index, now);
                }
                return next;
            }
        }
    }

    /// As [`Self::carry_on`], for where that is rare.
    #[cold]
    #[inline(never)]
    fn carry_on_apart(&mut self, ticket: Ticket, now: Instant) {
        self.carry_on(ticket, now);
    }

    /// A link has something to tell that is no plain arrival.
    #[cold]
    #[inline(never)]
    fn wake_link_otherwise(&mut self, index: u32, now: Instant) -> Instant {
        self.network.awake = Entity(index);
        loop {
            match self.network.links[index as usize].poll_output(now) {
                Some(PathOutput::Arrived(ticket)) => self.carry_on(ticket, now),
                Some(PathOutput::Lost(ticket)) => self.record_drop(ticket, DropCause::Loss),
                Some(PathOutput::Dropped(ticket, _)) => self.record_drop(ticket, DropCause::Queue),
                None => {}
            }
            // Looked at last: what came out may have come in again.
            let next = self.network.links[index as usize].poll_timeout().unwrap_or(Instant::MAX);
            if next > now {
                self.network.awake = Entity::NONE;
                self.network.observe_queue(index, now);
                return next;
            }
        }
    }

    #[inline(never)]
    fn wake_endpoint(&mut self, index: usize, direction: Direction, now: Instant) -> Instant {
        let flow = &mut self.flows[index];
        let endpoint = match direction {
            Direction::Out => &mut flow.near,
            Direction::Back => &mut flow.far,
        };
        let deadline = endpoint.poll_timeout();
        // Most deadlines have moved since the end was armed.
        if deadline > now && flow.opened {
            return deadline;
        }
        endpoint.handle_timeout(now);
        if !flow.opened {
            flow.opened = true;
            endpoint.open(now);
        }
        self.step(index, direction, None, now)
    }

    /// A parcel is at the end of a link: the next link takes it, or the endpoint.
    #[inline(always)]
    fn carry_on(&mut self, ticket: Ticket, now: Instant) {
        let link = match ticket.next.place() {
            Place::Link(link) => link,
            Place::End(flow, answers) => return self.deliver(ticket, flow, answers, now),
        };
        if self.network.enter(link, ticket, now) {
            self.record_drops();
        }
    }

    /// A parcel has come to the end of `flow` whose packets travel in the direction of `answers`.
    #[inline(always)]
    fn deliver(&mut self, ticket: Ticket, flow: usize, answers: Direction, now: Instant) {
        if ticket.is_piece() && !self.put_together(ticket, now) {
            return;
        }
        let deadline = self.step(flow, answers, Some(ticket), now);
        self.network.queue.arm(self.network.endpoint(flow, answers), deadline);
    }

    /// A fragment has arrived; returns whether it made its packet whole. Otherwise the parcel is gone.
    #[cold]
    fn put_together(&mut self, ticket: Ticket, now: Instant) -> bool {
        let parcels = &mut self.network.parcels;
        let (parcel, part) = (parcels.get(ticket), parcels.part(ticket));
        let flow = &mut self.flows[parcel.origin.flow() as usize];
        let reassembly = match parcel.origin.direction() {
            Direction::Out => &mut flow.far_reassembly,
            Direction::Back => &mut flow.near_reassembly,
        };
        // What is given up here lost a fragment, and was recorded as dropped when it did.
        while reassembly.poll_expired(now).is_some() {}
        match reassembly.handle_fragment(parcel.identification, part, now) {
            Reassembled::Whole { .. } => return true,
            Reassembled::Incomplete => parcels.release(ticket),
            Reassembled::Refused => self.record_drop(ticket, DropCause::Fragment),
        }
        false
    }

    /// Takes in what `arrived` and moves everything that can move at the end whose packets travel in `direction`; returns its
    /// next deadline, now or later; [`Instant::MAX`] is never.
    #[inline(always)]
    fn step(&mut self, index: usize, direction: Direction, arrived: Option<Ticket>, now: Instant) -> Instant {
        let deadline = if self.pending.is_some() {
            self.step_pending(index, direction, arrived, now)
        } else {
            match direction {
                Direction::Out => self.step_near(index, arrived, now),
                Direction::Back => self.step_far(index, arrived, now),
            }
        };
        if !self.network.dropped.is_empty() {
            self.record_drops();
        }
        deadline
    }

    #[inline(never)]
    fn step_near(&mut self, index: usize, arrived: Option<Ticket>, now: Instant) -> Instant {
        self.step_here(index, Direction::Out, arrived, now)
    }

    #[inline(never)]
    fn step_far(&mut self, index: usize, arrived: Option<Ticket>, now: Instant) -> Instant {
        self.step_here(index, Direction::Back, arrived, now)
    }

    /// As [`Self::step`] once sending has stopped, when what is still pending is told.
    #[cold]
    #[inline(never)]
    fn step_pending(
        &mut self,
        index: usize,
        direction: Direction,
        arrived: Option<Ticket>,
        now: Instant,
    ) -> Instant {
        let before = self.flows[index].taps.pending();
        let deadline = match direction {
            Direction::Out => self.step_near(index, arrived, now),
            Direction::Back => self.step_far(index, arrived, now),
        };
        self.note_pending(index, before, now);
        deadline
    }

    /// As [`Self::step`], for an end that is known where it is compiled.
    #[inline(always)]
    fn step_here(
        &mut self,
        index: usize,
        direction: Direction,
        arrived: Option<Ticket>,
        now: Instant,
    ) -> Instant {
        let (flow, network) = (&mut self.flows[index], &mut self.network);
        let (endpoint, side) = match direction {
            Direction::Out => (&mut flow.near, Side::Near),
            Direction::Back => (&mut flow.far, Side::Far),
        };
        if let Some(tap) = &mut network.tap
            && let Some(ticket) = arrived
        {
            tap.on_arrival(network.parcels.get(ticket), now);
        }
        let mut passage = Passage {
            network,
            arrived,
            identification: &mut flow.identifications[direction as usize],
            route: (flow.routes[direction as usize], flow.after_first[direction as usize]),
            flow: index as u32,
            direction,
            now,
        };
        let deadline = endpoint.step(side, &mut flow.taps, now, &mut passage).max(now);
        if direction == Direction::Out {
            flow.meter.read(endpoint, now);
        }
        if direction == Direction::Back {
            // Messages arrive at the far end, and for each that comes back as an echo one arrived there.
            flow.tally();
        }
        deadline
    }

    /// A flow had so many messages pending `before` its step.
    #[cold]
    fn note_pending(&mut self, index: usize, before: u64, now: Instant) {
        let after = self.flows[index].taps.pending();
        if after < before {
            self.last_delivery = now;
        }
        self.pending = self.pending.map(|pending| pending + after - before);
    }

    /// Tells flows what queues had no room for.
    #[cold]
    #[inline(never)]
    fn record_drops(&mut self) {
        for place in 0..self.network.dropped.len() {
            self.record_drop(self.network.dropped[place], DropCause::Queue);
        }
        self.network.dropped.clear();
    }

    /// A datagram that lost a piece is lost; a segment is sent again, so its loss is no message's.
    #[cold]
    fn record_drop(&mut self, ticket: Ticket, cause: DropCause) {
        let parcels = &mut self.network.parcels;
        parcels.release(ticket);
        let (parcel, is_whole) = (parcels.get(ticket), parcels.part(ticket).is_whole());
        let seq = match &parcel.packet {
            Packet::Udp(datagram) => datagram.seq,
            Packet::Dccp(packet) if packet.payload > 0 => packet.message,
            Packet::Dccp(_) | Packet::Tcp(_) => return,
        };
        let taps = &mut self.flows[parcel.origin.flow() as usize].taps;
        let before = taps.pending();
        let cause = if is_whole { cause } else { DropCause::Fragment };
        match parcel.origin.direction() {
            Direction::Out => taps.forward.on_dropped(seq, cause),
            Direction::Back => {
                if let Some(tap) = &mut taps.echo {
                    tap.on_dropped(seq, cause);
                }
            }
        }
        self.pending = self.pending.map(|pending| pending + taps.pending() - before);
    }
}

/// Between an end and the network, for one step of the end.
struct Passage<'a> {
    network: &'a mut Network,
    arrived: Option<Ticket>,
    identification: &'a mut u32,
    /// The first two steps of what leaves.
    route: (Step, Step),
    flow: u32,
    direction: Direction,
    now: Instant,
}

impl Exchange for Passage<'_> {
    #[inline(always)]
    fn arrived(&self) -> Option<(&Packet, Ecn)> {
        let parcel = self.network.parcels.get(self.arrived?);
        Some((&parcel.packet, parcel.origin.ecn()))
    }

    #[inline(always)]
    fn release(&mut self) {
        // Asked once: an end takes one packet a step.
        if let Some(ticket) = self.arrived {
            self.network.parcels.release(ticket);
        }
    }
}

impl Outlet for Passage<'_> {
    #[inline(always)]
    fn take(&mut self, transmit: Transmit) {
        *self.identification = self.identification.wrapping_add(1);
        let Transmit { packet, ecn, wire_size, .. } = transmit;
        debug_assert_eq!(
            u64::from(wire_size),
            packet.wire_size().get(),
            "what made the packet knows its size"
        );
        let (flow, direction, identification) = (self.flow, self.direction, *self.identification);
        let parcel = Parcel { packet, origin: Origin::new(flow, direction, ecn), identification };
        let (first, next) = self.route;
        let ticket = self.network.parcels.admit(parcel, wire_size, next);
        self.network.depart(first, ticket, self.now);
    }
}

/// The last instant at which something can happen.
const BEFORE_NEVER: Instant = Instant::from_nanos(u64::MAX - 1);
/// How many events pass between two looks at the interrupt; a look costs more than an event. Chosen.
const EVENTS_BETWEEN_LOOKS: u32 = 1 << 14;
