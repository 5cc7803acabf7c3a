//! A far host whose clock is wrong (`far_clock` of a scenario), and the measurement of its error.
//!
//! ```text
//!  with_probes: the scenario and a flow of probes ─► the arena runs it
//!      ─► apply_far_clock: far stamps read off the wrong clock, the clock estimated, stamps corrected
//! ```
//!
//! The simulator and the emulator know the true time at both ends. A scenario may set an error of the far
//! host's clock, to show the effect of this error on a measurement. The run then has an additional small echo
//! flow, like the exchanges of RFC 5905 §8. Each stamp that the far host would take is read off its wrong
//! clock. After that, the far clock is estimated from the exchanges alone ([`Offset`]). The probes take room
//! on the path, so a run with probes differs from a run without them.
//!
//! Left out: the pace of the far host. A timer that runs 100 ppm fast sends a packet 2 us early each 20 ms. A
//! clock that is set does not change a host's timers (clock_getres(2), CLOCK_MONOTONIC).

use talkpath_config::TransportConfig;
use talkpath_measure::metrics::legs;
use talkpath_measure::{FlowRecord, LegRecord, RunRecord};
use talkpath_model::{Direction, EchoWrite, FarClock, Flow, Scenario, WorkloadConfig};
use talkpath_units::{Bytes, Instant, Rate};

use crate::offset::{Offset, Probe, withdraw_trust_in_impossible_delays};

/// Returns `scenario` with an additional flow of probes, if the scenario has a wrong far clock. Returns
/// `None` if both hosts have the same clock.
pub fn with_probes(scenario: &Scenario) -> Option<Scenario> {
    scenario.far_clock?;
    let first = scenario.flows.first()?;
    let mut probed = scenario.clone();
    let (route, return_route) = match first.direction {
        Direction::Up => (first.route.clone(), first.return_route.clone()),
        Direction::Down => (first.return_route.clone(), first.route.clone()),
    };
    let workload = WorkloadConfig::Cbr { rate: PROBE_RATE, size: PROBE.into() };
    probed.flows.push(Flow {
        echo: Some(EchoWrite::PerMessage),
        route,
        return_route,
        ..Flow::new(PROBES, "udp", TransportConfig::udp_default(), workload)
    });
    Some(probed)
}

/// Replaces the far host's stamps in `record` by those of its wrong clock, and corrects them by the offset
/// that the probes measure. `record` is a run of `scenario` [`with_probes`]. Removes the probes from the
/// record. Does nothing if the scenario has no wrong clock.
pub fn apply_far_clock(record: &mut RunRecord, scenario: &Scenario) {
    let Some(clock) = scenario.far_clock else { return };
    let Some(index) = record.flows.iter().position(|flow| flow.info.name == PROBES) else { return };
    let probes = returned_probes(&record.flows.remove(index), &clock);
    record.series.retain(|series| series.entity != PROBES);
    let offset = Offset::throughout(&probes);
    record.clock = Offset::record_of(offset.as_ref());
    let misread_and_correct = |at: Instant| {
        let far_ns = far_reading(&clock, at);
        let our_ns = offset.map_or(far_ns, |offset| offset.to_ours(far_ns));
        Instant::from_nanos(u64::try_from(our_ns).unwrap_or(0))
    };
    for flow in &mut record.flows {
        let planned = scenario.flows.iter().find(|planned| planned.name == flow.info.name);
        let far_sends = planned.is_some_and(|planned| planned.direction == Direction::Down);
        flow.info.clock_trusted = record.clock.trusted;
        change_far_stamps(&mut flow.forward, far_sends, &misread_and_correct);
        if let Some(echo) = &mut flow.echo {
            change_far_stamps(echo, !far_sends, &misread_and_correct);
        }
    }
    withdraw_trust_in_impossible_delays(record);
    // The arena has counted late messages by the true time. They are counted again by the corrected stamps.
    let window = record.window_start..record.window_end;
    for flow in &mut record.flows {
        legs::recount(flow, &window);
    }
}

/// Returns the reading of the far clock at the true time `at`, ns since the run's beginning.
fn far_reading(clock: &FarClock, at: Instant) -> i64 {
    let ns = i128::from(at.as_nanos());
    let offset = i128::from(clock.offset.as_nanos());
    // The skew is rounded down.
    let skewed = (ns * i128::from(clock.skew_ppb)).div_euclid(1_000_000_000);
    let jumps = clock.jump_every.map_or(0, |every| at.as_nanos() / every.as_nanos().max(1));
    let jumped = if jumps.is_multiple_of(2) { 0 } else { i128::from(clock.jump.as_nanos()) };
    i64::try_from(ns + offset + skewed + jumped).unwrap_or(i64::MAX)
}

