//! The path between the two hosts: every link of the scenario and every flow's route, stepped in virtual time.
//!
//! ```text
//!  handle_arrival ─► first link ─► ... ─► last link ─► Decision { Departs }
//!                        └─ full: Dropped    └─ eaten: Lost
//! ```
//!
//! It is the simulator's stepping with the endpoints cut away: given the same arrivals it decides the same, however
//! late it is asked, since every decision carries the virtual time at which it holds. So the emulator only has to keep
//! promised departures, and a replay of the arrivals makes every decision again.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_arena::links::{host_delay, link_record};
use talkpath_measure::series::SeriesTap;
use talkpath_measure::{LinkRecord, Series, SeriesKind};
use talkpath_path::{Carried, Dropped, FragmentRange, Link, PathOutput};
use talkpath_scenario::Scenario;
use talkpath_units::{Bytes, Instant, Seed};

/// Which way a packet travels in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the sender to the receiver.
    Out,
    /// From the receiver back to the sender.
    Back,
}

/// A packet that enters the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) flow: u32,
    pub(crate) direction: Direction,
    /// Which part of its datagram it is; the sending kernel may have cut it.
    pub(crate) part: FragmentRange,
}

/// What became of a packet, or of a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The arrival, counted from 0.
    pub(crate) number: u64,
    /// What the driver gave with the arrival.
    pub(crate) tag: u32,
    pub(crate) part: FragmentRange,
    /// When this holds: for a departure, when the packet is to be at the far host.
    pub(crate) at: Instant,
    pub(crate) outcome: Outcome,
}

/// See [`Decision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is at the end of its route.
    Departs,
    /// The queue of this link had no room.
    Dropped {
        /// Index in the scenario; host delays follow.
        link: u32,
    },
    /// The wire of this link ate it.
    Lost {
        /// Index in the scenario.
        link: u32,
    },
}

/// All links and routes.
pub(crate) struct Network {
    links: Vec<NamedLink>,
    routes: Vec<Routes>,
    agenda: Agenda,
    arrivals: u64,
    /// The latest step: `advance` never goes back behind it.
    now: Instant,
}

struct NamedLink {
    link: Link<Parcel>,
    /// `None` for a host's own delay, which is no link of the scenario.
    name: Option<String>,
    queue_series: Option<SeriesTap>,
}

struct Routes {
    out: Box<[u32]>,
    back: Box<[u32]>,
}

/// A packet on its way, or a piece of one.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    number: u64,
    tag: u32,
    flow: u32,
    direction: Direction,
    /// How many links of the route lie behind it.
    hop: u16,
    part: FragmentRange,
}

impl Carried for Parcel {
    fn wire_size(&self) -> Bytes {
        self.part.wire_size()
    }
}

impl Network {
    /// The path of `scenario`, its random streams drawn from `seed`, its links measuring from warm-up to duration.
    pub(crate) fn new(scenario: &Scenario, seed: Seed, series: bool) -> Self {
        let window = (Instant::ZERO + scenario.warm_up, Instant::ZERO + scenario.duration);
        let mut links: Vec<NamedLink> = scenario
            .links
            .iter()
            .map(|link| NamedLink {
                link: Link::new(&link.config, seed, &link.name).measuring(window.0, window.1),
                name: Some(link.name.clone()),
                queue_series: series.then(|| SeriesTap::new(&link.name, SeriesKind::Queue)),
            })
            .collect();
        let mut routes = Vec::with_capacity(scenario.flows.len());
        for flow in &scenario.flows {
            let mut out: Vec<u32> = flow.route.iter().map(|link| link.0).collect();
            if !flow.send_jitter.is_zero() {
                out.insert(0, links.len() as u32);
                let link = host_delay(flow, seed);
                links.push(NamedLink { link, name: None, queue_series: None });
            }
            routes.push(Routes {
                out: out.into_boxed_slice(),
                back: flow.return_route.iter().map(|link| link.0).collect(),
            });
        }
        Self { agenda: Agenda::new(links.len()), links, routes, arrivals: 0, now: Instant::ZERO }
    }

    /// A packet enters at `now`; what is decided before, and at once, goes to `decisions`. Returns its number.
    pub(crate) fn handle_arrival(
        &mut self,
        arrival: Arrival,
        tag: u32,
        now: Instant,
        decisions: &mut Vec<Decision>,
    ) -> u64 {
        self.advance(now, decisions);
        let number = self.arrivals;
        self.arrivals += 1;
        let Arrival { flow, direction, part } = arrival;
        self.carry_on(Parcel { number, tag, flow, direction, hop: 0, part }, self.now, decisions);
        number
    }

