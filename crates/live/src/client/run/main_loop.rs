//! The main loop of a run. It asks the server for its progress, keeps the ways open, and finds out when the
//! run is over.
//!
//! The run is over when everything has been delivered, or when nothing has been delivered for the time of the
//! drain. It ends earlier if the user stops it, if the server is gone, if this host's limit of rows is
//! reached, or if the drain takes too long ([`DrainDeadline`]).

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use talkpath_arena::offset::Probe;
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::FlowSpec;
use talkpath_units::{Duration, Instant};

use super::Session;
use super::drain::{DrainDeadline, arrived_bytes};
use super::own_network::{Move, NetworkHistory, OwnNetwork};
use super::ways::{self, Way};
use crate::client::control::ServerControl;

/// After this time without an answer the control connection is silent. We chose 2 s, four times the time
/// between two questions, and less than the silence of a way.
const SILENT_CONTROL: Duration = Duration::from_secs(2);

/// The interval at which the ways are checked.
const WAY_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which the server is asked for its progress. Each exchange takes 200 B in each direction,
/// which no measured path should notice.
const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// The interval at which the server is asked for its progress after the end of sending.
const DRAIN_ASK_INTERVAL: Duration = Duration::from_millis(50);
/// The longest wait for an answer, ms.
const ANSWER_WAIT_MS: i64 = 20;
/// The longest wait for an answer after the end of sending, ms.
const DRAIN_ANSWER_WAIT_MS: i64 = 5;

/// What the main loop has observed.
pub(super) struct Observed {
    pub(super) outcome: RunOutcome,
    /// The comparisons of the server's clock with the host clock during the run.
    pub(super) probes: Vec<Probe>,
    pub(super) silences: Vec<Silence>,
    pub(super) network: NetworkHistory,
}

impl Observed {
    /// Makes the observations of a run that did not begin.
    pub(super) const fn nothing(outcome: RunOutcome) -> Self {
        let network = NetworkHistory { outages: Vec::new(), moved: None, followed: Vec::new() };
        Self { outcome, probes: Vec::new(), silences: Vec::new(), network }
    }
}

/// A long time in which nothing came over the control connection.
pub(super) struct Silence {
    pub(super) from: Instant,
    pub(super) length: Duration,
}

/// The reason why a run ended.
pub(super) enum RunOutcome {
    /// Everything was delivered, or nothing was delivered for the time of the drain.
    Drained,
    /// The user stopped the run.
    Interrupted,
    /// The run cannot go on, for this reason: the server is gone or breaks the protocol, or a limit is
    /// reached.
    Aborted(String),
    /// This host cannot start a thread, for this reason.
    NoThread(String),
}

/// The state of the main loop.
pub(super) struct MainLoop<'a, 'p> {
    session: &'a Session<'p>,
    server: &'a mut ServerControl,
    ways: &'a mut [Way],
    host_clock: HostClock,
    clock: RunClock,
    /// The end of sending.
    stop: Instant,
    drain: Duration,
    drain_deadline: DrainDeadline,
    own_network: OwnNetwork,
    /// The progress of each flow at the server, by its last answer.
    server_progress: Vec<EndProgress>,
    /// The largest number of messages that the server has received of each flow, by its answers.
    most_received: Vec<u64>,
    last_delivery: Instant,
    next_ask: Instant,
    /// When the server answered last.
    last_answer: Instant,
    next_way_check: Instant,
    probes: Vec<Probe>,
    silences: Vec<Silence>,
}

impl<'a, 'p> MainLoop<'a, 'p> {
    pub(super) fn new(
        session: &'a Session<'p>,
        server: &'a mut ServerControl,
        ways: &'a mut [Way],
        host_clock: HostClock,
        clock: RunClock,
    ) -> Self {
        let stop = session.spec.stop();
        let drain = Duration::from_nanos(session.spec.drain_ns);
        let own_network = OwnNetwork::new(server.local(), server.address());
        Self {
            session,
            server,
            ways,
            host_clock,
            clock,
            stop,
            drain,
            drain_deadline: DrainDeadline::new(stop, drain),
            own_network,
            server_progress: vec![EndProgress::default(); session.ends.len()],
            most_received: vec![0; session.ends.len()],
            last_delivery: stop,
            next_ask: Instant::ZERO,
            last_answer: Instant::ZERO,
            next_way_check: Instant::ZERO,
            probes: Vec::new(),
            silences: Vec::new(),
        }
    }

