//! Cache lines asked for before they are needed: what a run with many flows waits for is memory.
//!
//! An end's step looks at some thirty cache lines. With a thousand flows none of them is in a core's own caches any more when its
//! packet arrives, and one after the other would be waited for. But who comes next is known a while before: a link's packets come out
//! in order, and each one's ticket says which end it goes to; and the event queue knows its next entries. So while one packet is dealt
//! with, what will be looked at later is already on its way ([`crate::simulation::Simulation::look_ahead`]), in stages, since where
//! the one lies is told by the other:
//!
//! ```text
//!   so many packets before    the ticket, in a bottleneck's long ring
//!   two packets before        the end, the packet
//!   one packet before         what the end's pointers lead to: segments in flight, the taps' rows; the link by which it sends
//!   one event later           the place of that link's next packet
//!
//!   two events before         the link that is woken
//!   one event before          its packet's place
//! ```
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
    let start = core::ptr::from_ref(whole).cast::<u8>();
    bytes.step_by(LINE).for_each(|offset| ask_for_line(start.wrapping_add(offset)));
}

/// Asks for the cache line in which `place` begins.
#[inline(always)]
pub(crate) fn ask_for_first<T>(place: &T) {
    ask_for_line(core::ptr::from_ref(place).cast());
}

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "a prefetch has no safe wrapper in stable Rust; it gains a fifth of a hop's time and more"
)]
#[inline(always)]
pub(crate) fn ask_for_line(address: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: PREFETCHT0 is part of every x86-64. It gives no value and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) const fn ask_for_line(_: *const u8) {}

/// Bytes of a cache line on most machines.
pub(crate) const LINE: usize = 64;
/// A second-level cache: 512 KiB on AMD's Zen 3, more or less on others. Chosen.
const OWN_CACHE: usize = 512 << 10;
