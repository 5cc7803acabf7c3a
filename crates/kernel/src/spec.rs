//! A session as the client describes it to the server. It crosses the control connection as JSON.
//!
//! ```text
//!  client:  Scenario ─► SessionSpec::new ─► check ─► JSON ─┐
//!  server:  limits of the server ◄─ check ◄─ SessionSpec ◄─┘
//! ```
//!
//! - *workload*: what the sender sends. A *clocked* workload has messages at fixed times, for example a call.
//!   A *burst* is many messages at once. A *greedy* workload sends as fast as the transport takes it: bulk,
//!   or a file.
//! - *keeps messages*: the transport delivers messages whole (UDP, DCCP, QUIC datagrams). The other
//!   transports are streams.
//! - *frame*: the size and the number at the beginning of each message on a stream whose message sizes vary.
//!
//! | file | what it has |
//! | --- | --- |
//! | `flow_check.rs` | what both ends can do |
//! | `volume.rs` | how much a session sends |
//! | `transport.rs`, `quic.rs`, `encapsulated.rs` | the options of the transports |
//! | `connections.rs` | flows that share a connection |
//! | `bounds.rs` | the limits on what one end may ask of the other |

mod bounds;
mod connections;
mod encapsulated;
mod flow_check;
mod quic;
mod transport;
mod volume;

use serde::{Deserialize, Serialize};
use talkpath_config::Features;
use talkpath_flow::file::FileSink;
use talkpath_model::{Demand, Direction, Dscp, Due, EchoWrite, Flow, Scenario, WorkloadConfig};
use talkpath_units::{Bytes, Instant, Seed};

pub use encapsulated::EncapsulatedSpec;
pub use quic::QuicSpec;
pub(crate) use quic::receive_window;
pub(crate) use transport::is_congestion_control;
pub use transport::{ChannelKind, SEGMENT_SIZES, TransportSpec};

use crate::ancillary::ECT_0;
use crate::file::FileSpec;

/// The bits of the ECN field in the byte that it shares with the DSCP (RFC 3168 §5).
const ECN_MASK: u8 = 0b11;

/// One run with all its flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// The flows in the scenario's order.
    pub flows: Vec<FlowSpec>,
    /// The time from which on figures count, ns since the run's beginning.
    pub warm_up_ns: u64,
    /// The time at which sending stops, ns since the run's beginning.
    pub duration_ns: u64,
    /// The longest wait for deliveries after sending has stopped, ns.
    pub drain_ns: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// The transport with its options.
    pub transport: TransportSpec,
    /// The workload that the sender sends.
    pub(crate) workload: WorkloadConfig,
    /// How the receiver sends the messages back: with one write for each read (`Some(true)`), or with one
    /// write for each message (`Some(false)`). `None` if the flow has no echo.
    pub echo_per_read: Option<bool>,
    /// True if the client is the sender of the workload's messages.
    pub is_up: bool,
    /// When the flow starts and a client opens its connection, ns since the run's beginning.
    pub start_ns: u64,
    /// When the workload's clock starts, if the workload follows a clock.
    #[serde(default)]
    pub due: Due,
    /// The file of a `file` workload.
    pub file: Option<FileSpec>,
    /// The seed from which the sender draws the sizes of messages, if the workload draws them. The scenario's
    /// seed decides it, so the messages are the same over every transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workload_seed: Option<u64>,
    /// The byte with the DSCP of the flow's packets in both directions. Its ECN field is zero. `None` leaves
    /// the system's DSCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp_byte: Option<u8>,
}

