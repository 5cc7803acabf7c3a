//! A run as the client describes it to the server: the wire form of a scenario's flows, and its bounds.

mod dccp;

use serde::{Deserialize, Serialize};
use talkpath_scenario::{Codec, Direction, EchoWrite, Flow, Scenario, WorkloadConfig};
use talkpath_transport::{CongestionControlKind, NagleKind, TcpConfig, TransportConfig};
use talkpath_units::{Bytes, Duration, Instant, Rate, Seed};

pub(crate) use dccp::DccpSpec;

use crate::file::{FileSink, FileSpec};
use crate::wire::{FILE_HEADER, LARGEST_DATAGRAM};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionSpec {
    /// In the scenario's order.
    pub(crate) flows: Vec<FlowSpec>,
    /// Figures count from here, ns into the run.
    pub(crate) warm_up_ns: u64,
    /// Sending stops here.
    pub(crate) duration_ns: u64,
    /// The longest wait for deliveries after that.
    pub(crate) drain_ns: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlowSpec {
    /// Which socket.
    pub(crate) transport: TransportSpec,
    /// What is sent.
    pub(crate) workload: WorkloadSpec,
    /// Whether the receiver sends each message back: `Some(true)` with one write a read, `Some(false)` one a message.
    pub(crate) echo_per_read: Option<bool>,
    /// Whether the client sends.
    pub(crate) is_up: bool,
    /// When the connection opens, ns into the run.
    pub(crate) start_ns: u64,
    /// What a `file` workload sends.
    pub(crate) file: Option<FileSpec>,
}

/// A socket and what is set on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TransportSpec {
    /// UDP.
    Udp {
        /// SO_RCVBUF, where the scenario set it.
        receive_buffer: Option<u64>,
    },
    /// TCP.
    Tcp {
        /// TCP_NODELAY.
        nodelay: bool,
        /// TCP_CONGESTION.
        cc: String,
        /// TCP_MAXSEG.
        mss: Option<u32>,
        /// SO_SNDBUF of the sender.
        send_buffer: Option<u64>,
        /// SO_RCVBUF of the receiver.
        receive_buffer: Option<u64>,
    },
    /// Our own DCCP, in UDP datagrams.
    Dccp(DccpSpec),
}

/// A workload: as `WorkloadConfig`, in ns, B and bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkloadSpec {
    Voice { ptime_ns: u64, size: u64 },
    Cbr { rate_bps: u64, size: u64 },
    Bulk { bytes: Option<u64> },
    Burst { count: u64, size: u64, repeat: u64, gap_ns: u64 },
    File { bytes: u64, size: u64, header: u64 },
}

impl SessionSpec {
    /// What the server must know of `scenario`, start times drawn from `seed`; `mtu` is the path's, `None` that of each flow's
    /// links.
    ///
    /// # Errors
    /// What this arena cannot do, in words.
    pub(crate) fn new(scenario: &Scenario, seed: Seed, mtu: Option<Bytes>) -> Result<Self, String> {
        let mtu = |flow| mtu.unwrap_or_else(|| scenario.path_mtu(flow));
        let flows = scenario
            .flows
            .iter()
            .map(|flow| FlowSpec::new(flow, seed, mtu(flow)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            flows,
            warm_up_ns: scenario.warm_up.as_nanos(),
            duration_ns: scenario.duration.as_nanos(),
            drain_ns: scenario.drain.as_nanos(),
        })
    }

    /// Sending stops here.
    pub(crate) fn stop(&self) -> Instant {
        Instant::from_nanos(self.duration_ns)
    }

    /// Messages that the clocked and bounded flows send at most, both directions of an echo counted.
    pub(crate) fn message_bound(&self) -> u64 {
        self.flows.iter().map(|flow| flow.message_bound(self.duration_ns)).fold(0, u64::saturating_add)
    }

    /// Payload bits a second that the clocked flows send, both directions of an echo counted.
    pub(crate) fn clocked_rate(&self) -> u64 {
        self.flows.iter().map(FlowSpec::clocked_rate).fold(0, u64::saturating_add)
    }
}

impl FlowSpec {
    fn new(flow: &Flow, seed: Seed, mtu: Bytes) -> Result<Self, String> {
        let from = flow.start.0;
        // A stream of its own, so that no other flow's start moves (ARCHITECTURE.md, invariant 6).
        let start = seed.stream(&format!("flow/{}/start", flow.name)).span(from, flow.start.1);
        let file = match &flow.workload {
            WorkloadConfig::File { source, bytes, .. } => Some(
                FileSpec::read(source, bytes.get()).map_err(|why| format!("flow {}: {why}", flow.name))?,
            ),
            _ => None,
        };
        let spec = Self {
            transport: transport(flow, mtu),
            workload: WorkloadSpec::new(&flow.workload),
            echo_per_read: flow.echo.map(|write| write == EchoWrite::PerRead),
            is_up: flow.direction == Direction::Up,
            start_ns: start.as_nanos(),
            file,
        };
        spec.check().map_err(|why| format!("flow {}: {why}", flow.name))?;
        Ok(spec)
    }

