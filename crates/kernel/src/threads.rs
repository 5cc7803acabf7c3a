//! The loops of the threads that call the ends: the pacer with a calendar of absolute deadlines, the receiver
//! of datagrams, the reader of a slow receiver, and the server of TCP connections.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::Timespec;
use talkpath_units::wheel::{Key, Wheel};
use talkpath_units::{Duration, Instant};

use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::end::SharedEnd;
use crate::rest::Rest;
use crate::sys::{ReceiveBatch, Received, become_real_time};

/// The means by which a pacer may be punctual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Punctuality {
    /// True if the pacer runs in SCHED_FIFO where that is allowed. It then runs before all ordinary threads.
    pub real_time: bool,
    /// True if the pacer spins for the last 60 us before a deadline. Otherwise it wakes some 60 us after it.
    pub spins: bool,
}

/// Sets the flag to true when it is dropped, also in a panic. The flag tells threads to stop. Without it, a
/// thread scope would wait for its threads for ever after a panic.
pub struct StoresOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StoresOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the pacer until `stop`: calls each end when its next message or timer is due. `alarm` wakes the pacer
/// if an end has something due before the deadline that the pacer sleeps to. Returns the reason if the thread
/// could not become a real-time thread.
pub fn pace(ends: &[Arc<SharedEnd>], clock: RunClock, alarm: &Alarm, stop: &AtomicBool) -> Option<String> {
    pace_as(Punctuality { real_time: true, spins: true }, ends, clock, alarm, stop)
}

/// As [`pace`], but only with the means that `punctuality` allows.
pub fn pace_as(
    punctuality: Punctuality,
    ends: &[Arc<SharedEnd>],
    clock: RunClock,
    alarm: &Alarm,
    stop: &AtomicBool,
) -> Option<String> {
    // 1 ns: the default of 50 us would let the kernel wake us that much later (prctl(2), PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let denied = if punctuality.real_time { become_real_time().err() } else { None };
    let mut calendar = Calendar::new(ends);
    let mut rest = if punctuality.spins { Rest::new() } else { Rest::without_spinning() };
    // The clock reads zero until the run begins. Without this sleep a flow that starts at zero would start
    // now.
    clock.sleep_until(Instant::ZERO, MAX_LEAD);
    while !stop.load(Ordering::Relaxed) {
        let (next, met) = calendar.serve(ends, clock, alarm);
        rest.count_deadlines(met);
        alarm.sleep_until(clock, next, SLICE, &mut rest);
    }
    denied.map(|error| error.to_string())
}

/// The next deadline of each end.
struct Calendar {
    wheel: Wheel,
    /// The time of the last turn. No end is armed for an earlier time.
    present: Instant,
    /// When all ends are asked for their deadlines again. Some events move a deadline without ringing the
    /// alarm, for example the opening of a connection.
    next_look: Instant,
    /// The deadlines that came forward since the last turn.
    forward: Vec<(Key, Instant)>,
    /// The ends that may be due in this turn.
    due: Vec<Key>,
}

