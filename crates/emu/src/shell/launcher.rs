//! The launcher: a process that runs a command inside a host's namespaces.
//!
//! It is split off before this process has a second thread, because only a process with one thread may enter
//! a user namespace (setns(2)). Then it waits for the descriptors of the namespaces, enters them, and starts
//! the command. The command has the terminal, the user, the working directory and the environment of this
//! process. It also has its process group, so that Ctrl-C and Ctrl-Z reach it; the launcher itself lets
//! SIGINT and SIGQUIT pass.
//!
//! The launcher is the subreaper of the command's processes (PR_SET_CHILD_SUBREAPER, prctl(2)): a process
//! whose parent has ended becomes a child of the launcher, whatever session it is in. So the launcher can
//! kill each of them when the command has ended, or when this process has.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::time::Timespec;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use talkpath_kernel::host::cable::default_route_requests;
use talkpath_kernel::host::fork;
use talkpath_kernel::host::netlink::route_socket;

use super::entry::HostEntry;
use super::names::look_up_by_way_out;

/// A command and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The name or the path of the program.
    pub program: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// Further variables of its environment.
    pub variables: Vec<(String, String)>,
}

/// Where the output of a command goes. Its input is then empty.
#[derive(Debug)]
pub(super) struct Streams {
    /// For the standard output.
    pub(super) output: OwnedFd,
    /// For the standard error.
    pub(super) error: OwnedFd,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exited(u8),
    /// This signal ended it.
    Killed(u8),
    /// It could not be started, for the reason that this number of the system says.
    NotStarted(i32),
    /// The launcher went away.
    Unknown,
}

/// The process that runs the command.
#[derive(Debug)]
pub struct Launcher {
    channel: OwnedFd,
    /// `None` if the launcher is a child of the nursery.
    process: Option<Pid>,
    ended: Option<Ended>,
    /// Whether a server waits for packets.
    is_ready: bool,
    /// Why the command does not reach all that it should, as a sentence for the user.
    trouble: Option<String>,
    /// When the command was asked to end for the first time.
    asked: Option<Instant>,
}

impl Ended {
    /// The exit code that a shell reports: 128 and the number for a signal, 127 for a program that is not
    /// there, 126 for one that cannot be run.
    pub const fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128_u8.saturating_add(signal),
            Self::NotStarted(libc::ENOENT) => 127,
            Self::NotStarted(_) => 126,
            Self::Unknown => 125,
        }
    }

    /// The five bytes of the launcher's message.
    fn message(self) -> [u8; 5] {
        let (kind, value) = match self {
            Self::Exited(code) => (0, i32::from(code)),
            Self::Killed(signal) => (1, i32::from(signal)),
            Self::NotStarted(number) => (2, number),
            Self::Unknown => (3, 0),
        };
        let [a, b, c, d] = value.to_ne_bytes();
        [kind, a, b, c, d]
    }

    fn from_message(message: [u8; 5]) -> Self {
        let [kind, value @ ..] = message;
        let value = i32::from_ne_bytes(value);
        match kind {
            0 => Self::Exited(value as u8),
            1 => Self::Killed(value as u8),
            2 => Self::NotStarted(value),
            _ => Self::Unknown,
        }
    }
}

