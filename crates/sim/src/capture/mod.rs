//! A simulated run as a packet capture: what one end of every flow would have seen on its wire.
//!
//! A run is a function of scenario and seed, so a capture needs no record: the run is made again with a tap
//! at one end. Seen are packets as they leave the end's transport and as they arrive there, whole: a datagram
//! that the path cuts into fragments appears once, when it is complete. The time a sending host takes
//! (`send_jitter`) comes after the tap.
//!
//! QUIC's packets are encrypted, also where the scenario leaves that out: sizes and times are the same. Their
//! secrets come before the first packet, so the run is made once more for them.

mod frame;
mod opus_head;

use std::io::{self, Write};

use talkpath_arena::RunPlan;
use talkpath_config::TransportConfig;
use talkpath_measure::pcapng::{self, CapturedPacket};
use talkpath_model::{Flow, Scenario};
use talkpath_path::Direction;

use crate::build;
pub use crate::tap::CaptureEnd;
use crate::tap::{Sighting, Tap};
use frame::{Envelope, RtpFrame, encode_frame};

/// Where a capture is made, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// At which end.
    pub end: CaptureEnd,
    /// Whether a protocol of ours appears in UDP, as it travels (DCCP: RFC 6773), or by itself (DCCP: IP
    /// protocol 33).
    pub encapsulated: bool,
}

/// Runs `scenario` and writes what `options` asks for to `out`, as pcapng with times in nanoseconds since the
/// run's start. An interrupt of the `plan` ends the capture there.
///
/// # Errors
/// Those of `out`.
pub fn capture(
    scenario: &Scenario,
    plan: &RunPlan<'_>,
    options: CaptureOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = match options.end {
        CaptureEnd::Near => "near end",
        CaptureEnd::Far => "far end",
    };
    let probed = talkpath_arena::far_clock::with_probes(scenario);
    let scenario = probed.as_ref().unwrap_or(scenario);
    let encrypted = encrypted(scenario);
    let scenario = encrypted.as_ref().unwrap_or(scenario);
    pcapng::write_header(out, &[name])?;
    if encrypted.is_some() {
        let mut simulation = build::build(scenario, plan);
        simulation.run(plan, &mut |_| {});
        pcapng::write_tls_secrets(out, &simulation.connections.key_log())?;
    }
    let mut simulation = build::build(scenario, plan);
    simulation.tap = Some(Box::new(Tap::new(options.end)));
    let mut written = Ok(());
    simulation.run(plan, &mut |sighting| {
        if written.is_ok() {
            let flow = &scenario.flows[sighting.flow as usize];
            let bytes = encode_frame(&sighting.packet, &envelope(sighting, flow, options));
            let original_size = bytes.len() as u32;
            let packet = CapturedPacket { interface: 0, at: sighting.at, bytes: &bytes, original_size };
            written = pcapng::write_packet(out, packet);
        }
    });
    written
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

fn envelope(sighting: &Sighting, flow: &Flow, options: CaptureOptions) -> Envelope {
    Envelope {
        flow: sighting.flow as u16 + 1,
        is_outward: sighting.direction == Direction::Out,
        identification: sighting.identification as u16,
        ecn: sighting.ecn,
        dscp: flow.dscp.unwrap_or_default(),
        rtp: flow.workload.voice().and_then(RtpFrame::of),
        is_encapsulated: options.encapsulated,
    }
}
