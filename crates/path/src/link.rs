//! A one-way link: a queue, a serialiser and a pipe in a row, driven as one step machine.
//!
//! A first-in-first-out queue that decides at arrival leaves nothing to chance afterwards: when the packet enters, its
//! service, its loss and its arrival at the far end are all known. So a packet costs one event a hop, its arrival,
//! and the queue's occupancy is settled from the known service starts whenever somebody looks. A queue that decides
//! at departure (CoDel, RFC 8289) will keep its packets and serve them from `poll_output`; the interface already
//! has what it needs: `poll_timeout` may name a moment at which nothing comes out yet, and drops come out late.
//!
//! Of two things at one instant, the one that leaves goes before the one that comes: a packet that arrives as
//! service ends finds the serialiser idle or the place free.
//!
//! A link layer's framing takes time on the wire only; its medium access and retransmissions are left out. Sizes are those
//! of IP packets everywhere else.

use core::ops::Range;

use talkpath_units::{Bytes, Instant, Seed};

use crate::config::{DelayVariation, Framing, LinkConfig, LossModel, QueueKind};
use crate::loss::Loss;
use crate::occupancy::Window;
use crate::pipe::{Fate, Pipe};
use crate::queue::DropTail;
use crate::serialiser::Serialiser;

/// What a link carries: anything with the size of an IP packet.
pub trait Carried: Copy {
    /// Bytes of the IPv4 packet, header included.
    fn wire_size(&self) -> Bytes;
}

/// A one-way link. See the module's documentation for its stages.
///
/// Laid out so that a plain packet's arrival at the far end touches two cache lines (64 B on most machines), and its
/// entry into an idle link the next two as well.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link<T> {
    /// A smaller packet meets nothing but queue, serialiser and delay: no MTU, marks, framing, loss or variation. Nothing
    /// is smaller where a link has one of the latter.
    plain_below: Bytes,
    pipe: Pipe<T>,
    counts: Counts,
    serialiser: Serialiser,
    queue: Queue,
    rare: Box<Rare>,
}

/// What a packet meets on few links, apart so that the others are small.
#[derive(Debug)]
struct Rare {
    mtu: Bytes,
    framing: Framing,
    loss: Loss,
    losses: Losses,
}

/// Where packets wait; one arm a discipline.
#[derive(Debug)]
enum Queue {
    DropTail(DropTail),
}

/// What the link counts within its measuring window.
#[derive(Debug, Default)]
#[repr(C)]
struct Counts {
    window: Window,
    forwarded: u64,
    /// Nanoseconds during which the serialiser had nothing to send, up to its last start.
    idle_ns: u64,
}

/// What it counts less often.
#[derive(Debug, Default)]
struct Losses {
    dropped: u64,
    lost: u64,
}

/// A packet that a queue turned away at its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// The packet.
    pub packet: T,
    /// Why.
    pub cause: DropCause,
}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue had no room for it.
    QueueFull,
}

/// What comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOutput<T> {
    /// The packet is at the far end.
    Arrived(T),
    /// The wire ate the packet; told when it would have arrived.
    Lost(T),
    /// The queue dropped the packet after it had waited. Drop-tail never does.
    Dropped(T, DropCause),
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
    /// Packets that arrived at the far end.
    pub forwarded: u64,
    /// Packets that the queue had no room for.
    pub dropped: u64,
    /// Packets that the wire ate, counted when they would have arrived.
    pub lost: u64,
    /// Share of the time during which the serialiser had a packet, 0 to 1.
    pub utilisation: f64,
}

impl<T: Carried> Link<T> {
    /// The bytes of a link that a plain packet's arrival at the far end looks at, for who wants to ask memory for them beforehand.
    pub const AT_EXIT: Range<usize> = 0..128;

