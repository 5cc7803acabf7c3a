use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;

use super::*;
use crate::summary::*;

/// The numbers, flags and words of summary.json with their paths, in its order.
fn written(of: &impl Serialize) -> Vec<(String, Json)> {
    fn walk(path: &str, value: &Json, into: &mut Vec<(String, Json)>) {
        match value {
            Json::Null | Json::Array(_) => {}
            Json::Object(fields) => {
                for (key, field) in fields {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(&path, field, into);
                }
            }
            // Numbers of both kinds compare as one kind.
            Json::Number(number) => into.push((path.to_owned(), number.as_f64().into())),
            Json::Bool(_) | Json::String(_) => into.push((path.to_owned(), value.clone())),
        }
    }
    let mut found = Vec::new();
    walk("", &serde_json::to_value(of).unwrap(), &mut found);
    found
}

/// The same by the rows of a table.
fn tabled<T>(table: &'static Table<T>, of: &T) -> Vec<(String, Json)> {
    let value = |figure: &Figure<T>| {
        Some(match figure.value(of)? {
            Value::Number(number) => number.into(),
            Value::Flag(flag) => flag.into(),
            Value::Word(word) => word.into(),
        })
    };
    let counts = |figure: &Figure<T>| match figure.get {
        Getter::Counts(get) => get(of).cloned().unwrap_or_default(),
        _ => BTreeMap::new(),
    };
    let found = |figure: &'static Figure<T>| {
        let counts = counts(figure).into_iter();
        let counts = counts.map(|(name, count)| (format!("{}.{name}", figure.path), (count as f64).into()));
        value(figure).map(|value| (figure.path.to_owned(), value)).into_iter().chain(counts)
    };
    table.rows().flat_map(found).collect()
}

#[track_caller]
fn assert_whole<T: Serialize>(table: &'static Table<T>, known: &T) {
    assert_eq!(tabled(table, known), written(known));
    // Nothing is null if all is known, so that nothing is missing from the table.
    assert!(!serde_json::to_string(known).unwrap().contains("null"));
}

#[test]
fn each_number_flag_and_word_of_a_flow_has_its_row_in_the_order_of_summary_json() {
    assert_whole(&FLOW, &all_known());
    for flow in [FlowSummary { loss_rate: None, file: None, ..all_known() }, FlowSummary::default()] {
        assert_eq!(tabled(&FLOW, &flow), written(&flow));
    }
}

#[test]
fn each_number_flag_and_word_of_a_group_has_its_row() {
    let judged = |first: f64| JudgedFigure {
        by: JudgedBy::InTime,
        median: first,
        worst: first + 1.0,
        worst_flow: "call-7".to_owned(),
        floor: first + 2.0,
        basis: Basis::HalfRoundTrip,
        direction: Some(Direction::Return),
        barred: true,
        longest_gap_ms: Some(first + 3.0),
    };
    let group = GroupSummary {
        flows: 1,
        summed_up: true,
        transport: "udp".to_owned(),
        sent: 2,
        received: 3,
        lost: 4,
        loss_rate: Some(0.5),
        goodput_bps: Some(6.0),
        goodput_bps_mean: Some(7.0),
        retransmit_rate: Some(0.8),
        retransmissions: Some(9),
        timeouts: Some(10),
        cwnd_packets: Some(11.0),
        window_packets: Some(12.0),
        one_way_delay_ms_p50_mean: Some(13.0),
        round_trip_delay_ms_p50_mean: Some(14.0),
        jain_index: Some(0.15),
        judged: Some(judged(16.0)),
        judged_with_other_receiver: Some(judged(20.0)),
        judged_with_patient_receiver: Some(judged(24.0)),
    };
    assert_whole(&GROUP, &group);
}

#[test]
fn each_number_and_word_of_a_link_has_its_row() {
    let link = LinkSummary {
        discipline: "codel".to_owned(),
        queue_packets: QueuePackets { mean: 1.0, p99: 2, max: 3 },
        queue_delay_ms: Some(QueueDelayMs { mean: 4.0, p50: 5.0, p95: 6.0, p99: 7.0 }),
        forwarded: 8,
        dropped: 9,
        dropped_by: DropsByCause { full: 10, aqm: 11 },
        marked: 12,
        lost: 13,
        repeated: 15,
        damaged: 16,
        utilisation: 0.14,
    };
    assert_whole(&LINK, &link);
}