impl Launcher {
    /// Splits the launcher of `command` off. This process must have no second thread yet.
    ///
    /// # Errors
    /// Returns the system's error, and [`io::ErrorKind::Unsupported`] if this process has a second thread.
    pub fn split_off(command: &CommandLine) -> io::Result<Self> {
        check_one_thread()?;
        let (channel, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        match fork::fork()? {
            fork::Forked::Parent(process) => Ok(Self::new(channel, Some(process))),
            fork::Forked::Child => {
                drop(channel);
                // A panic must not run the code of this process in the launcher, too.
                let _ = catch_unwind(AssertUnwindSafe(|| serve(&theirs, command, None)));
                fork::exit_now()
            }
        }
    }

    /// The launcher at the other end of `channel`, which is a child of the nursery.
    pub(super) const fn of_nursery(channel: OwnedFd) -> Self {
        Self::new(channel, None)
    }

    const fn new(channel: OwnedFd, process: Option<Pid>) -> Self {
        Self { channel, process, ended: None, trouble: None, is_ready: false, asked: None }
    }

    /// Starts the command inside the host. If the path has a way out behind its other end, `has_way_out` is
    /// true, and the host gets a default route and resolvers.
    ///
    /// # Errors
    /// Returns the system's error if the launcher has gone.
    pub fn start(&self, entry: &HostEntry, has_way_out: bool) -> io::Result<()> {
        let message = if has_way_out { START_WITH_WAY_OUT } else { START };
        fork::send_descriptors(self.channel.as_fd(), &[message], &entry.descriptors()?)
    }

    /// Starts the command inside the host, and then looks for a new socket there that waits for connections
    /// or datagrams.
    ///
    /// # Errors
    /// Returns the system's error if the launcher has gone.
    pub fn start_server(&self, entry: &HostEntry) -> io::Result<()> {
        fork::send_descriptors(self.channel.as_fd(), &[START_SERVER], &entry.descriptors()?)
    }

    /// True if a server waits for packets. It is known once [`Launcher::is_over`] has been called after that.
    pub const fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Sends `signal` to the command. A command that was asked to end 5 s ago is killed instead.
    pub fn end(&mut self, signal: Signal) {
        let is_first = self.asked.is_none();
        let asked = *self.asked.get_or_insert_with(Instant::now);
        let number = if asked.elapsed() > GRACE { Signal::KILL } else { signal };
        if is_first || number == Signal::KILL {
            let message = [SIGNAL, u8::try_from(number.as_raw()).unwrap_or(0)];
            let _ = rustix::net::send(&self.channel, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    /// Returns true once the command has ended and none of its processes is left.
    pub fn is_over(&mut self) -> bool {
        while self.ended.is_none() {
            let mut message = [0_u8; LONGEST_MESSAGE];
            match rustix::net::recv(&self.channel, &mut message[..], RecvFlags::DONTWAIT) {
                Ok((length @ 1.., _)) if message[0] == TROUBLE => {
                    self.trouble = Some(String::from_utf8_lossy(&message[1..length]).into_owned());
                    continue;
                }
                Ok((1, _)) if message[0] == READY => {
                    self.is_ready = true;
                    continue;
                }
                Ok((5, _)) => {
                    let [kind, a, b, c, d, ..] = message;
                    self.ended = Some(Ended::from_message([kind, a, b, c, d]));
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return false,
                _ => self.ended = Some(Ended::Unknown),
            }
            self.reap();
        }
        true
    }

    /// Takes the sentence that says why the command does not reach all that it should, if there is one. It is
    /// known once [`Launcher::is_over`] has been called after the command's start.
    pub const fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Waits for the launcher's end, if it is a child of this process.
    fn reap(&self) {
        if let Some(process) = self.process {
            fork::reap(process);
        }
    }

    /// How the command ended. `None` if it has not ended.
    pub const fn ended(&self) -> Option<Ended> {
        self.ended
    }
}

impl Drop for Launcher {
    /// Ends the command and its processes if they have not ended.
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
            self.reap();
        }
    }
}

/// Checks that this process has no second thread, because only such a process may enter a user namespace.
///
/// # Errors
/// Returns [`io::ErrorKind::Unsupported`] if it has one.
pub(super) fn check_one_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        true => Err(io::ErrorKind::Unsupported.into()),
        false => Ok(()),
    }
}

/// The life of the launcher. With `streams` the command has no terminal.
pub(super) fn serve(channel: &OwnedFd, command: &CommandLine, streams: Option<Streams>) {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let_signals_pass();
    let ended = match enter_and_start(channel, command, streams) {
        Err(None) => return,
        Err(Some(error)) => Ended::NotStarted(error.raw_os_error().unwrap_or(libc::EIO)),
        Ok(process) => wait_for(channel, process),
    };
    kill_the_rest();
    let _ = rustix::net::send(channel, &ended.message(), SendFlags::NOSIGNAL);
}

/// Lets the signals of the terminal pass, which are meant for the command. A signal that was ignored stays
/// so, because the command inherits that. A caught one is at its default again in the command (execve(2)).
fn let_signals_pass() {
    let ignored = ignored_signals();
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
        if ignored >> (signal - 1) & 1 == 0 {
            let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
        }
    }
}

/// The mask of the signals that this process ignores (proc_pid_status(5)).
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Waits for the namespaces, enters them and starts the command. The error is `None` if this process has
/// ended before it said so.
fn enter_and_start(
    channel: &OwnedFd,
    command: &CommandLine,
    streams: Option<Streams>,
) -> Result<Pid, Option<io::Error>> {
    let (mut message, mut descriptors) = ([0], Vec::new());
    let entry = match fork::receive_descriptors(channel.as_fd(), &mut message, &mut descriptors) {
        Ok(1) if [START, START_WITH_WAY_OUT, START_SERVER].contains(&message[0]) => {
            HostEntry::from_descriptors(descriptors).ok_or(None)?
        }
        _ => return Err(None),
    };
    entry.enter().map_err(Some)?;
    drop(entry);
    if message == [START_WITH_WAY_OUT]
        && let Err(why) = find_way_out()
    {
        let text = [&[TROUBLE], why.as_bytes()].concat();
        let text = &text[..text.len().min(LONGEST_MESSAGE)];
        let _ = rustix::net::send(channel, text, SendFlags::NOSIGNAL);
    }
    let CommandLine { program, arguments, variables } = command;
    let mut described = Command::new(program);
    described.args(arguments).envs(variables.iter().cloned());
    if let Some(Streams { output, error }) = streams {
        described.stdin(Stdio::null()).stdout(output).stderr(error);
    }
    let before = waiting_sockets();
    let child = described.spawn().map_err(Some)?;
    // The launcher's copies of the streams must not keep them open.
    drop(described);
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(None)?;
    if message == [START_SERVER] {
        tell_when_ready(channel, process, &before);
    }
    Ok(process)
}

