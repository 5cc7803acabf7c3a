//! The way of every packet, hop by hop: what an animation and nam's trace are made of.
//!
//! A run is a function of scenario and seed, so its hops need no record: the run is made again, and the
//! network says of each packet to which link it comes. A hop ends when the packet comes to the next link,
//! arrives, is dropped or is lost. A packet that is cut into fragments goes on as its fragments.

mod nam;

use core::sync::atomic::Ordering;
use std::collections::BTreeMap;

use talkpath_arena::links::cause_of_drop;
use talkpath_arena::{RunPlan, far_clock};
use talkpath_measure::{DropCause, Series};
use talkpath_path::{Direction, NetworkEvent, NetworkOutput, PathPacket, RateModel};
use talkpath_scenario::Scenario;
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
    /// When its service began: before this it waited. Exact on a link of fixed rate and delay; elsewhere the
    /// link's own delay and its rate, where it has one, are taken off [`Hop::left`]. [`Hop::left`] if a queue
    /// dropped the packet.
    pub began: Instant,
    /// When its last bit left the sending end of the link, as exact as [`Hop::began`].
    pub sent: Instant,
    /// When it came out at the far end, or was dropped or lost; the end of what is seen if it was under way.
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
    /// It was on the link at the end of the run.
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
/// run goes on until the hops that had begun by then have ended. If more than `most` hops begin, the window
/// ends just before the one that is too many; those that were under way at its beginning are all there.
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
    let end = run_observed(&mut simulation, plan, horizon, &mut |output| {
        recorder.see(output);
        output.at <= recorder.window.1 || recorder.pending > 0
    })?;
    let (window, is_cut) = (recorder.window, recorder.is_cut);
    let hops = recorder.finish(end);
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
    see: &mut dyn FnMut(&NetworkOutput<PacketHandle>) -> bool,
) -> Option<Instant> {
    simulation.start_flows();
    loop {
        if plan.interrupt.load(Ordering::Relaxed) {
            return None;
        }
        simulation.take_queue_changes();
        for _ in 0..OUTPUTS_BETWEEN_CHECKS {
            let Some(output) = simulation.network.poll_output(end) else { return Some(end) };
            if !see(&output) {
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

    fn see(&mut self, output: &NetworkOutput<PacketHandle>) {
        let at = output.at;
        match output.event {
            NetworkEvent::Entered { packet, link } => self.enter(&packet, link, at),
            NetworkEvent::Arrived(packet) => self.leave(&packet, at, HopFate::Passed),
            NetworkEvent::Dropped { packet, cause, .. } => {
                self.leave(&packet, at, HopFate::Gone(cause_of_drop(cause)));
            }
            NetworkEvent::Lost { packet, .. } => self.leave(&packet, at, HopFate::Gone(DropCause::Loss)),
            NetworkEvent::Timer(_) => {}
        }
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

    fn enter(&mut self, packet: &PathPacket<PacketHandle>, link: u32, at: Instant) {
        let slot = packet.tag.slot();
        let same = self.open.range((slot, 0)..=(slot, u32::MAX)).next().map(|(_, hop)| hop.packet);
        let number = same.unwrap_or_else(|| {
            self.packets += 1;
            self.packets - 1
        });
        self.leave(packet, at, HopFate::Passed);
        self.make_room(link, at);
        let part = packet.part();
        let hop = Hop {
            packet: number,
            flow: packet.flow(),
            direction: packet.direction(),
            link,
            size: part.wire_size(),
            entered: at,
            began: at,
            sent: at,
            left: at,
            fate: HopFate::UnderWay,
        };
        self.open.insert((slot, part.offset), hop);
        self.pending += usize::from(at <= self.window.1);
        self.shown += usize::from(self.is_configured(link));
    }

    /// A packet leaves the link on which it is, if it is on one: a fragment behind the first comes from none
    /// where its packet is cut.
    fn leave(&mut self, packet: &PathPacket<PacketHandle>, at: Instant, fate: HopFate) {
        let Some(hop) = self.open.remove(&(packet.tag.slot(), packet.part().offset)) else { return };
        self.pending -= usize::from(hop.entered <= self.window.1);
        self.shown -= usize::from(self.is_configured(hop.link));
        self.keep(Hop { left: at, fate, ..hop });
    }

    /// Hops of configured links that lie in the window.
    fn keep(&mut self, hop: Hop) {
        let is_seen = hop.left >= self.window.0 && hop.entered <= self.window.1;
        let Some(link) = self.scenario.links.get(hop.link as usize).filter(|_| is_seen) else { return };
        let (began, sent) = match hop.fate {
            HopFate::Passed | HopFate::Gone(DropCause::Loss) => {
                let config = &link.config;
                let sent = hop.left.saturating_sub(config.delay).max(hop.entered);
                let service = match &config.rate {
                    RateModel::Fixed(rate) => rate.time_to_send(config.framing.on_wire(hop.size)),
                    RateModel::Unlimited | RateModel::Trace(_) => Duration::ZERO,
                };
                (sent.saturating_sub(service).max(hop.entered), sent)
            }
            HopFate::Gone(_) | HopFate::UnderWay => (hop.left, hop.left),
        };
        self.hops.push(Hop { began, sent, ..hop });
    }

    fn finish(mut self, end: Instant) -> Vec<Hop> {
        for hop in core::mem::take(&mut self.open).into_values() {
            self.keep(Hop { left: end, ..hop });
        }
        self.hops.sort_by_key(|hop| (hop.entered, hop.packet, hop.left));
        self.hops
    }
}

#[cfg(test)]
mod tests;
