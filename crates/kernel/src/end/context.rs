//! What the ends of a run share.

use std::sync::Arc;

use talkpath_wire::machine::Machines;

use super::quic::QuicConnections;
use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::log::RowBudget;

/// What the ends of a run share.
pub struct EndContext {
    /// The run's clock.
    pub clock: RunClock,
    /// The rows that all ends together may keep.
    pub budget: Arc<RowBudget>,
    /// The alarm of the pacer that serves the ends.
    pub alarm: Arc<Alarm>,
    /// The QUIC connections, which several flows may share.
    pub connections: QuicConnections,
    /// Makes the state machines of our own protocols.
    pub machines: Machines,
}
