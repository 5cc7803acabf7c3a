//! Programs of the user on the emulated path (`talkpath shell`).
//!
//! ```text
//!  near end's terminal                          far end's terminal
//!   talkpath ── emulator ── path                 talkpath --pair NAME
//!      │  └─ Door: a Unix socket ◄── NAME ────────── Guest
//!   Launcher ── command, first host              Launcher ── command, second host
//! ```
//!
//! - *launcher*: a process that starts the command inside a host's namespaces and waits for its end. When
//!   the command or this process ends, however it ends, the launcher kills what is left of the command.
//! - *door*: the socket by which shells of the same user join the far end of a path. It hands out the
//!   descriptors of the second host's namespaces, so nothing has to listen on any address of a network.
//! - *guest*: a shell that has joined.
//!
//! The kernel keeps a namespace as long as a process is in it or a descriptor of it is open. So no namespace,
//! device or address is left when these processes have ended.

mod door;
mod entry;
mod launcher;

use std::fmt;
use std::io;
use std::net::IpAddr;

use rustix::process::Signal;

pub use door::{Door, DoorError, Guest, PairName};
pub use entry::HostEntry;
pub use launcher::{CommandLine, Ended, Launcher};

use crate::packet::Host;
use crate::world::address;
use talkpath_model::IpVersion;

/// A program that runs inside the emulated network.
pub trait Program: Send {
    /// Starts the program. It enters the network by `entries`, those of the first and the second host.
    ///
    /// # Errors
    /// Returns the system's error if the program cannot be started.
    fn start(&mut self, entries: [HostEntry; 2]) -> io::Result<()>;

    /// Returns true once the program has ended.
    fn is_over(&mut self) -> bool;

    /// Asks the program to end. It is called again and again until the program is over.
    fn ask_to_end(&mut self);
}

/// The command of a near end, with the door to the far end.
pub struct NearEnd {
    launcher: Launcher,
    door: Option<Door>,
}

/// The addresses of the two ends of the path, as a person reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndAddresses {
    /// The addresses of the near end, IPv4 and IPv6.
    pub near: [IpAddr; 2],
    /// The addresses of the far end.
    pub far: [IpAddr; 2],
}

/// The addresses of both ends, which are the same in every run.
pub const END_ADDRESSES: EndAddresses = EndAddresses {
    near: [address(Host::First, IpVersion::V4), address(Host::First, IpVersion::V6)],
    far: [address(Host::Second, IpVersion::V4), address(Host::Second, IpVersion::V6)],
};

impl NearEnd {
    /// Makes the near end of a command that `launcher` starts. Guests come through `door`.
    pub const fn new(launcher: Launcher, door: Option<Door>) -> Self {
        Self { launcher, door }
    }

    /// How the command ended. `None` if it has not ended.
    pub const fn ended(&self) -> Option<Ended> {
        self.launcher.ended()
    }
}

impl Program for NearEnd {
    fn start(&mut self, [near, far]: [HostEntry; 2]) -> io::Result<()> {
        if let Some(door) = &mut self.door {
            door.open(far)?;
        }
        self.launcher.start(&near)
    }

    fn is_over(&mut self) -> bool {
        self.launcher.is_over()
    }

    fn ask_to_end(&mut self) {
        self.launcher.end(Signal::TERM);
    }
}

impl fmt::Debug for NearEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearEnd").field("launcher", &self.launcher).finish_non_exhaustive()
    }
}
