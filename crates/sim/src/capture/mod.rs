//! A simulated run as a packet capture: what one end of every flow, or one host or router, would have seen on
//! its wire.
//!
//! A run is a function of scenario and seed, so a capture needs no record: the run is made again with a tap.
//! An end sees packets as they leave its transport and as they arrive there, whole: a datagram
//! that the path cuts into fragments appears once, when it is complete. The time a sending host takes
//! (`send_jitter`) comes after the tap. A router sees packets as they come to it, before its queues.
//!
//! QUIC's packets are encrypted, also where the scenario leaves that out: sizes and times are the same. Their
//! secrets come before the first packet, so the run is made once more for them.

mod frame;
mod opus_head;
mod rtp;
mod spoken;

use std::io::{self, Write};

use talkpath_arena::RunPlan;
use talkpath_config::TransportConfig;
use talkpath_measure::pcapng::{self, CapturedPacket};
use talkpath_model::{Direction as FlowDirection, Flow, LinkIndex, Scenario};
use talkpath_path::Direction;
use talkpath_units::Instant;

use crate::build;
pub use crate::tap::CaptureEnd;
use crate::tap::{Sighting, Tap, TapPlace, TappedNode};
use frame::{Envelope, encode_frame};
use rtp::RtpFrame;
use spoken::SpokenPackets;

/// Where a capture is made, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// The place of the capture.
    pub at: CapturePlace,
    /// Whether a protocol of ours appears in UDP, as it travels (DCCP: RFC 6773), or by itself (DCCP: IP
    /// protocol 33).
    pub encapsulated: bool,
}

/// The place of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePlace {
    /// One end of every flow.
    End(CaptureEnd),
    /// The host or router at which this link begins. It sees both directions.
    Link(LinkIndex),
}

/// Runs `scenario` and writes what `options` asks for to `out`, as pcapng with times in nanoseconds since the
/// run's start. An interrupt of the `plan` ends the capture there.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidInput`] if no flow uses the link of the place.
pub fn capture(
    scenario: &Scenario,
    plan: &RunPlan<'_>,
    options: CaptureOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (name, place) = match options.at {
        CapturePlace::End(CaptureEnd::Near) => ("near end".to_owned(), TapPlace::End(CaptureEnd::Near)),
        CapturePlace::End(CaptureEnd::Far) => ("far end".to_owned(), TapPlace::End(CaptureEnd::Far)),
        CapturePlace::Link(link) => {
            let name = scenario.links.get(link.0 as usize).map_or("", |link| link.name.as_str());
            let unused =
                || io::Error::new(io::ErrorKind::InvalidInput, format!("no flow uses the link {name}"));
            let node = TappedNode::at_beginning_of(link, scenario).ok_or_else(unused)?;
            (format!("where {name} begins"), TapPlace::Node(node))
        }
    };
    let probed = talkpath_arena::far_clock::with_probes(scenario);
    let scenario = probed.as_ref().unwrap_or(scenario);
    let encrypted = encrypted(scenario);
    let scenario = encrypted.as_ref().unwrap_or(scenario);
    pcapng::write_header(out, &[&name])?;
    if encrypted.is_some() {
        let mut simulation = build::build(scenario, plan);
        simulation.run(plan, &mut |_| {});
        pcapng::write_tls_secrets(out, &simulation.connections.key_log())?;
    }
    let mut simulation = build::build(scenario, plan);
    if let TapPlace::Node(node) = &place
        && node.is_router()
    {
        simulation.network.observe_hops();
    }
    simulation.tap = Some(Box::new(Tap::new(place)));
    let end = Instant::ZERO.saturating_add(scenario.duration);
    let spoken: Vec<Option<SpokenPackets>> = scenario
        .flows
        .iter()
        .map(|flow| SpokenPackets::of(flow.workload.voice()?, flow.workload_seed(plan.seed), end))
        .collect();
    let hosts: Vec<Hosts> =
        (0..scenario.flows.len()).map(|index| Hosts::of(&scenario.flows, index)).collect();
    let mut written = Ok(());
    simulation.run(plan, &mut |sighting| {
        if written.is_ok() {
            let flow = &scenario.flows[sighting.flow as usize];
            let spoken = spoken[sighting.flow as usize].as_ref();
            let Hosts { pair, is_swapped } = hosts[sighting.flow as usize];
            let is_outward = (sighting.direction == Direction::Out) != is_swapped;
            let envelope = Envelope { flow: pair, is_outward, spoken, ..envelope(sighting, flow, options) };
            let bytes = encode_frame(&sighting.packet, &envelope);
            let original_size = bytes.len() as u32;
            let packet = CapturedPacket { interface: 0, at: sighting.at, bytes: &bytes, original_size };
            written = pcapng::write_packet(out, packet);
        }
    });
    written
}

/// The hosts of a flow, as its addresses show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hosts {
    /// The number of the pair of hosts. The first pair is 1.
    pair: u16,
    /// Whether the sender is the second host of the pair.
    is_swapped: bool,
}

impl Hosts {
    /// The two directions of a call over UDP are between the same two hosts, so that programs which read the
    /// capture see one call. RTP has the same port at both ends (RFC 4961). Any other flow has hosts of its
    /// own, of which the first one opens the connection.
    fn of(flows: &[Flow], index: usize) -> Self {
        let flow = &flows[index];
        let is_rtp = |flow: &Flow| {
            matches!(flow.transport, TransportConfig::Udp(_)) && flow.workload.voice().is_some()
        };
        let pair = |index: usize| index as u16 + 1;
        if flow.direction == FlowDirection::Up || !is_rtp(flow) {
            return Self { pair: pair(index), is_swapped: false };
        }
        let is_other = |other: &Flow| {
            let names = other.name.strip_suffix("-up").zip(flow.name.strip_suffix("-down"));
            other.group == flow.group && is_rtp(other) && names.is_some_and(|(up, down)| up == down)
        };
        let other = flows.iter().position(is_other);
        Self { pair: pair(other.unwrap_or(index)), is_swapped: true }
    }
}

/// `scenario` with all of QUIC's packets encrypted; `None` if it has no QUIC.
fn encrypted(scenario: &Scenario) -> Option<Scenario> {
    scenario.flows.iter().find_map(|flow| flow.transport.as_quic())?;
    let mut encrypted = scenario.clone();
    for flow in &mut encrypted.flows {
        if let TransportConfig::Quic(config) = &mut flow.transport {
            config.encryption = true;
        }
    }
    Some(encrypted)
}

fn envelope(sighting: &Sighting, flow: &Flow, options: CaptureOptions) -> Envelope<'static> {
    Envelope {
        flow: sighting.flow as u16 + 1,
        is_outward: sighting.direction == Direction::Out,
        identification: sighting.identification as u16,
        ecn: sighting.ecn,
        dscp: flow.dscp.unwrap_or_default(),
        rtp: flow.workload.voice().and_then(RtpFrame::of),
        spoken: None,
        is_encapsulated: options.encapsulated,
    }
}
