//! The report about how the machine disturbed a run, and the judgement whether the run is valid.

use core::fmt;

use talkpath_flow::lateness_ns;
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_kernel::{stolen, turn_round};
use talkpath_measure::warning;
use talkpath_measure::{LateFlow, LatenessRecord, MachineRecord, TurnRoundRecord};
use talkpath_units::{Duration, Histogram, counted};

use crate::stops::{FlowLateness, Stops};

/// How the machine disturbed a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmuReport {
    /// The time from a packet's decided departure to its write. `None` if no packet departed.
    pub emulator: Option<LatenessFigures>,
    /// The time from the kernel's stamp of a packet to its arrival in the path. A packet arrives after its
    /// stamp if the path had already been stepped past the stamp.
    pub backlog: Option<LatenessFigures>,
    /// The time from the due time of a message on a clock to its hand-over to the socket. `None` if no flow
    /// has a clock.
    pub endpoints: Option<LatenessFigures>,
    /// The number of packets that entered the path.
    pub packets: u64,
    /// The number of packets for which a device had no room, in either direction.
    pub device_drops: u64,
    /// The number of packets for which the emulator had no memory.
    pub overruns: u64,
    /// The number of packets of TCP or UDP that belong to no flow. They did not cross the path.
    pub strays: u64,
    /// The datagrams that sockets dropped, without the sockets whose buffers the scenario sets.
    pub(crate) udp: UdpDrops,
    /// The share of one processor that the emulator's thread took, 0 to 1.
    pub cpu_share: f64,
    /// The reason why the emulator's thread had no real-time priority above the endpoints' threads. `None` if
    /// it had.
    pub not_real_time: Option<String>,
    /// The share of all processors' time that a hypervisor gave to others, 0 to 1. `None` if the kernel does
    /// not report it.
    pub stolen_share: Option<f64>,
    /// The times in which the emulator's thread did not run although it had work.
    pub(crate) stops: Stops,
    /// How the lateness disturbed each flow.
    pub(crate) flows: Vec<FlowLateness>,
    /// How long the echoing ends held messages. Receivers that the scenario makes slow are left out.
    pub turn_rounds: Vec<TurnRoundRecord>,
}

/// The percentiles of a lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatenessFigures {
    /// The median: half were later.
    pub p50: Duration,
    /// The 99th percentile: one in a hundred was later.
    pub p99: Duration,
    /// The largest lateness.
    pub max: Duration,
}

impl LatenessFigures {
    /// Computes the percentiles of the measured lateness. `None` if nothing was measured.
    pub(super) fn of(late: &Histogram) -> Option<Self> {
        let [p50, p99, max] = lateness_ns(late)?.map(Duration::from_nanos);
        Some(Self { p50, p99, max })
    }
}

impl EmuReport {
    /// Returns the report in the form of the run's record.
    pub(super) fn record(&self) -> MachineRecord {
        let late = |figures: Option<LatenessFigures>| {
            figures.map(|LatenessFigures { p50, p99, max }| LatenessRecord { p50, p99, max })
        };
        MachineRecord {
            emulator_late: late(self.emulator),
            emulator_backlog: late(self.backlog),
            senders_late: late(self.endpoints),
            far_senders_late: None,
            packets: Some(self.packets),
            device_drops: Some(self.device_drops + self.overruns),
            socket_drops: self.udp.min_without_room(),
            checksum_errors: self.udp.checksum_errors,
            far_checksum_errors: None,
            emulator_cpu_share: Some(self.cpu_share),
            real_time: Some(self.not_real_time.is_none()),
            stolen_share: self.stolen_share,
            stops: Some(self.stops.count),
            longest_stop: Some(self.stops.longest),
            turn_rounds: self.turn_rounds.clone(),
            late_flows: Vec::new(),
        }
    }

