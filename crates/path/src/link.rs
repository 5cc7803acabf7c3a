//! A one-way link: a queue, a serialiser and a pipe in a row, driven as one step machine.
//!
//! ```text
//!  handle_packet ─► [ waiting ] ─► [ serialiser ] ─► [ pipe ] ─► poll_output
//!                     queue          one packet        the propagation delay
//! ```
//!
//! **A packet costs one event per link: its arrival.** When the service of a packet begins, everything about
//! it is known: the end of its service, whether the wire loses it, and its arrival at the far end. So the
//! packet enters the pipe when its service begins. As long as the serialiser is busy, the next arrival is
//! that of a packet in the pipe, because no packet that waits can arrive earlier. Therefore the link needs no
//! event at the beginning of a service. Each call first begins all services that are due by then, each at its
//! own time.
//!
//! For example, at 1 Mbit/s a packet of 1250 B is served from 0 to 10 ms. A second packet comes at 3 ms. Its
//! service begins at 10 ms, but the link computes that only at its next call, say at 30 ms when the first
//! packet arrives.
//!
//! There are two exceptions, in which the link has an event at the beginning of each service as well:
//!
//! - Packets may overtake each other in the pipe. Then the next arrival may be that of a packet that waits.
//! - The discipline drops packets when service begins. Then the drop must be reported at its time.
//!
//! **At the same instant, a packet leaves before another one comes.** A packet that comes when a service ends
//! finds the serialiser idle, or a place in the queue free.
//!
//! The framing of a link layer adds bytes only to the time on the wire; all other sizes are those of IP
//! packets.
//!
//! A link over Wi-Fi has a medium in place of the serialiser, which takes packets from the queue and puts
//! them into the pipe (`shared`, and the module `wifi`).
//!
//! In a cell (`cellular`) a packet's service ends when its last byte is in a block, and it enters the pipe
//! when that block is read.

use talkpath_units::{Bytes, Instant, Seed};

use crate::carried::{Carried, DropCause, Dropped};
use crate::change::LinkValues;
use crate::changes::QueueChanges;
use crate::config::{LinkConfig, LossModel};
use crate::damage::{Check, Damager};
use crate::framing::Framing;
use crate::loss::Loss;
use crate::occupancy::Window;
use crate::pipe::{Pipe, Traveller, WireFate};
use crate::queue::{LinkFacts, QueueLimit, Queued};
use crate::repetition::Repeater;
use crate::serialiser::Serialiser;
use crate::sojourn::QueueDelay;
use crate::waiting::Waiting;
use crate::wifi::{Frames, Medium};

/// A one-way link: packets wait in a queue, are serialised one by one, and propagate through a pipe.
#[derive(Debug)]
pub struct Link<T> {
    waiting: Waiting<T>,
    serialiser: Serialiser,
    /// The size of the IP packet whose service began last.
    in_service: Bytes,
    pipe: Pipe<T>,
    /// `None` on most links. Boxed, so that these links stay small.
    rare: Option<Box<Rare<T>>>,
    framing: Framing,
    mtu: Bytes,
    /// True if the link has an event at the beginning of each service. That is so if packets may overtake
    /// each other in the pipe, or if the discipline drops packets when service begins. On other links the
    /// next call begins the services that were due before it.
    wakes_for_service: bool,
    counts: Counts,
}

/// What few links have: loss, copies, damage, observers, and changes.
#[derive(Debug)]
struct Rare<T> {
    /// `None` if the wire loses no packets.
    loss: Option<Loss>,
    /// `None` if no packet is repeated.
    repeater: Option<Repeater>,
    /// `None` if no packet is damaged.
    damager: Option<Damager>,
    /// The services that nobody has taken yet, in order of time. `None` if they are not observed.
    services: Option<Vec<Service<T>>>,
    /// `None` on a link that never changes.
    present: Option<Present>,
    /// `None` on a link with a wire of its own.
    frames: Option<Box<Frames<T>>>,
    /// Whether the link is a user's share of a cell (`cellular`).
    is_cellular: bool,
}

/// The present values of a link that changes, and what holds its packets.
#[derive(Debug)]
struct Present {
    values: LinkValues,
    /// The limit that the queue has. It differs from that of `values` while the queue has no room.
    applied_limit: Option<QueueLimit>,
    /// The number of outages that have begun and are not over.
    outages: u32,
    /// Those of `outages` during which the queue has no room.
    dropping: u32,
    /// While no service may begin: when the serialiser became idle, or will.
    held_from: Option<Instant>,
}

/// A packet's time at the serialiser, known when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<T> {
    /// The packet.
    pub packet: T,
    /// When its service began; it waited until then.
    pub began: Instant,
    /// When its last bit leaves; [`Instant::MAX`] is never.
    pub ends: Instant,
}

