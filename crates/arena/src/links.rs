//! The code that the arenas with talkpath's own path share: the network of a scenario, and the records of its
//! links.

use talkpath_measure::series::{SeriesDetail, SeriesTap};
use talkpath_measure::{DropCause, LinkRecord, QueueDelayRecord, Series, SeriesKind};
use talkpath_model::{Flow, LinkIndex, NamedLink, Scenario, SecondPath};
use talkpath_path::{FlowRoutes, Network, NetworkConfig, Tag};
use talkpath_units::{Duration, Instant, Seed};

/// Makes the network of `scenario`. Its random streams are drawn from `seed`, its links measure from the end
/// of the warm-up to the end of the duration, and its hosts have `timers` timers. If it `observes_queues`,
/// the network keeps the changes of its queues for [`QueueSeries`].
pub fn network<T: Tag>(scenario: &Scenario, seed: Seed, timers: u32, observes_queues: bool) -> Network<T> {
    network_with_lanes(scenario, seed, timers, observes_queues, 0)
}

/// Makes the network as [`network`] does, with `lanes` for the packets of the user's programs. A lane is a
/// flow of the network over the links `up` and `down`. The numbers of the lanes follow those of the flows and
/// of the second paths.
pub fn network_with_lanes<T: Tag>(
    scenario: &Scenario,
    seed: Seed,
    timers: u32,
    observes_queues: bool,
    lanes: u32,
) -> Network<T> {
    let indices = |route: &[LinkIndex]| route.iter().map(|link| link.0).collect();
    let flows = scenario.flows.iter().map(|flow| FlowRoutes {
        name: &flow.name,
        out: indices(&flow.route),
        back: indices(&flow.return_route),
        send_jitter: flow.send_jitter,
    });
    // The network has each second path as a flow of its own. These flows come after all others, in the order
    // of `second_paths`. They have no send jitter.
    let seconds = scenario.flows.iter().filter_map(|flow| {
        let SecondPath { route, return_route } = flow.second_path.as_ref()?;
        let (out, back) = (indices(route), indices(return_route));
        Some(FlowRoutes { name: &flow.name, out, back, send_jitter: Duration::ZERO })
    });
    let link = |name: &str| {
        let index = scenario.links.iter().position(|link| link.name == name);
        index.and_then(|index| u32::try_from(index).ok()).into_iter().collect::<Vec<_>>()
    };
    let (up, down) = (link("up"), link("down"));
    let lane =
        |_| FlowRoutes { name: "program", out: up.clone(), back: down.clone(), send_jitter: Duration::ZERO };
    let lanes = (0..lanes).map(lane);
    Network::new(&NetworkConfig {
        links: scenario.links.iter().map(|link| (link.name.as_str(), &link.config)).collect(),
        changes: scenario.changes.clone(),
        flows: flows.chain(seconds).chain(lanes).collect(),
        seed,
        window: (Instant::ZERO + scenario.warm_up, Instant::ZERO + scenario.duration),
        timers,
        observes_queues,
    })
}

/// Returns for each flow the number that the packets of its second path have in [`network`]. Returns `None`
/// for a flow without a second path.
pub fn second_paths(scenario: &Scenario) -> Vec<Option<u32>> {
    let mut next = u32::try_from(scenario.flows.len()).unwrap_or(u32::MAX);
    let number = |flow: &Flow| {
        flow.second_path.as_ref()?;
        next += 1;
        Some(next - 1)
    };
    scenario.flows.iter().map(number).collect()
}

/// The length and the delay of each link's queue over time.
#[derive(Debug)]
pub struct QueueSeries {
    links: Vec<[SeriesTap; 2]>,
}

impl QueueSeries {
    /// Makes empty series for the links of `scenario`.
    pub fn new(scenario: &Scenario, detail: SeriesDetail) -> Self {
        let taps = |name: &String| {
            [SeriesKind::Queue, SeriesKind::QueueDelay].map(|kind| SeriesTap::new(name, kind, detail))
        };
        Self { links: scenario.links.iter().map(|link| taps(&link.name)).collect() }
    }

    /// Records the changes of the queues of `network` since the last call.
    pub fn take<T: Tag>(&mut self, network: &mut Network<T>) {
        for (link, [length, delay]) in (0..).zip(&mut self.links) {
            // A network that does not observe its queues has no changes.
            let Some(changes) = network.queue_changes(link) else { return };
            changes.lengths.drain(..).for_each(|(at, waiting)| length.push(f64::from(waiting), at));
            changes.delays.drain(..).for_each(|(at, waited)| delay.push(waited.as_millis_f64(), at));
        }
    }

    /// Returns the series of the queues that changed at least once. All lengths come first, then all delays.
    pub fn finish(self) -> impl Iterator<Item = Series> {
        let (lengths, delays): (Vec<_>, Vec<_>) = self.links.into_iter().map(Into::into).unzip();
        let taps = lengths.into_iter().chain(delays);
        taps.map(SeriesTap::finish).filter(|series| !series.points.is_empty())
    }
}

/// Returns the cause that the record of a message has if a queue dropped its packet for `cause`.
pub const fn cause_of_drop(cause: talkpath_path::DropCause) -> DropCause {
    match cause {
        talkpath_path::DropCause::QueueFull => DropCause::Queue,
        talkpath_path::DropCause::Congestion => DropCause::Aqm,
    }
}

/// Returns the records of the links of `scenario` up to `end`.
pub fn link_records<T: Tag>(network: &mut Network<T>, scenario: &Scenario, end: Instant) -> Vec<LinkRecord> {
    let record = |(link, report): (&NamedLink, _)| {
        let talkpath_path::LinkReport {
            queue_packets_mean,
            queue_packets_p99,
            queue_packets_max,
            queue_delay: talkpath_path::QueueDelay { mean, p50, p95, p99 },
            forwarded,
            dropped,
            dropped_by_aqm,
            marked,
            lost,
            repeated,
            damaged,
            utilisation,
        } = report;
        LinkRecord {
            name: link.name.clone(),
            discipline: link.config.queue.name().word(),
            queue_packets_mean,
            queue_packets_p99,
            queue_packets_max,
            queue_delay: QueueDelayRecord { mean, p50, p95, p99 },
            forwarded,
            dropped,
            dropped_by_aqm,
            marked,
            lost,
            repeated,
            damaged,
            utilisation,
        }
    };
    scenario.links.iter().zip(network.reports(end)).map(record).collect()
}