    /// Runs until the run is over.
    pub(super) fn run(mut self) -> Observed {
        loop {
            if let ControlFlow::Break(outcome) = self.turn() {
                let network = self.own_network.finish(self.clock.now());
                return Observed { outcome, probes: self.probes, silences: self.silences, network };
            }
        }
    }

    fn turn(&mut self) -> ControlFlow<RunOutcome> {
        let now = self.clock.now();
        (self.session.plan.progress)(now);
        if self.session.plan.interrupt.load(Ordering::Relaxed) {
            return ControlFlow::Break(RunOutcome::Interrupted);
        }
        self.ask_server(now)?;
        self.check_ways(now);
        match self.own_network.check(now) {
            Some(Move::Follow) => self.follow_own_network(),
            Some(Move::End(why)) => return abort(why),
            None => {}
        }
        self.hear_server(now)?;
        let progress = self.progress(now >= self.stop);
        self.last_delivery = self.last_delivery.max(progress.last_arrival);
        self.check_limits(&progress)?;
        self.check_drained(&progress)
    }

    /// Asks the server for its progress if it is time for that.
    fn ask_server(&mut self, now: Instant) -> ControlFlow<RunOutcome> {
        if now < self.next_ask {
            return ControlFlow::Continue(());
        }
        let interval = if now < self.stop { ASK_INTERVAL } else { DRAIN_ASK_INTERVAL };
        self.next_ask = now.saturating_add(interval);
        match self.server.ask_progress(self.host_clock) {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => abort(why),
        }
    }

    /// Keeps the ways open if it is time for that.
    fn check_ways(&mut self, now: Instant) {
        if now < self.next_way_check {
            return;
        }
        self.next_way_check = now.saturating_add(WAY_CHECK_INTERVAL);
        ways::keep(self.ways, &self.server_progress, self.session, now);
        if now >= self.stop {
            self.note_silence(now);
        }
    }

    /// Notes which ways are silent, unless the control connection is silent, too: then it is not UDP alone
    /// that does not get through.
    fn note_silence(&mut self, now: Instant) {
        if now <= self.last_answer.saturating_add(SILENT_CONTROL) {
            ways::note_silence(self.ways, now);
        }
    }

    /// Continues the run from this host's new address: the control connection first, and the ways behind it,
    /// because the server serves UDP only from the address of the control connection. The main loop does
    /// nothing else meanwhile. The other threads go on.
    fn follow_own_network(&mut self) {
        match self.server.resume() {
            Ok(()) => {
                let now = self.clock.now();
                self.own_network.follow(self.server.local(), now);
                let mut to = self.server.address();
                to.set_port(self.session.udp_port);
                ways::follow(self.ways, to);
                self.next_ask = now;
            }
            Err(why) => self.own_network.note_not_followed(why, self.clock.now()),
        }
    }

    /// Waits for an answer of the server, and takes its progress from the answer.
    fn hear_server(&mut self, now: Instant) -> ControlFlow<RunOutcome> {
        let wait_ms = if now < self.stop { ANSWER_WAIT_MS } else { DRAIN_ANSWER_WAIT_MS };
        let answer = match self.server.receive_progress(wait_ms, self.host_clock) {
            Ok(Some(answer)) => answer,
            Ok(None) => return ControlFlow::Continue(()),
            Err(why) => return abort(why),
        };
        if answer.flows.len() != self.server_progress.len() {
            return abort(format!("{} broke the protocol", self.server.name()));
        }
        self.last_answer = self.clock.now();
        self.probes.extend(answer.probe);
        if let Some(silence_ns) = answer.silence_ns {
            self.silences.push(Silence::ending(self.clock.now(), silence_ns));
        }
        self.server_progress = answer.flows;
        if self.update_most_received() {
            self.last_delivery = self.last_delivery.max(self.clock.now());
        }
        ControlFlow::Continue(())
    }

