//! `cargo xtask peers`: the dumbbell of studies/sawashima-1997 in ns-2 and ns-3 beside ours, what each costs
//! in CPU time (`speed`), CoDel and FQ-CoDel in ns-3 beside ours (`queues`), and its Wi-Fi (`wifi`) and
//! LTE (`cellular`).
//!
//! Three programs take the same questions and print the same lines (`seed=1 loss=0.02 queue=9.1 ...`): ours
//! (crates/sim/examples/figures.rs), `dumbbell.tcl` for ns-2 and `dumbbell.cc` for ns-3, both beside the
//! study. Neither simulator is part of this workspace; if one is not installed, its column says so, with the
//! way to get it, and without both nothing was compared and the exit code is no success.
//!
//! ns-2's figures are judged, of ten seeds or more. Its TCP is set to the rules of ours, so the ranges of a
//! figure that both mean alike overlap, or their medians are within a hundredth ([`differs`]). ns-3's are
//! printed alone: without SACK it counts what is in flight by other rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::cargo;

mod cells;
mod cellular;
mod interval;
mod queues;
mod speed;
mod wifi;

use cells::cells;

/// A simulator that can be asked.
struct Simulator {
    name: &'static str,
    program: PathBuf,
    /// What comes before the keys.
    before: Vec<String>,
}

/// Every run's figures, by name.
type Figures = BTreeMap<String, Vec<f64>>;

/// Compares figures, or with `speed` the cost, or with `queues` what queues do. `ns3=FOLDER` takes ns-3 from
/// there, the folder of a build of its sources (cmake -B), and not from the Python package.
///
/// # Errors
/// What is wrong with the arguments, or why nothing could be compared.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<String, String> {
    let (of_ns3, arguments): (Vec<_>, Vec<_>) =
        arguments.iter().cloned().partition(|word| word.starts_with("ns3="));
    let built = of_ns3.last().and_then(|word| word.strip_prefix("ns3=")).map(Path::new);
    if arguments.first().is_some_and(|word| word == "queues") {
        return queues::run(root, &ours(root)?, built, &arguments[1..]);
    }
    if arguments.first().is_some_and(|word| word == "wifi") {
        return wifi::run(root, &ours(root)?, built, &arguments[1..]);
    }
    if arguments.first().is_some_and(|word| word == "cellular") {
        return cellular::run(root, &ours(root)?, built, &arguments[1..]);
    }
    let (peers, absent) = peers(root, built);
    for why in &absent {
        println!("skipped: {why}");
    }
    if peers.is_empty() {
        return Err("no other simulator is installed: nothing was compared".to_owned());
    }
    let ours = ours(root)?;
    if arguments.first().is_some_and(|word| word == "speed") {
        return speed::run(root, &ours, &peers, &arguments[1..]);
    }
    compare(root, &ours, &peers, &arguments)
}

/// `[seeds=N] [duration=S] [CELL-PREFIX...]`: medians and ranges over N seeds.
fn compare(
    root: &Path,
    ours: &Simulator,
    peers: &[Simulator],
    arguments: &[String],
) -> Result<String, String> {
    let mut seeds = "10";
    let mut wanted = Vec::new();
    for word in arguments {
        match word.split_once('=') {
            Some(("seeds", number)) => seeds = number,
            Some(_) => return Err(format!("{word}: expected seeds=N or the beginning of a cell's name")),
            None => wanted.push(word.as_str()),
        }
    }
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|prefix| name.starts_with(prefix));
    let folder = root.join("studies/sawashima-1997");
    let (mut shown, mut judged, mut differences) = (0, 0, Vec::new());
    for cell in cells().iter().filter(|cell| chosen(&cell.name)) {
        shown += 1;
        println!("\n{}: {} seeds, medians [smallest, largest]", cell.name, seeds);
        let mut arguments = vec![folder.join(cell.scenario).display().to_string(), format!("seeds={seeds}")];
        arguments.extend(cell.ours.iter().cloned());
        let mut columns = vec![("talkpath", ask(ours, &arguments)?)];
        for peer in peers {
            let keys = if peer.name == "ns-2" { Some(&cell.ns2) } else { cell.ns3.as_ref() };
            let Some(keys) = keys else { continue };
            let mut arguments = vec![format!("seeds={seeds}")];
            arguments.extend(keys.split_whitespace().map(str::to_owned));
            columns.push((peer.name, ask(peer, &arguments)?));
        }
        table(&columns);
        if let [(_, ours), others @ ..] = columns.as_slice()
            && let Some((_, ns2)) = others.iter().find(|(name, _)| *name == "ns-2")
        {
            let found = FIGURES.iter().filter(|figure| differs(figure, ours, ns2));
            differences.extend(found.map(|figure| format!("{} of {}", figure.name, cell.name)));
            judged += usize::from(ns2.values().any(|all| all.len() >= JUDGED_SEEDS));
        }
    }
    let names: Vec<_> = peers.iter().map(|peer| peer.name).collect();
    let ran = format!("{shown} cells ran beside {}", names.join(" and "));
    match (judged, differences.is_empty()) {
        (0, _) => Ok(format!("{ran}; nothing was judged: that takes ns-2 and {JUDGED_SEEDS} seeds")),
        (_, true) => Ok(format!("{ran}; no figure differs from ns-2's; ns-3's are printed and not judged")),
        (_, false) => Err(format!("{ran}; beyond ns-2's range: {}", differences.join(", "))),
    }
}

