//! All links and routes between the hosts, as one step machine.
//!
//! ```text
//!  handle_packet ─► first link ─► ... ─► last link ─► Arrived
//!                      └─ queue: Dropped    └─ wire: Lost
//! ```
//!
//! A packet above a link's MTU is cut before it enters (RFC 791); its fragments travel on as packets of their
//! own. A sending host's delay is a link before the route's first one.
//!
//! **The agenda** holds when each link has something to do next, one entry a link, and when each timer of the
//! hosts goes off: the owner arms those, so that there is one order of all that happens. The next change of a
//! link (`change`) is one more entry. Ties are broken by the order of insertion. A link is inserted again
//! after everything that its last output has brought about, and it gives all outputs of one instant in a row.
//!
//! Each output carries the time at which it holds, so it does not matter when the owner polls, as long as
//! it hands in what comes in the order of time.

mod config;
mod packet;
mod routes;
mod spacing;

use std::collections::VecDeque;

use talkpath_units::Instant;
use talkpath_units::wheel::{Key, Wheel};

use crate::carried::{Carried, DropCause, Dropped, Tag};
use crate::change::Schedule;
use crate::changes::QueueChanges;
use crate::link::{Link, LinkReport, PathOutput, Service};
pub use config::{FlowRoutes, NetworkConfig};
pub use packet::{Direction, PathPacket};
use routes::{Hop, Routes};

/// Links, routes, and the agenda.
#[derive(Debug)]
pub struct Network<T> {
    /// The configured links, then those of the hosts that hold packets. A link's key in the agenda is its
    /// index; timers follow.
    links: Vec<Link<PathPacket<T>>>,
    /// How many links are configured.
    configured: u32,
    routes: Routes,
    agenda: Wheel,
    /// The link that gave the latest output. It is not in the agenda.
    awake: Option<u32>,
    /// The time of the latest event.
    now: Instant,
    /// What has happened and was not polled yet.
    ready: VecDeque<NetworkOutput<T>>,
    observes_hops: bool,
    schedule: Schedule,
    /// The key of the next change in the agenda: the last key.
    change_key: u32,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOutput<T> {
    /// When.
    pub at: Instant,
    /// What.
    pub event: NetworkEvent<T>,
}

/// See [`NetworkOutput`]. Links are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent<T> {
    /// The packet is at the end of its route.
    Arrived(PathPacket<T>),
    /// A link's queue dropped it.
    Dropped {
        /// The packet.
        packet: PathPacket<T>,
        /// The link.
        link: u32,
        /// Why.
        cause: DropCause,
    },
    /// A link's wire ate it.
    Lost {
        /// The packet.
        packet: PathPacket<T>,
        /// The link.
        link: u32,
    },
    /// A link's wire repeats the packet. The owner answers with [`Network::handle_copy`] before it polls
    /// again. The packet itself goes on as if it were alone.
    Repeated {
        /// The packet.
        packet: PathPacket<T>,
        /// The link.
        link: u32,
    },
    /// A packet, or a fragment of one, comes to a link. Only if hops are observed
    /// ([`Network::observe_hops`]).
    Entered {
        /// The packet.
        packet: PathPacket<T>,
        /// The link; those of the hosts that hold packets come after the configured ones.
        link: u32,
    },
    /// A timer went off. It is off until it is armed again.
    Timer(u32),
}

