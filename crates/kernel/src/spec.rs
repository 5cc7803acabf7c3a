//! A run as the client describes it to the server: the wire form of a scenario's flows, and its bounds.

mod dccp;

use serde::{Deserialize, Serialize};
use talkpath_flow::file::FileSink;
use talkpath_scenario::{Codec, Direction, EchoWrite, Flow, Scenario, WorkloadConfig};
use talkpath_transport::{CongestionControlKind, NagleKind, TcpConfig, TransportConfig};
use talkpath_units::{Bytes, Duration, Instant, Rate, Seed};

pub use dccp::DccpSpec;

use crate::file::FileSpec;
use crate::wire::{FILE_HEADER, MAX_UDP_PAYLOAD};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// In the scenario's order.
    pub flows: Vec<FlowSpec>,
    /// Figures count from here, ns into the run.
    pub warm_up_ns: u64,
    /// Sending stops here.
    pub duration_ns: u64,
    /// The longest wait for deliveries after that.
    pub drain_ns: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Which socket.
    pub transport: TransportSpec,
    /// What is sent.
    pub(crate) workload: WorkloadSpec,
    /// Whether the receiver sends each message back: `Some(true)` with one write a read, `Some(false)` one a
    /// message.
    pub echo_per_read: Option<bool>,
    /// Whether the client sends.
    pub is_up: bool,
    /// When the connection opens, ns into the run.
    pub start_ns: u64,
    /// What a `file` workload sends.
    pub file: Option<FileSpec>,
}