    /// Judges which figures of the run are valid. The disturbances are added to `warnings`.
    pub(super) fn judge(&self, warnings: &mut Vec<String>) -> Judgement {
        let mut judgement = Judgement { is_sound: true, late_flows: Vec::new() };
        if let Some(why) = &self.not_real_time {
            warnings.push(format!(
                "emu: NO REAL-TIME PRIORITY above the endpoints for the emulator ({why}); delays are as good as the machine is \
                 idle; run as root, or allow it with `ulimit -r 2` (RLIMIT_RTPRIO, limits.conf: rtprio 2)"
            ));
        }
        let late = [
            ("the emulator wrote packets", self.emulator, EMULATOR_WARN, EMULATOR_INVALID),
            ("packets counted as arriving", self.backlog, EMULATOR_WARN, EMULATOR_INVALID),
            ("the senders handed messages over", self.endpoints, ENDPOINT_WARN, ENDPOINT_INVALID),
        ];
        for (who, figures, warn, invalid) in late {
            let Some(figures) = figures.filter(|figures| figures.p99 > warn) else { continue };
            let is_past = figures.p99 > invalid;
            judgement.is_sound &= !is_past;
            let limit = if is_past { format!(", past the limit of {invalid} at p99") } else { String::new() };
            warnings.push(warning::invalid_unless(!is_past, format!("emu: {who} late: {figures}{limit}")));
        }
        warnings.extend(self.stops.warning().map(|line| format!("emu: {line}")));
        for flow in &self.flows {
            let Some(line) = flow.judge(&self.stops) else { continue };
            warnings.push(warning::invalid(format!("emu: {line}")));
            if flow.is_clocked() {
                judgement.late_flows.push(flow.packets.clone());
            } else {
                judgement.is_sound = false;
            }
        }
        for turns in &self.turn_rounds {
            let Some((line, is_within)) = turn_round::judge(turns, "the far application") else { continue };
            warnings.push(warning::invalid_unless(is_within, format!("emu: {line}")));
            if !is_within {
                judgement.hold_echoes(turns, &self.flows);
            }
        }
        warnings.extend(stolen::warning(self.stolen_share).map(|what| format!("emu: {what}")));
        let lost = [(self.device_drops, "room in a device"), (self.overruns, "memory in the emulator")];
        for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
            let packets = counted(count, "packet");
            warnings.push(warning::invalid(format!(
                "emu: {packets} found no {what}, which is no loss of the path"
            )));
            judgement.is_sound = false;
        }
        if self.strays > 0 {
            warnings.push(format!(
                "emu: {} of TCP or UDP, but of no flow, did not cross the path",
                counted(self.strays, "packet")
            ));
        }
        warnings.extend(self.udp.warnings("emu"));
        judgement.is_sound &= self.udp.min_without_room().unwrap_or(0) == 0;
        judgement
    }
}

/// The judgement on which figures of a run are valid.
pub(super) struct Judgement {
    /// True if all figures are valid, except some of those of `late_flows`.
    pub(super) is_sound: bool,
    /// The flows with so many late packets that some of their figures are not valid.
    pub(super) late_flows: Vec<LateFlow>,
}

impl Judgement {
    /// Takes note that the far application held echoes of a flow past its limits. These echoes count as late
    /// packets of the flow. If the flow has no clock, no figure of the run is valid. The same holds if one
    /// echo was held past [`turn_round::INVALID_ONE`], because that time alone decides whether the message is
    /// in time.
    fn hold_echoes(&mut self, turns: &TurnRoundRecord, flows: &[FlowLateness]) {
        let flow = flows.iter().find(|flow| flow.packets.name == turns.flow && flow.is_clocked());
        let Some(flow) = flow.filter(|_| turns.max <= turn_round::INVALID_ONE) else {
            self.is_sound = false;
            return;
        };
        let late = flow.packets.late.saturating_add(turns.too_long);
        self.late_flows.retain(|flow| flow.name != turns.flow);
        self.late_flows.push(LateFlow { late, ..flow.packets.clone() });
    }
}

