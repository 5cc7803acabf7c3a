//! Two hosts: network namespaces without a name, joined by nothing but the emulator.
//!
//! ```text
//!   this process                      a child, for some milliseconds
//!    plan the sockets ── fork ──►      unshare ─► between the hosts: a packet socket for each
//!    receive          ◄── SCM_RIGHTS   unshare ─► first host:  cable to its packet socket, address, sockets
//!    wait for the child                unshare ─► second host: the same
//!                                      exit
//! ```
//!
//! A network namespace lives as long as a descriptor from it. This process holds the only ones, so however it ends
//! the kernel takes namespaces, devices, addresses and routes away with it: nothing has a name on disk, and there is
//! nothing to clean up. The child is what lets a process with threads do without root: only a process of one thread may
//! enter a user namespace (unshare(2), EINVAL), and a socket stays in the namespace that it was made in.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use socket2::{Domain, Protocol, Socket, Type};
use talkpath_arena::ArenaError;

use super::link::{Between, Route, add_route, open_tun};
use super::packet::{FIRST_PORT, Host};
use super::ring;
use super::sys;
use crate::end::apply_options;
use crate::spec::TransportSpec;
use crate::sys::{SocketSwitch, switch_on};

/// A socket to be made on a host.
pub(super) struct SocketPlan<'a> {
    /// Index of the flow: both ends use port [`FIRST_PORT`] + this.
    pub(super) flow: usize,
    pub(super) host: Host,
    pub(super) transport: &'a TransportSpec,
    /// Whether this end sends: it dials, the other listens.
    pub(super) is_sender: bool,
    /// What full segments must fit in, where that is less than the device's MTU.
    pub(super) path_mtu: Option<u32>,
    /// Largest window that a TCP receiver advertises, where the scenario bounds it.
    pub(super) window_clamp: Option<u32>,
    /// Whether a TCP sender's segments are paced whatever its congestion control.
    pub(super) is_paced: bool,
}

/// The two hosts.
pub(super) struct World {
    /// The packet sockets at the emulator's ends of the hosts' cables, or the TUN devices: the first host's, the second's.
    pub(super) devices: [OwnedFd; 2],
    /// The largest packet of either host: what the rings of the packet sockets were made for.
    pub(super) mtu: u16,
    /// In the plan's order.
    pub(super) sockets: Vec<OwnedFd>,
    kind: Kind,
    counters: [File; 2],
    /// Packets that found no frame free in a ring, as far as the kernel was asked.
    unread: u64,
    /// How the namespaces were had.
    pub(super) means: Means,
    /// Which of the settings asked for could not be made, by place.
    pub(super) unset: Vec<bool>,
    /// Whether the routes could not be told what they should say of TCP.
    pub(super) route_is_unset: bool,
}

/// What leads from the hosts to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A cable to a packet socket with a ring.
    Cable,
    /// A TUN device.
    Tun,
}

/// A file under /proc/sys/net and what is to be in it; each namespace has its own.
pub(super) type Setting = (&'static CStr, Cow<'static, [u8]>);

/// How namespaces can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// With CAP_SYS_ADMIN.
    Privilege,
    /// In a user namespace of our own.
    UserNamespace,
}

/// Packets that a device had no room for, or could not hand to its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceDrops {
    /// On the way from the host to the emulator.
    pub(super) from_host: u64,
    /// On the way from the emulator to the host.
    pub(super) to_host: u64,
}

/// What the child was doing when it failed; its message is the step and the system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Done,
    Namespace,
    UserNamespace,
    Tap,
    Device,
    Counters,
    Socket,
    Send,
}

