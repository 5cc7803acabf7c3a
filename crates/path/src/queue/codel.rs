//! CoDel: first in, first out, and a packet is dropped or marked at the head while all packets have waited
//! for longer than `target` over a whole `interval` (RFC 8289).
//!
//! ```text
//!               sojourn >= target, and more than an MTU waits, for a whole interval
//!  not dropping ───────────────────────────────────────────────────────────────────► dropping: each
//!       ▲                                                                            interval / sqrt(count)
//!       └────────────────────────────────────────────────────────────────────────────────┘
//!               sojourn < target, or no more than an MTU waits
//! ```
//!
//! The steps are those of RFC 8289's pseudo-code (§5.5 and §5.6). `interval / sqrt(count)` is computed
//! exactly and rounded down to the nanosecond ([`Exact`]). Linux computes it with a 16-bit inverse square
//! root and a clock of 1,024 ns. With that arithmetic in its place (`kernel_codel.rs`, for tests) the same
//! steps make a kernel's decisions, with one exception. A queue that is found empty ends its interval here
//! (`first_above_time`, RFC 8289 §5.6). Linux's codel_dequeue returns before it looks at that variable. Only
//! FQ-CoDel can differ by that: there a queue's last packet may leave packets of other queues behind, so that
//! the packet itself does not end the interval.
//!
//! With `ecn` a packet whose transport takes marks is marked instead of dropped. It goes into service, and
//! the next drop is scheduled as if it had been dropped: RFC 8289 leaves that open, Linux's sch_codel does
//! so.
//!
//! Departures: the pseudo-code's largest packet seen is here the link's MTU, as in Linux.

use core::fmt::Debug;
use std::collections::VecDeque;

use talkpath_units::{Bytes, Duration, Instant};

use crate::carried::{Carried, DropCause};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// How much may wait.
    pub limit: QueueLimit,
    /// The control of the queue's delay.
    pub parameters: CodelParameters,
}

/// What CoDel controls by, here and in FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParameters {
    /// The delay that a standing queue may have (RFC 8289 §4.4).
    pub target: Duration,
    /// For how long all packets must wait longer than `target` before one is dropped (RFC 8289 §4.3).
    pub interval: Duration,
    /// Whether packets are marked instead of dropped, if their transports take marks.
    pub ecn: bool,
    /// A packet that has waited longer than this is marked, whatever the control says; `None` is never.
    pub ce_threshold: Option<Duration>,
}

/// A queue under CoDel.
#[derive(Debug)]
pub(crate) struct CodelQueue<T, A = Exact> {
    waiting: VecDeque<Queued<T>>,
    /// Bytes of the waiting packets.
    bytes: Bytes,
    limit: QueueLimit,
    parameters: CodelParameters,
    mtu: Bytes,
    control: Control<A>,
}

/// How a control counts time, and how it takes the square root. The RFC's way is [`Exact`]; Linux's, with its
/// coarser clock, is in `kernel_codel`.
pub(crate) trait Arithmetic: Debug + Default + Send + 'static {
    /// What the clock shows at `at`.
    fn clock(at: Instant) -> Instant;

    /// `span` rounded to the unit of the clock.
    fn in_clock_units(span: Duration) -> Duration;

    /// True if `now` is past `first_above_time`, so that a packet may be dropped.
    fn is_over(first_above_time: Instant, now: Instant) -> bool;

    /// The control's `count` is now this one. An arithmetic that keeps `1 / sqrt(count)` updates it.
    fn on_count(&mut self, count: u32);

    /// The control's `count` begins anew at 1.
    fn on_first(&mut self);

    /// RFC 8289 §5.6's `interval / sqrt(count)`.
    fn spacing(&self, interval: Duration, count: u32) -> Duration;
}

/// The RFC's arithmetic: real numbers, rounded down to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exact;

/// The state of one queue's control. The names are RFC 8289's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control<A = Exact> {
    /// The time at which dropping may begin: one `interval` after a packet first waited for `target` or
    /// longer. `None` if the latest packet waited a shorter time, or if at most an MTU waited behind it. The
    /// next long wait then starts a new interval.
    first_above_time: Option<Instant>,
    /// When the next packet is to be dropped, in the dropping state.
    drop_next: Instant,
    /// The number of drops and marks from which the time to the next drop follows: `interval / sqrt(count)`.
    /// It begins at 1 when the dropping state is entered. If the state was left a short time ago, `count`
    /// begins at the number of drops that the last stay in the state had added to it.
    count: u32,
    /// `count` when the dropping state was last entered.
    lastcount: u32,
    /// True in the dropping state, in which a packet is dropped or marked at each `drop_next`.
    dropping: bool,
    arithmetic: A,
}