impl Calendar {
    fn new(ends: &[Arc<SharedEnd>]) -> Self {
        for (index, end) in ends.iter().enumerate() {
            end.lock().pace_as(Key(u32::try_from(index).unwrap_or(u32::MAX)));
        }
        Self {
            wheel: Wheel::new(ends.len(), PACED_APART),
            present: Instant::ZERO,
            next_look: Instant::ZERO,
            forward: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Calls each end that is due, once. Returns when the next end is due, and the number of deadlines that
    /// were met. An end that needs another turn at once, for example in a burst, does not count as a met
    /// deadline, because the pacer does not wait for it.
    fn serve(&mut self, ends: &[Arc<SharedEnd>], clock: RunClock, alarm: &Alarm) -> (Instant, usize) {
        alarm.take(&mut self.forward);
        for (key, deadline) in self.forward.drain(..) {
            self.wheel.arm(key, deadline.max(self.present));
        }
        self.present = clock.now();
        while let Some((_, key)) = self.wheel.pop(self.present) {
            self.due.push(key);
        }
        let looks = self.present >= self.next_look;
        if looks {
            self.next_look = self.present.saturating_add(SLICE);
            self.due.clear();
            self.due.extend((0..ends.len()).filter_map(|index| u32::try_from(index).ok().map(Key)));
        }
        let mut met = 0;
        for key in self.due.drain(..) {
            let shared = &ends[key.0 as usize];
            let mut end = shared.lock();
            let is_due = end.poll_timeout().is_some_and(|timeout| timeout <= clock.now());
            if is_due {
                end.handle_timeout(clock.now());
            }
            if looks {
                end.note_visit();
            }
            let next = end.poll_timeout().unwrap_or(Instant::MAX).max(self.present);
            met += usize::from(is_due && next > self.present);
            end.note_armed(next);
            self.wheel.arm(key, next);
            drop(end);
            if is_due {
                shared.step_ready();
            }
        }
        (self.wheel.next().unwrap_or(Instant::MAX), met)
    }
}

/// Checks whether a thread of this process may become a real-time thread. It tries it in a new thread, which
/// ends afterwards.
///
/// # Errors
/// Returns the system's error. It is `PermissionDenied` without CAP_SYS_NICE and without an RLIMIT_RTPRIO.
pub fn try_real_time() -> io::Result<()> {
    std::thread::spawn(become_real_time).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Reads the datagrams from each flow's own connected socket and hands them to the flow's end, until `stop`.
///
/// # Errors
/// Returns the system's error if the sockets cannot be watched.
pub fn receive_datagrams(flows: &[(Arc<UdpSocket>, Arc<SharedEnd>)], stop: &AtomicBool) -> io::Result<()> {
    let mut batch = ReceiveBatch::default();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, (socket, _)) in flows.iter().enumerate() {
        epoll::add(&epoll, socket, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
    }
    let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
    let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_NS as i64 };
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            let Some((socket, end)) = flows.get(index) else { continue };
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::ERR) {
                let sent =
                    |datagram: Received<'_>| end.lock().handle_sent(datagram.payload, datagram.stamp_ns);
                let _ = batch.receive_sent(socket.as_fd(), sent);
            }
            // The error is ignored, because it is an ICMP message about a datagram that this end sent
            // earlier.
            let _ = batch.receive(socket.as_fd(), |datagram: Received<'_>| {
                end.handle_datagram(&datagram);
            });
        }
    }
    Ok(())
}

/// Makes the end of a slow receiver read its datagrams from `socket`, each one when the application is ready,
/// until `stop`.
pub fn read_slowly(
    socket: &UdpSocket,
    end: &SharedEnd,
    clock: RunClock,
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let next = end.lock().next_read();
        match next.filter(|next| *next > clock.now()) {
            Some(next) => clock.sleep_until(next, SLICE),
            None => {
                end.lock().handle_readable();
                // Without a next read, the socket was empty, so the thread waits for a datagram.
                if end.lock().next_read().is_none() {
                    wait(&mut [PollFd::new(socket, PollFlags::IN)])?;
                }
            }
        }
    }
    Ok(())
}

/// Serves the connections that `epoll` watches and samples their state, until `stop`.
pub fn serve_connections(
    epoll: &OwnedFd,
    ends: &[Arc<SharedEnd>],
    clock: RunClock,
    interval: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
    let mut unfinished: Vec<usize> = Vec::new();
    let mut next_sample = Instant::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= next_sample {
            ends.iter().for_each(|end| end.lock().sample());
            next_sample = now.saturating_add(interval);
        }
        let wait = if unfinished.is_empty() { next_sample.since(now).as_nanos().min(POLL_NS) } else { 0 };
        events.clear();
        let latest = clock.now().saturating_add(Duration::from_nanos(wait));
        let mut timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait).unwrap_or(0) };
        loop {
            match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) => break,
                // The process was stopped and continues (signal(7)). Events that came meanwhile are ready, so
                // the wait is tried again without a timeout.
                Err(rustix::io::Errno::INTR) => timeout.tv_nsec = 0,
                Err(error) => return Err(error.into()),
            }
        }
        // A thread that was kept from running wakes up late. What it finds now may have waited since its
        // timeout.
        let woke_at = latest.min(clock.now());
        let mut ready = std::mem::take(&mut unfinished);
        ready.extend(events.iter().map(|event| usize::try_from(event.data.u64()).unwrap_or(usize::MAX)));
        ready.sort_unstable();
        ready.dedup();
        for index in ready {
            if ends.get(index).is_some_and(|end| end.handle_ready(woke_at)) {
                unfinished.push(index);
            }
        }
    }
    Ok(())
}

