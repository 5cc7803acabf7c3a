use talkpath_config::{Codec, Impairment, Rated, Scale};
use talkpath_units::Bytes;

use super::*;
use crate::summary::{
    Basis, CellSummary, Clock, JudgedBy, SUMMARY_FORMAT, StateAgeMs, Summary, TurnRoundMs, Understood,
};
use crate::testing::{flow, leg, message, ms, run};
use crate::{
    CallTerms, Carriage, ClockRecord, Fate, LinkRecord, MachineRecord, PlayoutRule, QueueDelayRecord, Terms,
    TurnRoundRecord,
};

const PLAIN_CALL: CallTerms = CallTerms {
    codec: Codec::G711,
    rated: Some(Rated {
        scale: Scale::Narrow,
        impairment: Impairment { ie: 0.0, bpl: 4.3 },
        bursty_bpl: None,
        source: "ITU-T G.113",
    }),
    carriage: Carriage { copies: 1, earlier: 0 },
    frame: Duration::from_millis(20),
    playout: PlayoutRule::Ramjee,
    is_concealed: false,
    others: false,
};

fn summarised(flow: &FlowRecord) -> FlowSummary {
    summarise_flow(flow, &(Instant::ZERO..Instant::from_secs(60)))
}

fn echoing() -> FlowRecord {
    let mut call = flow(&[Some(10), Some(12), None, Some(14), Some(10)]);
    call.echo =
        Some(leg(vec![message(0, Some(30)), message(1, Some(36)), message(3, None), message(4, Some(32))]));
    call
}

#[test]
fn an_echo_flow_is_judged_by_its_round_trips() {
    let call = summarised(&echoing());
    assert_eq!((call.sent, call.received, call.lost), (5, 3, 2));
    assert_eq!((call.lost_forward, call.lost_return), (Some(1), Some(1)));
    assert_eq!(call.loss_rate, Some(0.4));
    assert_eq!(call.loss_runs.histogram, [0, 1]);
    assert_eq!(call.round_trip_delay_ms.as_ref().map(|delay| (delay.p50, delay.max)), Some((32.0, 36.0)));
    assert_eq!(call.one_way_delay_ms.as_ref().map(|delay| (delay.min, delay.max)), Some((10.0, 14.0)));
    assert_eq!(call.ipdv_ms.map(|ipdv| ipdv.max), Some(6.0));
    // Echoes at 30, 56 and 112 ms; the first message was sent at 0.
    assert_eq!(call.first_to_last_received_ms, Some(82.0));
    assert_eq!(call.first_sent_to_last_received_ms, Some(112.0));
    assert_eq!(call.net_rate_pps, Some(3.0 / 0.082));
    assert_eq!(call.error_adjusted_rate_pps, Some(3.0 / 0.082 * 0.6));
    assert_eq!(call.in_time, Some(0.6));
}

#[test]
fn a_burst_alone_is_told_in_words_and_a_share_in_time_needs_a_clock() {
    let mut test = flow(&[Some(10), Some(12), Some(160)]);
    let call = summarised(&test);
    assert_eq!((call.verdict, call.in_time), (None, Some(2.0 / 3.0)));
    (test.info.burst, test.info.clocked, test.info.terms.deadline) = (true, false, None);
    let burst = summarised(&test);
    assert_eq!((burst.verdict.as_deref(), burst.in_time), (Some("great"), None));
    test.info.terms.deadline = Some(Duration::from_millis(11));
    assert_eq!(summarised(&test).in_time, Some(1.0 / 3.0));
}

#[test]
fn two_flows_of_a_call_between_untrusted_clocks_are_rated_by_half_the_round_trip() {
    let way = |name: &str, delays: &[Option<u64>]| {
        let mut flow = flow(delays);
        flow.info.name = name.to_owned();
        flow.info.clock_trusted = false;
        flow.info.terms = Terms { call: Some(PLAIN_CALL), floor: Some(3.6), ..flow.info.terms };
        flow
    };
    let record = run(vec![way("call-up", &[Some(330); 50]), way("call-down", &[Some(90); 50])]);
    let both = summarise(&record, &BTreeMap::new());
    let delays = |flow: &FlowSummary| flow.call.clone().unwrap().mouth_to_ear_ms.unwrap().mean;
    assert!(both.flows.values().all(|flow| (delays(flow) - 250.0).abs() < 1e-3 && flow.in_time.is_none()));
    let judged = judge::judge(&both, "call").unwrap();
    assert_eq!((judged.basis, judged.floor), (Basis::HalfRoundTrip, 3.6));
    // A lone direction has no round trip.
    let alone = summarise(&run(vec![way("call-up", &[Some(330); 50])]), &BTreeMap::new());
    assert_eq!((&alone.flows["call-up"].call, judge::judge(&alone, "call-up")), (&None, None));
}