/// A packet that was taken out of a queue.
pub(super) struct Taken<T> {
    pub(super) queued: Queued<T>,
    /// The bytes that wait behind the packet.
    pub(super) behind: Bytes,
}

/// The packet at the head of a queue, taken out, and what the control says about it (RFC 8289 §5.6:
/// `dodequeue_result`).
struct Head<T> {
    /// `None` if the queue was empty.
    queued: Option<Queued<T>>,
    /// True if all packets have waited for `target` or longer over a whole `interval`.
    ok_to_drop: bool,
}

impl<T: Carried, A: Arithmetic> CodelQueue<T, A> {
    /// An empty queue.
    pub(crate) fn new(config: &Codel, link: &LinkFacts) -> Self {
        let Codel { limit, parameters } = *config;
        Self {
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            limit,
            parameters,
            mtu: link.mtu,
            control: Control::default(),
        }
    }
}

impl<T: Carried, A: Arithmetic> Discipline<T> for CodelQueue<T, A> {
    #[inline(never)]
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        let size = packet.wire_size();
        if !self.limit.holds(self.waiting.len() as u64 + 1, self.bytes.saturating_add(size)) {
            return signals.drop(packet, DropCause::QueueFull, now);
        }
        self.bytes += size;
        self.waiting.push_back(Queued { packet, entered: now });
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        let (waiting, bytes) = (&mut self.waiting, &mut self.bytes);
        let take = || {
            let queued = waiting.pop_front()?;
            *bytes -= queued.packet.wire_size();
            Some(Taken { queued, behind: *bytes })
        };
        self.control.dequeue(&self.parameters, self.mtu, take, now, signals)
    }

    /// Takes a packet that comes to an empty queue and an idle serialiser. CoDel sees a queue of one packet
    /// that did not wait. The limit does not apply, because the packet takes no room.
    fn pass(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        let queued = Queued { packet, entered: now };
        let mut only_packet = Some(Taken { queued, behind: Bytes::ZERO });
        let passed = self.control.dequeue(&self.parameters, self.mtu, || only_packet.take(), now, signals);
        passed.map(|queued| queued.packet)
    }

    /// Drops the packets that came last, as without room for a packet that comes.
    fn set_limit(&mut self, limit: QueueLimit, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.limit = limit;
        while !limit.holds(self.waiting.len() as u64, self.bytes)
            && let Some(queued) = self.waiting.pop_back()
        {
            self.bytes -= queued.packet.wire_size();
            signals.drop(queued.packet, DropCause::QueueFull, now);
        }
    }

    fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn drops_at_dequeue(&self) -> bool {
        true
    }
}

impl<A: Arithmetic> Control<A> {
    /// Returns the packet to send next, and drops or marks packets before it whose time has come (RFC 8289
    /// §5.5: `dequeue`). `take` takes the packet at the head out of the queue.
    #[inline]
    pub(super) fn dequeue<T: Carried>(
        &mut self,
        parameters: &CodelParameters,
        mtu: Bytes,
        mut take: impl FnMut() -> Option<Taken<T>>,
        now: Instant,
        signals: &mut Signals<T>,
    ) -> Option<Queued<T>> {
        let Head { mut queued, ok_to_drop } = self.take_head(parameters, mtu, &mut take, now);
        if !ok_to_drop {
            self.dropping = false;
        } else if self.dropping {
            queued = self.drop_if_due(queued, parameters, mtu, take, now, signals);
        } else {
            queued = self.begin_dropping(queued, parameters, mtu, take, now, signals);
        }
        // The threshold marks a packet because of its own wait, whatever the state.
        if let (Some(queued), Some(threshold)) = (&mut queued, parameters.ce_threshold)
            && now.since(queued.entered) > threshold
        {
            signals.mark(&mut queued.packet, now);
        }
        queued
    }

    /// Adds packets that were dropped for lack of room to `count`. Their senders slow down as after a drop of
    /// CoDel's, so these drops count towards the next interval too (Linux: fq_codel_drop).
    pub(super) const fn on_overflow(&mut self, dropped: u32) {
        self.count = self.count.saturating_add(dropped);
    }

    /// Takes out the packet at the head, and says whether it may be dropped (RFC 8289 §5.6: `dodequeue`).
    #[inline]
    fn take_head<T: Carried>(
        &mut self,
        parameters: &CodelParameters,
        mtu: Bytes,
        take: &mut impl FnMut() -> Option<Taken<T>>,
        now: Instant,
    ) -> Head<T> {
        let Some(Taken { queued, behind }) = take() else {
            self.first_above_time = None;
            return Head { queued: None, ok_to_drop: false };
        };
        let now = A::clock(now);
        let sojourn = now.since(A::clock(queued.entered));
        let is_good_queue = sojourn < A::in_clock_units(parameters.target) || behind <= mtu;
        let mut ok_to_drop = false;
        if is_good_queue {
            // The wait was short, or almost nothing waits behind. The next long wait starts an interval.
            self.first_above_time = None;
        } else if let Some(first_above_time) = self.first_above_time {
            // The waits are still long. The packet may be dropped if they were so for a whole interval.
            ok_to_drop = A::is_over(first_above_time, now);
        } else {
            // The first long wait. A burst may have caused it, so the control waits for an interval.
            self.first_above_time = Some(now.saturating_add(A::in_clock_units(parameters.interval)));
        }
        Head { queued: Some(queued), ok_to_drop }
    }