    /// The same for the end that serves: who has not shown its address costs it no state (RFC 4340 §8.1.4).
    pub(crate) fn served(&self) -> Self {
        let mut spec = self.clone();
        if let TransportSpec::Dccp(dccp) = &mut spec.transport {
            dccp.keep_no_state();
        }
        spec
    }

    /// What neither end can do, in words; the server checks it again, since anybody may write a session.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_udp = matches!(self.transport, TransportSpec::Udp { .. });
        let size = match self.workload {
            WorkloadSpec::Voice { ptime_ns: 0, .. } | WorkloadSpec::Cbr { rate_bps: 0, .. } => {
                return Err("a clocked workload needs a rate above zero".to_owned());
            }
            WorkloadSpec::Voice { size, .. }
            | WorkloadSpec::Cbr { size, .. }
            | WorkloadSpec::Burst { size, .. } => size,
            WorkloadSpec::Bulk { bytes: None } if is_udp => {
                return Err("bulk over udp needs `bytes`: nothing would ever hold it back".to_owned());
            }
            WorkloadSpec::Bulk { .. } | WorkloadSpec::File { .. } if self.echo_per_read.is_some() => {
                return Err("bulk and file have no echo: use voice, cbr or burst".to_owned());
            }
            WorkloadSpec::Bulk { .. } => 1,
            WorkloadSpec::File { bytes, size, header } => {
                if bytes == 0 || size <= header || header != if self.is_stream() { 0 } else { FILE_HEADER } {
                    return Err("a file's messages must carry something of it".to_owned());
                }
                size
            }
        };
        match (&self.file, matches!(self.workload, WorkloadSpec::File { .. })) {
            (Some(file), true) => file.check()?,
            (None, false) => {}
            _ => return Err("a file workload has a file, and no other has".to_owned()),
        }
        let largest = match &self.transport {
            TransportSpec::Udp { .. } => LARGEST_DATAGRAM,
            TransportSpec::Tcp { .. } => LARGEST_STREAM_MESSAGE,
            TransportSpec::Dccp(spec) => {
                spec.check()?;
                spec.largest_message()
            }
        };
        if size == 0 || size > largest {
            return Err(format!("a message of {size} B does not fit: at least 1 B, at most {largest} B"));
        }
        Ok(())
    }

    /// The workload's machine.
    pub(crate) fn workload(&self) -> WorkloadConfig {
        match self.workload {
            WorkloadSpec::Voice { ptime_ns, size } => WorkloadConfig::Voice {
                codec: Codec::G711,
                ptime: Duration::from_nanos(ptime_ns),
                size: Bytes::new(size),
            },
            WorkloadSpec::Cbr { rate_bps, size } => {
                WorkloadConfig::Cbr { rate: Rate::from_bps(rate_bps), size: Bytes::new(size) }
            }
            WorkloadSpec::Bulk { bytes } => WorkloadConfig::Bulk { bytes: bytes.map(Bytes::new) },
            WorkloadSpec::File { bytes, size, header } => WorkloadConfig::File {
                source: String::new(),
                bytes: Bytes::new(bytes),
                size: Bytes::new(size),
                header: Bytes::new(header),
            },
            WorkloadSpec::Burst { count, size, repeat, gap_ns } => WorkloadConfig::Burst {
                count,
                size: Bytes::new(size),
                repeat,
                gap: Duration::from_nanos(gap_ns),
            },
        }
    }

    /// Whether messages come on a clock.
    pub(crate) const fn is_clocked(&self) -> bool {
        matches!(self.workload, WorkloadSpec::Voice { .. } | WorkloadSpec::Cbr { .. })
    }

    /// TCP_CONGESTION, where the transport has one.
    pub(crate) fn cc(&self) -> Option<&str> {
        match &self.transport {
            TransportSpec::Udp { .. } | TransportSpec::Dccp(_) => None,
            TransportSpec::Tcp { cc, .. } => Some(cc),
        }
    }

    /// Whether the transport is a byte stream.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self.transport, TransportSpec::Tcp { .. })
    }

    /// Whether the transport is our own DCCP.
    pub(crate) const fn is_dccp(&self) -> bool {
        matches!(self.transport, TransportSpec::Dccp(_))
    }

    /// Payload bytes of every message; `None` where they differ.
    pub(crate) const fn message_size(&self) -> Option<u64> {
        match self.workload {
            WorkloadSpec::Voice { size, .. }
            | WorkloadSpec::Cbr { size, .. }
            | WorkloadSpec::Burst { size, .. } => Some(size),
            WorkloadSpec::Bulk { .. } | WorkloadSpec::File { .. } => None,
        }
    }

    /// Payload bytes of datagram `seq`; `None` where the workload has no such message.
    pub(crate) fn datagram_size(&self, seq: u64) -> Option<u64> {
        let largest = match self.workload {
            WorkloadSpec::File { size, .. } => size,
            WorkloadSpec::Bulk { bytes: None } => return Some(self.largest_datagram()),
            WorkloadSpec::Bulk { .. } => self.largest_datagram(),
            WorkloadSpec::Voice { size, .. }
            | WorkloadSpec::Cbr { size, .. }
            | WorkloadSpec::Burst { size, .. } => return Some(size),
        };
        let left = self.transfer_size()?.checked_sub(seq.checked_mul(largest)?)?;
        (left > 0).then_some(left.min(largest))
    }

    /// The largest message of a greedy workload over a datagram transport: what a datagram, or a packet, holds.
    fn largest_datagram(&self) -> u64 {
        match &self.transport {
            TransportSpec::Dccp(spec) => spec.largest_message().min(LARGEST_GREEDY_MESSAGE),
            TransportSpec::Udp { .. } | TransportSpec::Tcp { .. } => LARGEST_DATAGRAM,
        }
    }

    /// File bytes in each datagram but the last, for a file over UDP.
    pub(crate) const fn file_piece(&self) -> Option<u64> {
        match (self.workload, self.is_stream()) {
            (WorkloadSpec::File { size, header, .. }, false) => Some(size - header),
            _ => None,
        }
    }

    /// What its receiver puts a file together with; `keeps` where the bytes are wanted after the check.
    pub(crate) fn file_sink(&self, keeps: bool) -> Option<FileSink> {
        match (self.workload, &self.file) {
            (WorkloadSpec::File { bytes, .. }, Some(file)) => {
                Some(FileSink::new(file, bytes, self.file_piece(), keeps))
            }
            _ => None,
        }
    }

    /// Bytes of memory that its receiver needs for a file.
    pub(crate) const fn held_bytes(&self, keeps: bool) -> u64 {
        match self.workload {
            WorkloadSpec::File { bytes, .. } if keeps || !self.is_stream() => bytes,
            _ => 0,
        }
    }

    /// Payload bytes of a transfer, where it has an end.
    fn transfer_size(&self) -> Option<u64> {
        self.workload().transfer_size().map(Bytes::get)
    }

    /// Messages that this flow sends at most within `duration_ns`; zero for a stream's bulk or file, whose messages are as
    /// large as fits, and for bulk without an end.
    pub(crate) fn message_bound(&self, duration_ns: u64) -> u64 {
        let duration = u128::from(duration_ns);
        let forward = match self.workload {
            WorkloadSpec::Voice { ptime_ns, .. } => duration / u128::from(ptime_ns.max(1)) + 1,
            WorkloadSpec::Cbr { rate_bps, size } => {
                duration * u128::from(rate_bps) / (8_000_000_000 * u128::from(size.max(1))) + 1
            }
            WorkloadSpec::Burst { count, repeat, .. } => u128::from(count) * u128::from(repeat.max(1)),
            WorkloadSpec::Bulk { .. } | WorkloadSpec::File { .. } if self.is_stream() => 0,
            WorkloadSpec::Bulk { bytes } => u128::from(bytes.unwrap_or(0).div_ceil(self.largest_datagram())),
            WorkloadSpec::File { bytes, .. } => {
                u128::from(bytes.div_ceil(self.file_piece().unwrap_or(1).max(1)))
            }
        };
        u64::try_from(forward).unwrap_or(u64::MAX)
    }

    fn clocked_rate(&self) -> u64 {
        let rate = match self.workload {
            WorkloadSpec::Voice { ptime_ns, size } => {
                u128::from(size) * 8_000_000_000 / u128::from(ptime_ns.max(1))
            }
            WorkloadSpec::Cbr { rate_bps, .. } => u128::from(rate_bps),
            WorkloadSpec::Bulk { .. } | WorkloadSpec::Burst { .. } | WorkloadSpec::File { .. } => 0,
        };
        let directions = if self.echo_per_read.is_some() { 2 } else { 1 };
        u64::try_from(rate * directions).unwrap_or(u64::MAX)
    }
}

