//! A call over a Wi-Fi that others use, too.

use std::collections::BTreeMap;

use crate::common;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::RunSummary;

/// A call with this `dscp` beside what `more` says, over a Wi-Fi with `others`.
fn call(dscp: &str, others: &str, more: &str) -> RunSummary {
    let text = format!(
        "name = \"x\"\nduration = \"20 s\"\nwarm_up = \"2 s\"\n\
         [path]\nup = {{ rate = \"65 Mbps\", wifi = {{ sender = \"station\", others = [{others}] }} }}\n\
         down = {{ rate = \"65 Mbps\", queue = \"fq_codel\", wifi = {{ sender = \"access-point\", with = \"up\" }} }}\n\
         [flow.call]\ntransport = \"udp\"\ndscp = \"{dscp}\"\nworkload = {{ kind = \"voice\", echo = true }}\n{more}"
    );
    summarise(&common::run(&text), &BTreeMap::new())
}

/// Median round trip of the call, in ms.
fn round_trip(summary: &RunSummary) -> f64 {
    summary.flows["call"].round_trip_delay_ms.as_ref().expect("the call echoes").p50
}

#[test]
fn a_call_waits_for_stations_that_saturate_the_medium_and_less_with_ef() {
    let neighbours = "{ count = 3, rate = \"65 Mbps\", up = \"saturated\" }";
    let (alone, busy, marked) =
        (call("CS0", "", ""), call("CS0", neighbours, ""), call("EF", neighbours, ""));
    // Each way takes less than a millisecond alone: the AIFS, the frame and a slot.
    assert!(round_trip(&alone) < 0.5, "{}", round_trip(&alone));
    assert!(round_trip(&busy) > 10.0, "{}", round_trip(&busy));
    assert!(2.0 * round_trip(&marked) < round_trip(&busy), "{}", round_trip(&marked));
}

#[test]
fn both_directions_share_the_time_of_the_medium() {
    let more = "[flow.upload]\ntransport = \"tcp\"\nworkload = \"bulk\"\n\
                [flow.download]\ntransport = \"tcp\"\nworkload = \"bulk\"\ndirection = \"down\"\n";
    let both = call("CS0", "", more);
    let (up, down) = (both.links["up"].utilisation, both.links["down"].utilisation);
    // A collision takes the time of both: two senders collide in fewer than a tenth of their transmissions.
    assert!((0.8..1.1).contains(&(up + down)) && up > 0.1 && down > 0.1, "{up} + {down}");
    let goodput = |name: &str| both.flows[name].goodput_bps.expect("it sends");
    // Two saturated stations carry 57 Mb/s in ns-3, too (`cargo xtask peers wifi`).
    let sum = goodput("upload") + goodput("download");
    assert!((35e6..57e6).contains(&sum), "{sum}");
}
