//! Who opens late is rated by what it missed: messages are due from the flow's start on.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::{FlowSummary, Ledger};
use talkpath_measure::{Fate, RunRecord};
use talkpath_scenario::{Files, Located, Options, Source, load_with_files};
use talkpath_sim::SimArena;
use talkpath_units::Instant;

use crate::common::{run, run_cells, run_without_rows};

/// A loss trace by its text.
struct OneTrace(String);

impl Files for OneTrace {
    fn text(&self, _: &str) -> Result<String, String> {
        Ok(self.0.clone())
    }

    fn locate(&self, _: &str) -> Result<Located, String> {
        Err("there is none".to_owned())
    }
}

fn figures(record: &RunRecord, flow: &str) -> FlowSummary {
    (*summarise(record, &BTreeMap::new()).flows[flow]).clone()
}

/// A call of 10 s there and back over each transport, whose uplink loses its first three packets.
fn calls(due: &str) -> Vec<FlowSummary> {
    let text = format!(
        "duration = \"10 s\"\n\
         [path]\n\
         up = {{ rate = \"10 Mbps\", delay = \"20 ms\", loss = {{ kind = \"trace\", file = \"x\"}} }}\n\
         down = {{ rate = \"10 Mbps\", delay = \"20 ms\" }}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = {{ kind = \"voice\", echo = true }}\ndue = \"{due}\"\n\
         [sweep]\n\"flow.call.transport\" = [\"udp\", \"tcp-nodelay\", \"quic-datagram\", \"dccp-ccid2\"]\n"
    );
    // It begins anew behind its end.
    let first_three = OneTrace(format!("1 1 1{}", " 0".repeat(3_000)));
    let plan = load_with_files(&Source::new("x.toml", text), &Options::default(), &first_three);
    let plan = plan.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let run = |cell: &talkpath_scenario::Cell| {
        let interrupt = AtomicBool::new(false);
        let seed = plan.seed;
        let run = RunPlan {
            cell: 0,
            repetition: 0,
            seed,
            series: None,
            rows: true,
            interrupt: &interrupt,
            progress: &|_| {},
        };
        figures(&SimArena::new().run(&cell.scenario, run).expect("it runs"), "call")
    };
    plan.cells.iter().map(run).collect()
}

#[test]
fn who_takes_three_seconds_to_open_is_rated_below_who_lost_three_frames() {
    let calls = calls("start");
    let mos: Vec<f64> = calls.iter().map(|call| call.call.as_ref().unwrap().score().unwrap()).collect();
    for (transport, call) in [("tcp", &calls[1]), ("quic", &calls[2]), ("dccp", &calls[3])] {
        let opening = call.opening_ms.unwrap();
        assert!((2_900.0..8_000.0).contains(&opening), "{transport} opens after {opening} ms");
        let ledger = call.ledger.unwrap();
        assert_eq!(ledger.not_open, (opening / 20.0).ceil() as u64, "{transport}: a frame each 20 ms");
        assert!(call.loss_rate.unwrap() > 0.28 && call.in_time.unwrap() < 0.72, "{transport}: {call:?}");
        assert!(call.call.as_ref().unwrap().concealed > Some(0.28), "{transport}: {call:?}");
        assert_eq!((call.breaks.len(), call.breaks[0].from_s), (1, 0.0), "{transport}");
        assert!((call.breaks[0].to_s.unwrap() * 1e3 - opening).abs() < 1e-6, "{transport}");
    }
    assert!(mos[0] > 3.9 && mos[1..].iter().all(|&other| other < mos[0] - 1.0), "{mos:?}");
    let udp = calls[0].ledger.unwrap();
    assert_eq!((calls[0].opening_ms, udp.missing, udp.not_open), (Some(0.0), 3, 0));
    assert!(calls.iter().all(|call| call.ledger.unwrap().due == 500), "500 frames are due over each");
}

#[test]
fn a_clock_that_starts_with_the_opening_misses_nothing_before_it() {
    for call in calls("opening") {
        let ledger = call.ledger.unwrap();
        assert_eq!((ledger.not_open, call.breaks.len()), (0, 0));
        assert!(call.transport == "udp" || (ledger.due < 360 && call.loss_rate == Some(0.0)), "{call:?}");
    }
}

