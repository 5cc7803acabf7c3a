//! What the channel of an end is made from.

use talkpath_units::Duration;

use super::context::EndContext;
use super::place::EndPlace;
use crate::log::sample_interval;
use crate::spec::{FlowSpec, SessionSpec};

/// What a channel is made from.
#[derive(Clone, Copy)]
pub(super) struct ChannelSetup<'a> {
    pub(super) session: &'a SessionSpec,
    /// The flow of the session that the channel is an end of.
    pub(super) flow: &'a FlowSpec,
    /// Which end it is.
    pub(super) place: &'a EndPlace,
    /// The flow's messages have numbers below this.
    pub(super) bound: u64,
    pub(super) common: &'a EndContext,
}

impl ChannelSetup<'_> {
    /// How often the state of a connection is sampled.
    pub(super) fn sample_interval(&self) -> Duration {
        sample_interval(Duration::from_nanos(self.session.duration_ns))
    }
}