#[test]
fn figures_of_what_arrived_are_unknown_if_nobody_knows_what_arrived() {
    let mut alone = flow(&[None; 150]);
    alone.forward.messages.iter_mut().for_each(|row| row.fate = Fate::Unfinished);
    alone.info.terms = Terms { call: Some(PLAIN_CALL), is_state: true, ..alone.info.terms };
    let of_window = |flow: &FlowRecord| summarise_flow(flow, &(ms(0)..ms(3000)));
    let silent = of_window(&alone);
    assert_eq!((silent.goodput_bps, silent.in_time), (Some(0.0), Some(0.0)));
    assert!(silent.settling.is_some() && silent.call.is_some());
    alone.forward.arrivals_unknown = true;
    let unknown = of_window(&alone);
    assert_eq!((unknown.goodput_bps, unknown.in_time), (None, None));
    assert!(unknown.settling.is_none() && unknown.call.is_none());
    assert_eq!(judge::judge_flow("call", &unknown), None);
    // An upload is judged by its goodput, and not by none.
    (alone.info.clocked, alone.info.terms) = (false, Terms::default());
    assert_eq!(judge::judge_flow("upload", &of_window(&alone)), None);
}

#[test]
fn of_an_echo_whose_far_end_went_away_the_round_trips_are_rated() {
    let mut call = echoing();
    call.info.terms.call = Some(PLAIN_CALL);
    call.forward.messages.iter_mut().for_each(|row| row.received = None);
    call.forward.arrivals_unknown = true;
    let call = summarised(&call);
    assert_eq!((call.goodput_bps, call.in_time), (None, Some(0.6)));
    let rated = call.call.unwrap();
    assert_eq!((rated.basis, rated.played, rated.missing), (Basis::HalfRoundTrip, 3, 2));
}

#[test]
fn the_age_of_a_state_counts_in_the_window_and_states_from_before_it_are_there() {
    // Due each 20 ms; the window is 40 to 100 ms. At 40 ms the state of 0 ms is there, then nothing newer.
    let mut states = flow(&[Some(30), None, None, None, None, None]);
    states.info.terms.is_state = true;
    let ages = |flow: &FlowRecord| summarise_flow(flow, &(ms(40)..ms(100))).state_age_ms;
    assert_eq!(ages(&states), Some(StateAgeMs { p50: 60.0, p99: 80.0 }));
    states.info.clock_trusted = false;
    assert_eq!(ages(&states), None);
    assert_eq!(ages(&flow(&[Some(30); 6])), None);
}

#[test]
fn an_interval_of_what_is_never_negative_does_not_reach_below_zero() {
    let runs: Vec<RunSummary> = [1, 2, 900].map(|delay| run_with_copies(0, delay, delay)).into();
    let cells = cell_summaries(&runs);
    let p90 = &cells[0].flows["call-1"]["one_way_delay_ms.p90"];
    let (low, high) = p90.ci95.unwrap();
    assert!(low == 0.0 && high > 1_000.0, "{low} to {high}");
}

#[test]
fn an_interval_of_a_share_is_no_narrower_than_its_messages_make_it() {
    let cell = |lost: [u64; 4], of: u64| {
        let runs = lost.map(|lost| {
            let mut run = run_with_copies(0, 0, 20);
            let flow = run.flows.get_mut("call-1").unwrap();
            (flow.sent, flow.received, flow.lost, flow.unfinished, flow.refused) =
                (of, of - lost, lost, 0, 0);
            flow.loss_rate = Some(lost as f64 / of as f64);
            flow.in_time = Some(1.0 - lost as f64 / of as f64);
            (flow.loss_independent, flow.in_time_independent) = (Some(of as f64), None);
            run
        });
        let spreads = cell_summaries(&runs).remove(0).flows.remove("call-1").unwrap();
        ["loss_rate", "in_time"].map(|path| spreads[path].ci95.unwrap())
    };
    // Rule of three: 3 of 4 x 50 messages.
    assert_eq!(cell([0; 4], 50), [(0.0, 0.015), (0.985, 1.0)]);
    assert_eq!(cell([50; 4], 50), [(0.985, 1.0), (0.0, 0.015)]);
    // Repetitions that lost as many say no more than their 200 messages do.
    let [(low, high), _] = cell([5; 4], 50);
    assert!(low < 0.07 && 0.14 < high, "{low} to {high}");
    // Repetitions that differ by more keep Student's interval: 0.1 ± 3.18 x 0.2 / 2.
    let [(low, high), _] = cell([0, 0, 0, 20], 50);
    assert!(low == 0.0 && (high - 0.418).abs() < 0.001, "{low} to {high}");
}

