//! The figures of a group, which is all copies of a flow together. One of them is Jain's fairness index
//! (Jain, Chiu and Hawe, DEC-TR-301, 1984).

use super::loss::rate;
use crate::judge::{self, Receiver};
use crate::summary::{FlowSummary, GroupSummary};

/// Returns Jain's index (Σx)² / (n Σx²). It is 1 if all shares are equal, and 1/n if one of n shares is
/// everything. Returns `None` if all shares are 0, or if there is no share.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Returns the figures of the group `name`. `copies` has the name and the figures of each copy. If a figure
/// of one copy is unknown, it is unknown for the group.
pub fn group(name: &str, copies: &[(&str, &FlowSummary)]) -> GroupSummary {
    let flows = || copies.iter().map(|&(_, flow)| flow);
    let sum = |count: fn(&FlowSummary) -> u64| flows().map(count).sum::<u64>();
    let values = |figure: fn(&FlowSummary) -> Option<f64>| flows().map(figure).collect::<Option<Vec<f64>>>();
    let mean_of = |figure: fn(&FlowSummary) -> Option<f64>| mean(&values(figure)?);
    let goodputs = values(|flow| flow.goodput_bps);
    GroupSummary {
        flows: copies.len() as u64,
        summed_up: false,
        transport: flows().next().map(|flow| flow.transport.clone()).unwrap_or_default(),
        sent: sum(|flow| flow.sent),
        received: sum(|flow| flow.received),
        lost: sum(|flow| flow.lost),
        loss_rate: rate(sum(|flow| flow.lost), sum(|flow| flow.sent - flow.unfinished)),
        goodput_bps: goodputs.as_deref().map(|values| values.iter().sum()),
        goodput_bps_mean: goodputs.as_deref().and_then(mean),
        retransmit_rate: mean_of(|flow| flow.retransmit_rate),
        retransmissions: flows().map(|flow| flow.retransmissions).sum(),
        timeouts: flows().map(|flow| flow.timeouts).sum(),
        cwnd_packets: mean_of(|flow| flow.cwnd_packets),
        window_packets: mean_of(|flow| flow.window_packets),
        one_way_delay_ms_p50_mean: mean_of(|flow| Some(flow.one_way_delay_ms.as_ref()?.p50)),
        round_trip_delay_ms_p50_mean: mean_of(|flow| Some(flow.round_trip_delay_ms.as_ref()?.p50)),
        jain_index: goodputs.as_deref().and_then(jain_index),
        judged: judge::judge_copies(name, copies.iter().copied(), Receiver::Own),
        judged_with_other_receiver: judge::judge_copies(name, copies.iter().copied(), Receiver::Other),
        judged_with_patient_receiver: judge::judge_copies(name, copies.iter().copied(), Receiver::Patient),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_of_known_shares() {
        assert_eq!(jain_index(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_index(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!(jain_index(&[0.0, 0.0]), None);
        assert_eq!(jain_index(&[]), None);
    }

    fn copy(sent: u64, lost: u64, goodput_bps: f64) -> FlowSummary {
        FlowSummary {
            sent,
            received: sent - lost,
            lost,
            goodput_bps: Some(goodput_bps),
            cwnd_packets: Some(goodput_bps / 100.0),
            ..FlowSummary::default()
        }
    }

    fn named(copies: &[FlowSummary; 2]) -> [(&str, &FlowSummary); 2] {
        [("call-1", &copies[0]), ("call-2", &copies[1])]
    }

    #[test]
    fn a_group_sums_counts_and_averages_states() {
        let copies = [copy(10, 1, 300.0), copy(30, 5, 100.0)];
        let group = group("call", &named(&copies));
        assert_eq!((group.flows, group.sent, group.received, group.lost), (2, 40, 34, 6));
        assert_eq!(group.loss_rate, Some(0.15));
        assert_eq!((group.goodput_bps, group.goodput_bps_mean), (Some(400.0), Some(200.0)));
        assert_eq!(group.cwnd_packets, Some(2.0));
        assert_eq!(group.jain_index, Some(160_000.0 / 200_000.0));
    }

    #[test]
    fn a_figure_that_is_unknown_for_one_copy_is_unknown_for_the_group() {
        let mut copies = [copy(10, 1, 300.0), copy(30, 5, 100.0)];
        copies[1].cwnd_packets = None;
        assert_eq!(group("call", &named(&copies)).cwnd_packets, None);
    }
}
