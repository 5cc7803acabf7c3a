//! The end of a run: the server stops, its logs come here, and both logs become the record.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use talkpath_arena::ArenaError;
use talkpath_arena::offset::{Offset, Probe};
use talkpath_kernel::clock::HostClock;
use talkpath_kernel::end::qlog_of;
use talkpath_kernel::join::RunEnd;
use talkpath_kernel::log::Chunk;
use talkpath_measure::RunRecord;
use talkpath_units::Instant;

use super::main_loop::{Observed, RunOutcome, Silence};
use super::own_network::{NetworkHistory, Outage};
use super::report_bound::report_bound;
use super::threads::Measured;
use super::{CLIENT_ROWS, Session, StartTimes};
use crate::client::control::{ReportLimits, ServerControl, ServerTotals};
use crate::protocol::{OUTAGE_S, SILENCE_S};

/// The server's report after a run.
struct ServerReport {
    /// The server's log of each flow.
    logs: Vec<Chunk>,
    /// The comparisons of the clocks after the run.
    probes: Vec<Probe>,
    totals: ServerTotals,
}

impl Session<'_> {
    /// Ends the run at the server, fetches the server's report, and makes the record. Without a report, the
    /// record holds what this host knows.
    ///
    /// # Errors
    /// Returns the errors of [`super::BegunRun::run`].
    pub(super) fn conclude(
        self,
        mut server: ServerControl,
        measured: Measured,
        probes_before: &[Probe],
        host_clock: HostClock,
        start: StartTimes,
    ) -> Result<RunRecord, ArenaError> {
        let Measured { observed: Observed { outcome, probes, silences, network }, disturbance } = measured;
        let mut abort_reason = match &outcome {
            RunOutcome::Aborted(why) => Some(why.clone()),
            RunOutcome::NoThread(error) => return Err(ArenaError::no_thread(error)),
            RunOutcome::Drained | RunOutcome::Interrupted => None,
        };
        let NetworkHistory { outages, moved, followed } = network;
        let has_moved = moved.is_some();
        let report = match self.fetch_report_after(&outcome, has_moved, &mut server, host_clock) {
            Ok(report) => Some(report),
            Err(why) => {
                abort_reason.get_or_insert(moved.unwrap_or(why));
                None
            }
        };
        let server_port = server.address().port();
        let has_report = report.is_some();
        if has_report {
            server.leave();
        }
        let (logs, probes_after, totals) = match report {
            Some(ServerReport { logs, probes, totals }) => (Some(logs), probes, totals),
            None => (None, Vec::new(), ServerTotals::default()),
        };
        let mut offset = Offset::new(probes_before, &probes, &probes_after);
        if self.clocks_synchronised {
            offset = offset.map(Offset::synchronised);
        }
        let is_drained = abort_reason.is_none() && matches!(outcome, RunOutcome::Drained);
        let run_end = if is_drained { RunEnd::Drained } else { RunEnd::Cut };
        // If the user interrupts the report, the run is interrupted too.
        let is_interrupted = matches!(outcome, RunOutcome::Interrupted)
            || !has_report && self.plan.interrupt.load(Ordering::Relaxed);
        let logs = logs.map(|logs| self.far_logs(&logs, offset, start));
        let mut record = self.record(logs.as_deref(), offset, run_end);
        let qlog = qlog_of(&self.scenario.name, &self.ends);
        *self.qlog.lock().unwrap_or_else(PoisonError::into_inner) = qlog;
        let held_ns = self.far_turn_rounds_ns(logs.as_deref()).max();
        let far_lateness_ns = totals.lateness_ns.map(|[.., max]| max).into_iter().chain(held_ns).max();
        record.warnings.extend(silences.iter().map(|silence| {
            let cause = SilenceCause::find(silence, &outages, far_lateness_ns);
            silence_warning(silence, cause)
        }));
        // A report has the registrations of the whole session.
        let registrations = if has_report { &totals.registrations } else { &self.early_registrations };
        let own_moves = u32::try_from(followed.len()).unwrap_or(u32::MAX);
        record.warnings.extend(self.way_warnings(registrations, server_port, own_moves, has_report));
        record.warnings.extend(followed);
        self.judge(&mut record, &disturbance, &totals, logs.as_deref());
        match abort_reason {
            _ if is_interrupted => Err(ArenaError::Interrupted { partial: Some(Box::new(record)) }),
            Some(what) => Err(ArenaError::FarEnd { what, partial: Some(Box::new(record)) }),
            None => Ok(record),
        }
    }

    /// Fetches the report of a run that ended with `outcome`. Even if the run was aborted, the server may
    /// still have a report. But the server then gets less time for it, and so it does if this host has moved
    /// to another address, because the address would have to come back.
    ///
    /// # Errors
    /// Returns the errors of [`Session::fetch_report`].
    fn fetch_report_after(
        &self,
        outcome: &RunOutcome,
        has_moved: bool,
        server: &mut ServerControl,
        host_clock: HostClock,
    ) -> Result<ServerReport, String> {
        let has_time = matches!(outcome, RunOutcome::Drained) && !has_moved;
        let timeout_s = if has_time { OUTAGE_S } else { SILENCE_S };
        // A user who has interrupted the run still wants the report, so this interrupt does not end the
        // report.
        let is_interrupted = matches!(outcome, RunOutcome::Interrupted);
        let interrupt = if is_interrupted { None } else { Some(self.plan.interrupt) };
        self.fetch_report(server, host_clock, timeout_s, interrupt)
    }

    /// Ends the run at the server, and fetches the server's log of each flow. Then compares the clocks
    /// again.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails or the report is interrupted.
    fn fetch_report(
        &self,
        server: &mut ServerControl,
        host_clock: HostClock,
        timeout_s: u64,
        interrupt: Option<&AtomicBool>,
    ) -> Result<ServerReport, String> {
        let totals = server.stop(timeout_s)?;
        let progress = self.ends.iter().map(|end| end.lock().progress());
        let rows = report_bound(&self.spec, progress).min(CLIENT_ROWS);
        let limits = ReportLimits::new(rows, interrupt);
        let mut logs = Vec::new();
        for index in 0..self.ends.len() {
            logs.push(server.fetch_log(index, &limits)?);
        }
        let probes = server.probe(host_clock)?;
        Ok(ServerReport { logs, probes, totals })
    }
}

