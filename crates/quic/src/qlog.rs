//! A connection as qlog (draft-ietf-quic-qlog-main-schema-13, draft-ietf-quic-qlog-quic-events-13), in JSON
//! text sequences (RFC 7464): every packet with its frames, the metrics of recovery, and losses.
//!
//! quinn-proto has a feature that writes qlog 0.3, an earlier draft. It is not built in: its round trips are
//! in seconds where the drafts want milliseconds (`connection/paths.rs`), its packets have no frames, every
//! loss has the same trigger (`connection/qlog.rs`). What it knows and this does not are the numbers of lost
//! packets and how often a probe timeout fired.

mod event;
mod of_end;
mod state;

use std::io::{self, Write};

use quinn_proto::{Connection, ConnectionError};
use serde_json::{Value, json};
use talkpath_units::{Duration, Instant, to_hex};

use crate::codepoints::LONG_HEADER;
use crate::far::PathReport;
use crate::frames::{Frame, Frames, acked_ranges};

pub use event::QlogEvent;
pub(crate) use state::LoggedParameters;
use state::LoggedPath;

/// Writes what the ends of connections at one host have logged ([`crate::End::take_qlog`]), in order of time,
/// of a run with this `title`.
///
/// # Errors
/// Those of `out`.
pub fn write_qlog(
    title: &str,
    is_client: bool,
    logs: &[(String, Vec<QlogEvent>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    begin(title, is_client, out)?;
    let mut events: Vec<_> =
        logs.iter().flat_map(|(name, events)| events.iter().map(move |event| (name, event))).collect();
    // Those of one instant stay in the connections' order.
    events.sort_by_key(|(_, event)| event.at);
    events.into_iter().try_for_each(|(name, event)| event.write(name, out))
}

/// Writes the record that a file begins with.
fn begin(title: &str, is_client: bool, out: &mut dyn Write) -> io::Result<()> {
    let header = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": title,
        "trace": {
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
            },
            "vantage_point": { "type": if is_client { "client" } else { "server" } },
            "event_schemas": ["urn:ietf:params:qlog:events:quic-13", "urn:ietf:params:qlog:events:loglevel-13"],
        },
    });
    writeln!(out, "\u{1e}{header}")
}

/// A packet as it was before it was encrypted.
#[derive(Clone, Debug)]
pub(crate) struct LoggedPacket {
    direction: PacketDirection,
    number: u64,
    /// The header's first byte (RFC 9000 §17).
    first_byte: u8,
    /// Destination and source ID of a long header.
    ids: Option<(String, String)>,
    length: usize,
    frames: Vec<Value>,
}

/// Whether this end has sent or received a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketDirection {
    Sent,
    Received,
}

impl LoggedPacket {
    pub(crate) fn new(
        direction: PacketDirection,
        number: u64,
        header: &[u8],
        payload: &[u8],
        length: usize,
    ) -> Self {
        let first_byte = header.first().copied().unwrap_or_default();
        let ids = (first_byte & LONG_HEADER != 0).then(|| long_header_ids(header)).flatten();
        Self { direction, number, first_byte, ids, length, frames: Frames::new(payload).map(frame).collect() }
    }

    fn packet_type(&self) -> &'static str {
        if self.first_byte & LONG_HEADER == 0 {
            return "1RTT";
        }
        // RFC 9000 §17.2.
        match (self.first_byte >> 4) & 0x03 {
            0 => "initial",
            1 => "0RTT",
            2 => "handshake",
            _ => "retry",
        }
    }

    fn event(&self, at: Instant) -> QlogEvent {
        let mut header = json!({ "packet_type": self.packet_type(), "packet_number": self.number });
        if let Some((dcid, scid)) = &self.ids {
            header["scid"] = json!(scid);
            header["dcid"] = json!(dcid);
        }
        let name = match self.direction {
            PacketDirection::Sent => "quic:packet_sent",
            PacketDirection::Received => "quic:packet_received",
        };
        let data = json!({ "header": header, "frames": self.frames, "raw": { "length": self.length } });
        QlogEvent::new(at, name, &data)
    }
}

