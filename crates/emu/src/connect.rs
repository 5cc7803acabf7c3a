//! Opens the TCP connections: the sender of each flow dials at the flow's start across the emulated path, and
//! the receiver accepts.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::Socket;
use talkpath_kernel::clock::RunClock;
use talkpath_kernel::end::SharedEnd;
use talkpath_units::Instant;

/// The longest time in which the loop does not check whether it has to stop, ns.
const POLL_NS: u64 = 20_000_000;

/// A flow whose connection is not open at both ends yet, or whose listener has to stay.
pub(super) struct Connecting {
    pub(super) index: usize,
    pub(super) start: Instant,
    /// The sender's bound socket. `None` once its connection is open.
    pub(super) dial: Option<Socket>,
    /// The receiver's listening socket. `None` once it has accepted the connection.
    pub(super) listener: Option<Socket>,
    /// True if further subflows may join the connection. The kernel accepts them only while the listener is
    /// open.
    pub(super) is_multipath: bool,
    /// The listener of a connection with several paths, once it has accepted the connection.
    pub(super) joined_at: Option<Socket>,
    pub(super) near: Arc<SharedEnd>,
    pub(super) far: Arc<SharedEnd>,
    /// The receiver's address and port.
    pub(super) there: SocketAddr,
    pub(super) is_dialled: bool,
}

/// Opens the connection of each flow at the flow's start, until `stop`. The TCP loop serves the open
/// connections, which `epoll` watches.
pub(super) fn connect_flows(
    mut flows: Vec<Connecting>,
    epoll: &OwnedFd,
    clock: RunClock,
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        flows.retain(|flow| flow.dial.is_some() || flow.listener.is_some() || flow.joined_at.is_some());
        let now = clock.now();
        let mut next = Instant::MAX;
        for flow in flows.iter_mut().filter(|flow| !flow.is_dialled) {
            if flow.start <= now {
                flow.dial()?;
            } else {
                next = next.min(flow.start);
            }
        }
        let mut watched: Vec<WatchedSocket> = Vec::new();
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        for (index, flow) in flows.iter().enumerate() {
            if let Some(dial) = flow.dial.as_ref().filter(|_| flow.is_dialled) {
                watched.push(WatchedSocket::Dial(index));
                fds.push(PollFd::from_borrowed_fd(dial.as_fd(), PollFlags::OUT));
            }
            if let Some(listener) = &flow.listener {
                watched.push(WatchedSocket::Listener(index));
                fds.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
            }
        }
        let wait_ns = next.since(clock.now()).as_nanos().min(POLL_NS);
        match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: wait_ns as i64 })) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let are_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (socket, is_ready) in watched.into_iter().zip(are_ready) {
            match socket {
                WatchedSocket::Dial(index) if is_ready => flows[index].finish_dial(epoll)?,
                WatchedSocket::Listener(index) if is_ready => flows[index].accept(epoll)?,
                WatchedSocket::Dial(_) | WatchedSocket::Listener(_) => {}
            }
        }
    }
    Ok(())
}

/// A socket for which the loop waits, with the index of its flow.
enum WatchedSocket {
    /// A socket that connects.
    Dial(usize),
    /// A socket that listens.
    Listener(usize),
}

impl Connecting {
    fn dial(&mut self) -> io::Result<()> {
        self.is_dialled = true;
        let Some(dial) = &self.dial else { return Ok(()) };
        self.near.lock().note_dialled();
        match dial.connect(&self.there.into()) {
            Ok(()) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives the dialled connection to the sender, or records that the connection has failed.
    fn finish_dial(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        let Some(socket) = self.dial.take() else { return Ok(()) };
        self.near.work(|end| {
            if let Some(error) = socket.take_error()? {
                end.failure = Some(format!("the connection did not open: {error}"));
                return Ok(());
            }
            end.adopt(socket.into(), &[], epoll, place_of(self.index, true))
        })
    }

    fn accept(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let stream = match listener.accept() {
            Ok((socket, _)) => TcpStream::from(socket),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        self.joined_at = self.listener.take().filter(|_| self.is_multipath);
        self.far.work(|end| end.adopt(stream, &[], epoll, place_of(self.index, false)))
    }
}

/// The place at which the TCP loop finds an end of flow `index`: senders at even places, receivers at odd
/// places.
fn place_of(index: usize, is_sender: bool) -> u64 {
    2 * index as u64 + u64::from(!is_sender)
}
