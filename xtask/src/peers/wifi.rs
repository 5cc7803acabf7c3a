//! ns-3's 802.11n beside ours: `cargo xtask peers wifi [seeds=N]`.
//!
//! `xtask/ns3/wifi.cc` and `wifi.toml` are one load in both: stations that offer more than the air takes, and
//! a probe of 200 B each 20 ms from a station of its own. Our median over the seeds is judged: what the
//! stations carry within 5 % of ns-3's, and the 50th and 99th percentiles of the probe's delay within 15 %,
//! or within ns-3's own range over the seeds. That range is wide for the 99th percentile: it is the delay of
//! a handful of packets in a row that collided several times.

use std::path::Path;

use super::{Figures, Ns3, Simulator, ask, spread};

/// The modules of ns-3 with Wi-Fi.
const MODULES: &[&str] =
    &["core", "network", "mobility", "wifi", "propagation", "stats", "spectrum", "antenna", "energy"];
const STATIONS: [u32; 4] = [1, 2, 5, 10];

/// Our seeds for each one of ns-3, which takes a hundred times as long.
const OF_OURS: u64 = 5;

/// A figure that both print.
struct Figure {
    name: &'static str,
    ours: &'static str,
    ns3: &'static str,
    /// The factor that brings ours to ns-3's unit.
    scale: f64,
    tolerance: f64,
}

const FIGURES: &[Figure] = &[
    // Ours is of the 1472 B that are UDP's data in 1500 B.
    Figure {
        name: "carried, Mb/s",
        ours: "carried",
        ns3: "goodput",
        scale: 1e-6 * 1500.0 / 1472.0,
        tolerance: 0.05,
    },
    Figure { name: "delay p50, ms", ours: "probe_p50", ns3: "up_p50", scale: 1.0, tolerance: 0.15 },
    Figure { name: "delay p99, ms", ours: "probe_p99", ns3: "up_p99", scale: 1.0, tolerance: 0.15 },
];

/// Prints a table, and judges it.
///
/// # Errors
/// What is wrong with the arguments, why nothing could be compared, or what differs.
pub(super) fn run(
    root: &Path,
    ours: &Simulator,
    ns3_built: Option<&Path>,
    arguments: &[String],
) -> Result<String, String> {
    let mut seeds: u64 = 5;
    for word in arguments {
        let number = word.strip_prefix("seeds=").and_then(|number| number.parse().ok());
        seeds = number.ok_or_else(|| format!("{word}: expected seeds=N"))?;
    }
    let folder = root.join("xtask").join("ns3");
    let ns3 = Ns3::find(ns3_built).and_then(|ns3| ns3.compile(root, &folder.join("wifi.cc"), MODULES));
    let ns3 = ns3.map_err(|why| format!("no other simulator is installed: nothing was compared. {why}"))?;
    let scenario = folder.join("wifi.toml").display().to_string();
    let mut differences = Vec::new();
    println!("medians [smallest, largest] of {} seeds of ours and {seeds} of ns-3", OF_OURS * seeds);
    println!("aggregate  stations  {:<13}  {:>29}  {:>29}  difference", "figure", "ours", "ns-3");
    for aggregate in [0, 65_535] {
        for stations in STATIONS {
            let (of_ours, of_ns3) = figures(ours, &ns3, &scenario, seeds, aggregate, stations)?;
            for figure in FIGURES {
                let is_right = line(figure, &of_ours, &of_ns3, (aggregate, stations))?;
                if !is_right {
                    let Figure { name, .. } = figure;
                    differences.push(format!("{name} of {stations} stations with {aggregate} B"));
                }
            }
        }
    }
    match differences.as_slice() {
        [] => Ok(
            "ns-3's Wi-Fi and ours carry the same within 5 %, with the same delay within 15 % or ns-3's range"
                .to_owned(),
        ),
        _ => Err(format!("beyond the tolerance: {}", differences.join(", "))),
    }
}

/// Our figures and ns-3's, for one number of stations.
fn figures(
    ours: &Simulator,
    ns3: &Simulator,
    scenario: &str,
    seeds: u64,
    aggregate: u32,
    stations: u32,
) -> Result<(Figures, Figures), String> {
    // More than the air takes, of all stations together.
    let load_mbps = if aggregate == 0 { 40 } else { 72 };
    let rate = f64::from(load_mbps) / f64::from(stations);
    let of_ours = ask(
        ours,
        &[
            scenario.to_owned(),
            format!("seeds={}", OF_OURS * seeds),
            format!("flow.station.count={stations}"),
            format!("flow.station.workload.rate={rate:.1} Mbps"),
            format!("link.probe.wifi.aggregate={aggregate} B"),
        ],
    )?;
    let load = f64::from(load_mbps) / 65.0;
    let of_ns3 = ask(
        ns3,
        &[
            format!("seeds={seeds}"),
            "up=1".to_owned(),
            "duration=62".to_owned(),
            format!("stations={stations}"),
            format!("ampdu={aggregate}"),
            format!("load={load:.3}"),
        ],
    )?;
    Ok((of_ours, of_ns3))
}

/// Prints a line of the table. Returns whether the figure is right.
fn line(
    figure: &Figure,
    of_ours: &Figures,
    of_ns3: &Figures,
    (aggregate, stations): (u32, u32),
) -> Result<bool, String> {
    let Figure { name, scale, tolerance, .. } = *figure;
    let spread_of = |figures: &Figures, key: &str| figures.get(key).and_then(|values| spread(values));
    let (Some(mine), Some(theirs)) = (spread_of(of_ours, figure.ours), spread_of(of_ns3, figure.ns3)) else {
        return Err(format!("{name} is missing"));
    };
    let mine = (mine.0 * scale, mine.1 * scale, mine.2 * scale);
    let difference = mine.1 / theirs.1 - 1.0;
    let (is_near, is_in_range) = (difference.abs() <= tolerance, (theirs.0..=theirs.2).contains(&mine.1));
    let word = match (is_near, is_in_range) {
        (true, _) => "",
        (false, true) => "in ns-3's range",
        (false, false) => "beyond",
    };
    let text = |(low, median, high): (f64, f64, f64)| format!("{median:.3} [{low:.3}, {high:.3}]");
    println!(
        "{aggregate:>7} B  {stations:>8}  {name:<13}  {:>29}  {:>29}  {:>+8.1} %  {word}",
        text(mine),
        text(theirs),
        100.0 * difference
    );
    Ok(is_near || is_in_range)
}