impl SessionSpec {
    /// Makes the session of `scenario`. Start times are drawn from `seed`. `mtu` is the MTU of the path. If
    /// it is `None`, each flow has the MTU of its links.
    ///
    /// # Errors
    /// Returns a text that names the flow and what real hosts cannot do for it.
    pub fn new(scenario: &Scenario, seed: Seed, mtu: Option<Bytes>) -> Result<Self, String> {
        let mut flows = Vec::new();
        for flow in &scenario.flows {
            let mtu = mtu.unwrap_or_else(|| scenario.path_mtu(flow));
            let spec = FlowSpec::new(flow, seed, mtu).map_err(|why| format!("flow {}: {why}", flow.name))?;
            flows.push(spec);
        }
        let mut session = Self {
            flows,
            warm_up_ns: scenario.warm_up.as_nanos(),
            duration_ns: scenario.duration.as_nanos(),
            drain_ns: scenario.drain.as_nanos(),
        };
        session.share_connections(&scenario.flows);
        match session.check_connections() {
            Ok(()) => Ok(session),
            Err((index, why)) => Err(format!("flow {}: {why}", scenario.flows[index].name)),
        }
    }

    /// Returns the end of sending.
    pub fn stop(&self) -> Instant {
        Instant::from_nanos(self.duration_ns)
    }
}

impl FlowSpec {
    /// Makes the spec of `flow`. Its start time is drawn from `seed`.
    ///
    /// # Errors
    /// Returns a text that says what real hosts cannot do for the flow.
    fn new(flow: &Flow, seed: Seed, mtu: Bytes) -> Result<Self, String> {
        let (earliest, latest) = flow.start;
        // The start is drawn from a random stream of the flow's own, so that another flow does not change it
        // (ARCHITECTURE.md, invariant 6).
        let start = seed.stream(&format!("flow/{}/start", flow.name)).span(earliest, latest);
        let file = match &flow.workload {
            WorkloadConfig::File { source, bytes, .. } => Some(FileSpec::read(source, bytes.get())?),
            _ => None,
        };
        let spec = Self {
            transport: TransportSpec::new(flow, mtu),
            workload: flow.workload.clone(),
            echo_per_read: flow.echo.map(|write| write == EchoWrite::PerRead),
            is_up: flow.direction == Direction::Up,
            start_ns: start.as_nanos(),
            due: flow.due,
            file,
            workload_seed: flow.workload.has_drawn_sizes().then(|| flow.workload_seed(seed).get()),
            dscp_byte: flow.dscp.map(Dscp::byte),
        };
        spec.check()?;
        Ok(spec)
    }

    /// Returns the spec for the server's end. A client that has not proved its address costs the server no
    /// state (RFC 4340 §8.1.4).
    pub fn served(&self) -> Self {
        let mut spec = self.clone();
        spec.transport.keep_no_state();
        spec
    }

    /// Returns the byte of the IP header with DSCP and ECN field that this program sets on the flow's
    /// packets. Returns `None` if the program sets neither. The kernel's TCP sets the ECN field by itself.
    pub fn tos(&self) -> Option<u8> {
        self.tos_with(self.transport.sets_ect())
    }

    /// Returns the same as [`Self::tos`], for a packet that leaves with ECT(0) if `is_ect` is true, and
    /// without it otherwise.
    pub(crate) fn tos_with(&self, is_ect: bool) -> Option<u8> {
        let dscp = self.dscp_byte.map(|byte| byte & !ECN_MASK);
        let ect = is_ect.then_some(ECT_0 as u8);
        (dscp.is_some() || ect.is_some()).then(|| dscp.unwrap_or(0) | ect.unwrap_or(0))
    }

    /// Returns true if the receiver echoes the messages.
    pub const fn has_echo(&self) -> bool {
        self.echo_per_read.is_some()
    }

    /// Returns true if the workload's messages are due by a clock.
    pub fn is_clocked(&self) -> bool {
        self.workload.is_clocked()
    }

    /// Returns the features of the transport.
    pub const fn features(&self) -> Features {
        self.transport.kind().features()
    }

    /// Returns the size of each message in payload bytes. Returns `None` if the sizes vary, or if the room in
    /// the transport decides.
    pub fn constant_size(&self) -> Option<u64> {
        self.workload.constant_size().map(Bytes::get)
    }

