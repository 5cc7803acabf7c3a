//! Makes what the tests make an end of a flow from: a flow, its session, the place of the end, and what the
//! ends of a run share.

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

/// Makes TCP with the congestion control `cc`, without Nagle's algorithm, and with no other option.
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

/// Makes a flow from client to server that starts at the run's beginning and has no echo. Its clock starts
/// when its connection is open.
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

/// Makes the same flow with an echo of each message.
pub(crate) fn echoing(transport: TransportSpec, workload: WorkloadConfig) -> FlowSpec {
    FlowSpec { echo_per_read: Some(false), ..flow(transport, workload) }
}

/// Makes the session of one flow that sends until `duration_ns`.
pub(crate) fn session(flow: &FlowSpec, duration_ns: u64) -> SessionSpec {
    SessionSpec { flows: vec![flow.clone()], warm_up_ns: 0, duration_ns, drain_ns: 0 }
}

/// Makes the place of an end of that flow. The sender is the client.
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

/// Makes what the ends of a run share. The run begins `in_ns` from now and may keep `rows`.
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

/// The state machines of our own protocols. Fuzz targets make ends over QUIC alone, whose engine is a
/// library, so they need none.
#[cfg(not(test))]
const MACHINES: Machines = Machines::NONE;
#[cfg(test)]
const MACHINES: Machines = Machines::made_by(talkpath_transport::new_machine);
