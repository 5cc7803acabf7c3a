//! ns-3's LTE beside ours: `cargo xtask peers cellular [seeds=N]`.
//!
//! `xtask/ns3/lte.cc` and `lte.toml` are one cell of 5 MHz in both: a user beside others who always have
//! data. It offers more than its share, or 70 % of it, or a packet each 20 ms. Judged are the medians over
//! the seeds: goodput within 5 %, and the delay's median and 99th percentile within 15 %. The delay in a full
//! queue says only how long that queue is, and is not judged.
//!
//! What ns-3 does in its own way is set in ours:
//!
//! - Downlink: a block leaves 2 TTIs after its turn (`MacToChannelDelay`), and comes again after 7.
//! - Uplink: a report of a TTI brings the first data 7 TTIs later, which leave after 4 more
//!   (`UL_PUSCH_TTIS_DELAY`). A user has 3 of the 25 resource blocks at least, so 8 users share a TTI.
//! - Sizes of blocks by the number of resource blocks, MCS 28: 3GPP TS 36.213, as ns-3 has them.
//! - The share of the blocks that were not read is what ns-3 counted, from the distance at which its error
//!   model gives 7 %.

use std::path::Path;

use super::{Figures, Ns3, Simulator, ask};

/// The modules of ns-3 with LTE.
const MODULES: &[&str] = &[
    "core",
    "network",
    "mobility",
    "internet",
    "applications",
    "point-to-point",
    "lte",
    "propagation",
    "stats",
    "spectrum",
    "antenna",
    "buildings",
    "csma",
    "bridge",
    "virtual-net-device",
    "traffic-control",
];

/// What a cell is asked.
#[derive(Clone, Copy)]
struct Cell {
    is_up: bool,
    /// Whether ns-3's error model is on.
    has_errors: bool,
    users: u32,
    /// What a user gets who always has data, in kb/s.
    share_kbps: f64,
}

/// What the user offers.
#[derive(Clone, Copy)]
enum Offered {
    /// This much of its share.
    Share(f64),
    /// A packet of 200 B now and then.
    Rarely,
}

/// In downlink blocks of 24 resource blocks: 17,568 bits each TTI.
const DOWN_KBPS: f64 = 17_568.0;
/// In the uplink, by the number of users: blocks of 25, 12, 5 and 3 resource blocks. Of 10 users 8 have one.
const UP_KBPS: [(u32, f64); 4] = [(1, 18_336.0), (2, 8760.0), (5, 3752.0), (10, 2216.0 * 0.8)];
/// Metres at which the blocks of the highest rate are read in 93 of 100 cases.
const FAR: u32 = 3050;

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
    let mut seeds = "3";
    for word in arguments {
        match word.split_once('=') {
            Some(("seeds", number)) => seeds = number,
            _ => return Err(format!("{word}: expected seeds=N")),
        }
    }
    let folder = root.join("xtask").join("ns3");
    let ns3 = Ns3::find(ns3_built).and_then(|ns3| ns3.compile(root, &folder.join("lte.cc"), MODULES));
    let ns3 = ns3.map_err(|why| format!("no other simulator is installed: nothing was compared. {why}"))?;
    let scenario = folder.join("lte.toml").display().to_string();
    let mut differences = Vec::new();
    println!("way   errors  users  offered  figure               ours      ns-3  difference");
    for (is_up, has_errors) in [(false, false), (false, true), (true, false)] {
        for (users, up_kbps) in UP_KBPS {
            let share_kbps = if is_up { up_kbps } else { DOWN_KBPS / f64::from(users) };
            let cell = Cell { is_up, has_errors, users, share_kbps };
            for offered in [Offered::Share(1.5), Offered::Share(0.7), Offered::Rarely] {
                let seeds = format!("seeds={seeds}");
                let theirs = ask(&ns3, &cell.for_ns3(offered, &seeds))?;
                let errors = median(&theirs, "rv0").unwrap_or(0.0);
                let mine = ask(ours, &cell.for_ours(&scenario, offered, errors, &seeds))?;
                differences.extend(cell.judge(offered, &mine, &theirs)?);
            }
        }
    }
    match differences.as_slice() {
        [] => Ok("ns-3's LTE and ours carry the same within 5 %, with the same delay within 15 %".to_owned()),
        _ => Err(format!("beyond the tolerance: {}", differences.join(", "))),
    }
}