impl WorkloadSpec {
    fn new(config: &WorkloadConfig) -> Self {
        match *config {
            WorkloadConfig::Voice { ptime, size, .. } => {
                Self::Voice { ptime_ns: ptime.as_nanos(), size: size.get() }
            }
            WorkloadConfig::Cbr { rate, size } => Self::Cbr { rate_bps: rate.as_bps(), size: size.get() },
            WorkloadConfig::Bulk { bytes } => Self::Bulk { bytes: bytes.map(Bytes::get) },
            WorkloadConfig::File { bytes, size, header, .. } => {
                Self::File { bytes: bytes.get(), size: size.get(), header: header.get() }
            }
            WorkloadConfig::Burst { count, size, repeat, gap } => {
                Self::Burst { count, size: size.get(), repeat, gap_ns: gap.as_nanos() }
            }
        }
    }
}

fn transport(flow: &Flow, mtu: Bytes) -> TransportSpec {
    let receive_buffer = flow.receiver.socket_buffer.map(Bytes::get);
    match &flow.transport {
        // A prompt reader's socket has room for the machine's own delays.
        TransportConfig::Udp(config) => TransportSpec::Udp {
            receive_buffer: receive_buffer
                .or((!flow.receiver.service.is_zero()).then_some(config.socket_buffer.get())),
        },
        TransportConfig::Dccp(config) => {
            TransportSpec::Dccp(DccpSpec::new(config, flow.receiver.socket_buffer, mtu))
        }
        TransportConfig::Tcp(config) => TransportSpec::Tcp {
            nodelay: config.nagle == NagleKind::Off,
            cc: kernel_cc(config).to_owned(),
            mss: config.mss.map(|mss| u32::try_from(mss.get()).unwrap_or(u32::MAX)),
            send_buffer: config.send_buffer.map(Bytes::get),
            receive_buffer,
        },
    }
}

