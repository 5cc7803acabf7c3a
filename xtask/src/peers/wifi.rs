//! ns-3's 802.11n beside ours: `cargo xtask peers wifi [seeds=N] [stations=N,...]`.
//!
//! `xtask/ns3/wifi.cc` and `wifi.toml` are one load in both: stations that offer more than the air takes, and
//! a probe of 200 B each 20 ms from a station of its own. Judged are the medians over the seeds: what the
//! stations carry within 5 % of ns-3's; and within 15 % the 99th percentile of their access delay, from the
//! last frame of a transmission to the first of the next one, and the 50th and 99th percentiles of the
//! probe's delay, which has its queue in it. The median access delay is a whole number of the others'
//! aggregates, and jumps by 40 % from seed to seed, so that it is not compared.
//!
//! The 99th percentile of the probe's delay is decided by a few packets in a row, behind a packet that
//! collided several times, so it depends on the seed. Where ns-3's own interval over the seeds reaches
//! further than the tolerance, the table says how far, and the figure is judged by the interval of the two
//! medians' ratio: beyond the tolerance with all of it, or undecided.

use std::path::Path;

use super::interval::Interval;
use super::{Figures, Ns3, Simulator, ask, spread};

/// The modules of ns-3 with Wi-Fi.
const MODULES: &[&str] =
    &["core", "network", "mobility", "wifi", "propagation", "stats", "spectrum", "antenna", "energy"];
const STATIONS: [u32; 4] = [1, 2, 5, 10];

/// The number of our seeds for each seed of ns-3, which takes many times as long.
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
    Figure { name: "access p99, ms", ours: "access_p99", ns3: "access_p99", scale: 1.0, tolerance: 0.15 },
    Figure { name: "delay p50, ms", ours: "probe_p50", ns3: "up_p50", scale: 1.0, tolerance: 0.15 },
    Figure { name: "delay p99, ms", ours: "probe_p99", ns3: "up_p99", scale: 1.0, tolerance: 0.15 },
];

/// What is to be compared.
struct Choice {
    seeds: u64,
    stations: Vec<u32>,
}

/// The result of a comparison.
enum Verdict {
    Near,
    Beyond,
    /// The seeds do not decide. ns-3's own interval reaches as far as this share of its median.
    Undecided(f64),
}

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
    let Choice { seeds, stations } = Choice::of(arguments)?;
    let folder = root.join("xtask").join("ns3");
    let ns3 = Ns3::find(ns3_built).and_then(|ns3| ns3.compile(root, &folder.join("wifi.cc"), MODULES));
    let ns3 = ns3.map_err(|why| format!("no other simulator is installed: nothing was compared. {why}"))?;
    let scenario = folder.join("wifi.toml").display().to_string();
    let (mut near, mut beyond, mut undecided) = (0, Vec::new(), Vec::new());
    println!("medians [smallest, largest] of {} seeds of ours and {seeds} of ns-3", OF_OURS * seeds);
    println!("aggregate  stations  {:<14}  {:>29}  {:>29}  difference", "figure", "ours", "ns-3");
    for aggregate in [0, 65_535] {
        for &stations in &stations {
            let (of_ours, of_ns3) = figures(ours, &ns3, &scenario, seeds, aggregate, stations)?;
            for figure in FIGURES {
                let name = format!("{} of {stations} stations with {aggregate} B", figure.name);
                match line(figure, &of_ours, &of_ns3, (aggregate, stations))? {
                    Verdict::Near => near += 1,
                    Verdict::Beyond => beyond.push(name),
                    Verdict::Undecided(reach) => {
                        undecided.push(format!("{name} (ns-3's own interval: {:.0} %)", 100.0 * reach));
                    }
                }
            }
        }
    }
    let mut closing = format!("{near} figures are ns-3's within 5 % (throughput) and 15 % (delays)");
    if !undecided.is_empty() {
        closing.push_str(&format!("; {seeds} seeds do not decide: {}", undecided.join(", ")));
    }
    match beyond.as_slice() {
        [] => Ok(closing),
        _ => Err(format!("{closing}; beyond the tolerance: {}", beyond.join(", "))),
    }
}