impl<T: Tag> Network<T> {
    /// The network of `config`, empty.
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
                // The name cannot be another link's: those hold no slash.
                let name = format!("host/{}", flow.name);
                links.push(Link::new(&config::host_delay(flow.send_jitter), config.seed, &name));
            }
            routes.add(&out, &flow.back);
        }
        for change in &config.changes {
            if let Some((name, of_link)) = config.links.get(change.link as usize) {
                links[change.link as usize].expect_change(change, of_link, config.seed, name);
            }
        }
        let change_key = links.len() as u32 + config.timers;
        let schedule = Schedule::new(&config.changes, config.seed);
        let mut agenda = Wheel::new(change_key as usize + 1, spacing::event_spacing(config));
        agenda.arm(Key(change_key), schedule.next());
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
        }
    }

    /// From now on an output says of each packet to which link it comes, and the links keep when they serve
    /// it ([`Network::services`]).
    pub fn observe_hops(&mut self) {
        self.observes_hops = true;
        self.links.iter_mut().for_each(Link::observe_services);
    }

    /// The services of a link that nobody has taken yet, in order of time; `None` if hops are not observed. A
    /// packet's service is there when the packet leaves the link. What was due by `now` and begins late is
    /// there after [`Network::reports`].
    pub fn services(&mut self, link: u32) -> Option<&mut Vec<Service<PathPacket<T>>>> {
        self.links.get_mut(link as usize)?.services()
    }

    /// A packet leaves its host. Everything before `now` has been polled.
    ///
    /// Not inlined: a transport sends from several places, and each would hold a copy of a whole link (4 kB
    /// of code).
    #[inline(never)]
    pub fn handle_packet(&mut self, packet: PathPacket<T>, now: Instant) {
        debug_assert!(now >= self.now, "time went back");
        let first = self.routes.begin(packet.flow(), packet.direction());
        if let Hop::Link(link) = self.routes.hop(first) {
            self.forward(link, packet.at_place(first + 1), now);
        }
    }

    /// A link's wire has made `copy`: the packet of [`NetworkEvent::Repeated`], perhaps with another tag. The
    /// copy goes on from the far end of the link, behind the packet.
    pub fn handle_copy(&mut self, copy: PathPacket<T>) {
        self.go_on(copy, self.now);
    }

    /// Lets the timer go off at `at` or before: a timer that is armed for an earlier time stays so.
    /// [`Instant::MAX`] is never.
    #[inline(always)]
    pub fn arm_timer(&mut self, timer: u32, at: Instant) {
        self.agenda.arm(self.timer_key(timer), at);
    }

    /// When [`Network::poll_output`] next has something to do, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let Some(output) = self.ready.front() {
            return Some(output.at);
        }
        let awake = self.awake.map_or(Instant::MAX, |link| self.links[link as usize].next());
        let next = self.agenda.next().unwrap_or(Instant::MAX).min(awake);
        (next < Instant::MAX).then_some(next)
    }

    /// The next thing that happened by `now`, in order of time; to be called until `None`.
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
                if index == self.change_key {
                    self.change_links(at);
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

    /// What happened to the queue of a configured link and was not taken out yet; `None` if queues are not
    /// observed. What was due by `now` and begins late is there after [`Network::reports`].
    pub fn queue_changes(&mut self, link: u32) -> Option<&mut QueueChanges> {
        self.links.get_mut(link as usize)?.queue_changes()
    }

    /// What the configured links did within the measuring window up to `now`, in their order.
    pub fn reports(&mut self, now: Instant) -> Vec<LinkReport> {
        self.links[..self.configured as usize].iter_mut().map(|link| link.report(now)).collect()
    }

    /// Packets and fragments in each link, those of the hosts that hold packets last.
    pub fn held(&self) -> impl Iterator<Item = usize> {
        self.links.iter().map(Link::held)
    }

    /// Gives a link another discipline; before any packet.
    #[cfg(test)]
    fn set_queue(&mut self, link: usize, queue: crate::queue::Queue<PathPacket<T>>) {
        self.links[link].set_queue(queue);
    }

    /// The link or timer whose turn it is by `until`, and when: the awake link if it has more to give at the
    /// same instant, and otherwise the next of the agenda.
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

    /// A packet comes to a link, in fragments if it is above the link's MTU. Its place is the one after that
    /// link.
    #[inline(always)]
    fn forward(&mut self, index: u32, packet: PathPacket<T>, now: Instant) {
        if self.observes_hops {
            self.observe_hop(index, packet, now);
        }
        let link = &mut self.links[index as usize];
        // The awake link goes into the agenda later, unless it had nothing else to do.
        let is_awake = self.awake == Some(index);
        let comes_later = is_awake && link.next() < Instant::MAX;
        if packet.wire_size() <= link.mtu() {
            link.handle_packet(packet, now);
        } else {
            cut(link, packet, now);
        }
        if link.has_dropped() {
            self.take_drops(index, now);
        }
        if !comes_later {
            self.agenda.arm(Key(index), self.links[index as usize].next());
            if is_awake {
                self.awake = None;
            }
        }
    }

    /// A packet has arrived at the far end of `link`, and a copy with it. The owner takes the copy before the
    /// packet can leave the network.
    #[cold]
    #[inline(never)]
    fn repeat(&mut self, link: u32, packet: PathPacket<T>, at: Instant) {
        self.ready.push_back(NetworkOutput { at, event: NetworkEvent::Repeated { packet, link } });
        self.go_on(packet, at);
    }

    /// A packet that has crossed a link goes to its next hop.
    #[cold]
    fn go_on(&mut self, packet: PathPacket<T>, at: Instant) {
        match self.routes.hop(packet.place()) {
            Hop::Link(next) => self.forward(next, packet.at_place(packet.place() + 1), at),
            Hop::Host => self.ready.push_back(NetworkOutput { at, event: NetworkEvent::Arrived(packet) }),
        }
    }

    /// Makes all changes that are due at `at`.
    #[cold]
    #[inline(never)]
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

    /// What a link dropped when a packet came.
    #[cold]
    fn take_drops(&mut self, index: u32, now: Instant) {
        while let Some(Dropped { packet, cause }) = self.links[index as usize].poll_drop() {
            let event = NetworkEvent::Dropped { packet, link: index, cause };
            self.ready.push_back(NetworkOutput { at: now, event });
        }
    }

    /// A packet above the link's MTU comes in as its fragments.
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

/// A link takes the fragments of a packet that is above its MTU.
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
