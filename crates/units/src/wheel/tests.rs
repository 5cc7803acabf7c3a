//! Compares the wheel with a binary heap.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn pop_any(wheel: &mut Wheel) -> Option<(Instant, Key)> {
    wheel.pop(Instant::MAX)
}

#[test]
fn keys_wake_in_time_order_and_ties_in_order_of_arming() {
    let mut wheel = Wheel::new(3, Duration::from_micros(8));
    wheel.arm(Key(2), at(5));
    wheel.arm(Key(1), at(5));
    wheel.arm(Key(0), at(1));
    let order: Vec<_> = core::iter::from_fn(|| pop_any(&mut wheel)).map(|(_, key)| key.0).collect();
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn an_earlier_wake_supersedes_and_a_later_one_is_lazy() {
    let mut wheel = Wheel::new(1, Duration::from_micros(8));
    wheel.arm(Key(0), at(9));
    wheel.arm(Key(0), at(4));
    wheel.arm(Key(0), at(7));
    assert_eq!(pop_any(&mut wheel), Some((at(4), Key(0))));
    assert_eq!(pop_any(&mut wheel), None);
}

#[test]
fn the_end_of_time_can_be_waited_for() {
    let mut wheel = Wheel::new(2, Duration::from_micros(8));
    let late = Instant::from_nanos(u64::MAX - 1);
    wheel.arm(Key(0), late);
    wheel.arm(Key(1), Instant::from_nanos(1));
    assert_eq!(pop_any(&mut wheel), Some((Instant::from_nanos(1), Key(1))));
    assert_eq!(pop_any(&mut wheel), Some((late, Key(0))));
}

#[test]
fn what_comes_first_again_is_woken_again_but_after_what_ties_with_it() {
    let mut wheel = Wheel::new(2, Duration::from_micros(8));
    wheel.arm(Key(0), at(1));
    wheel.arm(Key(1), at(3));
    let end = Instant::MAX;
    assert_eq!(wheel.pop(end), Some((at(1), Key(0))));
    assert_eq!(wheel.arm_and_pop(Key(0), at(2), end), Some((at(2), Key(0))));
    assert_eq!(wheel.arm_and_pop(Key(0), at(3), end), Some((at(3), Key(1))));
    assert_eq!(wheel.arm_and_pop(Key(1), Instant::MAX, end), Some((at(3), Key(0))));
    assert_eq!(wheel.arm_and_pop(Key(0), Instant::MAX, end), None);
}

#[test]
fn what_is_woken_later_than_the_bound_stays_and_earlier_entries_may_still_come() {
    let mut wheel = Wheel::new(3, Duration::from_micros(8));
    wheel.arm(Key(0), Instant::from_secs(3600));
    wheel.arm(Key(1), Instant::from_secs(3601));
    assert_eq!((wheel.pop(at(1)), wheel.next()), (None, Some(Instant::from_secs(3600))));
    wheel.arm(Key(2), at(2));
    assert_eq!((wheel.pop(at(1)), wheel.next()), (None, Some(at(2))));
    assert_eq!(wheel.pop(at(2)), Some((at(2), Key(2))));
    assert_eq!(wheel.arm_and_pop(Key(2), at(9), at(8)), None);
    let order: Vec<_> = core::iter::from_fn(|| wheel.pop(Instant::MAX)).map(|(_, key)| key.0).collect();
    assert_eq!((order, wheel.next()), (vec![2, 0, 1], None));
}

/// A model of the wheel: a binary heap of (time, insertion number, key).
#[derive(Default)]
struct Reference {
    heap: BinaryHeap<Reverse<(Instant, usize, Key)>>,
    /// The valid entry of each key. Other entries of the key in the heap are stale.
    waits: BTreeMap<Key, (Instant, usize)>,
}

impl Reference {
    fn waits_for(&self, key: Key) -> Option<Instant> {
        self.waits.get(&key).map(|(at, _)| *at)
    }

    fn put(&mut self, at: Instant, number: usize, key: Key) {
        self.waits.insert(key, (at, number));
        self.heap.push(Reverse((at, number, key)));
    }

    /// Returns the first entry that is not stale.
    fn next(&mut self) -> Option<(Instant, Key)> {
        loop {
            let &Reverse((at, number, key)) = self.heap.peek()?;
            if self.waits.get(&key) == Some(&(at, number)) {
                return Some((at, key));
            }
            self.heap.pop();
        }
    }

    fn take(&mut self, until: Instant) -> Option<(Instant, Key)> {
        let (at, key) = self.next().filter(|(at, _)| *at <= until)?;
        self.heap.pop();
        self.waits.remove(&key);
        Some((at, key))
    }
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    /// In the same order and at the same times, up to the same bounds.
    #[test]
    fn it_wakes_as_a_binary_heap_would(steps in proptest::collection::vec((0_u32..20, 0_u64..50, 0_u32..40, any::<bool>()), 1..300), apart in 0_u32..40) {
        let mut wheel = Wheel::new(20, Duration::from_nanos(1 << apart));
        let (mut reference, mut now, mut awake) = (Reference::default(), 0, None);
        for (number, (key, later, scale, wake)) in steps.into_iter().enumerate() {
            // From ties to days.
            let next = Instant::from_nanos(now + (later << scale));
            let key = Key(key);
            let waits_for = reference.waits_for(key);
            if wake {
                let again = if number % 2 == 0 { next } else { Instant::MAX };
                let until = if number % 3 == 0 { next } else { Instant::MAX };
                if let Some(key) = awake && again < Instant::MAX {
                    reference.put(again, number, key);
                }
                let woken = match awake {
                    Some(key) => wheel.arm_and_pop(key, again, until),
                    None => wheel.pop(until),
                };
                prop_assert_eq!(woken, reference.take(until));
                prop_assert_eq!(wheel.next(), reference.next().map(|(at, _)| at));
                now = match woken {
                    Some((at, _)) => at.as_nanos(),
                    None if until < Instant::MAX => until.as_nanos(),
                    None => now,
                };
                awake = woken.map(|(_, key)| key);
            } else if awake != Some(key) {
                wheel.arm(key, next);
                // For a later time than it is armed for: nothing.
                if waits_for.is_none_or(|before| next < before) {
                    reference.put(next, number, key);
                }
            }
        }
    }
}
