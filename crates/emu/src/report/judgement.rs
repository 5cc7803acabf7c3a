//! The judgement on which figures of a run are valid.
//!
//! | disturbance | warning | figures that are not valid |
//! | --- | --- | --- |
//! | lateness or backlog of the emulator | p99 above 0.1 ms | all, if the p99 is above 1 ms |
//! | lateness of the senders | p99 above 1 ms | all, if the p99 is above 5 ms |
//! | late packets of a clocked flow | see `stops.rs` | some of this flow |
//! | stop that is longer than a flow tolerates | see `stops.rs` | all |
//! | slow echoes | see `turn_round.rs` of the kernel crate | some of this flow, or all |
//! | packets that the machine dropped | always | all |
//! | no real-time priority, a hypervisor, strays | always | none |

use talkpath_kernel::{stolen, turn_round};
use talkpath_measure::{LateFlow, LatenessRecord, TurnRoundRecord, warning};
use talkpath_units::{Duration, counted};

use super::EmuReport;

/// The p99 of the emulator's lateness above which there is a warning. An idle machine with real-time priority
/// stays below it (docs/models/emulation.md).
const EMULATOR_WARN: Duration = Duration::from_micros(100);
/// The p99 of the emulator's lateness above which the path is not the scenario's path any more. We chose 1
/// ms, which is the serialisation time of a full packet at 12 Mbps.
const EMULATOR_INVALID: Duration = Duration::from_millis(1);
/// The p99 of the senders' lateness above which there is a warning. It is that of the live arena
/// (docs/models/live.md).
const ENDPOINT_WARN: Duration = Duration::from_millis(1);
/// The p99 of the senders' lateness above which the run is not valid. It is that of the live arena.
pub(crate) const ENDPOINT_INVALID: Duration = Duration::from_millis(5);

/// The judgement on which figures of a run are valid.
pub(crate) struct Judgement {
    /// True if all figures are valid, except some of those of `late_flows`.
    pub(crate) is_sound: bool,
    /// The flows with so many late packets that some of their figures are not valid.
    pub(crate) late_flows: Vec<LateFlow>,
    /// A warning about each disturbance.
    pub(crate) warnings: Vec<String>,
}

/// A lateness with its limits.
struct JudgedLateness {
    /// The beginning of the warning, for example "the senders handed messages over".
    subject: &'static str,
    figures: Option<LatenessRecord>,
    warn: Duration,
    invalid: Duration,
}

impl EmuReport {
    /// Judges which figures of the run are valid.
    pub(crate) fn judge(&self) -> Judgement {
        let mut judgement = Judgement { is_sound: true, late_flows: Vec::new(), warnings: Vec::new() };
        judgement.judge_priority(self);
        judgement.judge_lateness(self);
        judgement.judge_stops(self);
        judgement.judge_turn_rounds(self);
        if let Some(warning) = stolen::warning(self.stolen_share) {
            judgement.warnings.push(format!("emu: {warning}"));
        }
        judgement.judge_dropped_packets(self);
        judgement
    }
}

impl Judgement {
    fn judge_priority(&mut self, report: &EmuReport) {
        if let Some(why) = &report.not_real_time {
            self.warnings.push(format!(
                "emu: NO REAL-TIME PRIORITY above the endpoints for the emulator ({why}); delays are as good as the machine is \
                 idle; run as root, or allow it with `ulimit -r 2` (RLIMIT_RTPRIO, limits.conf: rtprio 2)"
            ));
        }
    }

    fn judge_lateness(&mut self, report: &EmuReport) {
        let judged = [
            JudgedLateness {
                subject: "the emulator wrote packets",
                figures: report.emulator,
                warn: EMULATOR_WARN,
                invalid: EMULATOR_INVALID,
            },
            JudgedLateness {
                subject: "packets counted as arriving",
                figures: report.backlog,
                warn: EMULATOR_WARN,
                invalid: EMULATOR_INVALID,
            },
            JudgedLateness {
                subject: "the senders handed messages over",
                figures: report.endpoints,
                warn: ENDPOINT_WARN,
                invalid: ENDPOINT_INVALID,
            },
        ];
        for JudgedLateness { subject, figures, warn, invalid } in judged {
            let Some(figures) = figures.filter(|figures| figures.p99 > warn) else { continue };
            let is_valid = figures.p99 <= invalid;
            self.is_sound &= is_valid;
            let limit =
                if is_valid { String::new() } else { format!(", past the limit of {invalid} at p99") };
            let warning = format!("emu: {subject} late: {figures}{limit}");
            self.warnings.push(warning::invalid_unless(is_valid, warning));
        }
    }