/// The kernel's name for the congestion control that `config` asks for; its `reno` recovers as NewReno does (RFC 6582).
pub(crate) const fn kernel_cc(config: &TcpConfig) -> &'static str {
    match config.cc {
        // No kernel has it; the socket option says so.
        Some(CongestionControlKind::Tahoe) => "tahoe",
        Some(CongestionControlKind::Reno | CongestionControlKind::NewReno) => "reno",
        Some(CongestionControlKind::Cubic) | None => "cubic",
        Some(CongestionControlKind::Bbr) => "bbr",
    }
}

/// The largest message of a greedy workload: 64 KiB (docs/scenario.md).
const LARGEST_GREEDY_MESSAGE: u64 = 64 * 1024;
/// The largest message of a stream flow (chosen: far above what any codec or record writes at once).
const LARGEST_STREAM_MESSAGE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(transport: TransportSpec, workload: WorkloadSpec) -> FlowSpec {
        FlowSpec { transport, workload, echo_per_read: None, is_up: true, start_ns: 0, file: None }
    }

    #[test]
    fn a_minute_of_voice_is_bounded_by_its_clock() {
        let udp = TransportSpec::Udp { receive_buffer: None };
        let voice = flow(udp, WorkloadSpec::Voice { ptime_ns: 20_000_000, size: 160 });
        assert_eq!(voice.message_bound(60_000_000_000), 3001);
        assert_eq!(voice.clocked_rate(), 64_000);
        assert_eq!(FlowSpec { echo_per_read: Some(false), ..voice }.clocked_rate(), 128_000);
    }

    #[test]
    fn a_transfer_over_udp_knows_the_size_of_each_of_its_datagrams() {
        let udp = TransportSpec::Udp { receive_buffer: None };
        let file = flow(udp.clone(), WorkloadSpec::File { bytes: 3000, size: 1008, header: 8 });
        let sizes: Vec<_> = (0..5).map(|seq| file.datagram_size(seq)).collect();
        assert_eq!(sizes, [Some(1008), Some(1008), Some(1008), None, None]);
        let file = flow(udp.clone(), WorkloadSpec::File { bytes: 3001, size: 1008, header: 8 });
        assert_eq!((file.datagram_size(3), file.datagram_size(4)), (Some(9), None));
        assert_eq!((file.message_bound(0), file.file_piece()), (4, Some(1000)));
        let bulk = flow(udp, WorkloadSpec::Bulk { bytes: Some(65_507 + 3) });
        assert_eq!((bulk.datagram_size(1), bulk.datagram_size(2), bulk.message_bound(0)), (Some(3), None, 2));
        assert!(bulk.check().is_ok());
        assert_eq!(bulk.datagram_size(u64::MAX), None);
    }

    #[test]
    fn what_no_datagram_holds_is_refused_before_it_is_sent() {
        let udp = TransportSpec::Udp { receive_buffer: None };
        for (size, fits) in [(0, false), (1, true), (65_507, true), (65_508, false)] {
            let spec = flow(udp.clone(), WorkloadSpec::Cbr { rate_bps: 1000, size });
            assert_eq!(spec.check().is_ok(), fits, "{size} B");
        }
        assert!(flow(udp, WorkloadSpec::Bulk { bytes: None }).check().is_err());
    }
}
