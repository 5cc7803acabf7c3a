//! A one-way link: three places in a row, driven as one step machine.
//!
//! ```text
//!  handle_packet ─► [ waiting ] ─► [ serialiser ] ─► [ pipe ] ─► poll_output
//! ```
//!
//! **Services begin late.** A packet enters the pipe when its service begins: its end, its loss and its
//! arrival at the far end are known then. As long as the serialiser is busy, the packet in service is thus in
//! the pipe, and no packet that waits can arrive before it. So nobody needs to wake the link when a service
//! begins: whatever is done with the link first begins all services that are due, each at its own time. A
//! packet costs one event a link, its arrival.
//!
//! There are two exceptions, and then the link wakes up at each beginning of service as well. If packets may
//! overtake in the pipe, the next arrival may be that of a packet that waits. If the discipline drops when
//! service begins, the drop must come out in time.
//!
//! Of two things at one instant, the one that leaves goes before the one that comes: a packet that arrives as
//! service ends finds the serialiser idle or the place free.
//!
//! A link layer's framing takes time on the wire only; its medium access and retransmissions are left out.
//! Sizes are those of IP packets everywhere else.

use talkpath_units::{Bytes, Duration, Instant, Seed};

use crate::carried::{Carried, DropCause, Dropped};
use crate::config::{Framing, LinkConfig, LossModel};
use crate::loss::Loss;
use crate::occupancy::Window;
use crate::pipe::{Pipe, Traveller};
use crate::queue::LinkFacts;
use crate::serialiser::Serialiser;
use crate::sojourn::QueueDelay;
use crate::waiting::Waiting;

/// A one-way link. See the module's documentation for its places.
#[derive(Debug)]
pub struct Link<T> {
    waiting: Waiting<T>,
    serialiser: Serialiser,
    /// Size of the IP packet that went into service last.
    in_service: Bytes,
    pipe: Pipe<T>,
    /// Boxed, since most links have none.
    loss: Option<Box<Loss>>,
    framing: Framing,
    mtu: Bytes,
    /// Whether the link wakes up when a service begins.
    wakes_for_service: bool,
    counts: Counts,
}

/// What the link counts within its measuring window.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    window: Window,
    forwarded: u64,
    dropped: u64,
    /// Of these, those that the discipline dropped as a signal.
    dropped_by_aqm: u64,
    lost: u64,
    /// Nanoseconds during which the serialiser had nothing to send, up to its last start.
    idle_ns: u64,
}

/// What comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOutput<T> {
    /// The packet is at the far end.
    Arrived(T),
    /// The wire ate the packet; comes out when it would have arrived.
    Lost(T),
    /// The queue dropped the packet, when it came or later.
    Dropped(Dropped<T>),
}

/// What a link did within its measuring window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// Mean of the waiting packets, weighted by time.
    pub queue_packets_mean: f64,
    /// The number of waiting packets that was not exceeded for 99 % of the time.
    pub queue_packets_p99: u64,
    /// Most waiting packets; a number that held for no time does not count.
    pub queue_packets_max: u64,
    /// How long the packets waited that went into service.
    pub queue_delay: QueueDelay,
    /// Packets that arrived at the far end.
    pub forwarded: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Of these, those that the discipline dropped to signal congestion; the others found no room.
    pub dropped_by_aqm: u64,
    /// Packets that the queue marked (RFC 3168 §5).
    pub marked: u64,
    /// Packets that the wire ate, counted when they would have arrived.
    pub lost: u64,
    /// Share of the time during which the serialiser had a packet, 0 to 1.
    pub utilisation: f64,
}

