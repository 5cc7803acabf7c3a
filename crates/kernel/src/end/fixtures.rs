//! What tests make ends of flows from: one flow, its session, the place of an end, and the run's clock.

use std::sync::Arc;

use talkpath_model::{Due, WorkloadConfig};
use talkpath_units::Seed;
use talkpath_wire::machine::Machines;

use crate::clock::HostClock;
use crate::end::{EndContext, EndPlace, QuicConnections};
use crate::log::RowBudget;
use crate::spec::{FlowSpec, SessionSpec, TransportSpec};

/// UDP without options.
pub(crate) const UDP: TransportSpec = TransportSpec::Udp { receive_buffer: None, ecn: false };

/// TCP with this congestion control, without Nagle's algorithm, and with no other option.
pub(crate) fn tcp(cc: &str) -> TransportSpec {
    TransportSpec::Tcp {
        nodelay: true,
        cc: cc.to_owned(),
        mss: None,
        send_buffer: None,
        receive_buffer: None,
        multipath: false,
    }
}

/// A flow up from the run's beginning, without an echo, whose clock starts when its connection is open.
pub(crate) const fn flow(transport: TransportSpec, workload: WorkloadConfig) -> FlowSpec {
    FlowSpec {
        transport,
        workload,
        echo_per_read: None,
        is_up: true,
        start_ns: 0,
        due: Due::Opening,
        file: None,
        workload_seed: None,
        dscp_byte: None,
    }
}

/// The same with an echo of each message.
pub(crate) fn echoing(transport: TransportSpec, workload: WorkloadConfig) -> FlowSpec {
    FlowSpec { echo_per_read: Some(false), ..flow(transport, workload) }
}

/// The session of one flow that sends until `duration_ns`.
pub(crate) fn session(flow: &FlowSpec, duration_ns: u64) -> SessionSpec {
    SessionSpec { flows: vec![flow.clone()], warm_up_ns: 0, duration_ns, drain_ns: 0 }
}

/// An end of that flow: a sender is the client.
pub(crate) const fn place(is_sender: bool) -> EndPlace {
    EndPlace {
        index: 0,
        is_sender,
        is_client: is_sender,
        token: 7,
        tag_key: None,
        has_trains: false,
        seed: Seed::new(1),
        quic_keys: None,
    }
}

/// What the ends of a run share that begins `in_ns` from now and may keep `rows`.
pub(crate) fn context(in_ns: i64, rows: u64) -> EndContext {
    let host = HostClock::anchor();
    let clock = host.run_from(host.now_ns() + in_ns);
    EndContext {
        clock,
        budget: RowBudget::new(rows),
        alarm: Arc::default(),
        connections: QuicConnections::default(),
        machines: MACHINES,
    }
}

/// Fuzz targets make ends over QUIC alone, whose engine is a library.
#[cfg(not(test))]
const MACHINES: Machines = Machines::NONE;
#[cfg(test)]
const MACHINES: Machines = Machines::made_by(talkpath_transport::new_machine);
