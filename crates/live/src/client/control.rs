//! The client's side of the control connection.
//!
//! The methods of [`ServerControl`] are called in this order: `greet`, `begin`, `probe`, `registrations`,
//! `go`, then `ask_progress` and `receive_progress` during the run, `stop`, `fetch_log` for each flow,
//! `probe` and `leave`.
//!
//! - *silence*: a time in which nothing came from the server.
//! - *probe*: a comparison of the server's clock with this host's clock, by a request and its answer.
//! - An error of the type `String` is one line for a person. It means that the connection has failed, or that
//!   the server broke the protocol.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

use super::connect;
use crate::key::Key;
use crate::protocol::{
    ANSWER_LIMIT, Admission, Answer, Control, ControlError, OUTAGE_S, REQUEST_LIMIT, ROWS_PER_S,
    Registrations, Request, SILENCE_S, VERSION, words,
};
use crate::seal::Opening;

/// The largest size of one flow's entry in an answer, bytes. An admission with a key and a certificate takes
/// 223 B.
const FLOW_ANSWER_BYTES: usize = 256;
/// The largest number of a server's warnings that the user reads. We chose 20, because talkpath's server has
/// at most a few.
const MAX_WARNINGS: usize = 20;
/// The largest number of a server's other ports that are tried. We chose 4, so that the tries take four
/// seconds at most.
const MAX_PORTS: usize = 4;
/// The longest time for the answer to a request, seconds. It allows a few round trips of the slowest path,
/// with one retransmission.
const ANSWER_S: u64 = 4;
/// The longest time in which a new control connection of a running session has to open. We chose 2 s, with
/// one retransmission of the SYN, because the run's main loop waits meanwhile.
const RESUME_CONNECT: Duration = Duration::from_secs(2);
/// The time for a report in addition to the time for its rows, seconds. We chose the time that a server
/// gives.
const REPORT_S: u64 = 60;
/// The length of a silence during a run above which it is listed, ns. We chose 3 s, in which six answers are
/// due. Two losses in a row of the connection's segments take only 0.6 s.
const SILENT_NS: i64 = 3_000_000_000;
/// The number of exchanges in a comparison of the clocks.
pub(super) const PROBES: u32 = 8;
/// The least number of exchanges, even if the path is slow.
const FEWEST_PROBES: usize = 4;
/// The time after which no further exchange begins if there were [`FEWEST_PROBES`], ns.
const PROBE_NS: i64 = 1_000_000_000;

/// The control connection to a server that has accepted this client.
pub(super) struct ServerControl {
    control: Control<Answer>,
    /// The server's name for messages.
    name: String,
    /// The server's address and port.
    address: SocketAddr,
    /// This host's address and port of the control connection.
    local: SocketAddr,
    /// The key that the server was started with, if it has one.
    key: Option<Key>,
    /// The secret of the session, with which it can be continued from another address.
    session_secret: String,
    /// When each request for progress that waits for its answer was sent, ns on this host's clock. `None` if
    /// the answer cannot serve as a probe. Answers come in the order of the requests.
    asked: VecDeque<Option<i64>>,
}

/// The server's answer to [`ServerControl::begin`].
pub(super) enum SessionAnswer {
    /// The server accepts the session.
    Ready {
        /// The admission of each flow.
        admissions: Vec<Admission>,
        /// The server's warnings, in words for a person.
        warnings: Vec<String>,
        /// Other ports on which the server takes UDP.
        other_ports: Vec<u16>,
    },
    /// The server refuses the session, for a reason in words for a person.
    Refused(String),
}

/// The server's answer about a run that is under way.
pub(super) struct ServerProgress {
    /// The progress of each flow at the server.
    pub(super) flows: Vec<EndProgress>,
    /// `None` if the answer cannot serve as a probe.
    pub(super) probe: Option<Probe>,
    /// The silence before this answer, if it is long enough to be listed.
    pub(super) silence_ns: Option<i64>,
}

/// The figures that the server reports in addition to the flows' logs.
#[derive(Default)]
pub(super) struct ServerTotals {
    pub(super) lateness_ns: Option<[u64; 3]>,
    pub(super) drops: Option<UdpDrops>,
    pub(super) registrations: Registrations,
}

/// The limits of a report. They hold for the logs of all flows of a session together.
pub(super) struct ReportLimits<'a> {
    rows: u64,
    budget: Arc<RowBudget>,
    /// CLOCK_MONOTONIC when the report began.
    begun_ns: i64,
    /// Ends the report when it becomes true. With `None` the user cannot end the report.
    interrupt: Option<&'a AtomicBool>,
}

