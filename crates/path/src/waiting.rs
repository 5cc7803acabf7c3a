//! The first of a link's three places: packets wait in a queue until the serialiser is free.
//!
//! What becomes of them is the discipline's decision (`queue`). How many waited for how long is accounted
//! here, for every discipline alike.

use talkpath_units::{Bytes, Duration, Instant};

use crate::carried::{Carried, Dropped};
use crate::changes::QueueChanges;
use crate::config::LinkConfig;
use crate::occupancy::{Levels, Occupancy, Window};
use crate::queue::{Discipline, LinkFacts, Queue, QueueLimit, Queued, Signals};
use crate::sojourn::{QueueDelay, Sojourns};
use crate::wifi::{AccessCategory, Medium};

/// A queue, what it dropped, and its length and delay over time.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    queue: Queue<T>,
    /// Packets in `queue`: the link reads it at each step, whatever the discipline.
    len: u32,
    /// What was dropped and has not come out of the link yet, and what was marked.
    signals: Signals<T>,
    occupancy: Occupancy,
    sojourns: Sojourns,
    /// If observed.
    changes: Option<Box<QueueChanges>>,
}

impl<T: Carried> Waiting<T> {
    /// Nothing waits; the whole run is measured.
    pub(crate) fn new(config: &LinkConfig, link: &LinkFacts) -> Self {
        let mut queue = match config.medium {
            Medium::Wire => Queue::new(&config.queue, link),
            Medium::Wifi(_) => Queue::of_categories(&config.queue, link),
        };
        if let Some(policer) = &config.policer {
            queue = queue.policed(policer, config.framing);
        }
        Self {
            queue,
            len: 0,
            signals: Signals::new(Window::default()),
            occupancy: Occupancy::default(),
            sojourns: Sojourns::default(),
            changes: None,
        }
    }

    /// Measures in `window` from now on.
    pub(crate) fn measure(&mut self, window: Window) {
        self.signals = Signals::new(window);
        self.occupancy = Occupancy::new(window);
        self.sojourns = Sojourns::new(window);
    }

    /// From now on keeps each change of length and delay.
    pub(crate) fn observe(&mut self) {
        self.changes = Some(Box::new(QueueChanges::new()));
    }

    /// The changes that nobody has taken yet, if observed.
    pub(crate) fn changes(&mut self) -> Option<&mut QueueChanges> {
        self.changes.as_deref_mut()
    }

    /// The same place with another discipline.
    #[cfg(test)]
    pub(crate) fn set_queue(&mut self, queue: Queue<T>) {
        self.queue = queue;
    }

    /// A packet comes while `in_service` bytes are being sent: it waits, or is dropped.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant) {
        self.occupancy.hold(self.len, now);
        self.queue.enqueue(packet, in_service, now, &mut self.signals);
        self.len = self.queue.len();
        if let Some(changes) = &mut self.changes {
            changes.note_length(self.len, now);
        }
    }

    /// A packet comes while nothing waits and the serialiser is idle; returns it, unless it is dropped.
    #[inline(always)]
    pub(crate) fn pass(&mut self, packet: T, now: Instant) -> Option<T> {
        let passed = self.queue.pass(packet, now, &mut self.signals);
        if passed.is_some() {
            self.sojourns.on_undelayed(now);
        }
        if let Some(changes) = &mut self.changes {
            changes.note_length(self.len, now);
            if passed.is_some() {
                changes.note_delay(Duration::ZERO, now);
            }
        }
        passed
    }

    /// The serialiser is free: the packet to send next, and when it came.
    #[inline(always)]
    pub(crate) fn dequeue(&mut self, now: Instant) -> Option<Queued<T>> {
        self.occupancy.hold(self.len, now);
        let queued = self.queue.dequeue(now, &mut self.signals);
        self.len = self.queue.len();
        if let Some(changes) = &mut self.changes {
            changes.note_length(self.len, now);
            if let Some(queued) = &queued {
                changes.note_delay(now.since(queued.entered), now);
            }
        }
        let queued = queued?;
        self.sojourns.on_service(queued.entered, now);
        Some(queued)
    }

    /// Changes how much may wait, while `in_service` bytes are being sent. What has no room is dropped.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit, in_service: Bytes, now: Instant) {
        self.occupancy.hold(self.len, now);
        self.queue.set_limit(limit, in_service, now, &mut self.signals);
        self.len = self.queue.len();
        if let Some(changes) = &mut self.changes {
            changes.note_length(self.len, now);
        }
    }

    /// Packets that wait.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Packets that wait in an access category.
    pub(crate) fn len_of(&self, category: AccessCategory) -> u32 {
        self.queue.len_of(category)
    }

    /// The serialiser takes packets of this access category from now on.
    pub(crate) fn serve(&mut self, category: AccessCategory) {
        self.queue.serve(category);
    }

    /// Whether the beginning of a service must be waited for, since packets may be dropped then.
    #[inline(always)]
    pub(crate) fn drops_at_dequeue(&self) -> bool {
        self.queue.drops_at_dequeue()
    }

    /// When the first packet was dropped that has not come out yet; [`Instant::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_drop(&self) -> Instant {
        self.signals.next_drop()
    }

    /// Takes out the first packet that was dropped, and when.
    pub(crate) fn pop_drop(&mut self) -> Option<(Instant, Dropped<T>)> {
        self.signals.pop_drop()
    }

    /// Packets inside: waiting, or dropped and not taken yet.
    pub(crate) fn held(&self) -> usize {
        self.len as usize + self.signals.drops()
    }

    /// How many waited for how long, up to `now`.
    pub(crate) fn levels(&mut self, now: Instant) -> Levels {
        self.occupancy.hold(self.len, now);
        self.occupancy.levels()
    }

    /// How long the packets waited that went into service.
    pub(crate) fn delay(&self) -> QueueDelay {
        self.sojourns.figures()
    }

    /// Packets that the queue marked.
    pub(crate) const fn marked(&self) -> u64 {
        self.signals.marked()
    }
}
