//! The way of every packet, hop by hop: what an animation and nam's trace are made of.
//!
//! A run is a function of scenario and seed, so its hops need no record: the run is made again, and the
//! network says of each packet to which link it comes and when the link serves it. A hop ends when the packet
//! comes to the next link, arrives, is dropped or is lost. A packet that is cut into fragments goes on as its
//! fragments.

mod nam;

use core::sync::atomic::Ordering;
use std::collections::BTreeMap;

use talkpath_arena::links::cause_of_drop;
use talkpath_arena::{RunPlan, far_clock};
use talkpath_measure::{DropCause, Series};
use talkpath_model::Scenario;
use talkpath_path::{Direction, Network, NetworkEvent, NetworkOutput, PathPacket, Service};
use talkpath_units::{Bytes, Duration, Instant};

use crate::build;
use crate::packets::PacketHandle;
use crate::simulation::{OUTPUTS_BETWEEN_CHECKS, Simulation};
pub use nam::write_nam;

/// One packet, or a fragment of one, on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Which packet, counted from 0 over the run; all fragments of one have the same.
    pub packet: u64,
    /// The index of its flow.
    pub flow: u32,
    /// Which way it travels in its flow.
    pub direction: Direction,
    /// The index of the link.
    pub link: u32,
    /// Its size, IP header included.
    pub size: Bytes,
    /// When it came to the link.
    pub entered: Instant,
    /// When its service began: before this it waited. [`Hop::left`] if that was not seen: a queue dropped the
    /// packet, or it still waited.
    pub began: Instant,
    /// When its last bit left the sending end of the link; at the latest the end of what is seen.
    pub sent: Instant,
    /// When it came out at the far end, or was dropped or lost. If it was under way, the end of what is seen,
    /// or when it comes out by the link's delay, if it is on the wire and that is later.
    pub left: Instant,
    /// How it ended.
    pub fate: HopFate,
}

/// How a packet left a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopFate {
    /// It came out at the far end.
    Passed,
    /// It was dropped or lost on the link.
    Gone(DropCause),
    /// It was on the link when the run ended: it waited or was on the wire.
    UnderWay,
}

/// What is seen of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Journeys {
    /// In order of [`Hop::entered`].
    pub hops: Vec<Hop>,
    /// State over time from the run's beginning, every change.
    pub series: Vec<Series>,
    /// From and to; shorter than asked for if there were too many hops.
    pub window: (Instant, Instant),
    /// Whether hops after the window's end were left out because there were too many.
    pub is_cut: bool,
}

/// Runs `scenario` until the end of `window` and returns every hop that lies at least in part within it. The
/// run goes on until the hops that had begun by then have ended, for the scenario's drain at most: what is on
/// a link then is under way. If more than `most` hops begin, the window ends just before the one that is too
/// many; those that were under way at its beginning are all there.
/// `None` if the plan interrupts the run.
pub fn journeys(
    scenario: &Scenario,
    plan: &RunPlan<'_>,
    window: (Instant, Instant),
    most: usize,
) -> Option<Journeys> {
    let probed = far_clock::with_probes(scenario);
    let scenario = probed.as_ref().unwrap_or(scenario);
    let mut simulation = build::build(scenario, plan);
    simulation.network.observe_hops();
    let mut recorder = Recorder::new(scenario, window, most);
    let horizon = window.1.saturating_add(scenario.drain);
    let end = run_observed(&mut simulation, plan, horizon, &mut |output, network| {
        recorder.see(output, network);
        output.at <= recorder.window.1 || recorder.pending > 0
    })?;
    let (window, is_cut) = (recorder.window, recorder.is_cut);
    let hops = recorder.finish(end, &mut simulation.network);
    let mut series = simulation.finish(end, plan, scenario).series;
    for line in &mut series {
        line.points.retain(|point| point.0 <= window.1);
    }
    Some(Journeys { hops, series, window, is_cut })
}

/// Runs until `end`, which may lie after the run's duration. Calls `see` for each output of the network
/// before the output is handled. Ends earlier if `see` returns false. Returns the time at which the run
/// ended, or `None` if the plan interrupts it.
fn run_observed(
    simulation: &mut Simulation,
    plan: &RunPlan<'_>,
    end: Instant,
    see: &mut dyn FnMut(&NetworkOutput<PacketHandle>, &mut Network<PacketHandle>) -> bool,
) -> Option<Instant> {
    simulation.start_flows();
    loop {
        if plan.interrupt.load(Ordering::Relaxed) {
            return None;
        }
        simulation.take_queue_changes();
        for _ in 0..OUTPUTS_BETWEEN_CHECKS {
            let Some(output) = simulation.network.poll_output(end) else { return Some(end) };
            if !see(&output, &mut simulation.network) {
                return Some(output.at);
            }
            simulation.handle(output);
        }
    }
}

/// The packets on links, by what the network knows them by: slot and offset of the fragment.
struct Recorder<'a> {
    scenario: &'a Scenario,
    /// Its end moves to an earlier time when there are too many hops.
    window: (Instant, Instant),
    most: usize,
    /// The beginning and end of a service are [`Instant::MAX`] as long as they are not known.
    open: BTreeMap<(usize, u32), Hop>,
    /// How many of `open` began by the window's end.
    pending: usize,
    /// How many of `open` are on configured links.
    shown: usize,
    hops: Vec<Hop>,
    packets: u64,
    is_cut: bool,
}

