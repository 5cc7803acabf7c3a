//! What a qlog has of a connection beside its packets and metrics: transport parameters, the path, the end.

use std::net::{IpAddr, SocketAddr};

use quinn_proto::{Connection, ConnectionError};
use serde_json::{Map, Value, json};
use talkpath_units::{Instant, printable, to_hex};

use super::event::QlogEvent;
use crate::far::{FAR, PathReport};
use crate::frames::Reader;

/// Transport parameters as they are on the wire (RFC 9000 §18).
#[derive(Clone, Debug)]
pub(crate) struct LoggedParameters {
    /// Whether this end says them.
    pub(crate) is_local: bool,
    /// The bytes of the extension.
    pub(crate) encoded: Vec<u8>,
}

impl LoggedParameters {
    /// The event `parameters_set`.
    pub(super) fn event(&self, at: Instant) -> QlogEvent {
        let mut data = Map::new();
        data.insert("initiator".to_owned(), json!(if self.is_local { "local" } else { "remote" }));
        let mut unknown = Vec::new();
        let mut reader = Reader(&self.encoded);
        while let (Some(id), Some(value)) = (reader.varint(), reader.block()) {
            match parameter(id, value) {
                Some((name, value)) => drop(data.insert(name.to_owned(), value)),
                None => unknown.push(json!({ "id": id, "value": to_hex(value) })),
            }
        }
        if !unknown.is_empty() {
            data.insert("unknown_parameters".to_owned(), Value::Array(unknown));
        }
        QlogEvent::new(at, "quic:parameters_set", &Value::Object(data))
    }
}

/// The name and the value of a parameter that the draft knows (RFC 9000 §18.2, RFC 9221 §3, RFC 9287 §3).
fn parameter(id: u64, value: &[u8]) -> Option<(&'static str, Value)> {
    let name = match id {
        0x00 => "original_destination_connection_id",
        0x01 => "max_idle_timeout",
        0x02 => "stateless_reset_token",
        0x03 => "max_udp_payload_size",
        0x04 => "initial_max_data",
        0x05 => "initial_max_stream_data_bidi_local",
        0x06 => "initial_max_stream_data_bidi_remote",
        0x07 => "initial_max_stream_data_uni",
        0x08 => "initial_max_streams_bidi",
        0x09 => "initial_max_streams_uni",
        0x0a => "ack_delay_exponent",
        0x0b => "max_ack_delay",
        0x0c => "disable_active_migration",
        0x0e => "active_connection_id_limit",
        0x0f => "initial_source_connection_id",
        0x10 => "retry_source_connection_id",
        0x20 => "max_datagram_frame_size",
        0x2ab2 => "grease_quic_bit",
        _ => return None,
    };
    Some((
        name,
        match id {
            0x00 | 0x02 | 0x0f | 0x10 => json!(to_hex(value)),
            0x0c | 0x2ab2 => json!(true),
            _ => json!(Reader(value).varint()?),
        },
    ))
}

/// What was logged of the path.
#[derive(Debug, Default)]
pub(super) struct LoggedPath {
    mtu: Option<u16>,
    is_search_over: bool,
    ecn: Option<&'static str>,
    remote: Option<SocketAddr>,
}

impl LoggedPath {
    /// What changed by `at`: `mtu_updated`, `ecn_state_updated`, `tuple_assigned`.
    pub(super) fn follow(
        &mut self,
        at: Instant,
        connection: &Connection,
        report: PathReport,
    ) -> Vec<QlogEvent> {
        let mut events = Vec::new();
        let (mtu, is_search_over) = (report.packet_size, connection.is_mtu_search_over());
        let before = self.mtu.replace(mtu);
        let has_ended = is_search_over && !core::mem::replace(&mut self.is_search_over, is_search_over);
        if before != Some(mtu) || has_ended {
            let mut data = json!({ "new": mtu });
            if let Some(before) = before {
                data["old"] = json!(before);
            }
            if is_search_over {
                data["done"] = json!(true);
            }
            events.push(QlogEvent::new(at, "quic:mtu_updated", &data));
        }
        // RFC 9000 §A.4: the engine tests all the while until an acknowledgement says how the path is.
        let ecn = if report.ecn_failure.is_some() {
            "failed"
        } else if connection.is_ecn_capable() {
            "capable"
        } else {
            "testing"
        };
        let before = self.ecn.replace(ecn);
        if before != Some(ecn) {
            let mut data = json!({ "new": ecn });
            if let Some(before) = before {
                data["old"] = json!(before);
            }
            events.push(QlogEvent::new(at, "quic:ecn_state_updated", &data));
        }
        let remote = connection.remote_address();
        if remote != FAR && self.remote.replace(remote) != Some(remote) {
            let (ip, port) = match remote.ip() {
                IpAddr::V4(_) => ("ip_v4", "port_v4"),
                IpAddr::V6(_) => ("ip_v6", "port_v6"),
            };
            let data = json!({
                "tuple_id": remote.to_string(),
                "tuple_remote": { ip: remote.ip().to_string(), port: remote.port() },
            });
            events.push(QlogEvent::new(at, "quic:tuple_assigned", &data));
        }
        events
    }
}

/// The event `connection_closed`: why the connection ended; `None` if this end closed it.
pub(super) fn closed(at: Instant, why: Option<&ConnectionError>) -> QlogEvent {
    let data = match why {
        None => {
            json!({ "initiator": "local", "application_error": "unknown", "error_code": 0, "trigger": "application" })
        }
        Some(ConnectionError::ApplicationClosed(close)) => json!({
            "initiator": "remote", "application_error": "unknown", "error_code": close.error_code.into_inner(),
            "reason": printable(&String::from_utf8_lossy(&close.reason), MAX_REASON), "trigger": "application"
        }),
        Some(ConnectionError::TimedOut) => json!({ "initiator": "local", "trigger": "idle_timeout" }),
        Some(ConnectionError::Reset) => json!({ "initiator": "remote", "trigger": "stateless_reset" }),
        Some(ConnectionError::VersionMismatch) => json!({ "trigger": "version_mismatch" }),
        Some(other) => json!({ "reason": printable(&other.to_string(), MAX_REASON), "trigger": "error" }),
    };
    QlogEvent::new(at, "quic:connection_closed", &data)
}

/// The longest reason of a close that is logged. A peer may have written it. Chosen: a line.
const MAX_REASON: usize = 200;
