//! Makes the record of a run from the logs of both ends, and judges how both hosts disturbed the run.
//!
//! - *near end*: the end of a flow on this host. The *far end* is on the server.
//! - A log of a far end is missing if the server's report could not be fetched.

use talkpath_arena::offset::{Offset, withdraw_trust_in_impossible_delays};
use talkpath_flow::{Side, lateness_ns};
use talkpath_kernel::join::{
    MAX_REASONS, RunEnd, dscp_warnings, early_echo_warnings, ecn_warnings, file_warnings, flow_record,
    multipath_warnings, no_network_warnings, quic_warnings, series, short_number_warnings, shorten_reason,
    unsent_warnings,
};
use talkpath_kernel::log::{Chunk, EndLog};
use talkpath_kernel::spec::{ChannelKind, FlowSpec};
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_kernel::{stolen, turn_round};
use talkpath_measure::summary::PathSummary;
use talkpath_measure::warning;
use talkpath_measure::{ClockRecord, LatenessRecord, MachineRecord, RunRecord, TurnRoundRecord};
use talkpath_measure::{Fate, FlowRecord, LegRecord};
use talkpath_units::{Duration, Histogram, Instant, counted};

use super::threads::Disturbance;
use super::{Session, StartTimes, sender};
use crate::client::control::ServerTotals;
use crate::client::mapping::{MappingLifetime, MappingProbes};
use crate::client::path_facts::PathFacts;

/// The name of the client's host in warnings.
const THIS_HOST: &str = "this host";
/// The name of the server's host in warnings.
const FAR_HOST: &str = "the far host";

/// The logs of both ends of a flow, with the hosts that they are from.
type HostLogs<'a> = [(&'static str, Option<&'a EndLog>); 2];

/// How a host held the messages of a flow before it echoed them.
struct TurnRound {
    host: &'static str,
    record: TurnRoundRecord,
}

