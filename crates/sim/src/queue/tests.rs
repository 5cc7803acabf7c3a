//! The event queue beside a sorted list.

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn woken(next: (Instant, Entity)) -> Option<(Instant, Entity)> {
    (next.1 != Entity::NONE).then_some(next)
}

/// Takes the foremost entry out.
fn pop(queue: &mut EventQueue) -> Option<(Instant, Entity)> {
    let (at, entity) = woken(queue.next())?;
    queue.arm_again(entity, Instant::MAX);
    Some((at, entity))
}

#[test]
fn entities_wake_in_time_order_and_ties_in_order_of_arming() {
    let mut queue = EventQueue::new(3, Duration::from_micros(8));
    queue.arm(Entity(2), at(5));
    queue.arm(Entity(1), at(5));
    queue.arm(Entity(0), at(1));
    let order: Vec<_> = core::iter::from_fn(|| pop(&mut queue)).map(|(_, entity)| entity.0).collect();
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn an_earlier_wake_supersedes_and_a_later_one_is_lazy() {
    let mut queue = EventQueue::new(1, Duration::from_micros(8));
    queue.arm(Entity(0), at(9));
    queue.arm(Entity(0), at(4));
    queue.arm(Entity(0), at(7));
    assert_eq!(pop(&mut queue), Some((at(4), Entity(0))));
    assert_eq!(pop(&mut queue), None);
}

#[test]
fn the_end_of_time_can_be_waited_for() {
    let mut queue = EventQueue::new(2, Duration::from_micros(8));
    let late = Instant::from_nanos(u64::MAX - 1);
    queue.arm(Entity(0), late);
    queue.arm(Entity(1), Instant::from_nanos(1));
    assert_eq!(pop(&mut queue), Some((Instant::from_nanos(1), Entity(1))));
    assert_eq!(pop(&mut queue), Some((late, Entity(0))));
}

/// In words of their own and in one, and with one or none left.
#[test]
fn who_is_woken_next_and_after_that_is_known_beforehand() {
    let mut queue = EventQueue::new(3, Duration::from_micros(8));
    assert_eq!(queue.peek(), [None; 2]);
    for (entity, micros) in [(1, 500), (2, 2), (0, 5)] {
        queue.schedule(Entity(entity), Instant::from_micros(micros));
    }
    assert_eq!(queue.peek(), [Some(Entity(2)), Some(Entity(0))]);
    queue.next();
    assert_eq!(queue.peek(), [Some(Entity(0)), Some(Entity(1))]);
    queue.next();
    assert_eq!(queue.peek(), [Some(Entity(1)), None]);
}

#[test]
fn what_comes_first_again_is_woken_again_but_after_what_ties_with_it() {
    let mut queue = EventQueue::new(2, Duration::from_micros(8));
    queue.schedule(Entity(0), at(1));
    queue.schedule(Entity(1), at(3));
    assert_eq!(queue.next(), (at(1), Entity(0)));
    assert_eq!(queue.settle(Entity(0), at(2)), (at(2), Entity(0)));
    assert_eq!(queue.settle(Entity(0), at(3)), (at(3), Entity(1)));
    assert_eq!(queue.settle(Entity(1), Instant::MAX), (at(3), Entity(0)));
    assert_eq!(woken(queue.settle(Entity(0), Instant::MAX)), None);
}

/// What the queue should do: a list of (time, insertion number, entity), sorted.
#[derive(Default)]
struct Model {
    list: Vec<(Instant, usize, Entity)>,
}

impl Model {
    fn waits_for(&self, entity: Entity) -> Option<Instant> {
        self.list.iter().find(|entry| entry.2 == entity).map(|entry| entry.0)
    }

    fn put(&mut self, at: Instant, number: usize, entity: Entity) {
        self.list.retain(|entry| entry.2 != entity);
        self.list.push((at, number, entity));
    }

    fn take(&mut self) -> Option<(Instant, Entity)> {
        self.list.sort();
        (!self.list.is_empty()).then(|| self.list.remove(0)).map(|(at, _, entity)| (at, entity))
    }
}

proptest! {
    /// The same wakes as a sorted list of (time, insertion number) would give, of entities that are armed (the even ones) and
    /// others that are scheduled.
    #[test]
    fn it_wakes_as_a_sorted_list_would(steps in proptest::collection::vec((0_u32..20, 0_u64..50, 0_u32..40, any::<bool>()), 1..300), apart in 0_u32..40) {
        let mut queue = EventQueue::new(20, Duration::from_nanos(1 << apart));
        let (mut model, mut now, mut awake) = (Model::default(), 0, None);
        for (number, (entity, later, scale, wake)) in steps.into_iter().enumerate() {
            // From ties to days.
            let next = Instant::from_nanos(now + (later << scale));
            let entity = Entity(entity);
            let waits_for = model.waits_for(entity);
            if wake {
                let next = if let Some(entity) = awake {
                    let again = if number % 2 == 0 { next } else { Instant::MAX };
                    if again < Instant::MAX {
                        model.put(again, number, entity);
                    }
                    if entity.0.is_multiple_of(2) {
                        queue.arm_again(entity, again);
                    }
                    queue.settle(entity, again)
                } else {
                    queue.next()
                };
                let woken = woken(next);
                prop_assert_eq!(woken, model.take());
                now = woken.map_or(now, |(at, _)| at.as_nanos());
                awake = woken.map(|(_, entity)| entity);
            } else if awake != Some(entity) && waits_for.is_none_or(|before| next < before) {
                model.put(next, number, entity);
                match waits_for {
                    _ if entity.0.is_multiple_of(2) => queue.arm(entity, next),
                    None => queue.schedule(entity, next),
                    Some(before) => queue.reschedule(entity, before, next),
                }
            } else if awake != Some(entity) && entity.0.is_multiple_of(2) {
                // Later than it is armed for: nothing.
                queue.arm(entity, next);
            }
        }
    }
}