impl World {
    /// Makes both hosts with these MTUs, sockets and settings (at most 15), and routes that say `route` of TCP.
    ///
    /// # Errors
    /// [`ArenaError::Unavailable`] says what this machine does not allow, and how to get it.
    pub(super) fn build(
        mtu: [u16; 2],
        plan: &[SocketPlan<'_>],
        settings: &[Setting],
        route: Option<Route>,
    ) -> Result<Self, ArenaError> {
        Self::build_with(Kind::Cable, mtu, plan, settings, route)
    }

    /// The same with devices of this kind; a TUN device's host has no `route`.
    ///
    /// # Errors
    /// As [`World::build`].
    pub(super) fn build_with(
        kind: Kind,
        mtu: [u16; 2],
        plan: &[SocketPlan<'_>],
        settings: &[Setting],
        route: Option<Route>,
    ) -> Result<Self, ArenaError> {
        let failed = |error: &io::Error| unavailable(Step::Send, error);
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| failed(&error.into()))?;
        raise_descriptor_limit(plan.len() as u64 + 64);
        // All that the child needs of memory is made before the fork.
        let maps = IdentityMaps::new();
        let mut made = Vec::with_capacity(plan.len() + 4);
        let child = match sys::fork().map_err(|error| failed(&error))? {
            sys::Forked::Child => {
                be_helper(&theirs, &Wanted { kind, mtu, plan, settings, route, maps }, &mut made);
                sys::exit_now()
            }
            sys::Forked::Parent(child) => child,
        };
        drop(theirs);
        let outcome = receive(&ours, plan.len() + 4);
        drop(ours);
        sys::reap(child);
        let (found, fds) = outcome?;
        let mut world =
            Self::sort(kind, plan, fds).ok_or_else(|| failed(&io::ErrorKind::UnexpectedEof.into()))?;
        world.mtu = mtu[0].max(mtu[1]);
        world.means = found.means;
        world.unset = (0..settings.len()).map(|place| found.unset >> place & 1 != 0).collect();
        world.route_is_unset = found.unset & ROUTE_UNSET != 0;
        Ok(world)
    }

    /// What the child made, host after host, in the places where it belongs.
    fn sort(kind: Kind, plan: &[SocketPlan<'_>], fds: Vec<OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter();
        let mut sockets: Vec<Option<OwnedFd>> = plan.iter().map(|_| None).collect();
        let mut host = |host: Host| {
            let (device, counters) = (fds.next()?, fds.next()?);
            for (socket, _) in sockets.iter_mut().zip(plan).filter(|(_, plan)| plan.host == host) {
                *socket = Some(fds.next()?);
            }
            Some((device, File::from(counters)))
        };
        let ((first, first_counters), (second, second_counters)) = (host(Host::First)?, host(Host::Second)?);
        Some(Self {
            devices: [first, second],
            mtu: 0,
            sockets: sockets.into_iter().collect::<Option<_>>()?,
            kind,
            counters: [first_counters, second_counters],
            unread: 0,
            means: Means::Privilege,
            unset: Vec::new(),
            route_is_unset: false,
        })
    }

    /// What the devices and the rings dropped since they were made.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn device_drops(&mut self) -> io::Result<DeviceDrops> {
        let mut drops = DeviceDrops::default();
        for file in &mut self.counters {
            let mut text = String::new();
            file.rewind()?;
            file.read_to_string(&mut text)?;
            let (from_host, to_host) = parse_drops(&text).unwrap_or_default();
            drops.from_host += from_host;
            drops.to_host += to_host;
        }
        if self.kind == Kind::Cable {
            for tap in &self.devices {
                self.unread += ring::take_drops(tap)?;
            }
        }
        drops.from_host += self.unread;
        Ok(drops)
    }
}

/// The address of a host.
pub(super) const fn address(host: Host) -> Ipv4Addr {
    // TEST-NET-1 (RFC 5737): no route of this machine's is shadowed, since the namespaces have none.
    match host {
        Host::First => Ipv4Addr::new(192, 0, 2, 1),
        Host::Second => Ipv4Addr::new(192, 0, 2, 2),
    }
}

/// The address and port of flow `flow` at `host`.
pub(super) fn endpoint(host: Host, flow: usize) -> SocketAddrV4 {
    let port = u16::try_from(usize::from(FIRST_PORT) + flow).unwrap_or(u16::MAX);
    SocketAddrV4::new(address(host), port)
}

/// TX and RX drops of the device in the text of /proc/net/dev: name, eight columns of receiving, eight of sending; the
/// fourth of each are drops. What the emulator writes, the device receives.
fn parse_drops(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("talkpath:"))?;
    let columns: Vec<u64> = line.split_ascii_whitespace().map_while(|column| column.parse().ok()).collect();
    Some((*columns.get(11)?, *columns.get(3)?))
}

/// What the child shall make; all of it is made before the fork.
struct Wanted<'a> {
    kind: Kind,
    mtu: [u16; 2],
    plan: &'a [SocketPlan<'a>],
    settings: &'a [Setting],
    route: Option<Route>,
    maps: IdentityMaps,
}

