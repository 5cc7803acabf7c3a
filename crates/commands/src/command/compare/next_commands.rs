//! The commands that `compare` proposes under its answer: the same comparison in another arena.

use talkpath_measure::summary::{Answer, AnswerKind, Summary};
use talkpath_report::HOPELESS;
use talkpath_scenario::{ComparedWorkload, held_transfer};
use talkpath_units::Rate;

use super::path::{UPLINK, UPLOAD, is_path_key};
use crate::args::{CompareArgs, HOME};
use crate::terminal::{program, shell_word};
use talkpath_experiment::choice::ArenaKind;

/// Writes the commands that run the same comparison in another arena than `arena`. In `emu`, which does not
/// hold the upload back by itself, it also writes the command that does, if nothing was usable. `uplink` is
/// the lowest rate of the link that an upload fills, if there is one.
pub(super) fn next_commands(
    args: &CompareArgs,
    arena: ArenaKind,
    summary: &Summary,
    uplink: Option<Rate>,
) -> String {
    let program = program();
    let comparison = comparison_flags(args, summary);
    match arena {
        ArenaKind::Sim => {
            let path = path_flags(args);
            format!(
                "The same over real sockets: {program} compare --arena emu{path}{comparison}\n\
                 Between two hosts: `{program} serve --open` on the other, then {program} compare --to HOST{comparison} here\n"
            )
        }
        ArenaKind::Emu => {
            let path = path_flags(args);
            let has_kernel_key = args.change.set.iter().any(|(key, _)| key == "kernel");
            let kernel = if has_kernel_key { "" } else { " --set kernel=this" };
            let key = format!("flow.{UPLOAD}.workload");
            let is_open =
                is_unusable_for_the_upload(summary) && args.change.set.iter().all(|(set, _)| *set != key);
            let held = uplink.filter(|_| is_open).map_or(String::new(), |rate| {
                let held = shell_word(&format!("{key}={}", held_transfer(rate)));
                format!(
                    "With the upload held to four fifths of the uplink's lowest rate: {program} compare --arena emu{path}{comparison} --set {held}\n"
                )
            });
            format!("{held}The same in the simulator: {program} compare{path}{comparison}{kernel}\n")
        }
        ArenaKind::Live => {
            // No preset is known to be like this network, so the user has to choose the path.
            let alone = if args.load { "" } else { " --alone" };
            format!(
                "{}On a simulated path: {program} compare --path PATH{alone}{comparison}\n",
                longer_turns(args)
            )
        }
    }
}

/// Says what short turns cannot show, and the command that shows it. Each turn has new flows, so a firewall
/// that ends flows over UDP at a certain age is seen only in longer turns.
fn longer_turns(args: &CompareArgs) -> String {
    let Some(host) = args.place.to.as_ref().filter(|_| args.duration.is_none()) else { return String::new() };
    format!(
        "Each transport had turns of 10 s or less, with a new flow in each: what a firewall ends at a greater age is seen with \
         --duration 60s: {} compare --to {} --duration 60s\n",
        program(),
        shell_word(host)
    )
}

/// Returns whether nothing is usable, and another queue of the uplink was tried, because the upload is in the
/// way.
fn is_unusable_for_the_upload(summary: &Summary) -> bool {
    let key = format!("path.{UPLINK}.queue");
    summary.comparisons.iter().map(|comparison| &comparison.answer).any(|answer| {
        let tried = answer.tried.iter().any(|tried| tried.change.contains_key(&key));
        answer.outcome == AnswerKind::Unusable && tried
    })
}

/// Returns the flags for everything but the path. They are the same in every arena.
fn comparison_flags(args: &CompareArgs, summary: &Summary) -> String {
    let mut flags = Flags::default();
    if !args.transports.is_empty() {
        flags.push_value("--transports", &args.transports.join(","));
    }
    if !args.cc.is_empty() {
        flags.push_value("--cc", &args.cc.join(","));
    }
    if args.workload != ComparedWorkload::Voice {
        flags.push_value("--workload", args.workload.name());
    }
    if let Some(duration) = &args.duration {
        flags.push_value("--duration", duration);
    }
    if let Some(seed) = args.place.seed {
        flags.push_value("--seed", &seed.to_string());
    }
    if let Some(repeat) = proposed_repetitions(args.place.repeat, summary) {
        flags.push_value("--repeat", &repeat.to_string());
    }
    if args.no_plc {
        flags.push("--no-plc");
    }
    if let Some(codec) = args.codec {
        flags.push_value("--codec", codec.name());
    }
    if let Some(ptime) = &args.ptime {
        flags.push_value("--ptime", ptime);
    }
    flags.push_changes(args, |key| !is_path_key(key));
    flags.text
}

