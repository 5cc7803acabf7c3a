//! What the disciplines of a link's queue do for a call beside transfers.

use std::collections::BTreeMap;

use crate::common;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::{LinkSummary, RunSummary};
use talkpath_measure::{DropCause, SeriesKind};

fn summarised(text: &str) -> RunSummary {
    summarise(&common::run(text), &BTreeMap::new())
}

/// A call beside an upload over a path.
fn call_beside_upload(path: &str, transport: &str) -> RunSummary {
    summarised(&format!(
        "name = \"x\"\nduration = \"60 s\"\nwarm_up = \"10 s\"\npath = {path}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\", echo = true }}\n\
         [flow.upload]\ntransport = {transport}\nworkload = \"bulk\"\n"
    ))
}

const CUBIC: &str = "{ kind = \"tcp\", cc = \"cubic\" }";

fn up(summary: &RunSummary) -> &LinkSummary {
    &summary.links["up"]
}

/// Median round trip of the call, in ms.
fn round_trip(summary: &RunSummary) -> f64 {
    summary.flows["call"].round_trip_delay_ms.as_ref().expect("the call echoes").p50
}

#[test]
fn fq_codel_on_the_uplink_cures_the_call_that_an_upload_made_unusable() {
    let sick = call_beside_upload("\"home-adsl\"", CUBIC);
    let cured = call_beside_upload("\"home-adsl-fq\"", CUBIC);
    assert!(round_trip(&sick) > 400.0, "{}", round_trip(&sick));
    assert!(round_trip(&cured) < 70.0, "{}", round_trip(&cured));
    // The upload does not pay for it.
    let goodput = |summary: &RunSummary| summary.flows["upload"].goodput_bps.expect("it sends");
    assert!(goodput(&cured) > 0.95 * goodput(&sick), "{} {}", goodput(&cured), goodput(&sick));
    assert!(cured.flows["call"].lost == 0, "FQ-CoDel drops nothing of the call");
    // Drop-tail drops for room alone, FQ-CoDel as a signal alone.
    let drops = |summary| (up(summary).dropped_by.full > 0, up(summary).dropped_by.aqm > 0);
    assert_eq!((drops(&sick), drops(&cured)), ((true, false), (false, true)));
}

/// The median round trip of a call beside an upload over 1 Mb/s and 40 ms behind this queue, and what the
/// link did.
fn behind(queue: &str, transport: &str) -> (f64, LinkSummary) {
    let summary = call_beside_upload(
        &format!(
            "{{ up = {{ rate = \"1 Mbps\", delay = \"20 ms\", queue = {queue} }}, down = {{ delay = \"20 ms\" }} }}"
        ),
        transport,
    );
    (round_trip(&summary), up(&summary).clone())
}

#[test]
fn codel_shortens_the_queue_and_fair_queueing_lets_the_call_pass_it() {
    let (codel, its_link) = behind("\"codel\"", CUBIC);
    let (fq, fair_link) = behind("\"fq\"", CUBIC);
    // One queue for both: the call waits as long as the upload does, which CoDel holds near its target of 5
    // ms and one full packet of 12 ms.
    assert!((50.0..90.0).contains(&codel), "{codel}");
    let delay = its_link.queue_delay_ms.expect("it was measured");
    assert!((codel - 40.0 - delay.p50).abs() < 12.0, "{codel} {delay:?}");
    // The upload fills its own queue, all of the 1000 packets if it can, and the call waits for one full
    // packet at most.
    assert!((41.0..=55.0).contains(&fq), "{fq}");
    let delay = fair_link.queue_delay_ms.expect("it was measured");
    assert!(delay.p99 > 1000.0, "{delay:?}");
}

#[test]
fn a_transport_that_takes_marks_is_marked_and_loses_nothing() {
    let dccp = |ecn: bool| format!("{{ kind = \"dccp-ccid2\", ecn = {ecn} }}");
    let (_, marked) = behind("{ kind = \"codel\", ecn = true }", &dccp(true));
    assert!(marked.marked > 10 && marked.dropped_by.full == 0, "{marked:?}");
    let (_, dropped) = behind("{ kind = \"codel\", ecn = true }", &dccp(false));
    assert!(dropped.marked == 0 && dropped.dropped_by.aqm > 10, "{dropped:?}");
    let (_, unused) = behind("{ kind = \"codel\", ecn = false }", &dccp(true));
    assert!(unused.marked == 0 && unused.dropped_by.aqm > 10, "{unused:?}");
}

