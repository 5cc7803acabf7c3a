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

use talkpath_arena::RunPlan;
use talkpath_measure::series::SeriesTap;
use talkpath_measure::{DropCause, LinkRecord, RunRecord};
use talkpath_path::{Carried, Dropped, Link, PathOutput, Reassembled};
use talkpath_scenario::Scenario;
use talkpath_transport::{Packet, Transmit};
use talkpath_units::{Duration, Instant};

use crate::capture::{Sighting, Tap};
use crate::flow::SimFlow;
use crate::network::{Direction, Parcel, Parcels, Routes, Ticket};
use crate::queue::{Entity, EventQueue};

/// A run under way.
pub(crate) struct Simulation {
    pub(crate) queue: EventQueue,
    /// Those of the scenario, then the hosts' own delays.
    pub(crate) links: Vec<Link<Ticket>>,
    /// The names of the scenario's links.
    pub(crate) link_names: Vec<String>,
    /// By link: its queue over time, where the plan asks for it.
    pub(crate) queue_series: Vec<SeriesTap>,
    pub(crate) flows: Vec<SimFlow>,
    pub(crate) parcels: Parcels,
    pub(crate) routes: Routes,
    /// Sending stops here.
    pub(crate) duration: Instant,
    /// After that the run ends when nothing was delivered for so long.
    pub(crate) drain: Duration,
    /// What an endpoint put out during one step; kept to keep its room.
    pub(crate) outbox: Vec<Ticket>,
    /// Messages and echoes of all flows that are still to be delivered.
    pub(crate) pending: u64,
    pub(crate) last_delivery: Instant,
    /// Where a capture is made of the run.
    pub(crate) tap: Option<Tap>,
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
        self.arm_flows();
        let mut now = Instant::ZERO;
        let mut events: u64 = 0;
        while let Some((at, entity)) = self.queue.next() {
            if at > self.duration && self.is_over(at) {
                break;
            }
            now = at;
            let again = self.wake(entity, now);
            if let Some(tap) = &mut self.tap {
                tap.seen.drain(..).for_each(|sighting| see(&sighting));
            }
            self.queue.settle(entity, again);
            events += 1;
            if events.is_multiple_of(EVENTS_BETWEEN_LOOKS) {
                (plan.progress)(now);
                if plan.interrupt.load(Ordering::Relaxed) {
                    return (now, true);
                }
            }
        }
        (now.max(self.duration), false)
    }

    /// Wakes each flow at its start.
    pub(crate) fn arm_flows(&mut self) {
        for index in 0..self.flows.len() {
            self.queue.arm(self.endpoint(index, Direction::Out), self.flows[index].start);
        }
    }

    /// The record as of `end`.
    pub(crate) fn finish(self, end: Instant, plan: &RunPlan<'_>, scenario: &Scenario) -> RunRecord {
        let mut series = Vec::new();
        let flows = self.flows.into_iter().map(|flow| flow.finish(end, &mut series)).collect();
        let mut links = Vec::new();
        let mut queue_series = self.queue_series.into_iter();
        for (mut link, name) in self.links.into_iter().zip(self.link_names) {
            let line = queue_series.next().map(SeriesTap::finish);
            series.extend(line.filter(|line| !line.points.is_empty()));
            let report = link.report(end);
            links.push(LinkRecord {
                name,
                queue_packets_mean: report.queue_packets_mean,
                queue_packets_p99: report.queue_packets_p99,
                queue_packets_max: report.queue_packets_max,
                forwarded: report.forwarded,
                dropped: report.dropped,
                lost: report.lost,
                utilisation: report.utilisation,
            });
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

    /// Whether the run has ended by `at`, which lies beyond its duration.
    #[cold]
    pub(crate) fn is_over(&self, at: Instant) -> bool {
        self.pending == 0 || at > self.duration.max(self.last_delivery).saturating_add(self.drain)
    }

    /// Wakes a link or an endpoint; returns when it wants to be woken again.
    #[inline]
    pub(crate) fn wake(&mut self, entity: Entity, now: Instant) -> Option<Instant> {
        let index = entity.0 as usize;
        if index < self.links.len() {
            return self.wake_link(index, now);
        }
        let index = index - self.links.len();
        let direction = if index.is_multiple_of(2) { Direction::Out } else { Direction::Back };
        self.wake_endpoint(index / 2, direction, now)
    }

    #[inline]
    fn wake_link(&mut self, index: usize, now: Instant) -> Option<Instant> {
        loop {
            let link = &mut self.links[index];
            match link.poll_output(now) {
                Some(PathOutput::Arrived(ticket)) => self.carry_on(ticket, now),
                Some(PathOutput::Lost(ticket)) => self.record_drop(ticket, DropCause::Loss),
                Some(PathOutput::Dropped(ticket, _)) => self.record_drop(ticket, DropCause::Queue),
                None => {}
            }
            let next = self.links[index].poll_timeout();
            if next.is_none_or(|next| next > now) {
                self.observe_queue(index, now);
                return next;
            }
        }
    }

    fn wake_endpoint(&mut self, index: usize, direction: Direction, now: Instant) -> Option<Instant> {
        let flow = &mut self.flows[index];
        let endpoint = match direction {
            Direction::Out => &mut flow.near,
            Direction::Back => &mut flow.far,
        };
        let is_due = endpoint.handle_timeout(now);
        let deadline = if !flow.opened {
            flow.opened = true;
            endpoint.open(now);
            self.advance(index, direction, now)
        } else if is_due {
            self.advance(index, direction, now)
        } else {
            endpoint.poll_timeout()
        };
        deadline.map(|deadline| deadline.max(now))
    }

    /// A parcel is at the end of a link: the next link takes it, or the endpoint.
    #[inline]
    fn carry_on(&mut self, ticket: Ticket, now: Instant) {
        let link = self.routes.link(ticket.next_hop);
        if link == Routes::END {
            self.deliver(ticket, now);
        } else {
            self.enter(link as usize, Ticket { next_hop: ticket.next_hop + 1, ..ticket }, now);
        }
    }

    /// A parcel comes to a link, in pieces where the link's MTU asks for it.
    #[inline(always)]
    fn enter(&mut self, index: usize, ticket: Ticket, now: Instant) {
        let link = &mut self.links[index];
        if ticket.wire_size() > link.mtu() {
            return self.enter_in_pieces(index, ticket, now);
        }
        if link.marks(now) {
            self.parcels.mark(ticket);
        }
        match link.handle_packet(ticket, now) {
            Ok(Some(at)) => self.queue.arm(Entity(index as u32), at),
            Ok(None) => {}
            Err(Dropped { packet, .. }) => self.record_drop(packet, DropCause::Queue),
        }
        self.observe_queue(index, now);
    }

    #[cold]
    fn enter_in_pieces(&mut self, index: usize, ticket: Ticket, now: Instant) {
        let (parcel, whole) = (self.parcels.get(ticket).clone(), self.parcels.part(ticket));
        self.parcels.release(ticket);
        for part in whole.fragments(self.links[index].mtu()) {
            let ticket = self.parcels.admit(Parcel { part: Some(part), ..parcel.clone() }, ticket.next_hop);
            if let Err(Dropped { packet, .. }) = self.links[index].handle_packet(ticket, now) {
                self.record_drop(packet, DropCause::Queue);
            }
        }
        self.observe_queue(index, now);
        if let Some(at) = self.links[index].poll_timeout() {
            self.queue.arm(Entity(index as u32), at);
        }
    }

    fn deliver(&mut self, ticket: Ticket, now: Instant) {
        if self.parcels.get(ticket).part.is_some() && !self.put_together(ticket, now) {
            return;
        }
        let parcel = self.parcels.get(ticket);
        let (index, direction) = (parcel.flow as usize, parcel.direction);
        let flow = &mut self.flows[index];
        if let Some(tap) = &mut self.tap {
            tap.on_arrival(parcel, now);
        }
        // What travels out arrives at the far end, whose packets travel back.
        let (endpoint, answers) = match direction {
            Direction::Out => (&mut flow.far, Direction::Back),
            Direction::Back => (&mut flow.near, Direction::Out),
        };
        endpoint.handle_packet(&parcel.packet, parcel.ecn, now);
        self.parcels.release(ticket);
        if let Some(deadline) = self.advance(index, answers, now) {
            self.queue.arm(self.endpoint(index, answers), deadline.max(now));
        }
    }

    /// A fragment has arrived; returns whether it made its packet whole. Otherwise the parcel is gone.
    #[cold]
    fn put_together(&mut self, ticket: Ticket, now: Instant) -> bool {
        let (parcel, part) = (self.parcels.get(ticket), self.parcels.part(ticket));
        let flow = &mut self.flows[parcel.flow as usize];
        let reassembly = match parcel.direction {
            Direction::Out => &mut flow.far_reassembly,
            Direction::Back => &mut flow.near_reassembly,
        };
        // What is given up here lost a fragment, and was recorded as dropped when it did.
        while reassembly.poll_expired(now).is_some() {}
        match reassembly.handle_fragment(parcel.identification, part, now) {
            Reassembled::Whole { .. } => return true,
            Reassembled::Incomplete => self.parcels.release(ticket),
            Reassembled::Refused => self.record_drop(ticket, DropCause::Fragment),
        }
        false
    }

    /// Moves everything that can move at the end whose packets travel in `direction`; returns its next deadline.
    fn advance(&mut self, index: usize, direction: Direction, now: Instant) -> Option<Instant> {
        let flow = &mut self.flows[index];
        let pending_before = flow.taps.pending();
        let endpoint = match direction {
            Direction::Out => &mut flow.near,
            Direction::Back => &mut flow.far,
        };
        let (identification, first_hop) =
            (&mut flow.identifications[direction as usize], flow.routes[direction as usize]);
        endpoint.advance(&mut flow.taps, now, |transmit| {
            *identification = identification.wrapping_add(1);
            let Transmit { packet, ecn, .. } = transmit;
            let (flow, identification) = (index as u32, *identification);
            let parcel = Parcel { packet, ecn, direction, flow, identification, part: None };
            self.outbox.push(self.parcels.admit(parcel, first_hop + 1));
        });
        if direction == Direction::Out {
            flow.meter.read(endpoint, now);
        }
        let deadline = endpoint.poll_timeout();
        let pending = flow.taps.pending();
        flow.tally();
        if pending < pending_before {
            self.last_delivery = now;
        }
        self.pending = self.pending + pending - pending_before;
        let first_link = self.routes.link(first_hop) as usize;
        for place in 0..self.outbox.len() {
            let ticket = self.outbox[place];
            if let Some(tap) = &mut self.tap {
                tap.on_departure(self.parcels.get(ticket), now);
            }
            self.enter(first_link, ticket, now);
        }
        self.outbox.clear();
        deadline
    }

    /// A datagram that lost a piece is lost; a segment is sent again, so its loss is no message's.
    #[cold]
    fn record_drop(&mut self, ticket: Ticket, cause: DropCause) {
        self.parcels.release(ticket);
        let (parcel, is_whole) = (self.parcels.get(ticket), self.parcels.part(ticket).is_whole());
        let seq = match &parcel.packet {
            Packet::Udp(datagram) => datagram.seq,
            Packet::Dccp(packet) if packet.payload > 0 => packet.message,
            Packet::Dccp(_) | Packet::Tcp(_) => return,
        };
        let taps = &mut self.flows[parcel.flow as usize].taps;
        let before = taps.pending();
        let cause = if is_whole { cause } else { DropCause::Fragment };
        match parcel.direction {
            Direction::Out => taps.forward.on_dropped(seq, cause),
            Direction::Back => {
                if let Some(tap) = &mut taps.echo {
                    tap.on_dropped(seq, cause);
                }
            }
        }
        self.pending = self.pending + taps.pending() - before;
    }

    #[inline]
    fn observe_queue(&mut self, index: usize, now: Instant) {
        if let Some(series) = self.queue_series.get_mut(index) {
            series.push(self.links[index].waiting(now) as f64, now);
        }
    }

    fn endpoint(&self, flow: usize, direction: Direction) -> Entity {
        Entity((self.links.len() + 2 * flow + direction as usize) as u32)
    }
}

/// How many events pass between two looks at the interrupt; a look costs more than an event. Chosen.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 14;
