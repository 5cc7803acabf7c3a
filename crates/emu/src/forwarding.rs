//! Measures how many packets the emulator can carry on this machine, for benchmarks and `talkpath doctor`.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_arena::ArenaError;
use talkpath_config::{TransportConfig, TransportKind};
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::host::fork;
use talkpath_kernel::spec::TransportSpec;
use talkpath_kernel::sys::{become_real_time, set_option};
use talkpath_model::{Flow, IpVersion, LinkIndex, NamedLink, Scenario, WorkloadConfig};
use talkpath_path::{LinkConfig, RateModel};
use talkpath_units::{Bytes, Duration, Instant, Rate, Seed};

use crate::arrival_log::{LogHeader, LogWriter, MAX_BYTES};
use crate::decision::DecidingNetwork;
use crate::device::Device;
use crate::emulator::{EmuFlow, Emulator, EmulatorSetup};
use crate::packet::Host;
use crate::realtime::OwnProcessor;
use crate::run::LEAD;
use crate::watch::LegWatch;
use crate::world::{DeviceKind, SocketPlan, World, WorldPlan};

/// The MTU of both hosts, bytes ([`WorldPlan::bare`] has it, too).
const MTU: u16 = 1500;
/// The smallest receive buffer of a socket of Linux, bytes. Nobody reads the receiving socket.
const MIN_BUFFER: u64 = 2304;
/// The delay of a packet in the plain loop, ms. The path has the same delay.
const DELAY_MS: u64 = 1;
/// The longest time between two checks of the plain loop whether it has to stop, ms.
const MAX_WAIT_MS: u64 = 20;
/// The length of the largest packet with its headers, bytes (RFC 791 §3.1).
const MAX_READ: usize = 1 << 16;

/// The result of [`measure_forwarding`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forwarding {
    /// The number of packets that were carried from one host to the other.
    pub packets: u64,
    /// The number of packets that found no room in the device, because the sender was faster than the
    /// emulator.
    pub dropped: u64,
    /// The duration of the measurement.
    pub wall: Duration,
    /// The processor time of the forwarding thread during the measurement.
    pub cpu: Duration,
}

impl Forwarding {
    /// The number of packets for each second of the thread's processor time. A core of its own would carry
    /// that many, even if packets were dropped or the thread slept at times. A thread that handles each
    /// packet as it comes is busy all the time at fewer packets than it could carry.
    pub fn packets_per_cpu_second(&self) -> f64 {
        self.packets as f64 / self.cpu.as_secs_f64()
    }
}

/// The way in which the sender of [`measure_forwarding`] hands its datagrams over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// Up to 64 datagrams in one write, which the kernel cuts (UDP_SEGMENT).
    SuperPackets,
    /// One datagram in each write.
    Single,
}

/// Floods a path of 1 ms with UDP datagrams of `size` payload bytes for `time`, and counts the carried
/// packets. Each datagram is a packet of its own for the path model. It has an arrival and a decision in the
/// log, and a departure.
///
/// The sender has a thread of its own. Nobody reads at the far end, but the far end's kernel does its work
/// all the same, within the emulator's write.
///
/// # Errors
/// Returns [`ArenaError::Unavailable`] if the machine allows no namespaces.
pub fn measure_forwarding(size: Bytes, time: Duration, handover: Handover) -> Result<Forwarding, ArenaError> {
    through(DeviceKind::Cable, size, time, handover, |devices, clock, stop| {
        let devices = Device::pair(devices, MTU)?;
        let header = LogHeader { cell: 0, repetition: 0, seed: 1, flows: 1, links: 2 };
        let flow = EmuFlow {
            sender: Host::First,
            transport: TransportKind::Udp,
            is_multipath: false,
            second_path: None,
            marked: [0; 2],
            late: 0,
            watches: [
                LegWatch::datagrams(0, TransportKind::Udp, false),
                LegWatch::datagrams(0, TransportKind::Udp, false),
            ],
            drops: vec![Arc::new([AtomicU64::new(0), AtomicU64::new(0)])],
        };
        let network = DecidingNetwork::new(&flood(), Seed::new(1), None);
        let log = LogWriter::new(&header, MAX_BYTES);
        let emulator = Emulator::new(EmulatorSetup {
            network,
            log,
            capture: None,
            devices,
            mtu: MTU,
            clock,
            flows: vec![flow],
            lanes: None,
        });
        let emulated = emulator.run(&OwnProcessor::none(), stop)?;
        let totals = emulated.totals;
        Ok(Carried { packets: totals.packets, cpu_ns: totals.cpu_ns, end: emulated.stopped_at })
    })
}

