//! What the same packets cost in each simulator: CPU time and hops, a hop being one link crossed by one
//! packet, data or acknowledgement.
//!
//! The scenarios are the simulator's benchmarks. Links in ns-2 and ns-3 go both ways, so that
//! acknowledgements cross the senders' own links there and not here; costs are compared by the hop. ns-2's
//! hops are counted in a run of their own, since its monitors cost it time. ns-3 runs a shorter stretch of
//! the same scenario, for it takes a quarter of an hour for the third. CPU time is the whole process's, user
//! and system, from the operating system's account of finished children.

use std::fs;
use std::path::Path;

use super::{Simulator, ask, spread};

struct Benchmark {
    name: &'static str,
    scenario: &'static str,
    /// Keys of dumbbell.tcl and dumbbell.cc.
    common: &'static str,
    ns2: &'static str,
    ns3: &'static str,
}

/// `[repeats=N] [NAME...]`: all three benchmarks or those named, one line each and simulator. Simulators take
/// turns, so that what else the machine does meets them alike; a ratio is of one turn, and the line has its
/// median and range over the turns.
pub(super) fn run(
    root: &Path,
    ours: &Simulator,
    peers: &[Simulator],
    words: &[String],
) -> Result<String, String> {
    let (mut repeats, mut names) = (3_usize, Vec::new());
    for word in words {
        match word.split_once('=') {
            Some(("repeats", number)) => repeats = number.parse().map_err(|why| format!("{word}: {why}"))?,
            Some(_) => return Err(format!("{word}: expected repeats=N or a benchmark's name")),
            None => names.push(word.as_str()),
        }
    }
    println!("{repeats} turns: medians [smallest, largest]");
    println!(
        "{:<10} {:<9} {:>10} {:>8} {:>10} {:>26}",
        "scenario", "", "hops", "CPU s", "M hops/s", "CPU s a hop, ours = 1"
    );
    let chosen = |name: &str| names.is_empty() || names.contains(&name);
    for benchmark in BENCHMARKS.iter().filter(|it| chosen(it.name)) {
        let mut contestants = vec![own(root, benchmark, ours)?];
        for peer in peers {
            contestants.push(rival(benchmark, peer)?);
        }
        for _ in 0..repeats {
            for contestant in &mut contestants {
                let before = children_seconds()?;
                ask(contestant.simulator, &contestant.timed)?;
                contestant.seconds.push(children_seconds()? - before);
            }
        }
        print(benchmark.name, &contestants);
    }
    Ok(String::new())
}

/// One simulator in one benchmark.
struct Contestant<'a> {
    simulator: &'a Simulator,
    timed: Vec<String>,
    hops: f64,
    /// CPU time of each turn.
    seconds: Vec<f64>,
}

/// Ours counts hops in any case. Like the others' it keeps no trace of each packet.
fn own<'a>(root: &Path, benchmark: &Benchmark, ours: &'a Simulator) -> Result<Contestant<'a>, String> {
    let scenario = root.join("crates/sim/benches").join(benchmark.scenario);
    let timed = vec![scenario.display().to_string(), "records=none".to_owned()];
    let hops = hops(ours, &timed)?;
    Ok(Contestant { simulator: ours, timed, hops, seconds: Vec::new() })
}

/// ns-2's monitors cost it time: its hops are counted in a run that is not timed.
fn rival<'a>(benchmark: &Benchmark, peer: &'a Simulator) -> Result<Contestant<'a>, String> {
    let keys = if peer.name == "ns-2" { benchmark.ns2 } else { benchmark.ns3 };
    let words = |counted: &str| -> Vec<String> {
        let all = format!("{} {keys} sample=0 hops={counted}", benchmark.common);
        all.split_whitespace().map(str::to_owned).collect()
    };
    let timed = if peer.name == "ns-2" { words("0") } else { words("1") };
    let hops = hops(peer, &words("1"))?;
    Ok(Contestant { simulator: peer, timed, hops, seconds: Vec::new() })
}

fn hops(simulator: &Simulator, arguments: &[String]) -> Result<f64, String> {
    let figures = ask(simulator, arguments)?;
    figures.get("hops").and_then(|all| all.first()).copied().ok_or_else(|| "no count of hops".to_owned())
}

fn print(name: &str, contestants: &[Contestant<'_>]) {
    let Some(ours) = contestants.first() else { return };
    for it in contestants {
        let ratios: Vec<f64> = it
            .seconds
            .iter()
            .zip(&ours.seconds)
            .map(|(spent, own)| spent / it.hops / (own / ours.hops))
            .collect();
        let Some(((low, ratio, high), (_, spent, _))) = spread(&ratios).zip(spread(&it.seconds)) else {
            continue;
        };
        println!(
            "{name:<10} {:<9} {:>10} {spent:>8.2} {:>10.2} {:>26}",
            it.simulator.name,
            it.hops,
            it.hops / spent / 1e6,
            format!("{ratio:.1} [{low:.1}, {high:.1}]")
        );
    }
}

/// User and system time of all children that have ended, to the clock tick of 10 ms (proc(5): cutime, cstime;
/// USER_HZ is 100).
fn children_seconds() -> Result<f64, String> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|why| format!("/proc/self/stat: {why}"))?;
    // The name in parentheses may hold spaces; cutime and cstime are fields 16 and 17 of all, 14 and 15 of
    // those after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    match (ticks(13), ticks(14)) {
        (Some(user), Some(system)) => Ok((user + system) / 100.0),
        _ => Err("/proc/self/stat: no cutime".to_owned()),
    }
}

const BENCHMARKS: [Benchmark; 3] = [
    Benchmark {
        name: "dumbbell",
        scenario: "dumbbell.toml",
        common: "duration=2000 tcps=12 delack=1 rx_step=0.002 voices=1 voice_size=160",
        ns2: "cc=reno",
        ns3: "cc=newreno duration=200",
    },
    Benchmark {
        name: "busy",
        scenario: "busy.toml",
        common: "duration=60 tcps=64 cc=newreno mss=1460 rwnd=10000 iw=10 delack=1 delack_timer=0.04 tick=0.001 min_rto=0.2 \
                 limited_transmit=1 wan_rate=100 wan_delay=0.02 queue=250 tx_rate=1000 tx_step=0.0001 rx=0 voices=20 voice_size=160",
        ns2: "bugfix=1",
        ns3: "duration=5",
    },
    Benchmark {
        name: "gigabit",
        scenario: "gigabit.toml",
        common: "duration=10 tcps=200 cc=cubic mss=1448 rwnd=10000 iw=10 delack=1 delack_timer=0.04 tick=0.001 min_rto=0.2 \
                 wan_rate=1000 wan_delay=0.02 queue=2500 tx_rate=10000 tx_step=0.00005 rx=0",
        ns2: "",
        ns3: "duration=1 drain=0.1",
    },
];
