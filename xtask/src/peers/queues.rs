//! CoDel and FQ-CoDel in ns-3 beside ours: `cargo xtask peers queues [seeds=N]`.
//!
//! `xtask/ns3/queue.cc` and `queue.toml` are one load in both: a paced UDP stream and a TCP transfer (NewReno
//! with SACK) through a link of 10 Mb/s. The seed draws when the transfer begins.

use std::path::Path;

use super::{Ns3, Simulator, ask, table};

/// Prints a table for each discipline.
///
/// # Errors
/// What is wrong with the arguments, or why nothing could be compared.
pub(super) fn run(
    root: &Path,
    ours: &Simulator,
    ns3_built: Option<&Path>,
    arguments: &[String],
) -> Result<String, String> {
    let mut seeds = "10";
    for word in arguments {
        match word.split_once('=') {
            Some(("seeds", number)) => seeds = number,
            _ => return Err(format!("{word}: expected seeds=N")),
        }
    }
    let folder = root.join("xtask").join("ns3");
    let ns3 = Ns3::find(ns3_built).or_else(|_| Ns3::debian());
    let ns3 = ns3.and_then(|ns3| ns3.compile(root, &folder.join("queue.cc"), super::WIRED));
    let ns3 = ns3.map_err(|why| format!("no other simulator is installed: nothing was compared. {why}"))?;
    let scenario = folder.join("queue.toml").display().to_string();
    let disciplines = ["codel", "fq_codel"];
    for queue in disciplines {
        println!("\n{queue}: {seeds} seeds, medians [smallest, largest]");
        let seeds = format!("seeds={seeds}");
        let of_ours = ask(ours, &[scenario.clone(), seeds.clone(), format!("link.wan.queue={queue}")])?;
        let of_ns3 = ask(&ns3, &[seeds, format!("queue={queue}")])?;
        table(&[("talkpath", of_ours), ("ns-3", of_ns3)]);
    }
    Ok(format!("{} ran beside ns-3, which is not judged", disciplines.join(" and ")))
}
