//! What the arenas with a path of ours share about its links: the sending host's own delay, and what is recorded of a link.

use talkpath_measure::LinkRecord;
use talkpath_path::{
    Carried, DelayVariation, Framing, Link, LinkConfig, LinkReport, LossModel, QueueKind, QueueLimit,
    RateModel,
};
use talkpath_scenario::Flow;
use talkpath_units::{Bytes, Duration, Packets, Seed};

/// The sending host's own delay before each packet of `flow` (`send_jitter`): a pipe with no rate, which keeps the order.
pub fn host_delay<T: Carried>(flow: &Flow, seed: Seed) -> Link<T> {
    let config = LinkConfig {
        rate: RateModel::Unlimited,
        delay: Duration::ZERO,
        mtu: Bytes::MAX,
        framing: Framing::None,
        queue: QueueKind::DropTail {
            limit: QueueLimit::Packets(Packets::MAX),
            in_service: false,
            mark_at: None,
        },
        loss: LossModel::None,
        jitter: DelayVariation::Uniform { max: flow.send_jitter, reorder: false },
    };
    // The name cannot be a link's: those hold no slash.
    Link::new(&config, seed, &format!("host/{}", flow.name))
}

/// The record of the scenario's link called `name`.
pub fn link_record(name: String, report: &LinkReport) -> LinkRecord {
    LinkRecord {
        name,
        queue_packets_mean: report.queue_packets_mean,
        queue_packets_p99: report.queue_packets_p99,
        queue_packets_max: report.queue_packets_max,
        forwarded: report.forwarded,
        dropped: report.dropped,
        lost: report.lost,
        utilisation: report.utilisation,
    }
}
