//! What the ends of a run share.

use std::sync::Arc;

use talkpath_wire::machine::Machines;

use super::quic::QuicConnections;
use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::log::RowBudget;

/// What the ends of a run share.
pub struct EndContext {
    /// Of the run.
    pub clock: RunClock,
    /// The rows that all ends together may keep.
    pub budget: Arc<RowBudget>,
    /// Of the pacer that serves the ends.
    pub alarm: Arc<Alarm>,
    /// Those that several flows may share.
    pub connections: QuicConnections,
    /// Of the protocols of ours.
    pub machines: Machines,
}
