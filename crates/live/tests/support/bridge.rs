//! Two network namespaces joined by a user-space bridge that delays, loses, duplicates and reorders on
//! purpose and logs exactly what it did.
//!
//! ```text
//!  namespace "near"                   this process                        namespace "far"
//!  10.77.0.1 tp0 (TUN) ─► read ─► decide ─► hold `delay` ─► write ─► tp0 (TUN) 10.77.0.2
//! ```
//!
//! Each end is a thread that has left the host's network namespace; what it starts (threads, commands) is in
//! there too. Nothing leaves the machine: the namespaces have no other device. The bridge is IPv4 only. Needs
//! root.
#![expect(unsafe_code, reason = "unshare and TUNSETIFF have no safe wrapper")]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_units::{Duration, Seed, Stream};
use talkpath_wire::dccp::codec::{Carrier, decode};

pub const NEAR: &str = "10.77.0.1";
pub const FAR: &str = "10.77.0.2";

/// What the bridge does to packets; probabilities apply to measured UDP datagrams only, `delay` to all.
#[derive(Clone, Copy, Debug)]
pub struct Impairment {
    /// One way.
    pub delay: Duration,
    pub loss: f64,
    pub duplicate: f64,
    /// Probability of `extra` on top of `delay`: later packets overtake.
    pub reorder: f64,
    pub extra: Duration,
    /// Probability that a byte is changed on the way, so that the checksum is wrong.
    pub corrupt: f64,
    /// Datagrams with a wrong checksum that a stranger sends to the far host's port, one before each measured
    /// one.
    pub forged: usize,
    /// Probability with which a TCP segment of any kind is lost.
    pub tcp_loss: f64,
    /// Probability with which a measured datagram, or a segment with one message, is marked if it is
    /// ECN-capable (RFC 3168 §5). If it is not zero, both hosts' TCP offers ECN.
    pub mark: f64,
    /// IP packets larger than this are lost without a word.
    pub largest: usize,
    /// From when to when after the first packet all packets are lost.
    pub outage: Option<(Duration, Duration)>,
    /// UDP payload bytes of a measured message, which tells it from registrations.
    pub size: usize,
    pub seed: u64,
}

impl Impairment {
    /// Nothing but delay.
    pub fn delay(delay: Duration) -> Self {
        Self {
            delay,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            extra: Duration::ZERO,
            corrupt: 0.0,
            forged: 0,
            tcp_loss: 0.0,
            mark: 0.0,
            largest: usize::MAX,
            outage: None,
            size: 160,
            seed: 1,
        }
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From near to far.
    Up,
    /// From far to near.
    Down,
}

/// What the bridge saw and did: sequence numbers of measured datagrams, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub taken: Vec<(Way, u32)>,
    pub given: Vec<(Way, u32)>,
    /// Of these, those that were changed.
    pub corrupted: Vec<(Way, u32)>,
    /// What was marked.
    pub marked: Vec<Way>,
}

impl Log {
    /// What was given to the side that `way` leads to, in order.
    pub fn given(&self, way: Way) -> Vec<u64> {
        self.given.iter().filter(|entry| entry.0 == way).map(|entry| u64::from(entry.1)).collect()
    }

    pub fn taken(&self, way: Way) -> Vec<u64> {
        self.taken.iter().filter(|entry| entry.0 == way).map(|entry| u64::from(entry.1)).collect()
    }
}

/// The two namespaces and the bridge.
pub struct Bridge {
    pub near: Namespace,
    pub far: Namespace,
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<Log>>,
    thread: Option<JoinHandle<()>>,
}

