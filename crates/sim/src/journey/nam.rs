//! A trace for the network animator nam 1.15: the format of the ns manual, "Nam Trace", as ns-2's own runs
//! write it.
//!
//! `n` is a node, `l` a link, `q` a queue that is drawn, `c` a colour. Of a packet on a link `+` says that it
//! comes to the queue, `-` that its service begins, `h` that it is on the wire, `r` that it has come out, `d`
//! that it is dropped there. nam has one line for both directions between two nodes: it takes the rate and
//! the delay of the first link in the scenario's order. A packet that the wire loses is dropped at its exit.

use core::sync::atomic::{AtomicBool, Ordering};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::{self, Write};

use talkpath_measure::DropCause;
use talkpath_model::{LinkNodes, Scenario, Topology};
use talkpath_path::{Direction, RateModel};
use talkpath_units::Instant;

use super::{Hop, HopFate, Journeys};

/// nam's names for the colours of flows, in turn.
const COLOURS: [&str; 8] = ["blue", "red", "darkgreen", "orange", "purple", "brown", "black", "cyan"];
/// The rate that nam is given for a link without one: nothing waits there.
const FAST: u64 = 10_000_000_000;

/// Writes what was `seen` of a run of `scenario`; times count from the run's beginning. Returns false if
/// `interrupt` became true before all was written.
///
/// # Errors
/// Those of `out`.
pub fn write_nam(
    scenario: &Scenario,
    seen: &Journeys,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let topology = Topology::new(scenario);
    writeln!(out, "V -t * -v 1.0a5 -a 0")?;
    writeln!(out, "A -t * -n 1 -p 0 -o 0x7fffffff -c 30 -a 1")?;
    writeln!(out, "A -t * -h 1 -m 1073741823 -s 0")?;
    for (index, _) in scenario.flows.iter().enumerate() {
        writeln!(out, "c -t * -i {index} -n {}", COLOURS[index % COLOURS.len()])?;
    }
    for (index, node) in topology.nodes.iter().enumerate() {
        let shape = if node.senders.is_empty() && node.receivers.is_empty() { "box" } else { "circle" };
        writeln!(out, "n -t * -a {index} -s {index} -S UP -v {shape} -c black -i black")?;
    }
    links(scenario, &topology, out)?;
    let mut coming = BinaryHeap::new();
    for (index, hop) in seen.hops.iter().enumerate() {
        if interrupt.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // Hops come in order of their entry: nothing that is still to come is earlier.
        write_before(Some(hop.entered), &mut coming, scenario, &topology, seen, out)?;
        add_events(hop, index, &mut coming);
    }
    write_before(None, &mut coming, scenario, &topology, seen, out)?;
    Ok(true)
}

/// When an event is, whether it comes after those that are first at that time, its hop, its place among those
/// of the hop, and its letter.
type Event = (Instant, u8, usize, u8, char);

/// Writes the events before `until`, or all. So only those of packets that are under way are held.
fn write_before(
    until: Option<Instant>,
    coming: &mut BinaryHeap<Reverse<Event>>,
    scenario: &Scenario,
    topology: &Topology,
    seen: &Journeys,
    out: &mut dyn Write,
) -> io::Result<()> {
    while let Some(next) = coming.peek_mut() {
        if until.is_some_and(|until| next.0.0 >= until) {
            break;
        }
        let Reverse((at, _, index, _, letter)) = PeekMut::pop(next);
        write_event(letter, at, &seen.hops[index], topology, scenario, out)?;
    }
    Ok(())
}

/// One line for each pair of nodes, and a queue each way.
fn links(scenario: &Scenario, topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let mut written: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (link, ends) in scenario.links.iter().zip(&topology.links) {
        let Some(LinkNodes { from, to }) = *ends else { continue };
        let pair = (from.min(to), from.max(to));
        if !written.insert(pair) {
            continue;
        }
        let rate = match &link.config.rate {
            RateModel::Fixed(rate) => rate.as_bps(),
            RateModel::Unlimited | RateModel::Trace(_) => FAST,
        };
        let delay = link.config.delay.as_secs_f64();
        let (a, b) = (&topology.nodes[from], &topology.nodes[to]);
        // Degrees against the clock from the right; all rows are as high as half the columns are wide.
        let angle = (a.y - b.y).atan2(2.0 * (b.x - a.x)).to_degrees();
        writeln!(out, "l -t * -s {from} -d {to} -S UP -r {rate} -D {delay} -c black -o {angle:.0}deg")?;
        writeln!(out, "q -t * -s {from} -d {to} -a 0.5")?;
        writeln!(out, "q -t * -s {to} -d {from} -a 0.5")?;
    }
    Ok(())
}

/// What a packet does on one link.
fn add_events(hop: &Hop, index: usize, coming: &mut BinaryHeap<Reverse<Event>>) {
    // What a queue dropped, or still held at the end, was not served.
    let is_served =
        hop.began < hop.left || matches!(hop.fate, HopFate::Passed | HopFate::Gone(DropCause::Loss));
    // What leaves a link some time after it was last heard of does so before others come: the packet itself
    // to its next link, or one that pushes it out of its queue. All else of an instant goes hop by hop, in
    // the order of entry.
    let leaves_first = hop.left > if is_served { hop.began } else { hop.entered };
    let mut add = |letter: char, at: Instant, rank: u8| {
        let later = u8::from(!(rank == 3 && leaves_first));
        coming.push(Reverse((at, later, index, rank, letter)));
    };
    add('+', hop.entered, 0);
    if is_served {
        add('-', hop.began, 1);
        add('h', hop.began, 2);
    }
    match hop.fate {
        HopFate::Passed => add('r', hop.left, 3),
        HopFate::Gone(_) => add('d', hop.left, 3),
        HopFate::UnderWay => {}
    }
}

fn write_event(
    letter: char,
    at: Instant,
    hop: &Hop,
    topology: &Topology,
    scenario: &Scenario,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(Some(LinkNodes { from, to })) = topology.links.get(hop.link as usize) else { return Ok(()) };
    let kind = scenario.flows.get(hop.flow as usize).map_or("packet", |flow| flow.transport_name.as_str());
    let way = if hop.direction == Direction::Out { "" } else { "-back" };
    let (at, size, packet, flow) = (at.as_secs_f64(), hop.size.get(), hop.packet, hop.flow);
    writeln!(
        out,
        "{letter} -t {at:.9} -s {from} -d {to} -p {kind}{way} -e {size} -c {flow} -i {packet} -a {flow}"
    )
}
