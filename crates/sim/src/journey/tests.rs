use core::sync::atomic::AtomicBool;

use talkpath_arena::Arena as _;
use talkpath_measure::SeriesKind;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::{Options, Source, load};

use super::*;
use crate::SimArena;

const MOST: usize = 100_000;

fn scenario(text: &str) -> Scenario {
    let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap_or_else(|it| panic!("{it}"));
    plan.cells[0].scenario.clone()
}

fn plan(scenario: &Scenario, stop: &'static AtomicBool) -> RunPlan<'static> {
    RunPlan {
        cell: 0,
        repetition: 0,
        seed: scenario.seed.repetition(0),
        series: Some(SeriesDetail::Full),
        rows: true,
        interrupt: stop,
        progress: &|_| {},
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

fn seen(scenario: &Scenario, from_ms: u64, to_ms: u64, most: usize) -> Journeys {
    let window = (Instant::from_millis(from_ms), Instant::from_millis(to_ms));
    journeys(scenario, &plan(scenario, &STOP), window, most).unwrap()
}

fn time_at_1_mbps(size: Bytes) -> Duration {
    Duration::from_micros(8 * size.get())
}

const CALL: &str = r#"duration = "1 s"
[path]
up = { rate = "1 Mbps", delay = "10 ms" }
down = { rate = "1 Mbps", delay = "10 ms" }
[flow.call]
transport = "udp"
workload = "voice"
"#;

#[test]
fn a_hop_over_an_idle_link_is_its_serialisation_and_its_delay() {
    let seen = seen(&scenario(CALL), 0, 1000, MOST);
    assert_eq!(seen.hops.len(), 50, "a frame each 20 ms");
    for (number, hop) in (0..).zip(&seen.hops) {
        let service = time_at_1_mbps(hop.size);
        assert_eq!((hop.packet, hop.fate), (number, HopFate::Passed));
        assert_eq!(hop.began, hop.entered);
        assert_eq!(hop.sent.since(hop.began), service);
        assert_eq!(hop.left.since(hop.sent), Duration::from_millis(10));
    }
}

#[test]
fn every_packet_of_the_record_is_seen_on_its_link() {
    let text = CALL.replace(
        "delay = \"10 ms\" }\ndown",
        "delay = \"10 ms\", loss = 0.02, queue = { kind = \"drop-tail\", limit = \"20 packets\" } }\ndown",
    ) + "[flow.ftp]\ntransport = \"tcp\"\nworkload = \"bulk\"\n";
    let scenario = scenario(&text);
    let record = SimArena::new().run(&scenario, plan(&scenario, &STOP)).unwrap();
    let seen = seen(&scenario, 0, 1000, MOST);
    let of = |fits: fn(&Hop) -> bool| {
        seen.hops.iter().filter(|hop| hop.link == 0 && hop.left < Instant::from_secs(1) && fits(hop)).count()
            as u64
    };
    let link = &record.links[0];
    assert!(link.dropped > 0 && link.lost > 0, "{link:?}");
    assert_eq!(of(|hop| hop.fate == HopFate::Gone(DropCause::Loss)), link.lost);
    assert_eq!(of(|hop| !matches!(hop.fate, HopFate::Passed | HopFate::Gone(DropCause::Loss))), link.dropped);
    assert_eq!(of(|hop| hop.fate == HopFate::Passed), link.forwarded);
    // Packets wait: their services follow each other without a gap or an overlap.
    let mut served: Vec<_> = seen.hops.iter().filter(|hop| hop.link == 0 && hop.sent > hop.began).collect();
    served.sort_by_key(|hop| hop.began);
    assert!(served.windows(2).all(|pair| pair[0].sent <= pair[1].began));
    assert!(served.iter().any(|hop| hop.began > hop.entered));
}

#[test]
fn the_fragments_of_a_datagram_are_hops_of_one_packet() {
    let text = CALL.replace(
        "workload = \"voice\"",
        "workload = { kind = \"burst\", count = 1, size = \"4000 B\", repeat = 2, gap = \"50 ms\" }",
    );
    let seen = seen(&scenario(&text), 0, 1000, MOST);
    let numbers: Vec<_> = seen.hops.iter().map(|hop| hop.packet).collect();
    assert_eq!(numbers, [0, 0, 0, 1, 1, 1]);
    // 4000 B and 8 B of UDP, with a header of 20 B for each fragment.
    let size: u64 = seen.hops[..3].iter().map(|hop| hop.size.get()).sum();
    assert_eq!(size, 4000 + 8 + 3 * 20);
}

#[test]
fn a_window_has_what_lies_in_it_at_least_in_part_and_a_limit_shortens_it() {
    let scenario = scenario(CALL);
    let all = seen(&scenario, 0, 1000, MOST);
    let some = seen(&scenario, 205, 300, MOST);
    let (from, to) = some.window;
    let within: Vec<_> =
        all.hops.iter().filter(|hop| hop.left >= from && hop.entered <= to).copied().collect();
    assert!(!within.is_empty() && !some.is_cut);
    assert_eq!(some.hops, within);
    let few = seen(&scenario, 0, 1000, 10);
    assert!(few.is_cut && few.hops.len() <= 10 && few.window.1 < Instant::from_millis(300), "{few:?}");
}

#[test]
fn a_cut_window_has_every_hop_of_the_whole_run_that_began_in_it() {
    let text = CALL.replace(
        "delay = \"10 ms\" }\ndown",
        "delay = \"10 ms\", queue = { kind = \"drop-tail\", limit = \"20 packets\" } }\ndown",
    ) + "[flow.ftp]\ntransport = \"tcp\"\nworkload = \"bulk\"\n";
    let scenario = scenario(&text);
    let whole = seen(&scenario, 300, 1000, MOST);
    let mut waits = 0;
    for most in [35, 50, 77, 100] {
        let cut = seen(&scenario, 300, 1000, most);
        let to = cut.window.1;
        let up_to: Vec<_> = whole.hops.iter().filter(|hop| hop.entered <= to).copied().collect();
        assert!(cut.is_cut && !whole.is_cut && to < whole.window.1);
        assert!(cut.hops.len() <= most && cut.hops.len() + 10 > most, "{} of {most}", cut.hops.len());
        assert_eq!(cut.hops, up_to, "at most {most}");
        waits += cut.hops.iter().filter(|hop| hop.entered <= to && to < hop.began).count();
    }
    assert!(waits > 0, "packets wait where a window is cut");
    assert!(!seen(&scenario, 300, 1000, whole.hops.len()).is_cut, "as many as there are fit");
}

#[test]
fn a_packet_that_still_waits_or_travels_when_the_run_ends_is_on_its_link_until_then() {
    // The queue grows by 3 Mb/s; after the window it would need a second and a half, and may have 0.1 s.
    let text = CALL.replace("duration = \"1 s\"", "duration = \"1 s\"\ndrain = \"100 ms\"")
        + "[flow.flood]\ntransport = \"udp\"\nworkload = { kind = \"cbr\", rate = \"4 Mbps\", size = \"1000 B\" }\n";
    let scenario = scenario(&text);
    let seen = seen(&scenario, 0, 500, MOST);
    let queue =
        seen.series.iter().find(|line| line.kind == SeriesKind::Queue && line.entity == "up").unwrap();
    for at in [100, 300, 500].map(Instant::from_millis) {
        let length = queue.points.iter().take_while(|point| point.0 <= at).last().unwrap().1;
        let waits = |hop: &&Hop| hop.link == 0 && hop.entered <= at && at < hop.began;
        assert_eq!(seen.hops.iter().filter(waits).count() as f64, length, "at {at:?}");
    }
    let under_way: Vec<_> = seen.hops.iter().filter(|hop| hop.fate == HopFate::UnderWay).collect();
    assert!(under_way.iter().any(|hop| hop.began == hop.left), "one that waits");
    let travels = under_way.iter().find(|hop| hop.began < hop.left).unwrap();
    assert!(travels.left.since(travels.sent) == Duration::from_millis(10), "{travels:?}");
}

#[test]
fn packets_that_never_leave_are_seen_and_the_run_ends() {
    let scenario = scenario(&CALL.replacen("1 Mbps", "1 bps", 1));
    let seen = seen(&scenario, 0, 500, MOST);
    assert_eq!(seen.hops.len(), 26);
    assert!(
        seen.hops.iter().all(|hop| hop.fate == HopFate::UnderWay && hop.left >= Instant::from_millis(500))
    );
    let waits = seen.hops.iter().filter(|hop| hop.began == hop.left).count();
    assert_eq!(waits, 25, "all but the one in service");
}

#[test]
fn what_a_link_adds_to_its_delay_is_no_wait_in_its_queue() {
    for variation in ["", ", reorder = true"] {
        let jitter =
            format!("delay = \"10 ms\", jitter = {{ kind = \"uniform\", max = \"15 ms\"{variation} }}");
        let seen = seen(&scenario(&CALL.replacen("delay = \"10 ms\"", &jitter, 1)), 0, 1000, MOST);
        assert_eq!(seen.hops.len(), 50);
        for hop in &seen.hops {
            assert_eq!(hop.began, hop.entered, "alone on the link: {hop:?}");
            assert_eq!(hop.sent.since(hop.began), time_at_1_mbps(hop.size));
        }
        assert!(seen.hops.iter().any(|hop| hop.left.since(hop.sent) > Duration::from_millis(11)));
    }
}

#[test]
fn an_interrupt_ends_the_run() {
    static STOPPED: AtomicBool = AtomicBool::new(true);
    let scenario = scenario(CALL);
    let window = (Instant::ZERO, Instant::from_secs(1));
    assert_eq!(journeys(&scenario, &plan(&scenario, &STOPPED), window, MOST), None);
}

#[test]
fn nam_s_trace_ends_at_an_interrupt() {
    let scenario = scenario(CALL);
    let seen = seen(&scenario, 0, 1000, MOST);
    static STOPPED: AtomicBool = AtomicBool::new(true);
    let mut text = Vec::new();
    assert!(!write_nam(&scenario, &seen, &STOPPED, &mut text).unwrap());
    assert!(!String::from_utf8(text).unwrap().contains("\n+ "), "no packet");
}

#[test]
fn in_nam_s_trace_a_packet_leaves_a_link_that_takes_no_time_before_it_comes_to_the_next() {
    let text = r#"duration = "100 ms"
[link.host]
[link.wan]
rate = "1 Mbps"
delay = "10 ms"
[link.back]
[flow.call]
transport = "udp"
workload = "voice"
route = ["host", "wan"]
return_route = ["back"]
"#;
    let scenario = scenario(text);
    let mut trace = Vec::new();
    write_nam(&scenario, &seen(&scenario, 0, 100, MOST), &STOP, &mut trace).unwrap();
    let trace = String::from_utf8(trace).unwrap();
    let of_first = trace.lines().filter(|line| line.contains(" -i 0 ") && !line.contains("-t *"));
    let first: Vec<_> = of_first
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            format!("{} {}>{}", words[0], words[4], words[6])
        })
        .collect();
    assert_eq!(first, ["+ 0>1", "- 0>1", "h 0>1", "r 0>1", "+ 1>2", "- 1>2", "h 1>2", "r 1>2"]);
}

#[test]
fn in_nam_s_trace_a_packet_that_waited_is_served_before_it_leaves_at_the_same_instant() {
    let scenario = scenario(CALL);
    let served = Instant::from_millis(30);
    let hop = Hop {
        packet: 0,
        flow: 0,
        direction: Direction::Out,
        link: 0,
        size: Bytes::new(200),
        entered: Instant::from_millis(20),
        began: served,
        sent: served,
        left: served,
        fate: HopFate::Passed,
    };
    let window = (Instant::ZERO, Instant::from_millis(100));
    let seen = Journeys { hops: vec![hop], series: Vec::new(), window, is_cut: false };
    let mut trace = Vec::new();
    write_nam(&scenario, &seen, &STOP, &mut trace).unwrap();
    let trace = String::from_utf8(trace).unwrap();
    let events: String =
        trace.lines().filter(|line| !line.contains("-t *")).filter_map(|line| line.chars().next()).collect();
    assert_eq!(events, "+-hr");
}

#[test]
fn nam_s_trace_has_a_line_for_each_thing_that_a_packet_does_in_order_of_time() {
    let scenario =
        scenario(&CALL.replace(
            "1 Mbps\", delay = \"10 ms\" }\ndown",
            "1 Mbps\", delay = \"10 ms\", loss = 0.1 }\ndown",
        ));
    let seen = seen(&scenario, 0, 1000, MOST);
    let mut text = Vec::new();
    assert!(write_nam(&scenario, &seen, &STOP, &mut text).unwrap());
    let text = String::from_utf8(text).unwrap();
    let count = |event: char| text.lines().filter(|line| line.starts_with(&format!("{event} -t "))).count();
    let lost = seen.hops.iter().filter(|hop| hop.fate != HopFate::Passed).count();
    assert!(lost > 0);
    assert_eq!((count('+'), count('-'), count('h'), count('r'), count('d')), (50, 50, 50, 50 - lost, lost));
    assert_eq!((count('n'), count('l'), count('q')), (2, 1, 2));
    assert!(text.starts_with("V -t * -v 1.0a5 -a 0\n"), "{text}");
    let times: Vec<f64> = text
        .lines()
        .filter(|line| !line.contains("-t *"))
        .map(|line| line.split(' ').nth(2).unwrap().parse().unwrap())
        .collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
}