    /// Returns the size of the largest message in payload bytes. Returns `None` if the room in the transport
    /// decides.
    pub fn largest_size(&self) -> Option<u64> {
        self.workload.sizes().map(|sizes| sizes.largest().get())
    }

    /// Returns the seed that the sender draws message sizes from.
    pub(crate) fn workload_seed(&self) -> Seed {
        Seed::new(self.workload_seed.unwrap_or(0))
    }

    /// Returns true if the messages are in a stream and each begins with a frame.
    pub(crate) fn is_framed(&self) -> bool {
        !self.features().keeps_messages && self.workload.has_drawn_sizes()
    }

    /// Returns true if each message carries its number.
    pub(crate) fn names_messages(&self) -> bool {
        self.features().keeps_messages || self.is_framed()
    }

    /// Returns true if datagram `seq` may have `size` payload bytes.
    pub(crate) fn allows_datagram(&self, seq: u64, size: u64) -> bool {
        match self.workload.sizes() {
            Some(sizes) => sizes.allows(Bytes::new(size)),
            None => self.datagram_size(seq) == Some(size),
        }
    }

    /// Returns the payload bytes of datagram `seq` of a bulk transfer or a file. Returns `None` if the
    /// transfer ends before this datagram, and for other workloads.
    pub(crate) fn datagram_size(&self, seq: u64) -> Option<u64> {
        let Demand::Greedy { bytes, .. } = self.workload.demand() else { return None };
        let largest = self.largest_greedy();
        let Some(bytes) = bytes else { return Some(largest) };
        let left = bytes.get().checked_sub(seq.checked_mul(largest)?)?;
        (left > 0).then_some(left.min(largest))
    }

    /// Returns the largest message of a greedy workload over a transport that keeps messages. If the workload
    /// has no message size, it is the largest payload of a datagram or a packet.
    fn largest_greedy(&self) -> u64 {
        let message_size = self.workload.demand().largest_message();
        message_size.map_or_else(|| self.transport.largest_greedy(), Bytes::get)
    }

    /// Returns the number of the file's bytes in each message but the last. Returns `None` unless the flow
    /// carries a file over a transport that keeps messages.
    pub(crate) const fn file_piece(&self) -> Option<u64> {
        match self.workload {
            WorkloadConfig::File { size, header, .. } if self.features().keeps_messages => {
                Some(size.get() - header.get())
            }
            _ => None,
        }
    }

    /// Makes the sink in which the receiver puts the file together. If `keeps` is true, the file's bytes are
    /// kept after the check. Returns `None` unless the flow carries a file.
    pub(crate) fn file_sink(&self, keeps: bool) -> Option<FileSink> {
        match (&self.workload, &self.file) {
            (WorkloadConfig::File { bytes, .. }, Some(file)) => {
                Some(FileSink::new(&file.sha256, bytes.get(), self.file_piece(), keeps))
            }
            _ => None,
        }
    }

