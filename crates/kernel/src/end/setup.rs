//! The values that the channel of an end is made from.

use talkpath_units::Duration;

use super::context::EndContext;
use super::place::EndPlace;
use crate::log::sample_interval;
use crate::spec::{FlowSpec, SessionSpec};

/// The values that a channel is made from.
#[derive(Clone, Copy)]
pub(super) struct ChannelSetup<'a> {
    pub(super) session: &'a SessionSpec,
    /// The flow of the session that the channel is an end of.
    pub(super) flow: &'a FlowSpec,
    /// The end of the flow that the channel belongs to.
    pub(super) place: &'a EndPlace,
    /// One more than the largest number that a message of the flow may have.
    pub(super) bound: u64,
    pub(super) common: &'a EndContext,
}

impl ChannelSetup<'_> {
    /// The interval at which the state of a connection is sampled.
    pub(super) fn sample_interval(&self) -> Duration {
        sample_interval(Duration::from_nanos(self.session.duration_ns))
    }
}
