//! The answers to the client's requests: before the run, during the run, and while the client fetches the
//! report.

use std::sync::atomic::Ordering;

use talkpath_flow::lateness_ns;
use talkpath_kernel::clock::{RunClock, monotonic};
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_units::{Duration, Histogram, Instant};

use super::Session;
use crate::protocol::{Answer, Control, ControlError, ROWS_PER_S, Request, SILENCE_S};

/// The longest time from the client's `go` to the beginning of the run.
const LATEST_START_NS: i64 = 5_000_000_000;
/// The longest wait for a request before the session checks its deadline, ms.
const WAIT_MS: i64 = 20;

/// How the server's part of a run ended.
pub(super) enum RunOutcome {
    /// The client stopped the run, and will fetch the report.
    Stopped,
    /// The client left, or the server stops. Nobody will fetch the report.
    SessionOver,
}

/// The time limit of one part of a session. It holds even if the client goes on talking.
struct Deadline {
    /// CLOCK_MONOTONIC after which the part has taken too long.
    at_ns: i64,
    /// The words for the client and for the log if the part has taken too long.
    why: String,
}

impl Deadline {
    fn after(seconds: u64, why: impl FnOnce() -> String) -> Self {
        let ns = i64::try_from(seconds.saturating_mul(1_000_000_000)).unwrap_or(i64::MAX);
        Self { at_ns: monotonic().saturating_add(ns), why: why() }
    }

    fn check(&self) -> Result<(), ControlError> {
        if monotonic() > self.at_ns { Err(ControlError::Overtime(self.why.clone())) } else { Ok(()) }
    }
}

