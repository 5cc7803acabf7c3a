//! The record of a run. It is made from the logs of both ends after the run, with the disturbances of both
//! hosts.

use talkpath_arena::offset::{Offset, withdraw_trust_in_impossible_delays};
use talkpath_flow::{Side, lateness_ns};
use talkpath_kernel::join::{
    MAX_REASONS, RunEnd, dscp_warnings, early_echo_warnings, file_warnings, flow_record, multipath_warnings,
    no_network_warnings, series, short_number_warnings, shorten_reason, unsent_warnings,
};
use talkpath_kernel::log::{Chunk, EndLog};
use talkpath_kernel::{stolen, turn_round};
use talkpath_measure::warning;
use talkpath_measure::{ClockRecord, LatenessRecord, MachineRecord, RunRecord, TurnRoundRecord};
use talkpath_units::{Duration, Histogram, Instant, counted};

use super::threads::Disturbance;
use super::{Session, StartTimes, sender};
use crate::client::control::ServerTotals;

impl Session<'_> {
    /// Turns the server's rows into the logs of the far ends, with all times on this host's clock.
    pub(super) fn far_logs(&self, rows: &[Chunk], offset: Option<Offset>, start: StartTimes) -> Vec<EndLog> {
        let ours = |at: u64| {
            offset
                .map_or(Instant::from_nanos(at), |offset| offset.correct(at, start.far_host, start.this_host))
        };
        let flows = self.spec.flows.iter().zip(&self.ends).zip(rows);
        flows
            .map(|((spec, near), rows)| {
                // A far end that echoes has at most as many messages as this host has sent. A far end that
                // sends states the number of its messages itself.
                let (side, bound) = if spec.is_up {
                    (Side::Far, near.lock().log.taps.forward.rows().count())
                } else {
                    (Side::Near, rows.sent_rows())
                };
                EndLog::from_chunk(rows, side, spec, bound as u64, &ours)
            })
            .collect()
    }

    /// Makes the record of the run. `logs` has the logs of the far ends, if they could be collected.
    pub(super) fn record(&self, logs: Option<&[EndLog]>, offset: Option<Offset>, end: RunEnd) -> RunRecord {
        let clock = offset.map_or_else(ClockRecord::default, |offset| offset.record());
        let window = Instant::from_nanos(self.spec.warm_up_ns)..self.spec.stop();
        let (mut flows, mut all_series) = (Vec::new(), Vec::new());
        let mut warnings = self.warnings.clone();
        for (index, (flow, spec)) in self.scenario.flows.iter().zip(&self.spec.flows).enumerate() {
            let near = self.ends[index].lock();
            let far = logs.and_then(|logs| logs.get(index));
            let (sender, receiver) = if spec.is_up { (Some(&near.log), far) } else { (far, Some(&near.log)) };
            if let Some(sender) = sender.filter(|_| self.plan.series.is_some()) {
                all_series.extend(series(&flow.name, sender));
            }
            let record = flow_record(flow, spec, sender, receiver, &window, end, clock.trusted);
            warnings.extend(record.counters.ip.iter().flat_map(|ip| dscp_warnings(&flow.name, ip)));
            warnings.extend(multipath_warnings(&record));
            warnings.extend(early_echo_warnings(&record));
            let places = [("this host", Some(&near.log)), ("the far host", far)];
            warnings.extend(short_number_warnings(&record, spec, &places));
            let file = receiver.and_then(|receiver| receiver.totals.file.as_ref());
            warnings.extend(file_warnings(&record, file.and_then(|file| file.not_kept.as_deref())));
            flows.push(record);
        }
        warnings.extend(self.failures(logs));
        warnings.extend(self.refusals(logs));
        let mut record = RunRecord {
            cell: self.plan.cell,
            repetition: self.plan.repetition,
            seed: self.plan.seed.get(),
            window_start: window.start,
            window_end: window.end,
            flows,
            links: Vec::new(),
            series: all_series,
            drain: Duration::from_nanos(self.spec.drain_ns),
            machine: None,
            clock,
            valid: true,
            warnings,
        };
        withdraw_trust_in_impossible_delays(&mut record);
        record
    }

    /// Returns a warning for each flow that opened and then failed before the run ended. The path or the far
    /// host caused the failure, so it is a result, and the run stays valid.
    fn failures(&self, logs: Option<&[EndLog]>) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let end = self.ends[index].lock();
            if !end.was_open() {
                continue;
            }
            let near = end.failure.clone();
            let far = logs.and_then(|logs| logs.get(index)).and_then(|log| log.totals.failure.as_deref());
            let why = near.or_else(|| far.map(|why| format!("the far host says: {}", shorten_reason(why))));
            lines.extend(why.map(|why| {
                format!("flow {}: {why}; what was due later is lost, the other flows continued", flow.name)
            }));
        }
        lines
    }

    /// Returns warnings about the messages that the kernels did not take.
    fn refusals(&self, logs: Option<&[EndLog]>) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let near = self.ends[index].lock();
            let far = logs.and_then(|logs| logs.get(index));
            let ends = [("this host", Some(&near.log)), ("the far host", far)];
            for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
                for (why, count) in log.totals.refusals.iter().take(MAX_REASONS) {
                    let why = shorten_reason(why);
                    let messages = counted(*count, "message");
                    lines.push(format!("flow {}: {place} refused {messages}: {why}", flow.name));
                }
            }
            lines.extend(no_network_warnings(&flow.name, &ends));
            lines.extend(unsent_warnings(&flow.name, &ends));
        }
        lines
    }

    /// Returns for each flow with an echo which host echoes, and how long it held the messages.
    fn turn_rounds(&self, logs: Option<&[EndLog]>) -> Vec<(&'static str, TurnRoundRecord)> {
        let mut all = Vec::new();
        for (index, (flow, spec)) in self.scenario.flows.iter().zip(&self.spec.flows).enumerate() {
            let (host, turns) = if spec.is_up {
                let log = logs.and_then(|logs| logs.get(index));
                ("the far host", log.and_then(|log| log.totals.turn_round))
            } else {
                ("this host", self.ends[index].lock().log.totals.turn_round)
            };
            all.extend(turns.map(|turns| (host, turns.record(&flow.name))));
        }
        all
    }

    /// Adds the figures and warnings about disturbances by both hosts to `record`. Marks the run as not valid
    /// if a disturbance is above its limit.
    pub(super) fn judge(
        &mut self,
        record: &mut RunRecord,
        disturbance: &Disturbance,
        totals: &ServerTotals,
        logs: Option<&[EndLog]>,
    ) {
        let mut lateness = Histogram::new();
        for end in &self.ends {
            end.lock().add_lateness(&mut lateness);
        }
        let here = lateness_ns(&lateness);
        let here_dropped = disturbance.drops;
        let far_dropped = totals.drops.and_then(|drops| drops.min_without_room());
        let turn_rounds = self.turn_rounds(logs);
        for (host, turns) in &turn_rounds {
            let Some((line, is_within)) = turn_round::judge(turns, host) else { continue };
            record.warnings.push(warning::invalid_unless(is_within, line));
            record.valid &= is_within;
        }
        record.machine = Some(MachineRecord {
            senders_late: here.map(late),
            far_senders_late: totals.lateness_ns.map(late),
            socket_drops: here_dropped
                .min_without_room()
                .zip(far_dropped)
                .map(|(here, far)| here.saturating_add(far)),
            checksum_errors: here_dropped.checksum_errors,
            far_checksum_errors: totals.drops.and_then(|drops| drops.checksum_errors),
            real_time: Some(disturbance.pacer_problem.is_none()),
            stolen_share: disturbance.stolen_share,
            turn_rounds: turn_rounds.into_iter().map(|(_, turns)| turns).collect(),
            ..MachineRecord::default()
        });
        record.warnings.extend(stolen::warning(disturbance.stolen_share));
        for (place, figures) in [("this host", here), ("the far host", totals.lateness_ns)] {
            let denied = disturbance.pacer_problem.as_deref().filter(|_| place == "this host");
            let judged = figures.and_then(|late| sender::judge(late, place, denied, || sender::trip(record)));
            if let Some((line, is_within)) = judged {
                record.warnings.push(warning::invalid_unless(is_within, line));
                record.valid &= is_within;
            }
        }
        for (place, drops) in [("this host", Some(here_dropped)), ("the far host", totals.drops)] {
            let Some(drops) = drops else { continue };
            record.warnings.extend(drops.warnings(place));
            record.valid &= drops.min_without_room().unwrap_or(0) == 0;
        }
        if let Some(failure) = &disturbance.receiver_failure {
            record.warnings.push(warning::invalid(failure));
            record.valid = false;
        }
    }
}

/// Makes a lateness record from the p50, the p99 and the maximum, ns.
fn late([p50, p99, max]: [u64; 3]) -> LatenessRecord {
    let [p50, p99, max] = [p50, p99, max].map(Duration::from_nanos);
    LatenessRecord { p50, p99, max }
}
