//! A scenario cell, resolved: what an arena runs. Every default is written out, copies are numbered, links
//! have indices.

use serde::{Deserialize, Serialize};
use talkpath_config::TransportConfig;
use talkpath_path::{Change, LinkConfig};
use talkpath_units::{Bytes, Duration, Seed};

use crate::dscp::Dscp;
use crate::judging::Judging;
use crate::kernel::KernelProfile;
use crate::workload::WorkloadConfig;

/// One cell of a scenario file, ready to run with any seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file's `name`.
    pub name: String,
    /// Sending stops here; then the run drains.
    pub duration: Duration,
    /// The drain ends when all is delivered, or when nothing was for this long.
    pub drain: Duration,
    /// What was due before this is left out of the figures.
    pub warm_up: Duration,
    /// The seed of repetition 0.
    pub seed: Seed,
    /// How many repetitions.
    pub repeat: u64,
    /// How wrong the second host's clock is; `None` if both hosts read one clock.
    pub far_clock: Option<FarClock>,
    /// What carries the flows.
    pub ip: IpVersion,
    /// The kernel of both hosts, if the scenario names it. Its values are in the flows' transports already.
    pub kernel: Option<KernelProfile>,
    /// The program that ran on the path beside the flows (`talkpath shell`). `None` if only flows ran.
    pub program: Option<Program>,
    /// Whether it says what lies between the hosts. If not, `links` are a perfect path in the network's
    /// place: a live run needs no more, and the other arenas refuse it ([`Scenario::path_is_known`]).
    pub has_path: bool,
    /// Every one-way link; a route names them by index.
    pub links: Vec<NamedLink>,
    /// What changes on the links at stated times, in the order of the file.
    pub changes: Vec<Change>,
    /// Every flow: copies and both directions expanded, in file order.
    pub flows: Vec<Flow>,
}

impl Scenario {
    /// For an arena that makes the path itself.
    ///
    /// # Errors
    /// The scenario does not say what lies between the hosts.
    pub fn path_is_known(&self) -> Result<(), String> {
        match self.has_path {
            true => Ok(()),
            false => Err("the scenario has neither a `path` nor `link` tables, so it runs between live hosts alone: give it a \
                          path, as in path = \"home-adsl\", or --to HOST"
                .to_owned()),
        }
    }

    /// Checks that the scenario has only flows, for arenas that run no programs of the user.
    ///
    /// # Errors
    /// The scenario has a program.
    pub fn has_no_program(&self) -> Result<(), String> {
        match &self.program {
            None => Ok(()),
            Some(_) => Err("the scenario was run with a program of the user, which only `talkpath shell` runs: take out \
                            the key `program`, and give it a flow"
                .to_owned()),
        }
    }

    /// The smallest MTU of the links of `flow`, either way, as if over IPv4: what its packets fit in without
    /// being cut, less what an IPv6 header takes more than an IPv4 one.
    pub fn path_mtu(&self, flow: &Flow) -> Bytes {
        let links = flow.all_links();
        let mtus = links.filter_map(|link| self.links.get(link.0 as usize)).map(|link| link.config.mtu);
        mtus.min().unwrap_or(USUAL_MTU).saturating_sub(self.ip.extra_header())
    }
}

/// A program of the user that ran on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the program, or the words of its whole command.
    pub command: Vec<String>,
}

/// The version of IP that carries the flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// RFC 791.
    #[default]
    V4,
    /// RFC 8200.
    V6,
}

impl IpVersion {
    /// Bytes that its header has more than an IPv4 header: 20 of IPv6's 40 (RFC 8200 §3).
    pub const fn extra_header(self) -> Bytes {
        match self {
            Self::V4 => Bytes::ZERO,
            Self::V6 => Bytes::new(20),
        }
    }

    /// The smallest MTU that a link may have (RFC 791 §3.2, RFC 8200 §5).
    pub const fn min_mtu(self) -> Bytes {
        match self {
            Self::V4 => Bytes::new(68),
            Self::V6 => Bytes::new(1280),
        }
    }
}

/// The MTU of a path without the key: Ethernet's (IEEE 802.3).
pub const USUAL_MTU: Bytes = Bytes::new(1500);

/// The second host's clock against the first's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarClock {
    /// How far it is ahead at the run's beginning.
    pub offset: Duration,
    /// How much faster it runs, parts in 10^9.
    pub skew_ppb: i64,
    /// By how much it jumps, ahead and back in turns.
    pub jump: Duration,
    /// The time between two jumps, and before the first; `None` if it never jumps.
    pub jump_every: Option<Duration>,
}

/// Index into [`Scenario::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(pub u32);

/// A link and its name in the scenario: `up`, `down`, or the key of `[link.NAME]` with `{n}` filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLink {
    /// The name that its random streams, its series and its summary carry.
    pub name: String,
    /// What it is made of.
    pub config: LinkConfig,
}

