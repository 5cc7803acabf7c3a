//! How fast the simulator is: hops (one link crossed by one packet) per CPU-second, and instructions per hop.
//!
//! `cargo bench -p talkpath-sim --bench hops` prints a line a scenario. Instructions are counted by
//! callgrind, which is repeatable on a busy machine; without valgrind that column says why it is empty.
//! Instructions per hop are the difference of two runs of different length, so that set-up does not count.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use talkpath_arena::{Arena, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_scenario::{Cell, Options, Setting, Source, load};
use talkpath_sim::SimArena;

#[path = "../tests/common/mod.rs"]
mod common;

/// Name, text, and the shorter duration for callgrind.
const SCENARIOS: [(&str, &str, u64); 4] = [
    ("12 TCP and a voice stream through 1.5 Mb/s, 2,000 s", include_str!("dumbbell.toml"), 50),
    ("64 NewReno and 20 voice streams at 100 Mb/s, 60 s", include_str!("busy.toml"), 10),
    ("the same behind FQ-CoDel", include_str!("busy-fq-codel.toml"), 10),
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
        let text = SCENARIOS[name.parse::<usize>().expect("an index")].1;
        println!("{}", hops(&run(text, seconds.parse().ok())[0]));
        return;
    }
    if let [_, flag, flows, seconds] = arguments.as_slice()
        && flag == "--flows"
    {
        return many(flows.parse().expect("a number"), seconds.parse().expect("a number"));
    }
    if let [_, flag, files @ ..] = arguments.as_slice()
        && flag == "--digest"
    {
        return files.iter().for_each(|file| digest(file));
    }
    println!("{:<56} {:>12} {:>8} {:>10} {:>14}", "scenario", "hops", "CPU s", "M hops/s", "instr./hop");
    for (index, (name, text, seconds)) in SCENARIOS.into_iter().enumerate() {
        let before = cpu_seconds();
        let hops = hops(&run(text, None)[0]);
        let spent = cpu_seconds() - before;
        let instructions = instructions_per_hop(index, seconds);
        let rate = hops as f64 / spent / 1e6;
        println!("{name:<56} {hops:>12} {spent:>8.2} {rate:>10.2} {instructions:>14}");
    }
}

/// Runs every cell of the scenario once, for `seconds` where given.
fn run(text: &str, seconds: Option<u64>) -> Vec<RunRecord> {
    let set = seconds.map(|seconds| Setting::new("duration", format!("{seconds} s"))).into_iter().collect();
    let source = Source::new("bench.toml", text);
    let plan = load(&source, &Options { set, ..Options::default() }).expect("the scenario is valid");
    let interrupt = AtomicBool::new(false);
    let run = |cell: &Cell| {
        let run = RunPlan {
            cell: 0,
            repetition: 0,
            seed: plan.seed,
            series: None,
            rows: false,
            interrupt: &interrupt,
            progress: &|_| {},
        };
        SimArena::new().run(&cell.scenario, run).expect("the simulator can run it")
    };
    plan.cells.iter().map(run).collect()
}

fn hops(record: &RunRecord) -> u64 {
    record.links.iter().map(|link| link.forwarded + link.lost).sum()
}

/// Runs `flows` CUBIC transfers that share 1 Mb/s each for `seconds`, and once more for half of that; prints
/// hops, CPU time a hop, the same of the second half alone, which has no part in setting up, and the most
/// memory.
#[expect(clippy::disallowed_methods, reason = "a bench reads its own peak of memory")]
fn many(flows: u64, seconds: u64) {
    let text = format!(
        "name = \"many\"\nduration = \"{seconds} s\"\ndrain = \"0 s\"\n\
         [link.wan]\nrate = \"{flows} Mbps\"\ndelay = \"20 ms\"\n\
         queue = {{ kind = \"drop-tail\", limit = \"{} packets\" }}\n\
         [link.back]\nrate = \"{flows} Mbps\"\ndelay = \"20 ms\"\n\
         [link.\"tx{{n}}\"]\nrate = \"100 Mbps\"\ndelay = {{ from = \"1 ms\", step = \"1 us\" }}\n\
         [flow.bulk]\ncount = {flows}\ntransport = {{ kind = \"tcp\", cc = \"cubic\" }}\n\
         workload = {{ kind = \"bulk\" }}\nstart = {{ from = \"0 s\", to = \"1 s\" }}\n\
         route = [\"tx{{n}}\", \"wan\"]\nreturn_route = [\"back\"]\n",
        3 * flows
    );
    let timed = |seconds: Option<u64>| {
        let before = cpu_seconds();
        let hops = hops(&run(&text, seconds)[0]);
        (hops as f64, cpu_seconds() - before)
    };
    let ((fewer, less), (hops, spent)) = (timed(Some(seconds / 2)), timed(None));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown").to_owned();
    let nanos = |seconds: f64, hops: f64| seconds * 1e9 / hops;
    println!(
        "{flows} flows: {hops} hops, {:.0} ns a hop, {:.0} in the second half, {peak}",
        nanos(spent, hops),
        nanos(spent - less, hops - fewer)
    );
}

/// Prints the digests of the scenario in `file`, as `tests/digests.rs` compares them.
#[expect(clippy::disallowed_methods, reason = "a bench reads its own scenario file")]
fn digest(file: &str) {
    let text = std::fs::read_to_string(file).expect("a scenario file");
    let (with, without) = (common::digest_with_rows(&text), common::digest_without_rows(&text));
    println!("{with:016x} with rows, {without:016x} without {file}");
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

/// By the scheduler's own count, which can be read under valgrind too (proc(5), /proc/PID/schedstat).
#[expect(clippy::disallowed_methods, reason = "a bench reads its own time")]
fn cpu_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = spent.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e9
}