impl Session<'_> {
    /// Answers the client until it sends `go`. Returns the beginning of the run in ns since 1970 on this
    /// host's clock, or `None` if the client leaves or the server stops.
    pub(super) fn prepare(&self, control: &mut Control<Request>) -> Result<Option<i64>, ControlError> {
        let seconds = self.shared.limits.prepare_s;
        let deadline = Deadline::after(seconds, || format!("the run did not begin within {seconds} s"));
        loop {
            match self.next_request(control, &deadline)? {
                None | Some(Request::Bye) => return Ok(None),
                Some(Request::Probe { number }) => self.answer_probe(control, number)?,
                Some(Request::Registrations) => {
                    let registrations = self.registrations();
                    self.log_other_address(&registrations);
                    control.send(&Answer::Registrations(registrations))?;
                }
                // A run cannot begin in the past. A run that begins too late would hold a seat for nothing.
                Some(Request::Go { start_ns }) => {
                    let now = self.host_clock.now_ns();
                    return Ok(Some(start_ns.clamp(now, now.saturating_add(LATEST_START_NS))));
                }
                Some(other) => return Err(out_of_turn(&other)),
            }
        }
    }

    /// Answers the client's questions during the run, until the client stops the run or leaves.
    pub(super) fn answer_during_run(
        &self,
        control: &mut Control<Request>,
        clock: RunClock,
    ) -> Result<RunOutcome, ControlError> {
        let limits = &self.shared.limits;
        // After this time the client is told that the run takes too long.
        let overdue = Duration::from_secs(limits.duration_s.saturating_add(SILENCE_S));
        // The session is broken off later, so that the client has time to stop the run and to fetch its
        // report.
        let seconds = limits.duration_s.saturating_add(3 * SILENCE_S);
        let deadline = Deadline::after(seconds, || format!("the run did not end within {seconds} s"));
        loop {
            match self.next_request(control, &deadline)? {
                None | Some(Request::Bye) => return Ok(RunOutcome::SessionOver),
                Some(Request::Stop) => return Ok(RunOutcome::Stopped),
                Some(Request::Ask) => {
                    let received_ns = self.host_clock.now_ns();
                    let flows = self.ends.iter().map(|end| end.lock().progress()).collect();
                    let trouble = if self.budget.is_spent() {
                        Some(format!("its limit of {} rows a session is reached", limits.rows))
                    } else if clock.now().since(Instant::ZERO) > overdue {
                        Some("the run took longer than its duration and drain".to_owned())
                    } else {
                        None
                    };
                    let sent_ns = self.host_clock.now_ns();
                    control.send(&Answer::Progress { flows, received_ns, sent_ns, trouble })?;
                }
                Some(other) => return Err(out_of_turn(&other)),
            }
        }
    }

    /// Sends the totals of the run, and the log of each flow that the client asks for, until the client
    /// leaves.
    pub(super) fn report(&self, control: &mut Control<Request>) -> Result<(), ControlError> {
        control.send(&self.totals())?;
        let limits = &self.shared.limits;
        let rows = limits.rows.saturating_sub(self.budget.left());
        let seconds = limits.report_s.saturating_add(rows / ROWS_PER_S);
        let deadline = Deadline::after(seconds, || format!("the report was not fetched within {seconds} s"));
        loop {
            match self.next_request(control, &deadline)? {
                None | Some(Request::Bye) => return Ok(()),
                Some(Request::Probe { number }) => self.answer_probe(control, number)?,
                Some(Request::Report { flow }) => self.send_log(control, flow, &deadline)?,
                // The client sent this question before it stopped the run. Nobody waits for the answer.
                Some(Request::Ask) => {}
                Some(other) => return Err(out_of_turn(&other)),
            }
        }
    }

    /// Makes the answer to the client's `stop`.
    fn totals(&self) -> Answer {
        let mut lateness = Histogram::new();
        for end in &self.ends {
            end.lock().add_lateness(&mut lateness);
        }
        let drops = self.drops.finish(self.shared.descriptors());
        Answer::Stopped {
            lateness_ns: lateness_ns(&lateness),
            drops: if self.has_datagrams() { drops } else { UdpDrops::none() },
            registrations: self.registrations(),
        }
    }

    /// Sends the log of the flow with the index `flow`. Sends only the end of a log if there is no such flow.
    fn send_log(
        &self,
        control: &mut Control<Request>,
        flow: u32,
        deadline: &Deadline,
    ) -> Result<(), ControlError> {
        if let Some(end) = usize::try_from(flow).ok().and_then(|index| self.ends.get(index)) {
            // The lock is released before the chunks are sent, because a slow client could hold it for long.
            let chunks = end.lock().log.chunks();
            for chunk in chunks {
                control.send(&Answer::Rows(Box::new(chunk)))?;
                self.wait_until_sent(control, deadline)?;
            }
        }
        control.send(&Answer::End)
    }

    fn answer_probe(&self, control: &mut Control<Request>, number: u32) -> Result<(), ControlError> {
        let received_ns = self.host_clock.now_ns();
        control.send(&Answer::Probe { number, received_ns, sent_ns: self.host_clock.now_ns() })
    }

    /// Waits for the client's next request. Returns `None` if the server stops.
    ///
    /// # Errors
    /// Returns [`ControlError`] if the connection ends, if the client falls silent, or if `deadline` is over.
    fn next_request(
        &self,
        control: &mut Control<Request>,
        deadline: &Deadline,
    ) -> Result<Option<Request>, ControlError> {
        loop {
            deadline.check()?;
            if self.shared.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.take_new_connection(control)?;
            if let Some(request) = control.receive_within(WAIT_MS)? {
                return Ok(Some(request));
            }
            control.check_alive()?;
        }
    }

    /// Continues on the client's new control connection, if the client has come back from another address.
    /// Its flows over UDP may then register from there.
    fn take_new_connection(&self, control: &mut Control<Request>) -> Result<(), ControlError> {
        let Some((mut next, from)) = self.resumption.1.take() else { return Ok(()) };
        next.set_timeout(control.timeout());
        let before = self.client.set(from.ip());
        (self.log)(&format!("{from}: continues the session of {before}"));
        next.send(&Answer::Resumed)?;
        *control = next;
        Ok(())
    }

    /// Waits until the socket has taken everything that is queued, so that a report does not fill the memory.
    fn wait_until_sent(
        &self,
        control: &mut Control<Request>,
        deadline: &Deadline,
    ) -> Result<(), ControlError> {
        while control.unsent_bytes() > 0 && !self.shared.stop.load(Ordering::Relaxed) {
            deadline.check()?;
            // The client has to be quiet while it reads a report, so each request is out of turn.
            if let Some(request) = control.receive_within(WAIT_MS)? {
                return Err(out_of_turn(&request));
            }
            control.check_alive()?;
        }
        Ok(())
    }
}

fn out_of_turn(request: &Request) -> ControlError {
    let name = format!("{request:?}");
    ControlError::Garbage(name.chars().take(20).collect())
}
