//! The client, [`LiveArena`].
//!
//! A repetition is one session with the server. It consists of the handshake, a comparison of the clocks, the
//! run, the transfer of the server's logs, and a second comparison of the clocks.

pub(crate) mod address;
mod checks;
mod control;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod run;

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use talkpath_arena::{Arena, ArenaError, RunPlan};
use talkpath_kernel::spec::SessionSpec;
use talkpath_measure::RunRecord;
use talkpath_model::{Scenario, USUAL_MTU};
use talkpath_wire::machine::Machines;

use crate::key::Key;
use control::ServerControl;

pub use run::{BegunRun, PreparedRun};

/// A segment size that every path carries, bytes (RFC 9293 §3.7.1: the default MSS for IPv4).
const CONTROL_MSS: u32 = 536;
/// The longest time in which a connection has to open. We chose 5 s, in which a SYN is retransmitted several
/// times.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

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
    options: LiveOptions,
    /// True if nothing came back over UDP in the last session that had flows over UDP.
    udp_is_silent: AtomicBool,
}

impl LiveArena {
    /// Resolves `host` (`HOST`, `HOST:PORT`, `ADDRESS` or `[V6]:PORT`), and checks that a server of this
    /// version answers there and accepts the key. No connection stays open.
    ///
    /// # Errors
    /// Returns [`ArenaError::FarEnd`] if no server answers, and [`ArenaError::Unwelcome`] if a server
    /// refuses. The text has one line. It says what is wrong at which address, and what would be right.
    pub fn connect(host: &str, options: LiveOptions) -> Result<Self, ArenaError> {
        let (name, addresses) = address::resolve(host).map_err(ArenaError::far_end)?;
        Self::connect_to(&name, &addresses, options)
    }

    /// Takes the first of `addresses` at which a server accepts this client. If no server does, the error is
    /// that of a server that refused, because it tells the user more than the error of an address without a
    /// server.
    fn connect_to(name: &str, addresses: &[SocketAddr], options: LiveOptions) -> Result<Self, ArenaError> {
        let mut refusal = ArenaError::far_end(format!("no such host: {name}"));
        for &address in addresses {
            let shown = shown(name, address);
            let answer = open(address)
                .map_err(|error| ArenaError::far_end(address::explain(&shown, &error)))
                .and_then(|stream| ServerControl::greet(stream, &shown, options.key.as_ref()));
            match answer {
                Ok(server) => {
                    server.leave();
                    return Ok(Self { name: shown, address, options, udp_is_silent: AtomicBool::new(false) });
                }
                Err(_) if matches!(refusal, ArenaError::Unwelcome(_)) => {}
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    /// Agrees with the server on one repetition. Describes the flows, compares the clocks and opens the
    /// sockets. The run begins with [`PreparedRun::begin`]. The scenario's links are ignored, with a warning.
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
        let warnings = checks::warnings(scenario);
        let server = self.greet()?;
        run::prepare(server, scenario, session, &self.options, plan, warnings, &self.udp_is_silent)
    }

    fn greet(&self) -> Result<ServerControl, ArenaError> {
        let stream =
            open(self.address).map_err(|error| ArenaError::far_end(address::explain(&self.name, &error)))?;
        ServerControl::greet(stream, &self.name, self.options.key.as_ref())
    }
}

impl Arena for LiveArena {
    /// Runs one repetition over the network. The scenario's links are ignored, with a warning.
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        self.prepare(scenario, plan)?.begin(None)?.run()
    }
}

/// Opens a control connection. Its segments are small in both directions (TCP_MAXSEG before SYN, tcp(7)), so
/// that a path that drops large packets cannot keep the server's report back.
fn open(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_mss(CONTROL_MSS)?;
    socket.connect_timeout(&address.into(), CONNECT_TIMEOUT)?;
    Ok(socket.into())
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
