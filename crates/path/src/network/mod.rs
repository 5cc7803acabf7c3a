//! All links and routes between the hosts, as one step machine.
//!
//! ```text
//!  handle_packet ─► first link ─► ... ─► last link ─► Arrived
//!                      └─ queue: Dropped    └─ wire: Lost
//! ```
//!
//! A packet above a link's MTU is cut into fragments before it enters the link (RFC 791). The fragments
//! travel on as packets of their own. The delay of a sending host is a link before the first link of the
//! route.
//!
//! **The agenda** orders all events of the run. It has these entries:
//!
//! | entry | its time |
//! | --- | --- |
//! | one for each link | the link's next event |
//! | one for each timer of the hosts | the time for which the owner has armed it |
//! | one for the changes of links (`change`) | the next change |
//! | one for each medium that links share (`wifi`) | the next transmission, or arrival of another station |
//!
//! Entries of the same time are ordered by their insertion. A link is inserted again after its last output is
//! handled with all consequences, and all its outputs of one instant come in a row.
//!
//! Each output carries its time. So it does not matter when the owner polls, as long as the owner hands in
//! packets in the order of time.

mod config;
mod media;
mod packet;
mod routes;
mod spacing;

use std::collections::VecDeque;

use talkpath_units::Instant;
use talkpath_units::wheel::{Key, Wheel};

use crate::carried::{Carried, DropCause, Dropped, Tag};
use crate::change::Schedule;
use crate::changes::QueueChanges;
use crate::dscp::Dscp;
use crate::link::{Link, LinkReport, PathOutput, Service};
pub use config::{FlowRoutes, NetworkConfig};
use media::Media;
pub use packet::{Direction, PathPacket};
use routes::{Hop, Routes};

/// Links, routes, and the agenda.
#[derive(Debug)]
pub struct Network<T> {
    /// The configured links, and after them the links of the hosts that delay packets. A link's key in the
    /// agenda is its index. The keys of timers follow.
    links: Vec<Link<PathPacket<T>>>,
    /// The number of configured links.
    configured: u32,
    routes: Routes,
    agenda: Wheel,
    /// The link that had the latest output. It is not in the agenda.
    awake: Option<u32>,
    /// The time of the latest event.
    now: Instant,
    /// The outputs that have happened and are not polled yet.
    ready: VecDeque<NetworkOutput<T>>,
    observes_hops: bool,
    schedule: Schedule,
    /// The key of the next change in the agenda. Those of the media follow.
    change_key: u32,
    /// The media that links share. `None` if there are none.
    media: Option<Box<Media>>,
}

/// An event, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOutput<T> {
    /// When the event happened.
    pub at: Instant,
    /// The event.
    pub event: NetworkEvent<T>,
}

/// What happened. Links are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent<T> {
    /// The packet is at the end of its route.
    Arrived(PathPacket<T>),
    /// A link's queue dropped the packet.
    Dropped {
        /// The packet.
        packet: PathPacket<T>,
        /// The link.
        link: u32,
        /// Why.
        cause: DropCause,
    },
    /// A link's wire lost the packet.
    Lost {
        /// The packet.
        packet: PathPacket<T>,
        /// The link.
        link: u32,
    },
    /// A link's wire repeats the packet. The owner hands in the copy by [`Network::handle_copy`] before it
    /// polls again. The packet itself goes on as if there were no copy.
    Repeated {
        /// The packet.
        packet: PathPacket<T>,
        /// The link.
        link: u32,
    },
    /// A packet, or a fragment of one, comes to a link. Reported only if hops are observed
    /// ([`Network::observe_hops`]).
    Entered {
        /// The packet.
        packet: PathPacket<T>,
        /// The link. The links of hosts that delay packets come after the configured links.
        link: u32,
    },
    /// The timer with this number went off. It is off until it is armed again.
    Timer(u32),
}