#[test]
fn each_number_and_flag_of_the_machine_and_the_clocks_has_its_row() {
    let late = |first: f64| Some(LateMs { p50: first, p99: first + 1.0, max: first + 2.0 });
    let machine = MachineSummary {
        valid: Some(true),
        ran_again: 22,
        emulator_late_ms: late(1.0),
        emulator_backlog_ms: late(4.0),
        senders_late_ms: late(7.0),
        far_senders_late_ms: late(10.0),
        packets: Some(13),
        device_drops: Some(14),
        socket_drops: Some(15),
        checksum_errors: Some(16),
        far_checksum_errors: Some(17),
        emulator_cpu_share: Some(0.18),
        real_time: Some(false),
        stolen_share: Some(0.19),
        stops: Some(20),
        longest_stop_ms: Some(21.0),
        // A list of flows is no figure.
        late_flows: Vec::new(),
    };
    assert_whole(&MACHINE, &machine);
    let clock = Clock {
        offset_ms: Some(-1.0),
        skew_ppm: Some(2.0),
        uncertainty_ms: Some(3.0),
        change_uncertainty_ms: Some(4.0),
        synchronised: true,
        trusted: true,
        why: "one clock".to_owned(),
    };
    assert_whole(&CLOCK, &clock);
}

#[test]
fn no_two_rows_have_one_path_or_one_title_and_each_has_a_definition() {
    fn check<T>(table: &'static Table<T>) {
        let rows = || table.rows();
        let (paths, titles): (BTreeSet<_>, BTreeSet<_>) = rows().map(|it| (it.path, it.title())).unzip();
        assert_eq!((paths.len(), titles.len()), (rows().count(), rows().count()));
        for figure in rows() {
            let Figure { path, definition, range: (least, most), .. } = figure;
            assert!(!definition.is_empty() && !definition.ends_with('.') && least < most, "{path}");
        }
    }
    check(&FLOW);
    check(&GROUP);
    check(&LINK);
    check(&MACHINE);
    check(&CLOCK);
}

#[test]
fn what_a_flow_its_group_and_a_link_have_under_one_path_is_of_one_unit() {
    for group in GROUP.rows() {
        assert!(FLOW.find(group.path).is_none_or(|flow| flow.unit == group.unit), "{}", group.path);
    }
    for link in LINK.rows() {
        assert!(FLOW.find(link.path).is_none_or(|flow| flow.unit == link.unit), "{}", link.path);
    }
}

#[test]
fn scores_shares_counts_and_goodputs_are_means_and_times_windows_and_queues_medians() {
    for path in ["call.mos", "in_time", "loss_rate", "goodput_bps", "lost", "judged.worst", "utilisation"] {
        assert_eq!(statistic_of(path), Statistic::Mean, "{path}");
    }
    for path in [
        "round_trip_delay_ms.p95",
        "call.mouth_to_ear_ms.p50",
        "cwnd_packets",
        "queue_packets.max",
        "one_way_delay_ms_p50_mean",
        "send_buffer_bytes.mean",
        "settling.settled_after_s",
    ] {
        assert_eq!(statistic_of(path), Statistic::Median, "{path}");
    }
}

#[test]
fn a_figure_is_written_in_its_unit_with_its_decimals() {
    let flow = all_known();
    let of = |path: &str| {
        let figure = FLOW.row(path);
        (figure.title(), figure.text(&flow))
    };
    let text = |title: &str, text: &str| (title.to_owned(), text.to_owned());
    assert_eq!(of("call.mos"), text("opinion score (MOS)", "4.20"));
    assert_eq!(of("ip.forward.path_mtu_bytes"), text("path MTU, out, B", "1030"));
    assert_eq!(of("settling.peak_bps"), text("largest second, kb/s", "0.1"));
    assert_eq!(of("file.intact"), text("file intact", "yes"));
    assert_eq!(FLOW.row("loss_rate").written(0.031), "3.10");
    assert_eq!(FLOW.row("sent").written(12_345.0), "12 345");
    assert_eq!(FLOW.row("timeouts").written(0.4), "0.4", "a mean of counts");
    assert_eq!(FLOW.row("loss_rate").text(&FlowSummary::default()), text::UNKNOWN);
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
        dscp: Some([("CS0".to_owned(), 3), ("EF".to_owned(), u64::from(first))].into()),
        ecn: Some([("ect0".to_owned(), 4)].into()),
        ttl_min: Some(first + 200),
        ttl_max: Some(first + 201),
        path_mtu_bytes: Some(u32::from(first) + 1000),
    }
}