#[test]
fn a_message_that_codel_dropped_is_told_from_one_that_found_no_room() {
    // 1100 datagrams at once find room for 1000. CoDel then shortens the queue of 8 s.
    let record = common::run(
        "name = \"x\"\nduration = \"60 s\"\n\
         path = { up = { rate = \"1 Mbps\", delay = \"20 ms\", queue = \"codel\" }, down = { delay = \"20 ms\" } }\n\
         [flow.a]\ntransport = \"udp\"\nworkload = { kind = \"burst\", count = 1100, size = \"1000 B\" }\n",
    );
    let missing = |cause| {
        let rows = &record.flows[0].forward.messages;
        rows.iter().filter(|row| row.drop_cause == Some(cause)).count() as u64
    };
    let summary = summarise(&record, &BTreeMap::new());
    let by = &up(&summary).dropped_by;
    assert!(by.full > 50 && by.aqm > 50, "{by:?}");
    assert_eq!((missing(DropCause::Queue), missing(DropCause::Aqm)), (by.full, by.aqm));
    assert_eq!(summary.flows["a"].lost, by.full + by.aqm);
}

#[test]
fn the_marks_of_a_flow_are_those_of_its_link() {
    let behind = |transport: &str, workload: &str, queue: &str| {
        common::run(&format!(
            "name = \"x\"\nduration = \"60 s\"\n[path]\n\
             up = {{ rate = \"1 Mbps\", delay = \"20 ms\", queue = {queue} }}\n\
             down = {{ rate = \"1 Mbps\", delay = \"20 ms\", queue = {queue} }}\n\
             [flow.a]\ntransport = {transport}\nworkload = {workload}\n"
        ))
    };
    let codel = "{ kind = \"codel\", ecn = true }";
    let burst = "{ kind = \"burst\", count = 500, size = \"1000 B\" }";
    let udp = behind("{ kind = \"udp\", ecn = true }", burst, codel);
    let ecn = udp.flows[0].ecn.expect("the scenario wants it");
    assert!(udp.links[0].marked > 30 && udp.links[0].dropped == 0, "{:?}", udp.links[0]);
    assert_eq!((ecn.capable, ecn.marked_forward), (Some(true), Some(udp.links[0].marked)));
    assert_eq!((ecn.marked_return, ecn.echoed_forward), (None, None));
    // Without the key nothing takes marks, and nothing is said of them.
    let deaf = behind("\"udp\"", burst, codel);
    assert!(deaf.flows[0].ecn.is_none() && deaf.links[0].marked == 0 && deaf.links[0].dropped_by_aqm > 30);
    // A datagram of three packets is marked once (RFC 3168 §5.3). The first of each is what finds 20 waiting,
    // or a later one: all are there at once.
    let mark_at = "{ kind = \"drop-tail\", limit = \"500 packets\", mark_at = \"20 packets\" }";
    let parts = "{ kind = \"burst\", count = 100, size = \"4000 B\" }";
    let cut = behind("{ kind = \"udp\", ecn = true }", parts, mark_at);
    let ecn = cut.flows[0].ecn.expect("the scenario wants it");
    // 300 packets, of which one is in service and 20 wait unmarked: those of the first seven datagrams.
    assert_eq!((cut.links[0].marked, ecn.marked_forward), (300 - 21, Some(100 - 7)));
    // A connection with an echo, marked both ways. An echo of a mark goes on until the sender has answered
    // (§6.1.3).
    let call = "{ kind = \"cbr\", rate = \"1200 kbps\", size = \"1000 B\", echo = true }";
    let tcp = behind("{ kind = \"tcp\", ecn = true }", call, codel);
    let ecn = tcp.flows[0].ecn.expect("the scenario wants it");
    assert_eq!(ecn.capable, Some(true));
    assert!(ecn.marked_forward >= Some(tcp.links[0].marked) && tcp.links[0].marked > 5, "{ecn:?}");
    assert!(ecn.echoed_forward >= ecn.marked_forward, "{ecn:?}");
    assert!(ecn.marked_return >= Some(tcp.links[1].marked), "{ecn:?}");
}