    fn judge_stops(&mut self, report: &EmuReport) {
        if let Some(warning) = report.stops.warning() {
            self.warnings.push(format!("emu: {warning}"));
        }
        for flow in &report.flows {
            let Some(warning) = flow.judge(&report.stops) else { continue };
            self.warnings.push(warning::invalid(format!("emu: {warning}")));
            if flow.is_clocked() {
                self.late_flows.push(flow.packets.clone());
            } else {
                self.is_sound = false;
            }
        }
    }

    fn judge_turn_rounds(&mut self, report: &EmuReport) {
        for turn_rounds in &report.turn_rounds {
            let Some((warning, is_valid)) = turn_round::judge(turn_rounds, "the far application") else {
                continue;
            };
            self.warnings.push(warning::invalid_unless(is_valid, format!("emu: {warning}")));
            if !is_valid {
                self.add_late_echoes(turn_rounds, report);
            }
        }
    }

    /// Counts the echoes of a flow that the far application held for too long as late packets of the flow. If
    /// the flow has no clock, no figure of the run is valid. The same holds if one echo was held longer than
    /// [`turn_round::INVALID_ONE`], because this time alone decides whether the message is in time.
    fn add_late_echoes(&mut self, turn_rounds: &TurnRoundRecord, report: &EmuReport) {
        let mut flows = report.flows.iter();
        let flow = flows.find(|flow| flow.packets.name == turn_rounds.flow && flow.is_clocked());
        let Some(flow) = flow.filter(|_| turn_rounds.max <= turn_round::INVALID_ONE) else {
            self.is_sound = false;
            return;
        };
        let late = flow.packets.late.saturating_add(turn_rounds.too_long);
        self.late_flows.retain(|flow| flow.name != turn_rounds.flow);
        self.late_flows.push(LateFlow { late, ..flow.packets.clone() });
    }

    fn judge_dropped_packets(&mut self, report: &EmuReport) {
        for (count, lack) in
            [(report.device_drops, "room in a device"), (report.overruns, "memory in the emulator")]
        {
            if count > 0 {
                let packets = counted(count, "packet");
                let warning = format!("emu: {packets} found no {lack}, which is no loss of the path");
                self.warnings.push(warning::invalid(warning));
                self.is_sound = false;
            }
        }
        if report.strays > 0 {
            let packets = counted(report.strays, "packet");
            self.warnings
                .push(format!("emu: {packets} of TCP or UDP, but of no flow, did not cross the path"));
        }
        self.warnings.extend(report.udp.warnings("emu"));
        self.is_sound &= report.udp.min_without_room().unwrap_or(0) == 0;
    }
}

#[cfg(test)]
mod tests {
    use talkpath_kernel::udp_drops::UdpDrops;
    use talkpath_units::Instant;

    use super::*;
    use crate::stops::{FlowLateness, Stops};

    fn late(p99_us: u64) -> Option<LatenessRecord> {
        let p99 = Duration::from_micros(p99_us);
        Some(LatenessRecord { p50: Duration::ZERO, p99, max: p99 })
    }

    fn judged(report: &EmuReport) -> (bool, usize) {
        let Judgement { is_sound, late_flows, warnings } = report.judge();
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
            report.judge()
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
        let Judgement { is_sound, late_flows, warnings } = report.judge();
        assert!(is_sound && late_flows == [packets], "its other figures are valid");
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

    /// The emulator runs one step above the endpoints (`fork::take_emulator_priority`).
    #[test]
    fn an_emulator_without_a_priority_of_its_own_says_which_limit_gives_it_one() {
        let denied = Some("no".to_owned());
        let report = EmuReport { not_real_time: denied, ..EmuReport::default() };
        let Judgement { is_sound, warnings, .. } = report.judge();
        assert!(is_sound);
        assert!(warnings.len() == 1 && warnings[0].contains("`ulimit -r 2`"), "{warnings:?}");
    }
}