/// One flow: a workload over a transport along a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// `NAME`, `NAME-1`..`NAME-n` for copies; `-up` and `-down` follow for `direction = "both"`.
    pub name: String,
    /// The file's flow name, shared by its copies.
    pub group: String,
    /// Which protocol carries it.
    pub transport: TransportConfig,
    /// The name as the user wrote it: `udp`, `tcp`, `tcp-nodelay`.
    pub transport_name: String,
    /// Which of the keys `cc`, `sack`, `tlp` and `pacing` the user wrote, instead of leaving them to `stack`:
    /// an arena without such a mechanism refuses a key that the user wrote, and only warns if a default names
    /// the mechanism.
    pub asked_for: Vec<&'static str>,
    /// What the application sends.
    pub workload: WorkloadConfig,
    /// What it is judged by.
    pub judging: Judging,
    /// Whether the far application sends every message back, and how it writes.
    pub echo: Option<EchoWrite>,
    /// Which way messages go on a two-host path (routes are resolved already; live arenas need it).
    pub direction: Direction,
    /// The connection is asked for at a moment drawn uniformly from `start.0..=start.1` by the flow's own
    /// stream.
    pub start: (Duration, Duration),
    /// When the clock of its workload starts, if that has one.
    pub due: Due,
    /// Links from the sender to the receiver.
    pub route: Vec<LinkIndex>,
    /// Links back, for acknowledgements and echoes.
    pub return_route: Vec<LinkIndex>,
    /// The other path of a connection that may use several; `None` if it has only one.
    pub second_path: Option<SecondPath>,
    /// A uniform host delay in `0..send_jitter` before each packet of the sender, in order.
    pub send_jitter: Duration,
    /// How long at most either application takes to wake up when something comes, uniform; the simulator's
    /// hosts alone.
    pub wake_up: Duration,
    /// How late at most the sender's application is to its own clock, uniform; the simulator's hosts alone.
    pub clock_jitter: Duration,
    /// The DSCP of its packets, both ways, over real sockets; `None` leaves the system's.
    pub dscp: Option<Dscp>,
    /// How the receiving application reads.
    pub receiver: Receiver,
}

impl Flow {
    /// The links of all its routes.
    pub fn all_links(&self) -> impl Iterator<Item = &LinkIndex> {
        let second = self.second_path.iter().flat_map(SecondPath::links);
        self.route.iter().chain(&self.return_route).chain(second)
    }

    /// What its transport draws from in a run of this seed: the same in every arena.
    pub fn transport_seed(&self, run: Seed) -> Seed {
        Seed::new(run.stream(&format!("flow/{}/transport", self.name)).bits())
    }

    /// What its workload draws from in a run of this seed: the same in every arena and over every transport.
    pub fn workload_seed(&self, run: Seed) -> Seed {
        Seed::new(run.stream(&format!("flow/{}/workload", self.name)).bits())
    }
}

/// The path of a flow's second address: that of the host which opens the connection, its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondPath {
    /// Links from the sender's second address to the receiver.
    pub route: Vec<LinkIndex>,
    /// Links back.
    pub return_route: Vec<LinkIndex>,
}

impl SecondPath {
    /// The links of both ways.
    pub fn links(&self) -> impl Iterator<Item = &LinkIndex> {
        self.route.iter().chain(&self.return_route)
    }
}

/// The receiving host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// Time to work through one message before the next read; zero reads all at once.
    pub service: Duration,
    /// Whether that is the time of one read, which takes all that a stream's socket holds, instead of one
    /// message.
    pub per_read: bool,
    /// Room of the receiving socket; `None` takes the transport's own.
    pub socket_buffer: Option<Bytes>,
}

/// Which way a flow's messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first host to the second.
    Up,
    /// From the second host to the first.
    Down,
}

/// When the clock of a workload starts. Others have none: their messages are due when there is room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    /// At the flow's start: what is due before the connection is open is never sent.
    #[default]
    Start,
    /// When the connection is open.
    Opening,
}

/// How an echoing application writes back what one read returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoWrite {
    /// One write for each message.
    PerMessage,
    /// One write for all that the read returned.
    PerRead,
}

/// Room that a message of `bulk` waits for, if more remains. Chosen: less than one full segment of an
/// Ethernet path (1460 B), so that one acknowledged segment is enough, and at most the smallest send buffer
/// that a scenario may set.
pub const MIN_BULK_ROOM: Bytes = Bytes::new(1024);

/// The largest message of a greedy workload (docs/reference/scenario.md). Chosen: what applications write at
/// once.
pub const LARGEST_BULK_MESSAGE: Bytes = Bytes::new(64 * 1024);
