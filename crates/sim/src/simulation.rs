//! One run: endpoints, links and the event queue under a virtual clock.
//!
//! ```text
//!        ┌──────────── peek: (now, entity) ──────────────────┐
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
use talkpath_path::{Carried, Dropped, FragmentRange, Link, PathOutput, Reassembled};
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
    pub(crate) links: Vec<SimLink>,
    pub(crate) flows: Vec<SimFlow>,
    pub(crate) parcels: Parcels,
    pub(crate) routes: Routes,
    /// Sending stops here.
    pub(crate) duration: Instant,
    /// After that the run ends when nothing was delivered for so long.
    pub(crate) drain: Duration,
    /// What an endpoint put out during one step; kept to keep its room.
    pub(crate) outbox: Vec<Transmit>,
    /// Messages and echoes of all flows that are still to be delivered.
    pub(crate) pending: u64,
    pub(crate) last_delivery: Instant,
    /// Where a capture is made of the run.
    pub(crate) tap: Option<Tap>,
}

/// A link and its queue over time.
pub(crate) struct SimLink {
    pub(crate) link: Link<Ticket>,
    /// The scenario's name; `None` for a host's own delay, which is no link of the scenario.
    pub(crate) name: Option<String>,
    pub(crate) queue_series: Option<SeriesTap>,
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
        for index in 0..self.flows.len() {
            self.queue.arm(self.endpoint(index, Direction::Out), self.flows[index].start);
        }
        let mut now = Instant::ZERO;
        let mut events: u64 = 0;
        while let Some((at, entity)) = self.queue.peek() {
            if self.is_over(at) {
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

    /// The record as of `end`.
    pub(crate) fn finish(self, end: Instant, plan: &RunPlan<'_>, scenario: &Scenario) -> RunRecord {
        let mut series = Vec::new();
        let flows = self.flows.into_iter().map(|flow| flow.finish(end, &mut series)).collect();
        let mut links = Vec::new();
        for mut link in self.links {
            let Some(name) = link.name else { continue };
            series.extend(link.queue_series.map(SeriesTap::finish).filter(|line| !line.points.is_empty()));
            let report = link.link.report(end);
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

    fn is_over(&self, at: Instant) -> bool {
        at > self.duration
            && (self.pending == 0 || at > self.duration.max(self.last_delivery).saturating_add(self.drain))
    }

    /// Wakes a link or an endpoint; returns when it wants to be woken again.
    fn wake(&mut self, entity: Entity, now: Instant) -> Option<Instant> {
        let index = entity.0 as usize;
        if index < self.links.len() {
            self.wake_link(index, now);
            return self.links[index].link.poll_timeout();
        }
        let index = index - self.links.len();
        let direction = if index.is_multiple_of(2) { Direction::Out } else { Direction::Back };
        self.wake_endpoint(index / 2, direction, now)
    }

    fn wake_link(&mut self, index: usize, now: Instant) {
        while let Some(output) = self.links[index].link.poll_output(now) {
            match output {
                PathOutput::Arrived(ticket) => self.carry_on(ticket, now),
                PathOutput::Lost(ticket) => self.record_drop(ticket, DropCause::Loss),
                PathOutput::Dropped(ticket, _) => self.record_drop(ticket, DropCause::Queue),
            }
        }
        self.observe_queue(index, now);
    }

    fn wake_endpoint(&mut self, index: usize, direction: Direction, now: Instant) -> Option<Instant> {
        let flow = &mut self.flows[index];
        let endpoint = match direction {
            Direction::Out => &mut flow.near,
            Direction::Back => &mut flow.far,
        };
        let is_due = endpoint.handle_timeout(now);
        if !flow.opened {
            flow.opened = true;
            endpoint.open(now);
            self.advance(index, direction, now);
        } else if is_due {
            self.advance(index, direction, now);
        }
        let flow = &self.flows[index];
        let endpoint = match direction {
            Direction::Out => &flow.near,
            Direction::Back => &flow.far,
        };
        endpoint.poll_timeout().map(|deadline| deadline.max(now))
    }

    /// A parcel is at the end of a link: the next link takes it, or the endpoint.
    #[inline]
    fn carry_on(&mut self, ticket: Ticket, now: Instant) {
        let parcel = self.parcels.get_mut(ticket);
        let link = self.routes.link(parcel.next_hop);
        if link == Routes::END {
            let parcel = self.parcels.release(ticket);
            self.deliver(&parcel, now);
        } else {
            parcel.next_hop += 1;
            self.enter(link as usize, ticket, now);
        }
    }

    /// A parcel comes to a link, in pieces where the link's MTU asks for it.
    #[inline]
    fn enter(&mut self, index: usize, ticket: Ticket, now: Instant) {
        if ticket.wire_size() <= self.links[index].link.mtu() {
            self.enter_whole(index, ticket, now);
        } else {
            self.enter_in_pieces(index, ticket, now);
        }
        self.observe_queue(index, now);
        if let Some(at) = self.links[index].link.poll_timeout() {
            self.queue.arm(Entity(index as u32), at);
        }
    }

    #[inline]
    fn enter_whole(&mut self, index: usize, ticket: Ticket, now: Instant) {
        if let Err(Dropped { packet: ticket, .. }) = self.links[index].link.handle_packet(ticket, now) {
            self.record_drop(ticket, DropCause::Queue);
        }
    }

    #[cold]
    fn enter_in_pieces(&mut self, index: usize, ticket: Ticket, now: Instant) {
        let parcel = self.parcels.release(ticket);
        for part in parcel.part.fragments(self.links[index].link.mtu()) {
            let ticket = self.parcels.admit(Parcel { part, ..parcel });
            self.enter_whole(index, ticket, now);
        }
    }

    fn deliver(&mut self, parcel: &Parcel, now: Instant) {
        let index = parcel.flow as usize;
        let flow = &mut self.flows[index];
        if !parcel.part.is_whole() {
            let reassembly = match parcel.direction {
                Direction::Out => &mut flow.far_reassembly,
                Direction::Back => &mut flow.near_reassembly,
            };
            // What is given up here lost a fragment, and was recorded as dropped when it did.
            while reassembly.poll_expired(now).is_some() {}
            match reassembly.handle_fragment(parcel.identification, parcel.part, now) {
                Reassembled::Whole { .. } => {}
                Reassembled::Incomplete => return,
                Reassembled::Refused => return self.record_dropped(parcel, DropCause::Fragment),
            }
        }
        if let Some(tap) = &mut self.tap {
            tap.on_arrival(parcel, now);
        }
        // What travels out arrives at the far end, whose packets travel back.
        let (endpoint, answers) = match parcel.direction {
            Direction::Out => (&mut flow.far, Direction::Back),
            Direction::Back => (&mut flow.near, Direction::Out),
        };
        endpoint.handle_packet(parcel.packet, parcel.ecn, now);
        self.advance(index, answers, now);
        let flow = &self.flows[index];
        let endpoint = match answers {
            Direction::Out => &flow.near,
            Direction::Back => &flow.far,
        };
        if let Some(deadline) = endpoint.poll_timeout() {
            self.queue.arm(self.endpoint(index, answers), deadline.max(now));
        }
    }

    /// Moves everything that can move at the end whose packets travel in `direction`.
    fn advance(&mut self, index: usize, direction: Direction, now: Instant) {
        let flow = &mut self.flows[index];
        let pending_before = flow.taps.pending();
        let endpoint = match direction {
            Direction::Out => &mut flow.near,
            Direction::Back => &mut flow.far,
        };
        let outbox = &mut self.outbox;
        endpoint.advance(&mut flow.taps, now, |transmit| outbox.push(transmit));
        if direction == Direction::Out {
            flow.meter.read(&endpoint.observe(), now);
        }
        let pending = flow.taps.pending();
        if pending < pending_before {
            self.last_delivery = now;
        }
        self.pending = self.pending + pending - pending_before;
        self.send_outbox(index, direction, now);
    }

    fn send_outbox(&mut self, index: usize, direction: Direction, now: Instant) {
        for place in 0..self.outbox.len() {
            let transmit = &self.outbox[place];
            let flow = &mut self.flows[index];
            let identification = &mut flow.identifications[direction as usize];
            *identification = identification.wrapping_add(1);
            let parcel = Parcel {
                packet: transmit.packet,
                ecn: transmit.ecn,
                direction,
                flow: index as u32,
                next_hop: flow.routes[direction as usize],
                identification: *identification,
                part: FragmentRange::whole(transmit.packet.wire_size()),
            };
            if let Some(tap) = &mut self.tap {
                tap.on_departure(&parcel, now);
            }
            let ticket = self.parcels.admit(parcel);
            self.carry_on(ticket, now);
        }
        self.outbox.clear();
    }

    /// A datagram that lost a piece is lost; a segment is sent again, so its loss is no message's.
    fn record_drop(&mut self, ticket: Ticket, cause: DropCause) {
        let parcel = self.parcels.release(ticket);
        self.record_dropped(&parcel, cause);
    }

    fn record_dropped(&mut self, parcel: &Parcel, cause: DropCause) {
        let seq = match parcel.packet {
            Packet::Udp(datagram) => datagram.seq,
            Packet::Dccp(packet) if packet.payload > 0 => packet.message,
            Packet::Dccp(_) | Packet::Tcp(_) => return,
        };
        let taps = &mut self.flows[parcel.flow as usize].taps;
        let before = taps.pending();
        let cause = if parcel.part.is_whole() { cause } else { DropCause::Fragment };
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

    fn observe_queue(&mut self, index: usize, now: Instant) {
        let SimLink { link, queue_series, .. } = &mut self.links[index];
        if let Some(series) = queue_series {
            series.push(link.waiting(now) as f64, now);
        }
    }

    fn endpoint(&self, flow: usize, direction: Direction) -> Entity {
        Entity((self.links.len() + 2 * flow + direction as usize) as u32)
    }
}

/// How many events pass between two looks at the interrupt; a look costs more than an event. Chosen.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 14;