impl Cell {
    /// The user's IP packets: their size in bytes, and the time from one to the next in us. No time is a
    /// multiple of a TTI.
    fn packets(self, offered: Offered) -> (f64, f64) {
        match offered {
            Offered::Share(share) => (1000.0, 8e6 / (share * self.share_kbps)),
            Offered::Rarely => (200.0, 20_370.0),
        }
    }

    fn for_ns3(self, offered: Offered, seeds: &str) -> Vec<String> {
        let (bytes, every_us) = self.packets(offered);
        let distance = if self.has_errors { FAR } else { 100 };
        vec![
            seeds.to_owned(),
            format!("up={}", u8::from(self.is_up)),
            format!("errors={}", u8::from(self.has_errors)),
            format!("users={}", self.users),
            format!("bytes={bytes}"),
            format!("interval={every_us:.2}"),
            format!("load={:.0}", 2.0 * self.share_kbps),
            format!("distance={distance}"),
        ]
    }

    fn for_ours(self, scenario: &str, offered: Offered, errors: f64, seeds: &str) -> Vec<String> {
        let (bytes, every_us) = self.packets(offered);
        let payload = bytes - 28.0;
        let mut keys = vec![
            scenario.to_owned(),
            seeds.to_owned(),
            format!("link.radio.rate={:.1} kbps", self.share_kbps),
            format!("link.radio.cellular.others={}", self.users - 1),
            format!("link.radio.cellular.block_error={errors}"),
            "link.radio.cellular.harq_delay=7 ms".to_owned(),
            format!("flow.user.workload.size={payload} B"),
            format!("flow.user.workload.rate={:.0} bps", payload * 8e6 / every_us),
        ];
        if self.is_up {
            keys.extend(
                ["scheduler=round-robin", "scheduler.at_once=8", "request=1 ms", "grant=7 ms"]
                    .map(|key| format!("link.radio.cellular.{key}")),
            );
            keys.push("link.radio.delay=4 ms".to_owned());
        }
        keys
    }

    /// Prints a line for each figure. Returns those that differ.
    fn judge(self, offered: Offered, mine: &Figures, theirs: &Figures) -> Result<Vec<String>, String> {
        let way = if self.is_up { "up" } else { "down" };
        let errors = if self.has_errors { "7 %" } else { "none" };
        let (word, is_full) = match offered {
            Offered::Share(share) => (format!("{:.0} %", 100.0 * share), share > 1.0),
            Offered::Rarely => ("rarely".to_owned(), false),
        };
        let (bytes, _) = self.packets(offered);
        let ip_mbps = 1e-6 * bytes / (bytes - 28.0);
        let delay_tolerance = (!is_full).then_some(0.15);
        let mut differences = Vec::new();
        for (name, own, other, scale, tolerance) in [
            ("goodput, Mb/s", "user_goodput", "goodput", ip_mbps, Some(0.05)),
            ("delay p50, ms", "user_p50", "p50", 1.0, delay_tolerance),
            ("delay p99, ms", "user_p99", "p99", 1.0, delay_tolerance),
        ] {
            let (Some(own), Some(other)) = (median(mine, own), median(theirs, other)) else {
                return Err(format!("{name} is missing"));
            };
            let own = own * scale;
            let difference = own / other - 1.0;
            let is_beyond = tolerance.is_some_and(|tolerance| difference.abs() > tolerance);
            let verdict = match (tolerance, is_beyond) {
                (None, _) => "not judged",
                (_, true) => "beyond",
                (_, false) => "",
            };
            let (users, percent) = (self.users, 100.0 * difference);
            println!(
                "{way:<5} {errors:<6} {users:>6}  {word:>7}  {name:<16} {own:>8.3}  {other:>8.3}  {percent:>+8.1} %  {verdict}"
            );
            if is_beyond {
                differences.push(format!("{name} {way} of {users} users, {word}, errors {errors}"));
            }
        }
        Ok(differences)
    }
}

/// The median over the seeds.
fn median(figures: &Figures, name: &str) -> Option<f64> {
    super::spread(figures.get(name)?).map(|(_, median, _)| median)
}