impl<T: Tag> Network<T> {
    /// The network of `config`, without packets.
    pub fn new(config: &NetworkConfig<'_>) -> Self {
        let (from, to) = config.window;
        let configured = config.links.iter();
        let mut links: Vec<_> =
            configured.map(|(name, link)| Link::new(link, config.seed, name).measuring(from, to)).collect();
        if config.observes_queues {
            links.iter_mut().for_each(Link::observe_queue);
        }
        let mut routes = Routes::default();
        for flow in &config.flows {
            let mut out = flow.out.clone();
            if !flow.send_jitter.is_zero() {
                out.insert(0, links.len() as u32);
                // No other link has this name, because the names of configured links have no slash.
                let name = format!("host/{}", flow.name);
                links.push(Link::new(&config::host_delay(flow.send_jitter), config.seed, &name));
            }
            routes.add(&out, &flow.back);
        }
        for change in &config.changes {
            if let Some((name, link)) = config.links.get(change.link as usize) {
                links[change.link as usize].expect_change(change, link, config.seed, name);
            }
        }
        let change_key = links.len() as u32 + config.timers;
        let schedule = Schedule::new(&config.changes, config.seed);
        let media = Media::new(config);
        let keys = change_key as usize + 1 + media.as_ref().map_or(0, |media| media.len());
        let mut agenda = Wheel::new(keys, spacing::event_spacing(config));
        agenda.arm(Key(change_key), schedule.next());
        for medium in 0..media.as_ref().map_or(0, |media| media.len()) as u32 {
            let next = media.as_ref().map_or(Instant::MAX, |media| media.next(medium));
            agenda.arm(Key(change_key + 1 + medium), next);
        }
        Self {
            agenda,
            configured: config.links.len() as u32,
            links,
            routes,
            awake: None,
            now: Instant::ZERO,
            ready: VecDeque::new(),
            observes_hops: false,
            schedule,
            change_key,
            media,
        }
    }

    /// Reports from now on each packet that comes to a link ([`NetworkEvent::Entered`]), and makes the links
    /// keep the service of each packet ([`Network::services`]).
    pub fn observe_hops(&mut self) {
        self.observes_hops = true;
        self.links.iter_mut().for_each(Link::observe_services);
    }

    /// Returns the services of a link that nobody has taken yet, in order of time. `None` if hops are not
    /// observed. The service of a packet is there when the packet leaves the link. The services that are due
    /// and that the link has not begun are there after [`Network::reports`].
    pub fn services(&mut self, link: u32) -> Option<&mut Vec<Service<PathPacket<T>>>> {
        self.links.get_mut(link as usize)?.services()
    }

    /// Takes a packet that leaves its host. The owner has polled all outputs before `now`.
    ///
    /// Not inlined: a transport sends at several places of its code, and each would have a copy of the code
    /// of a link (4 kB).
    #[inline(never)]
    pub fn handle_packet(&mut self, packet: PathPacket<T>, now: Instant) {
        debug_assert!(now >= self.now, "time went back");
        let first = self.routes.begin(packet.flow(), packet.direction());
        if let Hop::Link(link) = self.routes.hop(first) {
            self.forward(link, packet.at_place(first + 1), now);
        }
    }

    /// Takes the `copy` that a link's wire has made of the packet of [`NetworkEvent::Repeated`], perhaps with
    /// another tag. The copy goes on from the far end of the link, behind the packet.
    pub fn handle_copy(&mut self, copy: PathPacket<T>) {
        self.go_on(copy, self.now);
    }

    /// Arms the timer for `at`. A timer that is armed for an earlier time keeps that time. [`Instant::MAX`]
    /// means never.
    #[inline(always)]
    pub fn arm_timer(&mut self, timer: u32, at: Instant) {
        self.agenda.arm(self.timer_key(timer), at);
    }

