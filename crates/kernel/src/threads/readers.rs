//! The threads that wait for sockets: the datagram receiver, the slow reader and the connection server.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::time::Timespec;
use talkpath_units::{Duration, Instant};

use super::MAX_SLEEP;
use crate::clock::RunClock;
use crate::end::SharedEnd;
use crate::log::sample_interval;
use crate::sys::{ReceiveBatch, Received};

/// The number of events that one system call returns. We chose 64. If there are more, the next call returns
/// them.
const EVENTS: usize = 64;

/// Reads the datagrams from each flow's own connected socket and hands them to the flow's end, until `stop`
/// is set.
///
/// # Errors
/// Returns the system's error if the sockets cannot be watched.
pub fn receive_datagrams(flows: &[(Arc<UdpSocket>, Arc<SharedEnd>)], stop: &AtomicBool) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, (socket, _)) in flows.iter().enumerate() {
        epoll::add(&epoll, socket, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
    }
    let mut batch = ReceiveBatch::default();
    let mut events = Vec::with_capacity(EVENTS);
    while !stop.load(Ordering::Relaxed) {
        match wait_for_events(&epoll, &mut events, MAX_SLEEP) {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let Some((socket, end)) = flows.get(event_index(event)) else { continue };
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::ERR) {
                receive_sent_copies(&mut batch, socket, end);
            }
            // An error is an ICMP message about a datagram that this end has sent earlier, so it is ignored.
            let _ = batch.receive(socket.as_fd(), |datagram| {
                end.handle_datagram(&datagram);
            });
        }
    }
    Ok(())
}

/// Reads the kernel's copies of sent datagrams, which have the times at which the datagrams were sent.
fn receive_sent_copies(batch: &mut ReceiveBatch, socket: &UdpSocket, end: &SharedEnd) {
    let handle_copy = |copy: Received<'_>| end.lock().handle_sent(copy.payload, copy.stamp_ns);
    let _ = batch.receive_sent(socket.as_fd(), handle_copy);
}

/// Reads datagrams for the end of a slow receiver, until `stop` is set. Each datagram stays in the socket
/// until the application is ready for it.
///
/// # Errors
/// Returns the system's error if the wait for a datagram fails.
pub fn read_slowly(
    socket: &UdpSocket,
    end: &SharedEnd,
    clock: RunClock,
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let next_read = end.lock().next_read();
        if let Some(next_read) = next_read.filter(|next_read| *next_read > clock.now()) {
            clock.sleep_until(next_read, MAX_SLEEP);
            continue;
        }
        end.lock().handle_readable();
        // If there is no next read, the socket was empty.
        if end.lock().next_read().is_none() {
            wait_until_readable(socket)?;
        }
    }
    Ok(())
}

/// Serves the connections that `epoll` watches, until `stop` is set. It samples the state of all connections
/// at each `interval`. A run may last longer than the interval was made for, so the interval grows with the
/// time that has passed ([`sample_interval`]).
///
/// # Errors
/// Returns the system's error if the wait for the connections fails.
pub fn serve_connections(
    epoll: &OwnedFd,
    ends: &[Arc<SharedEnd>],
    clock: RunClock,
    interval: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut events = Vec::with_capacity(EVENTS);
    // The ends that have not read everything in their last turn. They are served again at once.
    let mut unfinished: Vec<usize> = Vec::new();
    let mut next_sample = Instant::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= next_sample {
            for end in ends {
                end.lock().sample();
            }
            next_sample = now.saturating_add(interval.max(sample_interval(now.since(Instant::ZERO))));
        }
        let timeout =
            if unfinished.is_empty() { next_sample.since(now).min(MAX_SLEEP) } else { Duration::ZERO };
        let timed_out_at = clock.now().saturating_add(timeout);
        wait_again_after_signal(epoll, &mut events, timeout)?;
        // If the machine kept this thread from running, it wakes up after its timeout. The data may have
        // waited since then.
        let woke_at = timed_out_at.min(clock.now());
        let mut ready = std::mem::take(&mut unfinished);
        ready.extend(events.iter().map(event_index));
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

/// Waits for events. A signal ends the wait if the process was stopped and continues (signal(7)). The events
/// that came during the stop are ready, so the second wait has no timeout.
fn wait_again_after_signal(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Duration,
) -> io::Result<()> {
    let mut timeout = timeout;
    loop {
        match wait_for_events(epoll, events, timeout) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => timeout = Duration::ZERO,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for events, for at most `timeout`, which is less than a second. Replaces the contents of `events`.
fn wait_for_events(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Duration,
) -> rustix::io::Result<()> {
    events.clear();
    epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&timespec(timeout)))?;
    Ok(())
}

/// Returns the index that the socket of `event` was added with.
fn event_index(event: &epoll::Event) -> usize {
    usize::try_from(event.data.u64()).unwrap_or(usize::MAX)
}

/// Waits until a datagram is in `socket`, for at most [`MAX_SLEEP`].
fn wait_until_readable(socket: &UdpSocket) -> io::Result<()> {
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timespec(MAX_SLEEP))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: i64::try_from(time.as_nanos()).unwrap_or(0) }
}
