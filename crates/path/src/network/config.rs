//! What a network is made of.

use talkpath_units::{Bytes, Duration, Instant, Seed};

use crate::change::Change;
use crate::config::{DelayVariation, LinkConfig, RateModel};

/// Links, the flows over them, and what is observed.
#[derive(Clone, Debug)]
pub struct NetworkConfig<'a> {
    /// The links, with their names.
    pub links: Vec<(&'a str, &'a LinkConfig)>,
    /// The changes of these links.
    pub changes: Vec<Change>,
    /// The flows, by number.
    pub flows: Vec<FlowRoutes<'a>>,
    /// Each random element draws from its own stream of this seed.
    pub seed: Seed,
    /// Links measure in [from, to).
    pub window: (Instant, Instant),
    /// How many timers the hosts have ([`NetworkEvent::Timer`](crate::NetworkEvent::Timer)).
    pub timers: u32,
    /// Whether each change of each link's queue is kept
    /// ([`Network::queue_changes`](crate::Network::queue_changes)).
    pub observes_queues: bool,
}

/// How the packets of a flow travel.
#[derive(Clone, Debug)]
pub struct FlowRoutes<'a> {
    /// The flow's name, after which its sending host's random stream is called.
    pub name: &'a str,
    /// The links from the near end to the far one, by index.
    pub out: Vec<u32>,
    /// The links back.
    pub back: Vec<u32>,
    /// The near host holds each packet for a time uniform in [0, this) before it sends it, in order.
    pub send_jitter: Duration,
}

/// A host that holds each packet for a time uniform in [0, `max`), in order: a link without a rate, whose
/// delay is that wait.
pub(super) fn host_delay(max: Duration) -> LinkConfig {
    LinkConfig {
        mtu: Bytes::MAX,
        jitter: DelayVariation::Uniform { max, reorder: false },
        ..LinkConfig::bare(RateModel::Unlimited)
    }
}
