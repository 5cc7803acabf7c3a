//! The event queue: when each entity (a link, an endpoint) wants to be woken.
//!
//! Each entity has at most one entry, so the queue is as large as the number of entities that wait for something, not
//! of packets under way. It is a heap of four children a node with the place of each entity beside it: an entity that
//! is woken and arms itself again moves once, down from the top, instead of being taken out and put in.
//!
//! Arming an entity for a later time than it is armed for does nothing: it is woken at the earlier one, finds nothing
//! due and arms itself again. A retransmission timer that every ACK pushes back thus costs nothing per ACK. Ties are
//! broken by insertion number, so a run is the same on every machine.

use talkpath_units::Instant;

/// Index of a link or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entity(pub(crate) u32);

/// Who is woken when.
pub(crate) struct EventQueue {
    /// A heap: no entry is later than its children, which stand at four times its place and the three after.
    heap: Vec<Entry>,
    /// By entity: its place in `heap`, [`NOWHERE`] where it is not armed.
    places: Vec<u32>,
    insertions: u64,
}

/// Ordered by time, then by insertion number: one number, so that one comparison does. Nanoseconds in the upper 64 bits,
/// the insertion number in the next 40, the entity in the lowest 24.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

/// Bits of [`Entry`] that hold the entity: 16 million links and endpoints.
const ENTITY_BITS: u32 = 24;
/// The place of an entity that is not in the heap.
const NOWHERE: u32 = u32::MAX;
/// Children of a node. Four beat two by the shorter way down; measured, see docs/performance.md.
const ARITY: usize = 4;

impl Entry {
    const fn new(at: Instant, insertion: u64, entity: Entity) -> Self {
        let order = insertion << ENTITY_BITS | entity.0 as u64;
        Self((at.as_nanos() as u128) << 64 | order as u128)
    }

    const fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    const fn entity(self) -> Entity {
        Entity(self.0 as u32 & ((1 << ENTITY_BITS) - 1))
    }
}

impl EventQueue {
    /// A queue for `entities` entities, none of them armed.
    pub(crate) fn new(entities: usize) -> Self {
        assert!(entities < 1 << ENTITY_BITS, "a scenario has fewer than 2^24 links and endpoints");
        Self { heap: Vec::with_capacity(entities), places: vec![NOWHERE; entities], insertions: 0 }
    }

    /// The next entity to wake and the time. It stays where it is: [`EventQueue::settle`] must follow its waking.
    pub(crate) fn peek(&self) -> Option<(Instant, Entity)> {
        self.heap.first().map(|entry| (entry.at(), entry.entity()))
    }

    /// Wakes `entity` at `at` or before.
    #[inline]
    pub(crate) fn arm(&mut self, entity: Entity, at: Instant) {
        let place = self.places[entity.0 as usize];
        if place == NOWHERE {
            let entry = self.entry(entity, at);
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
        } else if at < self.heap[place as usize].at() {
            let entry = self.entry(entity, at);
            self.rise(place as usize, entry);
        }
    }

    /// The entity that `peek` named was woken: it wants to be woken again at `at`, or not.
    #[inline]
    pub(crate) fn settle(&mut self, entity: Entity, at: Option<Instant>) {
        let place = self.places[entity.0 as usize] as usize;
        match at {
            Some(at) => {
                let entry = self.entry(entity, at);
                self.sink(place, entry);
            }
            None => {
                self.places[entity.0 as usize] = NOWHERE;
                let Some(last) = self.heap.pop() else { return };
                if place < self.heap.len() {
                    self.sink(place, last);
                }
            }
        }
    }

    fn entry(&mut self, entity: Entity, at: Instant) -> Entry {
        self.insertions += 1;
        Entry::new(at, self.insertions, entity)
    }

    /// Puts `entry` at `place` or above.
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    /// Puts `entry` at `place` or below.
    fn sink(&mut self, mut place: usize, entry: Entry) {
        loop {
            let first = place * ARITY + 1;
            let Some((child, least)) = least_of(self.heap.get(first..).unwrap_or(&[])) else { break };
            if least >= entry {
                break;
            }
            self.put(place, least);
            place = first + child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.places[entry.entity().0 as usize] = place as u32;
        self.heap[place] = entry;
    }
}

/// The least of up to [`ARITY`] entries and where it stands.
#[inline]
fn least_of(children: &[Entry]) -> Option<(usize, Entry)> {
    // Written out for a full node, so that it compiles to conditional moves.
    if let Some(&[a, b, c, d]) = children.first_chunk::<ARITY>() {
        let left = if b < a { (1, b) } else { (0, a) };
        let right = if d < c { (3, d) } else { (2, c) };
        return Some(if right.1 < left.1 { right } else { left });
    }
    children.iter().copied().enumerate().min_by_key(|&(_, child)| child)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Takes the foremost entry out.
    fn pop(queue: &mut EventQueue) -> Option<(Instant, Entity)> {
        let (at, entity) = queue.peek()?;
        queue.settle(entity, None);
        Some((at, entity))
    }

    #[test]
    fn entities_wake_in_time_order_and_ties_in_order_of_arming() {
        let mut queue = EventQueue::new(3);
        queue.arm(Entity(2), at(5));
        queue.arm(Entity(1), at(5));
        queue.arm(Entity(0), at(1));
        let order: Vec<_> = core::iter::from_fn(|| pop(&mut queue)).map(|(_, entity)| entity.0).collect();
        assert_eq!(order, [0, 2, 1]);
    }

    #[test]
    fn an_earlier_wake_supersedes_and_a_later_one_is_lazy() {
        let mut queue = EventQueue::new(1);
        queue.arm(Entity(0), at(9));
        queue.arm(Entity(0), at(4));
        queue.arm(Entity(0), at(7));
        assert_eq!(pop(&mut queue), Some((at(4), Entity(0))));
        assert_eq!(pop(&mut queue), None);
    }

    proptest! {
        /// The same wakes as a sorted list of (time, insertion number) would give.
        #[test]
        fn it_wakes_as_a_sorted_list_would(steps in proptest::collection::vec((0_u32..20, 0_u64..50, any::<bool>()), 1..300)) {
            let mut queue = EventQueue::new(20);
            let mut list: Vec<(Instant, u64, Entity)> = Vec::new();
            let mut now = 0;
            for (number, (entity, later, wake)) in steps.into_iter().enumerate() {
                let entity = Entity(entity);
                if wake {
                    list.sort();
                    let expected = (!list.is_empty()).then(|| list.remove(0)).map(|(at, _, entity)| (at, entity));
                    prop_assert_eq!(queue.peek(), expected);
                    let Some((woken, entity)) = expected else { continue };
                    now = woken.as_nanos();
                    let again = later % 2 == 0;
                    let next = Instant::from_nanos(now + later);
                    queue.settle(entity, again.then_some(next));
                    if again {
                        list.push((next, number as u64, entity));
                    }
                } else {
                    let next = Instant::from_nanos(now + later);
                    queue.arm(entity, next);
                    let armed = list.iter().position(|&(_, _, other)| other == entity);
                    if armed.is_none_or(|index| next < list[index].0) {
                        if let Some(index) = armed {
                            list.remove(index);
                        }
                        list.push((next, number as u64, entity));
                    }
                }
            }
        }
    }
}
