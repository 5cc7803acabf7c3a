//! The way out of the path to this machine's network, by pasta (passt(1)).
//!
//! ```text
//!  this machine's network                 second host                        first host
//!   sockets ── pasta ── a device of pasta's ── forwards ── path ── default route, command
//!                 ▲
//!   keeper ───────┘ starts it and ends it
//! ```
//!
//! pasta is a process of the user. It ends each TCP connection and takes each datagram of the first host
//! itself, and opens a socket of its own for it. So it needs no privilege, no rule in this machine's firewall
//! and no address of this machine's networks. It forwards no port, so nothing outside can begin a connection
//! to the hosts. Only the first host has the way out: pasta answers to one address.
//!
//! The *keeper* is split off as the launcher is (`launcher.rs`), for the same reason. Its children are:
//!
//! - the *holder*, which is inside the second host and has no capabilities, so that pasta may open its
//!   namespaces by /proc (ptrace(2), "Ptrace access mode checking");
//! - pasta itself;
//! - the *guide*, which waits inside the second host for pasta's device, and then makes the routes to it.
//!
//! The kernel kills each of them when the keeper ends, and the keeper ends when this process has ended.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use rustix::time::Timespec;
use talkpath_kernel::host::cable::forwarding_requests;
use talkpath_kernel::host::fork;
use talkpath_kernel::host::netlink::route_socket;

use super::addresses::END_ADDRESSES;
use super::entry::HostEntry;
use super::names::{RESOLVER_V4, RESOLVER_V6};

/// The process that keeps the way out of a path open.
#[derive(Debug)]
pub struct WayOut {
    channel: OwnedFd,
    /// `None` if the keeper is a child of the nursery.
    keeper: Option<Pid>,
}

impl WayOut {
    /// Splits the keeper off. `pasta` is the program. This process must have no second thread yet.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn split_off(pasta: &Path) -> io::Result<Self> {
        let (channel, theirs) = pair()?;
        match fork::fork()? {
            fork::Forked::Parent(keeper) => Ok(Self { channel, keeper: Some(keeper) }),
            fork::Forked::Child => {
                drop(channel);
                // A panic must not run the code of this process in the keeper, too.
                let _ = catch_unwind(AssertUnwindSafe(|| keep(&theirs, pasta)));
                fork::exit_now()
            }
        }
    }

    /// The way out whose keeper is at the other end of `channel`.
    pub(super) const fn of_nursery(channel: OwnedFd) -> Self {
        Self { channel, keeper: None }
    }

    /// Opens the way out of the second host, whose entry is `far`.
    ///
    /// # Errors
    /// Returns why there is no way out, as a sentence for the user.
    pub(super) fn open(&self, far: &HostEntry) -> Result<(), String> {
        let asked = far
            .descriptors()
            .and_then(|descriptors| fork::send_descriptors(self.channel.as_fd(), &[OPEN], &descriptors));
        asked.map_err(|why| why.to_string())?;
        let mut answer = [0; LONGEST_ANSWER];
        let _ = poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], Some(&LONGEST_OPENING));
        match rustix::net::recv(&self.channel, &mut answer[..], RecvFlags::DONTWAIT) {
            Ok((1, _)) if answer[0] == OPEN => Ok(()),
            Ok((length @ 2.., _)) => Err(String::from_utf8_lossy(&answer[..length]).into_owned()),
            _ => Err("its process has ended without an answer".to_owned()),
        }
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
        if let Some(keeper) = self.keeper {
            fork::reap(keeper);
        }
    }
}

/// The life of the keeper.
pub(super) fn keep(channel: &OwnedFd, pasta: &Path) {
    // The signals of the terminal are for the command alone.
    let _ = rustix::process::setsid();
    let (mut message, mut descriptors) = ([0], Vec::new());
    let received = fork::receive_descriptors(channel.as_fd(), &mut message, &mut descriptors);
    let Some(entry) = HostEntry::from_descriptors(descriptors) else { return };
    if !matches!(received, Ok(1)) {
        return;
    }
    let mut inside = match Inside::start(pasta, &entry) {
        Ok(inside) => inside,
        Err(why) => return answer(channel, why.to_string().as_bytes()),
    };
    drop(entry);
    match inside.wait_for_guide(channel) {
        None => return,
        Some(Ok(())) => answer(channel, &[OPEN]),
        Some(Err(why)) => answer(channel, why.as_bytes()),
    }
    inside.wait_for_end(channel);
}

fn answer(channel: &OwnedFd, text: &[u8]) {
    let text = &text[..text.len().min(LONGEST_ANSWER)];
    let _ = rustix::net::send(channel, text, SendFlags::NOSIGNAL);
}

