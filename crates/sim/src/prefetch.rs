//! Cache lines asked for before they are needed: what a run with many flows waits for is memory.
//!
//! An end's step looks at some thirty cache lines. With a thousand flows none of them is in a core's own caches any more when its
//! packet arrives, and one after the other would be waited for. But who comes next is known a while before: a link's packets come out
//! in order, and each one's ticket says which end it goes to; and the event queue knows its next entry. So while one packet is dealt
//! with, the lines of the next one's end are already on their way ([`crate::simulation::Simulation::look_ahead`]).
//!
//! These are hints: they change nothing but time, and may be wrong. On machines other than x86-64 they do nothing.

use core::ops::Range;

use crate::flow::SimFlow;

/// Whether so many flows are more than what a core's own caches hold. With fewer, asking only costs its instructions.
pub(crate) const fn pays_for(flows: usize) -> bool {
    flows * size_of::<SimFlow>() > OWN_CACHE
}

/// Asks for the cache lines of `whole` that hold these bytes of it, one in each [`LINE`] from the first on.
#[inline(always)]
pub(crate) fn ask_for<T>(whole: &T, bytes: Range<usize>) {
    let start = core::ptr::from_ref(whole).cast::<i8>();
    bytes.step_by(LINE).for_each(|offset| ask_for_line(start.wrapping_add(offset)));
}

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "a prefetch has no safe wrapper in stable Rust; it gains a fifth of a hop's time and more"
)]
#[inline(always)]
fn ask_for_line(address: *const i8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: PREFETCHT0 is part of every x86-64. It gives no value and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
const fn ask_for_line(_: *const i8) {}

/// Bytes of a cache line on most machines.
pub(crate) const LINE: usize = 64;
/// A second-level cache: 512 KiB on AMD's Zen 3, more or less on others. Chosen.
const OWN_CACHE: usize = 512 << 10;
