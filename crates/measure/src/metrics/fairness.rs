//! Jain's fairness index (Jain, Chiu and Hawe, DEC-TR-301, 1984) and the other figures of a flow's copies together.

use super::loss::rate;
use crate::summary::{FlowSummary, GroupSummary};

/// (Σx)² / (n Σx²): 1 where all shares are equal, 1/n where one has everything; `None` where all are 0 or there is none.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The figures of `copies` together. A figure that one copy does not know is unknown for the group.
pub fn group(copies: &[&FlowSummary]) -> GroupSummary {
    let sum = |count: fn(&FlowSummary) -> u64| copies.iter().map(|&flow| count(flow)).sum::<u64>();
    let known = |figure: fn(&FlowSummary) -> Option<f64>| -> Option<Vec<f64>> {
        copies.iter().map(|&flow| figure(flow)).collect()
    };
    let goodputs = known(|flow| flow.goodput_bps);
    GroupSummary {
        flows: copies.len() as u64,
        sent: sum(|flow| flow.sent),
        received: sum(|flow| flow.received),
        lost: sum(|flow| flow.lost),
        loss_rate: rate(sum(|flow| flow.lost), sum(|flow| flow.sent - flow.unfinished)),
        goodput_bps: goodputs.as_deref().map(|values| values.iter().sum()),
        goodput_bps_mean: goodputs.as_deref().and_then(mean),
        retransmit_rate: known(|flow| flow.retransmit_rate).as_deref().and_then(mean),
        cwnd_packets: known(|flow| flow.cwnd_packets).as_deref().and_then(mean),
        one_way_delay_ms_p50_mean: known(|flow| flow.one_way_delay_ms.as_ref().map(|delay| delay.p50))
            .as_deref()
            .and_then(mean),
        jain_index: goodputs.as_deref().and_then(jain_index),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