/// Whether `figure` of one simulator lies wholly beyond the other's, and by more than [`RESOLUTION`]. Never
/// of fewer than [`JUDGED_SEEDS`] seeds.
fn differs(figure: &Figure, ours: &Figures, other: &Figures) -> bool {
    let of = |figures: &Figures| {
        figures.get(figure.name).filter(|all| all.len() >= JUDGED_SEEDS).and_then(|all| spread(all))
    };
    let (Some(ours), Some(other)) = (of(ours), of(other)) else { return false };
    let (low, median, high) = ours;
    let (other_low, other_median, other_high) = other;
    let is_beyond = low > other_high || other_low > high;
    figure.is_judged && is_beyond && (median - other_median).abs() > RESOLUTION * other_median.abs()
}

/// Ranges of ten values each from one distribution are apart in 2 of C(20, 10) = 184,756 draws.
const JUDGED_SEEDS: usize = 10;

/// Where nothing is lost, a range is a packet or two wide, and what each simulator calls the run's end
/// decides: goodputs then differ by 0.15 % (3 connections with equal delays).
const RESOLUTION: f64 = 0.01;

/// The figures that `simulator` prints.
fn ask(simulator: &Simulator, arguments: &[String]) -> Result<Figures, String> {
    let out = Command::new(&simulator.program)
        .args(&simulator.before)
        .args(arguments)
        .output()
        .map_err(|why| format!("{}: {why}", simulator.program.display()))?;
    if !out.status.success() {
        return Err(format!("{}: {}", simulator.name, String::from_utf8_lossy(&out.stderr).trim()));
    }
    let mut figures = Figures::new();
    for pair in String::from_utf8_lossy(&out.stdout).split_whitespace() {
        if let Some((name, value)) = pair.split_once('=')
            && let Ok(value) = value.parse()
        {
            figures.entry(name.to_owned()).or_default().push(value);
        }
    }
    Ok(figures)
}

/// One line a figure, one column a simulator.
fn table(columns: &[(&str, Figures)]) {
    print!("  {:<11}", "");
    for (name, _) in columns {
        print!(" {name:>32}");
    }
    println!();
    for Figure { name, scale, unit, .. } in FIGURES {
        let cells: Vec<_> =
            columns.iter().map(|(_, figures)| figures.get(name).and_then(|all| spread(all))).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        print!("  {name:<11}");
        for cell in cells {
            let text = cell.map_or_else(String::new, |(low, median, high)| {
                format!("{:.3} [{:.3}, {:.3}]", median * scale, low * scale, high * scale)
            });
            print!(" {text:>32}");
        }
        println!(" {unit}");
    }
}

/// Smallest, median and largest; `None` of nothing.
fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.first()?, sorted.last()?);
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some((*low, f64::midpoint(*lower, *upper), *high))
}