impl<'a> Recorder<'a> {
    fn new(scenario: &'a Scenario, window: (Instant, Instant), most: usize) -> Self {
        let (open, hops) = (BTreeMap::new(), Vec::new());
        Self { scenario, window, most, open, pending: 0, shown: 0, hops, packets: 0, is_cut: false }
    }

    fn see(&mut self, output: &NetworkOutput<PacketHandle>, network: &mut Network<PacketHandle>) {
        let at = output.at;
        match output.event {
            NetworkEvent::Entered { packet, link } => {
                let number = self.number_of(&packet);
                self.leave(&packet, at, HopFate::Passed, network);
                self.enter(&packet, number, link, at);
            }
            NetworkEvent::Arrived(packet) => self.leave(&packet, at, HopFate::Passed, network),
            NetworkEvent::Dropped { packet, cause, .. } => {
                self.leave(&packet, at, HopFate::Gone(cause_of_drop(cause)), network);
            }
            NetworkEvent::Lost { packet, .. } => {
                self.leave(&packet, at, HopFate::Gone(DropCause::Loss), network);
            }
            // The copy begins its own way at the next link.
            NetworkEvent::Repeated { .. } | NetworkEvent::Timer(_) => {}
        }
    }

    /// Tells the packets on a link when they were served. What a packet that comes to the same link again
    /// does there is left for then.
    fn take_services(&mut self, link: u32, network: &mut Network<PacketHandle>) {
        let Some(services) = network.services(link) else { return };
        services.retain(|Service { packet, began, ends }| match self.open.get_mut(&key_of(packet)) {
            Some(hop) if hop.link == link && hop.began == Instant::MAX => {
                (hop.began, hop.sent) = (*began, *ends);
                false
            }
            _ => true,
        });
    }

    /// Ends the window before `at` if a hop that begins then is one too many.
    fn make_room(&mut self, link: u32, at: Instant) {
        let is_full = self.hops.len() + self.shown >= self.most;
        if !self.is_configured(link) || !is_full || at <= self.window.0 || at > self.window.1 {
            return;
        }
        let to = at.saturating_sub(Duration::from_nanos(1));
        (self.window.1, self.is_cut) = (to, true);
        self.pending = self.open.values().filter(|hop| hop.entered <= to).count();
        self.hops.retain(|hop| hop.entered <= to);
    }

    /// Hosts that hold packets have links of their own behind those of the scenario.
    fn is_configured(&self, link: u32) -> bool {
        (link as usize) < self.scenario.links.len()
    }

    /// The number of a packet, a new one if no part of it is on a link.
    fn number_of(&mut self, packet: &PathPacket<PacketHandle>) -> u64 {
        let slot = packet.tag.slot();
        let same = self.open.range((slot, 0)..=(slot, u32::MAX)).next().map(|(_, hop)| hop.packet);
        same.unwrap_or_else(|| {
            self.packets += 1;
            self.packets - 1
        })
    }

    fn enter(&mut self, packet: &PathPacket<PacketHandle>, number: u64, link: u32, at: Instant) {
        self.make_room(link, at);
        let hop = Hop {
            packet: number,
            flow: packet.flow(),
            direction: packet.direction(),
            link,
            size: packet.part().wire_size(),
            entered: at,
            began: Instant::MAX,
            sent: Instant::MAX,
            left: Instant::MAX,
            fate: HopFate::UnderWay,
        };
        self.open.insert(key_of(packet), hop);
        self.pending += usize::from(at <= self.window.1);
        self.shown += usize::from(self.is_configured(link));
    }

    /// A packet leaves the link on which it is, if it is on one: a fragment behind the first comes from none
    /// where its packet is cut.
    fn leave(
        &mut self,
        packet: &PathPacket<PacketHandle>,
        at: Instant,
        fate: HopFate,
        network: &mut Network<PacketHandle>,
    ) {
        let key = key_of(packet);
        let Some(link) = self.open.get(&key).map(|hop| hop.link) else { return };
        self.take_services(link, network);
        let Some(hop) = self.open.remove(&key) else { return };
        self.pending -= usize::from(hop.entered <= self.window.1);
        self.shown -= usize::from(self.is_configured(hop.link));
        self.keep(Hop { left: at, fate, ..hop });
    }

    /// Hops of configured links that lie in the window.
    fn keep(&mut self, mut hop: Hop) {
        let is_seen = hop.left >= self.window.0 && hop.entered <= self.window.1;
        if !is_seen || !self.is_configured(hop.link) {
            return;
        }
        if hop.began == Instant::MAX {
            (hop.began, hop.sent) = (hop.left, hop.left);
        }
        self.hops.push(hop);
    }

    fn finish(mut self, end: Instant, network: &mut Network<PacketHandle>) -> Vec<Hop> {
        // Services that were due by the end begin, and are there to be taken.
        network.reports(end);
        for link in 0..self.scenario.links.len() as u32 {
            self.take_services(link, network);
        }
        for hop in core::mem::take(&mut self.open).into_values() {
            let delay =
                self.scenario.links.get(hop.link as usize).map_or(Duration::ZERO, |it| it.config.delay);
            let sent = hop.sent.min(end);
            let left = if hop.began == Instant::MAX { end } else { end.max(sent.saturating_add(delay)) };
            self.keep(Hop { sent, left, ..hop });
        }
        self.hops.sort_by_key(|hop| (hop.entered, hop.packet, hop.left));
        self.hops
    }
}

/// What the network knows a packet, or a fragment of one, by.
fn key_of(packet: &PathPacket<PacketHandle>) -> (usize, u32) {
    (packet.tag.slot(), packet.part().offset)
}

#[cfg(test)]
mod tests;
