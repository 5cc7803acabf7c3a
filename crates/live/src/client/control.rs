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

use crate::key::Key;
use crate::protocol::{
    ANSWER_LIMIT, Admission, Answer, Control, ControlError, OUTAGE_S, REQUEST_LIMIT, ROWS_PER_S,
    Registrations, Request, SILENCE_S, VERSION, hello, words,
};
use crate::seal::Opening;

/// A server that has let us in.
pub(super) struct ServerControl {
    control: Control<Answer>,
    name: String,
    address: SocketAddr,
    local: SocketAddr,
    /// When each question that waits for its answer was sent, ns on our clock; `None` if that says nothing of
    /// the server's clock. Answers come in the order of the questions.
    asked: VecDeque<Option<i64>>,
}

/// What the server said of a run under way.
pub(super) struct Heard {
    /// How far its flows are.
    pub(super) flows: Vec<EndProgress>,
    /// Its clock against ours.
    pub(super) probe: Option<Probe>,
    /// How long nothing at all had come from it before, if that was long.
    pub(super) silence_ns: Option<i64>,
}

/// How flows are joined and what bends the run there, or why the server will not.
pub(super) type Beginning = Result<(Vec<Admission>, Vec<String>), String>;

/// What the server counted besides its flows' logs.
#[derive(Default)]
pub(super) struct ServerTotals {
    pub(super) lateness_ns: Option<[u64; 3]>,
    pub(super) drops: Option<UdpDrops>,
    pub(super) registrations: Registrations,
}

/// What bounds the report of a session's flows, all together.
pub(super) struct Report<'a> {
    rows: u64,
    budget: Arc<RowBudget>,
    /// CLOCK_MONOTONIC.
    begun_ns: i64,
    interrupt: Option<&'a AtomicBool>,
}

impl<'a> Report<'a> {
    /// One of up to `rows` that begins now; `interrupt` ends it.
    pub(super) fn begin(rows: u64, interrupt: Option<&'a AtomicBool>) -> Self {
        Self { rows, budget: RowBudget::new(rows), begun_ns: monotonic(), interrupt }
    }
}

fn seconds_since(begun_ns: i64) -> u64 {
    u64::try_from(monotonic() - begun_ns).unwrap_or(0) / 1_000_000_000
}

