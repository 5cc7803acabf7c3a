//! The loop of the emulator: receive packets, let the path's model decide about them, and write each one at
//! its decided departure.
//!
//! ```text
//!  first host ─► device ─► receive, with the kernel's stamp ─► network decides ─► wait until departure ─┐
//!  second host ◄─ device ◄──────────────────────────────────────────────────────── write ◄──────────────┘
//! ```
//!
//! The same thread carries the packets back, because a link may carry both directions.
//!
//! - *device*: the emulator's end of the virtual Ethernet cable of a host.
//! - *stamp*: the time at which the kernel took a packet from its host. The kernel writes it into the ring of
//!   the device.
//! - *arrival*: the time at which a packet enters the path. It is the stamp, unless the path has already been
//!   decided up to a later time.
//! - *backlog*: the time from a packet's stamp to its arrival.
//! - *lateness*: the time from a packet's decided departure to its write.
//! - *slot*: a buffer that holds a packet until each of its pieces has departed, or was dropped or lost.
//! - *piece*: a fragment of a packet. A link with a small MTU cuts packets into pieces.
//! - *train*: datagrams of one flow that leave by one write.
//!
//! The delay of a packet on the path depends on its stamp, and not on when this thread receives the packet.
//! The packets of both devices are received in the order of their stamps. If both devices are empty, no
//! packet with an earlier stamp can follow, so the path is decided up to the time before the devices were
//! checked. There is one exception: the kernel stamps a packet first and copies it then, so a packet may
//! appear with a stamp before that time. Its arrival is then that time, and the difference is its backlog.
//!
//! The machine adds only the backlog and the lateness to the delay of the model. Both are measured for each
//! packet.
//!
//! Begin to read with [`Emulator::run`].

mod arrivals;
mod departures;
mod flow;
mod owner;
mod slots;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use talkpath_kernel::clock::RunClock;
use talkpath_kernel::throttle::Throttle;
use talkpath_units::{Duration, Histogram, Instant};

pub(super) use self::flow::EmuFlow;
use self::owner::FragmentOwners;
use self::slots::SlotTable;
use crate::arrival_log::LogWriter;
use crate::capture::{Capture, FinishedCapture};
use crate::decision::{DecidingNetwork, Decision};
use crate::device::{Device, MAX_TRAIN};
use crate::lanes::Lanes;
use crate::realtime::{OwnProcessor, raise_priority};
use crate::stops::Stops;

/// The largest number of packets that are received before the next write. We chose 32: they take about 20 us
/// of work, which is less than a wake-up costs.
const BURST: usize = 32;
/// The shortest time between two writes. A packet that departs just after a write is late by up to this time.
/// We chose 15 us, which is the time of two to four writes, and a sixth of the lateness at which a run has a
/// warning.
const WRITE_INTERVAL: Duration = Duration::from_micros(15);
/// The time before a write at which a sleep ends, ns. Wake-ups are late by about this time (measured;
/// docs/models/emulation.md).
const SPIN_NS: u64 = 60_000;
/// The longest time in which the loop does not check whether it has to stop, ns.
const MAX_WAIT_NS: u64 = 20_000_000;
/// The memory for packets in slots, bytes. We chose 256 MiB, which hold the full-size packets of half a
/// second at 4 Gbps.
const MAX_MEMORY: usize = 256 << 20;

/// What an emulator is made from.
pub(super) struct EmulatorSetup<'a> {
    pub(super) network: DecidingNetwork,
    pub(super) log: LogWriter,
    pub(super) capture: Option<Capture>,
    pub(super) devices: [Device<'a>; 2],
    /// The size of the largest packet of the devices, bytes.
    pub(super) mtu: u16,
    pub(super) clock: RunClock,
    pub(super) flows: Vec<EmuFlow>,
    /// The packets of the user's programs. `None` if only flows cross the path.
    pub(super) lanes: Option<Lanes>,
}

/// The emulator, before the run and during the run.
pub(super) struct Emulator<'a> {
    network: DecidingNetwork,
    log: LogWriter,
    capture: Option<Capture>,
    devices: [Device<'a>; 2],
    clock: RunClock,
    throttle: Throttle,
    flows: Vec<EmuFlow>,
    lanes: Option<Lanes>,
    slots: SlotTable,
    fragment_owners: FragmentOwners,
    /// The decisions of the path that are not carried out yet.
    decisions: Vec<Decision>,
    /// The number of `decisions` that are already in the log.
    logged: usize,
    /// The datagrams that the next write takes together.
    train: Vec<TrainDatagram>,
    /// The bytes of the piece that is written. The buffer is used again for each piece.
    piece: Vec<u8>,
    last_write: Instant,
    /// The time at which this thread had to run again after its last sleep.
    planned_wakeup: Instant,
    totals: Totals,
}

/// A datagram in a train.
#[derive(Clone, Copy)]
struct TrainDatagram {
    slot: u32,
    /// The decided departure.
    departure: Instant,
}

/// The results of the emulator.
pub(super) struct Emulated {
    pub(super) network: DecidingNetwork,
    pub(super) log: Vec<u8>,
    pub(super) capture: Option<FinishedCapture>,
    pub(super) flows: Vec<EmuFlow>,
    pub(super) lanes: Option<Lanes>,
    pub(super) totals: Totals,
    pub(super) stopped_at: Instant,
}

