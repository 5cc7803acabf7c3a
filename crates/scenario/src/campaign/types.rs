//! The types of a campaign.

use jiff::civil::DateTime;
use talkpath_units::Duration;

use crate::compare::ComparedWorkload;
use crate::store_command::StoreCommand;

/// A campaign file without mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// The name of the campaign's directory and the title of its report.
    pub name: String,
    /// The seed of all random numbers of the campaign.
    pub seed: u64,
    /// The hosts, in the order of the file.
    pub hosts: Vec<Host>,
    /// The measures, in the order of the file.
    pub measures: Vec<Measure>,
    /// The times of all measurements.
    pub schedule: Schedule,
    /// The command that copies records to a store. `None` keeps them in the campaign's directory alone.
    pub store_command: Option<StoreCommand>,
}

/// A machine to measure from or to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name of the host in the file, in tables and in file names.
    pub name: String,
    /// The address of the host's server, as `HOST[:PORT]`.
    pub address: Option<String>,
    /// The file on the coordinator that holds the key of the host's server.
    pub key_file: Option<String>,
    /// The destination that `ssh` connects to.
    pub ssh: Option<String>,
    /// Whether the host is the coordinator itself.
    pub local: bool,
    /// The words to put before each command on the host, for example `ip netns exec lab`.
    pub via: Vec<String>,
    /// The name or path of the program `talkpath` on the host.
    pub program: String,
    /// Whether each measurement starts a server on the host, and stops it.
    pub starts_server: bool,
    /// The address on which such a server listens.
    pub bind: Option<String>,
    /// The largest number of concurrent measurements of the host.
    pub at_once: u64,
    /// The file that describes the emulated path to the host.
    pub emulated: Option<String>,
}

/// A scenario to run, and the pairs of hosts to run it between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The name of the measure in the file.
    pub name: String,
    /// The pairs of hosts that are measured.
    pub pairs: Vec<HostPair>,
    /// The scenario that each measurement runs.
    pub scenario: MeasureScenario,
    /// The scenario's `drain`. `None` keeps the value of the scenario file, or is 5 s for a comparison.
    pub drain: Option<Duration>,
    /// The rounds of one measurement, which are the scenario's `repeat`. `None` keeps the value of the
    /// scenario file, or is 3 for a comparison.
    pub rounds: Option<u64>,
    /// What the figures must hold over all measurements of a pair, as the values of `--require`.
    pub require: Vec<String>,
}

/// The scenario that a measurement runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasureScenario {
    /// The scenario of this file.
    File(String),
    /// One workload over each of several transports, as `talkpath compare` runs it.
    Comparison {
        /// The data that the compared flow carries.
        workload: ComparedWorkload,
        /// The transports, one after the other.
        transports: Vec<String>,
        /// The time for which each transport sends in a round.
        duration: Duration,
    },
}

/// Two different hosts, as indices into [`Campaign::hosts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPair {
    /// The host that starts the measurement.
    pub near: usize,
    /// The host that answers.
    pub far: usize,
}

/// The times of a campaign's measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The time zone of the campaign's days, by its name in the IANA database.
    pub zone: String,
    /// The beginning of the first day, as clocks in that zone show it. `None` begins when the plan is made.
    pub start: Option<DateTime>,
    /// The time between two measurements of one pair.
    pub every: Duration,
    /// The number of days.
    pub days: u64,
    /// The length of a day. Tests use days that are shorter than 24 h.
    pub day: Duration,
    /// The bound of a random delay after each planned time, so that not all pairs start together.
    pub start_within: Duration,
    /// The time after the planned time within which a measurement may begin.
    pub window: Duration,
    /// The wait before a failed measurement is tried again for the first time.
    pub retry: Duration,
}

impl Campaign {
    /// Returns the host with the given name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}