    /// Returns when [`Network::poll_output`] is to be called next. `None` if nothing is left to happen.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let Some(output) = self.ready.front() {
            return Some(output.at);
        }
        let awake = self.awake.map_or(Instant::MAX, |link| self.links[link as usize].next());
        let next = self.agenda.next().unwrap_or(Instant::MAX).min(awake);
        (next < Instant::MAX).then_some(next)
    }

    /// Returns the next output by `now`, in order of time. The owner calls it until `None`.
    #[inline(always)]
    pub fn poll_output(&mut self, now: Instant) -> Option<NetworkOutput<T>> {
        loop {
            if let Some(output) = self.ready.pop_front() {
                return Some(output);
            }
            let (at, key) = self.next_event(now)?;
            self.now = at;
            let index = key.0;
            let Some(link) = self.links.get_mut(index as usize) else {
                if index >= self.change_key {
                    self.change_links_or_media(index - self.change_key, at);
                    continue;
                }
                let event = NetworkEvent::Timer(index - self.links.len() as u32);
                return Some(NetworkOutput { at, event });
            };
            self.awake = Some(index);
            let event = match link.poll_output(at) {
                Some(PathOutput::Arrived(packet)) => match self.routes.hop(packet.place()) {
                    Hop::Link(next) => {
                        self.forward(next, packet.at_place(packet.place() + 1), at);
                        continue;
                    }
                    Hop::Host => NetworkEvent::Arrived(packet),
                },
                Some(PathOutput::Repeated(packet)) => {
                    self.repeat(index, packet, at);
                    continue;
                }
                Some(PathOutput::Lost(packet)) => NetworkEvent::Lost { packet, link: index },
                Some(PathOutput::Dropped(Dropped { packet, cause })) => {
                    NetworkEvent::Dropped { packet, link: index, cause }
                }
                None => {
                    // A service has begun, and nothing has left the link.
                    let next = link.next();
                    self.agenda.arm(key, next);
                    self.awake = None;
                    continue;
                }
            };
            return Some(NetworkOutput { at, event });
        }
    }

    /// Returns the changes of a configured link's queue that nobody has taken yet. `None` if queues are not
    /// observed. The changes that are due, and that the link has not made, are there after
    /// [`Network::reports`].
    pub fn queue_changes(&mut self, link: u32) -> Option<&mut QueueChanges> {
        self.links.get_mut(link as usize)?.queue_changes()
    }

    /// Returns what the configured links did within the measuring window up to `now`, in their order.
    pub fn reports(&mut self, now: Instant) -> Vec<LinkReport> {
        self.links[..self.configured as usize].iter_mut().map(|link| link.report(now)).collect()
    }

    /// Returns the number of packets and fragments in each link. The links of hosts that delay packets are
    /// last.
    pub fn held(&self) -> impl Iterator<Item = usize> {
        self.links.iter().map(Link::held)
    }

    /// Gives a link another discipline, before the first packet.
    #[cfg(test)]
    fn set_queue(&mut self, link: usize, queue: crate::queue::Queue<PathPacket<T>>) {
        self.links[link].set_queue(queue);
    }

    /// Returns the next event by `until`, as its time and the key of its link or timer: the awake link if it
    /// has more outputs at the same instant, and otherwise the next entry of the agenda.
    #[inline(always)]
    fn next_event(&mut self, until: Instant) -> Option<(Instant, Key)> {
        let Some(awake) = self.awake else { return self.agenda.pop(until) };
        let next = self.links[awake as usize].next();
        if next <= self.now {
            return Some((self.now, Key(awake)));
        }
        self.awake = None;
        self.agenda.arm_and_pop(Key(awake), next, until)
    }

    /// Hands a packet to a link, in fragments if it is above the link's MTU. The packet's place on its route
    /// is already the one after that link.
    #[inline(always)]
    fn forward(&mut self, index: u32, packet: PathPacket<T>, now: Instant) {
        if self.observes_hops {
            self.observe_hop(index, packet, now);
        }
        let link = &mut self.links[index as usize];
        // The awake link is inserted into the agenda later, by `next_event`, unless it had no event left.
        let is_awake = self.awake == Some(index);
        let is_inserted_later = is_awake && link.next() < Instant::MAX;
        if packet.wire_size() <= link.mtu() {
            link.handle_packet(packet, now);
        } else {
            cut(link, packet, now);
        }
        if link.has_dropped() {
            self.take_drops(index, now);
        }
        if self.media.is_some() {
            self.tell_medium(index, packet.dscp(), now);
        }
        if !is_inserted_later {
            self.agenda.arm(Key(index), self.links[index as usize].next());
            if is_awake {
                self.awake = None;
            }
        }
    }

    /// Reports that a packet has arrived at the far end of `link` with a copy. The owner hands in the copy
    /// before the packet can leave the network.
    #[cold]
    #[inline(never)]
    fn repeat(&mut self, link: u32, packet: PathPacket<T>, at: Instant) {
        self.ready.push_back(NetworkOutput { at, event: NetworkEvent::Repeated { packet, link } });
        self.go_on(packet, at);
    }

    /// Sends a packet that has crossed a link to its next hop.
    #[cold]
    fn go_on(&mut self, packet: PathPacket<T>, at: Instant) {
        match self.routes.hop(packet.place()) {
            Hop::Link(next) => self.forward(next, packet.at_place(packet.place() + 1), at),
            Hop::Host => self.ready.push_back(NetworkOutput { at, event: NetworkEvent::Arrived(packet) }),
        }
    }

    /// A key behind the timers has its turn: 0 is that of the changes, and each medium has one.
    #[cold]
    #[inline(never)]
    fn change_links_or_media(&mut self, key: u32, at: Instant) {
        match key.checked_sub(1) {
            None => self.change_links(at),
            Some(medium) => self.advance_medium(medium, at),
        }
    }

    /// A packet has come to a link. If the link is over a medium, it may now contend.
    #[cold]
    #[inline(never)]
    fn tell_medium(&mut self, link: u32, dscp: Dscp, now: Instant) {
        let Some(media) = &mut self.media else { return };
        if let Some(medium) = media.on_packet(link, dscp, &self.links, now) {
            self.agenda.arm(Key(self.change_key + 1 + medium), media.next(medium));
        }
    }

    /// Does what is due on a medium.
    fn advance_medium(&mut self, medium: u32, at: Instant) {
        let Some(media) = &mut self.media else { return };
        media.advance(medium, &mut self.links, at);
        while let Some(link) = media.pop_touched(medium) {
            self.agenda.arm(Key(link), self.links[link as usize].next());
        }
        self.agenda.arm(Key(self.change_key + 1 + medium), media.next(medium));
    }

    /// Makes all changes that are due at `at`.
    fn change_links(&mut self, at: Instant) {
        loop {
            let links = &self.links;
            let due = self.schedule.pop(at, |link| links[link as usize].values());
            let Some((index, steps)) = due else { break };
            let link = &mut self.links[index as usize];
            steps.iter().for_each(|step| link.change(step, at));
            self.agenda.arm(Key(index), link.next());
            self.take_drops(index, at);
        }
        self.agenda.arm(Key(self.change_key), self.schedule.next());
    }

    /// Reports the packets that a link has dropped just now.
    #[cold]
    fn take_drops(&mut self, index: u32, now: Instant) {
        while let Some(Dropped { packet, cause }) = self.links[index as usize].poll_drop() {
            let event = NetworkEvent::Dropped { packet, link: index, cause };
            self.ready.push_back(NetworkOutput { at: now, event });
        }
    }

    /// Reports that a packet comes to a link. A packet above the link's MTU comes as its fragments.
    #[cold]
    fn observe_hop(&mut self, link: u32, packet: PathPacket<T>, at: Instant) {
        let mtu = self.links[link as usize].mtu();
        let mut enter = |packet| {
            self.ready.push_back(NetworkOutput { at, event: NetworkEvent::Entered { packet, link } });
        };
        if packet.wire_size() <= mtu {
            return enter(packet);
        }
        packet.part().fragments(mtu).for_each(|part| enter(packet.with_part(part)));
    }

    fn timer_key(&self, timer: u32) -> Key {
        Key(self.links.len() as u32 + timer)
    }
}

/// Hands a packet above the link's MTU to the link as its fragments.
#[cold]
fn cut<T: Tag>(link: &mut Link<PathPacket<T>>, packet: PathPacket<T>, now: Instant) {
    for part in packet.part().fragments(link.mtu()) {
        link.handle_packet(packet.with_part(part), now);
    }
}

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod tests;
