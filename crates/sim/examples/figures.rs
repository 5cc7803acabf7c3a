//! One line a seed with a run's figures, in the words of the programs that run the same dumbbell in other
//! simulators.
//!
//! `figures SCENARIO.toml [KEY=VALUE]... [seed=N] [seeds=N]` prints `seed=1 loss=0.02 queue=9.1 ...` for each
//! of `seeds` seeds from `seed` on; `records=none` keeps no rows and no series, for a run whose cost is
//! asked, and every other key is the scenario's. `cargo xtask peers` sets these lines beside those of ns-2
//! and ns-3 (studies/sawashima-1997/peers). Streams are judged together, and so are the messages of all
//! clocked flows; the queue is that of the link `wan`.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, RunPlan};
use talkpath_config::TransportConfig;
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::summarise::summarise;
use talkpath_measure::{FlowRecord, RunRecord, SeriesKind};
use talkpath_model::{Flow, Scenario};
use talkpath_scenario::{Options, Setting, Source, load};
use talkpath_sim::SimArena;
use talkpath_units::{Duration, Instant, Seed};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "an example reads the scenario that it is given")]
fn run(arguments: &[String]) -> Result<(), String> {
    let (path, keys) = arguments.split_first().ok_or("usage: figures SCENARIO.toml [KEY=VALUE]...")?;
    let text = std::fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
    let (mut seed, mut seeds, mut keep, mut set) = (1, 1, true, Vec::new());
    for pair in keys {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair}: expected KEY=VALUE"))?;
        let number = || value.parse::<u64>().map_err(|why| format!("{pair}: {why}"));
        match key {
            "seed" => seed = number()?,
            "seeds" => seeds = number()?,
            "records" if value == "none" => keep = false,
            _ => set.push(Setting::new(key, value)),
        }
    }
    let source = Source::new(path.as_str(), text);
    let plan =
        load(&source, &Options { set, ..Options::default() }).map_err(|mistakes| mistakes.to_string())?;
    let scenario = &plan.cells.first().ok_or("the scenario has no cell")?.scenario;
    for seed in seed..seed.saturating_add(seeds) {
        println!("seed={seed}{}", figures(&one(scenario, Seed::new(seed), keep)?, scenario));
    }
    Ok(())
}

/// One run, with every row and series where `keep` says so.
fn one(scenario: &Scenario, seed: Seed, keep: bool) -> Result<RunRecord, String> {
    let interrupt = AtomicBool::new(false);
    let plan = RunPlan {
        cell: 0,
        repetition: 0,
        seed,
        series: keep.then_some(SeriesDetail::Full),
        rows: keep,
        interrupt: &interrupt,
        progress: &|_| {},
    };
    SimArena::new().run(scenario, plan).map_err(|why| why.to_string())
}