impl Choice {
    fn of(arguments: &[String]) -> Result<Self, String> {
        let mut choice = Self { seeds: 5, stations: STATIONS.to_vec() };
        for word in arguments {
            let mistake = || format!("{word}: expected seeds=N or stations=N,...");
            match word.split_once('=') {
                Some(("seeds", number)) => {
                    choice.seeds = number.parse().ok().filter(|seeds| *seeds > 0).ok_or_else(mistake)?;
                }
                Some(("stations", numbers)) => {
                    let numbers: Result<Vec<u32>, _> = numbers.split(',').map(str::parse).collect();
                    let numbers = numbers.ok().filter(|all| all.iter().all(|stations| *stations > 0));
                    choice.stations = numbers.ok_or_else(mistake)?;
                }
                _ => return Err(mistake()),
            }
        }
        Ok(choice)
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
            "duration=60".to_owned(),
            format!("stations={stations}"),
            format!("ampdu={aggregate}"),
            format!("load={load:.3}"),
        ],
    )?;
    Ok((of_ours, of_ns3))
}

/// Prints a line of the table.
fn line(
    figure: &Figure,
    of_ours: &Figures,
    of_ns3: &Figures,
    (aggregate, stations): (u32, u32),
) -> Result<Verdict, String> {
    let Figure { name, scale, tolerance, .. } = *figure;
    let of = |figures: &Figures, key: &str, scale: f64| {
        let values: Vec<_> = figures.get(key).into_iter().flatten().map(|value| value * scale).collect();
        spread(&values)
            .map(|(low, median, high)| (values, median, format!("{median:.3} [{low:.3}, {high:.3}]")))
    };
    let (Some((mine, median, text)), Some((theirs, other_median, other_text))) =
        (of(of_ours, figure.ours, scale), of(of_ns3, figure.ns3, 1.0))
    else {
        return Err(format!("{name} is missing"));
    };
    let difference = median / other_median - 1.0;
    let verdict =
        verdict(&mine, &theirs, difference, tolerance).ok_or_else(|| format!("{name} is missing"))?;
    let word = match verdict {
        Verdict::Near => String::new(),
        Verdict::Beyond => "beyond".to_owned(),
        Verdict::Undecided(reach) => format!("undecided: ns-3's own interval is {:.0} %", 100.0 * reach),
    };
    println!(
        "{aggregate:>7} B  {stations:>8}  {name:<14}  {text:>29}  {other_text:>29}  {:>+8.1} %  {word}",
        100.0 * difference
    );
    Ok(verdict)
}

/// Whether medians that differ by this share are the same within the tolerance. `None` without values.
fn verdict(mine: &[f64], theirs: &[f64], difference: f64, tolerance: f64) -> Option<Verdict> {
    let (_, median, _) = spread(theirs)?;
    let reach = Interval::of_median(theirs)?.reach(median);
    let ratio = Interval::of_ratio(mine, theirs)?;
    let is_near = difference.abs() <= tolerance;
    let is_beyond = !is_near && (ratio.low > 1.0 + tolerance || ratio.high < 1.0 - tolerance);
    Some(match (is_beyond, is_near && reach <= tolerance) {
        (true, _) => Verdict::Beyond,
        (_, true) => Verdict::Near,
        _ => Verdict::Undecided(reach),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_decided_only_where_the_seeds_decide_it() {
        let of = |mine: &[f64], theirs: &[f64]| {
            let median = |values: &[f64]| spread(values).unwrap().1;
            verdict(mine, theirs, median(mine) / median(theirs) - 1.0, 0.15).unwrap()
        };
        let near = [9.0, 10.0, 10.0, 11.0, 10.0];
        assert!(matches!(of(&near, &near), Verdict::Near));
        assert!(matches!(of(&near.map(|value| 1.3 * value), &near), Verdict::Beyond));
        // The same medians, and twice as much between the seeds as the tolerance is.
        let wide = [7.0, 10.0, 10.0, 13.0, 10.0];
        assert!(matches!(of(&near, &wide), Verdict::Undecided(reach) if (reach - 0.3).abs() < 1e-9));
        assert!(matches!(of(&wide.map(|value| 1.2 * value), &wide), Verdict::Undecided(_)));
        assert!(matches!(of(&wide.map(|value| 3.0 * value), &wide), Verdict::Beyond));
    }

    #[test]
    fn the_numbers_of_stations_are_above_zero() {
        let of = |word: &str| Choice::of(&[word.to_owned()]);
        assert_eq!(of("stations=2,10").unwrap().stations, [2, 10]);
        for word in ["stations=0", "stations=", "seeds=0", "seed=1", "5"] {
            assert!(of(word).is_err(), "{word}");
        }
    }
}
