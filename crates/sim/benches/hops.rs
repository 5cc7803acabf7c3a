//! How fast the simulator is: hops (one link crossed by one packet) per CPU-second, and instructions per hop.
//!
//! `cargo bench -p talkpath-sim --bench hops` prints a line a scenario. Instructions are counted by callgrind, which is
//! repeatable on a busy machine; without valgrind that column says why it is empty. Instructions per hop are the
//! difference of two runs of different length, so that set-up does not count.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use rustix::time::{ClockId, clock_gettime};
use talkpath_arena::{Arena, RunPlan};
use talkpath_scenario::{Options, Source, load};
use talkpath_sim::SimArena;

/// Name, text, and the shorter duration for callgrind.
const SCENARIOS: [(&str, &str, u64); 3] = [
    ("12 TCP and a voice stream through 1.5 Mb/s, 2,000 s", include_str!("dumbbell.toml"), 50),
    ("64 NewReno and 20 voice streams at 100 Mb/s, 60 s", include_str!("busy.toml"), 10),
    ("200 CUBIC at 1 Gb/s, 10 s", include_str!("gigabit.toml"), 2),
];

fn main() {
    // `cargo test` runs benches too, with `--test`; there is nothing to check in a timing.
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    if let [_, flag, name, seconds] = arguments.as_slice()
        && flag == "--once"
    {
        println!("{}", run(SCENARIOS[name.parse::<usize>().expect("an index")].1, seconds.parse().ok()));
        return;
    }
    println!("{:<56} {:>12} {:>8} {:>10} {:>14}", "scenario", "hops", "CPU s", "M hops/s", "instr./hop");
    for (index, (name, text, seconds)) in SCENARIOS.into_iter().enumerate() {
        let before = cpu_seconds();
        let hops = run(text, None);
        let spent = cpu_seconds() - before;
        let instructions = instructions_per_hop(index, seconds);
        let rate = hops as f64 / spent / 1e6;
        println!("{name:<56} {hops:>12} {spent:>8.2} {rate:>10.2} {instructions:>14}");
    }
}

/// Runs the scenario, for `seconds` where given, and returns the hops.
fn run(text: &str, seconds: Option<u64>) -> u64 {
    let set = seconds.map(|seconds| ("duration".to_owned(), format!("{seconds} s"))).into_iter().collect();
    let source = Source { name: "bench.toml".to_owned(), text: text.to_owned() };
    let plan = load(&source, &Options { set, ..Options::default() }).expect("the scenario is valid");
    let run = RunPlan {
        cell: 0,
        repetition: 0,
        seed: plan.seed,
        series: false,
        interrupt: &AtomicBool::new(false),
        progress: &|_| {},
    };
    let record = SimArena::new().run(&plan.cells[0].scenario, run).expect("the simulator can run it");
    record.links.iter().map(|link| link.forwarded + link.lost).sum()
}

fn instructions_per_hop(index: usize, seconds: u64) -> String {
    let once = |seconds: u64| -> Result<(f64, f64), String> {
        let me = std::env::current_exe().map_err(|error| error.to_string())?;
        let out = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(me)
            .args(["--once", &index.to_string(), &seconds.to_string()])
            .output()
            .map_err(|error| format!("no valgrind: {error}"))?;
        let hops = String::from_utf8_lossy(&out.stdout).trim().parse().map_err(|_| "no figure".to_owned())?;
        let log = String::from_utf8_lossy(&out.stderr).into_owned();
        let counted = log.lines().find_map(|line| line.split_once("Collected : "));
        let (_, counted) = counted.ok_or("no count")?;
        Ok((counted.trim().parse().map_err(|_| "no count".to_owned())?, hops))
    };
    match (once(seconds), once(2 * seconds)) {
        (Ok(short), Ok(long)) => format!("{:.0}", (long.0 - short.0) / (long.1 - short.1)),
        (Err(why), _) | (_, Err(why)) => why,
    }
}

fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