/// ` name=value` for all that the run has.
fn figures(record: &RunRecord, scenario: &Scenario) -> String {
    let summary = summarise(record, &std::collections::BTreeMap::new());
    let summaries =
        || record.flows.iter().filter_map(|flow| Some((flow, summary.flows.get(&flow.info.name)?)));
    let streams = || summaries().filter(|(flow, _)| !flow.info.clocked);
    let clocked = || summaries().filter(|(flow, _)| flow.info.clocked);
    let mean =
        |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let counted = |what: fn(&FlowRecord) -> Option<u64>| -> Option<f64> {
        streams().map(|(flow, _)| what(flow)).sum::<Option<u64>>().map(|sum| sum as f64)
    };
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let lost = clocked().map(|(_, flow)| flow.lost).sum::<u64>();
    let runs = clocked().flat_map(|(_, flow)| &flow.loss_runs.histogram).sum::<u64>();
    // Stations of a Wi-Fi beside one whose delay is asked (xtask/ns3/wifi.toml).
    let probe = summary.flows.get("probe").and_then(|flow| flow.one_way_delay_ms.as_ref());
    let stations = clocked().filter(|(flow, _)| flow.info.name != "probe");
    let carried = stations.filter_map(|(_, flow)| flow.goodput_bps).sum::<f64>();
    // A user of a cell (xtask/ns3/lte.toml).
    let user = summary.flows.get("user");
    let user_delay = user.and_then(|flow| flow.one_way_delay_ms.as_ref());
    let wan = record.links.iter().find(|link| link.name == "wan");
    let hops = record.links.iter().map(|link| link.forwarded + link.lost).sum::<u64>();
    let sent = counted(|flow| flow.counters.data_packets);
    let again = counted(|flow| flow.counters.retransmissions);
    let all = [
        ("access_p99", probe.and_then(|_| access_delay_p99(record))),
        ("carried", probe.map(|_| carried)),
        ("capped", mean(scenario.flows.iter().filter_map(|flow| capped_window(record, flow)).collect())),
        ("cwnd", mean(streams().filter_map(|(_, flow)| flow.cwnd_packets).collect())),
        ("dropped", wan.map(|link| link.dropped as f64)),
        ("goodput", Some(streams().filter_map(|(_, flow)| flow.goodput_bps).sum())),
        ("hops", Some(hops as f64)),
        ("loss", share(lost, lost + clocked().map(|(_, flow)| flow.received).sum::<u64>())),
        ("probe_p50", probe.map(|delay| delay.p50)),
        ("probe_p99", probe.map(|delay| delay.p99)),
        ("queue", wan.map(|link| link.queue_packets_mean)),
        ("retransmit", sent.zip(again).map(|(sent, again)| again / sent)),
        ("run_max", clocked().map(|(_, flow)| flow.loss_runs.max as f64).reduce(f64::max)),
        ("run_mean", share(lost, runs)),
        ("timeouts", counted(|flow| flow.counters.timeouts)),
        ("user_goodput", user.and_then(|flow| flow.goodput_bps)),
        ("user_p50", user_delay.map(|delay| delay.p50)),
        ("user_p99", user_delay.map(|delay| delay.p99)),
        ("wait_mean", wan.map(|link| link.queue_delay.mean.as_millis_f64())),
        ("wait_p95", wan.map(|link| link.queue_delay.p95.as_millis_f64())),
    ];
    all.iter().filter_map(|(name, value)| value.map(|value| format!(" {name}={value}"))).collect()
}

/// The 99th percentile in milliseconds of the time from the last packet of a station's transmission to the
/// first of its next one, of all stations that always have something to send.
fn access_delay_p99(record: &RunRecord) -> Option<f64> {
    // Packets of 1500 B come 192 us after each other in an aggregate, and 315 us in two transmissions.
    const OF_ONE_TRANSMISSION: Duration = Duration::from_micros(250);
    let is_counted = |at: &Instant| (record.window_start..record.window_end).contains(at);
    let mut delays = Vec::new();
    for flow in record.flows.iter().filter(|flow| flow.info.name != "probe") {
        let arrivals = flow.forward.messages.iter().filter_map(|message| message.received);
        let arrivals: Vec<_> = arrivals.filter(is_counted).collect();
        let gaps = arrivals.iter().zip(arrivals.iter().skip(1)).map(|(from, to)| to.since(*from));
        delays.extend(gaps.filter(|gap| *gap > OF_ONE_TRANSMISSION));
    }
    delays.sort_unstable();
    delays.get(delays.len() * 99 / 100).map(|delay| delay.as_millis_f64())
}

/// The mean of a connection's window as it counted: `cwnd`, capped by what the receiver's buffer lets be in
/// flight.
fn capped_window(record: &RunRecord, flow: &Flow) -> Option<f64> {
    let TransportConfig::Tcp(config) = &flow.transport else { return None };
    let rwnd = config.rwnd.get() as f64 / config.mss?.get() as f64;
    let series = record.series.iter().find(|it| it.entity == flow.name && it.kind == SeriesKind::Cwnd)?;
    let end = record.window_end;
    let held = series.points.iter().zip(series.points.iter().skip(1).map(|next| next.0).chain([end]));
    let (area, span) = held.filter(|((from, _), to)| from < to && *from < end).fold(
        (0.0, 0.0),
        |(area, span), ((from, cwnd), to)| {
            let held = to.min(end).since(*from).as_millis_f64();
            (area + held * cwnd.min(rwnd), span + held)
        },
    );
    (span > 0.0).then_some(area / span)
}
