//! The loop between the two cables: take, decide in virtual time, write at the promised departure.
//!
//! ```text
//!  first host's cable ─► take, with its stamp ─► Network ─► wait until departure ─► write ─► other cable
//!                    (and back, in the same thread: links may carry both directions)
//! ```
//!
//! A packet arrives at the time of its stamp, which the kernel writes when it takes the packet from its host.
//! It does not matter how late this thread looks. The packets of both cables are taken in the order of their
//! stamps. The path is stepped up to the last time at which both cables were empty, and no further. The
//! kernel stamps a packet first and copies it then, so a packet may appear with a stamp before that time.
//! Such a packet arrives at that time instead, and the emulator measures the difference.
//!
//! The model decides a packet's departure from its arrival. The machine adds only the lateness of the write,
//! which is measured for every packet.

mod departures;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_config::TransportKind;
use talkpath_kernel::clock::{RunClock, WallStamps};
use talkpath_kernel::throttle::Throttle;
use talkpath_model::IpVersion;
use talkpath_path::{Direction, FragmentRange};
use talkpath_units::{Duration, Ecn, Histogram, Instant};

use crate::arrival_log::LogWriter;
use crate::capture::{Capture, Interface};
use crate::decision::{Arrival, DecidingNetwork, Decision};
use crate::device::{Device, MAX_TRAIN, Taken};
use crate::lanes::{Entered, Lanes, PacketRow};
use crate::packet::{FIRST_PORT, Host, Parsed, Protocol, UDP_HEADER, addresses, segment_range};
use crate::realtime::{OwnProcessor, raise_priority};
use crate::stops::{LATE, Stops};
use crate::watch::LegWatch;
use crate::world::second_address;

/// The emulator, before the run and during the run.
pub(super) struct Emulator<'a> {
    network: DecidingNetwork,
    log: LogWriter,
    capture: Option<Capture>,
    devices: [Device<'a>; 2],
    clock: RunClock,
    throttle: Throttle,
    flows: Vec<EmuFlow>,
    /// When the emulator last wrote packets.
    written: Instant,
    /// When this thread wanted to run again after its last sleep.
    away_until: Instant,
    /// The datagrams of one flow that leave together by one write: the slot of each, and its decided
    /// departure.
    train: Vec<(u32, Instant)>,
    /// For each host and identification, the owner of the latest datagram that began with a fragment.
    fragmented: [Identified; 2],
    /// The packets of the user's programs. `None` if only flows cross the path.
    lanes: Option<Lanes>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    slot_size: usize,
    max_slots: usize,
    /// The path's decisions that are not carried out yet.
    decisions: Vec<Decision>,
    /// The number of `decisions` that are already in the log.
    logged: usize,
    fragment: Vec<u8>,
    totals: Totals,
}

/// A flow as the emulator knows it.
pub(super) struct EmuFlow {
    pub(super) sender: Host,
    /// The protocol of its packets.
    pub(super) transport: TransportKind,
    /// True if the flow's connection may use several paths. Each path then has TCP sequence numbers of its
    /// own, which do not number the bytes of the stream.
    pub(super) is_multipath: bool,
    /// The number of the flow's second path in the network, if it has one.
    pub(super) second_path: Option<u32>,
    /// The watches of both directions: from the sender, and back to it.
    pub(super) watches: [LegWatch; 2],
    /// The number of packets that were handed over with the ECN mark CE, in both directions.
    pub(super) marked: [u64; 2],
    /// How often a packet of the flow was late by more than [`LATE`], in its arrival or its departure.
    pub(super) late: u64,
    /// The number of datagram messages that were dropped or lost in both directions. The thread that waits
    /// for the run's end reads it. There is one pair for each flow of the connection.
    pub(super) drops: Vec<std::sync::Arc<[AtomicU64; 2]>>,
}

/// The results of the emulator.
pub(super) struct Emulated {
    pub(super) network: DecidingNetwork,
    pub(super) log: Vec<u8>,
    /// The capture, and the number of packets that are missing in it.
    pub(super) capture: Option<(Vec<u8>, u64)>,
    pub(super) flows: Vec<EmuFlow>,
    pub(super) lanes: Option<Lanes>,
    pub(super) totals: Totals,
    /// When the emulator stopped.
    pub(super) end: Instant,
}

