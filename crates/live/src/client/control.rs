//! The client's side of the control connection.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talkpath_arena::ArenaError;
use talkpath_arena::offset::Probe;
use talkpath_kernel::clock::{HostClock, monotonic};
use talkpath_kernel::log::{Chunk, RowBudget};
use talkpath_kernel::ports::DEFAULT_PORT;
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::SessionSpec;
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_model::Flow;
use talkpath_units::counted;

use crate::key::Key;
use crate::protocol::{
    ANSWER_LIMIT, Admission, Answer, Control, ControlError, OUTAGE_S, REQUEST_LIMIT, ROWS_PER_S,
    Registrations, Request, SILENCE_S, VERSION, words,
};
use crate::seal::Opening;

/// The control connection to a server that has accepted this client.
pub(super) struct ServerControl {
    control: Control<Answer>,
    /// The server's name for messages.
    name: String,
    /// The server's address and port.
    address: SocketAddr,
    /// This host's address and port of the control connection.
    local: SocketAddr,
    /// When each question that waits for its answer was sent, ns on this host's clock. `None` if the answer
    /// cannot serve as a probe of the server's clock. Answers come in the order of the questions.
    asked: VecDeque<Option<i64>>,
}

/// The server's answer about a run that is under way.
pub(super) struct Heard {
    /// The progress of each flow at the server.
    pub(super) flows: Vec<EndProgress>,
    /// A comparison of the server's clock with this host's clock, if the answer can serve as one.
    pub(super) probe: Option<Probe>,
    /// How long nothing had come from the server before this answer, if the silence is long enough to be
    /// listed.
    pub(super) silence_ns: Option<i64>,
}

/// The admission of each flow and the server's warnings, or the reason why the server refuses the session.
pub(super) type Beginning = Result<(Vec<Admission>, Vec<String>), String>;

/// The figures that the server reports in addition to the flows' logs.
#[derive(Default)]
pub(super) struct ServerTotals {
    pub(super) lateness_ns: Option<[u64; 3]>,
    pub(super) drops: Option<UdpDrops>,
    pub(super) registrations: Registrations,
}

/// The bounds of a report. They hold for the logs of all flows of a session together.
pub(super) struct Report<'a> {
    rows: u64,
    budget: Arc<RowBudget>,
    /// CLOCK_MONOTONIC when the report began.
    begun_ns: i64,
    /// Ends the report when it becomes true. With `None` the user cannot end the report.
    interrupt: Option<&'a AtomicBool>,
}

impl<'a> Report<'a> {
    /// Begins a report of up to `rows` rows. The report ends early if `interrupt` becomes true.
    pub(super) fn begin(rows: u64, interrupt: Option<&'a AtomicBool>) -> Self {
        Self { rows, budget: RowBudget::new(rows), begun_ns: monotonic(), interrupt }
    }
}

fn seconds_since(begun_ns: i64) -> u64 {
    u64::try_from(monotonic() - begun_ns).unwrap_or(0) / 1_000_000_000
}

impl ServerControl {
    /// Carries out the handshake. If there is a key, both sides show in it that they hold the key.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unwelcome`] if the server refuses the client, or if only one side has a key.
    /// Returns [`ArenaError::FarEnd`] for each other failure. The text is one line for a person, with the
    /// host's name.
    pub(super) fn greet(stream: TcpStream, name: &str, key: Option<&Key>) -> Result<Self, ArenaError> {
        let (address, local) = match (stream.peer_addr(), stream.local_addr()) {
            (Ok(peer), Ok(local)) => (peer, local),
            (Err(error), _) | (_, Err(error)) => {
                return Err(ArenaError::far_end(format!("{name} went away: {error}")));
            }
        };
        let control = Control::new(stream, ANSWER_LIMIT)
            .map_err(|error| ArenaError::far_end(format!("{name}: {error}")))?;
        let mut far = Self { control, name: name.to_owned(), address, local, asked: VecDeque::new() };
        let opening = key.map(Opening::new).transpose();
        let opening = opening.map_err(|error| ArenaError::far_end(format!("no handshake: {error}")))?;
        let word = opening.as_ref().map_or("", Opening::word);
        let answer = far
            .exchange(&Request::hello(VERSION, word))
            .map_err(|error| ArenaError::far_end(far.no_server(&error)))?;
        match (answer, opening) {
            (Answer::Welcome { .. }, None) => Ok(far),
            (Answer::Welcome { answer: None }, Some(_)) => Err(ArenaError::Unwelcome(format!(
                "{name} does not ask for a key, so it cannot show that it knows yours; leave the key out, or start it with one"
            ))),
            (Answer::Welcome { answer: Some(answer) }, Some(opening)) => {
                let seal = opening.finish(&answer).ok_or_else(|| {
                    let why = "let us in without knowing the key: it is not the server meant";
                    ArenaError::Unwelcome(format!("{name} {why}"))
                })?;
                far.control.start_sealing(seal);
                Ok(far)
            }
            // `Refused` is about the key or the version here. A server without a free seat answers `Busy`.
            (refused @ Answer::Refused { .. }, _) => Err(ArenaError::Unwelcome(far.unexpected(refused))),
            (other, _) => Err(ArenaError::far_end(far.unexpected(other))),
        }
    }