/// Says that a socket waits for packets that is not among `before`. It stops looking after some seconds, and
/// when
/// `process` has ended.
fn tell_when_ready(channel: &OwnedFd, process: Pid, before: &BTreeSet<String>) {
    let handle = handle_of(process);
    let begun = Instant::now();
    while begun.elapsed() < LONGEST_STARTING {
        if !waiting_sockets().is_subset(before) {
            let _ = rustix::net::send(channel, &[READY], SendFlags::NOSIGNAL);
            return;
        }
        // The command has ended, or the parent has a message or has gone. Who waits for the command sees to
        // that.
        let mut fds = vec![PollFd::new(channel, PollFlags::IN)];
        fds.extend(handle.iter().map(|handle| PollFd::new(handle, PollFlags::IN)));
        if poll(&mut fds, Some(&SOCKET_LOOK)).is_ok_and(|ready| ready > 0) {
            return;
        }
    }
}

/// The sockets of this network that wait for connections or datagrams, by their inodes (proc_pid_net(5)).
fn waiting_sockets() -> BTreeSet<String> {
    let mut inodes = BTreeSet::new();
    // The states TCP_LISTEN, and TCP_CLOSE of a datagram socket that is not connected (net/tcp_states.h).
    for (file, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let text = fs::read_to_string(format!("/proc/self/net/{file}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let columns: Vec<&str> = line.split_ascii_whitespace().collect();
            if columns.get(3) == Some(&state) {
                inodes.extend(columns.get(9).map(|inode| (*inode).to_owned()));
            }
        }
    }
    inodes
}

/// Leads packets to other networks into the path, and names to the resolvers behind it.
fn find_way_out() -> Result<(), String> {
    let routes = || -> io::Result<()> {
        let socket = route_socket()?;
        default_route_requests().iter().try_for_each(|request| request.send(&socket))
    };
    routes().map_err(|why| format!("the route to other networks cannot be made: {why}"))?;
    look_up_by_way_out().map_err(|why| format!("names do not resolve: {why}"))
}

/// Waits until the command has ended, and passes signals on to it. If this process has gone, the command is
/// killed.
fn wait_for(channel: &OwnedFd, process: Pid) -> Ended {
    let handle = handle_of(process);
    loop {
        if let Some(ended) = reap_until(process) {
            return ended;
        }
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(channel, PollFlags::IN)];
        fds.extend(handle.iter().map(|handle| PollFd::new(handle, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&LOOK));
        if fds[0].revents().is_empty() {
            continue;
        }
        let mut message = [0_u8; 2];
        match rustix::net::recv(channel, &mut message[..], RecvFlags::DONTWAIT) {
            Ok((2, _)) if message[0] == SIGNAL => {
                if let Some(signal) = Signal::from_named_raw(i32::from(message[1])) {
                    let _ = rustix::process::kill_process(process, signal);
                }
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            _ => {
                kill_the_rest();
                return Ended::Unknown;
            }
        }
    }
}

/// A descriptor that can be read once `process` has ended. `None` before Linux 5.3, where the end is found
/// by looking.
fn handle_of(process: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()
}

/// Reaps what has ended. Returns how `process` ended, if it is among them.
fn reap_until(process: Pid) -> Option<Ended> {
    let mut ended = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == process {
            ended = Some(how_it_ended(status));
        }
    }
    ended
}

fn how_it_ended(status: WaitStatus) -> Ended {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Exited(byte(code)),
        (None, Some(signal)) => Ended::Killed(byte(signal)),
        (None, None) => Ended::Unknown,
    }
}

/// Kills every process that is left of the command. Killed parents leave their children to this process, so
/// it looks again until it has none.
fn kill_the_rest() {
    for _ in 0..MOST_LOOKS {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let pids = children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        for pid in pids {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // There is no child any more.
                Err(_) => return,
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How long a command that was asked to end has before it is killed (chosen: what a database needs to close).
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// The longest time between two looks at the command.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The largest number of looks for processes that are left: 5 s (chosen).
const MOST_LOOKS: u32 = 5000;
/// The kinds of messages to the launcher.
const START: u8 = 1;
const SIGNAL: u8 = 2;
const START_WITH_WAY_OUT: u8 = 3;
const START_SERVER: u8 = 5;
/// The first byte of the launcher's message with a sentence. The messages of [`Ended`] begin with less.
const TROUBLE: u8 = 4;
/// The launcher's message that a server waits for packets.
const READY: u8 = 6;
/// How long a launcher looks for a socket of a server. We chose 5 s because a server in Java takes two.
const LONGEST_STARTING: Duration = Duration::from_secs(5);
/// The time between two looks for a socket.
const SOCKET_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
/// The size of the longest message of the launcher in bytes.
const LONGEST_MESSAGE: usize = 512;