/// What the child found out.
#[derive(Clone, Copy)]
struct Found {
    means: Means,
    /// A bit for each setting that could not be made, and [`ROUTE_UNSET`].
    unset: u16,
}

/// The child's whole life. After fork (see `sys.rs`): nothing here allocates, locks or panics.
fn be_helper(channel: &OwnedFd, wanted: &Wanted<'_>, made: &mut Vec<OwnedFd>) {
    sys::die_with_parent();
    let mut found = Found { means: Means::Privilege, unset: 0 };
    let result = make_hosts(wanted, made, &mut found);
    let [low, high] = found.unset.to_ne_bytes();
    let told = match result {
        Ok(()) => {
            let message = [Step::Done as u8, found.means as u8, low, high];
            let mut rest = made.as_slice();
            let mut sent = Ok(());
            while !rest.is_empty() && sent.is_ok() {
                let (now, later) = rest.split_at(rest.len().min(sys::MOST_DESCRIPTORS));
                sent = sys::send_descriptors(channel.as_fd(), &message, now);
                rest = later;
            }
            sent.map_err(|error| (Step::Send, error))
        }
        Err(why) => Err(why),
    };
    if let Err((step, error)) = told {
        let number = error.raw_os_error().unwrap_or(0).to_ne_bytes();
        let message = [step as u8, found.means as u8, low, high, number[0], number[1], number[2], number[3]];
        // Where this fails too, the parent sees the channel close.
        let _ = sys::send_descriptors(channel.as_fd(), &message, &[]);
    }
}

/// Makes both hosts, one after the other: a device, its counters, the sockets. After fork.
fn make_hosts(
    wanted: &Wanted<'_>,
    made: &mut Vec<OwnedFd>,
    found: &mut Found,
) -> Result<(), (Step, io::Error)> {
    let at = |step: Step| move |error: io::Error| (step, error);
    let as_we_are = sys::unshare(false)
        .map_err(at(Step::UserNamespace))
        .and_then(|()| ring::tap().map(drop).map_err(at(Step::Tap)));
    if let Err((step, why)) = as_we_are {
        found.means = Means::UserNamespace;
        // Where namespaces are to be had and packet sockets are not, that is what is missing.
        enter_user_namespace(&wanted.maps)
            .map_err(|error| (step, if step == Step::Tap { why } else { error }))?;
    }
    for (path, text) in QUIET {
        let _ = sys::write_file(path, &text);
    }
    let between = Between::here().map_err(at(Step::Namespace))?;
    let tap = || match wanted.kind {
        Kind::Cable => ring::tap().map(Some).map_err(at(Step::Tap)),
        Kind::Tun => Ok(None),
    };
    let taps = [tap()?, tap()?];
    for (host, tap) in [Host::First, Host::Second].into_iter().zip(taps) {
        sys::unshare(false).map_err(at(Step::Namespace))?;
        // Where /proc/sys cannot be written the emulator ignores what IPv6 sends, and connections that follow each other
        // in a run learn from each other.
        for (path, text) in QUIET {
            let _ = sys::write_file(path, &text);
        }
        for (place, (path, text)) in wanted.settings.iter().enumerate() {
            if sys::write_file(path, text).is_err() {
                found.unset |= 1 << place.min(14);
            }
        }
        let device = match tap {
            Some(tap) => attach(wanted, &between, tap, host, found),
            None => open_tun(DEVICE, address(host), wanted.mtu[host.index()]),
        };
        made.push(device.map_err(at(Step::Device))?);
        // Opened here, the file keeps telling of this namespace.
        made.push(sys::open_file(c"/proc/thread-self/net/dev").map_err(at(Step::Counters))?);
        for socket in wanted.plan.iter().filter(|socket| socket.host == host) {
            made.push(make_socket(socket).map_err(at(Step::Socket))?);
        }
    }
    Ok(())
}

/// Lays a host's cable, whose packet socket is `tap`, and its route. After fork.
fn attach(
    wanted: &Wanted<'_>,
    between: &Between,
    tap: OwnedFd,
    host: Host,
    found: &mut Found,
) -> io::Result<OwnedFd> {
    let largest = wanted.mtu[0].max(wanted.mtu[1]);
    let device = between.attach((DEVICE, PEERS[host.index()]), &tap, address(host), largest)?;
    // A device takes nothing that is larger than what it sends, so the smaller MTU is the route's.
    let mtu = if wanted.mtu[host.index()] == largest { 0 } else { u32::from(wanted.mtu[host.index()]) };
    if wanted.route.is_some() || mtu > 0 {
        let route = Route { mtu, ..wanted.route.unwrap_or_default() };
        match add_route(device, address(host.other()), route) {
            Err(error) if mtu > 0 => return Err(error),
            Err(_) => found.unset |= ROUTE_UNSET,
            Ok(()) => {}
        }
    }
    Ok(tap)
}