#[test]
fn an_interval_of_what_copies_are_judged_by_stays_on_its_scale() {
    let interval = |by, figures: [f64; 3]| {
        let runs: Vec<RunSummary> = figures
            .map(|figure| {
                let mut run = run_with_copies(0, 0, 20);
                let group = run.groups.get_mut("call").unwrap();
                group.summed_up = true;
                let judged = group.judged.as_mut().unwrap();
                (judged.by, judged.median, judged.worst) = (by, figure, figure);
                run
            })
            .into();
        let spreads = &cell_summaries(&runs)[0].groups["call"];
        assert_eq!(spreads["judged.median"].ci95, spreads["judged.worst"].ci95);
        spreads["judged.worst"].ci95.unwrap()
    };
    assert_eq!(interval(JudgedBy::InTime, [0.2, 1.0, 1.0]), (0.0, 1.0));
    assert_eq!(interval(JudgedBy::Mos, [1.0, 4.4, 4.4]), (1.0, 4.5));
    assert!(interval(JudgedBy::Goodput, [1e6, 2e6, 3e6]).1 > 4e6);
}

#[test]
fn without_echo_there_is_no_return_and_no_round_trip() {
    let call = summarised(&flow(&[Some(10), None]));
    assert_eq!((call.lost_forward, call.lost_return), (Some(1), None));
    assert!(call.round_trip_delay_ms.is_none() && call.one_way_delay_ms.is_some());
}

#[test]
fn one_way_figures_off_an_untrusted_clock_are_unknown() {
    let mut call = flow(&[Some(10), Some(12), Some(14)]);
    call.info.clock_trusted = false;
    let call = summarised(&call);
    assert!(call.one_way_delay_ms.is_none() && call.ipdv_ms.is_none() && call.rtp_jitter_ms.is_none());
    assert_eq!(call.first_sent_to_last_received_ms, None);
    assert_eq!(call.in_time, None);
    // What one clock alone can measure stays.
    assert_eq!(call.first_to_last_received_ms, Some(44.0));
    assert_eq!(call.received, 3);
}

#[test]
fn round_trips_need_no_second_clock() {
    let mut call = echoing();
    call.info.clock_trusted = false;
    let call = summarised(&call);
    assert!(call.one_way_delay_ms.is_none());
    assert!(call.round_trip_delay_ms.is_some() && call.ipdv_ms.is_some() && call.rtp_jitter_ms.is_some());
    assert_eq!(call.in_time, Some(0.6));
}

#[test]
fn what_was_due_outside_the_window_is_left_out() {
    // Due at 0, 20, 40, 60 ms; the window is 20 to 60 ms; the last of it arrives after the window.
    let call = summarise_flow(&flow(&[None, Some(10), Some(100), None]), &(ms(20)..ms(60)));
    assert_eq!((call.sent, call.received, call.lost), (2, 2, 0));
    assert_eq!(call.one_way_delay_ms.unwrap().max, 100.0);
}

#[test]
fn counters_that_the_arena_does_not_know_stay_unknown() {
    let mut call = flow(&[Some(10)]);
    let none = summarised(&call);
    assert!(none.retransmit_rate.is_none() && none.cwnd_packets.is_none() && none.blocked_ms.is_none());
    assert!(none.send_buffer_bytes.is_none());
    call.counters = FlowCounters {
        data_packets: Some(200),
        retransmissions: Some(5),
        timeouts: None,
        cwnd_packets_mean: Some(f64::NAN),
        window_packets_mean: Some(12.5),
        send_buffer_mean: Some(100.5),
        send_buffer_max: Some(320),
        blocked: Some(Duration::from_micros(1_500)),
        ..FlowCounters::default()
    };
    let some = summarised(&call);
    assert_eq!((some.retransmit_rate, some.cwnd_packets, some.blocked_ms), (Some(0.025), None, Some(1.5)));
    assert_eq!(some.send_buffer_bytes, Some(MeanMax { mean: 100.5, max: 320.0 }));
    assert_eq!((some.retransmissions, some.timeouts, some.window_packets), (Some(5), None, Some(12.5)));
}