impl Session<'_> {
    /// Turns the server's rows into the logs of the far ends, with all times on this host's clock.
    pub(super) fn far_logs(&self, rows: &[Chunk], offset: Option<Offset>, start: StartTimes) -> Vec<EndLog> {
        let to_our_clock = |far_ns: u64| match offset {
            Some(offset) => offset.correct(far_ns, start.far_host, start.this_host),
            None => Instant::from_nanos(far_ns),
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
                EndLog::from_chunk(rows, side, spec, bound as u64, &to_our_clock)
            })
            .collect()
    }

    /// Makes the record of the run. `far_logs` has the logs of the far ends, if they could be fetched.
    pub(super) fn record(
        &self,
        far_logs: Option<&[EndLog]>,
        offset: Option<Offset>,
        run_end: RunEnd,
    ) -> RunRecord {
        let clock = offset.map_or_else(ClockRecord::default, |offset| offset.record());
        let window = Instant::from_nanos(self.spec.warm_up_ns)..self.spec.stop();
        let (mut flows, mut all_series) = (Vec::new(), Vec::new());
        let mut warnings = self.warnings.clone();
        let (mut failures, mut unsent) = (Vec::new(), Vec::new());
        for (index, (flow, spec)) in self.scenario.flows.iter().zip(&self.spec.flows).enumerate() {
            let near = self.ends[index].lock();
            let far = far_logs.and_then(|logs| logs.get(index));
            let (sender, receiver) = if spec.is_up { (Some(&near.log), far) } else { (far, Some(&near.log)) };
            if let Some(sender) = sender.filter(|_| self.plan.series.is_some()) {
                all_series.extend(series(&flow.name, sender));
            }
            let mut record = flow_record(flow, spec, sender, receiver, &window, run_end, clock.trusted);
            record.counters.opening.name = self.name_time;
            let logs = [(THIS_HOST, Some(&near.log)), (FAR_HOST, far)];
            if let Some(ip) = &record.counters.ip {
                warnings.extend(dscp_warnings(&flow.name, ip));
                warnings.extend(ecn_warnings(&flow.name, &flow.transport, ip));
            }
            warnings.extend(multipath_warnings(&record));
            if self.spec.is_leader(index) {
                warnings.extend(quic_warnings(&flow.name, &logs));
            }
            warnings.extend(early_echo_warnings(&record));
            warnings.extend(short_number_warnings(&record, spec, &logs));
            warnings.extend(self.path.as_ref().and_then(|path| too_large(&record, spec, path)));
            let file = receiver.and_then(|receiver| receiver.totals.file.as_ref());
            warnings.extend(file_warnings(&record, file.and_then(|file| file.not_kept.as_deref())));
            if near.was_open() {
                failures.extend(failure_warning(&flow.name, near.failure.as_deref(), far));
            }
            unsent.extend(refusal_warnings(&flow.name, &logs));
            unsent.extend(no_network_warnings(&flow.name, &logs));
            unsent.extend(unsent_warnings(&flow.name, &logs));
            flows.push(record);
        }
        warnings.extend(self.path.as_ref().map(PathFacts::note));
        let mapping = self.mapping.as_ref().map(MappingProbes::finish);
        warnings.extend(mapping.and_then(MappingLifetime::note));
        warnings.extend(failures);
        warnings.extend(unsent);
        let mut record = RunRecord {
            cell: self.plan.cell,
            repetition: self.plan.repetition,
            seed: self.plan.seed.get(),
            window_start: window.start,
            window_end: window.end,
            flows,
            series: all_series,
            drain: Duration::from_nanos(self.spec.drain_ns),
            clock,
            path: self.path.as_ref().map(|path| {
                Box::new(PathSummary { mapping: mapping.map(MappingLifetime::summary), ..path.summary() })
            }),
            valid: true,
            warnings,
            ..RunRecord::default()
        };
        withdraw_trust_in_impossible_delays(&mut record);
        record
    }

    /// How long the far host held a message of each flow before it wrote the echo, at most, in ns.
    pub(super) fn far_turn_rounds_ns(&self, far_logs: Option<&[EndLog]>) -> impl Iterator<Item = u64> {
        let far = self.turn_rounds(far_logs).into_iter().filter(|turn_round| turn_round.host == FAR_HOST);
        far.map(|turn_round| turn_round.record.max.as_nanos())
    }

    /// Lists how the receivers held the messages of the flows with an echo.
    fn turn_rounds(&self, far_logs: Option<&[EndLog]>) -> Vec<TurnRound> {
        let mut turn_rounds = Vec::new();
        for (index, (flow, spec)) in self.scenario.flows.iter().zip(&self.spec.flows).enumerate() {
            let (host, turn_round) = if spec.is_up {
                let far = far_logs.and_then(|logs| logs.get(index));
                (FAR_HOST, far.and_then(|log| log.totals.turn_round))
            } else {
                (THIS_HOST, self.ends[index].lock().log.totals.turn_round)
            };
            turn_rounds
                .extend(turn_round.map(|figures| TurnRound { host, record: figures.record(&flow.name) }));
        }
        turn_rounds
    }

    /// Adds the figures and warnings about disturbances by both hosts to `record`. Marks the run as not
    /// valid if a disturbance is above its limit.
    pub(super) fn judge(
        &self,
        record: &mut RunRecord,
        disturbance: &Disturbance,
        totals: &ServerTotals,
        far_logs: Option<&[EndLog]>,
    ) {
        let mut lateness = Histogram::new();
        for end in &self.ends {
            end.lock().add_lateness(&mut lateness);
        }
        let near_lateness_ns = lateness_ns(&lateness);
        let turn_rounds = self.turn_rounds(far_logs);
        for TurnRound { host, record: turn_round } in &turn_rounds {
            judge_by(record, turn_round::judge(turn_round, host));
        }
        let near_drops = disturbance.drops;
        record.machine = Some(MachineRecord {
            senders_late: near_lateness_ns.map(LatenessRecord::from_ns),
            far_senders_late: totals.lateness_ns.map(LatenessRecord::from_ns),
            socket_drops: sum_drops(near_drops, totals.drops),
            checksum_errors: near_drops.checksum_errors,
            far_checksum_errors: totals.drops.and_then(|drops| drops.checksum_errors),
            real_time: Some(disturbance.pacer_problem.is_none()),
            stolen_share: disturbance.stolen_share,
            turn_rounds: turn_rounds.into_iter().map(|turn_round| turn_round.record).collect(),
            ..MachineRecord::default()
        });
        record.warnings.extend(stolen::warning(disturbance.stolen_share));
        let pacer_problem = disturbance.pacer_problem.as_deref();
        for (host, lateness_ns, denied) in
            [(THIS_HOST, near_lateness_ns, pacer_problem), (FAR_HOST, totals.lateness_ns, None)]
        {
            let judge = |lateness_ns| sender::judge(lateness_ns, host, denied, || sender::trip(record));
            let judgement = lateness_ns.and_then(judge);
            judge_by(record, judgement);
        }
        // All sessions share the server's socket. If this run misses nothing, the drops were of others.
        let far_drops = totals.drops.filter(|_| !misses_nothing(record));
        for (host, drops) in [(THIS_HOST, Some(near_drops)), (FAR_HOST, far_drops)] {
            let Some(drops) = drops else { continue };
            record.warnings.extend(drops.warnings(host));
            record.valid &= drops.min_without_room().unwrap_or(0) == 0;
        }
        if let Some(failure) = &disturbance.receiver_failure {
            record.warnings.push(warning::invalid(failure));
            record.valid = false;
        }
    }
}

/// Returns true if each message of each flow arrived, and each echo. Without rows that is not known.
fn misses_nothing(record: &RunRecord) -> bool {
    let has_all = |leg: &LegRecord| leg.count(Fate::Missing) == 0 && leg.count(Fate::Unfinished) == 0;
    let is_whole =
        |flow: &FlowRecord| flow.tally.is_none() && has_all(&flow.forward) && flow.echo.iter().all(has_all);
    record.flows.iter().all(is_whole)
}