/// Becomes root of a user namespace that maps nobody but the caller. After fork.
fn enter_user_namespace(maps: &IdentityMaps) -> io::Result<()> {
    sys::unshare(true)?;
    // Without this the group map cannot be written (user_namespaces(7)); kernels before 3.19 lack the file.
    let _ = sys::write_file(c"/proc/self/setgroups", b"deny");
    sys::write_file(c"/proc/self/uid_map", &maps.user)?;
    sys::write_file(c"/proc/self/gid_map", &maps.group)
}

/// A socket that is ready to be used from anywhere: bound, and connected (UDP) or listening (TCP's receiver). After fork.
fn make_socket(plan: &SocketPlan<'_>) -> io::Result<OwnedFd> {
    let here = endpoint(plan.host, plan.flow).into();
    let there = endpoint(plan.host.other(), plan.flow).into();
    match plan.transport {
        TransportSpec::Udp { .. } | TransportSpec::Dccp(_) => {
            let receive_buffer = match plan.transport {
                TransportSpec::Udp { receive_buffer } => *receive_buffer,
                _ => None,
            };
            let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
            // The path fragments: the model's links do not know the don't-fragment flag.
            sys::set_option(
                socket.as_raw_fd(),
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_DONT,
            )?;
            socket.bind(&here)?;
            socket.connect(&there)?;
            switch_on(socket.as_fd(), SocketSwitch::KernelStamps)?;
            switch_on(socket.as_fd(), SocketSwitch::DropCounter)?;
            match receive_buffer.filter(|_| !plan.is_sender) {
                Some(bytes) => socket.set_recv_buffer_size(usize::try_from(bytes).unwrap_or(usize::MAX))?,
                // What waits there for a late thread of ours is not for the path to lose; unprivileged, the system's
                // own limit holds, and drops are told.
                None => {
                    let forced = sys::set_option(
                        socket.as_raw_fd(),
                        libc::SOL_SOCKET,
                        libc::SO_RCVBUFFORCE,
                        RECEIVE_BUFFER,
                    );
                    if forced.is_err() {
                        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER as usize);
                    }
                }
            }
            Ok(socket.into())
        }
        TransportSpec::Tcp { .. } => {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
            apply_options(&socket, plan.transport, plan.is_sender)?;
            // Closed with data in it, a socket would go on retransmitting for minutes and keep its namespace; an accepted
            // one inherits this.
            socket.set_linger(Some(core::time::Duration::ZERO))?;
            if let Some(mtu) = plan.path_mtu {
                let mss = mtu.saturating_sub(TCP_HEADERS).max(LEAST_MSS);
                let chosen = match plan.transport {
                    TransportSpec::Tcp { mss: Some(chosen), .. } => mss.min(*chosen),
                    _ => mss,
                };
                socket.set_tcp_mss(chosen)?;
            }
            if let Some(window) = plan.window_clamp.filter(|_| !plan.is_sender) {
                let window = libc::c_int::try_from(window).unwrap_or(libc::c_int::MAX);
                sys::set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window)?;
            }
            if plan.is_paced && plan.is_sender {
                // Any limit switches pacing on; this one, 17 Gbit/s, is above what an emulated path carries.
                let option = libc::SO_MAX_PACING_RATE;
                sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, option, libc::c_int::MAX)?;
            }
            socket.bind(&here)?;
            if !plan.is_sender {
                socket.listen(1)?;
            }
            Ok(socket.into())
        }
    }
}

/// Lines for uid_map and gid_map: root inside is the caller outside.
struct IdentityMaps {
    user: Vec<u8>,
    group: Vec<u8>,
}

impl IdentityMaps {
    fn new() -> Self {
        let line = |id: u32| format!("0 {id} 1").into_bytes();
        Self {
            user: line(rustix::process::geteuid().as_raw()),
            group: line(rustix::process::getegid().as_raw()),
        }
    }
}

