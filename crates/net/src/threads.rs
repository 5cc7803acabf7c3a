//! The three timed loops: pacing by a calendar of absolute deadlines, receiving datagrams, serving connections.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::Timespec;
use talkpath_units::{Duration, Instant};

use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::end::SharedEnd;
use crate::sys::{ReceiveBatch, Received, become_real_time};

/// Hands every message over at its time and serves the ends' own timers, until `stop`; `alarm` wakes it where an end has
/// something due sooner than it was told. Returns why the thread could not be made real-time, if so.
pub(crate) fn pace(
    ends: &[Arc<SharedEnd>],
    clock: RunClock,
    alarm: &Alarm,
    stop: &AtomicBool,
) -> Option<String> {
    // 1 ns: the default of 50 us would let the kernel wake us that much later (prctl(2), PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let ordinary = become_real_time().err();
    // The clock reads zero until the run begins: what starts at zero would start now.
    clock.sleep_until(Instant::ZERO, LONGEST_LEAD);
    while !stop.load(Ordering::Relaxed) {
        alarm.listen();
        let mut next = Instant::MAX;
        for end in ends {
            let mut end = end.lock();
            let mut timeout = end.poll_timeout();
            if timeout.is_some_and(|timeout| timeout <= clock.now()) {
                end.handle_timeout(clock.now());
                timeout = end.poll_timeout();
            }
            next = next.min(timeout.unwrap_or(Instant::MAX));
        }
        alarm.sleep_until(clock, next, SLICE);
    }
    ordinary.map(|error| error.to_string())
}

/// Takes datagrams from each flow's own connected socket, until `stop`; counts what the sockets had no room for.
pub(crate) fn receive_datagrams(
    flows: &[(Arc<UdpSocket>, Arc<SharedEnd>)],
    stop: &AtomicBool,
    drops: &AtomicU64,
) -> io::Result<()> {
    let mut batch = ReceiveBatch::new();
    let mut dropped = vec![0_u32; flows.len()];
    while !stop.load(Ordering::Relaxed) {
        let mut fds: Vec<_> = flows.iter().map(|(socket, _)| PollFd::new(&**socket, PollFlags::IN)).collect();
        wait(&mut fds)?;
        let ready: Vec<usize> = (0..fds.len()).filter(|&index| !fds[index].revents().is_empty()).collect();
        let errors: Vec<bool> = fds.iter().map(|fd| fd.revents().contains(PollFlags::ERR)).collect();
        for index in ready {
            let (socket, end) = &flows[index];
            if errors[index] {
                let sent =
                    |datagram: Received<'_>| end.lock().handle_sent(datagram.payload, datagram.stamp_ns);
                let _ = batch.receive_sent(socket.as_fd(), sent);
            }
            // An error here is an ICMP message about something sent before: it says nothing of what arrives.
            let _ = batch.receive(socket.as_fd(), |datagram: Received<'_>| {
                dropped[index] = dropped[index].max(datagram.drops.unwrap_or(0));
                end.handle_datagram(datagram.payload, datagram.stamp_ns);
            });
        }
        drops.store(dropped.iter().map(|&count| u64::from(count)).sum(), Ordering::Relaxed);
    }
    Ok(())
}

/// Serves the connections that `epoll` watches and samples their state, until `stop`.
pub(crate) fn serve_connections(
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
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait).unwrap_or(0) };
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = std::mem::take(&mut unfinished);
        ready.extend(events.iter().map(|event| usize::try_from(event.data.u64()).unwrap_or(usize::MAX)));
        ready.sort_unstable();
        ready.dedup();
        for index in ready {
            if ends.get(index).is_some_and(|end| end.handle_ready()) {
                unfinished.push(index);
            }
        }
    }
    Ok(())
}

/// Closes the connections among `ends` that end with an exchange of packets, and waits for it, but not for long: where a
/// far end does not answer, nothing is measured any more.
pub(crate) fn close_connections(ends: &[Arc<SharedEnd>], clock: RunClock) {
    ends.iter().for_each(|end| end.close());
    let latest = clock.now().saturating_add(CLOSING);
    while clock.now() < latest && !ends.iter().all(|end| end.lock().is_closed()) {
        clock.sleep_until(clock.now().saturating_add(CLOSING_SLICE), CLOSING_SLICE);
    }
}

/// How often the connections of a run of this length are sampled: 20 ms, less often where that would be more than 3,000
/// times (chosen: a series stays drawable).
pub(crate) fn sample_interval(duration: Duration) -> Duration {
    Duration::from_millis(20).max(duration / 3000)
}

/// Waits for one of `fds`, at most [`POLL_NS`].
fn wait(fds: &mut [PollFd<'_>]) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_NS as i64 };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A close and its answer take a round trip; a few of a satellite's, for what is lost (chosen).
const CLOSING: Duration = Duration::from_secs(2);
/// How often is looked whether all is closed.
const CLOSING_SLICE: Duration = Duration::from_millis(2);
/// No run begins later than this after its threads.
const LONGEST_LEAD: Duration = Duration::from_secs(5);
/// The longest that a loop goes without looking whether it shall stop.
const POLL_NS: u64 = 20_000_000;
/// The same for the pacer.
const SLICE: Duration = Duration::from_millis(20);