/// What the link counts within its measuring window.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    window: Window,
    forwarded: u64,
    dropped: u64,
    /// Those of `dropped` that the discipline dropped to signal congestion (active queue management).
    dropped_by_aqm: u64,
    lost: u64,
    repeated: u64,
    damaged: u64,
    /// The sum in nanoseconds of the idle times of the serialiser that are over. An idle time is added when
    /// the next service begins.
    idle_ns: u64,
}

/// What comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOutput<T> {
    /// The packet has arrived at the far end.
    Arrived(T),
    /// The packet has arrived at the far end, and a copy of it with it.
    Repeated(T),
    /// The wire lost the packet. The loss is reported when the packet would have arrived.
    Lost(T),
    /// The queue dropped the packet, when it came or later.
    Dropped(Dropped<T>),
}

/// What a link did within its measuring window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// The mean number of waiting packets, weighted by time.
    pub queue_packets_mean: f64,
    /// The number of waiting packets that was not exceeded for 99 % of the time.
    pub queue_packets_p99: u64,
    /// The largest number of waiting packets, without peaks that lasted for no time: a packet came and
    /// another left at the same instant.
    pub queue_packets_max: u64,
    /// The waiting times of the packets that went into service.
    pub queue_delay: QueueDelay,
    /// The number of packets that arrived at the far end, copies included.
    pub forwarded: u64,
    /// The number of packets that the queue dropped.
    pub dropped: u64,
    /// Those of `dropped` that the discipline dropped to signal congestion. The other packets found no room.
    pub dropped_by_aqm: u64,
    /// The number of packets that the queue marked (RFC 3168 §5).
    pub marked: u64,
    /// The number of packets that the wire lost, counted when they would have arrived.
    pub lost: u64,
    /// The number of copies that the wire made, counted when they arrived.
    pub repeated: u64,
    /// The number of packets that the wire damaged, counted when they arrived or would have arrived. If the
    /// link notices damage, they are among `lost`.
    pub damaged: u64,
    /// The share of the time during which the serialiser was busy, 0 to 1.
    pub utilisation: f64,
}

