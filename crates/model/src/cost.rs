//! About how much work a repetition is, so that a run can be cut into parts of equal work before it begins.
//!
//! The work of a simulation is that of its hops: packets that cross a link. They are estimated from what the
//! flows offer and what the links let through. Left out: what congestion control, losses and queues do to a
//! transfer, so that a transfer over a lossy path costs less than is estimated here.

use talkpath_path::RateModel;
use talkpath_units::{Bytes, Rate};

use crate::scenario::{Flow, LinkIndex, Scenario};
use crate::workload::Demand;

impl Scenario {
    /// About how many hops one repetition has; those that beginning and ending it cost as much as, included.
    pub fn cost(&self) -> u64 {
        let flows = self.flows.iter().map(|flow| self.hops(flow)).fold(0, u128::saturating_add);
        u64::try_from(flows).unwrap_or(u64::MAX).saturating_add(HOPS_OF_A_REPETITION)
    }

    fn hops(&self, flow: &Flow) -> u128 {
        let (there, back) = (flow.route.len() as u128, flow.return_route.len() as u128);
        let packets = self.packets(flow);
        // Every packet may be answered by an echo; every other one is acknowledged (RFC 9293 §3.8.6.3).
        let answers = match (&flow.echo, flow.transport.kind().features().is_acknowledged) {
            (Some(_), _) => packets,
            (None, true) => packets / 2,
            (None, false) => 0,
        };
        packets.saturating_mul(there).saturating_add(answers.saturating_mul(back))
    }

    /// About how many packets its sender sends.
    fn packets(&self, flow: &Flow) -> u128 {
        let start = flow.start.0.as_nanos().midpoint(flow.start.1.as_nanos());
        let nanos = u128::from(self.duration.as_nanos().saturating_sub(start));
        let payload = self.path_mtu(flow).saturating_sub(HEADERS).get().max(1);
        let demand = flow.workload.demand();
        let each = demand.largest_message().map_or(1, |size| size.get().div_ceil(payload).max(1));
        if let Some(messages) = demand.messages_within(self.duration) {
            let all = messages.saturating_mul(each.into());
            // What begins later has less time on its clock, and as many bursts.
            return match demand {
                Demand::Clocked { .. } => {
                    all.saturating_mul(nanos) / u128::from(self.duration.as_nanos()).max(1)
                }
                Demand::Bursts { .. } | Demand::Greedy { .. } => all,
            };
        }
        let rate = flow.route.iter().filter_map(|link| self.share(*link)).min().unwrap_or(GUESSED_RATE);
        let fits =
            u128::from(rate.as_bps()).saturating_mul(nanos) / BIT_NANOS_OF_A_BYTE / u128::from(payload);
        let wanted = flow.workload.transfer_size().map(|bytes| u128::from(bytes.get().div_ceil(payload)));
        wanted.map_or(fits, |wanted| wanted.min(fits))
    }

    /// What a link has for each of the transfers over it; `None` if it has no fixed rate.
    fn share(&self, link: LinkIndex) -> Option<Rate> {
        let is_greedy = |flow: &&Flow| matches!(flow.workload.demand(), Demand::Greedy { .. });
        let transfers = self.flows.iter().filter(is_greedy).filter(|flow| flow.route.contains(&link)).count();
        match self.links.get(usize::try_from(link.0).ok()?)?.config.rate {
            RateModel::Fixed(rate) => Some(Rate::from_bps(rate.as_bps() / (transfers as u64).max(1))),
            RateModel::Unlimited | RateModel::Trace(_) => None,
        }
    }
}

/// CPU time of a hop, ns, in the mean of the three scenarios of docs/reference/performance.md, rows and
/// series not counted.
pub const NANOS_OF_A_HOP: u64 = 150;

/// What a repetition costs by itself, in hops: making the network, figures, files. Measured on the machine of
/// docs/reference/performance.md as about 0.5 ms.
pub const HOPS_OF_A_REPETITION: u64 = 3_000;

/// Of a packet: IPv4 (RFC 791), TCP with time stamps (RFC 9293, RFC 7323).
const HEADERS: Bytes = Bytes::new(52);

/// Chosen: a transfer over links without a fixed rate.
const GUESSED_RATE: Rate = Rate::from_bps(10_000_000);

/// A byte at 1 bit/s takes this many ns.
const BIT_NANOS_OF_A_BYTE: u128 = 8 * 1_000_000_000;