#[test]
fn of_a_connection_that_never_opens_every_message_is_lost_and_the_break_lasts_from_start_to_end() {
    for transport in ["tcp", "quic-stream", "quic-datagram", "quic-stream-per-message", "dccp-ccid3"] {
        let text = format!(
            "duration = \"10 s\"\n[path]\nup = {{ rate = \"1 Mbps\", delay = \"5 ms\", loss = 1.0 }}\n\
             down = {{ rate = \"1 Mbps\", delay = \"5 ms\" }}\n[flow.call]\ntransport = \"{transport}\"\n\
             start = \"2 s\"\nworkload = {{ kind = \"voice\", echo = true }}\n"
        );
        for record in [run(&text), run_without_rows(&text)] {
            let call = figures(&record, "call");
            let all = Ledger { due: 400, not_open: 400, ..Ledger::default() };
            assert_eq!((call.ledger, call.opening_ms), (Some(all), None), "{transport}");
            assert_eq!((call.loss_rate, call.in_time), (Some(1.0), Some(0.0)), "{transport}");
            let heard = call.call.unwrap();
            assert_eq!((heard.score(), heard.concealed), (Some(1.0), Some(1.0)), "{transport}");
            let breaks: Vec<_> = call.breaks.iter().map(|it| (it.from_s, it.to_s)).collect();
            assert_eq!(breaks, [(2.0, None)], "{transport}");
        }
    }
}

/// A path of 20 ms each way: a handshake takes 40 ms and what its packets take to leave, and so does a
/// message with its echo.
#[test]
fn an_opening_has_its_parts_and_a_ticket_opens_before_its_handshake_is_over() {
    let parts = |transport: &str, echo: bool| {
        let text = format!(
            "duration = \"2 s\"\n[path]\nup = {{ rate = \"100 Mbps\", delay = \"20 ms\" }}\n\
             down = {{ rate = \"100 Mbps\", delay = \"20 ms\" }}\n[flow.call]\ntransport = {transport}\n\
             workload = {{ kind = \"voice\", echo = {echo} }}\n"
        );
        let [call, without_rows] =
            [run(&text), run_without_rows(&text)].map(|record| figures(&record, "call"));
        assert_eq!(call.opening, without_rows.opening, "{transport}");
        let opening = call.opening.unwrap();
        assert_eq!((opening.name_ms, opening.socket_ms), (None, None), "{transport}");
        (call.opening_ms.unwrap(), opening.handshake_ms, opening.first_delivered_ms.unwrap())
    };
    let is_a_round_trip = |ms: f64| (40.0..42.0).contains(&ms);
    let (opening, handshake, first) = parts("\"udp\"", true);
    assert!(opening == 0.0 && handshake.is_none() && is_a_round_trip(first), "{handshake:?} {first}");
    for transport in ["\"tcp-nodelay\"", "\"dccp-ccid2\"", "\"quic-datagram\"", "\"quic-stream\""] {
        let (opening, handshake, first) = parts(transport, true);
        assert_eq!(handshake, Some(opening), "{transport}");
        assert!(is_a_round_trip(opening), "{transport} opens after {opening} ms");
        // The first frame that finds it open is due up to a frame later.
        assert!((opening + 40.0..opening + 62.0).contains(&first), "{transport}: {first}");
    }
    let (opening, handshake, first) = parts("{ kind = \"quic-datagram\", zero_rtt = true }", false);
    assert_eq!(opening, 0.0);
    assert!(handshake.is_some_and(is_a_round_trip) && (20.0..21.0).contains(&first), "{handshake:?} {first}");
}

#[test]
fn what_a_ticket_lets_leave_at_once_is_open_at_once() {
    let text = "duration = \"2 s\"\npath = \"home-adsl\"\n[flow.call]\n\
                transport = { kind = \"quic-datagram\", zero_rtt = true }\nworkload = \"voice\"\n";
    let call = figures(&run(text), "call");
    assert_eq!((call.opening_ms, call.ledger.unwrap().not_open), (Some(0.0), 0));
    let call = figures(&run(&text.replace("true", "false")), "call");
    assert!(call.opening_ms.unwrap() > 10.0 && call.ledger.unwrap().not_open > 0, "{call:?}");
}

#[test]
fn the_first_frame_that_is_sent_is_the_first_one_due_once_the_connection_is_open() {
    let text = "duration = \"2 s\"\n[path]\nup = { rate = \"10 Mbps\", delay = \"25 ms\" }\n\
                down = { rate = \"10 Mbps\", delay = \"25 ms\" }\n\
                [flow.call]\ntransport = \"tcp\"\nworkload = { kind = \"voice\", echo = true }\n\
                [sweep]\n\"flow.call.direction\" = [\"up\", \"down\"]\n";
    for record in run_cells(text) {
        let flow = &record.flows[0];
        let opening = Instant::ZERO + flow.counters.opening.open.unwrap();
        for row in &flow.forward.messages {
            assert_eq!(row.fate == Fate::NotOpen, row.due < opening, "{row:?}");
            assert_eq!(row.sent.is_none(), row.due < opening, "{row:?}");
        }
        let first = flow.forward.messages.iter().find(|row| row.sent.is_some()).unwrap();
        assert_eq!((first.seq, first.sent), (3, Some(first.due)), "the handshake takes 50 ms and a little");
        let echo = &flow.echo.as_ref().unwrap().messages;
        assert_eq!(echo[0].seq, 3, "an echo has the number of its message");
    }
}

