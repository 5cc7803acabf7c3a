//! After a run: both ends' logs become its record, with what disturbed it.

use talkpath_arena::offset::{Offset, withdraw_trust_in_impossible_delays};
use talkpath_flow::{Side, lateness_ns};
use talkpath_kernel::join::{
    MAX_WORDS, RunEnd, dscp_warnings, early_echo_warnings, few_words, file_warnings, flow_record,
    multipath_warnings, no_network_warnings, series, short_number_warnings, unsent_warnings,
};
use talkpath_kernel::log::{Chunk, EndLog};
use talkpath_kernel::{stolen, turn_round};
use talkpath_measure::warning;
use talkpath_measure::{ClockRecord, LatenessRecord, MachineRecord, RunRecord, TurnRoundRecord};
use talkpath_units::{Duration, Histogram, Instant};

use super::{Disturbance, Session, Starts, sender};
use crate::client::control::ServerTotals;

impl Session<'_> {
    /// What the far ends reported, on this host's clock.
    pub(super) fn far_logs(&self, rows: &[Chunk], offset: Option<Offset>, start: Starts) -> Vec<EndLog> {
        let ours = |at: u64| {
            offset.map_or(Instant::from_nanos(at), |offset| offset.correct(at, start.theirs, start.ours))
        };
        let flows = self.spec.flows.iter().zip(&self.ends).zip(rows);
        flows
            .map(|((spec, near), rows)| {
                // The far end echoes at most what was sent to it, and the number of its workload's messages
                // is the one that it states.
                let (side, bound) = if spec.is_up {
                    (Side::Far, near.lock().log.taps.forward.rows().count())
                } else {
                    (Side::Near, rows.sent_rows())
                };
                EndLog::from_rows(rows, side, spec, bound as u64, &ours)
            })
            .collect()
    }

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

    /// Which flows ended before the run did although they had opened, and why. That is the path's doing or
    /// the far host's, and a result: the run stays valid.
    fn failures(&self, logs: Option<&[EndLog]>) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let end = self.ends[index].lock();
            if !end.was_open() {
                continue;
            }
            let near = end.failure.clone();
            let far = logs.and_then(|logs| logs.get(index)).and_then(|log| log.totals.failure.as_deref());
            let why = near.or_else(|| far.map(|why| format!("the far host says: {}", few_words(why))));
            lines.extend(why.map(|why| {
                format!("flow {}: {why}; what was due later is lost, the other flows continued", flow.name)
            }));
        }
        lines
    }

    /// What the kernels said of the messages that they would not take.
    fn refusals(&self, logs: Option<&[EndLog]>) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let near = self.ends[index].lock();
            let far = logs.and_then(|logs| logs.get(index));
            let ends = [("this host", Some(&near.log)), ("the far host", far)];
            for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
                for (why, count) in log.totals.refusals.iter().take(MAX_WORDS) {
                    let why = few_words(why);
                    lines.push(format!("flow {}: {place} refused {count} messages: {why}", flow.name));
                }
            }
            lines.extend(no_network_warnings(&flow.name, &ends));
            lines.extend(unsent_warnings(&flow.name, &ends));
        }
        lines
    }

    /// How long each flow's echoing host held messages, and which host that is.
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

    /// Says what disturbed the run, and past the stated limits that it is not valid.
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
            real_time: Some(disturbance.realtime_denied.is_none()),
            stolen_share: disturbance.stolen_share,
            turn_rounds: turn_rounds.into_iter().map(|(_, turns)| turns).collect(),
            ..MachineRecord::default()
        });
        record.warnings.extend(stolen::warning(disturbance.stolen_share));
        for (place, figures) in [("this host", here), ("the far host", totals.lateness_ns)] {
            let denied = disturbance.realtime_denied.as_deref().filter(|_| place == "this host");
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
        if let Some(trouble) = &disturbance.trouble {
            record.warnings.push(warning::invalid(trouble));
            record.valid = false;
        }
    }
}

/// p50, p99 and maximum, as measured in ns.
fn late([p50, p99, max]: [u64; 3]) -> LatenessRecord {
    let [p50, p99, max] = [p50, p99, max].map(Duration::from_nanos);
    LatenessRecord { p50, p99, max }
}