/// A thread in a namespace of its own, which runs what it is given.
pub struct Namespace {
    jobs: Option<Sender<Box<dyn FnOnce() + Send>>>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// Builds it, or says why it cannot be built here.
    pub fn new(impairment: Impairment) -> Result<Self, String> {
        let (near, near_tun) = Namespace::new(NEAR, FAR)?;
        let (far, far_tun) = Namespace::new(FAR, NEAR)?;
        if impairment.mark > 0.0 {
            for host in [&near, &far] {
                let set = host.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"));
                set.map_err(|error| format!("tcp_ecn: {error}"))?;
            }
        }
        let (stop, log) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Log::default())));
        let thread = std::thread::spawn({
            let (stop, log) = (Arc::clone(&stop), Arc::clone(&log));
            move || forward(near_tun, far_tun, impairment, &stop, &log)
        });
        Ok(Self { near, far, stop, log, thread: Some(thread) })
    }

    /// What happened so far.
    pub fn log(&self) -> Log {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Namespace {
    fn new(address: &'static str, peer: &'static str) -> Result<(Self, File), String> {
        Self::entered(move || enter(address, peer))
    }

    /// One with loopback alone, which has the IPv6 address of one link `fe80::1` too.
    pub fn of_one_link() -> Result<Self, String> {
        let entered = Self::entered(|| {
            leave_the_hosts()?;
            ip(&["link", "set", "lo", "up"])?;
            ip(&["addr", "add", "fe80::1/64", "dev", "lo", "nodad"])
        });
        entered.map(|(namespace, ())| namespace)
    }

    /// One that `enter` leads into, and what it gives.
    fn entered<T: Send + 'static>(
        enter: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<(Self, T), String> {
        let (jobs, inbox) = channel::<Box<dyn FnOnce() + Send>>();
        let (ready, made) = channel();
        let thread = std::thread::spawn(move || {
            let entered = enter();
            let is_made = entered.is_ok();
            let _ = ready.send(entered);
            if is_made {
                work(&inbox);
            }
        });
        let entered = made.recv().map_err(|error| error.to_string())??;
        Ok((Self { jobs: Some(jobs), thread: Some(thread) }, entered))
    }

    /// Starts `job` in the namespace; the receiver gives its result. Jobs run one after another.
    pub fn start<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
        let (sender, receiver) = channel();
        let job = Box::new(move || drop(sender.send(job())));
        self.jobs.as_ref().unwrap().send(job).unwrap();
        receiver
    }

    /// Runs `job` in the namespace.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.start(job).recv().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(inbox: &Receiver<Box<dyn FnOnce() + Send>>) {
    while let Ok(job) = inbox.recv() {
        job();
    }
}

/// Leaves for a new namespace.
fn leave_the_hosts() -> Result<(), String> {
    // SAFETY: unshare with CLONE_NEWNET takes no pointer and affects this thread only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("unshare of the network: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Leaves for a new namespace and makes its only device.
fn enter(address: &str, peer: &str) -> Result<File, String> {
    leave_the_hosts()?;
    let tun = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .map_err(|error| format!("/dev/net/tun: {error}"))?;
    // SAFETY: `ifreq` is plain old data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"tp0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq` through the pointer, which outlives the call.
    if unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } != 0 {
        return Err(format!("TUNSETIFF: {}", std::io::Error::last_os_error()));
    }
    // Without IPv6 the kernel sends nothing of its own accord.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    ip(&["link", "set", "lo", "up"])?;
    ip(&["addr", "add", address, "peer", peer, "dev", "tp0"])?;
    ip(&["link", "set", "tp0", "txqueuelen", "10000", "up"])?;
    Ok(tun)
}

/// The bridge's loop.
fn forward(mut near: File, mut far: File, impairment: Impairment, stop: &AtomicBool, log: &Mutex<Log>) {
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let seed = Seed::new(impairment.seed);
    let mut streams = [seed.stream("bridge/up"), seed.stream("bridge/down")];
    let mut held: BTreeMap<(u64, u64), (Way, Vec<u8>)> = BTreeMap::new();
    let (mut number, mut forged, mut begun) = (0, 0, None);
    let mut buffer = [0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let wait = held.keys().next().map_or(5_000_000, |&(at, _)| at.saturating_sub(now()).min(5_000_000));
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait as i64 };
        let _ =
            poll(&mut [PollFd::new(&near, PollFlags::IN), PollFd::new(&far, PollFlags::IN)], Some(&timeout));
        for (way, stream) in [Way::Up, Way::Down].into_iter().zip(&mut streams) {
            let from = if way == Way::Up { &mut near } else { &mut far };
            while let Ok(count) = from.read(&mut buffer) {
                let arrived = now();
                let since = Duration::from_nanos(arrived - *begun.get_or_insert(arrived));
                if count > impairment.largest
                    || impairment.outage.is_some_and(|(from, to)| (from..to).contains(&since))
                {
                    continue;
                }
                let seq = measured(&buffer[..count], impairment.size);
                if way == Way::Up && seq.is_some() && forged < impairment.forged {
                    (forged, number) = (forged + 1, number + 1);
                    held.insert((arrived, number), (way, forgery()));
                }
                if let Some(seq) =
                    seq.filter(|_| impairment.corrupt > 0.0 && stream.chance(impairment.corrupt))
                {
                    buffer[count - 1] ^= 1;
                    log.lock().unwrap().corrupted.push((way, seq));
                }
                let packet = &mut buffer[..count];
                let is_markable = seq.is_some() || is_message_segment(packet, impairment.size);
                if is_markable && impairment.mark > 0.0 && stream.chance(impairment.mark) && mark(packet) {
                    log.lock().unwrap().marked.push(way);
                }
                for extra in decide(&buffer[..count], way, &impairment, stream, log) {
                    number += 1;
                    let at = arrived + impairment.delay.as_nanos() + extra.as_nanos();
                    held.insert((at, number), (way, buffer[..count].to_vec()));
                }
            }
        }
        while let Some(entry) = held.first_entry().filter(|entry| entry.key().0 <= now()) {
            let (way, packet) = entry.remove();
            // The log comes first: the packet's reader may read the log at once.
            if let Some(seq) = measured(&packet, impairment.size) {
                log.lock().unwrap().given.push((way, seq));
            }
            let to = if way == Way::Up { &mut far } else { &mut near };
            to.write_all(&packet).unwrap();
        }
    }
}

