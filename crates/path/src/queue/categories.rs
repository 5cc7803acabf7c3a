//! A queue for each access category of a link over Wi-Fi (802.11, EDCA). A packet's DSCP
//! decides its category, and the medium decides which category is served (`wifi`).

use talkpath_units::{Bytes, Instant};

use crate::carried::Carried;
use crate::queue::discipline::{Discipline, Queued, Signals};
use crate::queue::limit::QueueLimit;
use crate::wifi::AccessCategory;

/// The queues of all categories.
#[derive(Debug)]
pub(crate) struct CategoryQueues<Q> {
    queues: [Q; AccessCategory::ALL.len()],
    served: AccessCategory,
}

impl<Q> CategoryQueues<Q> {
    /// Queues that `make` makes.
    pub(crate) fn new(mut make: impl FnMut() -> Q) -> Self {
        Self { queues: AccessCategory::ALL.map(|_| make()), served: AccessCategory::BestEffort }
    }
}

impl<T: Carried, Q: Discipline<T>> Discipline<T> for CategoryQueues<Q> {
    fn enqueue(&mut self, packet: T, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        let category = AccessCategory::of(packet.dscp());
        self.queues[category.index()].enqueue(packet, in_service, now, signals);
    }

    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        self.queues[self.served.index()].dequeue(now, signals)
    }

    fn set_limit(&mut self, limit: QueueLimit, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.queues.iter_mut().for_each(|queue| queue.set_limit(limit, in_service, now, signals));
    }

    fn len(&self) -> u32 {
        self.queues.iter().map(Discipline::len).sum()
    }

    fn len_of(&self, category: AccessCategory) -> u32 {
        self.queues[category.index()].len()
    }

    fn serve(&mut self, category: AccessCategory) {
        self.served = category;
    }

    fn drops_at_dequeue(&self) -> bool {
        self.queues.iter().any(Discipline::drops_at_dequeue)
    }
}
