//! The scenario that an arena runs: one cell of a scenario file.
//!
//! Every default is written out, copies are numbered, and routes are indices of links. Begin to read with
//! [`Scenario`] and [`Flow`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talkpath_config::TransportConfig;
use talkpath_path::{Change, Dscp, LinkConfig};
use talkpath_units::{Bytes, Duration, Seed};

use crate::judging::Judging;
use crate::kernel::KernelProfile;
use crate::program::Program;
use crate::workload::WorkloadConfig;

/// One cell of a scenario file. It can run with any seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file's `name`.
    pub name: String,
    /// The time for which flows send. The run then drains: it waits for the messages that are still on their
    /// way.
    pub duration: Duration,
    /// The drain ends when all messages are delivered, or when no message was delivered for this time.
    pub drain: Duration,
    /// Messages that are due before this time are left out of the figures.
    pub warm_up: Duration,
    /// The seed of repetition 0.
    pub seed: Seed,
    /// The number of repetitions.
    pub repeat: u64,
    /// The error of the second host's clock. `None` if both hosts read one clock.
    pub far_clock: Option<FarClock>,
    /// The version of IP that carries the flows.
    pub ip: IpVersion,
    /// The kernel of both hosts, if the scenario names one. The transports of the flows already have its
    /// values.
    pub kernel: Option<KernelProfile>,
    /// The program that runs on the path beside the flows. `None` if only flows run.
    pub program: Option<Program>,
    /// Whether the scenario has a `path` or `link` tables. Without them `links` are a perfect path, which
    /// stands for the network of a live run. The other arenas refuse such a scenario
    /// ([`Scenario::check_path_is_known`]).
    pub has_path: bool,
    /// All links. A route has their indices.
    pub links: Vec<NamedLink>,
    /// What changes on the links at stated times, in the order of the file.
    pub changes: Vec<Change>,
    /// Where each of `changes` comes from.
    pub change_origins: Vec<ChangeOrigin>,
    /// All flows, with a flow for each copy and each direction, in the order of the file.
    pub flows: Vec<Flow>,
}

/// The `[[change]]` table that a change comes from. A table has a change for each link, and for each row of
/// its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeOrigin {
    /// The number of the table, from 1.
    pub table: u32,
    /// The table's `name`. Tables with one name are changes of one kind.
    pub name: Option<Arc<str>>,
    /// Whether the values come from a file.
    pub is_of_file: bool,
}

impl Scenario {
    /// Checks that the scenario has a path, for arenas that make the path themselves.
    ///
    /// # Errors
    /// Returns a message if the scenario has neither a `path` nor `link` tables.
    pub fn check_path_is_known(&self) -> Result<(), String> {
        match self.has_path {
            true => Ok(()),
            false => Err("the scenario has neither a `path` nor `link` tables, so it runs between live hosts alone: give it a \
                          path, as in path = \"home-adsl\", or --to HOST"
                .to_owned()),
        }
    }

    /// Checks that the scenario has only flows, for commands and arenas that run no programs of the user.
    ///
    /// # Errors
    /// Returns a message that names the program, if the scenario has one.
    pub fn has_no_program(&self) -> Result<(), String> {
        match &self.program {
            None => Ok(()),
            Some(program) if program.is_of_shell => {
                Err("the scenario was run with a program of the user, which only `talkpath shell` runs: take out \
                     the key `program`, and give it a flow"
                    .to_owned())
            }
            Some(program) => Err(format!(
                "the scenario runs a program of the user, {}. Only `talkpath run --allow-program` and `talkpath \
                 study run --allow-program` run it, in --arena emu",
                program.lines()
            )),
        }
    }

    /// Returns the smallest MTU of all links of `flow`, less the bytes that an IPv6 header has more than an
    /// IPv4 header. So the result is used as if the flow ran over IPv4.
    pub fn path_mtu(&self, flow: &Flow) -> Bytes {
        let links = flow.all_links();
        let mtus = links.filter_map(|link| self.links.get(link.0 as usize)).map(|link| link.config.mtu);
        mtus.min().unwrap_or(USUAL_MTU).saturating_sub(self.ip.extra_header())
    }
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
    /// Returns the number of bytes that the header has more than an IPv4 header. IPv6 has 40 B, 20 more (RFC
    /// 8200 §3).
    pub const fn extra_header(self) -> Bytes {
        match self {
            Self::V4 => Bytes::ZERO,
            Self::V6 => Bytes::new(20),
        }
    }

    /// Returns the smallest MTU that a link may have (RFC 791 §3.2, RFC 8200 §5).
    pub const fn min_mtu(self) -> Bytes {
        match self {
            Self::V4 => Bytes::new(68),
            Self::V6 => Bytes::new(1280),
        }
    }
}

/// The default MTU of a link, which is that of Ethernet (IEEE 802.3).
pub const USUAL_MTU: Bytes = Bytes::new(1500);

/// The error of the second host's clock, compared with the first host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarClock {
    /// The time by which the clock is ahead at the beginning of the run.
    pub offset: Duration,
    /// The excess of the clock's frequency, in parts per 10^9.
    pub skew_ppb: i64,
    /// The size of the clock's jumps, which go ahead and back in turns.
    pub jump: Duration,
    /// The time between two jumps, and before the first jump. `None` if the clock never jumps.
    pub jump_every: Option<Duration>,
}

/// An index into [`Scenario::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(pub u32);

/// A link with its name: `up`, `down`, or the name of a `[link.NAME]` with a number in place of `{n}`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLink {
    /// The name in random streams, series and summaries.
    pub name: String,
    /// The parts of the link.
    pub config: LinkConfig,
}