/// Takes what the child made, until there are `wanted` descriptors.
fn receive(channel: &OwnedFd, wanted: usize) -> Result<(Found, Vec<OwnedFd>), ArenaError> {
    let mut fds = Vec::with_capacity(wanted);
    let mut found = Found { means: Means::Privilege, unset: 0 };
    while fds.len() < wanted {
        let mut message = [0; 8];
        match sys::receive_descriptors(channel.as_fd(), &mut message, &mut fds) {
            Ok(0) => return Err(unavailable(Step::Send, &io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(unavailable(Step::Send, &error)),
        }
        let [step, means, low, high, number @ ..] = message;
        if means == Means::UserNamespace as u8 {
            found.means = Means::UserNamespace;
        }
        found.unset = u16::from_ne_bytes([low, high]);
        if step != Step::Done as u8 {
            let step = STEPS.into_iter().find(|it| *it as u8 == step).unwrap_or(Step::Send);
            return Err(unavailable(step, &io::Error::from_raw_os_error(i32::from_ne_bytes(number))));
        }
    }
    Ok((found, fds))
}

/// What is missing, and how to get it.
fn unavailable(step: Step, error: &io::Error) -> ArenaError {
    let root = "run as root (or with CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW)";
    let (what, how) = match step {
        Step::Namespace | Step::UserNamespace => (
            "this machine lets us make no network namespace",
            format!(
                "{root}, or allow user namespaces: `sysctl user.max_user_namespaces`, \
                 `kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`; \
                 in a container, give it those capabilities"
            ),
        ),
        Step::Tap => (
            "no packet socket can be made",
            format!(
                "the kernel needs CONFIG_PACKET (`modprobe af_packet`); {root}; seccomp must allow AF_PACKET"
            ),
        ),
        Step::Device => (
            "no device can be made for a host",
            format!("the kernel needs CONFIG_VETH (`modprobe veth`) and memory for its packets; {root}"),
        ),
        Step::Counters => ("the device's counters cannot be read", "mount /proc".to_owned()),
        Step::Socket => (
            "a socket in the namespace cannot be made",
            "see the congestion controls in `talkpath doctor` and the limit of open files (ulimit -n)"
                .to_owned(),
        ),
        Step::Done | Step::Send => (
            "the two hosts cannot be set up",
            "see the limits of processes and open files (ulimit -u, ulimit -n)".to_owned(),
        ),
    };
    ArenaError::Unavailable { what: format!("{what}: {error}"), how }
}

/// Two descriptors a flow may be more than the soft limit of old; the hard limit is the administrator's word.
fn raise_descriptor_limit(wanted: u64) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = wanted.saturating_mul(2).saturating_add(256);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // Where this fails, the socket that is one too many says so.
        let _ = rustix::process::setrlimit(
            rustix::process::Resource::Nofile,
            rustix::process::Rlimit { current, maximum: limit.maximum },
        );
    }
}

const STEPS: [Step; 8] = [
    Step::Done,
    Step::Namespace,
    Step::UserNamespace,
    Step::Tap,
    Step::Device,
    Step::Counters,
    Step::Socket,
    Step::Send,
];
/// No router solicitations on the devices, and no connection that learns from the one before it.
const QUIET: [Setting; 3] = [
    (c"/proc/sys/net/ipv6/conf/all/disable_ipv6", Cow::Borrowed(b"1")),
    (c"/proc/sys/net/ipv6/conf/default/disable_ipv6", Cow::Borrowed(b"1")),
    (c"/proc/sys/net/ipv4/tcp_no_metrics_save", Cow::Borrowed(b"1")),
];
/// The bit of `Found::unset` that stands for the routes.
const ROUTE_UNSET: u16 = 1 << 15;
/// The device's name, the same on both hosts, which do not see each other.
const DEVICE: &CStr = c"talkpath";
/// The emulator's ends.
const PEERS: [&CStr; 2] = [c"host1", c"host2"];
/// IPv4 and TCP headers without options.
const TCP_HEADERS: u32 = 40;
/// TCP_MIN_MSS of the Linux kernel's net/tcp.h.
const LEAST_MSS: u32 = 88;
/// SO_RCVBUF where the scenario says nothing: 4 MB, the time slice of a busy machine at a gigabit a second.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_devices_own_line() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
                    lo:       0       0    0    9    0     0          0         0        0       0    0    9\n\
                    talkpath: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(parse_drops(text), Some((12, 4)));
        assert_eq!(parse_drops("talkpath: 1 2"), None);
    }
}