/// What of the recovery a qlog has (RFC 9002 §A.3, §B.2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) cwnd: Option<u64>,
    pub(crate) ssthresh: Option<u64>,
    pub(crate) bytes_in_flight: Option<u64>,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) rttvar: Option<Duration>,
}

/// The log of one end.
#[derive(Debug)]
pub(crate) struct Qlog {
    events: Vec<QlogEvent>,
    /// How many events may still be kept. The log ends with a word about it.
    room: usize,
    path: LoggedPath,
    is_closed: bool,
    metrics: Metrics,
    lost_packets: u64,
    /// The first destination ID, which names the connection.
    group: String,
}

impl Qlog {
    /// An empty log that keeps `room` events at most.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            events: Vec::new(),
            room,
            path: LoggedPath::default(),
            is_closed: false,
            metrics: Metrics::default(),
            lost_packets: 0,
            group: String::new(),
        }
    }

    /// Takes what `connection` has said and become by `at`: transport parameters, packets, declared losses,
    /// its path, and what the metrics are now.
    pub(crate) fn note(
        &mut self,
        at: Instant,
        parameters: Vec<LoggedParameters>,
        packets: Vec<LoggedPacket>,
        (connection, report): (&Connection, PathReport),
        metrics: Metrics,
    ) {
        for parameters in parameters {
            self.push(parameters.event(at));
        }
        for packet in packets {
            if let (true, Some((dcid, _))) = (self.group.is_empty(), &packet.ids) {
                self.group.clone_from(dcid);
            }
            self.push(packet.event(at));
        }
        while self.lost_packets < connection.stats().path.lost_packets {
            self.lost_packets += 1;
            self.push(QlogEvent::new(at, "quic:packet_lost", &json!({})));
        }
        for event in self.path.follow(at, connection, report) {
            self.push(event);
        }
        let before = core::mem::replace(&mut self.metrics, metrics);
        let mut data = serde_json::Map::new();
        let mut add = |name: &str, before: Option<Value>, now: Option<Value>| {
            if let Some(now) = now.filter(|now| before.as_ref() != Some(now)) {
                data.insert(name.to_owned(), now);
            }
        };
        let millis = |span: Option<Duration>| span.map(|span| json!(span.as_millis_f64()));
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| json!(bytes));
        add("min_rtt", millis(before.min_rtt), millis(metrics.min_rtt));
        add("smoothed_rtt", millis(before.smoothed_rtt), millis(metrics.smoothed_rtt));
        add("rtt_variance", millis(before.rttvar), millis(metrics.rttvar));
        add("congestion_window", bytes(before.cwnd), bytes(metrics.cwnd));
        add("bytes_in_flight", bytes(before.bytes_in_flight), bytes(metrics.bytes_in_flight));
        add("ssthresh", bytes(before.ssthresh), bytes(metrics.ssthresh));
        if !data.is_empty() {
            self.push(QlogEvent::new(at, "quic:recovery_metrics_updated", &Value::Object(data)));
        }
    }

    /// The connection ended at `at`: by this end, or because of `why`. Only its first end counts.
    pub(crate) fn note_end(&mut self, at: Instant, why: Option<&ConnectionError>) {
        if !core::mem::replace(&mut self.is_closed, true) {
            self.push(state::closed(at, why));
        }
    }

    fn push(&mut self, event: QlogEvent) {
        let at = event.at;
        match self.room {
            0 => return,
            1 => self.events.push(QlogEvent::new(
                at,
                "loglevel:warning",
                &json!({ "message": "the log is full: what came later is left out" }),
            )),
            _ => self.events.push(event),
        }
        self.room -= 1;
    }

    /// The connection's name, and its events in order of time.
    pub(crate) fn take(&mut self) -> (String, Vec<QlogEvent>) {
        (self.group.clone(), core::mem::take(&mut self.events))
    }
}