/// Returns the probes that came back, in order, with the stamps of each host's clock.
fn returned_probes(flow: &FlowRecord, clock: &FarClock) -> Vec<Probe> {
    let Some(echo) = &flow.echo else { return Vec::new() };
    let ours = |at: Instant| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
    let mut echoes = echo.messages.iter().peekable();
    let mut probes = Vec::new();
    for there in &flow.forward.messages {
        while echoes.next_if(|echo| echo.seq < there.seq).is_some() {}
        let Some(back) = echoes.next_if(|echo| echo.seq == there.seq) else { continue };
        if let (Some(sent), Some(arrived), Some(answered), Some(received)) =
            (there.sent, there.received, back.sent, back.received)
        {
            let (far_received, far_sent) = (far_reading(clock, arrived), far_reading(clock, answered));
            probes.push(Probe { sent: ours(sent), far_received, far_sent, received: ours(received) });
        }
    }
    probes
}

/// Applies `change` to the stamps of `leg` that the far host took. These are the sender's stamps if
/// `far_sends`, else the receiver's stamps.
fn change_far_stamps(leg: &mut LegRecord, far_sends: bool, change: &dyn Fn(Instant) -> Instant) {
    for message in &mut leg.messages {
        if far_sends {
            message.due = change(message.due);
            message.sent = message.sent.map(change);
            message.wire = message.wire.map(change);
        } else {
            message.received = message.received.map(change);
        }
    }
    if !far_sends {
        for (at, _) in &mut leg.reads {
            *at = change(*at);
        }
    }
}

/// The name of the flow of probes. No flow of a scenario can have this name, because it has a blank.
const PROBES: &str = "clock probes";
/// The size of a probe: NTP's packet (RFC 5905 §7.3).
const PROBE: Bytes = Bytes::new(48);
/// The rate of the probes: one probe every 500 ms, as often as the live arena asks for the far end's progress
/// (docs/models/live.md).
const PROBE_RATE: Rate = Rate::from_bps(768);

#[cfg(test)]
mod tests {
    use talkpath_measure::{Fate, FlowInfo, MessageRecord};
    use talkpath_scenario::{Options, Source, load};

    use talkpath_units::Duration;

    use super::*;

    #[test]
    fn what_is_late_in_a_direction_is_counted_by_the_corrected_stamps() {
        let text = "name = \"late\"\nduration = \"1 s\"\npath = \"home-adsl\"\nfar_clock = { offset = \"1.2 s\" }\n\
                    [flow.call]\ntransport = \"udp\"\nworkload = { kind = \"voice\" }\n";
        let plan = load(&Source::new("late.toml", text), &Options::default()).unwrap();
        let message = |seq: u64| MessageRecord {
            seq,
            size: Bytes::new(160),
            due: Instant::from_millis(20 * seq),
            sent: Some(Instant::from_millis(20 * seq)),
            wire: None,
            received: Some(Instant::from_millis(20 * seq + 30)),
            fate: Fate::Delivered,
            drop_cause: None,
            copies: 1,
            transmissions: 0,
        };
        let flow = |name| FlowRecord {
            forward: LegRecord { messages: (0..10).map(message).collect(), ..LegRecord::default() },
            ..FlowRecord::new(FlowInfo::on_a_clock(name))
        };
        let mut call = flow("call");
        call.info.terms.deadline = Some(Duration::from_millis(150));
        let window_end = Instant::from_secs(1);
        call.counters.legs = Some(legs::of(&call, &(Instant::ZERO..window_end)));
        let late = |flow: &FlowRecord| flow.counters.legs.as_ref().and_then(|legs| legs.forward.late);
        assert_eq!(late(&call), Some(0), "by the true time");
        // No probe came back: the stamps stay 1.2 s ahead.
        let probes = flow(PROBES);
        let mut record = RunRecord { window_end, flows: vec![call, probes], ..RunRecord::default() };
        apply_far_clock(&mut record, &plan.cells[0].scenario);
        assert_eq!(late(&record.flows[0]), Some(10));
    }

    #[test]
    fn a_wrong_clock_is_ahead_runs_fast_and_jumps_ahead_and_back() {
        let clock = FarClock {
            offset: Duration::from_millis(1200),
            skew_ppb: -50_000,
            jump: Duration::from_millis(300),
            jump_every: Some(Duration::from_secs(10)),
        };
        let ms = |seconds| far_reading(&clock, Instant::from_secs(seconds)) / 1_000_000;
        // 50 ppm slow: 0.5 ms in 10 s.
        assert_eq!((ms(0), ms(5), ms(10), ms(20)), (1200, 6199, 11_499, 21_199));
        assert_eq!(far_reading(&FarClock::default(), Instant::from_secs(7)), 7_000_000_000, "a right one");
    }
}