/// The counts of the emulator, most of which say how the machine disturbed it.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    /// The time from the decided departure of each packet to its write.
    pub(super) lateness: Histogram,
    /// The time from the kernel's stamp of each packet to its arrival in the path.
    pub(super) backlog: Histogram,
    /// The number of packets that belong to a flow and entered the path.
    pub(super) packets: u64,
    /// The number of packets for which no memory was left.
    pub(super) overruns: u64,
    /// The number of packets that a device did not take, or that a host had not cut to its MTU.
    pub(super) refused: u64,
    /// The number of packets of TCP or UDP that belong to no flow. They do not cross the path.
    pub(super) strays: u64,
    /// The times in which the thread did not run although it had work.
    pub(super) stops: Stops,
    /// The processor time of the thread, ns.
    pub(super) cpu_ns: u64,
    /// The reason why the thread has no real-time priority. `None` if it has.
    pub(super) realtime_denied: Option<String>,
}

/// The owners of fragmented datagrams, by their identification.
type Identified = Box<[Option<Owner>]>;

/// The flow, path and message that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    flow: u32,
    /// The number of the path in the network.
    path: u32,
    /// For a later fragment, the number of the message in its datagram, or if the flow is [`PROGRAM`] the
    /// number of the conversation. `None` if the number is not known, for example if another program sent the
    /// datagram.
    seq: Option<u64>,
}

/// A place for a packet's bytes. The packet stays until each of its pieces has departed, or was dropped or
/// lost.
struct Slot {
    bytes: Box<[u8]>,
    parsed: Parsed,
    /// True if the checksum of TCP or UDP is not complete, so that the receiving host has to complete it.
    is_unsummed: bool,
    /// The packet's flow. [`PROGRAM`] if it is a packet of one of the user's programs.
    flow: u32,
    /// The row of a packet of one of the user's programs.
    row: Option<PacketRow>,
    /// True if the packet has left the path with the ECN mark CE.
    has_left_marked: bool,
    direction: Direction,
    /// The number of the message in the packet's datagram, if it is known.
    seq: Option<u64>,
    to: Host,
    /// The number of payload bytes for which the path has no decision yet.
    undecided: u32,
}

impl<'a> Emulator<'a> {
    /// Makes the emulator between `devices`. Their packets have at most `mtu` bytes.
    pub(super) fn new(
        network: DecidingNetwork,
        log: LogWriter,
        capture: Option<Capture>,
        devices: [Device<'a>; 2],
        mtu: u16,
        clock: RunClock,
        flows: Vec<EmuFlow>,
    ) -> Self {
        let slot_size = usize::from(mtu);
        let identifications = || vec![None; 1 << 16].into_boxed_slice();
        Self {
            network,
            log,
            capture,
            devices,
            clock,
            throttle: Throttle::new(),
            flows,
            written: Instant::ZERO,
            away_until: Instant::ZERO,
            train: Vec::with_capacity(MAX_TRAIN),
            fragmented: [identifications(), identifications()],
            lanes: None,
            slots: Vec::new(),
            free: Vec::new(),
            slot_size,
            max_slots: MAX_MEMORY / slot_size.max(1),
            decisions: Vec::new(),
            logged: 0,
            fragment: Vec::new(),
            totals: Totals {
                lateness: Histogram::new(),
                backlog: Histogram::new(),
                packets: 0,
                overruns: 0,
                refused: 0,
                strays: 0,
                stops: Stops::default(),
                cpu_ns: 0,
                realtime_denied: None,
            },
        }
    }

    /// The same emulator, which also carries packets of no flow.
    pub(super) fn with_lanes(mut self, lanes: Option<Lanes>) -> Self {
        self.lanes = lanes;
        self
    }

    /// Carries packets until `stop`, on the processor `place`.
    ///
    /// # Errors
    /// Returns the system's error if a device, or the wait for a device, failed.
    pub(super) fn run(mut self, place: &OwnProcessor, stop: &AtomicBool) -> io::Result<Emulated> {
        place.pin();
        self.totals.realtime_denied = raise_priority();
        self.throttle = Throttle::new();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.totals.stops.note(self.away_until, now);
            self.away_until = now;
            let taken = self.take_burst();
            if taken < BURST {
                // Both cables were found empty after `now`, so everything up to `now` can be decided.
                self.step(now);
            }
            if self.clock.now() >= self.next_write() {
                self.carry_out();
            }
            if taken == 0 {
                self.wait()?;
            } else if self.throttle.must_sleep() {
                self.throttle.sleep_briefly();
            }
        }
        let end = self.clock.now();
        self.step(end);
        self.carry_out();
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        self.totals.cpu_ns = u64::try_from(cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec).unwrap_or(0);
        let Self { network, log, capture, flows, lanes, totals, .. } = self;
        let capture = capture.map(Capture::finish);
        Ok(Emulated { network, log: log.finish(end), capture, flows, lanes, totals, end })
    }

