//! Estimates the work of a repetition, so that a run can be divided into parts of equal work before it
//! begins.
//!
//! A *hop* is one packet that crosses one link. The time of a simulation is proportional to its hops. The
//! number of hops is estimated from the demand of the flows and the rates of the links. Congestion control,
//! losses and queues are left out, so a transfer over a lossy path costs less than its estimate.

use talkpath_path::RateModel;
use talkpath_units::{Bytes, Rate};

use crate::scenario::{Flow, LinkIndex, Scenario};
use crate::workload::Demand;

impl Scenario {
    /// Estimates the work of one repetition in hops. The beginning and the end of a repetition count as
    /// [`HOPS_OF_A_REPETITION`].
    pub fn cost(&self) -> u64 {
        let flows = self.flows.iter().map(|flow| self.hops(flow)).fold(0, u128::saturating_add);
        u64::try_from(flows).unwrap_or(u64::MAX).saturating_add(HOPS_OF_A_REPETITION)
    }

    fn hops(&self, flow: &Flow) -> u128 {
        let (links, return_links) = (flow.route.len() as u128, flow.return_route.len() as u128);
        let packets = self.packets(flow);
        // With an echo every packet has an answer. Otherwise every second packet is acknowledged (RFC 9293
        // §3.8.6.3).
        let answers = match (&flow.echo, flow.transport.kind().features().is_acknowledged) {
            (Some(_), _) => packets,
            (None, true) => packets / 2,
            (None, false) => 0,
        };
        packets.saturating_mul(links).saturating_add(answers.saturating_mul(return_links))
    }

    /// Estimates the number of packets that the sender of `flow` sends.
    fn packets(&self, flow: &Flow) -> u128 {
        let start = flow.start.0.as_nanos().midpoint(flow.start.1.as_nanos());
        let nanos = u128::from(self.duration.as_nanos().saturating_sub(start));
        let payload = self.path_mtu(flow).saturating_sub(HEADERS).get().max(1);
        let demand = flow.workload.demand();
        let per_message = demand.largest_message().map_or(1, |size| size.get().div_ceil(payload).max(1));
        if let Some(messages) = demand.messages_within(self.duration) {
            let packets = messages.saturating_mul(per_message.into());
            // A clocked flow that begins later sends for a shorter time. The number of bursts is the same.
            return match demand {
                Demand::Clocked { .. } => {
                    packets.saturating_mul(nanos) / u128::from(self.duration.as_nanos()).max(1)
                }
                Demand::Bursts { .. } | Demand::Greedy { .. } => packets,
            };
        }
        // A transfer sends at the rate of the slowest link, until its end or the end of the duration.
        let rate = flow.route.iter().filter_map(|link| self.share(*link)).min().unwrap_or(GUESSED_RATE);
        let packets_in_time =
            u128::from(rate.as_bps()).saturating_mul(nanos) / NANOS_PER_BYTE_AT_1_BPS / u128::from(payload);
        match flow.workload.transfer_size() {
            Some(bytes) => u128::from(bytes.get().div_ceil(payload)).min(packets_in_time),
            None => packets_in_time,
        }
    }

    /// Returns the rate of a link divided by the number of transfers over it, or `None` if the link has no
    /// fixed rate.
    fn share(&self, link: LinkIndex) -> Option<Rate> {
        let is_greedy = |flow: &&Flow| matches!(flow.workload.demand(), Demand::Greedy { .. });
        let transfers = self.flows.iter().filter(is_greedy).filter(|flow| flow.route.contains(&link)).count();
        match self.links.get(usize::try_from(link.0).ok()?)?.config.rate {
            RateModel::Fixed(rate) => Some(Rate::from_bps(rate.as_bps() / (transfers as u64).max(1))),
            RateModel::Unlimited | RateModel::Trace(_) => None,
        }
    }
}

/// The processor time of a hop, ns. It is the mean of the three scenarios of docs/reference/performance.md,
/// without rows and series.
pub const NANOS_OF_A_HOP: u64 = 150;

/// The work of a repetition besides its hops, in hops. Making the network, the figures and the files takes
/// about 0.5 ms on the machine of docs/reference/performance.md.
pub const HOPS_OF_A_REPETITION: u64 = 3_000;

/// The headers of a packet: IPv4 (RFC 791), and TCP with timestamps (RFC 9293, RFC 7323).
const HEADERS: Bytes = Bytes::new(52);

/// We chose 10 Mb/s for a transfer over links without a fixed rate.
const GUESSED_RATE: Rate = Rate::from_bps(10_000_000);

/// The time that a byte takes at 1 bit/s, ns.
const NANOS_PER_BYTE_AT_1_BPS: u128 = 8 * 1_000_000_000;
