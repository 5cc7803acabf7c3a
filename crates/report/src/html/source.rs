//! The section about the source of the figures: the program, the seeds, the clock, and how to repeat the run.

use maud::{Markup, html};
use talkpath_measure::summary::{CAPTURE, Clock, RunSummary};

use super::document::definitions;
use super::page::Page;
use crate::term::Term;

/// The page lists at most 10 seeds. All seeds are in summary.json.
const MAX_SEEDS: usize = 10;

pub(super) fn source(page: &Page<'_>) -> Markup {
    let summary = page.summary;
    let mut facts = vec![
        Term::new("talkpath", &*summary.talkpath),
        Term::new("arena", &*summary.arena),
        Term::new("started", &*summary.started),
        Term::new("took", format!("{:.1} s, {:.1} s of CPU time", summary.wall_s, summary.cpu_s)),
    ];
    // A capture has no randomness of ours.
    if summary.arena != CAPTURE {
        facts.push(Term::new("seeds", seeds(&summary.runs)));
    }
    facts.extend([
        Term::new("percentiles", &*summary.percentiles),
        Term::new("clock", describe_clock(&summary.clock)),
        Term::new("valid", if summary.valid { "yes" } else { "no" }),
    ]);
    html! {
        (definitions(&facts))
        p { "To repeat it:" }
        pre tabindex="0" { code { (page.command) } }
        @if !page.scenario_toml.is_empty() {
            details {
                summary { "The scenario as resolved" }
                pre tabindex="0" { code { (page.scenario_toml) } }
            }
        }
    }
}

fn seeds(runs: &[RunSummary]) -> String {
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let listed: Vec<String> = seeds.iter().take(MAX_SEEDS).map(u64::to_string).collect();
    let mut text = listed.join(", ");
    if seeds.len() > MAX_SEEDS {
        text.push_str(&format!(" and {} more (summary.json)", seeds.len() - MAX_SEEDS));
    }
    text
}

fn describe_clock(clock: &Clock) -> String {
    if !clock.trusted {
        return format!("not trusted, one-way figures are left out: {}", clock.why);
    }
    match (clock.offset_ms, clock.uncertainty_ms) {
        // An uncertainty above zero means two clocks. The reason then says how well their offset is known.
        (Some(offset), Some(uncertainty)) if uncertainty > 0.0 => {
            format!("offset {offset:.3} ms; {}", clock.why)
        }
        _ => clock.why.clone(),
    }
}