/// The keeper's children. They are killed when it is dropped.
struct Inside {
    holder: Pid,
    pasta: Pid,
    guide: Pid,
    /// The channel on which the guide says that the routes are made: one byte, or a sentence why not.
    from_guide: OwnedFd,
    /// The words that pasta prints on standard error.
    words: Words,
}

impl Inside {
    fn start(pasta: &Path, entry: &HostEntry) -> io::Result<Self> {
        let (from_holder, to_keeper) = pair()?;
        let holder = child(|| hold(entry, &to_keeper))?;
        drop(to_keeper);
        let mut is_held = [0];
        let (length, _) = rustix::net::recv(&from_holder, &mut is_held[..], RecvFlags::empty())?;
        if length != 1 {
            return Err(io::Error::other("the second host cannot be entered"));
        }
        let (words, to_words) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let arguments = arguments(holder, entry.has_user_namespace());
        let pasta = child(|| become_pasta(pasta, &arguments, &to_words))?;
        drop(to_words);
        let (from_guide, to_keeper) = pair()?;
        let guide = child(|| guide(entry, &to_keeper))?;
        Ok(Self { holder, pasta, guide, from_guide, words: Words::new(words.into()) })
    }

    /// Waits for what the guide or pasta says first. `None` if this process's parent has gone.
    fn wait_for_guide(&mut self, channel: &OwnedFd) -> Option<Result<(), String>> {
        loop {
            let mut fds = [
                PollFd::new(channel, PollFlags::IN),
                PollFd::new(&self.from_guide, PollFlags::IN),
                PollFd::new(&self.words.pipe, PollFlags::IN),
            ];
            let _ = poll(&mut fds, None);
            let [has_gone, is_guided, has_words] = fds.map(|fd| !fd.revents().is_empty());
            if has_gone {
                return None;
            }
            // The end of pasta's words is the end of pasta, because only pasta has the pipe.
            if has_words && !self.words.read() {
                return Some(Err(self.words.last_line()));
            }
            if is_guided {
                let mut answer = [0; LONGEST_ANSWER];
                return match rustix::net::recv(&self.from_guide, &mut answer[..], RecvFlags::empty()) {
                    Ok((1, _)) => Some(Ok(())),
                    Ok((length @ 2.., _)) => {
                        Some(Err(String::from_utf8_lossy(&answer[..length]).into_owned()))
                    }
                    _ => Some(Err("the routes to it cannot be made".to_owned())),
                };
            }
        }
    }

    /// Waits until this process's parent has gone.
    fn wait_for_end(&mut self, channel: &OwnedFd) {
        let mut has_pasta = true;
        loop {
            let mut fds = vec![PollFd::new(channel, PollFlags::IN)];
            if has_pasta {
                fds.push(PollFd::new(&self.words.pipe, PollFlags::IN));
            }
            let _ = poll(&mut fds, None);
            let has_gone = !fds[0].revents().is_empty();
            let has_words = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            if has_gone {
                return;
            }
            has_pasta &= !has_words || self.words.read();
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        for process in [self.holder, self.pasta, self.guide] {
            let _ = rustix::process::kill_process(process, Signal::KILL);
            fork::reap(process);
        }
    }
}

/// The last words that a process has written to a pipe.
struct Words {
    pipe: File,
    text: Vec<u8>,
}

impl Words {
    const fn new(pipe: File) -> Self {
        Self { pipe, text: Vec::new() }
    }

    /// Reads what is there. Returns false at the end of the pipe.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.pipe.read(&mut bytes) {
            Ok(0) => return false,
            Ok(length) => self.text.extend(&bytes[..length]),
            Err(error) => return error.kind() == io::ErrorKind::Interrupted,
        }
        let too_many = self.text.len().saturating_sub(MOST_WORDS);
        self.text.drain(..too_many);
        true
    }

    /// The last line that is about pasta's work. pasta also says when no system log takes its lines.
    fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let is_about_work = |line: &&str| !line.trim().is_empty() && !line.contains("to syslog");
        let line = text.lines().rfind(is_about_work);
        line.unwrap_or("pasta has ended without a word").trim().to_owned()
    }
}

/// Starts a child that runs `life`, and that the kernel kills when this process ends.
fn child(life: impl FnOnce()) -> io::Result<Pid> {
    match fork::fork()? {
        fork::Forked::Parent(process) => Ok(process),
        fork::Forked::Child => {
            fork::die_with_parent();
            let _ = catch_unwind(AssertUnwindSafe(life));
            fork::exit_now()
        }
    }
}

