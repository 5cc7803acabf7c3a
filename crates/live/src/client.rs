//! The client, [`LiveArena`].
//!
//! A repetition is one session with the server. It consists of the handshake, a comparison of the clocks,
//! the run, the transfer of the server's logs, and a second comparison of the clocks.

pub(crate) mod address;
mod checks;
mod connect;
mod control;
mod each_version;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod mapping;
mod path_facts;
mod run;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use talkpath_arena::{Arena, ArenaError, RunPlan};
use talkpath_kernel::spec::SessionSpec;
use talkpath_measure::RunRecord;
use talkpath_model::{IpVersion, Scenario, USUAL_MTU};
use talkpath_wire::machine::Machines;

use crate::key::Key;
use connect::Attempts;
use control::ServerControl;
use path_facts::PathFacts;

pub use each_version::EachVersion;
pub use run::{BegunRun, PreparedRun};

/// The options of a client.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// The key that the server was started with, if it has one.
    pub key: Option<Key>,
    /// True if the user vouches that the clocks of both hosts show the same time (GPS, PTP). Time stamps of
    /// both hosts are then compared without a correction.
    pub clocks_synchronised: bool,
    /// Receives a line at once if a run meets a problem and goes on, for example if nothing comes back over
    /// UDP.
    pub notice: Notice,
    /// The state machines of flows whose protocol talkpath implements itself.
    pub machines: Machines,
    /// The version of IP to reach the server over. `None` if the first one that answers is taken.
    pub ip: Option<IpVersion>,
    /// True if the path is explored by probes before the first run (`client/path_facts.rs`).
    pub explores_path: bool,
    /// True if this host's ends of QUIC connections keep a qlog, for [`Arena::take_qlog`].
    pub keeps_qlog: bool,
    /// True if a run finds out how long the path keeps a UDP mapping (`client/mapping.rs`).
    pub times_mapping: bool,
}

/// A receiver of lines for a person. The default drops the lines.
#[derive(Clone, Default)]
pub struct Notice(Option<Arc<Tell>>);

type Tell = dyn Fn(&str) + Send + Sync;

impl Notice {
    /// Makes a notice that gives each line to `tell`.
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    fn give(&self, line: &str) {
        if let Some(tell) = &self.0 {
            tell(line);
        }
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notice(to somebody)" } else { "Notice(to nobody)" })
    }
}

/// The live arena. It measures over the network itself, to a host that runs a [`crate::Server`].
#[derive(Debug)]
pub struct LiveArena {
    /// The server's host as the user wrote it, with its port.
    name: String,
    address: SocketAddr,
    /// An address of the server over the other version of IP, if it has one and the user allows both.
    other_address: Option<SocketAddr>,
    /// How long the resolver took for the server's name. `None` if the user gave an address.
    name_time: Option<Duration>,
    /// The warning that addresses before `address` did not answer, if that is so.
    skipped: Option<String>,
    options: LiveOptions,
    /// What the path does to packets, once it was explored. `None` within if nothing came back.
    path: OnceLock<Option<PathFacts>>,
    /// True if nothing came back over UDP in the last session that had flows over UDP.
    udp_is_silent: AtomicBool,
    /// The port over which the last session reached the server over UDP, if it is another one than that of
    /// the control connection. Zero otherwise.
    other_udp_port: AtomicU16,
    /// What this host's ends of the last run's QUIC connections logged.
    qlog: QlogSlot,
    /// The instant zero of the last run, ns since 1970, until somebody takes it.
    start_ns: Option<i64>,
}

/// What the ends of QUIC connections logged, if the user wants it.
type QlogSlot = Arc<Mutex<Option<Vec<u8>>>>;

impl LiveArena {
    /// Resolves `host` (`HOST`, `HOST:PORT`, `ADDRESS` or `[V6]:PORT`), and checks that a server of this
    /// version answers there and accepts the key. No connection stays open.
    ///
    /// # Errors
    /// Returns [`ArenaError::FarEnd`] if no server answers, and [`ArenaError::Unwelcome`] if a server
    /// refuses. The text has one line. It says what is wrong at which address, and what would be right.
    pub fn connect(host: &str, options: LiveOptions) -> Result<Self, ArenaError> {
        let begun = Instant::now();
        let (name, addresses) = address::resolve(host, options.ip).map_err(ArenaError::far_end)?;
        let name_time = begun.elapsed();
        let is_address = addresses.iter().any(|address| address.to_string() == name);
        let arena = Self::connect_to(&name, &addresses, options)?;
        Ok(Self { name_time: (!is_address).then_some(name_time), ..arena })
    }

    /// Takes the first of `addresses` at which a server accepts this client (`connect.rs`). If no server
    /// does, the error is that of a server that refused, because it tells the user more than the error of an
    /// address without a server. Otherwise it is the error of the first address.
    fn connect_to(name: &str, addresses: &[SocketAddr], options: LiveOptions) -> Result<Self, ArenaError> {
        let mut attempts = Attempts::new(addresses);
        let mut error = None;
        while let Some((address, stream)) = attempts.next_opened() {
            let shown = shown(name, address);
            match ServerControl::greet(stream, &shown, options.key.as_ref()) {
                Ok(server) => {
                    server.leave();
                    let is_other =
                        |other: &&SocketAddr| connect::is_v6(other.ip()) != connect::is_v6(address.ip());
                    return Ok(Self {
                        name: shown,
                        address,
                        other_address: addresses.iter().find(is_other).copied(),
                        name_time: None,
                        skipped: skipped(addresses, address, &attempts),
                        options,
                        path: OnceLock::new(),
                        udp_is_silent: AtomicBool::new(false),
                        other_udp_port: AtomicU16::new(0),
                        qlog: QlogSlot::default(),
                        start_ns: None,
                    });
                }
                Err(_) if matches!(error, Some(ArenaError::Unwelcome(_))) => {}
                Err(why) => error = Some(why),
            }
        }
        Err(error.unwrap_or_else(|| {
            let explain =
                |(address, error): &(SocketAddr, _)| address::explain(&shown(name, *address), error);
            let first =
                addresses.first().and_then(|first| attempts.failed.iter().find(|(it, _)| it == first));
            ArenaError::far_end(first.map_or_else(|| format!("no such host: {name}"), explain))
        }))
    }

