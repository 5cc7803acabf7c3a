//! The numbers that `talkpath play` would show of a run. A study compares them with the record of the run.

use core::sync::atomic::AtomicBool;

use serde_json::{Map, Value as Json, json};
use talkpath_arena::RunPlan;
use talkpath_measure::DropCause;
use talkpath_model::{Scenario, Topology};
use talkpath_sim::journey::{Hop, HopFate, journeys};
use talkpath_units::{Instant, Seed};

/// Runs `scenario` with `seed` again, and counts the packets of each link within the window of the run: how
/// many passed, were dropped and were lost, and how many waited at most (`queue_max`). It also returns the
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
    let hops = journeys(scenario, &plan, window, usize::MAX)?.hops;
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
        });
        links.insert(link.name.clone(), counts);
    }
    Some(json!({ "nodes": Topology::new(scenario).nodes.len(), "links": links }))
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