/// Our own, built with optimisation.
fn ours(root: &Path) -> Result<Simulator, String> {
    let arguments = ["build", "--quiet", "--release", "-p", "talkpath-sim", "--example", "figures"];
    let built = cargo(root, &arguments).status().map_err(|why| format!("cargo: {why}"))?;
    if !built.success() {
        return Err("the simulator did not build".to_owned());
    }
    let program = target(root).join("release/examples/figures");
    Ok(Simulator { name: "talkpath", program, before: Vec::new() })
}

/// What is installed, and for the rest why not and what to do.
fn peers(root: &Path, ns3_built: Option<&Path>) -> (Vec<Simulator>, Vec<String>) {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    let ns3 = Ns3::find(ns3_built)
        .and_then(|ns3| ns3.compile(root, &root.join("studies/sawashima-1997/peers/dumbbell.cc"), WIRED));
    for peer in [ns2(root), ns3] {
        match peer {
            Ok(simulator) => found.push(simulator),
            Err(why) => absent.push(why),
        }
    }
    (found, absent)
}

fn ns2(root: &Path) -> Result<Simulator, String> {
    let program = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("ns")).find(|it| it.is_file()))
        .ok_or("ns-2: no `ns` on the PATH; Debian: apt-get install ns2")?;
    let script = root.join("studies/sawashima-1997/peers/dumbbell.tcl");
    Ok(Simulator { name: "ns-2", program, before: vec![script.display().to_string()] })
}

/// An ns-3: where it is installed.
struct Ns3 {
    headers: PathBuf,
    libraries: PathBuf,
    /// The C++ that its headers are written in.
    standard: &'static str,
    /// Ends the names of the programs that are linked with it.
    name: &'static str,
}

impl Ns3 {
    /// That of a build of its sources in `built`, or else of the Python package.
    fn find(built: Option<&Path>) -> Result<Self, String> {
        let in_folder = |folder: &Path, libraries: &str, name| Self {
            headers: folder.join("include"),
            libraries: folder.join(libraries),
            standard: "c++20",
            name,
        };
        if let Some(folder) = built {
            return Ok(in_folder(folder, "lib", "built"));
        }
        let folder = python_package()?;
        if folder.join("include").is_dir() {
            return Ok(in_folder(&folder, "lib64", "python"));
        }
        Err(format!("ns-3: not installed (no folder {}); {NS3_HOW}", folder.join("include").display()))
    }

    /// Debian's, which has logging compiled in: its speed says nothing.
    fn debian() -> Result<Self, String> {
        let headers = PathBuf::from("/usr/include");
        if !headers.join("ns3").is_dir() {
            return Err("ns-3: not installed; apt-get install libns3-dev (3.37)".to_owned());
        }
        let triplet = Command::new("g++").arg("-print-multiarch").output();
        let triplet = triplet.map_err(|_| NO_COMPILER.to_owned())?;
        let libraries = Path::new("/usr/lib").join(String::from_utf8_lossy(&triplet.stdout).trim());
        Ok(Self { headers, libraries, standard: "c++17", name: "debian" })
    }

    /// The program that `source` compiles to, with these modules of ns-3. It is compiled when it changes.
    fn compile(&self, root: &Path, source: &Path, modules: &[&str]) -> Result<Simulator, String> {
        let folder = target(root).join("peers");
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let program = folder.join(format!("ns3-{stem}-{}", self.name));
        let age = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
        if age(&program).is_some_and(|built| age(source).is_some_and(|written| built > written)) {
            return Ok(Simulator { name: "ns-3", program, before: Vec::new() });
        }
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let mut compiler = Command::new("g++");
        compiler.arg("-O2").arg(format!("-std={}", self.standard)).arg("-o").arg(&program).arg(source);
        compiler.arg("-I").arg(&self.headers).arg("-L").arg(&self.libraries);
        compiler.arg(format!("-Wl,-rpath,{}", self.libraries.display()));
        // Its LTE is linked with what draws windows, and runs without.
        compiler.arg("-Wl,--allow-shlib-undefined");
        for module in modules {
            let library = library(&self.libraries, module);
            compiler.arg(library.ok_or_else(|| format!("ns-3: no library {module}; {NS3_HOW}"))?);
        }
        let compiled = compiler.status().map_err(|_| NO_COMPILER.to_owned())?;
        if compiled.success() {
            Ok(Simulator { name: "ns-3", program, before: Vec::new() })
        } else {
            Err(format!("ns-3: {} does not compile against it", source.display()))
        }
    }
}