impl<'a> ReportLimits<'a> {
    /// Makes the limits of a report that begins now and has up to `rows` rows. The report ends early if
    /// `interrupt` becomes true.
    pub(super) fn new(rows: u64, interrupt: Option<&'a AtomicBool>) -> Self {
        Self { rows, budget: RowBudget::new(rows), begun_ns: monotonic(), interrupt }
    }
}

fn seconds_since(begun_ns: i64) -> u64 {
    u64::try_from(monotonic() - begun_ns).unwrap_or(0) / 1_000_000_000
}

impl ServerControl {
    /// Carries out the handshake with the server `name`. If there is a key, both sides show that they hold
    /// it.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unwelcome`] if the server refuses the client, or if only one side has a key.
    /// Returns [`ArenaError::FarEnd`] for each other failure. The text is one line for a person.
    pub(super) fn greet(stream: TcpStream, name: &str, key: Option<&Key>) -> Result<Self, ArenaError> {
        let (address, local) = match (stream.peer_addr(), stream.local_addr()) {
            (Ok(peer), Ok(local)) => (peer, local),
            (Err(error), _) | (_, Err(error)) => {
                return Err(ArenaError::far_end(format!("{name} went away: {error}")));
            }
        };
        let control = Control::new(stream, ANSWER_LIMIT)
            .map_err(|error| ArenaError::far_end(format!("{name}: {error}")))?;
        let mut server = Self {
            control,
            name: name.to_owned(),
            address,
            local,
            key: key.cloned(),
            session_secret: String::new(),
            asked: VecDeque::new(),
        };
        let opening = key.map(Opening::new).transpose();
        let opening = opening.map_err(|error| ArenaError::far_end(format!("no handshake: {error}")))?;
        let word = opening.as_ref().map_or("", Opening::word);
        let answer = server
            .exchange(&Request::hello(VERSION, word))
            .map_err(|error| ArenaError::far_end(server.explain_missing_welcome(&error)))?;
        match (answer, opening) {
            (Answer::Welcome { .. }, None) => Ok(server),
            (Answer::Welcome { answer: None }, Some(_)) => Err(ArenaError::Unwelcome(format!(
                "{name} does not ask for a key, so it cannot show that it knows yours; leave the key out, or start it with one"
            ))),
            (Answer::Welcome { answer: Some(answer) }, Some(opening)) => {
                let seal = opening.finish(&answer).ok_or_else(|| {
                    let why = "let us in without knowing the key: it is not the server meant";
                    ArenaError::Unwelcome(format!("{name} {why}"))
                })?;
                server.control.start_sealing(seal);
                Ok(server)
            }
            // `Refused` is about the key or the version here. A server without a free seat answers `Busy`.
            (refused @ Answer::Refused { .. }, _) => Err(ArenaError::Unwelcome(server.unexpected(refused))),
            (other, _) => Err(ArenaError::far_end(server.unexpected(other))),
        }
    }