/// Measures the same flood through a loop like that of mahimahi's mm-delay (github.com/ravinet/mahimahi,
/// `PacketShell::Ferry` and `DelayQueue`), which is written again here. The loop polls, reads one packet and
/// queues it with a time in milliseconds, and writes each packet that is due by a write of its own. It
/// decides nothing, logs nothing and carries packets in one direction only. Its hosts have TUN devices, as
/// mahimahi's hosts have.
///
/// # Errors
/// Returns the errors of [`measure_forwarding`].
pub fn measure_plain_loop(size: Bytes, time: Duration, handover: Handover) -> Result<Forwarding, ArenaError> {
    through(DeviceKind::Tun, size, time, handover, |devices, clock, stop| {
        let mut buffer = vec![0; MAX_READ];
        let mut queue: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
        let mut packets = 0;
        let now_ms = || clock.now().as_nanos() / 1_000_000;
        while !stop.load(Ordering::Relaxed) {
            let wait = queue.front().map_or(MAX_WAIT_MS, |(due, _)| due.saturating_sub(now_ms()));
            let writes = if wait == 0 { PollFlags::OUT } else { PollFlags::empty() };
            let mut fds = [PollFd::new(&devices[0], PollFlags::IN), PollFd::new(&devices[1], writes)];
            let wait = i64::try_from(wait.min(MAX_WAIT_MS)).unwrap_or(0);
            match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: wait * 1_000_000 })) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [readable, writable] = [0, 1].map(|end: usize| !fds[end].revents().is_empty());
            if readable && let Ok(length) = rustix::io::read(&devices[0], &mut *buffer) {
                queue.push_back((now_ms() + DELAY_MS, buffer[..length].to_vec()));
            }
            while writable && let Some((_, packet)) = queue.pop_front_if(|(due, _)| *due <= now_ms()) {
                rustix::io::write(&devices[1], &packet)?;
                packets += 1;
            }
        }
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu_ns = u64::try_from(cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec).unwrap_or(0);
        Ok(Carried { packets, cpu_ns, end: clock.now() })
    })
}

/// The counts of a loop between two devices.
struct Carried {
    packets: u64,
    cpu_ns: u64,
    end: Instant,
}

/// Floods the first of two devices, while `forward` runs in a thread of its own and carries packets between
/// the devices.
fn through(
    device: DeviceKind,
    size: Bytes,
    time: Duration,
    handover: Handover,
    forward: impl FnOnce(&[OwnedFd; 2], RunClock, &AtomicBool) -> io::Result<Carried> + Send,
) -> Result<Forwarding, ArenaError> {
    let failed = |error: io::Error| ArenaError::Unavailable {
        what: format!("the measurement of forwarding failed: {error}"),
        how: "see `talkpath doctor`".to_owned(),
    };
    let transport = TransportSpec::Udp { receive_buffer: Some(MIN_BUFFER), ecn: false };
    let sockets = [true, false].map(|is_sender| SocketPlan {
        flow: 0,
        host: if is_sender { Host::First } else { Host::Second },
        transport: &transport,
        tos: None,
        is_sender,
        path_mtu: None,
        window_clamp: None,
        is_paced: false,
    });
    let mut world = World::build(&WorldPlan { device, sockets: &sockets, ..WorldPlan::bare() })?;
    let sender = UdpSocket::from(world.sockets.swap_remove(0));
    let size = size.get().clamp(8, 1400);
    let at_once = match handover {
        Handover::Single => 1,
        Handover::SuperPackets => {
            set_option(sender.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, [size as libc::c_int])
                .map_err(failed)?;
            (65_000 / size).min(64)
        }
    };
    let host = HostClock::anchor();
    let clock = host.run_from(host.now_ns() + LEAD.as_nanos() as i64);
    let (stop, is_ready) = (AtomicBool::new(false), Barrier::new(2));
    let carried = std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| {
            // This thread becomes real-time before the sender does. Otherwise a real-time sender could keep
            // it from beginning.
            let _ = fork::take_emulator_priority().or_else(|_| become_real_time());
            is_ready.wait();
            forward(&world.devices, clock, &stop)
        });
        let sending = scope.spawn(|| {
            is_ready.wait();
            // A real-time sender stays faster than the forwarding thread on a busy machine. The error is
            // ignored: without real time, idle time of the forwarding thread counts too.
            let _ = become_real_time();
            clock.sleep_until(Instant::ZERO, LEAD);
            let datagrams = vec![0; usize::try_from(size * at_once).unwrap_or(0)];
            let until = Instant::ZERO + time;
            while clock.now() < until {
                // If the device's queue is full, the datagrams are lost. The sender is meant to be faster
                // than the forwarding thread.
                let _ = sender.send(&datagrams);
            }
        });
        // A sender that failed has sent less, which the figures show.
        let _ = sending.join();
        stop.store(true, Ordering::Relaxed);
        forwarding.join().unwrap_or_else(|_| Err(io::Error::other("the forwarding thread failed")))
    })
    .map_err(failed)?;
    let drops = world.device_drops().map_err(failed)?;
    let (wall, cpu) = (carried.end.since(Instant::ZERO), Duration::from_nanos(carried.cpu_ns));
    Ok(Forwarding { packets: carried.packets, dropped: drops.from_host, wall, cpu })
}

/// Makes a scenario of one flow, with a wide link in each direction.
fn flood() -> Scenario {
    let link = |name: &str| NamedLink {
        name: name.to_owned(),
        config: LinkConfig {
            delay: Duration::from_millis(1),
            ..LinkConfig::bare(RateModel::Fixed(Rate::from_bps(10_000_000_000)))
        },
    };
    let flow = Flow {
        route: vec![LinkIndex(0)],
        return_route: vec![LinkIndex(1)],
        ..Flow::new("flood", "udp", TransportConfig::udp_default(), WorkloadConfig::G711)
    };
    Scenario {
        name: "flood".to_owned(),
        duration: Duration::from_secs(3600),
        drain: Duration::ZERO,
        warm_up: Duration::ZERO,
        seed: Seed::new(1),
        repeat: 1,
        far_clock: None,
        ip: IpVersion::V4,
        kernel: None,
        program: None,
        has_path: true,
        changes: Vec::new(),
        change_origins: Vec::new(),
        links: vec![link("up"), link("down")],
        flows: vec![flow],
    }
}
