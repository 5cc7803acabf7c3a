//! Paths that lose large packets without a word.

use super::lab::{Lab, TooBig};
use crate::harness::Seen;

/// A call, large datagrams, others of a size between those that are probed, and a transfer over TCP, all from
/// the client.
const FLOWS: &str = r#"
name = "sizes"
duration = "3 s"
drain = "1 s"
path = "lan"

[flow.call]
transport = "udp"
workload = { kind = "voice", echo = true }

[flow.large]
transport = "udp"
workload = { kind = "cbr", rate = "500 kbps", size = "1400 B" }

[flow.between]
transport = "udp"
workload = { kind = "cbr", rate = "500 kbps", size = "1280 B" }

[flow.transfer]
transport = "tcp"
workload = { kind = "bulk", bytes = "200 kB" }
"#;

/// What names the size of packets that do not pass.
const BLAMES_SIZE: &str = "those of 1340 B do not, and no router says so";

fn measured(too_big: Option<TooBig>) -> Option<Seen> {
    let lab = Lab::new()?;
    if let Some(too_big) = too_big {
        lab.tunnel(1300, too_big);
    }
    lab.bench.file("sizes.toml", FLOWS);
    Some(lab.client(&["run", "sizes.toml", "--json=runs", "--run-again", "0s"]))
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn over_a_silent_tunnel_flows_of_large_packets_say_which_size_does_not_pass_and_a_call_says_nothing() {
    let Some(seen) = measured(Some(TooBig::Silent)) else { return };
    let flows = seen.succeeds().summary()["runs"][0]["flows"].take();
    assert_eq!(
        (&flows["large"]["received"], &flows["transfer"]["received"]),
        (&0.into(), &0.into()),
        "{flows}"
    );
    assert!(flows["call"]["received"].as_u64() >= Some(145), "{}", flows["call"]);
    for says in [
        "flow large: none of its packets of 1428 B arrived",
        "flow between: none of its packets of 1308 B arrived",
        "flow transfer: it opened, and none of its full",
    ] {
        assert!(seen.err.contains(says), "no `{says}` in: {}", seen.err);
    }
    assert_eq!(seen.err.matches(BLAMES_SIZE).count(), 3, "{}", seen.err);
}

#[test]
#[ignore = "it takes minutes: `cargo xtask nightly --only paths`"]
fn over_a_tunnel_that_reports_its_size_and_over_a_whole_path_no_flow_blames_the_size() {
    for too_big in [None, Some(TooBig::Reported)] {
        let Some(seen) = measured(too_big) else { return };
        let flows = seen.succeeds().summary()["runs"][0]["flows"].take();
        assert!(flows["transfer"]["received"].as_u64() > Some(0), "{too_big:?}: {}", flows["transfer"]);
        assert!(!seen.err.contains("do not, and no router says so"), "{too_big:?}: {}", seen.err);
    }
}
