//! How close events follow each other, for the timing wheel. It decides how fast the wheel is, and nothing
//! else.

use talkpath_units::Duration;

use crate::config::{LinkConfig, RateModel};
use crate::network::config::NetworkConfig;

/// The mean time between two events when all is busy: the slowest link of each route passes full packets, and
/// each packet has as many hops as its route.
pub(super) fn event_spacing(config: &NetworkConfig<'_>) -> Duration {
    let rate = |link: u32| fixed_rate(config.links[link as usize].1);
    let mut hops = vec![0; config.links.len()];
    for route in config.flows.iter().flat_map(|flow| [&flow.out, &flow.back]) {
        let limited = route.iter().filter_map(|&link| Some((rate(link)?, link)));
        if let Some((_, slowest)) = limited.min_by_key(|(rate, _)| *rate) {
            let hops = &mut hops[slowest as usize];
            *hops = route.len().max(*hops);
        }
    }
    let bps: u128 = (0..)
        .zip(hops)
        .filter_map(|(link, hops)| Some(u128::from(rate(link).filter(|_| hops > 0)?) * hops as u128))
        .sum();
    match u64::try_from(FULL_PACKET_BITS * 1_000_000_000 / bps.max(1)) {
        Ok(nanos) if bps > 0 => Duration::from_nanos(nanos),
        _ => UNKNOWN,
    }
}

/// Bits a second, of a link whose rate is fixed.
fn fixed_rate(link: &LinkConfig) -> Option<u64> {
    match link.rate {
        RateModel::Fixed(rate) => Some(rate.as_bps()),
        RateModel::Unlimited | RateModel::Trace(_) => None,
    }
}

/// Of a packet as large as Ethernet takes it (RFC 894): 1500 B.
const FULL_PACKET_BITS: u128 = 12_000;
/// If no link has a rate to tell it from. Chosen: of the order of the time between two events of a fast link.
const UNKNOWN: Duration = Duration::from_micros(8);
