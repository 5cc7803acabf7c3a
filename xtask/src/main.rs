//! Chores around the workspace: `cargo xtask ci`, `cargo xtask tidy`, `cargo xtask docs`, `cargo xtask dist`,
//! `cargo xtask citations`, `cargo xtask timings`, `cargo xtask peers`, `cargo xtask kernel-peer`,
//! `cargo xtask kernel-queues`, `cargo xtask kernel-disciplines`, `cargo xtask quic-peers`,
//! `cargo xtask vendored`, `cargo xtask nightly`, `cargo xtask weekly`.
//!
//! Has no dependencies, so that it builds in a second and never delays `cargo run`.

mod campaigns;
mod ci;
mod circles;
mod citations;
mod command;
mod cpio;
mod dist;
mod docs;
mod judges;
mod kernel_disciplines;
mod kernel_peer;
mod kernel_queues;
mod namespaces;
mod nightly;
mod peers;
mod python;
mod quic_peers;
mod rules;
mod rust;
mod seeds;
mod study_pages;
mod tidy;
mod timings;
mod tree;
mod vendored;
mod venv;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask ci [STEP...]     what CI runs; all steps, or those named (see --list)
       cargo xtask nightly [--only NAME] [--fresh]     what takes long or judges the machine, at most 123 minutes (see --list)
       cargo xtask weekly [--only NAME] [--fresh]      what takes longer than that
       cargo xtask dist [--untried]     wheel, Debian package, archive, symbols, bill of materials; each tried in a bare Debian 12
       cargo xtask docs [--check]   writes into the pages what commands print, or names where they differ
       cargo xtask tidy             borders, circles of files, unsafe code, words, file lengths, module docs
       cargo xtask citations [--counts]     rule, code, test: where each rule of TCP's RFCs is followed and tested, or why it is left out
       cargo xtask timings [PAGE]   what each crate's build costs, from `cargo build --release --timings`
       cargo xtask peers [seeds=N] [ns3=FOLDER] [CELL...]        the 1997 dumbbell's figures in ns-2 and ns-3 beside ours
       cargo xtask peers queues [seeds=N] [ns3=FOLDER]        CoDel and FQ-CoDel in ns-3 beside ours
       cargo xtask peers wifi [seeds=N] [stations=N,...] [ns3=FOLDER]        ns-3's 802.11n beside ours: throughput and access delay
       cargo xtask peers cellular [seeds=N] [ns3=FOLDER]        ns-3's LTE beside ours: goodput and delay
       cargo xtask peers speed [repeats=N] [ns3=FOLDER] [SCENARIO...]        what the same packets cost there and here
       cargo xtask kernel-peer      our DCCP against a booted Linux 6.1 that still has one
       cargo xtask quic-peers [PEER...]     our QUIC beside aioquic, quic-go and quiche, over an emulated path with 3 % loss
       cargo xtask vendored [--write]     vendor/ against the released crate and its patch; or writes the patch anew
       cargo xtask kernel-queues    our CoDel and FQ-CoDel against that kernel's, decision by decision
       cargo xtask kernel-disciplines [NAME...]     our shaper, policer, classes, losses, copies and damage against its tbf, police, prio, ets, drr, netem";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = tree::workspace_root();
    let outcome = match arguments.first().map(String::as_str) {
        Some("ci") => ci::run(&root, &arguments[1..]),
        Some("nightly") => nightly::nightly(&root, &arguments[1..]),
        Some("weekly") => nightly::weekly(&root, &arguments[1..]),
        Some("dist") => dist::run(&root, &arguments[1..]),
        Some("docs") => docs::run(&root, &arguments[1..]),
        Some("tidy") => tidy::run(&root),
        Some("citations") => citations::run(&root, &arguments[1..]),
        Some("timings") => timings::run(&root, arguments.get(1).map(String::as_str)),
        Some("peers") => peers::run(&root, &arguments[1..]),
        Some("kernel-peer") => kernel_peer::run(&root),
        Some("quic-peers") => quic_peers::command(&root, &arguments[1..]),
        Some("vendored") => vendored::run(&root, &arguments[1..]),
        Some("kernel-queues") => kernel_queues::run(&root, None),
        Some("kernel-disciplines") => kernel_disciplines::run(&root, &arguments[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(closing) => {
            println!("{closing}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