/// The counts of the emulator. Most of them show how the machine disturbed it.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    pub(super) lateness: Histogram,
    pub(super) backlog: Histogram,
    /// The number of packets that entered the path.
    pub(super) packets: u64,
    /// The number of packets that were discarded because no slot was free.
    pub(super) overruns: u64,
    /// The number of packets that a device refused, and of packets that a host should have cut to its MTU.
    pub(super) refused: u64,
    /// The number of packets of TCP or UDP that belong to no flow. They do not cross the path.
    pub(super) strays: u64,
    pub(super) stops: Stops,
    /// The processor time of the thread, ns.
    pub(super) cpu_ns: u64,
    /// The reason why the thread has no real-time priority. `None` if it has.
    pub(super) realtime_denied: Option<String>,
}

impl<'a> Emulator<'a> {
    pub(super) fn new(setup: EmulatorSetup<'a>) -> Self {
        let EmulatorSetup { network, log, capture, devices, mtu, clock, flows, lanes } = setup;
        Self {
            network,
            log,
            capture,
            devices,
            clock,
            throttle: Throttle::new(),
            flows,
            lanes,
            slots: SlotTable::new(mtu.into(), MAX_MEMORY),
            fragment_owners: FragmentOwners::new(),
            decisions: Vec::new(),
            logged: 0,
            train: Vec::with_capacity(MAX_TRAIN),
            piece: Vec::new(),
            last_write: Instant::ZERO,
            planned_wakeup: Instant::ZERO,
            totals: Totals::new(),
        }
    }

    /// Carries packets until `stop` is set. The thread runs on the processor `place`.
    ///
    /// # Errors
    /// Returns the system's error if a device, or the wait for a device, failed.
    pub(super) fn run(mut self, place: &OwnProcessor, stop: &AtomicBool) -> io::Result<Emulated> {
        place.pin();
        self.totals.realtime_denied = raise_priority();
        self.throttle = Throttle::new();
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.totals.stops.record(self.planned_wakeup, now);
            self.planned_wakeup = now;
            let received = self.receive_burst();
            if received < BURST {
                // Both devices were empty at a time after `now`. So all packets with a stamp before `now` are
                // here, and the path can be decided up to `now`.
                self.decide_until(now);
                if let Some(lanes) = &mut self.lanes {
                    lanes.report(now);
                }
            }
            if self.clock.now() >= self.next_write() {
                self.carry_out_decisions();
            }
            if received == 0 {
                self.wait()?;
            } else if self.throttle.must_sleep() {
                self.throttle.sleep_briefly();
            }
        }
        Ok(self.finish())
    }

    /// Carries out what the path decides until now, and returns the results.
    fn finish(mut self) -> Emulated {
        let stopped_at = self.clock.now();
        self.decide_until(stopped_at);
        self.carry_out_decisions();
        if let Some(lanes) = &mut self.lanes {
            lanes.report_last_interval(stopped_at);
        }
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        self.totals.cpu_ns = u64::try_from(cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec).unwrap_or(0);
        let Self { network, log, capture, flows, lanes, totals, .. } = self;
        let capture = capture.map(Capture::finish);
        Emulated { network, log: log.finish(stopped_at), capture, flows, lanes, totals, stopped_at }
    }

    /// Makes all decisions of the path up to `until`, and writes them to the log.
    fn decide_until(&mut self, until: Instant) {
        self.network.advance(until, &mut self.decisions);
        self.record_services();
        self.log_decisions();
    }

    /// Records when the service of packets of the user's programs began.
    fn record_services(&mut self) {
        let Some(lanes) = &mut self.lanes else { return };
        for (slot, began) in self.network.services() {
            if let Some(row) = self.slots[slot].row {
                lanes.on_service(row, began);
            }
        }
    }

    fn log_decisions(&mut self) {
        for decision in &self.decisions[self.logged..] {
            self.log.decision(decision, self.slots[decision.tag].parsed.part);
        }
        self.logged = self.decisions.len();
    }

    /// Returns the time at which the emulator has to write next. This is the next departure, but at least
    /// [`WRITE_INTERVAL`] after the last write, so that packets that depart close together leave by one
    /// system call.
    fn next_write(&self) -> Instant {
        let departure = if self.decisions.is_empty() {
            self.network.poll_timeout().unwrap_or(Instant::MAX)
        } else {
            Instant::ZERO
        };
        departure.max(self.last_write.saturating_add(WRITE_INTERVAL))
    }

    /// Sleeps until a packet arrives or the next write is near. If the next write is already near, the thread
    /// spins, unless it has to sleep.
    fn wait(&mut self) -> io::Result<()> {
        let left_ns = self.next_write().since(self.clock.now()).as_nanos();
        if left_ns <= SPIN_NS {
            if self.throttle.must_sleep() {
                self.throttle.sleep_briefly();
            } else {
                std::hint::spin_loop();
            }
            return Ok(());
        }
        let sleep_ns = (left_ns - SPIN_NS).min(MAX_WAIT_NS);
        self.planned_wakeup = self.clock.now().saturating_add(Duration::from_nanos(sleep_ns));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(sleep_ns).unwrap_or(0) };
        let mut fds = [0, 1].map(|host: usize| PollFd::new(self.devices[host].fd(), PollFlags::IN));
        // ppoll takes nanoseconds. epoll_wait would round up to milliseconds.
        match self.throttle.sleep_with(|| poll(&mut fds, Some(&timeout))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Totals {
    fn new() -> Self {
        Self {
            lateness: Histogram::new(),
            backlog: Histogram::new(),
            packets: 0,
            overruns: 0,
            refused: 0,
            strays: 0,
            stops: Stops::default(),
            cpu_ns: 0,
            realtime_denied: None,
        }
    }
}