    /// Describes the run to the server. Returns the admission of each flow and the server's warnings. `flows`
    /// has the names of the flows for messages.
    ///
    /// # Errors
    /// Returns `Ok(Err)` with the reason if the server refuses the session. Returns `Err` with one line for a
    /// person if the connection fails.
    pub(super) fn begin(&mut self, session: &SessionSpec, flows: &[Flow]) -> Result<Beginning, String> {
        // An answer may have an entry for each flow.
        self.control.set_line_limit(ANSWER_LIMIT.max(session.flows.len().saturating_mul(FLOW_ANSWER_BYTES)));
        let answer = self.exchange(&Request::Session(session.clone()));
        let answer = answer.map_err(|error| {
            let lost = self.lost(&error);
            match serde_json::to_vec(session) {
                Ok(line) if line.len() > REQUEST_LIMIT => format!(
                    "{lost}; {} kB describe {}: was it started with --max-flows {}?",
                    line.len() / 1000,
                    counted(session.flows.len(), "flow"),
                    session.flows.len(),
                ),
                _ => lost,
            }
        })?;
        match answer {
            Answer::Ready { flows, warnings } if flows.len() == session.flows.len() => {
                let warnings = warnings.iter().take(MAX_WARNINGS).map(|warning| words(warning)).collect();
                Ok(Ok((flows, warnings)))
            }
            Answer::Refused { why, flow } => {
                let flow = flow.and_then(|index| flows.get(usize::try_from(index).ok()?));
                let about = flow.map_or(String::new(), |flow| format!("flow {}: ", flow.name));
                Ok(Err(format!("{} refuses: {about}{}", self.name, words(&why))))
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Compares the clocks of both hosts in up to [`PROBES`] exchanges, or fewer if the path is slow.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails.
    pub(super) fn probe(&mut self, clock: HostClock) -> Result<Vec<Probe>, String> {
        let begun = clock.now_ns();
        let mut probes = Vec::new();
        for number in 0..PROBES {
            probes.push(self.probe_once(clock, number)?);
            if probes.len() >= FEWEST_PROBES && clock.now_ns() - begun > PROBE_NS {
                break;
            }
        }
        Ok(probes)
    }

    /// Compares the clocks in one exchange. The exchange also shows the server that the client lives.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails.
    pub(super) fn probe_once(&mut self, clock: HostClock, number: u32) -> Result<Probe, String> {
        let sent = clock.now_ns();
        self.control.send(&Request::Probe { number }).map_err(|error| self.lost(&error))?;
        match self.control.expect(SILENCE_S).map_err(|error| self.lost(&error))? {
            Answer::Probe { number: answered, received_ns, sent_ns } if answered == number => {
                let received = clock.now_ns();
                Ok(Probe { sent, far_received: received_ns, far_sent: sent_ns, received })
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks the server which registrations of flows over UDP have reached it.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails.
    pub(super) fn registrations(&mut self) -> Result<Registrations, String> {
        match self.exchange(&Request::Registrations).map_err(|error| self.lost(&error))? {
            Answer::Registrations(registrations) => Ok(registrations),
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks the server to begin the run at `start_ns` on its clock. Returns the time at which the server
    /// begins.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails.
    pub(super) fn go(&mut self, start_ns: i64) -> Result<i64, String> {
        match self.exchange(&Request::Go { start_ns }).map_err(|error| self.lost(&error))? {
            Answer::Going { start_ns } => {
                self.control.set_patience(OUTAGE_S);
                Ok(start_ns)
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks for the progress of the flows at the server. [`ServerControl::hear`] returns the answer. Asks
    /// nothing while an earlier question waits for room in the socket.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails.
    pub(super) fn ask(&mut self, clock: HostClock) -> Result<(), String> {
        // During an outage of the path, questions must not pile up.
        if self.control.unsent() > 0 {
            return Ok(());
        }
        self.asked.push_back(Some(clock.now_ns()));
        self.control.send(&Request::Ask).map_err(|error| self.lost(&error))
    }

    /// Waits at most `ms` milliseconds for an answer to [`ServerControl::ask`].
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails, if the server is silent for too long, or if the
    /// server has ended the run.
    pub(super) fn hear(&mut self, ms: i64, clock: HostClock) -> Result<Option<Heard>, String> {
        let was_silent_ns = self.control.silence_ns();
        match self.control.receive_within(ms).map_err(|error| self.lost(&error))? {
            Some(Answer::Progress { flows, received_ns, sent_ns, trouble: None }) => {
                let received = clock.now_ns();
                let silence_ns = (was_silent_ns > SILENT_NS).then_some(was_silent_ns);
                if silence_ns.is_some() {
                    // The answers to questions of an outage are late, so they cannot serve as probes of the
                    // clock.
                    self.asked.iter_mut().for_each(|sent| *sent = None);
                }
                let probe = self.asked.pop_front().flatten().map(|sent| Probe {
                    sent,
                    far_received: received_ns,
                    far_sent: sent_ns,
                    received,
                });
                Ok(Some(Heard { flows, probe, silence_ns }))
            }
            Some(Answer::Progress { trouble: Some(why), .. }) => {
                Err(format!("{} ended the run: {}", self.name, words(&why)))
            }
            Some(other) => Err(self.unexpected(other)),
            None => {
                self.control.check_alive().map_err(|error| self.lost(&error))?;
                Ok(None)
            }
        }
    }

    /// Ends the run at the server. Waits for the answer for `patience_s` seconds in all, even if answers to
    /// earlier questions come meanwhile.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails, or if no answer comes in time.
    pub(super) fn stop(&mut self, patience_s: u64) -> Result<ServerTotals, String> {
        self.control.send(&Request::Stop).map_err(|error| self.lost(&error))?;
        let begun = monotonic();
        loop {
            let left_s = patience_s.saturating_sub(seconds_since(begun));
            let answer = self.control.expect(left_s).map_err(|error| match error {
                // The message names the whole wait, and not only its last part.
                ControlError::Silent(_) => self.lost(&ControlError::Silent(patience_s)),
                error => self.lost(&error),
            })?;
            match answer {
                Answer::Stopped { lateness_ns, drops, registrations } => {
                    return Ok(ServerTotals { lateness_ns, drops: Some(drops), registrations });
                }
                // This is the answer to an earlier question.
                Answer::Progress { .. } if self.asked.pop_front().is_some() => {}
                other => return Err(self.unexpected(other)),
            }
        }
    }

    /// Fetches the server's log of flow `index`. `report` has the bounds for the logs of all flows.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails, or if the logs exceed their bounds.
    pub(super) fn report(&mut self, index: usize, report: &Report<'_>) -> Result<Chunk, String> {
        let flow = u32::try_from(index).unwrap_or(u32::MAX);
        self.control.send(&Request::Report { flow }).map_err(|error| self.lost(&error))?;
        let mut log = Chunk::default();
        loop {
            match self.next_answer(report)? {
                Answer::Rows(chunk) => {
                    if !report.budget.take(chunk.row_count()) {
                        return Err(format!("{} reports more than it can have seen", self.name));
                    }
                    log.extend(*chunk);
                }
                Answer::End => return Ok(log),
                other => return Err(self.unexpected(other)),
            }
        }
    }

    /// Waits for the next answer of a report.
    ///
    /// # Errors
    /// Returns one line for a person if the connection fails, if the report's time is over, or if the user
    /// has interrupted the report.
    fn next_answer(&mut self, report: &Report<'_>) -> Result<Answer, String> {
        let begun = monotonic();
        loop {
            let rows = report.rows.saturating_sub(report.budget.left());
            let seconds = seconds_since(report.begun_ns);
            if seconds > REPORT_S + rows / ROWS_PER_S {
                return Err(format!("{} gave {} in {seconds} s", self.name, counted(rows, "row")));
            }
            if report.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
                return Err(format!("{}'s report was interrupted", self.name));
            }
            if let Some(answer) = self.control.receive_within(100).map_err(|error| self.lost(&error))? {
                return Ok(answer);
            }
            if seconds_since(begun) >= SILENCE_S {
                return Err(self.lost(&ControlError::Silent(SILENCE_S)));
            }
        }
    }

    /// Says goodbye to the server and closes the connection.
    pub(super) fn leave(mut self) {
        // The connection ends in each case, so an error does not matter.
        let _ = self.control.send(&Request::Bye);
    }

    /// Whether both sides have shown that they hold the key.
    pub(super) const fn is_sealed(&self) -> bool {
        self.control.is_sealed()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the server's address and port, which serve for UDP and for the connections of flows, too.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns this host's address on the path to the server, with the port of the control connection.
    pub(super) const fn local(&self) -> SocketAddr {
        self.local
    }

    fn exchange(&mut self, request: &Request) -> Result<Answer, ControlError> {
        self.control.send(request)?;
        self.control.expect(ANSWER_S)
    }

    /// Says why the first answer did not come. Perhaps the peer is no talkpath server.
    fn no_server(&self, error: &ControlError) -> String {
        let name = &self.name;
        match error {
            ControlError::Garbage(_) => format!(
                "{name} {error}; another service listens there; `talkpath serve` has port {} by default",
                DEFAULT_PORT
            ),
            ControlError::Closed => format!(
                "{name} closed the connection without an answer; it is no talkpath server, or it is too busy for another client"
            ),
            ControlError::Silent(_) => {
                format!("{name} takes connections but {error}; it is no talkpath server, or it hangs")
            }
            ControlError::Unread(_)
            | ControlError::Overtime(_)
            | ControlError::ThisHost(_)
            | ControlError::Unsealed
            | ControlError::Io(_) => {
                format!("{name}: {error}")
            }
        }
    }

    fn lost(&self, error: &ControlError) -> String {
        match error {
            ControlError::Io(_) => format!("{}: {error}", self.name),
            _ => format!("{} {error}", self.name),
        }
    }

    fn unexpected(&self, answer: Answer) -> String {
        match answer {
            Answer::Refused { why, .. } | Answer::Busy { why } => {
                format!("{} refuses: {}", self.name, words(&why))
            }
            _ => format!("{} broke the protocol: an answer came that nothing asked for", self.name),
        }
    }
}

/// The largest size of one flow's entry in an answer, bytes. An admission with a key and a certificate takes
/// 223 B.
const FLOW_ANSWER_BYTES: usize = 256;
/// The largest number of a server's warnings that the user reads (chosen: talkpath's server has at most a
/// few).
const MAX_WARNINGS: usize = 20;
/// The longest time for the answer to a request, seconds. It allows a few round trips of the slowest path,
/// with one retransmission.
const ANSWER_S: u64 = 4;
/// The time for a report in addition to the time for its rows, seconds (chosen: the same as a server gives).
const REPORT_S: u64 = 60;
/// A silence during a run is listed if it is longer than this (chosen: six progress messages. Two losses in a
/// row of the control connection's segments take 0.6 s).
const SILENT_NS: i64 = 3_000_000_000;
/// The number of exchanges in a comparison of the clocks.
pub(super) const PROBES: u32 = 8;
/// The least number of exchanges, even if the path is slow.
const FEWEST_PROBES: usize = 4;
/// No further exchange begins after this time, if there were [`FEWEST_PROBES`].
const PROBE_NS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::fuzzing::wire::{line, pair};
    use crate::protocol::Admission;

    #[test]
    fn an_answer_about_as_many_flows_as_were_asked_for_is_read_whole() {
        let call = r#"{"transport":{"udp":{"receive_buffer":null,"ecn":false}},"start_ns":0,"due":"start","file":null,
            "workload":{"voice":{"ptime_ns":20000000,"size":160}},"echo_per_read":false,"is_up":true}"#;
        let flows = vec![serde_json::from_str(call).unwrap(); 5_000];
        let session = SessionSpec { flows, warm_up_ns: 0, duration_ns: 1, drain_ns: 0 };
        let admission = |_| Admission {
            secret: "0".repeat(32),
            token: u32::MAX,
            tag_key: Some("0".repeat(64)),
            certificate: Some("0".repeat(64)),
        };
        let flows = (0..5_000).map(admission).collect();
        let ready = line(&Answer::Ready { flows, warnings: Vec::new() });
        assert!((ANSWER_LIMIT + 1..5_000 * FLOW_ANSWER_BYTES).contains(&ready.len()), "{} B", ready.len());
        let (there, near) = pair().unwrap();
        there.set_nonblocking(false).unwrap();
        (&there).write_all(&line(&Answer::Welcome { answer: None })).unwrap();
        let begun = std::thread::scope(|scope| {
            let mut far = ServerControl::greet(near, "far", None).unwrap();
            // Both ends say more than the sockets hold.
            scope.spawn(|| std::io::copy(&mut &there, &mut std::io::sink()));
            scope.spawn(|| (&there).write_all(&ready));
            far.begin(&session, &[])
        });
        assert_eq!(begun.unwrap().unwrap().0.len(), 5_000);
    }
}