impl fmt::Display for LatenessFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, max] = [self.p50, self.p99, self.max].map(Duration::as_millis_f64);
        write!(f, "p50 {p50:.3} ms, p99 {p99:.3} ms, at most {max:.3} ms")
    }
}

impl fmt::Display for EmuReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = |figures: Option<LatenessFigures>| {
            figures.map_or_else(|| "none".to_owned(), |figures| figures.to_string())
        };
        write!(
            f,
            "emulator late {}, backlog {}, {}; senders late {}; {}, {} dropped by devices, {}, {} by sockets; \
             {:.0} % of a processor{}",
            figures(self.emulator),
            figures(self.backlog),
            counted(self.stops.count, "stop"),
            figures(self.endpoints),
            counted(self.packets, "packet"),
            self.device_drops,
            counted(self.overruns, "overrun"),
            self.udp.min_without_room().unwrap_or(0),
            self.cpu_share * 100.0,
            if self.not_real_time.is_some() { ", not real-time" } else { "" }
        )
    }
}

/// The p99 of the emulator's lateness above which there is a warning. An idle machine with real-time priority
/// stays below it (docs/models/emulation.md).
const EMULATOR_WARN: Duration = Duration::from_micros(100);
/// The p99 of the emulator's lateness above which the path is no longer the scenario's (chosen: the
/// serialisation of a full packet at 12 Mbps).
const EMULATOR_INVALID: Duration = Duration::from_millis(1);
/// The same limits as the live arena's (docs/models/live.md).
const ENDPOINT_WARN: Duration = Duration::from_millis(1);
pub(crate) const ENDPOINT_INVALID: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use talkpath_units::Instant;

    use super::*;

    fn late(p99_us: u64) -> Option<LatenessFigures> {
        let p99 = Duration::from_micros(p99_us);
        Some(LatenessFigures { p50: Duration::ZERO, p99, max: p99 })
    }

    fn judged(report: &EmuReport) -> (bool, usize) {
        let mut warnings = Vec::new();
        let Judgement { is_sound, late_flows } = report.judge(&mut warnings);
        (is_sound && late_flows.is_empty(), warnings.len())
    }

    #[test]
    fn a_run_is_told_of_when_late_and_invalid_past_the_limits() {
        let report = |emulator, endpoints| EmuReport { emulator, endpoints, ..EmuReport::default() };
        assert_eq!(judged(&report(late(100), late(1000))), (true, 0));
        assert_eq!(judged(&report(late(101), late(1001))), (true, 2));
        assert_eq!(judged(&report(late(1001), late(0))), (false, 1));
        assert_eq!(judged(&report(late(0), late(5001))), (false, 1));
        assert_eq!(judged(&EmuReport { backlog: late(1001), ..EmuReport::default() }), (false, 1));
    }

    #[test]
    fn an_echo_that_the_machine_held_past_the_limit_makes_a_run_invalid() {
        let turns = |p99_us: u64| {
            let p99 = Duration::from_micros(p99_us);
            vec![TurnRoundRecord {
                flow: "call".to_owned(),
                count: 1000,
                p99,
                max: p99,
                ..Default::default()
            }]
        };
        let report = |turn_rounds| EmuReport { turn_rounds, ..EmuReport::default() };
        assert_eq!(judged(&report(turns(1000))), (true, 0));
        assert_eq!(judged(&report(turns(1001))), (true, 1));
        assert_eq!(judged(&report(turns(5001))), (false, 1));
    }

    #[test]
    fn echoes_that_the_machine_held_bend_the_figures_of_their_own_flow_alone() {
        let calls = ["call", "other"].map(|name| {
            let packets = LateFlow { name: name.to_owned(), messages: 1000, late: 4 };
            FlowLateness { packets, tolerated_stop: None }
        });
        let held = |max_ms: u64| TurnRoundRecord {
            flow: "call".to_owned(),
            count: 1000,
            p99: Duration::from_millis(6),
            max: Duration::from_millis(max_ms),
            too_long: 12,
            ..Default::default()
        };
        let judge = |turns, flows: &[FlowLateness]| {
            let report =
                EmuReport { turn_rounds: vec![turns], flows: flows.to_vec(), ..EmuReport::default() };
            report.judge(&mut Vec::new())
        };
        let judgement = judge(held(7), &calls);
        let late = |flow: &LateFlow| (flow.name.clone(), flow.late);
        let all = judgement.late_flows.iter().map(late).collect::<Vec<_>>();
        assert!(judgement.is_sound && all == [("other".to_owned(), 4), ("call".to_owned(), 16)], "{all:?}");
        assert!(!judge(held(151), &calls).is_sound, "one echo alone decides whether it is in time");
        let bulk = FlowLateness { tolerated_stop: Some(Duration::from_millis(20)), ..calls[0].clone() };
        assert!(!judge(held(7), &[bulk]).is_sound, "it has no clock");
    }

    #[test]
    fn what_a_hypervisor_took_is_told_and_makes_no_figure_fall() {
        assert_eq!(judged(&EmuReport { stolen_share: Some(0.05), ..EmuReport::default() }), (true, 1));
        assert_eq!(judged(&EmuReport { stolen_share: Some(0.001), ..EmuReport::default() }), (true, 0));
    }

    #[test]
    fn what_the_machine_lost_makes_a_run_invalid() {
        assert_eq!(judged(&EmuReport { device_drops: 1, ..EmuReport::default() }), (false, 1));
        assert_eq!(judged(&EmuReport { overruns: 1, ..EmuReport::default() }), (false, 1));
        let udp = UdpDrops { by_sockets: Some(3), checksum_errors: Some(2), room_errors: Some(1) };
        assert_eq!(judged(&EmuReport { udp, ..EmuReport::default() }), (false, 2));
        let udp = UdpDrops { by_sockets: Some(2), checksum_errors: Some(2), room_errors: Some(0) };
        assert_eq!(judged(&EmuReport { udp, ..EmuReport::default() }), (true, 1), "the path damaged them");
        assert_eq!(judged(&EmuReport { strays: 1, ..EmuReport::default() }), (true, 1), "of no flow");
    }

    /// Five of a thousand frames come 100 ms late: the p99 of all packets' lateness does not see it.
    #[test]
    fn a_stop_of_100_ms_makes_a_call_invalid_however_small_the_pooled_p99_is() {
        let mut stops = Stops::default();
        stops.record(Instant::from_secs(1), Instant::from_millis(1100));
        let packets = LateFlow { name: "call".to_owned(), messages: 1000, late: 5 };
        let call = FlowLateness { packets: packets.clone(), tolerated_stop: None };
        let report = EmuReport { emulator: late(17), stops, flows: vec![call], ..EmuReport::default() };
        let mut warnings = Vec::new();
        let judgement = report.judge(&mut warnings);
        assert!(judgement.is_sound && judgement.late_flows == [packets], "its other figures stand");
        assert!(warnings[0].contains("the path stood still once, 100.0 ms in all"), "{warnings:?}");
        assert!(
            warnings[1].contains(
                "flow call: the machine made packets late by more than 1 ms 5 times, for 1000 messages"
            ),
            "{warnings:?}"
        );
        let record = report.record();
        assert_eq!((record.stops, record.longest_stop), (Some(1), Some(Duration::from_millis(100))));
    }

    /// The emulator runs one step above the endpoints (`fork::become_emulator`).
    #[test]
    fn an_emulator_without_a_priority_of_its_own_says_which_limit_gives_it_one() {
        let mut warnings = Vec::new();
        let denied = Some("no".to_owned());
        assert!(EmuReport { not_real_time: denied, ..EmuReport::default() }.judge(&mut warnings).is_sound);
        assert!(warnings.len() == 1 && warnings[0].contains("`ulimit -r 2`"), "{warnings:?}");
    }
}