    /// Takes the packets that wait in both cables, at most [`BURST`], in the order of their stamps. Returns
    /// the number of packets.
    fn take_burst(&mut self) -> usize {
        let mut stamps = None;
        for taken in 0..BURST {
            let [first, second] = [0, 1].map(|host: usize| self.devices[host].waiting());
            let (host, stamp_ns) = match (first, second) {
                (None, None) => return taken,
                (Some(first), None) => (Host::First, first),
                (None, Some(second)) => (Host::Second, second),
                (Some(first), Some(second)) if first <= second => (Host::First, first),
                (Some(_), Some(second)) => (Host::Second, second),
            };
            // If the packet came after the clocks were read, the clocks are read again.
            let known = stamps.filter(|stamps: &WallStamps| stamps.follows(stamp_ns));
            let stamp = stamps.insert(known.unwrap_or_else(|| self.clock.beside_wall())).at(stamp_ns);
            let arrival = stamp.max(self.network.now());
            self.take(host, arrival, arrival.since(stamp));
        }
        BURST
    }

    /// Takes the packet that waits longest in a host's cable. It arrives at `arrival`, which is `displaced`
    /// after its stamp.
    fn take(&mut self, host: Host, arrival: Instant, displaced: Duration) {
        let Some(slot) = self.free_slot() else {
            // No memory is left for the packet, so it is thrown away.
            self.totals.overruns += 1;
            self.devices[host.index()].take(&mut []);
            return;
        };
        let entry = &mut self.slots[slot as usize];
        match self.devices[host.index()].take(&mut entry.bytes) {
            Taken::Packet { parsed, is_unsummed } => {
                (entry.parsed, entry.is_unsummed) = (parsed, is_unsummed);
                self.totals.backlog.record_unsigned(displaced);
                self.handle_packet(host, slot, arrival, displaced);
                return;
            }
            // ICMP or multicast, which does not cross the path.
            Taken::Stray => {}
            Taken::Unfit => self.totals.refused += 1,
        }
        self.free.push(slot);
    }

    /// Lets the packet in `slot` enter the path at `stamp`, which is `displaced` after the kernel's stamp.
    fn handle_packet(&mut self, host: Host, slot: u32, stamp: Instant, displaced: Duration) {
        let entry = &mut self.slots[slot as usize];
        let parsed = entry.parsed;
        let owner = owner_of(&parsed, host, self.flows.len(), &self.fragmented)
            .or_else(|| second_path_of(&entry.bytes, &parsed, &self.flows));
        let (flow, path, known_seq) = match owner {
            Some(Owner { flow: PROGRAM, seq: conversation, .. }) => {
                return self.handle_program_packet(host, slot, conversation, stamp);
            }
            None => return self.handle_program_packet(host, slot, None, stamp),
            Some(Owner { flow, path, seq }) => (flow, path, seq),
        };
        let emu_flow = &mut self.flows[flow as usize];
        emu_flow.late += u64::from(displaced > LATE);
        let direction = host.direction(emu_flow.sender);
        let watch = &mut emu_flow.watches[direction as usize];
        let seq = match (parsed.ports, parsed.protocol) {
            // A later fragment has no header of TCP or UDP. Only its datagram's first fragment is known.
            (None, _) => known_seq,
            (Some(_), Protocol::Udp) => {
                let payload = entry.bytes.get(parsed.header + UDP_HEADER..parsed.length).unwrap_or(&[]);
                watch.on_datagram(payload, stamp)
            }
            (Some(_), Protocol::Tcp) if emu_flow.is_multipath => None,
            // Only the protocols with ports have flows.
            (Some(_), Protocol::Other(_)) => None,
            (Some(_), Protocol::Tcp) => {
                if let Some(range) = segment_range(&entry.bytes, &parsed) {
                    watch.on_segment(&range, stamp);
                }
                None
            }
        };
        if parsed.part.more && parsed.ports.is_some() {
            let owner = Owner { flow, path, seq };
            self.fragmented[host.index()][usize::from(parsed.identification)] = Some(owner);
        }
        (entry.flow, entry.direction, entry.seq) = (flow, direction, seq);
        (entry.to, entry.undecided, entry.row) = (host.other(), parsed.part.length, None);
        if let Some(capture) = &mut self.capture {
            let interface = Interface::of(direction == Direction::Back, emu_flow.transport);
            capture.note(interface, &entry.bytes[..parsed.length], &parsed, entry.is_unsummed, stamp);
        }
        self.enter(slot, path, stamp);
    }

