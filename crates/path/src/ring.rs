//! A first-in-first-out ring whose size is a power of two, so that a place is found by one mask. It holds fewer than 2^31:
//! more would need 50 GB.

/// What waits, in order.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ring<T> {
    /// Counts what was taken out and what was put in; the lower bits are places in `slots`.
    taken: u32,
    put: u32,
    /// None, or a power of two.
    slots: Box<[T]>,
    /// One less than the size.
    mask: u32,
}

/// The first size. Chosen: most links hold few packets at a time.
const FIRST_SIZE: usize = 8;

impl<T: Copy> Ring<T> {
    /// An empty ring, which takes no memory.
    pub(crate) fn new() -> Self {
        Self { slots: Box::default(), mask: u32::MAX, taken: 0, put: 0 }
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken) as usize
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.taken == self.put
    }

    /// The oldest.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        self.slots.get(self.place(self.taken))
    }

    /// The one that is taken out after `ahead` others.
    #[inline(always)]
    pub(crate) fn ahead(&self, ahead: u32) -> Option<&T> {
        if self.len() <= ahead as usize {
            return None;
        }
        self.slots.get(self.place(self.taken.wrapping_add(ahead)))
    }

    /// Where the next one is put, unless that needs more room: it holds an older one, or none.
    #[inline(always)]
    pub(crate) fn free_place(&self) -> Option<&T> {
        self.slots.get(self.place(self.put))
    }

    /// Takes the oldest out.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.pop_front_if(|_| true)
    }

    /// Takes the oldest out where it is `wanted`.
    #[inline(always)]
    pub(crate) fn pop_front_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let front = *self.front()?;
        if !wanted(&front) {
            return None;
        }
        self.taken = self.taken.wrapping_add(1);
        Some(front)
    }

    /// Takes the oldest out and puts it `into` a place; returns whether there was one.
    #[inline(always)]
    pub(crate) fn pop_front_into(&mut self, into: &mut T) -> bool {
        let Some(front) = self.front() else { return false };
        *into = *front;
        self.taken = self.taken.wrapping_add(1);
        true
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, item: T) {
        if self.len() == self.slots.len() {
            self.grow(item);
        }
        let place = self.place(self.put);
        self.slots[place] = item;
        self.put = self.put.wrapping_add(1);
    }

    /// The `back`-th last that was put in, 1 being the last. It may have been taken out since the last one was put in; what had been
    /// by then may be another item. `None` where nothing was ever put in.
    #[inline(always)]
    pub(crate) fn put_before(&self, back: u32) -> Option<&T> {
        self.slots.get(self.place(self.put.wrapping_sub(back)))
    }

    #[inline]
    const fn place(&self, count: u32) -> usize {
        (count & self.mask) as usize
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        let held = self.len();
        let mut slots = Vec::with_capacity((2 * held).max(FIRST_SIZE));
        while let Some(item) = self.pop_front() {
            slots.push(item);
        }
        slots.resize((2 * held).max(FIRST_SIZE), filler);
        let mask = slots.len() as u32 - 1;
        *self = Self { slots: slots.into_boxed_slice(), mask, taken: 0, put: held as u32 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_back_in_order_what_was_put_in_across_growth_and_wrap() {
        let mut ring = Ring::new();
        let (mut put, mut taken) = (0, 0);
        for round in 0..50 {
            for _ in 0..round % 7 + 3 {
                ring.push_back(put);
                put += 1;
            }
            for _ in 0..round % 5 + 1 {
                assert_eq!(ring.pop_front(), Some(taken));
                taken += 1;
            }
            assert_eq!((ring.front(), ring.len()), (Some(&taken), put - taken));
            let last = ring.len() as u32 - 1;
            assert_eq!(
                (ring.ahead(0), ring.ahead(last), ring.ahead(last + 1)),
                (Some(&taken), Some(&(put - 1)), None)
            );
            assert_eq!((ring.put_before(1), ring.put_before(2)), (Some(&(put - 1)), Some(&(put - 2))));
        }
        assert!(ring.slots.len() > FIRST_SIZE && ring.slots.len().is_power_of_two());
    }

    #[test]
    fn an_empty_ring_gives_nothing() {
        let mut ring = Ring::<u8>::new();
        assert_eq!((ring.front(), ring.put_before(1), ring.len()), (None, None, 0));
        ring.push_back(1);
        assert_eq!((ring.pop_front(), ring.pop_front()), (Some(1), None));
        assert_eq!(ring.put_before(1), Some(&1));
    }
}