    /// How far the path has been stepped.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// When the next packet moves, if any does.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// Moves everything that moves by `now`; what is decided goes to `decisions`, in order of time.
    pub(crate) fn advance(&mut self, now: Instant, decisions: &mut Vec<Decision>) {
        while let Some((at, link)) = self.agenda.pop(now) {
            self.wake(link, at, decisions);
        }
        self.now = self.now.max(now);
    }

    /// What the links did and how their queues went, as of `end`.
    pub(crate) fn finish(self, end: Instant) -> (Vec<LinkRecord>, Vec<Series>) {
        let (mut records, mut series) = (Vec::new(), Vec::new());
        for mut link in self.links {
            let Some(name) = link.name else { continue };
            series.extend(link.queue_series.map(SeriesTap::finish).filter(|line| !line.points.is_empty()));
            records.push(link_record(name, &link.link.report(end)));
        }
        (records, series)
    }

    fn wake(&mut self, index: u32, now: Instant, decisions: &mut Vec<Decision>) {
        while let Some(output) = self.links[index as usize].link.poll_output(now) {
            match output {
                PathOutput::Arrived(parcel) => self.carry_on(parcel, now, decisions),
                PathOutput::Lost(parcel) => decisions.push(parcel.meets(Outcome::Lost { link: index }, now)),
                PathOutput::Dropped(parcel, _) => {
                    decisions.push(parcel.meets(Outcome::Dropped { link: index }, now));
                }
            }
        }
        self.settle(index, now);
    }

    /// A parcel is at the end of a link: the next link takes it, or the far host.
    fn carry_on(&mut self, mut parcel: Parcel, now: Instant, decisions: &mut Vec<Decision>) {
        let routes = &self.routes[parcel.flow as usize];
        let route = match parcel.direction {
            Direction::Out => &routes.out,
            Direction::Back => &routes.back,
        };
        match route.get(usize::from(parcel.hop)) {
            Some(&link) => {
                parcel.hop += 1;
                self.enter(link, parcel, now, decisions);
            }
            None => decisions.push(parcel.meets(Outcome::Departs, now)),
        }
    }

    /// A parcel comes to a link, in pieces where the link's MTU asks for it.
    fn enter(&mut self, index: u32, parcel: Parcel, now: Instant, decisions: &mut Vec<Decision>) {
        let link = &mut self.links[index as usize].link;
        let mtu = link.mtu();
        for part in parcel.part.fragments(mtu) {
            if let Err(Dropped { packet, .. }) = link.handle_packet(Parcel { part, ..parcel }, now) {
                decisions.push(packet.meets(Outcome::Dropped { link: index }, now));
            }
        }
        self.settle(index, now);
    }

    /// Notes the queue's length and when the link has something to do next.
    fn settle(&mut self, index: u32, now: Instant) {
        let NamedLink { link, queue_series, .. } = &mut self.links[index as usize];
        if let Some(series) = queue_series {
            series.push(link.waiting(now) as f64, now);
        }
        if let Some(at) = link.poll_timeout() {
            self.agenda.arm(index, at);
        }
    }
}

impl Parcel {
    fn meets(self, outcome: Outcome, at: Instant) -> Decision {
        Decision { number: self.number, tag: self.tag, part: self.part, at, outcome }
    }
}

/// Which link is to be woken when: ties in the order of arming.
struct Agenda {
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    /// By link: the time of its live entry, `Instant::MAX` where it has none.
    armed: Vec<Instant>,
    insertions: u64,
}

impl Agenda {
    fn new(links: usize) -> Self {
        Self { heap: BinaryHeap::new(), armed: vec![Instant::MAX; links], insertions: 0 }
    }

    /// Wakes `link` at `at` or before.
    fn arm(&mut self, link: u32, at: Instant) {
        let armed = &mut self.armed[link as usize];
        if at < *armed {
            *armed = at;
            self.heap.push(Reverse((at, self.insertions, link)));
            self.insertions += 1;
        }
    }

    /// No later than the next live entry; an entry that an earlier one replaced may make it early.
    fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next link that is due by `now`, and when; it is disarmed by this.
    fn pop(&mut self, now: Instant) -> Option<(Instant, u32)> {
        while let Some(&Reverse((at, _, link))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[link as usize];
            if *armed == at {
                *armed = Instant::MAX;
                return Some((at, link));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