/// A summary in which everything is known, each number another one.
fn all_waits(mut next: impl FnMut() -> f64) -> WaitsSummary {
    let mut wait = || Some(WaitMs { p50: next(), p90: next(), p99: next(), max: next() });
    WaitsSummary {
        for_room_ms: wait(),
        in_transport_ms: wait(),
        for_lost_ms: wait(),
        held_ms: Some(HeldMs {
            congestion_window: Some(next()),
            receiver_window: Some(next()),
            nagle: Some(next()),
            pacing: Some(next()),
        }),
    }
}

pub(crate) fn all_known() -> FlowSummary {
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
            mos: Some(4.2),
            r: Some(85.0),
            played: 96,
            late: 3,
            missing: 1,
            concealed: Some(0.011),
            stretched: Some(0.012),
            late_played: Some(160),
            discarded: Some(161),
            mouth_to_ear_ms: Some(MouthToEarMs { mean: 81.0, p50: 80.0, p95: 95.0 }),
            burst_ratio: 1.5,
            gaps: Some(162),
            longest_gap_ms: Some(60.0),
            gaps_in_a_minute: Some(128),
            usable: Some(true),
            outside_model: vec![OutsideModel {
                input: ModelInput::BurstRatio,
                value: 9.0,
                range: (1.0, 8.0),
            }],
            windows: Some(CallWindows { count: 163, seconds: 9.5 }),
            opening_second: Some(OpeningSecond { lost: 0.013, first_target_ms: Some(164) }),
            codec: "g711".to_owned(),
            scale: "nb".to_owned(),
            playout: "adaptive".to_owned(),
            concealment: "none".to_owned(),
            basis: Basis::OneWay,
            direction: Some(Direction::Return),
            other_receiver: Some(OtherReceiver {
                mos: Some(4.1),
                r: Some(84.0),
                played: 97,
                late: 2,
                mouth_to_ear_ms: Some(101.0),
                burst_ratio: 1.25,
                longest_gap_ms: 40.0,
                gaps_in_a_minute: 129,
                usable: Some(true),
                direction: Some(Direction::Forward),
                ..OtherReceiver::default()
            }),
            patient_receiver: Some(OtherReceiver {
                mos: Some(4.05),
                r: Some(83.0),
                played: 98,
                late: 1,
                mouth_to_ear_ms: Some(241.0),
                burst_ratio: 1.2,
                longest_gap_ms: 20.0,
                gaps_in_a_minute: 165,
                usable: Some(true),
                direction: Some(Direction::Forward),
                ..OtherReceiver::default()
            }),
            receiver_matters: Some(ReceiverMatters { playout: String::new(), mos: 4.0 }),
        })),
        one_way_delay_ms: Some(delay()),
        round_trip_delay_ms: Some(delay()),
        turn_round_ms: Some(TurnRoundMs { p50: next(), p90: next(), p99: next(), max: next() }),
        ipdv_ms: Some(IpdvMs { p50: next(), p90: next(), p95: next(), p99: next(), max: next() }),
        send_buffer_bytes: Some(MeanMax { mean: next(), max: next() }),
        waits: Some(Box::new(all_waits(&mut next))),
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
            queue_delay_ms: Some(OnPathMs { p50: next(), p99: next(), max: next() }),
            round_trip_ms: Some(OnPathMs { p50: next(), p99: next(), max: next() }),
            near: Some("192.0.2.1:5000".to_owned()),
            far: Some("192.0.2.2:443".to_owned()),
            name: Some("www.example".to_owned()),
        })),
        multipath: Some(MultipathSummary { fell_back: Some(false), subflows_max: Some(127) }),
        legs: Some(Box::new(LegsSummary { forward: leg(130), back: Some(leg(150)) })),
        breaks: Vec::new(),
        loss_independent: Some(next()),
        in_time_independent: Some(next()),
        bad_seconds: Vec::new(),
        by_change: Vec::new(),
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
            name: "a.bin".to_owned(),
            sha256: "00".to_owned(),
            intact: Some(true),
            kept_as: Some("b.bin".to_owned()),
        })),
        transfer: Some(Box::new(TransferSummary {
            start: Some("2026-11-29 16:00:00.000000".to_owned()),
            end: Some("2026-11-29 16:00:01.000000".to_owned()),
            size_bytes_min: Some(148),
            size_bytes_max: Some(149),
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
        opening: Some(Box::new(OpeningSummary {
            name_ms: Some(next()),
            socket_ms: Some(next()),
            handshake_ms: Some(next()),
            first_delivered_ms: Some(next()),
        })),
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
