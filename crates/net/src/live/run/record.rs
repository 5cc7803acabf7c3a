//! After a run: both ends' logs become its record, with what disturbed it.

use talkpath_arena::offset::Offset;
use talkpath_measure::{ClockRecord, LatenessRecord, MachineRecord, RunRecord};
use talkpath_units::{Duration, Instant};

use super::{Disturbance, Session};
use crate::join::{
    MOST_WORDS, RunEnd, Timed, file_warnings, flow_record, printable, series, unsent_warnings,
};
use crate::lateness::Lateness;
use crate::live::far::FarTotals;
use crate::log::FlowLog;
use crate::stolen;

impl Session<'_> {
    pub(super) fn record(
        &self,
        logs: Option<&[FlowLog]>,
        offset: Option<Offset>,
        (start, far_start): (i64, i64),
        end: RunEnd,
    ) -> RunRecord {
        let clock = offset.map_or_else(ClockRecord::default, |offset| offset.record());
        let window = (Instant::from_nanos(self.spec.warm_up_ns), self.spec.stop());
        let ours = |at: u64| Instant::from_nanos(at);
        let theirs =
            |at: u64| offset.map_or(Instant::from_nanos(at), |offset| offset.correct(at, far_start, start));
        let (mut flows, mut all_series) = (Vec::new(), Vec::new());
        let mut warnings = self.warnings.clone();
        for (index, (flow, spec)) in self.scenario.flows.iter().zip(&self.spec.flows).enumerate() {
            let near = self.ends[index].lock();
            let near = Timed { log: &near.base.log, to_ours: &ours };
            let far = logs.and_then(|logs| logs.get(index)).map(|log| Timed { log, to_ours: &theirs });
            let (sender, receiver) =
                if spec.is_up { (Some(&near), far.as_ref()) } else { (far.as_ref(), Some(&near)) };
            if let Some(sender) = sender.filter(|_| self.plan.series) {
                all_series.extend(series(&flow.name, sender));
            }
            let record = flow_record(flow, spec, sender, receiver, window, end, clock.trusted);
            let file = receiver.and_then(|receiver| receiver.log.totals.file.as_ref());
            warnings.extend(file_warnings(&record, file.and_then(|file| file.not_kept.as_deref())));
            flows.push(record);
        }
        warnings.extend(self.refusals(logs));
        RunRecord {
            cell: self.plan.cell,
            repetition: self.plan.repetition,
            seed: self.plan.seed.get(),
            window_start: window.0,
            window_end: window.1,
            flows,
            links: Vec::new(),
            series: all_series,
            drain: Duration::from_nanos(self.spec.drain_ns),
            machine: None,
            clock,
            valid: true,
            warnings,
        }
    }

    /// What the kernels said of the messages that they would not take.
    fn refusals(&self, logs: Option<&[FlowLog]>) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let near = self.ends[index].lock();
            let far = logs.and_then(|logs| logs.get(index));
            let ends = [("this host", Some(&near.base.log)), ("the far host", far)];
            for (place, log) in ends.iter().filter_map(|&(place, log)| Some((place, log?))) {
                for (why, count) in log.totals.refusals.iter().take(MOST_WORDS) {
                    let why = printable(why);
                    lines.push(format!("flow {}: {place} refused {count} messages: {why}", flow.name));
                }
            }
            lines.extend(unsent_warnings(&flow.name, &ends));
        }
        lines
    }

    /// Says what disturbed the run, and past the stated limits that it is not valid.
    pub(super) fn judge(&mut self, record: &mut RunRecord, disturbance: &Disturbance, totals: &FarTotals) {
        let mut lateness = Lateness::new();
        for end in &self.ends {
            lateness.merge(&end.lock().base.lateness);
        }
        let here = lateness.figures();
        record.machine = Some(MachineRecord {
            senders_late: here.map(late),
            far_senders_late: totals.lateness_ns.map(late),
            socket_drops: Some(disturbance.socket_drops + totals.socket_drops),
            real_time: Some(disturbance.ordinary.is_none()),
            stolen_share: disturbance.stolen_share,
            ..MachineRecord::default()
        });
        record.warnings.extend(stolen::warning(disturbance.stolen_share));
        for (place, figures) in [("this host", here), ("the far host", totals.lateness_ns)] {
            let Some([p50, p99, max]) = figures else { continue };
            if p99 > LATE_NS {
                let ms = |ns: u64| ns as f64 / 1e6;
                let hint = disturbance
                    .ordinary
                    .as_ref()
                    .filter(|_| place == "this host")
                    .map_or(String::new(), |why| format!("; real-time scheduling was not allowed ({why})"));
                record.warnings.push(format!(
                    "{place} sent late: p50 {:.3} ms, p99 {:.3} ms, at most {:.3} ms{hint}",
                    ms(p50),
                    ms(p99),
                    ms(max)
                ));
            }
            record.valid &= p99 <= INVALID_LATE_NS;
        }
        for (place, drops) in [("this host", disturbance.socket_drops), ("the far host", totals.socket_drops)]
        {
            if drops > 0 {
                record.warnings.push(format!(
                    "{place}: {drops} datagrams found no room in the receiving socket; the path did not lose them"
                ));
                record.valid = false;
            }
        }
        if let Some(trouble) = &disturbance.trouble {
            record.warnings.push(trouble.clone());
            record.valid = false;
        }
    }
}

/// p50, p99 and maximum, as measured in ns.
fn late([p50, p99, max]: [u64; 3]) -> LatenessRecord {
    let [p50, p99, max] = [p50, p99, max].map(Duration::from_nanos);
    LatenessRecord { p50, p99, max }
}

/// A pacer whose p99 is later than this is worth a warning ...
const LATE_NS: u64 = 1_000_000;
/// ... and later than this makes the run invalid: a quarter of a codec's frame time (chosen; see docs/live.md).
const INVALID_LATE_NS: u64 = 5_000_000;
