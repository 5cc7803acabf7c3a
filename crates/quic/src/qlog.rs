//! A connection as qlog (draft-ietf-quic-qlog-main-schema-13, draft-ietf-quic-qlog-quic-events-13), in JSON
//! text sequences (RFC 7464): every packet with its frames, the metrics of recovery, and losses.
//!
//! quinn-proto has a feature that writes qlog 0.3, an earlier draft. It is not built in: its round trips are
//! in seconds where the drafts want milliseconds (`connection/paths.rs`), its packets have no frames, every
//! loss has the same trigger (`connection/qlog.rs`). What it knows and this does not are the numbers of lost
//! packets and how often a probe timeout fired.

use std::io::{self, Write};

use serde_json::{Value, json};
use talkpath_units::{Duration, Instant, to_hex};

use crate::codepoints::LONG_HEADER;
use crate::frames::{Frame, Frames, acked_ranges};

/// An event of a connection at one of its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QlogEvent {
    /// When it was.
    pub at: Instant,
    name: &'static str,
    /// Its data, as JSON.
    data: String,
}

impl QlogEvent {
    fn new(at: Instant, name: &'static str, data: &Value) -> Self {
        Self { at, name, data: data.to_string() }
    }

    /// Writes it as a record of the connection whose first destination ID was `group`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, group: &str, out: &mut dyn Write) -> io::Result<()> {
        let time = json!(self.at.as_nanos() as f64 / 1e6);
        let (name, data) = (self.name, &self.data);
        writeln!(
            out,
            "\u{1e}{{\"time\":{time},\"name\":\"{name}\",\"group_id\":\"{group}\",\"data\":{data}}}"
        )
    }
}

/// Writes the record that a file begins with, of a run with this `title` as one end saw it.
///
/// # Errors
/// Those of `out`.
pub fn begin_qlog(title: &str, is_client: bool, out: &mut dyn Write) -> io::Result<()> {
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
            "event_schemas": ["urn:ietf:params:qlog:events:quic-13"],
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
#[derive(Debug, Default)]
pub(crate) struct Qlog {
    events: Vec<QlogEvent>,
    metrics: Metrics,
    lost_packets: u64,
    /// The first destination ID, which names the connection.
    group: String,
}

impl Qlog {
    /// Takes what happened at `at`: packets, declared losses up to `lost_packets`, and what the metrics are
    /// now.
    pub(crate) fn note(
        &mut self,
        at: Instant,
        packets: Vec<LoggedPacket>,
        lost_packets: u64,
        metrics: Metrics,
    ) {
        for packet in packets {
            if let (true, Some((dcid, _))) = (self.group.is_empty(), &packet.ids) {
                self.group.clone_from(dcid);
            }
            self.events.push(packet.event(at));
        }
        while self.lost_packets < lost_packets {
            self.lost_packets += 1;
            self.events.push(QlogEvent::new(at, "quic:packet_lost", &json!({})));
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
            self.events.push(QlogEvent::new(at, "quic:recovery_metrics_updated", &Value::Object(data)));
        }
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