    /// Describes the run to the server. `flows` has the names of the flows for messages.
    ///
    /// # Errors
    /// Returns an error if the connection fails. If the description is too long for a server with the usual
    /// limits, the error says so.
    pub(super) fn begin(&mut self, session: &SessionSpec, flows: &[Flow]) -> Result<SessionAnswer, String> {
        // An answer may have an entry for each flow.
        self.control.set_line_limit(ANSWER_LIMIT.max(session.flows.len().saturating_mul(FLOW_ANSWER_BYTES)));
        let answer = self.exchange(&Request::Session(session.clone()));
        let answer = answer.map_err(|error| {
            let lost = self.explain(&error);
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
            Answer::Ready { flows, warnings, ports, resume } if flows.len() == session.flows.len() => {
                let warnings = warnings.iter().take(MAX_WARNINGS).map(|warning| words(warning)).collect();
                let is_other = |port: &u16| *port != 0 && *port != self.address.port();
                let other_ports = ports.into_iter().filter(is_other).take(MAX_PORTS).collect();
                self.session_secret = resume;
                Ok(SessionAnswer::Ready { admissions: flows, warnings, other_ports })
            }
            Answer::Refused { why, flow } => {
                let flow = flow.and_then(|index| flows.get(usize::try_from(index).ok()?));
                let about = flow.map_or(String::new(), |flow| format!("flow {}: ", flow.name));
                Ok(SessionAnswer::Refused(format!("{} refuses: {about}{}", self.name, words(&why))))
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Compares the clocks of both hosts in up to [`PROBES`] exchanges, or fewer if the path is slow.
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

    /// Compares the clocks in one exchange. The exchange also shows the server that the client is alive.
    pub(super) fn probe_once(&mut self, clock: HostClock, number: u32) -> Result<Probe, String> {
        let sent = clock.now_ns();
        self.send(&Request::Probe { number })?;
        match self.control.wait_for_message(SILENCE_S).map_err(|error| self.explain(&error))? {
            Answer::Probe { number: answered, received_ns, sent_ns } if answered == number => {
                let received = clock.now_ns();
                Ok(Probe { sent, far_received: received_ns, far_sent: sent_ns, received })
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks the server which registrations of flows over UDP have reached it.
    pub(super) fn registrations(&mut self) -> Result<Registrations, String> {
        match self.exchange(&Request::Registrations).map_err(|error| self.explain(&error))? {
            Answer::Registrations(registrations) => Ok(registrations),
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks the server to begin the run at `start_ns` on its clock. Returns the time at which the server
    /// begins.
    pub(super) fn go(&mut self, start_ns: i64) -> Result<i64, String> {
        match self.exchange(&Request::Go { start_ns }).map_err(|error| self.explain(&error))? {
            Answer::Going { start_ns } => {
                self.control.set_timeout(OUTAGE_S);
                Ok(start_ns)
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Continues the session on a new control connection from this host's address of now. The connection
    /// before is closed.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or if it has no such session any more. The connection
    /// before then stays.
    pub(super) fn resume(&mut self) -> Result<(), String> {
        if self.session_secret.is_empty() {
            return Err(format!("{} does not let its sessions continue", self.name));
        }
        let (stream, _) = connect::open_within(self.address, RESUME_CONNECT)
            .map_err(|error| format!("{} cannot be reached: {error}", self.name))?;
        let mut next = Self::greet(stream, &self.name, self.key.as_ref()).map_err(|why| why.to_string())?;
        next.control.set_line_limit(self.control.line_limit());
        next.control.set_timeout(OUTAGE_S);
        let resume = Request::Resume { secret: self.session_secret.clone() };
        match next.exchange(&resume).map_err(|error| self.explain(&error))? {
            Answer::Resumed => {}
            other => return Err(next.unexpected(other)),
        }
        next.session_secret = std::mem::take(&mut self.session_secret);
        *self = next;
        Ok(())
    }

    /// Asks for the progress of the flows at the server. [`ServerControl::receive_progress`] returns the
    /// answer. Asks nothing while an earlier request waits for space in the socket, because requests must not
    /// pile up during an outage of the path.
    pub(super) fn ask_progress(&mut self, clock: HostClock) -> Result<(), String> {
        if self.control.unsent_bytes() > 0 {
            return Ok(());
        }
        self.asked.push_back(Some(clock.now_ns()));
        self.send(&Request::Ask)
    }

    /// Waits at most `ms` milliseconds for an answer to [`ServerControl::ask_progress`].
    ///
    /// # Errors
    /// Returns an error if the connection fails, if the server is silent for too long, or if the server has
    /// ended the run.
    pub(super) fn receive_progress(
        &mut self,
        ms: i64,
        clock: HostClock,
    ) -> Result<Option<ServerProgress>, String> {
        let was_silent_ns = self.control.silence_ns();
        match self.receive_within(ms)? {
            Some(Answer::Progress { flows, received_ns, sent_ns, trouble: None }) => {
                let received = clock.now_ns();
                let silence_ns = (was_silent_ns > SILENT_NS).then_some(was_silent_ns);
                if silence_ns.is_some() {
                    // The answers to requests of an outage are late, so they cannot serve as probes.
                    self.asked.iter_mut().for_each(|sent| *sent = None);
                }
                let probe = self.asked.pop_front().flatten().map(|sent| Probe {
                    sent,
                    far_received: received_ns,
                    far_sent: sent_ns,
                    received,
                });
                Ok(Some(ServerProgress { flows, probe, silence_ns }))
            }
            Some(Answer::Progress { trouble: Some(why), .. }) => {
                Err(format!("{} ended the run: {}", self.name, words(&why)))
            }
            Some(other) => Err(self.unexpected(other)),
            None => {
                self.control.check_alive().map_err(|error| self.explain(&error))?;
                Ok(None)
            }
        }
    }

    /// Ends the run at the server. Waits for the answer for `timeout_s` seconds in all, even if answers to
    /// earlier requests come meanwhile.
    ///
    /// # Errors
    /// Returns an error if the connection fails, or if no answer comes in time.
    pub(super) fn stop(&mut self, timeout_s: u64) -> Result<ServerTotals, String> {
        self.send(&Request::Stop)?;
        let begun = monotonic();
        loop {
            let left_s = timeout_s.saturating_sub(seconds_since(begun));
            let answer = self.control.wait_for_message(left_s).map_err(|error| match error {
                // The message names the whole wait, and not only its last part.
                ControlError::Silent(_) => self.explain(&ControlError::Silent(timeout_s)),
                error => self.explain(&error),
            })?;
            match answer {
                Answer::Stopped { lateness_ns, drops, registrations } => {
                    return Ok(ServerTotals { lateness_ns, drops: Some(drops), registrations });
                }
                // This is the answer to an earlier request.
                Answer::Progress { .. } if self.asked.pop_front().is_some() => {}
                other => return Err(self.unexpected(other)),
            }
        }
    }

    /// Fetches the server's log of flow `index`.
    ///
    /// # Errors
    /// Returns an error if the connection fails, or if the logs exceed `limits`.
    pub(super) fn fetch_log(&mut self, index: usize, limits: &ReportLimits<'_>) -> Result<Chunk, String> {
        let flow = u32::try_from(index).unwrap_or(u32::MAX);
        self.send(&Request::Report { flow })?;
        let mut log = Chunk::default();
        loop {
            match self.next_answer(limits)? {
                Answer::Rows(chunk) => {
                    if !limits.budget.take(chunk.row_count()) {
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
    /// Returns an error if the connection fails, if the report's time is over, or if the user has interrupted
    /// the report.
    fn next_answer(&mut self, limits: &ReportLimits<'_>) -> Result<Answer, String> {
        let begun = monotonic();
        loop {
            let rows = limits.rows.saturating_sub(limits.budget.left());
            let seconds = seconds_since(limits.begun_ns);
            if seconds > REPORT_S + rows / ROWS_PER_S {
                return Err(format!("{} gave {} in {seconds} s", self.name, counted(rows, "row")));
            }
            if limits.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
                return Err(format!("{}'s report was interrupted", self.name));
            }
            if let Some(answer) = self.receive_within(100)? {
                return Ok(answer);
            }
            if seconds_since(begun) >= SILENCE_S {
                return Err(self.explain(&ControlError::Silent(SILENCE_S)));
            }
        }
    }

    /// Says goodbye to the server and closes the connection.
    pub(super) fn leave(mut self) {
        // The connection ends in each case, so an error does not matter.
        let _ = self.control.send(&Request::Bye);
    }

    /// Returns true if both sides have shown that they hold the key.
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
        self.control.wait_for_message(ANSWER_S)
    }

    fn send(&mut self, request: &Request) -> Result<(), String> {
        self.control.send(request).map_err(|error| self.explain(&error))
    }

    fn receive_within(&mut self, ms: i64) -> Result<Option<Answer>, String> {
        self.control.receive_within(ms).map_err(|error| self.explain(&error))
    }

    /// Explains why the first answer did not come. Perhaps the peer is no talkpath server.
    fn explain_missing_welcome(&self, error: &ControlError) -> String {
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
            _ => format!("{name}: {error}"),
        }
    }

    /// Explains why the connection failed.
    fn explain(&self, error: &ControlError) -> String {
        match error {
            ControlError::Io(_) => format!("{}: {error}", self.name),
            _ => format!("{} {error}", self.name),
        }
    }

    /// Explains an answer that ends the session: a refusal, or an answer that the client did not ask for.
    fn unexpected(&self, answer: Answer) -> String {
        match answer {
            Answer::Refused { why, .. } | Answer::Busy { why } => {
                format!("{} refuses: {}", self.name, words(&why))
            }
            _ => format!("{} broke the protocol: an answer came that nothing asked for", self.name),
        }
    }
}

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
        let ready =
            line(&Answer::Ready { flows, warnings: Vec::new(), ports: Vec::new(), resume: String::new() });
        assert!((ANSWER_LIMIT + 1..5_000 * FLOW_ANSWER_BYTES).contains(&ready.len()), "{} B", ready.len());
        let (there, near) = pair().unwrap();
        there.set_nonblocking(false).unwrap();
        (&there).write_all(&line(&Answer::Welcome { answer: None })).unwrap();
        let begun = std::thread::scope(|scope| {
            let mut server = ServerControl::greet(near, "far", None).unwrap();
            // Both ends say more than the sockets hold.
            scope.spawn(|| std::io::copy(&mut &there, &mut std::io::sink()));
            scope.spawn(|| (&there).write_all(&ready));
            server.begin(&session, &[])
        });
        assert!(matches!(begun, Ok(SessionAnswer::Ready { admissions, .. }) if admissions.len() == 5_000));
    }
}