    /// Lets a packet of one of the user's programs enter the path at `stamp`. A later fragment belongs to
    /// `conversation`.
    fn handle_program_packet(&mut self, host: Host, slot: u32, conversation: Option<u64>, stamp: Instant) {
        let entry = &mut self.slots[slot as usize];
        let parsed = entry.parsed;
        let packet = &entry.bytes[..parsed.length];
        let conversation = conversation.and_then(|number| u32::try_from(number).ok());
        let entered = self
            .lanes
            .as_mut()
            .and_then(|lanes| lanes.on_arrival(host, packet, &parsed, conversation, stamp));
        let Some(Entered { lane, conversation, row }) = entered else {
            self.totals.strays += u64::from(!matches!(parsed.protocol, Protocol::Other(_)));
            self.free.push(slot);
            return;
        };
        if parsed.part.more && parsed.part.offset == 0 {
            let owner = Owner { flow: PROGRAM, path: lane, seq: Some(conversation.into()) };
            self.fragmented[host.index()][usize::from(parsed.identification)] = Some(owner);
        }
        // The first host's packets go the way out of each lane.
        let direction = host.direction(Host::First);
        (entry.flow, entry.direction, entry.seq) = (PROGRAM, direction, None);
        (entry.to, entry.undecided, entry.row) = (host.other(), parsed.part.length, Some(row));
        if let Some(capture) = &mut self.capture {
            let interface = Interface::of(direction == Direction::Back, TransportKind::Udp);
            capture.note(interface, &entry.bytes[..parsed.length], &parsed, entry.is_unsummed, stamp);
        }
        self.enter(slot, lane, stamp);
    }

    /// Lets the packet in `slot` enter the network at `stamp`, on the path with this number.
    fn enter(&mut self, slot: u32, path: u32, stamp: Instant) {
        let Slot { parsed, direction, .. } = self.slots[slot as usize];
        self.totals.packets += 1;
        // The decisions until now are written before this arrival, so that the log is in order of time.
        self.step(stamp);
        let arrival = Arrival { flow: path, direction, part: parsed.part, ecn: parsed.ecn };
        self.log.arrival(&arrival, parsed.identification, stamp);
        self.network.handle_arrival(arrival, slot, stamp, &mut self.decisions);
        self.note_services();
        self.log_decisions();
    }

    /// Makes all decisions of the path up to `until`, and writes them to the log.
    fn step(&mut self, until: Instant) {
        self.network.advance(until, &mut self.decisions);
        self.note_services();
        self.log_decisions();
    }

    /// Takes note of how long the packets of the user's programs waited.
    fn note_services(&mut self) {
        let Some(lanes) = &mut self.lanes else { return };
        for (tag, began) in self.network.services() {
            if let Some(row) = self.slots[tag as usize].row {
                lanes.on_service(row, began);
            }
        }
    }

    fn log_decisions(&mut self) {
        for decision in &self.decisions[self.logged..] {
            self.log.decision(decision, self.slots[decision.tag as usize].parsed.part);
        }
        self.logged = self.decisions.len();
    }

