//! Two disciplines that only tests use. They do what drop-tail does not: serve flows in turn, and drop or
//! mark at the beginning of service. So they show that a discipline is one file.

use std::collections::{BTreeMap, VecDeque};

use talkpath_units::{Bytes, Duration, Ecn, Instant};

use crate::carried::{Carried, DropCause};
use crate::dscp::Dscp;
use crate::queue::discipline::{Discipline, Queued, Signals};
use crate::queue::limit::QueueLimit;

/// Serves the flows in turn, a packet each, in the order of their numbers. No limit.
#[derive(Debug)]
pub(crate) struct RoundRobin<T> {
    flows: BTreeMap<u32, VecDeque<Queued<T>>>,
    /// The flow that was served last.
    last: u32,
}

impl<T> RoundRobin<T> {
    pub(crate) const fn new() -> Self {
        Self { flows: BTreeMap::new(), last: u32::MAX }
    }
}

impl<T: Carried> Discipline<T> for RoundRobin<T> {
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, _signals: &mut Signals<T>) {
        self.flows.entry(packet.flow_id()).or_default().push_back(Queued { packet, entered: now });
    }

    fn dequeue(&mut self, _now: Instant, _signals: &mut Signals<T>) -> Option<Queued<T>> {
        let waits = |(flow, packets): (&u32, &VecDeque<Queued<T>>)| (!packets.is_empty()).then_some(*flow);
        let after_last = self.last.wrapping_add(1);
        let flow =
            self.flows.range(after_last..).find_map(waits).or_else(|| self.flows.iter().find_map(waits))?;
        self.last = flow;
        self.flows.get_mut(&flow)?.pop_front()
    }

    fn set_limit(
        &mut self,
        _limit: QueueLimit,
        _in_service: Bytes,
        _now: Instant,
        _signals: &mut Signals<T>,
    ) {
    }

    fn len(&self) -> u32 {
        self.flows.values().map(|packets| packets.len() as u32).sum()
    }
}

/// First in, first out, without a limit. What has waited longer than `target` is marked when its service
/// would begin, or dropped if its transport takes no marks.
#[derive(Debug)]
pub(crate) struct DropAtService<T> {
    waiting: VecDeque<Queued<T>>,
    target: Duration,
}

impl<T> DropAtService<T> {
    pub(crate) const fn new(target: Duration) -> Self {
        Self { waiting: VecDeque::new(), target }
    }
}

impl<T: Carried> Discipline<T> for DropAtService<T> {
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, _signals: &mut Signals<T>) {
        self.waiting.push_back(Queued { packet, entered: now });
    }

    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        while let Some(mut queued) = self.waiting.pop_front() {
            if now.since(queued.entered) <= self.target || signals.mark(&mut queued.packet, now) {
                return Some(queued);
            }
            signals.drop(queued.packet, DropCause::Congestion, now);
        }
        None
    }

    fn set_limit(
        &mut self,
        _limit: QueueLimit,
        _in_service: Bytes,
        _now: Instant,
        _signals: &mut Signals<T>,
    ) {
    }

    fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn drops_at_dequeue(&self) -> bool {
        true
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) flow: u32,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: Dscp,
}

impl Frame {
    /// One of this many bytes, whose transport takes no marks.
    pub(crate) const fn of_size(size: u64) -> Self {
        Self { number: 0, flow: 0, size, ecn: Ecn::NotEct, dscp: Dscp::BEST_EFFORT }
    }
}

impl Carried for Frame {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn flow_id(&self) -> u32 {
        self.flow
    }

    fn dscp(&self) -> Dscp {
        self.dscp
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}
