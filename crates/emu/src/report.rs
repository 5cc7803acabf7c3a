//! The report about how the machine disturbed a run. `report/judgement.rs` decides which figures of the run
//! are valid.

mod judgement;

use core::fmt;

use talkpath_flow::lateness_ns;
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_measure::{LatenessRecord, MachineRecord, TurnRoundRecord};
use talkpath_units::{Histogram, counted};

use crate::stops::{FlowLateness, Stops};

pub(crate) use self::judgement::ENDPOINT_INVALID;

/// How the machine disturbed a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmuReport {
    /// The time from a packet's decided departure to its write. `None` if no packet departed.
    pub emulator: Option<LatenessRecord>,
    /// The time from the kernel's stamp of a packet to its arrival in the path. A packet arrives after its
    /// stamp if the path had already been decided up to a later time.
    pub backlog: Option<LatenessRecord>,
    /// The time from when a message of a clocked flow was due to its write to the socket. `None` if no flow
    /// has a clock.
    pub endpoints: Option<LatenessRecord>,
    /// The number of packets that entered the path.
    pub packets: u64,
    /// The number of packets for which a device had no room, in either direction.
    pub device_drops: u64,
    /// The number of packets that the emulator discarded because it had no memory for them.
    pub overruns: u64,
    /// The number of packets of TCP or UDP that belong to no flow. They did not cross the path.
    pub strays: u64,
    /// The datagrams that sockets dropped, without the sockets whose buffers the scenario sets.
    pub(crate) udp: UdpDrops,
    /// The share of one processor that the emulator's thread took, 0 to 1.
    pub cpu_share: f64,
    /// The reason why the emulator's thread had no real-time priority above the endpoints' threads. `None` if
    /// it had.
    pub not_real_time: Option<String>,
    /// The share of all processors' time that a hypervisor took from this machine, 0 to 1. `None` if the
    /// kernel does not report it.
    pub stolen_share: Option<f64>,
    /// The times in which the emulator's thread did not run although it had work.
    pub(crate) stops: Stops,
    /// How the lateness disturbed each flow.
    pub(crate) flows: Vec<FlowLateness>,
    /// The times from the arrival of messages to their echoes. Receivers that the scenario makes slow are
    /// left out.
    pub turn_rounds: Vec<TurnRoundRecord>,
}

/// Computes the percentiles of a lateness. Returns `None` if nothing was measured.
pub(super) fn lateness_record(lateness: &Histogram) -> Option<LatenessRecord> {
    lateness_ns(lateness).map(LatenessRecord::from_ns)
}

impl EmuReport {
    /// Returns the report in the form of the run's record.
    pub(super) fn record(&self) -> MachineRecord {
        MachineRecord {
            emulator_late: self.emulator,
            emulator_backlog: self.backlog,
            senders_late: self.endpoints,
            far_senders_late: None,
            packets: Some(self.packets),
            device_drops: Some(self.device_drops + self.overruns),
            socket_drops: self.udp.min_without_room(),
            checksum_errors: self.udp.checksum_errors,
            far_checksum_errors: None,
            emulator_cpu_share: Some(self.cpu_share),
            real_time: Some(self.not_real_time.is_none()),
            stolen_share: self.stolen_share,
            stops: Some(self.stops.count),
            longest_stop: Some(self.stops.longest),
            turn_rounds: self.turn_rounds.clone(),
            late_flows: Vec::new(),
        }
    }
}

impl fmt::Display for EmuReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = |figures: Option<LatenessRecord>| {
            figures.map_or_else(|| "none".to_owned(), |figures| figures.to_string())
        };
        write!(
            f,
            "emulator late {}, backlog {}, {}; senders late {}; {}, {} dropped by devices, {}, {} by sockets; \
             {:.0} % of a processor{}",
            figures(self.emulator),
            figures(self.backlog),
            counted(self.stops.count, "stop"),
            figures(self.endpoints),
            counted(self.packets, "packet"),
            self.device_drops,
            counted(self.overruns, "overrun"),
            self.udp.min_without_room().unwrap_or(0),
            self.cpu_share * 100.0,
            if self.not_real_time.is_some() { ", not real-time" } else { "" }
        )
    }
}