    /// Agrees with the server on one repetition. Describes the flows, compares the clocks and opens the
    /// sockets. The run begins with [`PreparedRun::begin`]. The scenario's links are ignored, with a
    /// warning.
    ///
    /// # Errors
    /// Returns [`ArenaError`] if a host cannot run the scenario, if the server refuses or does not answer, or
    /// if the user stops the run.
    pub fn prepare<'a>(
        &self,
        scenario: &'a Scenario,
        plan: RunPlan<'a>,
    ) -> Result<PreparedRun<'a>, ArenaError> {
        scenario.has_no_program().map_err(ArenaError::Unsupported)?;
        let mtu = address::path_mtu(self.address);
        let session = SessionSpec::new(scenario, plan.seed, Some(mtu)).map_err(|why| {
            // If the scenario fits the usual MTU, the cause is the MTU that the kernel has learned of the
            // path.
            match SessionSpec::new(scenario, plan.seed, Some(USUAL_MTU)) {
                Ok(_) => ArenaError::far_end(format!(
                    "{why}; this host's kernel knows a path MTU of {} to {} (`ip route get {}`)",
                    address::with_ipv6(mtu, self.address),
                    self.name,
                    self.address.ip()
                )),
                Err(why) => ArenaError::Unsupported(why),
            }
        })?;
        checks::ip(scenario, self.address, &self.name).map_err(ArenaError::Unsupported)?;
        checks::files(scenario, &session).map_err(ArenaError::Unsupported)?;
        checks::changes(scenario).map_err(ArenaError::Unsupported)?;
        checks::congestion_controls(&session).map_err(ArenaError::Unsupported)?;
        checks::multipath(&session).map_err(ArenaError::Unsupported)?;
        let mut warnings = checks::warnings(scenario);
        warnings.extend(self.skipped.clone());
        let (server, handshake) = self.greet()?;
        let memory = run::Memory {
            udp_is_silent: &self.udp_is_silent,
            other_udp_port: &self.other_udp_port,
            other_address: self.other_address,
            name_time: self.name_time,
            path: &self.path,
            handshake,
            qlog: &self.qlog,
        };
        run::prepare(server, scenario, session, &self.options, plan, warnings, &memory)
    }

    /// Connects to the server. Also returns the round trip of TCP's handshake.
    fn greet(&self) -> Result<(ServerControl, Duration), ArenaError> {
        let (stream, handshake) = connect::open(self.address)
            .map_err(|error| ArenaError::far_end(address::explain(&self.name, &error)))?;
        let server = ServerControl::greet(stream, &self.name, self.options.key.as_ref())?;
        Ok((server, handshake))
    }
}

impl Arena for LiveArena {
    /// Runs one repetition over the network. The scenario's links are ignored, with a warning.
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        let begun = self.prepare(scenario, plan)?.begin(None)?;
        self.start_ns = Some(begun.start_since_1970_ns());
        begun.run()
    }

    fn take_start_ns(&mut self) -> Option<i64> {
        self.start_ns.take()
    }

    fn take_qlog(&mut self) -> Option<Vec<u8>> {
        self.qlog.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Makes the warning that the server's first address did not answer. Returns `None` if it is the address
/// that is used.
fn skipped(addresses: &[SocketAddr], used: SocketAddr, attempts: &Attempts) -> Option<String> {
    let first = *addresses.first().filter(|first| **first != used)?;
    let failure = attempts.failed.iter().find(|(address, _)| *address == first);
    let why = match failure {
        Some((_, error)) => error.to_string(),
        None if attempts.unanswered().any(|address| address == first) => "no answer".to_owned(),
        None => "no server that accepts this client".to_owned(),
    };
    let (unused, version) = (connect::version(first.ip()), connect::version(used.ip()));
    let other = if unused == version { String::new() } else { format!(" over {unused}") };
    Some(format!(
        "the server's first address, {}, does not serve{other} ({why}): measured is {}",
        first.ip(),
        used.ip()
    ))
}

/// Returns the name of a server for messages: `HOST:PORT`, with the address if `HOST` is not the address.
fn shown(name: &str, address: SocketAddr) -> String {
    let address = address.to_string();
    if name == address { address } else { format!("{name} ({address})") }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::{ServeOptions, Server};

    #[test]
    fn of_several_addresses_a_refusal_is_told_and_not_that_the_next_one_is_silent() {
        let key = |text: &[u8]| Some(Key::new(text).unwrap());
        let bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let ours = key(b"0123456789abcdef0123456789abcdef");
        let server = Server::bind(ServeOptions { bind, key: ours, ..ServeOptions::default() }).unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| server.run(&stop));
            let refusals = [[server.local_addr(), closed], [closed, server.local_addr()]].map(|addresses| {
                let options =
                    LiveOptions { key: key(b"fedcba9876543210fedcba9876543210"), ..LiveOptions::default() };
                LiveArena::connect_to("two:7160", &addresses, options).map(drop)
            });
            stop.store(true, Ordering::Relaxed);
            for refusal in refusals {
                let Err(ArenaError::Unwelcome(why)) = refusal else { panic!("{refusal:?}") };
                assert!(why.contains(&server.local_addr().to_string()), "{why}");
            }
        });
    }
}