/// The modules of wired networks.
const WIRED: &[&str] =
    &["core", "network", "internet", "point-to-point", "applications", "traffic-control", "bridge"];
const NO_COMPILER: &str = "ns-3: no g++ to compile for it; apt-get install g++";
const NS3_HOW: &str =
    "pip install ns3 (3.44; Debian's 3.37 has logging compiled in), or ns3=FOLDER of a build of its sources";

/// The folder in which the Python package of ns-3 is installed.
fn python_package() -> Result<PathBuf, String> {
    const FIND: &str = "import importlib.util as u; print(u.find_spec('ns3').submodule_search_locations[0])";
    let out = Command::new("python3").args(["-c", FIND]).output();
    let out = out.map_err(|_| "ns-3: no python3 to look for it".to_owned())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()))
}

/// The linker's word for the library of `module`: a profile's libraries end with its name
/// (libns3.44-core-optimized.so).
fn library(folder: &Path, module: &str) -> Option<String> {
    let endings = [format!("-{module}.so"), format!("-{module}-optimized.so")];
    fs::read_dir(folder).into_iter().flatten().flatten().find_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let fits = name.starts_with("libns3") && endings.iter().any(|ending| name.ends_with(ending));
        fits.then(|| format!("-l:{name}"))
    })
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// What is shown of a run.
struct Figure {
    name: &'static str,
    /// The factor that brings it to the unit.
    scale: f64,
    unit: &'static str,
    /// Whether ns-2 means the same by it. Its `cwnd_` leaves out what fast recovery inflates (`dupwnd_`).
    is_judged: bool,
}

const fn judged(name: &'static str, scale: f64, unit: &'static str) -> Figure {
    Figure { name, scale, unit, is_judged: true }
}

const fn shown(name: &'static str, scale: f64, unit: &'static str) -> Figure {
    Figure { name, scale, unit, is_judged: false }
}

const FIGURES: [Figure; 12] = [
    judged("loss", 100.0, "% of packets of constant rate"),
    judged("run_mean", 1.0, "voice packets lost in a row, mean"),
    judged("run_max", 1.0, "the most in a row"),
    judged("queue", 1.0, "packets waiting, mean"),
    judged("wait_mean", 1.0, "ms in the queue, mean"),
    judged("wait_p95", 1.0, "ms in the queue, 95th percentile"),
    judged("goodput", 1e-6, "Mb/s of all connections"),
    shown("capped", 1.0, "packets of window, capped by the receiver's, mean"),
    shown("cwnd", 1.0, "packets of window, as the sender holds it, mean"),
    judged("dropped", 1.0, "packets dropped at the bottleneck"),
    judged("retransmit", 100.0, "% of segments sent again"),
    judged("timeouts", 1.0, "of all connections"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]), Some((1.0, 2.5, 4.0)));
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn a_figure_differs_where_the_ranges_of_ten_seeds_lie_apart_and_a_hundredth_of_it() {
        let of = |name: &str, values: &[f64]| Figures::from([(name.to_owned(), values.to_vec())]);
        let steps = |from: f64, step: f64| (0..10).map(|at| from + step * f64::from(at)).collect::<Vec<_>>();
        let [loss, cwnd] = [judged("loss", 100.0, ""), shown("cwnd", 1.0, "")];
        let ours = steps(1.0, 0.01);
        for (others, expected) in [
            (steps(1.1, 0.01), true),
            (steps(0.8, 0.01), true),
            (steps(1.09, 0.01), false),
            (steps(1.091, 1e-5)[..9].to_vec(), false),
            (vec![], false),
        ] {
            let found = differs(&loss, &of("loss", &ours), &of("loss", &others));
            assert_eq!(found, expected, "{others:?}");
            assert!(!differs(&cwnd, &of("cwnd", &ours), &of("cwnd", &others)), "{others:?}");
        }
        // A packet or two of a hundred thousand.
        assert!(!differs(&loss, &of("loss", &steps(1.388, 1e-5)), &of("loss", &steps(1.386, 1e-5))));
    }
}