    fn free_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.slots.len() >= self.max_slots {
            return None;
        }
        self.slots.push(Slot::empty(self.slot_size));
        u32::try_from(self.slots.len() - 1).ok()
    }

    /// When the emulator has to write next: at the next departure, but at least [`TOLERANCE`] after the last
    /// write. Packets that depart within this time leave by one system call.
    fn next_write(&self) -> Instant {
        let departure = if self.decisions.is_empty() {
            self.network.poll_timeout().unwrap_or(Instant::MAX)
        } else {
            Instant::ZERO
        };
        departure.max(self.written.saturating_add(TOLERANCE))
    }

    /// Sleeps until a packet arrives or the next write is near. If the next write is already near, the thread
    /// spins, unless it has to sleep.
    fn wait(&mut self) -> io::Result<()> {
        let gap = self.next_write().since(self.clock.now()).as_nanos();
        if gap <= SPIN_NS {
            if self.throttle.must_sleep() {
                self.throttle.sleep_briefly();
            } else {
                std::hint::spin_loop();
            }
            return Ok(());
        }
        let nanoseconds = (gap - SPIN_NS).min(MAX_WAIT_NS);
        self.away_until = self.clock.now().saturating_add(Duration::from_nanos(nanoseconds));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(nanoseconds).unwrap_or(0) };
        let mut fds = [0, 1].map(|host: usize| PollFd::new(self.devices[host].fd(), PollFlags::IN));
        // ppoll takes nanoseconds. epoll_wait would round up to milliseconds.
        match self.throttle.sleep_with(|| poll(&mut fds, Some(&timeout))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Slot {
    fn empty(size: usize) -> Self {
        let part = FragmentRange { offset: 0, length: 0, more: false };
        let parsed = Parsed {
            ip: IpVersion::V4,
            header: 0,
            length: 0,
            part,
            ecn: Ecn::NotEct,
            identification: 0,
            protocol: Protocol::Udp,
            ports: None,
        };
        Self {
            bytes: vec![0; size].into_boxed_slice(),
            parsed,
            is_unsummed: false,
            flow: 0,
            row: None,
            has_left_marked: false,
            direction: Direction::Out,
            seq: None,
            to: Host::First,
            undecided: 0,
        }
    }
}

/// Finds the owner of a packet from `host` by its ports, or for a later fragment by its identification.
fn owner_of(parsed: &Parsed, host: Host, flows: usize, fragmented: &[Identified; 2]) -> Option<Owner> {
    let Some((source, destination)) = parsed.ports else {
        if parsed.part.offset == 0 {
            return None;
        }
        return fragmented[host.index()][usize::from(parsed.identification)];
    };
    let flow = source.checked_sub(FIRST_PORT)?;
    let owner = Owner { flow: flow.into(), path: flow.into(), seq: None };
    (source == destination && usize::from(flow) < flows).then_some(owner)
}

/// Finds the owner of a packet whose source or destination is a host's second address. The host with that
/// address has opened the subflow from a port that its kernel chose. The other end has the flow's port.
fn second_path_of(packet: &[u8], parsed: &Parsed, flows: &[EmuFlow]) -> Option<Owner> {
    let (source, destination) = parsed.ports?;
    let is_second = |address: IpAddr| {
        [Host::First, Host::Second].into_iter().any(|host| second_address(host, parsed.ip) == address)
    };
    let (from, to) = addresses(packet, parsed.ip)?;
    let port = match (is_second(from), is_second(to)) {
        (true, false) => destination,
        (false, true) => source,
        _ => return None,
    };
    let flow = port.checked_sub(FIRST_PORT)?;
    let path = flows.get(usize::from(flow))?.second_path?;
    Some(Owner { flow: flow.into(), path, seq: None })
}

/// The flow of the packets of the user's programs. No flow of a scenario has this number.
const PROGRAM: u32 = u32::MAX;
/// The largest number of packets that are taken before the next write (chosen: some 20 us of work, which is
/// less than a wake-up costs).
const BURST: usize = 32;
/// The shortest time between two writes. A departure just after a write is late by up to this time (chosen:
/// the time of two to four writes, and a sixth of the lateness at which a run has a warning).
const TOLERANCE: Duration = Duration::from_micros(15);
/// The time before a write at which a sleep ends. Wake-ups are late by about this time (measured;
/// docs/models/emulation.md).
const SPIN_NS: u64 = 60_000;
/// The longest time in which the loop does not check whether it shall stop, ns.
const MAX_WAIT_NS: u64 = 20_000_000;
/// The memory for packets that are on their way (chosen: 2 Gbps over half a second).
const MAX_MEMORY: usize = 256 << 20;
