//! What the arenas with a path of ours share about it: the network of a scenario, and what is recorded of its
//! links.

use talkpath_measure::series::SeriesTap;
use talkpath_measure::{LinkRecord, Series, SeriesKind};
use talkpath_path::{FlowRoutes, Network, NetworkConfig};
use talkpath_scenario::{LinkIndex, Scenario};
use talkpath_units::{Instant, Seed};

/// The network of `scenario`, its random streams drawn from `seed`, its links measuring from warm-up to
/// duration. Its hosts have `timers` timers.
pub fn network<T: Copy>(scenario: &Scenario, seed: Seed, timers: u32, observes_queues: bool) -> Network<T> {
    let indices = |route: &[LinkIndex]| route.iter().map(|link| link.0).collect();
    let flows = scenario.flows.iter().map(|flow| FlowRoutes {
        name: &flow.name,
        out: indices(&flow.route),
        back: indices(&flow.return_route),
        send_jitter: flow.send_jitter,
    });
    Network::new(&NetworkConfig {
        links: scenario.links.iter().map(|link| (link.name.as_str(), &link.config)).collect(),
        flows: flows.collect(),
        seed,
        window: (Instant::ZERO + scenario.warm_up, Instant::ZERO + scenario.duration),
        timers,
        observes_queues,
    })
}

/// The length of each link's queue over time.
#[derive(Debug)]
pub struct QueueSeries {
    links: Vec<SeriesTap>,
}

impl QueueSeries {
    /// Nothing is recorded yet of the links of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let tap = |name: &String| SeriesTap::new(name, SeriesKind::Queue);
        Self { links: scenario.links.iter().map(|link| tap(&link.name)).collect() }
    }

    /// `waiting` packets wait in the queue of the link at this index.
    pub fn push(&mut self, link: u32, waiting: u64, now: Instant) {
        if let Some(series) = self.links.get_mut(link as usize) {
            series.push(waiting as f64, now);
        }
    }

    /// The series of the queues that ever changed.
    pub fn finish(self) -> impl Iterator<Item = Series> {
        self.links.into_iter().map(SeriesTap::finish).filter(|series| !series.points.is_empty())
    }
}

/// What the links of `scenario` did up to `end`.
pub fn link_records<T: Copy>(network: &mut Network<T>, scenario: &Scenario, end: Instant) -> Vec<LinkRecord> {
    let record = |(name, report): (&String, _)| {
        let talkpath_path::LinkReport {
            queue_packets_mean,
            queue_packets_p99,
            queue_packets_max,
            forwarded,
            dropped,
            lost,
            utilisation,
        } = report;
        LinkRecord {
            name: name.clone(),
            queue_packets_mean,
            queue_packets_p99,
            queue_packets_max,
            forwarded,
            dropped,
            lost,
            utilisation,
        }
    };
    scenario.links.iter().map(|link| &link.name).zip(network.reports(end)).map(record).collect()
}
