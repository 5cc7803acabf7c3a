//! Which links each flow's packets cross.

use crate::network::packet::Direction;

/// All routes, one after the other. A packet's place in them says where it goes next.
#[derive(Debug, Default)]
pub(super) struct Routes {
    hops: Vec<Hop>,
    /// By flow and direction: the place at which its route begins.
    begin: Vec<[u32; 2]>,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hop {
    Link(u32),
    /// It has arrived.
    Host,
}

impl Routes {
    /// Adds the routes of the next flow.
    pub(super) fn add(&mut self, out: &[u32], back: &[u32]) {
        let begin = [out, back].map(|route| {
            let begin = self.hops.len();
            self.hops.extend(route.iter().map(|&link| Hop::Link(link)));
            self.hops.push(Hop::Host);
            begin as u32
        });
        self.begin.push(begin);
    }

    /// The place at which a packet begins its way.
    #[inline(always)]
    pub(super) fn begin(&self, flow: u32, direction: Direction) -> u32 {
        self.begin[flow as usize][direction as usize]
    }

    /// Where a packet at this place goes next.
    #[inline(always)]
    pub(super) fn hop(&self, place: u32) -> Hop {
        self.hops[place as usize]
    }
}