fn frame(frame: Frame<'_>) -> Value {
    let of = |length: u64| json!({ "length": length });
    let direction = |is_unidirectional| if is_unidirectional { "unidirectional" } else { "bidirectional" };
    match frame {
        Frame::Padding { length } => {
            json!({ "frame_type": "padding", "raw": { "payload_length": length } })
        }
        Frame::Ping => json!({ "frame_type": "ping" }),
        Frame::Ack { largest, delay, first_range, ranges, ecn } => {
            let ranges = acked_ranges(largest, first_range, ranges).into_iter();
            let ranges: Vec<_> =
                ranges.map(|(from, to)| if from == to { vec![to] } else { vec![from, to] }).collect();
            let delay = (delay << ACK_DELAY_EXPONENT) as f64 / 1e3;
            let mut ack = json!({ "frame_type": "ack", "ack_delay": delay, "acked_ranges": ranges });
            if let Some([ect0, ect1, ce]) = ecn {
                (ack["ect1"], ack["ect0"], ack["ce"]) = (json!(ect1), json!(ect0), json!(ce));
            }
            ack
        }
        Frame::ResetStream { id, error, final_size } => json!({
            "frame_type": "reset_stream", "stream_id": id, "error": "unknown", "error_code": error,
            "final_size": final_size
        }),
        Frame::StopSending { id, error } => json!({
            "frame_type": "stop_sending", "stream_id": id, "error": "unknown", "error_code": error
        }),
        Frame::Crypto { offset, length } => {
            json!({ "frame_type": "crypto", "offset": offset, "raw": of(length) })
        }
        Frame::NewToken { length } => json!({ "frame_type": "new_token", "token": { "raw": of(length) } }),
        Frame::Stream { id, start, end, is_last } => json!({
            "frame_type": "stream", "stream_id": id, "offset": start, "fin": is_last, "raw": of(end - start)
        }),
        Frame::MaxData(maximum) => json!({ "frame_type": "max_data", "maximum": maximum }),
        Frame::MaxStreamData { id, limit } => {
            json!({ "frame_type": "max_stream_data", "stream_id": id, "maximum": limit })
        }
        Frame::MaxStreams { is_unidirectional, limit } => json!({
            "frame_type": "max_streams", "stream_type": direction(is_unidirectional), "maximum": limit
        }),
        Frame::DataBlocked(limit) => json!({ "frame_type": "data_blocked", "limit": limit }),
        Frame::StreamDataBlocked { id, limit } => {
            json!({ "frame_type": "stream_data_blocked", "stream_id": id, "limit": limit })
        }
        Frame::StreamsBlocked { is_unidirectional, limit } => json!({
            "frame_type": "streams_blocked", "stream_type": direction(is_unidirectional), "limit": limit
        }),
        Frame::NewConnectionId { sequence, retire_prior_to, id, reset_token } => json!({
            "frame_type": "new_connection_id", "sequence_number": sequence,
            "retire_prior_to": retire_prior_to, "connection_id_length": id.len(), "connection_id": to_hex(id),
            "stateless_reset_token": to_hex(reset_token)
        }),
        Frame::RetireConnectionId(sequence) => {
            json!({ "frame_type": "retire_connection_id", "sequence_number": sequence })
        }
        Frame::PathChallenge(data) => json!({ "frame_type": "path_challenge", "data": to_hex(data) }),
        Frame::PathResponse(data) => json!({ "frame_type": "path_response", "data": to_hex(data) }),
        Frame::ConnectionClose { is_application, error, reason } => json!({
            "frame_type": "connection_close",
            "error_space": if is_application { "application" } else { "transport" },
            "error": "unknown", "error_code": error, "reason_bytes": to_hex(reason)
        }),
        Frame::HandshakeDone => json!({ "frame_type": "handshake_done" }),
        Frame::Datagram { size } => json!({ "frame_type": "datagram", "raw": of(size) }),
        Frame::Other(kind) => json!({ "frame_type": "unknown", "frame_type_bytes": kind }),
    }
}

/// Destination and source ID (RFC 9000 §17.2).
fn long_header_ids(header: &[u8]) -> Option<(String, String)> {
    let rest = header.get(5..)?;
    let (length, rest) = rest.split_first()?;
    let (dcid, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, rest) = rest.split_first()?;
    Some((to_hex(dcid), to_hex(rest.get(..usize::from(*length))?)))
}

/// RFC 9000 §18.2: the default of `ack_delay_exponent`, which neither end changes. Delays count eight
/// microseconds.
const ACK_DELAY_EXPONENT: u32 = 3;
