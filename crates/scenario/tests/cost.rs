//! About how much work a repetition is.

use talkpath_model::HOPS_OF_A_REPETITION;
use talkpath_scenario::{Options, Source, load};

fn hops(of: &str) -> u64 {
    let path = "duration = \"10 s\"\n[path]\nup = { rate = \"12 Mbps\", delay = \"1 ms\" }\n\
        down = { rate = \"12 Mbps\", delay = \"1 ms\" }\n";
    let plan = load(&Source::new("x.toml", format!("{path}{of}")), &Options::default());
    let plan = plan.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    plan.cells[0].scenario.cost() - HOPS_OF_A_REPETITION
}

#[test]
fn a_call_costs_a_hop_a_frame_and_with_an_echo_two() {
    let call = "[flow.call]\ntransport = \"udp\"\nworkload = { kind = \"voice\" }\n";
    assert_eq!(hops(call), 500);
    assert_eq!(hops(&call.replace("\"voice\"", "\"voice\", echo = true")), 1000);
    assert_eq!(hops(&format!("{call}start = \"5 s\"\n")), 250);
}

#[test]
fn a_transfer_costs_what_the_bottleneck_lets_through() {
    let bulk = |name: &str| format!("[flow.{name}]\ntransport = \"tcp\"\nworkload = {{ kind = \"bulk\" }}\n");
    // 12 Mb/s for 10 s in packets of 1448 B, and an acknowledgement for two of them.
    let (packets, alone) = (15_000_000 / 1_448, hops(&bulk("a")));
    assert_eq!(alone, packets + packets / 2);
    assert!(hops(&(bulk("a") + &bulk("b"))).abs_diff(alone) <= 3, "two share the link");
    let bounded = bulk("a").replace("\"bulk\"", "\"bulk\", bytes = \"144800 B\"");
    assert_eq!(hops(&bounded), 150);
}