impl<T: Carried> Link<T> {
    /// An empty link with this `name`, which counts from the beginning of the run to its end.
    ///
    /// The link draws from the random streams `link/NAME/loss`, `link/NAME/jitter`, `link/NAME/queue`,
    /// `link/NAME/reorder`, `link/NAME/duplicate` and `link/NAME/damage`, and in a cell from `link/NAME/harq`
    /// and `link/NAME/request`.
    pub fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        // FQ-CoDel hashes flows together with these bits, so that the flows which share a queue on one link
        // do not share one on each link.
        let perturbation = seed.stream(&format!("link/{name}/queue")).bits();
        let waiting = Waiting::new(config, &LinkFacts { mtu: config.mtu, perturbation });
        let mut pipe = Pipe::new(config.delay, &config.jitter, seed.stream(&format!("link/{name}/jitter")));
        if let Some(reordering) = config.reorder {
            pipe.reorder(reordering, seed.stream(&format!("link/{name}/reorder")));
        }
        Self {
            // A drop must be reported at its time, and a packet that overtakes may be the next arrival.
            wakes_for_service: waiting.drops_at_dequeue() || pipe.may_overtake(),
            waiting,
            serialiser: match config.medium {
                Medium::Wire => Serialiser::of_link(config, seed, name),
                Medium::Wifi(_) => Serialiser::never_free(),
            },
            in_service: Bytes::ZERO,
            pipe,
            rare: Rare::from_config(config, seed, name),
            framing: config.framing,
            mtu: config.mtu,
            counts: Counts::default(),
        }
    }

    /// The same link, which counts within [`from`, `to`) only. The link must not have carried a packet yet.
    #[must_use]
    pub fn measuring(mut self, from: Instant, to: Instant) -> Self {
        self.counts.window = Window::new(from, to);
        self.waiting.measure(self.counts.window);
        self
    }

    /// Makes the link keep each change of its queue's length and delay from now on.
    pub(crate) fn observe_queue(&mut self) {
        self.waiting.observe();
    }

    /// The changes that nobody has taken yet, if the queue is observed.
    pub(crate) fn queue_changes(&mut self) -> Option<&mut QueueChanges> {
        self.waiting.changes()
    }

    /// Makes the link keep each service that begins from now on.
    pub(crate) fn observe_services(&mut self) {
        let rare = self.rare.get_or_insert_with(Box::default);
        rare.services = Some(Vec::new());
    }

    /// The services that nobody has taken yet, if they are observed. One that began before the latest call
    /// is there.
    pub(crate) fn services(&mut self) -> Option<&mut Vec<Service<T>>> {
        self.rare.as_mut()?.services.as_mut()
    }

    /// Gives the link another discipline. The link must not have carried a packet yet.
    #[cfg(test)]
    pub(crate) fn set_queue(&mut self, queue: crate::queue::Queue<T>) {
        self.waiting.set_queue(queue);
        self.wakes_for_service = self.waiting.drops_at_dequeue() || self.pipe.may_overtake();
    }

    /// The largest packet that the link carries. The caller fragments larger packets before `handle_packet`.
    #[inline(always)]
    pub fn mtu(&self) -> Bytes {
        self.mtu
    }

    /// Takes a packet that comes to the link. The packet goes into service, waits, or is dropped. A drop is
    /// reported by the next [`Link::poll_output`].
    #[inline(always)]
    pub fn handle_packet(&mut self, packet: T, now: Instant) {
        // The packets that came before go first.
        self.begin_services(now);
        let free_at = self.serialiser.free_at();
        let is_busy = free_at > now;
        if is_busy {
            return self.waiting.enqueue(packet, self.in_service, now);
        }
        // The serialiser is idle, so no packet waits. The discipline passes the packet on or drops it.
        if let Some(packet) = self.waiting.pass(packet, now) {
            // The serialiser was idle from the end of its last service until now.
            self.counts.idle_ns += self.counts.window.overlap(free_at, now);
            let end = self.serialiser.serve_at_once(self.framing.on_wire(packet.wire_size()), now);
            self.send(packet, now, end);
        }
    }

    /// When [`Link::poll_output`] is to be called next. `None` if the link is empty.
    #[inline(always)]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.next();
        (next < Instant::MAX).then_some(next)
    }

    /// The time of the link's next event: an arrival, a drop, or on some links the beginning of a service.
    /// [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Instant {
        let next_output = self.pipe.next().min(self.waiting.next_drop());
        if self.wakes_for_service && self.waiting.len() > 0 {
            let next_service = self.serialiser.free_at();
            return next_output.min(next_service);
        }
        next_output
    }

    /// Takes one packet that came out of the link by `now`. Packets come in order of time, one per call, and
    /// the caller calls until `None`.
    ///
    /// The first call may return `None` too: if the link's event is the beginning of a service, a packet
    /// enters the pipe, and none comes out.
    #[inline(always)]
    pub fn poll_output(&mut self, now: Instant) -> Option<PathOutput<T>> {
        self.begin_services(now);
        let next_arrival = self.pipe.next();
        let next_drop = self.waiting.next_drop();
        if next_arrival.min(next_drop) > now {
            return None;
        }
        if next_drop <= next_arrival {
            return self.poll_drop().map(PathOutput::Dropped);
        }
        let Traveller { packet, wire, .. } = self.pipe.pop()?;
        // Only the packets within the measuring window are counted: 1 or 0.
        let counted = u64::from(self.counts.window.contains(next_arrival));
        if wire != WireFate::default() {
            return Some(self.come_out(packet, wire, counted));
        }
        self.counts.forwarded += counted;
        Some(PathOutput::Arrived(packet))
    }

    /// Counts a packet to which the wire did something. `counted` is 1 within the measuring window, and else
    /// 0.
    #[cold]
    fn come_out(&mut self, packet: T, wire: WireFate, counted: u64) -> PathOutput<T> {
        self.counts.damaged += if wire.is_damaged { counted } else { 0 };
        if wire.is_lost {
            self.counts.lost += counted;
            return PathOutput::Lost(packet);
        }
        self.counts.forwarded += counted;
        if wire.is_repeated {
            self.counts.forwarded += counted;
            self.counts.repeated += counted;
            return PathOutput::Repeated(packet);
        }
        PathOutput::Arrived(packet)
    }

    /// True if a packet was dropped and the drop is not yet reported.
    #[inline(always)]
    pub(crate) fn has_dropped(&self) -> bool {
        self.waiting.next_drop() < Instant::MAX
    }

    /// Takes the earliest drop that is not yet reported. A caller that has just handed in a packet learns so
    /// at once whether it was dropped. [`Link::poll_output`] reports drops as well, in order with arrivals.
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

    /// The number of packets that wait for the serialiser at `now`, without the packet in service. `now` must
    /// not be earlier than in any call before.
    #[inline(always)]
    pub fn waiting(&mut self, now: Instant) -> u64 {
        self.begin_services(now);
        u64::from(self.waiting.len())
    }

    /// The number of packets inside the link: those that wait, are in service or in the pipe, and the dropped
    /// packets that are not yet reported.
    pub fn held(&self) -> usize {
        self.waiting.held() + self.pipe.len() + self.frames().map_or(0, Frames::len)
    }

    /// The counts within the measuring window, up to `now`.
    pub fn report(&mut self, now: Instant) -> LinkReport {
        self.begin_services(now);
        let levels = self.waiting.levels(now);
        let Counts { window, forwarded, dropped, dropped_by_aqm, lost, repeated, damaged, idle_ns } =
            self.counts;
        // `idle_ns` has the idle times that are over. If the serialiser is idle now, it is so since
        // `free_at`. A link that is down is idle.
        let held_from = self.rare.as_ref().and_then(|rare| rare.present.as_ref()?.held_from);
        let idle_since = held_from.unwrap_or(self.serialiser.free_at()).min(now);
        let idle_ns = idle_ns + window.overlap(idle_since, now);
        let measured_ns = window.overlap(Instant::ZERO, now);
        let idle_ns = match self.frames() {
            Some(frames) => measured_ns.saturating_sub(frames.busy_ns()),
            None => idle_ns,
        };
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
            repeated,
            damaged,
            utilisation: match measured_ns {
                // The window has not begun.
                0 => 0.0,
                _ => measured_ns.saturating_sub(idle_ns) as f64 / measured_ns as f64,
            },
        }
    }

    /// Begins every service that is due by `now`, each one at the end of the service before it.
    #[inline(always)]
    fn begin_services(&mut self, now: Instant) {
        while self.waiting.len() > 0 && self.serialiser.free_at() <= now {
            let start = self.serialiser.free_at();
            // `None` if the discipline has dropped all packets that waited.
            let Some(Queued { packet, entered }) = self.waiting.dequeue(start) else { return };
            let end = self.serialiser.serve_next(self.framing.on_wire(packet.wire_size()), entered);
            self.send(packet, start, end);
        }
    }

    /// Puts a packet into service from `start` until `end`. The packet enters the pipe now, at the beginning
    /// of its service. Its propagation delay counts from `end`.
    #[inline(always)]
    fn send(&mut self, mut packet: T, start: Instant, mut end: Instant) {
        self.in_service = packet.wire_size();
        // A lost packet passes the pipe too, so that its loss is reported when it would have arrived.
        let wire = match &mut self.rare {
            Some(rare) => {
                if rare.is_cellular {
                    // The next packet goes into blocks before this one has been read.
                    end = self.serialiser.complete();
                }
                rare.send(&mut packet, start, end)
            }
            None => WireFate::default(),
        };
        self.pipe.enter(packet, wire, end);
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self {
            loss: None,
            repeater: None,
            damager: None,
            services: None,
            present: None,
            frames: None,
            is_cellular: false,
        }
    }
}