    /// The link called `name`, empty, measuring from the run's beginning without end.
    ///
    /// Its random streams are `link/NAME/loss` and `link/NAME/jitter`.
    pub fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        let QueueKind::DropTail { limit, in_service, mark_at } = config.queue;
        let is_plain = mark_at.is_none()
            && config.framing == Framing::None
            && config.loss == LossModel::None
            && config.jitter == DelayVariation::None;
        Self {
            plain_below: if is_plain { config.mtu.saturating_add(Bytes::new(1)) } else { Bytes::ZERO },
            queue: Queue::DropTail(DropTail::new(limit, in_service, mark_at)),
            serialiser: Serialiser::new(&config.rate),
            pipe: Pipe::new(config.delay, &config.jitter, seed.stream(&format!("link/{name}/jitter"))),
            counts: Counts::default(),
            rare: Box::new(Rare {
                mtu: config.mtu,
                framing: config.framing,
                loss: Loss::new(&config.loss, seed.stream(&format!("link/{name}/loss"))),
                losses: Losses::default(),
            }),
        }
    }

    /// The same link, measuring in [`from`, `to`) only. For a link that has carried nothing yet.
    #[must_use]
    pub fn measuring(mut self, from: Instant, to: Instant) -> Self {
        self.counts.window = Window::new(from, to);
        match &mut self.queue {
            Queue::DropTail(queue) => queue.measure(self.counts.window),
        }
        self
    }

    /// The same link, of whose packets none is plain ([`Link::is_plain_for`]): its owner looks at each one's entry.
    #[must_use]
    pub fn looked_at(mut self) -> Self {
        self.plain_below = Bytes::ZERO;
        self
    }

    /// The largest packet that the link takes whole; a larger one is to be fragmented before `handle_packet`.
    pub fn mtu(&self) -> Bytes {
        self.rare.mtu
    }

    /// Whether a packet of `size` is neither too large for the MTU nor ever marked: its owner need not ask [`Link::mtu`] and
    /// [`Link::marks`]. Of one that is, this may also say no.
    #[inline]
    pub fn is_plain_for(&self, size: Bytes) -> bool {
        size < self.plain_below
    }

    /// A packet comes to the link: it goes into service, waits, or is dropped. Where it is the next one to come out,
    /// returns when: the new [`Link::poll_timeout`].
    ///
    /// # Errors
    /// [`Dropped`] gives the packet back where the queue has no room for it.
    #[inline(always)]
    pub fn handle_packet(&mut self, packet: T, now: Instant) -> Result<Option<Instant>, Dropped<T>> {
        let size = packet.wire_size();
        if !self.is_plain_for(size) {
            return self.handle_at_length(packet, now);
        }
        match self.serve(size, size, now) {
            Some(finish) => Ok(self.pipe.enter_plain(packet, finish)),
            None => Err(Dropped { packet, cause: DropCause::QueueFull }),
        }
    }

    /// As [`Self::handle_packet`], whatever the link does to it.
    #[cold]
    #[inline(never)]
    fn handle_at_length(&mut self, packet: T, now: Instant) -> Result<Option<Instant>, Dropped<T>> {
        let size = packet.wire_size();
        match self.serve(size, self.rare.framing.on_wire(size), now) {
            Some(finish) => {
                let lost = self.rare.loss.eats();
                Ok(self.pipe.enter(packet, lost, finish, now))
            }
            None => Err(Dropped { packet, cause: DropCause::QueueFull }),
        }
    }

    /// When service of a packet of `size` ends that came at `now` and is `on_wire` long with its framing; `None` where the queue
    /// has no room for it.
    #[inline(always)]
    fn serve(&mut self, size: Bytes, on_wire: Bytes, now: Instant) -> Option<Instant> {
        let Queue::DropTail(queue) = &mut self.queue;
        queue.settle(&self.pipe, now);
        let free_at = self.serialiser.free_at();
        if free_at <= now {
            self.counts.idle_ns += self.counts.window.overlap(free_at, now);
            queue.pass(size);
            return Some(self.serialiser.serve_at_once(on_wire, now));
        }
        if queue.has_room(size) {
            queue.admit(size, free_at, now);
            return Some(self.serialiser.serve_next(on_wire, now));
        }
        self.rare.losses.dropped += u64::from(self.counts.window.contains(now));
        None
    }

    /// When [`Link::poll_output`] next has something to do, if ever.
    #[inline(always)]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pipe.poll_timeout()
    }

    /// The packet that comes out after `ahead` others, where there is one that nothing overtakes.
    #[inline(always)]
    pub fn ahead(&self, ahead: u32) -> Option<&T> {
        self.pipe.ahead(ahead)
    }

    /// Where in memory the plain packet behind the next one is, and where the next one that enters is put unless it is alone, for who
    /// wants to ask for it beforehand; no part of what the link holds can be told from it.
    #[inline(always)]
    pub fn places(&self) -> [Option<&impl Sized>; 2] {
        [self.pipe.second_place(), self.pipe.free_place()]
    }

    /// As [`Link::poll_output`], for what comes first on most links, and only to be called when [`Link::poll_timeout`] has come: a
    /// packet that has arrived, and when the next one does, which nothing that enters until then changes; [`Instant::MAX`] where
    /// there is none yet. `None` does not say that there is nothing else.
    #[inline(always)]
    pub fn poll_arrival(&mut self, now: Instant) -> Option<(T, Instant)> {
        debug_assert!(self.poll_timeout().is_some_and(|at| at <= now), "nothing has arrived");
        let (packet, arrival, next) = self.pipe.poll_arrival()?;
        self.counts.forwarded += u64::from(self.counts.window.contains(arrival));
        Some((packet, next))
    }

    /// What came out by `now`, one a call, in order of time; to be called until `None`.
    pub fn poll_output(&mut self, now: Instant) -> Option<PathOutput<T>> {
        let out = self.pipe.poll_output(now)?;
        let counted = u64::from(self.counts.window.contains(out.arrival));
        match out.fate {
            Fate::Arrives(packet) => {
                self.counts.forwarded += counted;
                Some(PathOutput::Arrived(packet))
            }
            Fate::Lost(packet) => {
                self.rare.losses.lost += counted;
                Some(PathOutput::Lost(packet))
            }
            Fate::Nothing => None,
        }
    }

    /// Packets that wait for the serialiser at `now`, the one in service not counted.
    ///
    /// `now` is at or after the latest call's. Constant time right after `handle_packet` at the same `now`.
    #[inline]
    pub fn waiting(&self, now: Instant) -> u64 {
        match &self.queue {
            Queue::DropTail(queue) => queue.waiting(&self.pipe, now),
        }
    }

    /// Whether a packet that comes at `now`, to be given to [`Link::handle_packet`] next, finds a queue so long that it is to
    /// be marked with Congestion Experienced, where its transport takes that (RFC 3168 §5). Marking is the owner's, who
    /// knows the packet's header; whether there is room is asked afterwards.
    #[inline]
    pub fn marks(&self, now: Instant) -> bool {
        match &self.queue {
            Queue::DropTail(queue) => queue.marks(&self.pipe, now),
        }
    }

    /// Packets inside the link: waiting, in service or in the pipe.
    pub fn held(&self) -> usize {
        self.pipe.len()
    }

    /// What happened within the measuring window up to `now`.
    pub fn report(&mut self, now: Instant) -> LinkReport {
        let (window, free_at) = (self.counts.window, self.serialiser.free_at());
        let levels = match &mut self.queue {
            Queue::DropTail(queue) => {
                queue.settle(&self.pipe, now);
                queue.levels(now)
            }
        };
        // All that was accepted by `now` keeps the serialiser busy from then to `free_at` without a gap.
        let idle_ns = self.counts.idle_ns + window.overlap(free_at.min(now), now);
        let measured_ns = window.overlap(Instant::ZERO, now);
        LinkReport {
            queue_packets_mean: levels.mean,
            queue_packets_p99: levels.p99,
            queue_packets_max: levels.max,
            forwarded: self.counts.forwarded,
            dropped: self.rare.losses.dropped,
            lost: self.rare.losses.lost,
            utilisation: match measured_ns {
                0 => 0.0,
                _ => measured_ns.saturating_sub(idle_ns) as f64 / measured_ns as f64,
            },
        }
    }
}