    /// Returns true if the server has received more of this host's messages than it said before.
    fn update_most_received(&mut self) -> bool {
        let mut has_more = false;
        for (index, end) in self.session.ends.iter().enumerate() {
            // The server cannot have received more than this host has sent.
            let received = self.server_progress[index].received.min(end.lock().progress().sent);
            has_more |= received > self.most_received[index];
            self.most_received[index] = received.max(self.most_received[index]);
        }
        has_more
    }

    /// Aborts the run if this host has no more rows, or if the drain takes too long.
    fn check_limits(&mut self, progress: &RunProgress) -> ControlFlow<RunOutcome> {
        if self.session.budget.is_spent() {
            return abort("this host's limit of rows is reached; make the run shorter".to_owned());
        }
        self.drain_deadline.note(progress.arrived_bytes, self.clock.now());
        match self.drain_deadline.overrun(self.clock.now()) {
            Some(why) => abort(format!("{} {why}", self.server.name())),
            None => ControlFlow::Continue(()),
        }
    }

    /// Ends the run if everything has been delivered, or if nothing has been delivered for the time of the
    /// drain.
    fn check_drained(&mut self, progress: &RunProgress) -> ControlFlow<RunOutcome> {
        if !progress.is_drained && self.clock.now() <= self.last_delivery.saturating_add(self.drain) {
            return ControlFlow::Continue(());
        }
        // If the connection never opened, the run may end before the ways are checked after the end of
        // sending.
        self.note_silence(self.clock.now());
        ControlFlow::Break(RunOutcome::Drained)
    }

    /// Adds up the progress of all flows at both hosts. If the run has stopped sending, no message is due any
    /// more.
    fn progress(&self, has_stopped: bool) -> RunProgress {
        let mut sum = RunProgress { is_drained: true, arrived_bytes: 0, last_arrival: Instant::ZERO };
        for (end, far) in self.session.ends.iter().zip(&self.server_progress) {
            let end = end.lock();
            let near = end.progress();
            sum.last_arrival = sum.last_arrival.max(end.last_arrival());
            sum.arrived_bytes = sum.arrived_bytes.saturating_add(arrived_bytes(&end.spec, near, *far));
            sum.is_drained &= match end.failure {
                // A failed flow delivers nothing more, but its messages are due until the end of sending.
                Some(_) => has_stopped,
                None => is_delivered(&end.spec, near, *far),
            };
        }
        sum
    }
}

/// The progress of all flows together.
struct RunProgress {
    /// True if nothing more will arrive.
    is_drained: bool,
    /// The payload bytes that have arrived at both hosts.
    arrived_bytes: u64,
    /// The time of the last arrival at this host.
    last_arrival: Instant,
}

impl Silence {
    /// Makes a silence of `ns` nanoseconds that ends at `end`.
    fn ending(end: Instant, ns: i64) -> Self {
        let length = Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        Self { from: Instant::from_nanos(end.as_nanos().saturating_sub(length.as_nanos())), length }
    }
}

fn abort(why: String) -> ControlFlow<RunOutcome> {
    ControlFlow::Break(RunOutcome::Aborted(why))
}

/// Returns true if everything that was sent on a flow has arrived, and nothing more will be sent.
fn is_delivered(spec: &FlowSpec, near: EndProgress, far: EndProgress) -> bool {
    let (sender, receiver) = if spec.is_up { (near, far) } else { (far, near) };
    let has_arrived = sender.is_done && receiver.received == sender.sent;
    let has_echo = !spec.has_echo() || sender.received == sender.sent;
    has_arrived && has_echo
}