/// Two copies of a flow and a link, in `cell` and `repetition`.
fn run_with_copies(cell: u64, repetition: u64, delay_ms: u64) -> RunSummary {
    let copy = |number: u64| {
        let mut copy = flow(&[Some(delay_ms), Some(delay_ms), None]);
        copy.info.name = format!("call-{number}");
        copy
    };
    let mut record = run(vec![copy(1), copy(2)]);
    (record.cell, record.repetition, record.seed) = (cell, repetition, 7 + repetition);
    record.links = vec![LinkRecord {
        name: "up".to_owned(),
        discipline: "codel",
        queue_packets_mean: 1.5,
        queue_packets_p99: 4,
        queue_packets_max: 6,
        queue_delay: QueueDelayRecord {
            mean: Duration::from_micros(2_500),
            p50: Duration::from_millis(2),
            p95: Duration::from_millis(6),
            p99: Duration::from_millis(7),
        },
        dropped_by_aqm: 1,
        marked: 5,
        forwarded: 10,
        dropped: 2,
        lost: 1,
        repeated: 0,
        damaged: 0,
        utilisation: f64::NAN,
    }];
    summarise(&record, &BTreeMap::from([("path.up.loss".to_owned(), serde_json::json!(0.01))]))
}

#[test]
fn copies_form_a_group_and_single_flows_do_not() {
    let both = run_with_copies(0, 0, 30);
    assert_eq!(both.flows.keys().collect::<Vec<_>>(), ["call-1", "call-2"]);
    let group = &both.groups["call"];
    assert_eq!((group.flows, group.sent, group.lost, group.jain_index), (2, 6, 2, Some(1.0)));
    assert_eq!(group.one_way_delay_ms_p50_mean, Some(30.0));
    assert!(summarise(&run(vec![flow(&[Some(1)])]), &BTreeMap::new()).groups.is_empty());
}

#[test]
fn more_than_500_copies_are_summed_up_and_fewer_are_not() {
    let copies = |count: u64| {
        let copy = |number| {
            let mut copy = flow(&[Some(30 + number % 3), None]);
            copy.info.name = format!("call-{number}");
            copy
        };
        let mut beside = flow(&[Some(5)]);
        beside.info.name = "call-center".to_owned();
        beside.info.group.clone_from(&beside.info.name);
        run((1..=count).map(copy).chain([beside]).collect())
    };
    let all = copies(MAX_LISTED_COPIES);
    let mut summary = summarise(&all, &BTreeMap::new());
    let listed = summary.clone();
    remove_figures_of_copies(&mut summary, &all, &BTreeSet::new());
    assert_eq!(summary, listed);

    let all = copies(MAX_LISTED_COPIES + 1);
    let mut summary = summarise(&all, &BTreeMap::new());
    let listed = summary.clone();
    remove_figures_of_copies(&mut summary, &all, &BTreeSet::from(["call-7"]));
    assert_eq!(summary, listed, "a threshold is on one of them");
    remove_figures_of_copies(&mut summary, &all, &BTreeSet::from(["call-center"]));
    assert_eq!(summary.flows.keys().collect::<Vec<_>>(), ["call-center"]);
    let group = &summary.groups["call"];
    assert_eq!((group.summed_up, group.flows, group.sent, group.lost), (true, 501, 1002, 501));
    assert_eq!(group.one_way_delay_ms_p50_mean, Some(31.0));
    let of_group = serde_json::to_value(group).unwrap();
    let cell = cell_summaries(&[summary]).remove(0);
    assert_eq!(cell.flows.keys().collect::<Vec<_>>(), ["call-center"]);
    assert_eq!(cell.groups["call"]["sent"].median, 1002.0);
    for (path, spread) in cell.groups["call"].iter() {
        let found = path.split('.').fold(&of_group, |at, key| &at[key]);
        assert_eq!(found.as_f64(), Some(spread.median), "{path}");
    }
}