fn path_flags(args: &CompareArgs) -> String {
    let mut flags = Flags::default();
    // The default path is named as well, so that the user sees that the path stays the same. Only a line that
    // the user describes with --up and --down has no --path.
    let is_own_line = args.path.is_none() && args.links.up.is_some();
    if !is_own_line {
        flags.push_value("--path", args.path.as_deref().unwrap_or(HOME));
    }
    for (flag, value) in args.links.flags() {
        flags.push_value(flag, &value);
    }
    if args.alone {
        flags.push("--alone");
    }
    flags.push_changes(args, is_path_key);
    flags.text
}

/// Returns the number of repetitions that the next command names, or `None` if it leaves the number to the
/// arena.
///
/// The next command names a number only if the user has `given` one. If that number did not decide, the next
/// command adds as many repetitions as the answer asks for.
fn proposed_repetitions(given: Option<u64>, summary: &Summary) -> Option<u64> {
    let given = given?;
    let answers = asked_answers(summary);
    if answers.iter().all(|answer| answer.outcome != AnswerKind::Undecided) {
        return Some(given);
    }
    let more = answers.iter().filter_map(|answer| answer.more).max()?;
    (more <= HOPELESS).then_some(given + more)
}

/// Returns the answers to what the user asked: those for which other values were tried, or all if nothing was
/// tried.
fn asked_answers(summary: &Summary) -> Vec<&Answer> {
    let answers = || summary.comparisons.iter().map(|comparison| &comparison.answer);
    let asked: Vec<&Answer> = answers().filter(|answer| !answer.tried.is_empty()).collect();
    if asked.is_empty() { answers().collect() } else { asked }
}

/// Flags of a command line, each with a space before it.
#[derive(Default)]
struct Flags {
    text: String,
}

impl Flags {
    /// Adds a flag without a value.
    fn push(&mut self, flag: &str) {
        self.text += &format!(" {flag}");
    }

    /// Adds a flag and its value, quoted for a shell.
    fn push_value(&mut self, flag: &str, value: &str) {
        self.text += &format!(" {flag} {}", shell_word(value));
    }

    /// Adds `--set` and `--sweep` for each of the user's keys that `is_wanted`.
    fn push_changes(&mut self, args: &CompareArgs, is_wanted: impl Fn(&str) -> bool) {
        for (key, value) in args.change.set.iter().filter(|(key, _)| is_wanted(key)) {
            self.push_value("--set", &format!("{key}={value}"));
        }
        for (key, values) in args.change.sweep.iter().filter(|(key, _)| is_wanted(key)) {
            self.push_value("--sweep", &format!("{key}={values}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use talkpath_measure::summary::Comparison;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        compare: CompareArgs,
    }

    /// What is proposed after a run in `emu` with these arguments, in which nothing was usable.
    fn proposed(arguments: &[&str], tried_queue_of: &str) -> String {
        let line = Line::parse_from(["compare", "--arena", "emu"].iter().chain(arguments));
        let comparison: Comparison = serde_json::from_value(serde_json::json!({
            "flow": "call", "sweep": {}, "cells": [0, 1],
            "answer": {
                "best": ["udp"], "outcome": "unusable", "line": "",
                "tried": [{ "change": { tried_queue_of: "fq_codel" }, "usable": true, "best": ["udp"] }],
            },
        }))
        .unwrap();
        let mut summary = talkpath_fixtures::summary(Vec::new(), 0);
        summary.comparisons = vec![comparison];
        next_commands(&line.compare, ArenaKind::Emu, &summary, Some(Rate::from_bps(1_000_000)))
    }

    #[test]
    fn emu_proposes_to_hold_the_upload_back_where_the_uplinks_queue_was_in_the_way() {
        let held =
            "--set 'flow.upload.workload={ kind = \"cbr\", rate = \"800 kbps\", size = \"1448 B\" }'\n";
        let first_line = |text: &str| text.split_inclusive('\n').next().unwrap_or_default().to_owned();
        let up = proposed(&[], "path.up.queue");
        assert!(first_line(&up).ends_with(held), "{up}");
        assert!(!proposed(&[], "path.down.queue").contains("cbr"));
        let again = proposed(&["--set", "flow.upload.workload=\"bulk\""], "path.up.queue");
        assert!(!again.contains("cbr"), "{again}");
    }
}