/// The cause of a silence of the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceCause {
    /// This host had no network.
    NoNetworkHere,
    /// The far host did nothing meanwhile.
    FarHostStoodStill,
    /// The path was broken, or one of the causes above that nobody noticed.
    Unknown,
}

impl SilenceCause {
    /// Finds the cause. `far_lateness_ns` says how late the far host sent a message or an echo at most. A
    /// host that stands still sends what became due meanwhile when it goes on.
    fn find(silence: &Silence, outages: &[Outage], far_lateness_ns: Option<u64>) -> Self {
        let half_ns = silence.length.as_nanos() / 2;
        let to = silence.from.saturating_add(silence.length);
        let without_network_ns = outages.iter().map(|outage| outage.within(silence.from, to).as_nanos());
        if without_network_ns.sum::<u64>() > half_ns {
            Self::NoNetworkHere
        } else if far_lateness_ns.is_some_and(|lateness_ns| lateness_ns > half_ns) {
            Self::FarHostStoodStill
        } else {
            Self::Unknown
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::NoNetworkHere => "this host had no network",
            Self::FarHostStoodStill => "the far host stood still, as its own senders show",
            Self::Unknown => "the path was broken, or the far host stood still",
        }
    }
}

/// Makes the warning about a silence of the control connection.
fn silence_warning(silence: &Silence, cause: SilenceCause) -> String {
    let from_s = silence.from.since(Instant::ZERO).as_millis_f64() / 1e3;
    let length_s = silence.length.as_millis_f64() / 1e3;
    format!(
        "from {from_s:.1} s of the run the far end was silent for {length_s:.1} s: {}; nobody looked at its clock meanwhile",
        cause.words()
    )
}

#[cfg(test)]
mod tests {
    use talkpath_units::Duration;

    use super::super::own_network::outage;
    use super::*;

    #[test]
    fn a_silence_is_blamed_on_the_host_of_which_something_is_known_and_else_on_nobody() {
        let silence = Silence { from: Instant::from_secs(4), length: Duration::from_secs(4) };
        let find = |outages: &[Outage], lateness_ms: Option<u64>| {
            SilenceCause::find(&silence, outages, lateness_ms.map(|ms| ms * 1_000_000))
        };
        let down = |from, to| outage(Instant::from_secs(from), Instant::from_secs(to));
        assert_eq!(find(&[down(3, 7)], Some(5)), SilenceCause::NoNetworkHere);
        assert_eq!(find(&[down(3, 5)], Some(3_000)), SilenceCause::FarHostStoodStill);
        assert_eq!(find(&[down(9, 20)], Some(5)), SilenceCause::Unknown);
        assert_eq!(find(&[], None), SilenceCause::Unknown);
    }
}