    /// Returns the number of bytes of memory that the receiver needs for the file. It is zero if the flow
    /// carries no file.
    pub const fn held_bytes(&self, keeps: bool) -> u64 {
        match self.workload {
            WorkloadConfig::File { bytes, .. } if keeps || self.features().keeps_messages => bytes.get(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_config::Coding;
    use talkpath_model::{VoiceConfig, VoiceHeaders};
    use talkpath_scenario::{Options, Source, load};
    use talkpath_units::{Duration, Rate};

    use super::*;
    use crate::end::fixtures::{flow, tcp};

    fn cbr(rate_bps: u64, size: u64) -> WorkloadConfig {
        WorkloadConfig::Cbr { rate: Rate::from_bps(rate_bps), size: Bytes::new(size).into() }
    }

    #[test]
    fn a_congestion_control_is_a_name_and_nothing_for_a_terminal() {
        let check = |cc: &str| flow(tcp(cc), WorkloadConfig::G711).check();
        for name in ["cubic", "bbr2", "a_kernel-s_own15"].map(|name| &name[..name.len().min(15)]) {
            assert_eq!(check(name), Ok(()));
        }
        for name in ["", "cubic\n", "\u{1b}[2J", "sixteen_of_them_", "../x"] {
            assert!(check(name).is_err_and(|why| name.is_empty() || !why.contains(name)), "{name:?}");
        }
    }

    #[test]
    fn sizes_that_no_socket_takes_are_refused_with_the_flow_and_the_key() {
        let refused = |transport: &str, receiver: &str| {
            let text = format!(
                "duration = \"1 s\"\npath.up = {{ mtu = \"65535 B\" }}\npath.down = {{ mtu = \"65535 B\" }}\n\
                 [flow.a]\nworkload = \"voice\"\ntransport = {transport}\n{receiver}"
            );
            let plan = load(&Source::new("no.toml", &text), &Options::default()).unwrap();
            SessionSpec::new(&plan.cells[0].scenario, Seed::new(1), None).err()
        };
        for (mss, fits) in [(87, false), (88, true), (32_767, true), (32_768, false)] {
            let text = format!("{{ kind = \"tcp\", mss = \"{mss} B\" }}");
            let why = refused(&text, "").unwrap_or_default();
            assert_eq!(why.is_empty(), fits, "{why}");
            assert!(fits || why.contains("flow a: mss = ") && why.contains("88 to 32767 B"), "{why}");
        }
        for (size, fits) in [("1 GiB", true), ("4 GiB", false), ("1000 GB", false)] {
            for (transport, key) in [
                ("\"udp\"", "flow a: the receiver's socket_buffer"),
                ("\"tcp\"", "flow a: receiver.socket_buffer"),
            ] {
                let receiver = format!("receiver = {{ socket_buffer = \"{size}\" }}\n");
                let why = refused(transport, &receiver).unwrap_or_default();
                assert!(fits == why.is_empty() && (fits || why.starts_with(key)), "{size}: {why}");
            }
        }
    }

    #[test]
    fn a_minute_of_voice_is_bounded_by_its_clock() {
        let udp = TransportSpec::Udp { receive_buffer: None, ecn: false };
        let voice = flow(udp, WorkloadConfig::G711);
        assert_eq!(voice.message_bound(60_000_000_000), Some(3001));
        assert_eq!(voice.payload_rate(), 64_000);
        assert_eq!(FlowSpec { echo_per_read: Some(false), ..voice }.payload_rate(), 128_000);
    }

    #[test]
    fn an_echo_counts_in_a_session_with_both_of_its_directions() {
        let udp = || TransportSpec::Udp { receive_buffer: None, ecn: false };
        let voice = flow(udp(), WorkloadConfig::G711);
        let echo = FlowSpec { echo_per_read: Some(false), ..voice.clone() };
        assert_eq!(echo.message_bound(60_000_000_000), Some(3001), "without the echoes");
        let flows = vec![voice, echo];
        let session = SessionSpec { flows, warm_up_ns: 0, duration_ns: 60_000_000_000, drain_ns: 0 };
        assert_eq!(session.message_bound(), 3001 + 2 * 3001);
    }

    #[test]
    fn what_the_far_end_sends_within_a_second_is_counted_with_and_without_a_clock() {
        let udp = || TransportSpec::Udp { receive_buffer: None, ecn: false };
        let tcp = || tcp("cubic");
        let down = |transport, workload| FlowSpec { is_up: false, ..flow(transport, workload) };
        let burst = |count, repeat, gap_ns| WorkloadConfig::Burst {
            count,
            size: Bytes::new(100),
            repeat,
            gap: Duration::from_nanos(gap_ns),
        };
        let voice = WorkloadConfig::Voice(VoiceConfig {
            coding: Coding::G711,
            ptime: Duration::from_millis(30),
            size: Bytes::new(240),
            headers: VoiceHeaders::default(),
            sender: None,
        });
        let cbr = || cbr(133_601, 1);
        // Messages a second, payload bits a second.
        for (spec, messages, rate) in [
            (down(udp(), cbr()), 16_701, 133_601),
            (down(tcp(), cbr()), 16_701, 133_601),
            (flow(udp(), cbr()), 0, 133_601),
            (down(udp(), voice), 34, 64_000),
            (down(udp(), burst(50, 3, 0)), 150, 120_000),
            (down(udp(), burst(50, 1000, 100_000_000)), 550, 440_000),
            (down(udp(), burst(50, 3, 100_000_000)), 150, 120_000),
            (down(udp(), burst(u64::MAX, u64::MAX, 1)), u64::MAX, u64::MAX),
            (down(udp(), WorkloadConfig::Bulk { bytes: Some(Bytes::new(655_071)) }), 11, 5_240_568),
            (down(tcp(), burst(50, 3, 0)), 0, 0),
            (down(tcp(), WorkloadConfig::Bulk { bytes: None }), 0, 0),
            (flow(udp(), burst(50, 3, 0)), 0, 0),
        ] {
            assert_eq!((spec.served_messages(), spec.payload_rate()), (messages, rate), "{spec:?}");
        }
    }

    #[test]
    fn a_transfer_over_udp_knows_the_size_of_each_of_its_datagrams() {
        let udp = TransportSpec::Udp { receive_buffer: None, ecn: false };
        let file = |bytes| WorkloadConfig::File {
            source: String::new(),
            bytes: Bytes::new(bytes),
            size: Bytes::new(1008),
            header: Bytes::new(8),
        };
        let short = flow(udp.clone(), file(3000));
        let sizes: Vec<_> = (0..5).map(|seq| short.datagram_size(seq)).collect();
        assert_eq!(sizes, [Some(1008), Some(1008), Some(1008), None, None]);
        let file = flow(udp.clone(), file(3001));
        assert_eq!((file.datagram_size(3), file.datagram_size(4)), (Some(9), None));
        assert_eq!((file.message_bound(0), file.file_piece()), (Some(4), Some(1000)));
        let bulk = flow(udp, WorkloadConfig::Bulk { bytes: Some(Bytes::new(65_507 + 3)) });
        assert_eq!(
            (bulk.datagram_size(1), bulk.datagram_size(2), bulk.message_bound(0)),
            (Some(3), None, Some(2))
        );
        assert!(bulk.check().is_ok());
        assert_eq!(bulk.datagram_size(u64::MAX), None);
    }

    fn session(flows: &str) -> Result<SessionSpec, String> {
        let text = format!(
            "name = \"no\"\nduration = \"1 s\"\n[path]\nup = {{ rate = \"1 Mbps\", delay = \"10 ms\" }}\n\
             down = {{ rate = \"1 Mbps\", delay = \"10 ms\" }}\n{flows}"
        );
        let plan = load(&Source::new("no.toml", &text), &Options::default()).unwrap();
        SessionSpec::new(&plan.cells[0].scenario, Seed::new(1), None)
    }

    fn quic_flow(name: &str, kind: &str, rest: &str) -> String {
        format!("[flow.{name}]\ntransport = {{ kind = \"quic-{kind}\", connection = \"c\" }}\n{rest}\n")
    }

    #[test]
    fn flows_of_one_connection_follow_its_first_flow() {
        // What the packets of RTP are made of stays with the client.
        let voice = "workload = { kind = \"voice\", rtp = false }";
        let alone = format!("[flow.b]\ntransport = \"udp\"\n{voice}\n");
        let text = quic_flow("a", "datagram", voice) + &alone + &quic_flow("c", "stream", voice);
        let session = session(&text).unwrap();
        assert_eq!([0, 1, 2].map(|index| session.leader(index)), [0, 1, 0]);
        assert_eq!((session.members(2), session.members(1)), (vec![0, 2], vec![1]));
        let copy: SessionSpec = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
        assert_eq!(copy, session);
    }

    #[test]
    fn what_flows_of_one_connection_do_not_agree_on_is_refused_by_flow() {
        let voice = "workload = { kind = \"voice\" }";
        let short = |size| format!("workload = {{ kind = \"cbr\", rate = \"8 kbps\", size = \"{size} B\" }}");
        let [short, long] = [7, 8].map(short);
        let (short, long) = (short.as_str(), long.as_str());
        for (first, second, why) in [
            (voice, "dscp = \"EF\"\nworkload = { kind = \"voice\" }", "another dscp"),
            (short, short, "a message below 8 B"),
            // The last of its messages has 3 B.
            (short, "workload = { kind = \"bulk\", bytes = \"65539 B\" }", "a message below 8 B"),
        ] {
            let text =
                quic_flow("a", "stream-per-message", first) + &quic_flow("b", "stream-per-message", second);
            let refused = session(&text).unwrap_err();
            assert!(refused.starts_with("flow b: found ") && refused.contains(why), "{refused}");
        }
        for (first, second) in [(short, long), (long, short), (long, long)] {
            let text = quic_flow("a", "datagram", first) + &quic_flow("b", "datagram", second);
            assert!(session(&text).is_ok());
        }
    }

    #[test]
    fn a_connection_counts_once_and_as_its_greediest_flow() {
        let voice = "workload = { kind = \"voice\" }";
        let bulk = "workload = { kind = \"bulk\", bytes = \"1 MB\" }";
        for (second, window) in [(voice, 1 << 20), (bulk, 8 << 20)] {
            let text =
                quic_flow("a", "stream-per-message", voice) + &quic_flow("b", "stream-per-message", second);
            let session = session(&text).unwrap();
            assert_eq!([0, 1].map(|index| session.connection_bytes(index)), [3 * window, 0]);
        }
    }

    #[test]
    fn a_connection_has_room_for_two_half_messages_of_each_flow_with_a_stream_a_message() {
        let large = "workload = { kind = \"cbr\", message_rate = \"1 Hz\", size = \"1 MB\" }";
        for (carry, room) in [("stream-per-message", 4_000_000), ("datagram", 2_000_000)] {
            let second = if carry == "datagram" { "workload = { kind = \"voice\" }" } else { large };
            let text = quic_flow("a", "stream-per-message", large) + &quic_flow("b", carry, second);
            let session = session(&text).unwrap();
            assert_eq!([0, 1].map(|index| session.half_message_room(index)), [room; 2], "{carry}");
            assert_eq!(session.connection_bytes(0), (1 << 20) + 2 * room, "{carry}");
        }
    }

    #[test]
    fn a_session_whose_flow_follows_no_earlier_one_is_refused() {
        let voice = "workload = { kind = \"voice\" }";
        let text = quic_flow("a", "datagram", voice) + &quic_flow("b", "datagram", voice);
        let good = session(&text).unwrap();
        for leader in [1, 2, u32::MAX] {
            let mut session = good.clone();
            if let TransportSpec::Quic(spec) = &mut session.flows[1].transport {
                spec.set_leader(leader);
            }
            assert!(session.check_connections().is_err() == (leader != 1), "{leader}");
        }
        let mut session = good.clone();
        session.flows[0].transport = TransportSpec::Udp { receive_buffer: None, ecn: false };
        assert!(session.check_connections().is_err_and(|(index, _)| index == 1));
        let mut session = good;
        session.flows[1].is_up = false;
        assert!(
            session.check_connections().is_err_and(|(index, why)| index == 1 && why.contains("direction"))
        );
    }

    #[test]
    fn what_no_datagram_holds_is_refused_before_it_is_sent() {
        let udp = TransportSpec::Udp { receive_buffer: None, ecn: false };
        for (size, fits) in [(0, false), (1, true), (65_507, true), (65_508, false)] {
            let spec = flow(udp.clone(), cbr(1000, size));
            assert_eq!(spec.check().is_ok(), fits, "{size} B");
        }
        assert!(flow(udp, WorkloadConfig::Bulk { bytes: None }).check().is_err());
    }
}