#[test]
fn the_two_directions_of_a_copy_are_one_copy() {
    let both_ways = |copies: u64| {
        let way = |number, way| {
            let mut flow = flow(&[Some(30)]);
            flow.info.name = format!("call-{number}-{way}");
            flow.info.group = "call".to_owned();
            flow
        };
        let record = run((1..=copies).flat_map(|number| [way(number, "up"), way(number, "down")]).collect());
        let mut summary = summarise(&record, &BTreeMap::new());
        remove_figures_of_copies(&mut summary, &record, &BTreeSet::new());
        summary.flows.len() as u64
    };
    assert_eq!(both_ways(MAX_LISTED_COPIES), 2 * MAX_LISTED_COPIES);
    assert_eq!(both_ways(MAX_LISTED_COPIES + 1), 0);
}

#[test]
fn an_undefined_share_of_a_link_does_not_reach_the_summary() {
    let link = &run_with_copies(0, 0, 30).links["up"];
    assert_eq!((link.utilisation, link.queue_packets.mean, link.queue_packets.p99), (0.0, 1.5, 4));
}

#[test]
fn cells_show_each_metric_over_their_repetitions() {
    let runs: Vec<_> = [(1, 0, 50), (0, 0, 10), (0, 1, 20), (0, 2, 60)]
        .map(|(cell, repetition, delay)| run_with_copies(cell, repetition, delay))
        .into();
    let cells = cell_summaries(&runs);
    assert_eq!(cells.iter().map(|cell| (cell.cell, cell.n)).collect::<Vec<_>>(), [(0, 3), (1, 1)]);
    assert_eq!(cells[0].sweep["path.up.loss"], 0.01);
    let metrics = &cells[0].flows["call-1"];
    let p90 = &metrics["one_way_delay_ms.p90"];
    assert_eq!((p90.median, p90.mean), (20.0, 30.0));
    assert!(p90.ci95.is_some_and(|(low, high)| low < 10.0 && high > 60.0));
    assert_eq!(metrics["loss_rate"].mean, 1.0 / 3.0);
    assert_eq!(metrics["loss_runs.max"].mean, 1.0);
    // Words, lists and unknown figures are no metrics.
    let is_none = |path: &str| path.contains("histogram") || path == "verdict" || path == "blocked_ms";
    assert!(!metrics.iter().any(|(path, _)| is_none(path)));
    assert_eq!(cells[1].flows["call-2"]["one_way_delay_ms.max"].ci95, None);
    assert_eq!(p90.n, None);
}

#[test]
fn a_metric_that_a_repetition_does_not_know_says_how_many_do() {
    let mut runs: Vec<_> = [10, 20, 60].map(|delay| run_with_copies(0, delay / 10, delay)).into();
    runs[1].flows.get_mut("call-1").unwrap().one_way_delay_ms = None;
    let cells = cell_summaries(&runs);
    let metrics = &cells[0].flows["call-1"];
    assert_eq!((metrics["one_way_delay_ms.p90"].n, metrics["loss_rate"].n), (Some(2), None));
}

#[test]
fn a_repetition_in_memory_has_no_room_for_what_only_real_sockets_know() {
    // A sweep of 100,000 cells has as many of each.
    assert!(size_of::<FlowSummary>() <= 1280, "{}", size_of::<FlowSummary>());
    // Three pointers of it are for the outcome of a program, for a live path and for the changes of a path.
    assert!(size_of::<RunSummary>() <= 136, "{}", size_of::<RunSummary>());
}

#[test]
fn the_cells_of_a_sweep_share_their_values_and_the_paths_of_their_metrics() {
    let runs: Vec<_> = (0..3).map(|cell| run_with_copies(cell, 0, 10)).collect();
    let cells = cell_summaries(&runs);
    let place = |cell: &CellSummary| cell.flows["call-1"].iter().next().map(|(path, _)| path.as_ptr());
    assert!(cells.iter().all(|cell| place(cell) == place(&cells[0])));
    assert!(cells.iter().zip(&runs).all(|(cell, run)| core::ptr::eq(&*cell.sweep, &*run.sweep)));
}

fn summary() -> Summary {
    let runs = vec![run_with_copies(0, 0, 30)];
    Summary {
        format: SUMMARY_FORMAT,
        talkpath: "0.2.0".to_owned(),
        name: "voice".to_owned(),
        arena: "sim".to_owned(),
        started: "2026-11-21T19:05:07Z".to_owned(),
        wall_s: 0.25,
        cpu_s: 0.5,
        valid: true,
        warnings: vec![],
        percentiles: "exact".to_owned(),
        clock: Clock::from(&ClockRecord::default()),
        cells: cell_summaries(&runs),
        program: None,
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood::default(),
        runs,
    }
}

