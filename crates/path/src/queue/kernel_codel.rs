//! CoDel in Linux's arithmetic, to be held against [`super::codel`]'s (include/net/codel_impl.h, written anew
//! after its description): a clock of 1,024 ns, and `1 / sqrt(count)` in 16 bits, which one Newton step
//! brings nearer with each count.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::carried::{Carried, DropCause};
use crate::queue::codel::CodelParameters;
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};

/// A queue under CoDel, without a limit.
#[derive(Debug)]
pub(crate) struct KernelCodel<T> {
    waiting: VecDeque<Queued<T>>,
    bytes: Bytes,
    mtu: Bytes,
    /// In ticks of the clock.
    target: i64,
    interval: i64,
    /// 0 is never, as in the kernel.
    first_above: i64,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// `1 / sqrt(count)` times 2^16.
    inverse_root: u16,
}

impl<T: Carried> KernelCodel<T> {
    pub(crate) fn new(parameters: &CodelParameters, link: &LinkFacts) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            mtu: link.mtu,
            target: (parameters.target.as_nanos() >> SHIFT) as i64,
            interval: (parameters.interval.as_nanos() >> SHIFT) as i64,
            first_above: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            inverse_root: 0,
        }
    }

    /// The packet at the head, and whether it may be dropped.
    fn take(&mut self, now: i64) -> (Option<Queued<T>>, bool) {
        let Some(head) = self.waiting.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        self.bytes -= head.packet.wire_size();
        if now - ticks(head.entered) < self.target || self.bytes <= self.mtu {
            self.first_above = 0;
            return (Some(head), false);
        }
        if self.first_above == 0 {
            self.first_above = now + self.interval;
            return (Some(head), false);
        }
        (Some(head), now > self.first_above)
    }

    /// x' = x (3 - count x^2) / 2, in fixed point.
    fn newton_step(&mut self) {
        let x = u64::from(self.inverse_root) << 16;
        let square = (x * x) >> 32;
        let factor = (3_u64 << 32).saturating_sub(u64::from(self.count) * square);
        self.inverse_root = ((((factor >> 2) * x) >> (32 - 2 + 1)) >> 16) as u16;
    }

    fn next_after(&self, from: i64) -> i64 {
        from + (((self.interval as u64) * (u64::from(self.inverse_root) << 16)) >> 32) as i64
    }
}

impl<T: Carried> Discipline<T> for KernelCodel<T> {
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, _signals: &mut Signals<T>) {
        self.bytes += packet.wire_size();
        self.waiting.push_back(Queued { packet, entered: now });
    }

    fn dequeue(&mut self, at: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        let now = ticks(at);
        let (mut head, mut may_drop) = self.take(now);
        if !self.dropping {
            if !may_drop {
                return head;
            }
            signals.drop(head?.packet, DropCause::Congestion, at);
            (head, _) = self.take(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            if delta > 1 && now - self.drop_next < 16 * self.interval {
                self.count = delta;
                self.newton_step();
            } else {
                self.count = 1;
                self.inverse_root = u16::MAX;
            }
            self.lastcount = self.count;
            self.drop_next = self.next_after(now);
            return head;
        }
        while may_drop && now >= self.drop_next {
            self.count += 1;
            self.newton_step();
            signals.drop(head?.packet, DropCause::Congestion, at);
            (head, may_drop) = self.take(now);
            if may_drop {
                self.drop_next = self.next_after(self.drop_next);
            }
        }
        self.dropping = may_drop;
        head
    }

    fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn drops_at_dequeue(&self) -> bool {
        true
    }
}

fn ticks(at: Instant) -> i64 {
    (at.as_nanos() >> SHIFT) as i64
}

/// A tick is 2^10 ns.
const SHIFT: u32 = 10;
