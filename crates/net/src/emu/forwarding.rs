//! How many packets the emulator carries: a measurement of this machine, for benchmarks and `talkpath doctor`.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use talkpath_arena::ArenaError;
use talkpath_path::{DelayVariation, Framing, LinkConfig, LossModel, QueueKind, QueueLimit, RateModel};
use talkpath_scenario::{Codec, Direction, Flow, LinkIndex, NamedLink, Receiver, Scenario, WorkloadConfig};
use talkpath_transport::TransportConfig;
use talkpath_units::{Bytes, Duration, Instant, Packets, Seed};

use super::arrival_log::{LogHeader, LogWriter, MOST_BYTES};
use super::emulator::{EmuFlow, Emulator};
use super::network::Network;
use super::packet::Host;
use super::sys;
use super::watch::LegWatch;
use super::world::{SocketPlan, World};
use crate::clock::HostClock;
use crate::spec::TransportSpec;
use crate::sys::become_real_time;

/// What [`measure_forwarding`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forwarding {
    /// Packets carried from one host to the other.
    pub packets: u64,
    /// Packets that found no room in the device: the sender was quicker.
    pub dropped: u64,
    /// How long that took.
    pub wall: Duration,
    /// Processor time of the emulator's thread meanwhile.
    pub cpu: Duration,
}

impl Forwarding {
    /// Packets a second of the emulator's processor time: what a core of its own would carry.
    pub fn packets_per_cpu_second(&self) -> f64 {
        self.packets as f64 / self.cpu.as_secs_f64()
    }
}

/// How the sender of [`measure_forwarding`] hands its datagrams over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// 64 in one write, which the device cuts (UDP_SEGMENT).
    SuperPackets,
    /// One in each write.
    Single,
}

/// Floods a path of 1 ms with UDP datagrams of `size` payload bytes for `time`, and counts. Each is a packet of its own to the
/// path model: it has an arrival and a decision in the log, and a departure.
///
/// The sender has a thread of its own; nobody reads at the far end, whose kernel works within the emulator's write all the
/// same.
///
/// # Errors
/// [`ArenaError::Unavailable`] where the machine allows no namespaces.
pub fn measure_forwarding(size: Bytes, time: Duration, handover: Handover) -> Result<Forwarding, ArenaError> {
    let failed = |error: std::io::Error| ArenaError::Unavailable {
        what: format!("the measurement of forwarding failed: {error}"),
        how: "see `talkpath doctor`".to_owned(),
    };
    let transport = TransportSpec::Udp { receive_buffer: Some(LEAST_BUFFER) };
    let plan = [true, false].map(|is_sender| SocketPlan {
        flow: 0,
        host: if is_sender { Host::First } else { Host::Second },
        transport: &transport,
        is_sender,
        path_mtu: None,
        window_clamp: None,
        is_paced: false,
    });
    let mut world = World::build([1500; 2], &plan, &[], None)?;
    let sender = UdpSocket::from(world.sockets.swap_remove(0));
    let size = size.get().clamp(8, 1400);
    let at_once = match handover {
        Handover::Single => 1,
        Handover::SuperPackets => {
            sys::set_option(sender.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, size as libc::c_int)
                .map_err(failed)?;
            (65_000 / size).min(64)
        }
    };
    let host = HostClock::anchor();
    let clock = host.run_from(host.now_ns());
    let header = LogHeader { cell: 0, repetition: 0, seed: 1, flows: 1, links: 2 };
    let flow = EmuFlow {
        sender: Host::First,
        is_dccp: false,
        watches: [LegWatch::datagrams(0, false), LegWatch::datagrams(0, false)],
        drops: Arc::new([AtomicU64::new(0), AtomicU64::new(0)]),
    };
    let network = Network::new(&flood(), Seed::new(1), false);
    let log = LogWriter::new(&header, MOST_BYTES);
    let emulator = Emulator::new(network, (log, None), &world.devices, 1500, clock, vec![flow]);
    let stop = AtomicBool::new(false);
    let emulated = std::thread::scope(|scope| {
        let emulating = scope.spawn(|| emulator.run(&stop));
        let sending = scope.spawn(|| {
            // So that a busy machine does not make the sender the slower one; where it is not allowed, idle time counts too.
            let _ = become_real_time();
            let datagrams = vec![0; usize::try_from(size * at_once).unwrap_or(0)];
            let until = Instant::ZERO + time;
            while clock.now() < until {
                // Where the device's queue is full the datagrams are gone: the sender is quicker, and that is as it should
                // be.
                let _ = sender.send(&datagrams);
            }
        });
        // A sender that failed has sent less, which the figures show.
        let _ = sending.join();
        stop.store(true, Ordering::Relaxed);
        emulating.join().unwrap_or_else(|_| Err(std::io::Error::other("the emulator's thread failed")))
    })
    .map_err(failed)?;
    let drops = world.device_drops().map_err(failed)?;
    Ok(Forwarding {
        packets: emulated.totals.packets,
        dropped: drops.from_host,
        wall: emulated.end.since(Instant::ZERO),
        cpu: Duration::from_nanos(emulated.totals.cpu_ns),
    })
}

/// One flow over a wide link each way.
fn flood() -> Scenario {
    let link = |name: &str| NamedLink {
        name: name.to_owned(),
        config: LinkConfig {
            rate: RateModel::Fixed(talkpath_units::Rate::from_bps(10_000_000_000)),
            delay: Duration::from_millis(1),
            mtu: Bytes::new(1500),
            framing: Framing::None,
            queue: QueueKind::DropTail {
                limit: QueueLimit::Packets(Packets::MAX),
                in_service: false,
                mark_at: None,
            },
            loss: LossModel::None,
            jitter: DelayVariation::None,
        },
    };
    let flow = Flow {
        name: "flood".to_owned(),
        group: "flood".to_owned(),
        transport: TransportConfig::udp_default(),
        transport_name: "udp".to_owned(),
        asked_for: Vec::new(),
        workload: WorkloadConfig::Voice {
            codec: Codec::G711,
            ptime: Duration::from_millis(20),
            size: Bytes::new(160),
        },
        echo: None,
        direction: Direction::Up,
        start: (Duration::ZERO, Duration::ZERO),
        route: vec![LinkIndex(0)],
        return_route: vec![LinkIndex(1)],
        send_jitter: Duration::ZERO,
        wake_up: Duration::ZERO,
        receiver: Receiver::default(),
    };
    Scenario {
        name: "flood".to_owned(),
        duration: Duration::from_secs(3600),
        drain: Duration::ZERO,
        warm_up: Duration::ZERO,
        seed: Seed::new(1),
        repeat: 1,
        far_clock: None,
        links: vec![link("up"), link("down")],
        flows: vec![flow],
    }
}

/// The kernel's least SO_RCVBUF: nobody reads it.
const LEAST_BUFFER: u64 = 2304;