#[test]
fn the_delay_of_a_queue_over_time_is_recorded_with_its_figures() {
    let record = common::run(
        "name = \"x\"\nduration = \"10 s\"\npath = \"home-adsl\"\n\
         [flow.upload]\ntransport = { kind = \"tcp\", cc = \"cubic\" }\nworkload = \"bulk\"\n",
    );
    let of = |kind| {
        let series = record.series.iter().find(|series| series.kind == kind && series.entity == "up");
        series.expect("of the uplink").points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
    };
    let (packets, ms) = (of(SeriesKind::Queue), of(SeriesKind::QueueDelay));
    // A full packet takes 12 ms, and the one in service is not among those that wait.
    assert!((ms / 12.0 - packets).abs() <= 1.0, "{ms} ms of {packets} packets");
    assert!(record.links[0].queue_delay.p99.as_millis_f64() <= ms * 1.004);
}

/// A call with this DSCP beside an upload over 1 Mb/s behind a queue of this kind with classes.
fn behind_classes(kind: &str, dscp: &str, upload: &str) -> RunSummary {
    let classes = "classes = [{ dscp = [\"EF\"] }, { dscp = [\"AF41\"] }]";
    summarised(&format!(
        "name = \"x\"\nduration = \"60 s\"\nwarm_up = \"10 s\"\n\
         [path]\nup = {{ rate = \"1 Mbps\", delay = \"20 ms\", queue = {{ kind = \"{kind}\", {classes} }} }}\n\
         down = {{ delay = \"20 ms\" }}\n\
         [flow.call]\ntransport = \"udp\"\n{dscp}\nworkload = {{ kind = \"voice\", echo = true }}\n\
         [flow.upload]\ntransport = {CUBIC}\n{upload}\nworkload = \"bulk\"\n"
    ))
}

#[test]
fn a_call_of_a_better_class_waits_for_one_packet_at_most_and_without_its_dscp_for_the_whole_queue() {
    let (marked, plain) = ("dscp = \"EF\"", "");
    for kind in ["priority", "drr"] {
        // The packet in service takes 12 ms at most. With DRR a turn of the upload may come before the call.
        let waits = if kind == "drr" { 24.0 } else { 12.0 };
        let favoured = round_trip(&behind_classes(kind, marked, plain));
        assert!((41.0..=43.0 + waits).contains(&favoured), "{kind}: {favoured}");
        for (call, upload) in [(plain, plain), (marked, marked)] {
            let shared = round_trip(&behind_classes(kind, call, upload));
            assert!(shared > 1000.0, "{kind}, both in one class: {shared}");
        }
    }
}

#[test]
fn transfers_of_two_classes_share_a_link_as_their_quanta_do() {
    let run = |kind: &str| {
        summarised(&format!(
            "name = \"x\"\nduration = \"60 s\"\nwarm_up = \"10 s\"\n\
             [path]\nup = {{ rate = \"4 Mbps\", delay = \"20 ms\", queue = {{ {kind}, limit = \"100 packets\" }} }}\n\
             down = {{ delay = \"20 ms\" }}\n\
             [flow.a]\ntransport = {CUBIC}\ndscp = \"AF41\"\nworkload = \"bulk\"\n\
             [flow.b]\ntransport = {CUBIC}\nworkload = \"bulk\"\n"
        ))
    };
    let goodput = |summary: &RunSummary, flow: &str| summary.flows[flow].goodput_bps.expect("it sends");
    let shared = run("kind = \"drr\", classes = [{ dscp = [\"AF41\"], quantum = \"4500 B\" }]");
    // 4500 B to the default of 1500 B.
    let ratio = goodput(&shared, "a") / goodput(&shared, "b");
    assert!((ratio / 3.0 - 1.0).abs() < 0.02, "{ratio}");
    let strict = run("kind = \"priority\", classes = [{ dscp = [\"AF41\"] }]");
    // The first class takes what it can; what its window leaves open goes to the other one.
    assert!(goodput(&strict, "a") > 20.0 * goodput(&strict, "b"), "{}", goodput(&strict, "b"));
}

/// 3000 messages of a call with `keys` on its uplink.
fn over_a_wire(keys: &str, transport: &str) -> RunSummary {
    summarised(&format!(
        "name = \"x\"\nduration = \"60 s\"\n[path]\nup = {{ rate = \"1 Mbps\", delay = \"20 ms\", {keys} }}\n\
         down = {{ delay = \"20 ms\" }}\n[flow.call]\ntransport = {transport}\nworkload = {{ kind = \"voice\" }}\n"
    ))
}