impl<T: Carried> Link<T> {
    /// The link called `name`, empty, measuring from the run's beginning without end.
    ///
    /// Its random streams are `link/NAME/loss`, `link/NAME/jitter` and `link/NAME/queue`.
    pub fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        let perturbation = seed.stream(&format!("link/{name}/queue")).bits();
        let waiting = Waiting::new(&config.queue, &LinkFacts { mtu: config.mtu, perturbation });
        let pipe = Pipe::new(config.delay, &config.jitter, seed.stream(&format!("link/{name}/jitter")));
        Self {
            wakes_for_service: waiting.drops_at_dequeue() || pipe.may_overtake(),
            waiting,
            serialiser: Serialiser::new(&config.rate),
            in_service: Bytes::ZERO,
            pipe,
            loss: (config.loss != LossModel::None)
                .then(|| Box::new(Loss::new(&config.loss, seed.stream(&format!("link/{name}/loss"))))),
            framing: config.framing,
            mtu: config.mtu,
            counts: Counts::default(),
        }
    }

    /// The same link, measuring in [`from`, `to`) only. For a link that has carried nothing yet.
    #[must_use]
    pub fn measuring(mut self, from: Instant, to: Instant) -> Self {
        self.counts.window = Window::new(from, to);
        self.waiting.measure(self.counts.window);
        self
    }

    /// From now on keeps each service for [`Link::pop_service`].
    pub(crate) fn observe_services(&mut self) {
        self.waiting.observe();
    }

    /// The first service that was kept and not taken: when it began, and how long its packet had waited.
    pub(crate) fn pop_service(&mut self) -> Option<(Instant, Duration)> {
        self.waiting.pop_service()
    }

    /// Gives the link another discipline; before any packet.
    #[cfg(test)]
    pub(crate) fn set_queue(&mut self, queue: crate::queue::Queue<T>) {
        self.waiting.set_queue(queue);
        self.wakes_for_service = self.waiting.drops_at_dequeue() || self.pipe.may_overtake();
    }

    /// The largest packet that the link takes whole; a larger one is to be fragmented before `handle_packet`.
    #[inline(always)]
    pub fn mtu(&self) -> Bytes {
        self.mtu
    }

    /// A packet comes to the link: it goes into service, waits, or is dropped. A dropped packet comes out at
    /// once.
    #[inline(always)]
    pub fn handle_packet(&mut self, packet: T, now: Instant) {
        self.begin_services(now);
        let free_at = self.serialiser.free_at();
        if free_at > now {
            return self.waiting.enqueue(packet, self.in_service, now);
        }
        if let Some(packet) = self.waiting.pass(packet, now) {
            self.counts.idle_ns += self.counts.window.overlap(free_at, now);
            let end = self.serialiser.serve_at_once(self.framing.on_wire(packet.wire_size()), now);
            self.send(packet, end);
        }
    }

    /// When [`Link::poll_output`] next has something to do, if ever.
    #[inline(always)]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.next();
        (next < Instant::MAX).then_some(next)
    }

    /// As [`Link::poll_timeout`]; [`Instant::MAX`] is never.
    #[inline(always)]
    pub(crate) fn next(&self) -> Instant {
        let next = self.pipe.next().min(self.waiting.next_drop());
        if self.wakes_for_service && self.waiting.len() > 0 {
            return next.min(self.serialiser.free_at());
        }
        next
    }

    /// What came out by `now`, one a call, in order of time; to be called until `None`. There may be nothing
    /// though [`Link::poll_timeout`] has come: then only a service has begun.
    #[inline(always)]
    pub fn poll_output(&mut self, now: Instant) -> Option<PathOutput<T>> {
        self.begin_services(now);
        let arrival = self.pipe.next();
        let drop = self.waiting.next_drop();
        if arrival.min(drop) > now {
            return None;
        }
        if drop <= arrival {
            return self.poll_drop().map(PathOutput::Dropped);
        }
        let Traveller { packet, is_lost, .. } = self.pipe.pop()?;
        let counted = u64::from(self.counts.window.contains(arrival));
        if is_lost {
            self.counts.lost += counted;
            return Some(PathOutput::Lost(packet));
        }
        self.counts.forwarded += counted;
        Some(PathOutput::Arrived(packet))
    }

    /// Whether a packet was dropped that has not come out.
    #[inline(always)]
    pub(crate) fn has_dropped(&self) -> bool {
        self.waiting.next_drop() < Instant::MAX
    }

    /// The first packet that was dropped and has not come out, at once: [`Link::poll_output`] would give it
    /// in its order.
    #[cold]
    pub fn poll_drop(&mut self) -> Option<Dropped<T>> {
        let (at, dropped) = self.waiting.pop_drop()?;
        let counted = u64::from(self.counts.window.contains(at));
        self.counts.dropped += counted;
        if dropped.cause == DropCause::Congestion {
            self.counts.dropped_by_aqm += counted;
        }
        Some(dropped)
    }

    /// Packets that wait for the serialiser at `now`, the one in service not counted. `now` is at or after
    /// the latest call's.
    #[inline(always)]
    pub fn waiting(&mut self, now: Instant) -> u64 {
        self.begin_services(now);
        u64::from(self.waiting.len())
    }

    /// Packets inside the link: waiting, in service or in the pipe, and dropped ones that have not come out.
    pub fn held(&self) -> usize {
        self.waiting.held() + self.pipe.len()
    }

    /// What happened within the measuring window up to `now`.
    pub fn report(&mut self, now: Instant) -> LinkReport {
        self.begin_services(now);
        let levels = self.waiting.levels(now);
        let Counts { window, forwarded, dropped, dropped_by_aqm, lost, idle_ns } = self.counts;
        // Without a gap, the serialiser is busy from the last start to `free_at`.
        let idle_ns = idle_ns + window.overlap(self.serialiser.free_at().min(now), now);
        let measured_ns = window.overlap(Instant::ZERO, now);
        LinkReport {
            queue_packets_mean: levels.mean,
            queue_packets_p99: levels.p99,
            queue_packets_max: levels.max,
            queue_delay: self.waiting.delay(),
            forwarded,
            dropped,
            dropped_by_aqm,
            marked: self.waiting.marked(),
            lost,
            utilisation: match measured_ns {
                0 => 0.0,
                _ => measured_ns.saturating_sub(idle_ns) as f64 / measured_ns as f64,
            },
        }
    }

    /// Begins every service whose time has come, each at the end of the one before.
    #[inline(always)]
    fn begin_services(&mut self, now: Instant) {
        while self.waiting.len() > 0 && self.serialiser.free_at() <= now {
            let start = self.serialiser.free_at();
            let Some(packet) = self.waiting.dequeue(start) else { return };
            let end = self.serialiser.serve_next(self.framing.on_wire(packet.wire_size()));
            self.send(packet, end);
        }
    }

    /// A packet goes into service, which ends at `end`.
    #[inline(always)]
    fn send(&mut self, packet: T, end: Instant) {
        self.in_service = packet.wire_size();
        let is_lost = self.loss.as_mut().is_some_and(|loss| loss.eats());
        self.pipe.enter(packet, is_lost, end);
    }
}

#[cfg(test)]
mod tests;