/// Adds a judgement to `record`: a warning, and whether the run is still valid.
fn judge_by(record: &mut RunRecord, judgement: Option<(String, bool)>) {
    if let Some((line, is_within)) = judgement {
        record.warnings.push(warning::invalid_unless(is_within, line));
        record.valid &= is_within;
    }
}

/// Makes the warning about a flow that opened and then failed before the run ended. The path or the far host
/// caused the failure, so it is a result, and the run stays valid.
fn failure_warning(flow: &str, near_failure: Option<&str>, far: Option<&EndLog>) -> Option<String> {
    let far_failure = far.and_then(|log| log.totals.failure.as_deref());
    let why = match (near_failure, far_failure) {
        (Some(near_failure), _) => near_failure.to_owned(),
        (None, Some(far_failure)) => format!("the far host says: {}", shorten_reason(far_failure)),
        (None, None) => return None,
    };
    Some(format!("flow {flow}: {why}; what was due later is lost, the other flows continued"))
}

/// Says that the packets of a flow of which nothing arrived are larger than those that pass. Returns `None`
/// if the flow's packets pass, or may pass.
///
/// A message over UDP has its own size. TCP's full segments are as large as the MTU that the host knows.
fn too_large(flow: &FlowRecord, spec: &FlowSpec, path: &PathFacts) -> Option<String> {
    // Without rows it is not known here what arrived.
    if flow.tally.is_some() || flow.forward.count(Fate::Delivered) > 0 {
        return None;
    }
    let (way, direction) = if spec.is_up { (&path.out, "there") } else { (&path.back, "back") };
    let (passes, fails) = (path.silent_limit(way)?, way.fails?);
    let limit = format!(
        "packets of {passes} B pass on the way {direction}, those of {fails} B do not, and no router says so: a tunnel or \
         another link with a small MTU, and lost \"too big\" messages"
    );
    let name = &flow.info.name;
    match spec.transport.channel_kind() {
        ChannelKind::Datagrams => {
            let packet = spec.constant_size()? + u64::from(path.headers());
            let may_be_too_large = packet > u64::from(passes);
            may_be_too_large
                .then(|| format!("flow {name}: none of its packets of {packet} B arrived: {limit}"))
        }
        ChannelKind::Connection => {
            let has_timed_out = flow.counters.timeouts.is_some_and(|timeouts| timeouts > 0);
            has_timed_out.then(|| {
                format!("flow {name}: it opened, and none of its full segments arrived: {limit}; its key `mss` helps")
            })
        }
        // QUIC searches for the MTU itself, and DCCP's packets are as small as the messages.
        ChannelKind::OverUdp => None,
    }
}

/// Makes the warnings about the messages that a host refused.
fn refusal_warnings(flow: &str, logs: &HostLogs<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (host, log) in logs.iter().filter_map(|&(host, log)| Some((host, log?))) {
        for (why, count) in log.totals.refusals.iter().take(MAX_REASONS) {
            let messages = counted(*count, "message");
            warnings.push(format!("flow {flow}: {host} refused {messages}: {}", shorten_reason(why)));
        }
    }
    warnings
}

/// Adds the drops of both hosts' sockets. Returns `None` if a host does not know them.
fn sum_drops(near: UdpDrops, far: Option<UdpDrops>) -> Option<u64> {
    Some(near.min_without_room()?.saturating_add(far?.min_without_room()?))
}

#[cfg(test)]
mod tests {
    use talkpath_measure::{FlowInfo, MessageRecord};
    use talkpath_units::Bytes;

    use super::*;

    #[test]
    fn drops_at_the_server_s_socket_count_only_against_a_run_that_misses_something() {
        let leg = |fates: &[Fate]| {
            let message = |(seq, fate): (u64, &Fate)| MessageRecord {
                seq,
                size: Bytes::new(160),
                due: Instant::ZERO,
                sent: Some(Instant::ZERO),
                wire: None,
                received: None,
                fate: *fate,
                drop_cause: None,
                copies: 0,
                transmissions: 0,
            };
            LegRecord { messages: (0..).zip(fates).map(message).collect(), ..LegRecord::default() }
        };
        let run = |forward: &[Fate], echo: Option<&[Fate]>| {
            let info = FlowInfo::on_a_clock("call");
            let flow = FlowRecord { forward: leg(forward), echo: echo.map(leg), ..FlowRecord::new(info) };
            misses_nothing(&RunRecord { flows: vec![flow], ..RunRecord::default() })
        };
        let all = [Fate::Delivered, Fate::Delivered];
        assert!(run(&all, None) && run(&all, Some(&all)));
        assert!(!run(&[Fate::Delivered, Fate::Missing], Some(&all)));
        assert!(!run(&all, Some(&[Fate::Unfinished])));
    }
}