#[test]
fn copies_of_datagrams_are_duplicates_and_streams_do_not_notice_them() {
    let udp = over_a_wire("duplicate = \"5%\"", "\"udp\"");
    let (call, up) = (&udp.flows["call"], up(&udp));
    assert_eq!((call.sent, call.received, call.lost), (3000, 3000, 0));
    // The last packet arrives after the window.
    assert_eq!((call.duplicates, up.forwarded), (up.repeated, 2999 + up.repeated));
    // Binomial, four standard errors.
    assert!((up.repeated as f64 - 150.0).abs() < 4.0 * (150.0 * 0.95_f64).sqrt(), "{}", up.repeated);
    for transport in [CUBIC, "\"quic-stream\""] {
        let call = &over_a_wire("duplicate = \"5%\"", transport).flows["call"];
        // What is due before the connection is open is never sent.
        assert_eq!(
            (call.received, call.duplicates),
            (3000 - call.ledger.expect("of a simulated run").not_open, 0),
            "{transport}"
        );
    }
}

#[test]
fn a_message_is_lost_only_if_its_packet_and_the_copies_of_it_are() {
    // Each packet comes to the second link twice, and every second packet is lost there: one of each pair.
    let text = "name = \"x\"\nduration = \"20 s\"\n[link.first]\nrate = \"1 Mbps\"\nduplicate = 1.0\n\
                [link.second]\nrate = \"2 Mbps\"\nloss = { kind = \"periodic\", period = 2 }\n[link.back]\nrate = \"1 Mbps\"\n\
                [flow.call]\ntransport = \"udp\"\nworkload = { kind = \"voice\" }\nroute = [\"first\", \"second\"]\nreturn_route = [\"back\"]\n";
    for rows in [true, false] {
        let record = if rows { common::run(text) } else { common::run_without_rows(text) };
        let summary = summarise(&record, &BTreeMap::new());
        let call = &summary.flows["call"];
        assert_eq!(
            (call.sent, call.received, call.lost, call.duplicates),
            (1000, 1000, 0, 0),
            "rows: {rows}"
        );
        assert_eq!(summary.links["second"].lost, 1000);
    }
}

#[test]
fn a_damaged_datagram_is_missing_and_dccp_takes_those_whose_header_is_whole() {
    let record = common::run(
        "name = \"x\"\nduration = \"60 s\"\n[path]\nup = { rate = \"1 Mbps\", damage = 0.1 }\ndown = {}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = { kind = \"voice\" }\n",
    );
    let rows = &record.flows[0].forward.messages;
    let missing = rows.iter().filter(|row| row.drop_cause == Some(DropCause::Damage)).count() as u64;
    assert_eq!(
        (missing, record.links[0].forwarded, record.links[0].lost),
        (record.links[0].damaged, 3000, 0)
    );
    assert!((missing as f64 - 300.0).abs() < 4.0 * (300.0 * 0.9_f64).sqrt(), "{missing}");
    // 172 B of data, and UDP's and DCCP's headers of 20 to 32 B: one packet of six to ten is hit there.
    let lost_share = |coverage: u8| {
        let transport = format!("{{ kind = \"dccp-ccid2\", checksum_coverage = {coverage} }}");
        let summary = over_a_wire("damage = 0.3", &transport);
        let call = &summary.flows["call"];
        call.lost as f64 / (call.lost + call.received) as f64
    };
    let (whole, header) = (lost_share(0), lost_share(1));
    assert!((whole - 0.3).abs() < 0.08 && (0.05..0.25).contains(&(header / whole)), "{whole}, {header}");
    let framed = over_a_wire("damage = { kind = \"frame-check\", share = 0.1 }", "\"udp\"");
    assert_eq!((framed.flows["call"].lost, up(&framed).lost), (up(&framed).damaged, up(&framed).damaged));
    let tcp = over_a_wire("damage = 0.02", CUBIC);
    assert_eq!(
        tcp.flows["call"].received,
        3000 - tcp.flows["call"].ledger.expect("of a simulated run").not_open
    );
    // What is damaged at the end of the window is sent again after it.
    let (damaged, again) = (up(&tcp).damaged, tcp.flows["call"].retransmissions);
    assert!(damaged > 10 && again.is_some_and(|again| 2 * again > damaged), "{damaged} {again:?}");
}
