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
//! - *way out*: pasta, which carries what the first host sends to other networks to this machine's network.
//!
//! The kernel keeps a namespace as long as a process is in it or a descriptor of it is open. So no namespace,
//! device or address is left when these processes have ended.

mod addresses;
mod door;
mod entry;
mod launcher;
mod names;
mod nursery;
mod repeated;
mod way_out;

use std::fmt;
use std::io;
use std::sync::mpsc::Sender;

pub use addresses::{END_ADDRESSES, EndAddresses};
pub use door::{Door, DoorError, Guest, PairName};
pub use entry::HostEntry;
pub use launcher::{CommandLine, Ended, Launcher};
pub use nursery::Nursery;
pub use repeated::RepeatedProgram;
pub use way_out::WayOut;

use talkpath_measure::ProgramOutcome;
use talkpath_model::Program as Described;

use crate::flow_interval::FlowInterval;

/// A program that runs inside the emulated network.
pub trait Program: Send {
    /// Starts the program that the scenario describes. It enters the network by `entries`, those of the first
    /// and the second host.
    ///
    /// # Errors
    /// Returns the system's error if the program cannot be started.
    fn start(&mut self, described: &Described, entries: [HostEntry; 2]) -> io::Result<()>;

    /// Returns true once the program has ended.
    fn is_over(&mut self) -> bool;

    /// Asks the program to end. It is called again and again until the program is over.
    fn ask_to_end(&mut self);

    /// Returns the reader of the flows' intervals while they run, if there is one. It is called once, before
    /// the start.
    fn take_reader(&mut self) -> Option<Sender<FlowInterval>> {
        None
    }

    /// Returns true if the record shall have the addresses of flows, and the names that were looked up.
    fn keeps_names(&self) -> bool {
        false
    }

    /// Returns what a reader of the record has to know of the program's network, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if the run counts even if the user has stopped it.
    fn counts_if_stopped(&self) -> bool {
        false
    }

    /// Takes what came of a program whose end is a result of the run. `None` if its end is none.
    ///
    /// # Errors
    /// Returns why the program could not be run at all, as a sentence for the user.
    fn take_outcome(&mut self) -> Result<Option<ProgramOutcome>, String> {
        Ok(None)
    }
}

/// The command of a near end, with the door to the far end and the way out.
pub struct NearEnd {
    launcher: Launcher,
    door: Option<Door>,
    way_out: Option<WayOut>,
}

impl NearEnd {
    /// Makes the near end of a command that `launcher` starts. Guests come through `door`.
    pub const fn new(launcher: Launcher, door: Option<Door>, way_out: Option<WayOut>) -> Self {
        Self { launcher, door, way_out }
    }

    /// Opens the door and the way out at the second host, whose entry is `far`. Returns whether the way out
    /// is open, or as an error the sentence why it is not. `None` if none is wanted.
    ///
    /// # Errors
    /// Returns the system's error if the door cannot be opened.
    pub fn open(&mut self, far: HostEntry) -> io::Result<Option<Result<(), String>>> {
        let way_out = self.way_out.as_ref().map(|way_out| way_out.open(&far));
        if !matches!(way_out, Some(Ok(()))) {
            self.way_out = None;
        }
        if let Some(door) = &mut self.door {
            door.open(far)?;
        }
        Ok(way_out)
    }

    /// Waits for the shells that were there before the path, until the command of each is a server that
    /// waits for packets. Returns false if one was not after 5 s. So a client here finds the server there.
    pub fn await_far_end(&self) -> bool {
        self.door.as_ref().is_none_or(Door::await_guests)
    }

    /// Starts the command inside the first host, whose entry is `near`.
    ///
    /// # Errors
    /// Returns the system's error if the launcher has gone.
    pub fn start(&self, near: &HostEntry) -> io::Result<()> {
        self.launcher.start(near, self.way_out.is_some())
    }

    /// The process that runs the command.
    pub const fn launcher(&mut self) -> &mut Launcher {
        &mut self.launcher
    }
}

/// What a user of the way out has to know.
pub const PROXY: &str = "the way out to this machine's network is pasta, a proxy: beyond the path, TCP's round trips, ECN \
                         marks and packet sizes are pasta's";
/// What a user has to know where there is no way out.
pub const NO_PASTA: &str = "the command reaches nothing beyond the path, because pasta is not installed (Debian, Ubuntu: apt \
                            install passt); run the server at the far end";

impl fmt::Debug for NearEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearEnd").field("launcher", &self.launcher).finish_non_exhaustive()
    }
}