impl<T: Carried> Rare<T> {
    /// What `config` asks for. `None` if it asks for nothing of this.
    fn from_config(config: &LinkConfig, seed: Seed, name: &str) -> Option<Box<Self>> {
        let stream = |element: &str| seed.stream(&format!("link/{name}/{element}"));
        let has_loss = config.loss != LossModel::None;
        let loss = has_loss.then(|| Loss::new(&config.loss, stream("loss")));
        let repeater = (config.duplicate > 0.0).then(|| Repeater::new(config.duplicate, stream("duplicate")));
        let damager = config.damage.map(|damage| Damager::new(damage, stream("damage")));
        let (is_shared, is_cellular) = (matches!(config.medium, Medium::Wifi(_)), config.cellular.is_some());
        let frames = is_shared.then(Box::default);
        let is_wire = loss.is_none() && repeater.is_none() && damager.is_none();
        let is_plain = is_wire && !is_shared && !is_cellular;
        let rare = Self { loss, repeater, damager, frames, is_cellular, ..Self::default() };
        (!is_plain).then(|| Box::new(rare))
    }

    /// Notes the service of a packet. Returns what the wire does to it. Each element draws for each packet,
    /// whatever the others do.
    fn send(&mut self, packet: &mut T, began: Instant, ends: Instant) -> WireFate {
        if let Some(services) = &mut self.services {
            services.push(Service { packet: *packet, began, ends });
        }
        let is_lost = self.loss.as_mut().is_some_and(|loss| loss.loses_next(ends));
        let is_repeated = self.repeater.as_mut().is_some_and(Repeater::repeats_next);
        let damage = self.damager.as_mut().and_then(Damager::damages_next);
        if damage == Some(Check::Checksum) {
            packet.damage();
        }
        let is_lost = is_lost || damage == Some(Check::Frame);
        WireFate { is_lost, is_repeated: is_repeated && !is_lost, is_damaged: damage.is_some() }
    }
}

mod changing;
mod shared;
#[cfg(test)]
mod tests;