/// A socket and what is set on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportSpec {
    /// UDP.
    Udp {
        /// SO_RCVBUF, if the scenario set it.
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
    /// What the server must know of `scenario`, start times drawn from `seed`; `mtu` is the path's, `None`
    /// that of each flow's links.
    ///
    /// # Errors
    /// What this arena cannot do, in words.
    pub fn new(scenario: &Scenario, seed: Seed, mtu: Option<Bytes>) -> Result<Self, String> {
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
    pub fn stop(&self) -> Instant {
        Instant::from_nanos(self.duration_ns)
    }

    /// Messages that the clocked and bounded flows send at most, both directions of an echo counted.
    pub fn message_bound(&self) -> u64 {
        self.flows.iter().map(|flow| flow.message_bound(self.duration_ns)).fold(0, u64::saturating_add)
    }

    /// Payload bits that the flows send within a second at most, as far as they and not the network bound it;
    /// both directions of an echo counted.
    pub fn payload_rate(&self) -> u64 {
        self.flows.iter().map(FlowSpec::payload_rate).fold(0, u64::saturating_add)
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
    pub fn served(&self) -> Self {
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
    pub fn check(&self) -> Result<(), String> {
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
            TransportSpec::Udp { .. } => MAX_UDP_PAYLOAD,
            TransportSpec::Tcp { .. } => MAX_STREAM_MESSAGE,
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
    pub fn workload(&self) -> WorkloadConfig {
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
    pub const fn is_clocked(&self) -> bool {
        matches!(self.workload, WorkloadSpec::Voice { .. } | WorkloadSpec::Cbr { .. })
    }

    /// TCP_CONGESTION, if the transport has one.
    pub fn cc(&self) -> Option<&str> {
        match &self.transport {
            TransportSpec::Udp { .. } | TransportSpec::Dccp(_) => None,
            TransportSpec::Tcp { cc, .. } => Some(cc),
        }
    }

    /// Whether the transport is a byte stream.
    pub const fn is_stream(&self) -> bool {
        matches!(self.transport, TransportSpec::Tcp { .. })
    }

    /// Whether the transport is our own DCCP.
    pub const fn is_dccp(&self) -> bool {
        matches!(self.transport, TransportSpec::Dccp(_))
    }

    /// Payload bytes of every message; `None` if they differ.
    pub const fn message_size(&self) -> Option<u64> {
        match self.workload {
            WorkloadSpec::Voice { size, .. }
            | WorkloadSpec::Cbr { size, .. }
            | WorkloadSpec::Burst { size, .. } => Some(size),
            WorkloadSpec::Bulk { .. } | WorkloadSpec::File { .. } => None,
        }
    }

    /// Payload bytes of datagram `seq`; `None` if the workload has no such message.
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

    /// The largest message of a greedy workload over a datagram transport: what a datagram, or a packet,
    /// holds.
    fn largest_datagram(&self) -> u64 {
        match &self.transport {
            TransportSpec::Dccp(spec) => spec.largest_message().min(MAX_GREEDY_MESSAGE),
            TransportSpec::Udp { .. } | TransportSpec::Tcp { .. } => MAX_UDP_PAYLOAD,
        }
    }

    /// File bytes in each datagram but the last, for a file over UDP.
    pub(crate) const fn file_piece(&self) -> Option<u64> {
        match (self.workload, self.is_stream()) {
            (WorkloadSpec::File { size, header, .. }, false) => Some(size - header),
            _ => None,
        }
    }

    /// What its receiver puts a file together with; `keeps` if the bytes are wanted after the check.
    pub(crate) fn file_sink(&self, keeps: bool) -> Option<FileSink> {
        match (self.workload, &self.file) {
            (WorkloadSpec::File { bytes, .. }, Some(file)) => {
                Some(FileSink::new(&file.sha256, bytes, self.file_piece(), keeps))
            }
            _ => None,
        }
    }

    /// Bytes of memory that its receiver needs for a file.
    pub const fn held_bytes(&self, keeps: bool) -> u64 {
        match self.workload {
            WorkloadSpec::File { bytes, .. } if keeps || !self.is_stream() => bytes,
            _ => 0,
        }
    }

    /// Payload bytes of a transfer, if it has an end.
    fn transfer_size(&self) -> Option<u64> {
        self.workload().transfer_size().map(Bytes::get)
    }

    /// Messages that this flow sends at most within `duration_ns`; zero for a stream's bulk or file, whose
    /// messages are as large as fits, and for bulk without an end.
    pub fn message_bound(&self, duration_ns: u64) -> u64 {
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

    /// Messages that the far end hands over within a second at most. A flow upwards has none: its echoes are
    /// as many as arrive. What a stream or DCCP sends without a clock is none either: its congestion control
    /// bounds it.
    pub fn served_messages(&self) -> u64 {
        let per_second = |messages: u128| u64::try_from(messages).unwrap_or(u64::MAX);
        match self.workload {
            _ if self.is_up => 0,
            WorkloadSpec::Voice { ptime_ns, .. } => {
                per_second(SECOND_NS.div_ceil(u128::from(ptime_ns.max(1))))
            }
            WorkloadSpec::Cbr { rate_bps, size } => {
                per_second(u128::from(rate_bps).div_ceil(u128::from(size.max(1)) * 8))
            }
            WorkloadSpec::Bulk { .. } | WorkloadSpec::Burst { .. } | WorkloadSpec::File { .. } => {
                self.flood().map_or(0, |(messages, _)| messages)
            }
        }
    }

    fn payload_rate(&self) -> u64 {
        let rate = match self.workload {
            WorkloadSpec::Voice { ptime_ns, size } => {
                u128::from(size) * 8 * SECOND_NS / u128::from(ptime_ns.max(1))
            }
            WorkloadSpec::Cbr { rate_bps, .. } => u128::from(rate_bps),
            WorkloadSpec::Bulk { .. } | WorkloadSpec::Burst { .. } | WorkloadSpec::File { .. } => {
                self.flood().filter(|_| !self.is_up).map_or(0, |(_, bytes)| u128::from(bytes) * 8)
            }
        };
        let directions = if self.echo_per_read.is_some() { 2 } else { 1 };
        u64::try_from(rate * directions).unwrap_or(u64::MAX)
    }

    /// Messages and payload bytes that a workload without a clock gives to UDP within a second at most. UDP
    /// takes what it is given, so all of a bulk counts as of one second, and as many bursts as begin in one.
    fn flood(&self) -> Option<(u64, u64)> {
        if !matches!(self.transport, TransportSpec::Udp { .. }) {
            return None;
        }
        match self.workload {
            WorkloadSpec::Burst { count, size, repeat, gap_ns } => {
                let begun = 1_000_000_000_u64.checked_div(gap_ns).map_or(repeat, |gaps| repeat.min(gaps + 1));
                let messages = count.saturating_mul(begun);
                Some((messages, messages.saturating_mul(size)))
            }
            WorkloadSpec::Bulk { .. } | WorkloadSpec::File { .. } => {
                Some((self.message_bound(0), self.transfer_size()?))
            }
            WorkloadSpec::Voice { .. } | WorkloadSpec::Cbr { .. } => None,
        }
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

/// The kernel's name for the congestion control of `config`; its `reno` recovers as NewReno does (RFC 6582).
pub(crate) const fn kernel_cc(config: &TcpConfig) -> &'static str {
    match config.cc {
        // No kernel has it; the socket option says so.
        Some(CongestionControlKind::Tahoe) => "tahoe",
        Some(CongestionControlKind::Reno | CongestionControlKind::NewReno) => "reno",
        Some(CongestionControlKind::Cubic) | None => "cubic",
        Some(CongestionControlKind::Bbr) => "bbr",
    }
}

const SECOND_NS: u128 = 1_000_000_000;
/// The largest message of a greedy workload: 64 KiB (docs/reference/scenario.md).
const MAX_GREEDY_MESSAGE: u64 = 64 * 1024;
/// The largest message of a stream flow (chosen: far above what any codec or record writes at once).
const MAX_STREAM_MESSAGE: u64 = 1 << 20;

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
        assert_eq!(voice.payload_rate(), 64_000);
        assert_eq!(FlowSpec { echo_per_read: Some(false), ..voice }.payload_rate(), 128_000);
    }

    #[test]
    fn what_the_far_end_sends_within_a_second_is_counted_with_and_without_a_clock() {
        let udp = || TransportSpec::Udp { receive_buffer: None };
        let tcp = || {
            let cc = "cubic".to_owned();
            TransportSpec::Tcp { nodelay: true, cc, mss: None, send_buffer: None, receive_buffer: None }
        };
        let down = |transport, workload| FlowSpec { is_up: false, ..flow(transport, workload) };
        let burst = |count, repeat, gap_ns| WorkloadSpec::Burst { count, size: 100, repeat, gap_ns };
        let cbr = WorkloadSpec::Cbr { rate_bps: 133_601, size: 1 };
        // Messages a second, payload bits a second.
        for (spec, messages, rate) in [
            (down(udp(), cbr), 16_701, 133_601),
            (down(tcp(), cbr), 16_701, 133_601),
            (flow(udp(), cbr), 0, 133_601),
            (down(udp(), WorkloadSpec::Voice { ptime_ns: 30_000_000, size: 240 }), 34, 64_000),
            (down(udp(), burst(50, 3, 0)), 150, 120_000),
            (down(udp(), burst(50, 1000, 100_000_000)), 550, 440_000),
            (down(udp(), burst(50, 3, 100_000_000)), 150, 120_000),
            (down(udp(), burst(u64::MAX, u64::MAX, 1)), u64::MAX, u64::MAX),
            (down(udp(), WorkloadSpec::Bulk { bytes: Some(655_071) }), 11, 5_240_568),
            (down(tcp(), burst(50, 3, 0)), 0, 0),
            (down(tcp(), WorkloadSpec::Bulk { bytes: None }), 0, 0),
            (flow(udp(), burst(50, 3, 0)), 0, 0),
        ] {
            assert_eq!((spec.served_messages(), spec.payload_rate()), (messages, rate), "{spec:?}");
        }
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