#[test]
fn a_summary_is_read_as_it_was_written() {
    let mut file = Vec::new();
    summary().write_json(&mut file).unwrap();
    assert_eq!(file.last(), Some(&b'\n'));
    assert_eq!(Summary::read_json(&file[..]).unwrap(), summary());
    let error = Summary::read_json(&b"{\"talkpath\": 1}"[..]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn the_keys_of_summary_json_are_the_promised_ones_in_order() {
    let value = serde_json::to_value(summary()).unwrap();
    let keys = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        keys(&value),
        "format talkpath name arena started wall_s cpu_s valid warnings percentiles clock runs cells comparisons thresholds provenance understood"
    );
    assert_eq!(
        keys(&value["clock"]),
        "offset_ms skew_ppm uncertainty_ms change_uncertainty_ms synchronised trusted why"
    );
    let run = &value["runs"][0];
    assert_eq!(keys(run), "cell sweep repetition seed flows groups links machine");
    let flow = &run["flows"]["call-1"];
    assert_eq!(
        keys(flow),
        "transport cc sent received lost lost_forward lost_return loss_rate duplicates reordered unfinished refused expired \
         ledger opening_ms opening loss_independent loss_runs in_time in_time_independent deadline_ms call floor state_age_ms one_way_delay_ms round_trip_delay_ms turn_round_ms ipdv_ms rtp_jitter_ms rtp_stream goodput_bps \
         settling net_rate_pps \
         error_adjusted_rate_pps first_sent_to_last_received_ms first_to_last_received_ms blocked_ms retransmit_rate \
         retransmissions timeouts cwnd_packets window_packets send_buffer_bytes waits ecn ip multipath legs breaks verdict file transfer"
    );
    assert_eq!(keys(&flow["ledger"]), "due delivered expired refused no_network not_open missing unfinished");
    assert_eq!(keys(&flow["loss_runs"]), "max mean histogram");
    assert_eq!(keys(&flow["one_way_delay_ms"]), "min mean p50 p90 p95 p99 p999 max");
    assert_eq!(keys(&flow["ipdv_ms"]), "p50 p90 p95 p99 max");
    assert_eq!(
        keys(&run["links"]["up"]),
        "discipline queue_packets queue_delay_ms forwarded dropped dropped_by marked lost repeated damaged utilisation"
    );
    assert_eq!(keys(&value["cells"][0]), "cell sweep n flows groups");
    assert_eq!(keys(&value["cells"][0]["flows"]["call-1"]["loss_rate"]), "median mean ci95");
    // Unknown is null, and present.
    assert!(flow["round_trip_delay_ms"].is_null() && flow["blocked_ms"].is_null());
    assert!(flow["file"].is_null() && run["machine"].is_null());
}

#[test]
fn what_an_echoing_host_took_stands_with_its_flow_and_no_other() {
    let turns = TurnRoundRecord {
        flow: "call".to_owned(),
        count: 100,
        p50: Duration::from_micros(80),
        p90: Duration::from_micros(150),
        p99: Duration::from_millis(172),
        max: Duration::from_millis(991),
        too_long: 2,
    };
    let mut record = run(vec![echoing(), flow(&[Some(10)])]);
    record.flows[1].info.name = "other".to_owned();
    let without = summarise(&record, &BTreeMap::new());
    assert!(
        without.flows.values().all(|flow| flow.turn_round_ms.is_none()),
        "a simulation's hosts take no time"
    );
    let unknown = TurnRoundRecord { flow: "nobody".to_owned(), ..turns.clone() };
    record.machine = Some(MachineRecord { turn_rounds: vec![turns, unknown], ..MachineRecord::default() });
    let summary = summarise(&record, &BTreeMap::new());
    let told = TurnRoundMs { p50: 0.08, p90: 0.15, p99: 172.0, max: 991.0 };
    assert_eq!(summary.flows["call"].turn_round_ms, Some(told));
    assert_eq!(summary.flows["other"].turn_round_ms, None);
}

#[test]
fn a_stream_s_goodput_reaches_the_summary() {
    let mut upload = flow(&[]);
    upload.forward.reads = vec![(ms(10), Bytes::new(750_000))];
    assert_eq!(summarised(&upload).goodput_bps, Some(100_000.0));
}