/// Closes the connections of our own protocols among `ends`, and waits until the far ends have answered. The
/// wait is short, because nothing is measured any more.
pub fn close_connections(ends: &[Arc<SharedEnd>], clock: RunClock) {
    ends.iter().for_each(|end| end.close());
    let latest = clock.now().saturating_add(CLOSING);
    while clock.now() < latest && !ends.iter().all(|end| end.lock().is_closed()) {
        clock.sleep_until(clock.now().saturating_add(CLOSING_SLICE), CLOSING_SLICE);
    }
}

/// Waits for one of `fds`, at most [`POLL_NS`].
fn wait(fds: &mut [PollFd<'_>]) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_NS as i64 };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The longest wait for the answer to a close (chosen: a few round trips over a satellite, because a packet
/// may be lost).
const CLOSING: Duration = Duration::from_secs(2);
/// The interval at which the ends are asked whether they are closed.
const CLOSING_SLICE: Duration = Duration::from_millis(2);
/// The longest time from the start of the threads to the beginning of the run.
const MAX_LEAD: Duration = Duration::from_secs(5);
/// The longest time in which a loop does not check whether it shall stop, ns.
const POLL_NS: u64 = 20_000_000;
/// The longest time in which the pacer does not check whether it shall stop.
const SLICE: Duration = Duration::from_millis(20);
/// The expected time between two deadlines of a pacer (chosen: that of 1,000 voice flows with a message every
/// 20 ms).
const PACED_APART: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};
    use talkpath_model::{Receiver, WorkloadConfig};
    use talkpath_units::{Bytes, Rate, Seed};

    use super::*;
    use crate::end::fixtures::{UDP, context, flow, place, session};
    use crate::end::{EndPlace, UdpRoute};
    use crate::spec::FlowSpec;

    /// More than any of them writes.
    const ROWS: u64 = 50_000_000;

    /// A pacer sleeps through a crowd of deadlines. The turns of a burst, one after the other, are none.
    #[test]
    fn the_turns_of_a_burst_are_no_deadlines_that_a_pacer_waits_for() {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (rate, size) = (Rate::from_bps(64_000), Bytes::new(160));
        let call = WorkloadConfig::Cbr { rate, size: size.into() };
        let burst = WorkloadConfig::Burst { count: 10_000, size, repeat: 1, gap: Duration::ZERO };
        for (name, workload, met_in_three_turns) in [("call", call, 1), ("burst", burst, 0)] {
            let common = context(0, ROWS);
            let flow = flow(UDP, workload);
            let session = session(&flow, 60_000_000_000);
            let end = SharedEnd::new(&session, &flow, &place(true), Receiver::default(), &common);
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(sink.local_addr().unwrap()).unwrap();
            end.lock().set_route(UdpRoute { socket: Arc::new(socket), unconnected: None });
            let ends = [Arc::new(end)];
            common.clock.sleep_until(Instant::from_nanos(1), SLICE);
            let mut calendar = Calendar::new(&ends);
            let mut serve = || calendar.serve(&ends, common.clock, &common.alarm).1;
            let met: usize = (0..3).map(|_| serve()).sum();
            assert_eq!(met, met_in_three_turns, "{name}");
            assert!(ends[0].lock().progress().sent > 0, "{name}");
        }
    }

    /// The figures behind the server's limit of messages a second, and what many calls cost.
    #[test]
    #[ignore = "it measures this machine"]
    fn pacer_cost() {
        const SECONDS: u64 = 3;
        for (real_time, spins) in [(false, false), (false, true), (true, true)] {
            let punctuality = Punctuality { real_time, spins };
            for (flows, rate, size) in LOADS {
                let (share, sent, [p50, p99, max]) = load(punctuality, (flows, rate, size), SECONDS);
                println!(
                    "{punctuality:?}, {flows} flows of {rate}/s of {size} B: sent {sent:.0}/s, {:.1} % of a processor, \
                     {:.1} us a message; late p50 {p50} ns, p99 {p99} ns, at most {max} ns",
                    share * 100.0,
                    share / sent * 1e6
                );
            }
        }
    }

    /// How many messages of a burst leave a second, by one call each and in trains, in turns.
    #[test]
    #[ignore = "it measures this machine"]
    fn burst_cost() {
        const COUNT: u64 = 300_000;
        for turn in 0..10 {
            let has_trains = turn % 2 == 1;
            let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(sink.local_addr().unwrap()).unwrap();
            let common = context(0, ROWS);
            let clock = common.clock;
            let (size, gap) = (Bytes::new(128), Duration::ZERO);
            let flow = flow(UDP, WorkloadConfig::Burst { count: COUNT, size, repeat: 1, gap });
            let session = session(&flow, 60_000_000_000);
            let place = EndPlace { has_trains, ..place(true) };
            let end = SharedEnd::new(&session, &flow, &place, Receiver::default(), &common);
            end.lock().set_route(UdpRoute { socket: Arc::new(socket), unconnected: None });
            let processor = || {
                let time = clock_gettime(ClockId::ThreadCPUTime);
                time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
            };
            let begun = processor();
            while !end.lock().progress().is_done {
                end.lock().handle_timeout(clock.now());
            }
            let spent = processor() - begun;
            let sent = end.lock().progress().sent;
            println!(
                "trains {has_trains}: {sent} sent, {:.0} a second of processor, {:.2} us a message",
                sent as f64 / spent,
                spent / sent as f64 * 1e6
            );
        }
    }

    /// Flows, the messages a second of each, and their size.
    const LOADS: [(u64, u64, u64); 10] = [
        (1, 1000, 1),
        (1, 10_000, 1),
        (1, 100_000, 1),
        (1, 10_000, 1464),
        (1, 100_000, 1464),
        // Calls.
        (64, 50, 160),
        (256, 50, 160),
        (512, 50, 160),
        (1000, 50, 160),
        (5000, 50, 160),
    ];

    /// What the pacer takes of a processor for `flows` of `rate` messages of `size` bytes a second each, how
    /// many it sent a second, and how late.
    fn load(
        punctuality: Punctuality,
        (flows, rate, size): (u64, u64, u64),
        seconds: u64,
    ) -> (f64, f64, [u64; 3]) {
        crate::descriptors::raise_to(flows + 64);
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let duration_ns = seconds * 1_000_000_000;
        // Not before all sockets are there.
        let common = context(200_000_000, ROWS);
        let (clock, alarm) = (common.clock, Arc::clone(&common.alarm));
        let ends: Vec<_> = (0..flows)
            .map(|index| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(sink.local_addr().unwrap()).unwrap();
                socket.set_nonblocking(true).unwrap();
                let (bps, size) = (Rate::from_bps(rate * size * 8), Bytes::new(size));
                let flow = flow(UDP, WorkloadConfig::Cbr { rate: bps, size: size.into() });
                // Spread over a message's time, as calls are.
                let start_ns = 1_000_000_000 / rate * index / flows;
                let flow = FlowSpec { is_up: false, start_ns, ..flow };
                let session = session(&flow, duration_ns);
                let seed = Seed::new(index + 1);
                let place = EndPlace { is_client: false, has_trains: true, seed, ..place(true) };
                let end = Arc::new(SharedEnd::new(&session, &flow, &place, Receiver::default(), &common));
                end.lock().set_route(UdpRoute { socket: Arc::new(socket), unconnected: None });
                end
            })
            .collect();
        let stop = AtomicBool::new(false);
        let spent = std::thread::scope(|scope| {
            let pacer = scope.spawn(|| {
                pace_as(punctuality, &ends, clock, &alarm, &stop);
                let time = clock_gettime(ClockId::ThreadCPUTime);
                time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
            });
            let end = Instant::from_secs(seconds);
            clock.sleep_until(end, Duration::from_secs(seconds + 1));
            stop.store(true, Ordering::Relaxed);
            pacer.join().unwrap()
        });
        let elapsed = clock.now().since(Instant::ZERO).as_secs_f64();
        let mut lateness = talkpath_units::Histogram::new();
        let mut sent = 0;
        for end in &ends {
            let end = end.lock();
            end.add_lateness(&mut lateness);
            sent += end.progress().sent;
        }
        (spent / elapsed, sent as f64 / elapsed, talkpath_flow::lateness_ns(&lateness).unwrap())
    }
}
