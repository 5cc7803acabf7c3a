//! The numbers that `talkpath play` would show of a run. A study compares them with the record of the run.

use core::sync::atomic::AtomicBool;
use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use talkpath_arena::RunPlan;
use talkpath_measure::DropCause;
use talkpath_model::{Scenario, Topology};
use talkpath_sim::journey::{Hop, HopFate, journeys};
use talkpath_units::{Instant, Seed};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Runs `scenario` with `seed` again, and counts the packets of each link within the window of the run: how
/// many passed, were dropped and were lost, and how many waited at most (`queue_max`). Of each flow it has
/// what the link sent in each second since the beginning of the run (`throughput_kbps`). It also returns the
/// number of `nodes`. It returns `None` if `stop` became true.
pub(crate) fn watched(scenario: &Scenario, seed: Seed, stop: &AtomicBool) -> Option<Json> {
    let plan = RunPlan {
        cell: 0,
        repetition: 0,
        seed,
        series: None,
        rows: false,
        interrupt: stop,
        progress: &|_| {},
    };
    let window = (Instant::ZERO + scenario.warm_up, Instant::ZERO + scenario.duration);
    let hops = journeys(scenario, &plan, (Instant::ZERO, window.1), usize::MAX)?.hops;
    let mut links = Map::new();
    for (index, link) in (0_u32..).zip(&scenario.links) {
        let hops_of_link: Vec<&Hop> = hops.iter().filter(|hop| hop.link == index).collect();
        let ended = hops_of_link.iter().filter(|hop| window.0 <= hop.left && hop.left < window.1);
        let count = |fits: &dyn Fn(HopFate) -> bool| ended.clone().filter(|hop| fits(hop.fate)).count();
        let counts = json!({
            "passed": count(&|fate| fate == HopFate::Passed),
            "dropped": count(&|fate| matches!(fate, HopFate::Gone(cause) if cause != DropCause::Loss)),
            "lost": count(&|fate| fate == HopFate::Gone(DropCause::Loss)),
            "queue_max": queue_max(&hops_of_link, window),
            "throughput_kbps": throughput_kbps(&hops_of_link, scenario),
        });
        links.insert(link.name.clone(), counts);
    }
    Some(json!({ "nodes": Topology::new(scenario).nodes.len(), "links": links }))
}

/// What the link sent of each flow in each second, in kb/s, with IP headers. A packet counts in the
/// second in which its last bit was sent. The second in which the run ends is left out if it is not whole.
fn throughput_kbps(hops: &[&Hop], scenario: &Scenario) -> Map<String, Json> {
    let whole_seconds = scenario.duration.as_nanos() / NANOS_PER_SECOND;
    let mut bits: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for hop in hops {
        let is_sent =
            matches!(hop.fate, HopFate::Passed | HopFate::UnderWay | HopFate::Gone(DropCause::Loss));
        let Some(flow) = scenario.flows.get(hop.flow as usize).filter(|_| is_sent) else { continue };
        let second = hop.sent.as_nanos() / NANOS_PER_SECOND;
        let seconds = bits.entry(&flow.name).or_insert_with(|| vec![0; whole_seconds as usize]);
        if let Some(sum) = seconds.get_mut(second as usize) {
            *sum += 8 * hop.size.get();
        }
    }
    let kbps = |bits: &u64| Json::from(*bits as f64 / 1e3);
    bits.iter().map(|(flow, seconds)| ((*flow).to_owned(), seconds.iter().map(kbps).collect())).collect()
}

/// The largest number of packets that waited at the same time within the window.
fn queue_max(hops: &[&Hop], window: (Instant, Instant)) -> u64 {
    let waits = hops.iter().filter(|hop| hop.began > hop.entered);
    // At the same instant a packet leaves the queue before the next one is counted: -1 sorts before 1.
    let mut moments: Vec<(Instant, i64)> =
        waits.flat_map(|hop| [(hop.entered, 1), (hop.began, -1)]).collect();
    moments.sort_unstable();
    let (mut waiting, mut most) = (0_i64, 0_i64);
    for (at, change) in moments {
        waiting += change;
        if window.0 <= at && at < window.1 {
            most = most.max(waiting);
        }
    }
    most.unsigned_abs()
}
