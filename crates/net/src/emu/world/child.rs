//! The life of the child: it enters one namespace after the other, makes what belongs there, and hands the descriptors over.
//!
//! After fork (see `emu/sys.rs`): but for [`IdentityMaps::new`], nothing here allocates, locks or panics.

use std::borrow::Cow;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::failure::Step;
use super::socket::{SocketPlan, make_socket};
use super::{Kind, Means, Setting, address};
use crate::emu::link::{Between, Route, add_route, open_tun};
use crate::emu::packet::Host;
use crate::emu::{ring, sys};

/// What the child shall make; all of it is made before the fork.
pub(super) struct Wanted<'a> {
    pub(super) kind: Kind,
    pub(super) mtu: [u16; 2],
    pub(super) plan: &'a [SocketPlan<'a>],
    pub(super) settings: &'a [Setting],
    pub(super) route: Option<Route>,
    pub(super) maps: IdentityMaps,
}

/// What the child found out.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) means: Means,
    /// A bit for each setting that could not be made, and [`ROUTE_UNSET`].
    pub(super) unset: u16,
}

/// The child's whole life. After fork (see `sys.rs`): nothing here allocates, locks or panics.
pub(super) fn be_helper(channel: &OwnedFd, wanted: &Wanted<'_>, made: &mut Vec<OwnedFd>) {
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

/// Lines for uid_map and gid_map: root inside is the caller outside.
pub(super) struct IdentityMaps {
    user: Vec<u8>,
    group: Vec<u8>,
}

impl IdentityMaps {
    pub(super) fn new() -> Self {
        let line = |id: u32| format!("0 {id} 1").into_bytes();
        Self {
            user: line(rustix::process::geteuid().as_raw()),
            group: line(rustix::process::getegid().as_raw()),
        }
    }
}

/// No router solicitations on the devices, and no connection that learns from the one before it.
const QUIET: [Setting; 3] = [
    (c"/proc/sys/net/ipv6/conf/all/disable_ipv6", Cow::Borrowed(b"1")),
    (c"/proc/sys/net/ipv6/conf/default/disable_ipv6", Cow::Borrowed(b"1")),
    (c"/proc/sys/net/ipv4/tcp_no_metrics_save", Cow::Borrowed(b"1")),
];
/// The bit of `Found::unset` that stands for the routes.
pub(super) const ROUTE_UNSET: u16 = 1 << 15;
/// The device's name, the same on both hosts, which do not see each other.
const DEVICE: &CStr = c"talkpath";
/// The emulator's ends.
const PEERS: [&CStr; 2] = [c"host1", c"host2"];