    /// In the dropping state: drops or marks the packets whose time has come, and returns the packet to send.
    /// The state ends when a packet has waited a short time.
    #[cold]
    fn drop_if_due<T: Carried>(
        &mut self,
        mut head: Option<Queued<T>>,
        parameters: &CodelParameters,
        mtu: Bytes,
        mut take: impl FnMut() -> Option<Taken<T>>,
        now: Instant,
        signals: &mut Signals<T>,
    ) -> Option<Queued<T>> {
        let interval = A::in_clock_units(parameters.interval);
        let clock = A::clock(now);
        while self.dropping && clock >= self.drop_next {
            // An empty queue has no packet to drop.
            let Some(queued) = &mut head else { break };
            self.count = self.count.saturating_add(1);
            self.arithmetic.on_count(self.count);
            let is_marked = parameters.ecn && signals.mark(&mut queued.packet, now);
            if is_marked {
                // A marked packet is sent, so no other packet is taken out now.
                self.drop_next = self.next_after(self.drop_next, interval);
                break;
            }
            signals.drop(queued.packet, DropCause::Congestion, now);
            let next = self.take_head(parameters, mtu, &mut take, now);
            head = next.queued;
            if next.ok_to_drop {
                self.drop_next = self.next_after(self.drop_next, interval);
            } else {
                self.dropping = false;
            }
        }
        head
    }

    /// Enters the dropping state: drops or marks `head` at once, schedules the next drop, and returns the
    /// packet to send.
    #[cold]
    fn begin_dropping<T: Carried>(
        &mut self,
        mut head: Option<Queued<T>>,
        parameters: &CodelParameters,
        mtu: Bytes,
        mut take: impl FnMut() -> Option<Taken<T>>,
        now: Instant,
        signals: &mut Signals<T>,
    ) -> Option<Queued<T>> {
        let interval = A::in_clock_units(parameters.interval);
        let clock = A::clock(now);
        if let Some(queued) = &mut head {
            let is_marked = parameters.ecn && signals.mark(&mut queued.packet, now);
            if !is_marked {
                signals.drop(queued.packet, DropCause::Congestion, now);
                // The packet behind is sent. One drop is enough to enter the state.
                head = self.take_head(parameters, mtu, &mut take, now).queued;
            }
        }
        self.dropping = true;
        // RFC 8289 §5.5: if the dropping state was left a short time ago, dropping starts at about the rate
        // at which it stopped, because that rate controlled the queue. `added` (RFC: delta) is what the last
        // stay in the state added to `count`.
        let added = self.count.saturating_sub(self.lastcount);
        let is_recent = clock < self.drop_next.saturating_add(interval.saturating_mul(RECENT));
        if added > 1 && is_recent {
            self.count = added;
            self.arithmetic.on_count(added);
        } else {
            self.count = 1;
            self.arithmetic.on_first();
        }
        self.drop_next = self.next_after(clock, interval);
        self.lastcount = self.count;
        head
    }

    /// The time of the next drop: `interval / sqrt(count)` after `from` (RFC 8289 §5.6: `control_law`). So
    /// the drops come faster, the longer the queue stays long.
    fn next_after(&self, from: Instant, interval: Duration) -> Instant {
        from.saturating_add(self.arithmetic.spacing(interval, self.count))
    }
}

impl Arithmetic for Exact {
    #[inline(always)]
    fn clock(at: Instant) -> Instant {
        at
    }

    #[inline(always)]
    fn in_clock_units(span: Duration) -> Duration {
        span
    }

    #[inline(always)]
    fn is_over(first_above_time: Instant, now: Instant) -> bool {
        now >= first_above_time
    }

    fn on_count(&mut self, _count: u32) {}

    fn on_first(&mut self) {}

    fn spacing(&self, interval: Duration, count: u32) -> Duration {
        let square = u128::from(interval.as_nanos()).pow(2) / u128::from(count.max(1));
        // The root of a 128-bit number has 64.
        Duration::from_nanos(square.isqrt() as u64)
    }
}

/// RFC 8289 §5.5: the state was left a short time ago if that is less than this many intervals.
const RECENT: u64 = 16;

#[cfg(test)]
mod tests;