/// The life of the holder.
fn hold(entry: &HostEntry, to_keeper: &OwnedFd) {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    if entry.enter().is_err() || set_capabilities(None, none).is_err() {
        return;
    }
    // Another user namespace is another parent for the kernel, which then forgets the signal.
    fork::die_with_parent();
    let _ = rustix::net::send(to_keeper, &[OPEN], SendFlags::NOSIGNAL);
    loop {
        let _ = poll(&mut [], None);
    }
}

/// Runs pasta in the place of this process.
fn become_pasta(pasta: &Path, arguments: &[String], words: &OwnedFd) {
    let Ok(stderr) = words.try_clone() else { return };
    let why =
        Command::new(pasta).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).exec();
    let _ = rustix::io::write(words, format!("{}: {why}\n", pasta.display()).as_bytes());
}

/// The arguments of pasta for the second host, which `holder` is inside.
fn arguments(holder: Pid, has_user_namespace: bool) -> Vec<String> {
    let path = |kind: &str| format!("/proc/{}/ns/{kind}", holder.as_raw_pid());
    let [near, near_v6] = END_ADDRESSES.near;
    let [far, far_v6] = END_ADDRESSES.far;
    let fixed = "--quiet --foreground --tcp-ports none --udp-ports none --tcp-ns none --udp-ns none \
                 --no-map-gw --no-dhcp --no-dhcpv6 --no-ndp --no-ra --netmask 30 --ns-ifname";
    let mut all: Vec<String> = fixed.split_ascii_whitespace().map(str::to_owned).collect();
    all.push(DEVICE.to_owned());
    for (option, address) in [
        ("--address", near),
        ("--address", near_v6),
        ("--gateway", far),
        ("--gateway", far_v6),
        ("--dns-forward", RESOLVER_V4),
        ("--dns-forward", RESOLVER_V6),
    ] {
        all.extend([option.to_owned(), address.to_string()]);
    }
    if has_user_namespace {
        all.extend(["--userns".to_owned(), path("user")]);
    } else {
        // Root stays root. pasta would become `nobody` first, who cannot enter the namespace.
        all.extend(["--netns-only", "--runas", "0"].map(str::to_owned));
    }
    all.extend(["--netns".to_owned(), path("net")]);
    all
}

/// The life of the guide.
fn guide(entry: &HostEntry, to_keeper: &OwnedFd) {
    let text = match make_routes(entry) {
        Ok(()) => vec![OPEN],
        Err(why) => format!("the routes to it cannot be made: {why}").into_bytes(),
    };
    let _ = rustix::net::send(to_keeper, &text, SendFlags::NOSIGNAL);
}

/// Waits for pasta's device inside the second host, and makes the host forward packets to it.
fn make_routes(entry: &HostEntry) -> io::Result<()> {
    entry.enter()?;
    for (file, text) in FORWARDING {
        fs::write(file, text)?;
    }
    let socket = route_socket()?;
    let begun = Instant::now();
    let index = loop {
        match rustix::net::netdevice::name_to_index(&socket, DEVICE) {
            Ok(index) => break index,
            Err(_) if begun.elapsed() < LONGEST_WAIT => std::thread::sleep(LOOK),
            Err(why) => return Err(why.into()),
        }
    };
    forwarding_requests(index).iter().try_for_each(|request| request.send(&socket))
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The name of pasta's device in the second host.
const DEVICE: &str = "way-out";
/// The settings of the second host (Documentation/networking/ip-sysctl.rst of the kernel). A packet that
/// comes from outside must not be dropped because the main table has no route back (`rp_filter`).
const FORWARDING: [(&str, &str); 4] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
    ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
];
/// The message that asks for the way out, and the answer that it is open.
const OPEN: u8 = 1;
/// The size of the longest answer in bytes.
const LONGEST_ANSWER: usize = 512;
/// How many bytes of pasta's words are kept. We chose 4096 because only the last line is read.
const MOST_WORDS: usize = 4096;
/// The longest wait for pasta's device. We chose 5 s because pasta took 20 ms on an idle machine.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait for the answer whether the way is open: longer than [`LONGEST_WAIT`].
const LONGEST_OPENING: Timespec = Timespec { tv_sec: 7, tv_nsec: 0 };
/// The time between two looks for the device.
const LOOK: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_pastas_end_is_its_last_line_about_its_work() {
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        let mut words = Words::new(pipe.into());
        assert_eq!(words.last_line(), "pasta has ended without a word");
        words.text =
            b"Failed to open() /dev/net/tun: Permission denied\nFailed to send 40 bytes to syslog\n\n"
                .to_vec();
        assert_eq!(words.last_line(), "Failed to open() /dev/net/tun: Permission denied");
    }
}
