//! The numbers of a flow's summary under their paths in summary.json, without writing it.
//!
//! They are listed here by hand: as `serde_json::Value`s, with a string for each key, the numbers of a
//! sweep's repetitions took longer than its shortest runs. A test holds the list against summary.json itself.

use crate::metrics::share;
use crate::summary::{
    CallSummary, DelayMs, EcnSummary, FileSummary, FlowSummary, GroupSummary, IpSeen, IpSummary, IpdvMs,
    JudgedBy, Ledger, LegSummary, LegsSummary, LossBursts, LossRuns, MeanMax, MinMeanMax, MouthToEarMs,
    MultipathSummary, RtpStream, Settling, StateAgeMs, TurnRoundMs,
};

/// Every number with its path, in the order of summary.json: `loss_rate`, `round_trip_delay_ms.p90`. What is
/// not known, words and lists are left out; so is what JSON cannot write (RFC 8259 §6).
pub fn flow_metrics(flow: &FlowSummary) -> Vec<(&'static str, f64)> {
    let mut metrics = Vec::new();
    each_number(flow, |path, value| metrics.push((path, value)));
    metrics
}

fn each_number(flow: &FlowSummary, mut each: impl FnMut(&'static str, f64)) {
    let mut tell = |path, value: f64| {
        if value.is_finite() {
            each(path, value);
        }
    };
    macro_rules! counts { ($($field:ident),*) => { $(tell(stringify!($field), flow.$field as f64);)* } }
    macro_rules! known { ($($field:ident),*) => { $(flow.$field.iter().for_each(|&it| tell(stringify!($field), it as f64));)* } }
    /// The fields of a part of the summary, if there is one.
    macro_rules! parts {
        ($part:ident: $type:ident { $($field:ident),* }) => {
            if let Some($type { $($field),* }) = &flow.$part {
                $(tell(concat!(stringify!($part), ".", stringify!($field)), *$field as f64);)*
            }
        };
    }
    /// The numbers of one direction.
    macro_rules! legs {
        ($path:literal: $leg:ident) => {
            let LegSummary { sent, received, lost, unfinished, duplicates, late, reordered, bursts } = $leg;
            tell(concat!($path, "sent"), *sent as f64);
            tell(concat!($path, "received"), *received as f64);
            tell(concat!($path, "lost"), *lost as f64);
            tell(concat!($path, "unfinished"), *unfinished as f64);
            tell(concat!($path, "duplicates"), *duplicates as f64);
            late.iter().for_each(|&it| tell(concat!($path, "late"), it as f64));
            tell(concat!($path, "reordered"), *reordered as f64);
            let LossBursts { count, density, messages_mean, ms_mean, gap_density } = bursts;
            tell(concat!($path, "bursts.count"), *count as f64);
            density.iter().for_each(|&it| tell(concat!($path, "bursts.density"), it));
            messages_mean.iter().for_each(|&it| tell(concat!($path, "bursts.messages_mean"), it));
            ms_mean.iter().for_each(|&it| tell(concat!($path, "bursts.ms_mean"), it));
            gap_density.iter().for_each(|&it| tell(concat!($path, "bursts.gap_density"), it));
        };
    }
    counts!(sent, received, lost);
    known!(lost_forward, lost_return, loss_rate);
    counts!(duplicates, reordered, unfinished, refused, expired);
    parts!(ledger: Ledger { due, delivered, expired, refused, no_network, not_open, missing, unfinished });
    known!(opening_ms);
    let LossRuns { max, mean, histogram: _ } = &flow.loss_runs;
    tell("loss_runs.max", *max as f64);
    mean.iter().for_each(|&mean| tell("loss_runs.mean", mean));
    known!(in_time, deadline_ms);
    if let Some(call) = &flow.call {
        let CallSummary { mos, r, played, late, missing, mouth_to_ear_ms, burst_ratio, .. } = call.as_ref();
        tell("call.mos", *mos);
        tell("call.r", *r);
        tell("call.played", *played as f64);
        tell("call.late", *late as f64);
        tell("call.missing", *missing as f64);
        if let Some(MouthToEarMs { mean, p50, p95 }) = mouth_to_ear_ms {
            tell("call.mouth_to_ear_ms.mean", *mean);
            tell("call.mouth_to_ear_ms.p50", *p50);
            tell("call.mouth_to_ear_ms.p95", *p95);
        }
        tell("call.burst_ratio", *burst_ratio);
        call.longest_gap_ms.iter().for_each(|&ms| tell("call.longest_gap_ms", ms));
        call.gaps_in_a_minute.iter().for_each(|&gaps| tell("call.gaps_in_a_minute", gaps as f64));
        if let Some(other) = &call.other_receiver {
            tell("call.other_receiver.mos", other.mos);
            tell("call.other_receiver.r", other.r);
            tell("call.other_receiver.played", other.played as f64);
            tell("call.other_receiver.late", other.late as f64);
            other.mouth_to_ear_ms.iter().for_each(|&ms| tell("call.other_receiver.mouth_to_ear_ms", ms));
            tell("call.other_receiver.burst_ratio", other.burst_ratio);
            tell("call.other_receiver.longest_gap_ms", other.longest_gap_ms);
            tell("call.other_receiver.gaps_in_a_minute", other.gaps_in_a_minute as f64);
        }
        call.receiver_matters.iter().for_each(|other| tell("call.receiver_matters.mos", other.mos));
    }
    known!(floor);
    parts!(state_age_ms: StateAgeMs { p50, p99 });
    parts!(one_way_delay_ms: DelayMs { min, mean, p50, p90, p95, p99, p999, max });
    parts!(round_trip_delay_ms: DelayMs { min, mean, p50, p90, p95, p99, p999, max });
    parts!(turn_round_ms: TurnRoundMs { p50, p90, p99, max });
    parts!(ipdv_ms: IpdvMs { p50, p90, p95, p99, max });
    known!(rtp_jitter_ms);
    if let Some(RtpStream { delta_ms, jitter_ms }) = &flow.rtp_stream {
        let paths = ["rtp_stream.delta_ms.min", "rtp_stream.delta_ms.mean", "rtp_stream.delta_ms.max"];
        each_of(paths, delta_ms).for_each(|(path, value)| tell(path, value));
        let paths = ["rtp_stream.jitter_ms.min", "rtp_stream.jitter_ms.mean", "rtp_stream.jitter_ms.max"];
        each_of(paths, jitter_ms).for_each(|(path, value)| tell(path, value));
    }
    known!(goodput_bps);
    if let Some(Settling { settled_after_s: Some(after), .. }) = &flow.settling {
        tell("settling.settled_after_s", *after as f64);
    }
    if let Some(Settling { settled_after_s: _, peak_bps, peak_at_s, seconds_above, seconds_below }) =
        &flow.settling
    {
        tell("settling.peak_bps", *peak_bps as f64);
        tell("settling.peak_at_s", *peak_at_s as f64);
        tell("settling.seconds_above", *seconds_above as f64);
        tell("settling.seconds_below", *seconds_below as f64);
    }
    known!(net_rate_pps, error_adjusted_rate_pps, first_sent_to_last_received_ms);
    known!(first_to_last_received_ms, blocked_ms, retransmit_rate, retransmissions, timeouts);
    known!(cwnd_packets, window_packets);
    parts!(send_buffer_bytes: MeanMax { mean, max });
    if let Some(ecn) = &flow.ecn {
        let EcnSummary { capable: _, marked_forward, marked_return, echoed_forward, echoed_return } = ecn;
        let counts = [
            ("ecn.marked_forward", marked_forward),
            ("ecn.marked_return", marked_return),
            ("ecn.echoed_forward", echoed_forward),
            ("ecn.echoed_return", echoed_return),
        ];
        for (path, packets) in counts {
            packets.iter().for_each(|&packets| tell(path, packets as f64));
        }
    }
    /// What came in one direction, but for the counts by name.
    macro_rules! headers {
        ($path:literal: $way:ident) => {
            let IpSeen { dscp: _, ecn: _, ttl_min, ttl_max, path_mtu_bytes } = $way;
            ttl_min.iter().for_each(|&it| tell(concat!($path, "ttl_min"), it.into()));
            ttl_max.iter().for_each(|&it| tell(concat!($path, "ttl_max"), it.into()));
            path_mtu_bytes.iter().for_each(|&it| tell(concat!($path, "path_mtu_bytes"), it.into()));
        };
    }
    if let Some(IpSummary { dscp: _, forward, back }) = flow.ip.as_deref() {
        headers!("ip.forward.": forward);
        if let Some(back) = back {
            headers!("ip.return.": back);
        }
    }
    if let Some(MultipathSummary { fell_back: _, subflows_max: Some(most) }) = flow.multipath {
        tell("multipath.subflows_max", most.into());
    }
    if let Some(LegsSummary { forward, back }) = flow.legs.as_deref() {
        legs!("legs.forward.": forward);
        if let Some(back) = back {
            legs!("legs.return.": back);
        }
    }
    if let Some(FileSummary { bytes, received_bytes, missing_ranges, .. }) = flow.file.as_deref() {
        tell("file.bytes", *bytes as f64);
        received_bytes.iter().for_each(|&bytes| tell("file.received_bytes", bytes as f64));
        tell("file.missing_ranges", *missing_ranges as f64);
    }
}

fn each_number_of_group(group: &GroupSummary, mut each: impl FnMut(&'static str, f64)) {
    let GroupSummary { flows, sent, received, lost, .. } = group;
    for (path, count) in [("flows", flows), ("sent", sent), ("received", received), ("lost", lost)] {
        each(path, *count as f64);
    }
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let judged = group.judged.as_ref();
    let known = [
        ("loss_rate", group.loss_rate),
        ("goodput_bps", group.goodput_bps),
        ("goodput_bps_mean", group.goodput_bps_mean),
        ("retransmit_rate", group.retransmit_rate),
        ("retransmissions", count(group.retransmissions)),
        ("timeouts", count(group.timeouts)),
        ("cwnd_packets", group.cwnd_packets),
        ("window_packets", group.window_packets),
        ("one_way_delay_ms_p50_mean", group.one_way_delay_ms_p50_mean),
        ("round_trip_delay_ms_p50_mean", group.round_trip_delay_ms_p50_mean),
        ("jain_index", group.jain_index),
        ("judged.median", judged.map(|judged| judged.median)),
        ("judged.worst", judged.map(|judged| judged.worst)),
        ("judged.floor", judged.map(|judged| judged.floor)),
    ];
    for (path, value) in known {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            each(path, value);
        }
    }
}

fn each_of(paths: [&'static str; 3], of: &MinMeanMax) -> impl Iterator<Item = (&'static str, f64)> {
    paths.into_iter().zip([of.min, of.mean, of.max])
}

/// The values of each metric over repetitions, by path.
#[derive(Default)]
pub(super) struct Columns {
    /// In the order in which they came first.
    columns: Vec<(&'static str, Vec<f64>)>,
    /// What copies are judged by.
    by: Option<JudgedBy>,
    /// Of how many messages all repetitions together know each of [`SHARES`].
    messages: [u64; SHARES.len()],
}

/// Shares of messages.
const SHARES: [&str; 2] = ["loss_rate", "in_time"];

impl Columns {
    /// One more repetition's.
    pub(super) fn add(&mut self, flow: &FlowSummary) {
        self.add_each(|each| each_number(flow, each));
        for (share, is_known) in [flow.loss_rate.is_some(), flow.in_time.is_some()].into_iter().enumerate() {
            self.messages[share] += flow.messages_of(SHARES[share]).filter(|_| is_known).unwrap_or(0);
        }
    }

    /// As [`Columns::add`], of a flow's copies together.
    pub(super) fn add_group(&mut self, group: &GroupSummary) {
        self.by = self.by.or(group.judged.as_ref().map(|judged| judged.by));
        self.add_each(|each| each_number_of_group(group, each));
        self.messages[0] += group.messages_of(SHARES[0]).unwrap_or(0);
    }

    /// The 95 % interval of the share at `path`, whose mean over the repetitions this is, by the number of
    /// its messages alone; `None` of what is no share of messages.
    pub(super) fn interval_of_messages(&self, path: &str, mean: f64) -> Option<(f64, f64)> {
        let messages = self.messages[SHARES.iter().position(|share| *share == path)?];
        let hits = (mean * messages as f64).round().clamp(0.0, messages as f64) as u64;
        // A share that is neither none nor all is not rounded to it.
        let hits = if mean > 0.0 { hits.max(1) } else { hits };
        let hits = if mean < 1.0 { hits.min(messages.saturating_sub(1)) } else { hits };
        share::interval(hits, messages)
    }

    /// The least and the most that the number at `path` can be.
    pub(super) fn possible(&self, path: &str) -> (f64, f64) {
        const UNBOUNDED: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
        match path {
            "loss_rate" | "in_time" | "retransmit_rate" | "jain_index" => (0.0, 1.0),
            _ if path.starts_with("legs.") && path.ends_with("density") => (0.0, 1.0),
            "call.mos" | "call.other_receiver.mos" | "call.receiver_matters.mos" => JudgedBy::Mos.possible(),
            "call.burst_ratio" | "call.other_receiver.burst_ratio" => (1.0, f64::INFINITY),
            _ if path.starts_with("judged.") => self.by.map_or(UNBOUNDED, JudgedBy::possible),
            _ => UNBOUNDED,
        }
    }

    fn add_each(&mut self, numbers: impl FnOnce(&mut dyn FnMut(&'static str, f64))) {
        // Most repetitions have the same numbers, so the search for a number begins behind the previous
        // number.
        let mut expected = 0;
        numbers(&mut |path, value| {
            let is_here = self.columns.get(expected).is_some_and(|(name, _)| *name == path);
            let found = || self.columns.iter().position(|(name, _)| *name == path);
            let place = if is_here { Some(expected) } else { found() };
            let place = place.unwrap_or_else(|| {
                self.columns.push((path, Vec::new()));
                self.columns.len() - 1
            });
            self.columns[place].1.push(value);
            expected = place + 1;
        });
    }

    /// Each metric's values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
        self.columns.iter().map(|(path, values)| (*path, values.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Basis, Direction, ModelInput, OtherReceiver, OutsideModel, ReceiverMatters};

    fn collect(path: &str, value: &serde_json::Value, into: &mut Vec<(String, f64)>) {
        match value {
            serde_json::Value::Number(number) => into.push((path.to_owned(), number.as_f64().unwrap())),
            serde_json::Value::Object(fields) => {
                for (key, field) in fields {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(&path, field, into);
                }
            }
            _ => {}
        }
    }

    /// A direction whose numbers count from `first`.
    fn leg(first: u64) -> LegSummary {
        let known = |index: u64| Some((first + index) as f64);
        LegSummary {
            sent: first,
            received: first + 1,
            lost: first + 2,
            unfinished: first + 3,
            duplicates: first + 4,
            late: Some(first + 11),
            reordered: first + 5,
            bursts: LossBursts {
                count: first + 6,
                density: known(7),
                messages_mean: known(8),
                ms_mean: known(9),
                gap_density: known(10),
            },
        }
    }

    /// One direction's headers; counts by name are no figures.
    fn way(first: u8) -> IpSeen {
        IpSeen {
            dscp: Some(std::collections::BTreeMap::new()),
            ecn: Some(std::collections::BTreeMap::new()),
            ttl_min: Some(first + 200),
            ttl_max: Some(first + 201),
            path_mtu_bytes: Some(u32::from(first) + 1000),
        }
    }

    /// A summary in which everything is known, each number another one.
    fn all_known() -> FlowSummary {
        let mut number = 0.0;
        let mut next = || {
            number += 1.0;
            number
        };
        let mut three = || MinMeanMax { min: next(), mean: next(), max: next() };
        let rtp_stream = Some(RtpStream { delta_ms: three(), jitter_ms: three() });
        let mut delay = || DelayMs {
            min: next(),
            mean: next(),
            p50: next(),
            p90: next(),
            p95: next(),
            p99: next(),
            p999: next(),
            max: next(),
        };
        FlowSummary {
            transport: "tcp".to_owned(),
            cc: Some("cubic".to_owned()),
            rtp_stream,
            call: Some(Box::new(CallSummary {
                mos: 4.2,
                r: 85.0,
                played: 96,
                late: 3,
                missing: 1,
                mouth_to_ear_ms: Some(MouthToEarMs { mean: 81.0, p50: 80.0, p95: 95.0 }),
                burst_ratio: 1.5,
                longest_gap_ms: Some(60.0),
                gaps_in_a_minute: Some(128),
                usable: Some(true),
                outside_model: vec![OutsideModel {
                    input: ModelInput::BurstRatio,
                    value: 9.0,
                    range: (1.0, 8.0),
                }],
                codec: "g711".to_owned(),
                playout: "adaptive".to_owned(),
                concealment: "none".to_owned(),
                basis: Basis::OneWay,
                direction: Some(Direction::Return),
                other_receiver: Some(OtherReceiver {
                    mos: 4.1,
                    r: 84.0,
                    played: 97,
                    late: 2,
                    mouth_to_ear_ms: Some(101.0),
                    burst_ratio: 1.25,
                    longest_gap_ms: 40.0,
                    gaps_in_a_minute: 129,
                    ..OtherReceiver::default()
                }),
                receiver_matters: Some(ReceiverMatters { playout: String::new(), mos: 4.0 }),
            })),
            one_way_delay_ms: Some(delay()),
            round_trip_delay_ms: Some(delay()),
            turn_round_ms: Some(TurnRoundMs { p50: next(), p90: next(), p99: next(), max: next() }),
            ipdv_ms: Some(IpdvMs { p50: next(), p90: next(), p95: next(), p99: next(), max: next() }),
            send_buffer_bytes: Some(MeanMax { mean: next(), max: next() }),
            ecn: Some(EcnSummary {
                capable: Some(true),
                marked_forward: Some(123),
                marked_return: Some(124),
                echoed_forward: Some(125),
                echoed_return: Some(126),
            }),
            ip: Some(Box::new(IpSummary {
                dscp: Some("EF".to_owned()),
                forward: way(30),
                back: Some(way(40)),
            })),
            multipath: Some(MultipathSummary { fell_back: Some(false), subflows_max: Some(127) }),
            legs: Some(Box::new(LegsSummary { forward: leg(130), back: Some(leg(150)) })),
            breaks: Vec::new(),
            loss_runs: LossRuns { max: 101, mean: Some(next()), histogram: vec![3, 4] },
            settling: Some(Settling {
                settled_after_s: Some(102),
                peak_bps: 103,
                peak_at_s: 104,
                seconds_above: 105,
                seconds_below: 106,
            }),
            file: Some(Box::new(FileSummary {
                bytes: 107,
                received_bytes: Some(108),
                missing: vec![(1, 2)],
                missing_ranges: 109,
                ..FileSummary::default()
            })),
            sent: 110,
            received: 111,
            lost: 112,
            lost_forward: Some(113),
            lost_return: Some(114),
            loss_rate: Some(next()),
            duplicates: 115,
            reordered: 116,
            unfinished: 117,
            refused: 118,
            expired: 123,
            ledger: Some(Ledger {
                due: 140,
                delivered: 141,
                expired: 142,
                refused: 143,
                no_network: 144,
                not_open: 145,
                missing: 146,
                unfinished: 147,
            }),
            opening_ms: Some(next()),
            rtp_jitter_ms: Some(next()),
            goodput_bps: Some(next()),
            net_rate_pps: Some(next()),
            error_adjusted_rate_pps: Some(next()),
            first_sent_to_last_received_ms: Some(next()),
            first_to_last_received_ms: Some(next()),
            blocked_ms: Some(next()),
            retransmit_rate: Some(next()),
            retransmissions: Some(119),
            timeouts: Some(120),
            cwnd_packets: Some(next()),
            window_packets: Some(next()),
            in_time: Some(next()),
            deadline_ms: Some(next()),
            floor: Some(next()),
            state_age_ms: Some(StateAgeMs { p50: 121.0, p99: 122.0 }),
            verdict: Some("great".to_owned()),
        }
    }

    #[test]
    fn the_numbers_are_those_of_summary_json_in_its_order() {
        for flow in
            [all_known(), FlowSummary { loss_rate: None, file: None, ..all_known() }, FlowSummary::default()]
        {
            let mut written = Vec::new();
            collect("", &serde_json::to_value(&flow).unwrap(), &mut written);
            let listed: Vec<_> =
                flow_metrics(&flow).iter().map(|&(path, value)| (path.to_owned(), value)).collect();
            assert_eq!(listed, written);
        }
        // Nothing is null if all is known, so that nothing is missing from the list.
        assert!(
            !serde_json::to_string(&FlowSummary { file: None, ..all_known() })
                .unwrap()
                .replace("\"file\":null", "")
                .contains("null")
        );
    }

    #[test]
    fn a_metric_that_some_repetitions_lack_has_fewer_values_and_none_is_mixed_up() {
        let mut columns = Columns::default();
        let without = |loss_rate| FlowSummary { loss_rate, ..all_known() };
        for flow in [without(None), all_known(), without(None), without(Some(0.25)), all_known()] {
            columns.add(&flow);
        }
        for (path, values) in columns.iter() {
            let expected = match path {
                "loss_rate" => vec![all_known().loss_rate.unwrap(), 0.25, all_known().loss_rate.unwrap()],
                _ => vec![values[0]; 5],
            };
            assert_eq!(values, expected, "{path}");
        }
        let mut paths: Vec<_> = columns.iter().map(|(path, _)| path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), columns.iter().count());
    }
}