impl ServerControl {
    /// Hello and welcome, with which either end shows that it holds the key, if there is one.
    ///
    /// # Errors
    /// [`ArenaError::FarEnd`] or [`ArenaError::Unwelcome`], in one line for a person, with the host's name.
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
            .exchange(&hello(VERSION, word))
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
            // All sessions taken is another answer: this one is about the key or the version.
            (refused @ Answer::Refused { .. }, _) => Err(ArenaError::Unwelcome(far.unexpected(refused))),
            (other, _) => Err(ArenaError::far_end(far.unexpected(other))),
        }
    }

    /// Describes the run of `flows`; gives how they are joined and what bends the run there.
    ///
    /// # Errors
    /// In one line for a person; `Ok(Err)` if the server will not, with its reason.
    pub(super) fn begin(&mut self, session: &SessionSpec, flows: &[Flow]) -> Result<Beginning, String> {
        // An answer may have something of each flow.
        self.control.set_line_limit(ANSWER_LIMIT.max(session.flows.len().saturating_mul(FLOW_ANSWER_BYTES)));
        let answer = self.exchange(&Request::Session(session.clone()));
        let answer = answer.map_err(|error| {
            let lost = self.lost(&error);
            match serde_json::to_vec(session) {
                Ok(line) if line.len() > REQUEST_LIMIT => format!(
                    "{lost}; {} flows take {} kB to describe: was it started with --max-flows {0}?",
                    session.flows.len(),
                    line.len() / 1000,
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

    /// Compares the clocks: up to [`PROBES`] exchanges, fewer if the path is slow.
    ///
    /// # Errors
    /// In one line for a person.
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

    /// One exchange of the clocks; a sign of life, too.
    ///
    /// # Errors
    /// In one line for a person.
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

    /// What the server saw of the registrations of flows over UDP.
    ///
    /// # Errors
    /// In one line for a person.
    pub(super) fn registrations(&mut self) -> Result<Registrations, String> {
        match self.exchange(&Request::Registrations).map_err(|error| self.lost(&error))? {
            Answer::Registrations(registrations) => Ok(registrations),
            other => Err(self.unexpected(other)),
        }
    }

    /// The run begins at `start_ns` on the server's clock, or when the server then says.
    ///
    /// # Errors
    /// In one line for a person.
    pub(super) fn go(&mut self, start_ns: i64) -> Result<i64, String> {
        match self.exchange(&Request::Go { start_ns }).map_err(|error| self.lost(&error))? {
            Answer::Going { start_ns } => {
                self.control.set_patience(OUTAGE_S);
                Ok(start_ns)
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks how far the flows are there; the answer comes by [`ServerControl::hear`].
    ///
    /// # Errors
    /// In one line for a person.
    pub(super) fn ask(&mut self, clock: HostClock) -> Result<(), String> {
        // Questions that a dead path never took must not pile up.
        if self.control.unsent() > 0 {
            return Ok(());
        }
        self.asked.push_back(Some(clock.now_ns()));
        self.control.send(&Request::Ask).map_err(|error| self.lost(&error))
    }

    /// Waits at most `ms` for an answer to [`ServerControl::ask`].
    ///
    /// # Errors
    /// In one line for a person: also if the server is silent for too long, or gave the run up.
    pub(super) fn hear(&mut self, ms: i64, clock: HostClock) -> Result<Option<Heard>, String> {
        let was_silent_ns = self.control.silence_ns();
        match self.control.receive_within(ms).map_err(|error| self.lost(&error))? {
            Some(Answer::Progress { flows, received_ns, sent_ns, trouble: None }) => {
                let received = clock.now_ns();
                let silence_ns = (was_silent_ns > SILENT_NS).then_some(was_silent_ns);
                if silence_ns.is_some() {
                    // What was asked in an outage came with a delay that says nothing of the clock.
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

    /// Ends the run there. Waits for `patience_s`, whatever else comes meanwhile.
    ///
    /// # Errors
    /// In one line for a person.
    pub(super) fn stop(&mut self, patience_s: u64) -> Result<ServerTotals, String> {
        self.control.send(&Request::Stop).map_err(|error| self.lost(&error))?;
        let begun = monotonic();
        loop {
            let left_s = patience_s.saturating_sub(seconds_since(begun));
            let answer = self.control.expect(left_s).map_err(|error| match error {
                // Not only for what is left after answers to earlier questions.
                ControlError::Silent(_) => self.lost(&ControlError::Silent(patience_s)),
                error => self.lost(&error),
            })?;
            match answer {
                Answer::Stopped { lateness_ns, drops, registrations } => {
                    return Ok(ServerTotals { lateness_ns, drops: Some(drops), registrations });
                }
                // The answer to an earlier question. Few are open.
                Answer::Progress { .. } if self.asked.pop_front().is_some() => {}
                other => return Err(self.unexpected(other)),
            }
        }
    }

    /// The server's log of flow `index`; `report` is that of all flows.
    ///
    /// # Errors
    /// In one line for a person.
    pub(super) fn report(&mut self, index: usize, report: &Report<'_>) -> Result<Chunk, String> {
        let flow = u32::try_from(index).unwrap_or(u32::MAX);
        self.control.send(&Request::Report { flow }).map_err(|error| self.lost(&error))?;
        let mut log = Chunk::default();
        loop {
            match self.next_of(report)? {
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

    /// The next answer of a `report`, unless its time is up or the user has stopped it.
    fn next_of(&mut self, report: &Report<'_>) -> Result<Answer, String> {
        let begun = monotonic();
        loop {
            let rows = report.rows.saturating_sub(report.budget.left());
            let seconds = seconds_since(report.begun_ns);
            if seconds > REPORT_S + rows / ROWS_PER_S {
                return Err(format!("{} gave {rows} rows in {seconds} s", self.name));
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

    /// Ends the session in peace.
    pub(super) fn leave(mut self) {
        // It is over either way.
        let _ = self.control.send(&Request::Bye);
    }

    /// Whether both ends have shown that they hold the key.
    pub(super) const fn is_sealed(&self) -> bool {
        self.control.is_sealed()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where the server's UDP and data ports are.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Our address on the way there, with the port of the control connection.
    pub(super) const fn local(&self) -> SocketAddr {
        self.local
    }

    fn exchange(&mut self, request: &Request) -> Result<Answer, ControlError> {
        self.control.send(request)?;
        self.control.expect(ANSWER_S)
    }

    /// The first answer did not come: is this a server at all?
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

/// The most bytes of an answer per flow: an admission with a key and a certificate takes 223 B.
const FLOW_ANSWER_BYTES: usize = 256;
/// The most of a server's warnings that are passed on (chosen: ours has one).
const MAX_WARNINGS: usize = 20;
/// How long an answer to a handshake may take: a few round trips of the slowest path, one retransmission
/// among them.
const ANSWER_S: u64 = 4;
/// What a report may take besides the time for its rows (chosen: as a server gives).
const REPORT_S: u64 = 60;
/// A silence during a run is listed if it is longer (chosen: six progress messages; two losses in a row of
/// the control connection's segments are 0.6 s).
const SILENT_NS: i64 = 3_000_000_000;
/// Exchanges before and after a run.
pub(super) const PROBES: u32 = 8;
/// The least number of exchanges, however slow the path is.
const FEWEST_PROBES: usize = 4;
/// After this long no further exchange begins.
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