const TRANSPORTS: [&str; 12] = [
    "\"udp\"",
    "\"tcp\"",
    "{ kind = \"tcp\", stack = \"bsd-reno\", rwnd = \"8 packets\" }",
    "\"tcp-nodelay\"",
    "\"dccp-ccid2\"",
    "\"dccp-ccid3\"",
    "\"dccp-ccid4\"",
    "{ kind = \"quic-datagram\", encryption = false }",
    "{ kind = \"quic-datagram\", encryption = false, zero_rtt = true }",
    "{ kind = \"quic-datagram\", encryption = false, expire = \"80 ms\" }",
    "{ kind = \"quic-stream\", encryption = false }",
    "{ kind = \"quic-stream-per-message\", encryption = false }",
];
const WORKLOADS: [&str; 5] = [
    "{ kind = \"voice\" }",
    "{ kind = \"voice\", echo = true }",
    "{ kind = \"cbr\", rate = \"300 kbps\", size = \"1100 B\", echo = true, echo_write = \"per-read\" }",
    "{ kind = \"cbr\", rate = \"40 kbps\", size = \"90 B\", deadline = \"50 ms\" }",
    "{ kind = \"burst\", count = 20, size = \"900 B\", repeat = 5, gap = \"700 ms\" }",
];

/// How many messages a clock of workload `index` makes due within `ms`.
fn due_within(index: usize, ms: u64) -> Option<u64> {
    let micros = [20_000, 20_000, 29_334, 18_000];
    // 1100 B at 300 kb/s are 29,333.3... us: message k is due at floor(k times that) ns.
    match index {
        2 => Some((ms * 1_000_000 * 300_000).div_ceil(1100 * 8 * 1_000_000_000)),
        4 => None,
        index => Some((ms * 1000).div_ceil(micros[index])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_message_that_was_due_is_in_exactly_one_class_and_the_loss_knows_it(
        flows in prop::collection::vec((0..TRANSPORTS.len(), 0..WORKLOADS.len(), 0..3_000_u64, any::<bool>()), 1..4),
        (loss_up, loss_down) in (0.0..0.9_f64, 0.0..0.9_f64),
        (kbps, delay_ms, limit) in (100..5_000_u64, 0..900_u64, 2..40_u64),
        (warm_up_ms, rows) in (prop_oneof![Just(0), 0..2_000_u64], any::<bool>()),
    ) {
        let link = |loss: f64| {
            let queue = format!("queue = {{ kind = \"drop-tail\", limit = \"{limit} packets\" }}");
            format!("{{ rate = \"{kbps} kbps\", delay = \"{delay_ms} ms\", loss = {loss:.3}, {queue} }}")
        };
        let mut text = format!(
            "duration = \"4 s\"\nwarm_up = \"{warm_up_ms} ms\"\n[path]\nup = {}\ndown = {}\n",
            link(loss_up),
            link(loss_down)
        );
        for (number, &(transport, workload, start_ms, is_up)) in flows.iter().enumerate() {
            let direction = if is_up { "up" } else { "down" };
            text += &format!(
                "[flow.f{number}]\ntransport = {}\nworkload = {}\nstart = \"{start_ms} ms\"\ndirection = \"{direction}\"\n",
                TRANSPORTS[transport], WORKLOADS[workload]
            );
        }
        let record = if rows { run(&text) } else { run_without_rows(&text) };
        for (number, &(transport, workload, start_ms, _)) in flows.iter().enumerate() {
            let flow = figures(&record, &format!("f{number}"));
            let ledger = flow.ledger.unwrap();
            let Ledger { due, delivered, expired, refused, no_network, not_open, missing, unfinished } = ledger;
            prop_assert_eq!(due, delivered + expired + refused + no_network + not_open + missing + unfinished);
            prop_assert_eq!((flow.sent, flow.received), (due - refused, delivered));
            prop_assert_eq!(flow.lost, expired + no_network + not_open + missing);
            prop_assert_eq!(no_network, 0);
            let decided = due - refused - unfinished;
            prop_assert_eq!(flow.loss_rate, (decided > 0).then(|| flow.lost as f64 / decided as f64));
            if let (Some(count), 0) = (due_within(workload, 4_000 - start_ms), warm_up_ms) {
                prop_assert_eq!(due, count, "{} over {}", WORKLOADS[workload], TRANSPORTS[transport]);
            }
            if transport == 0 || due_within(workload, 0).is_none() {
                prop_assert_eq!(not_open, 0);
            }
            if flow.opening_ms.is_none() {
                prop_assert_eq!(not_open, due);
            }
        }
    }
}
