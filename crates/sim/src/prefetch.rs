//! Cache lines asked for before they are needed: what a run with many flows waits for is memory.
//!
//! An end's step looks at some thirty cache lines. With a thousand flows none of them is in a core's own caches any more when its
//! packet arrives, and one after the other would be waited for. But who comes next is known a while before: a link's packets come out
//! in order, and each one's ticket says which end it goes to; and the event queue knows its next entries. So while one packet is dealt
//! with, what will be looked at later is already on its way ([`Simulation::look_ahead`]), in stages, since where
//! the one lies is told by the other:
//!
//! ```text
//!   so many packets before    the ticket, in a bottleneck's long ring
//!   two packets before        the end, the packet
//!   one packet before         what the end's pointers lead to: segments in flight, the taps' rows; the link by which it sends;
//!                             of an end where something is amiss what repairs look at
//!   one event later           where that link puts a packet behind others
//!
//!   two events before         the link that is woken
//!   one event before          the packet behind its foremost one
//! ```
//!
//! These are hints: they change nothing but time, and may be wrong. On machines other than x86-64 they do nothing.

use core::ops::Range;

use talkpath_path::Link;

use crate::flow::SimFlow;
use crate::network::{Direction, Place, Ticket};
use crate::queue::Entity;
use crate::simulation::Simulation;

/// Whether so many flows are more than what a core's own caches hold. With fewer, asking only costs its instructions.
pub(crate) const fn pays_for(flows: usize) -> bool {
    flows * size_of::<SimFlow>() > OWN_CACHE
}

impl Simulation {
    /// Asks for the end that the packet after next of link `index` goes to, and for that packet; and for what the next packet's end,
    /// which came that way meanwhile, will look at elsewhere. By the time they arrive several others have been dealt with, since
    /// there are many flows.
    #[inline(never)]
    pub(crate) fn look_ahead(&mut self, index: u32) {
        let (network, flows) = (&self.network, &self.flows);
        let link = &network.links[index as usize];
        let Some(&next) = link.ahead(0) else { return };
        if let Place::End(index, answers) = next.next.place()
            && let Some(flow) = flows.get(index)
        {
            flow.ask_for_behind(answers);
            if answers == Direction::Out
                && let Place::Link(first) = flow.routes[Direction::Out as usize].place()
                && let Some(link) = network.links.get(first as usize)
            {
                ask_for(link, 0..size_of::<Link<Ticket>>());
                self.expected = Some(first);
            }
        }
        let Some(&later) = link.ahead(1) else { return };
        if let Place::End(index, answers) = later.next.place()
            && let Some(flow) = flows.get(index)
        {
            network.parcels.ask_for(later);
            network.queue.ask_for(network.endpoint(index, answers));
            flow.ask_for(answers);
            if let Some(ticket) = link.ahead(TICKETS_AHEAD) {
                ask_for_first(ticket);
            }
        }
    }

    /// Asks for the link that is woken after next, for the packet of the next one, and for where the link that was asked for some time ago
    /// puts its next packet.
    #[inline(always)]
    pub(crate) fn look_at_next(&mut self) {
        let [next, later] = self.network.queue.peek();
        let link = |entity: Option<Entity>| self.network.links.get(entity?.0 as usize);
        if let Some(later) = link(later) {
            ask_for(later, Link::<Ticket>::AT_EXIT);
        }
        if let Some([Some(first), _]) = link(next).map(Link::places) {
            ask_for_first(first);
        }
        if let Some(expected) = self.expected {
            self.expected = None;
            if let Some(link) = self.network.links.get(expected as usize)
                && let [_, Some(free)] = link.places()
            {
                ask_for_first(free);
            }
        }
    }
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
/// So many packets before its turn a link's ticket is asked for: most links' rings are in the cache anyway, but for those of a
/// bottleneck that thousands of flows share. Chosen.
const TICKETS_AHEAD: u32 = 8;
