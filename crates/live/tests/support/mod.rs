//! What the tests of this crate share: scenarios, a server beside the client, and (in `bridge`) two
//! namespaces joined by an impairing bridge.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test program uses a part of this")]
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

pub mod bridge;
pub mod flood;
pub mod quiet;
pub mod raw;
pub mod relay;
pub mod shared;
pub mod way;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use talkpath_arena::{Arena, ArenaError};
use talkpath_config::{
    Carry, CcidKind, CongestionControlKind, DccpConfig, EncapsulatedConfig, QuicConfig, Stack, TcpConfig,
    TransportConfig,
};
use talkpath_live::{Key, Limits, LiveArena, LiveOptions, ServeOptions, Server};
use talkpath_measure::RunRecord;
use talkpath_model::{Direction, Due, EchoWrite, Flow, MessageSize, Scenario, WorkloadConfig};
use talkpath_units::{Bytes, Duration, Rate, Seed};
use talkpath_wire::machine::Machines;

/// The state machines of our own protocols.
pub const MACHINES: Machines = Machines::made_by(talkpath_transport::new_machine);

/// A run of `flows` for `ms` milliseconds.
pub fn scenario(ms: u64, flows: Vec<Flow>) -> Scenario {
    Scenario {
        name: "test".to_owned(),
        duration: Duration::from_millis(ms),
        drain: Duration::from_millis(1000),
        warm_up: Duration::ZERO,
        seed: Seed::new(1),
        repeat: 1,
        far_clock: None,
        ip: talkpath_model::IpVersion::V4,
        kernel: None,
        program: None,
        has_path: true,
        changes: Vec::new(),
        change_origins: Vec::new(),
        links: Vec::new(),
        flows,
    }
}

/// Every transport that there is.
pub const TRANSPORTS: [&str; 9] = [
    "udp",
    "tcp",
    "tcp-nodelay",
    "dccp-ccid2",
    "dccp-ccid3",
    "dccp-ccid4",
    "quic-datagram",
    "quic-stream",
    "quic-stream-per-message",
];

/// A G.711 call over `transport`, 160 B every 20 ms, one way upwards.
pub fn voice(name: &str, transport: &str) -> Flow {
    // The tests count what a connection that is open carries.
    Flow {
        due: Due::Opening,
        ..Flow::new(name, transport, transport_config(transport), WorkloadConfig::G711)
    }
}

/// A flow of `size` bytes at `kbps`.
pub fn cbr(name: &str, transport: &str, kbps: u64, size: u64) -> Flow {
    let workload = WorkloadConfig::Cbr { rate: Rate::from_bps(kbps * 1000), size: Bytes::new(size).into() };
    Flow { workload, ..voice(name, transport) }
}

/// A flow of 100 messages a second or nearly, whose sender draws their sizes. Its clock does not wait for the
/// connection: what is due before is never sent, and has a number all the same.
pub fn drawn(name: &str, transport: &str) -> Flow {
    let size = MessageSize::Uniform { min: Bytes::new(8), max: Bytes::new(1000) };
    let workload = WorkloadConfig::Cbr { rate: Rate::from_bps(400_000), size };
    Flow { workload, due: Due::Start, ..voice(name, transport) }
}

pub fn echo(flow: Flow, write: EchoWrite) -> Flow {
    Flow { echo: Some(write), ..flow }
}

/// A call whose messages the far application echoes one by one.
pub fn echoed(name: &str, transport: &str) -> Flow {
    echo(voice(name, transport), EchoWrite::PerMessage)
}

pub fn down(flow: Flow) -> Flow {
    Flow { direction: Direction::Down, ..flow }
}

pub fn transport_config(name: &str) -> TransportConfig {
    match name {
        "udp" => TransportConfig::udp_default(),
        "dccp-ccid2" => dccp(CcidKind::Ccid2),
        "dccp-ccid3" => dccp(CcidKind::Ccid3),
        "dccp-ccid4" => dccp(CcidKind::Ccid4),
        "quic-datagram" => TransportConfig::Quic(QuicConfig::new(Carry::Datagram)),
        "quic-stream" => TransportConfig::Quic(QuicConfig::new(Carry::Stream)),
        "quic-stream-per-message" => TransportConfig::Quic(QuicConfig::new(Carry::StreamPerMessage)),
        _ => TransportConfig::Tcp(TcpConfig {
            cc: Some(usual_cc()),
            rwnd: Bytes::new(6 << 20),
            timer_granularity: Duration::ZERO,
            ..TcpConfig::preset(Stack::Linux, name != "tcp")
        }),
    }
}

/// The congestion control of the tests' TCP: CUBIC, or Reno where the kernel gives that to root alone and
/// this user is not root.
pub fn usual_cc() -> CongestionControlKind {
    let allowed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let is_allowed = allowed.is_ok_and(|names| names.split_whitespace().any(|name| name == "cubic"));
    if is_allowed || rustix::process::geteuid().is_root() {
        CongestionControlKind::Cubic
    } else {
        CongestionControlKind::Reno
    }
}

fn dccp(ccid: CcidKind) -> TransportConfig {
    TransportConfig::Encapsulated(EncapsulatedConfig::Dccp(DccpConfig::new(ccid)))
}

/// Sockets for TCP and UDP on one port of loopback. A port that the system chose for TCP may be another's for
/// UDP: then it chooses again.
pub fn listen() -> (TcpListener, UdpSocket, SocketAddr) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        match UdpSocket::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            datagrams => return (listener, datagrams.unwrap(), address),
        }
    }
}

/// A server on a thread of this process; it stops when dropped.
pub struct Serving {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub fn at(address: &str, key: Option<Key>, limits: Limits) -> Self {
        Self::with(ServeOptions {
            bind: vec![address.parse().unwrap()],
            key,
            limits,
            machines: MACHINES,
            ..ServeOptions::default()
        })
    }

    pub fn with(options: ServeOptions) -> Self {
        Self::logged(options, |_| {})
    }

    /// With its log.
    pub fn logged(options: ServeOptions, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let server = Server::bind(options).unwrap();
        let (address, stop) = (server.local_addr(), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || server.run_logged(&stop, &log).unwrap()
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub fn loopback() -> Self {
        Self::at("127.0.0.1:0", None, Limits::default())
    }

    /// Stops the server now: its sockets close.
    pub fn kill(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs `scenario` against `address`.
pub fn run(address: SocketAddr, scenario: &Scenario) -> Result<RunRecord, ArenaError> {
    run_with(address, scenario, None, &AtomicBool::new(false))
}

pub fn run_with(
    address: SocketAddr,
    scenario: &Scenario,
    key: Option<Key>,
    interrupt: &AtomicBool,
) -> Result<RunRecord, ArenaError> {
    let mut arena = LiveArena::connect(
        &address.to_string(),
        LiveOptions { key, machines: MACHINES, ..LiveOptions::default() },
    )?;
    arena.run(scenario, shared::plan(interrupt, &|_| {}))
}