/// One flow: a workload over a transport along a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// `NAME`, or `NAME-1` to `NAME-n` for copies. With `direction = "both"`, `-up` or `-down` follows.
    pub name: String,
    /// The name of the flow in the file, which all copies share.
    pub group: String,
    /// The transport with its options.
    pub transport: TransportConfig,
    /// The name of the transport in tables: `udp`, `tcp`, `tcp-nodelay`.
    pub transport_name: String,
    /// The keys among `cc`, `sack`, `tlp` and `pacing` that the file has. An arena that does not have the
    /// mechanism refuses a key of the file. If only the default asks for the mechanism, the arena warns.
    pub asked_for: Vec<&'static str>,
    /// The messages that the application sends.
    pub workload: WorkloadConfig,
    /// The figure by which the flow is judged.
    pub judging: Judging,
    /// The way in which the receiving application sends every message back. `None` if it sends nothing back.
    pub echo: Option<EchoWrite>,
    /// The direction of the messages. The live arena needs it, because it has no routes.
    pub direction: Direction,
    /// The earliest and the latest start of the flow. It opens its connection at a random time in between,
    /// which is uniform.
    pub start: (Duration, Duration),
    /// The start of the workload's clock, if the workload is clocked.
    pub due: Due,
    /// The links from the sender to the receiver.
    pub route: Vec<LinkIndex>,
    /// The links from the receiver to the sender, for acknowledgements and echoes.
    pub return_route: Vec<LinkIndex>,
    /// The second path of a multipath connection. `None` if the connection has one path.
    pub second_path: Option<SecondPath>,
    /// The largest random delay of each packet at the sender. The delay is uniform and does not reorder
    /// packets.
    pub send_jitter: Duration,
    /// The largest time that an application takes to wake up when a packet arrives. It is uniform. Only the
    /// simulator uses it.
    pub wake_up: Duration,
    /// The largest delay of the sending application behind its own clock. It is uniform. Only the simulator
    /// uses it.
    pub clock_jitter: Duration,
    /// The DSCP of the packets in both directions. `None` keeps that of the system over real sockets, and is
    /// CS0 in the simulator.
    pub dscp: Option<Dscp>,
    /// The speed and the buffer of the receiving application.
    pub receiver: Receiver,
}

impl Flow {
    /// Makes a flow from the first host to the second, without an echo. The flow and the clock of its
    /// workload start with the run, and nothing about it is random. Its routes have no links.
    pub fn new(
        name: &str,
        transport_name: &str,
        transport: TransportConfig,
        workload: WorkloadConfig,
    ) -> Self {
        Self {
            name: name.to_owned(),
            group: name.to_owned(),
            transport,
            transport_name: transport_name.to_owned(),
            asked_for: Vec::new(),
            workload,
            judging: Judging::Unjudged,
            echo: None,
            direction: Direction::Up,
            start: (Duration::ZERO, Duration::ZERO),
            due: Due::Start,
            route: Vec::new(),
            return_route: Vec::new(),
            second_path: None,
            send_jitter: Duration::ZERO,
            wake_up: Duration::ZERO,
            clock_jitter: Duration::ZERO,
            dscp: None,
            receiver: Receiver::default(),
        }
    }

    /// Returns the links of all routes.
    pub fn all_links(&self) -> impl Iterator<Item = &LinkIndex> {
        let second = self.second_path.iter().flat_map(SecondPath::links);
        self.route.iter().chain(&self.return_route).chain(second)
    }

    /// Returns the seed of the transport in a run with the seed `run`. It is the same in every arena.
    pub fn transport_seed(&self, run: Seed) -> Seed {
        Seed::new(run.stream(&format!("flow/{}/transport", self.name)).bits())
    }

    /// Returns the seed of the workload in a run with the seed `run`. It is the same in every arena and over
    /// every transport.
    pub fn workload_seed(&self, run: Seed) -> Seed {
        Seed::new(run.stream(&format!("flow/{}/workload", self.name)).bits())
    }
}

/// The second path of a multipath connection. It begins at a second address of the sender, which opens the
/// connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondPath {
    /// The links from the sender's second address to the receiver.
    pub route: Vec<LinkIndex>,
    /// The links from the receiver to that address.
    pub return_route: Vec<LinkIndex>,
}

impl SecondPath {
    /// Returns the links of both directions.
    pub fn links(&self) -> impl Iterator<Item = &LinkIndex> {
        self.route.iter().chain(&self.return_route)
    }
}

/// The receiving application and its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// The time that the application works on one message before it reads the next one. With zero it reads at
    /// once.
    pub service: Duration,
    /// Whether `service` is the time for one read and not for one message. A read takes everything that a
    /// stream's socket holds.
    pub per_read: bool,
    /// The size of the receiving socket's buffer. `None` takes that of the transport.
    pub socket_buffer: Option<Bytes>,
}

/// The direction of a flow's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first host to the second.
    Up,
    /// From the second host to the first.
    Down,
}

/// The start of a clocked workload. The messages of other workloads are due when the transport has room for
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    /// The clock starts with the flow. Messages that are due before the connection is open are never sent.
    #[default]
    Start,
    /// The clock starts when the connection is open.
    Opening,
}

/// The way in which an application writes the echoes of the messages that one read returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoWrite {
    /// One write for each message.
    PerMessage,
    /// One write for all messages.
    PerRead,
}

/// The room in the transport for which a message of `bulk` waits. We chose 1024 B because it is less than a
/// full segment of an Ethernet path (1460 B), so one acknowledged segment is enough. It is also the smallest
/// send buffer that a scenario may set.
pub const MIN_BULK_ROOM: Bytes = Bytes::new(1024);

/// The largest message of a greedy workload (docs/reference/scenario.md). We chose 64 KiB, because many
/// applications write that much at once.
pub const LARGEST_BULK_MESSAGE: Bytes = Bytes::new(64 * 1024);