/// One entry for each copy to give, with its extra delay.
fn decide(
    packet: &[u8],
    way: Way,
    impairment: &Impairment,
    stream: &mut Stream,
    log: &Mutex<Log>,
) -> Vec<Duration> {
    let Some(seq) = measured(packet, impairment.size) else {
        let is_tcp = packet.get(9) == Some(&6);
        return if is_tcp && stream.chance(impairment.tcp_loss) { Vec::new() } else { vec![Duration::ZERO] };
    };
    log.lock().unwrap().taken.push((way, seq));
    let (is_lost, is_twice, is_late) = (
        stream.chance(impairment.loss),
        stream.chance(impairment.duplicate),
        stream.chance(impairment.reorder),
    );
    let extra = if is_late { impairment.extra } else { Duration::ZERO };
    match (is_lost, is_twice) {
        (true, _) => Vec::new(),
        (false, true) => vec![extra, extra],
        (false, false) => vec![extra],
    }
}

/// Whether an IPv4 packet is a segment of TCP with `size` payload bytes that are not a line of the control
/// connection.
fn is_message_segment(packet: &[u8], size: usize) -> bool {
    let header = usize::from(packet[0] & 15) * 4;
    let Some(offset) = packet.get(header + 12).filter(|_| packet.get(9) == Some(&6)) else { return false };
    let payload = packet.get(header + usize::from(offset >> 4) * 4..).unwrap_or_default();
    payload.len() == size && payload[0] != b'{'
}

/// Marks an IPv4 packet that takes marks and has none (RFC 3168 §5); returns whether it did.
fn mark(packet: &mut [u8]) -> bool {
    if packet[0] >> 4 != 4 || !matches!(packet[1] & 0b11, 0b01 | 0b10) {
        return false;
    }
    packet[1] |= 0b11;
    packet[10..12].fill(0);
    let header = usize::from(packet[0] & 15) * 4;
    let words = packet[..header].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    true
}

/// A datagram from nowhere (TEST-NET-3, RFC 5737) to the far host's port of the tests, with a wrong UDP
/// checksum. It is longer than what Linux checks before it has found the socket (76 B).
fn forgery() -> Vec<u8> {
    const PAYLOAD: u16 = 200;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 203, 0, 113, 9];
    packet.extend(FAR.parse::<std::net::Ipv4Addr>().unwrap().octets());
    packet[2..4].copy_from_slice(&(28 + PAYLOAD).to_be_bytes());
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    // Ports, length, and a checksum that is none of this datagram's.
    for word in [9_u16, 7160, 8 + PAYLOAD, 1] {
        packet.extend(word.to_be_bytes());
    }
    packet.resize(28 + usize::from(PAYLOAD), 0);
    packet
}

/// The sequence number of `packet`, an IPv4 packet, if it is a measured datagram of `size` payload bytes, or
/// a DCCP packet in UDP with as much data.
pub fn measured(packet: &[u8], size: usize) -> Option<u32> {
    let header = usize::from(packet.first()? & 15) * 4;
    let is_udp = packet.first()? >> 4 == 4 && packet.get(9) == Some(&17);
    let datagram = packet.get(header + 8..)?;
    let payload = match decode(datagram, Carrier::Udp) {
        Ok(decoded) if decoded.data.len() == size => decoded.data,
        _ => datagram,
    };
    let bytes = payload.get(4..8)?;
    (is_udp && payload.len() == size).then(|| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// CLOCK_MONOTONIC, ns.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
