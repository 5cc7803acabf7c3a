//! A user's share of a cell: the key `cellular` of a link.

use talkpath_path::{Cellular, GrantRequest, Harq, RateModel, Scheduler};

use crate::diagnostic::Log;
use crate::keys::{CELL_RATE, CELLULAR};
use crate::quantity::{Problem, as_percent};
use crate::section::Section;

/// Returns the cell of a link, or `None` if it has mistakes.
pub(super) fn cellular(
    link: &Section<'_>,
    rate: Option<&RateModel>,
    log: &mut Log,
) -> Option<Option<Cellular>> {
    let Some(node) = link.node("cellular") else { return Some(None) };
    let section = Section::new(node.as_table()?, CELLULAR.keys, link.at.key("cellular"), &node.place);
    let is_right = check_link(link, rate, log) & check_errors(&section, log);
    let (kind, scheduler) = section.tagged("scheduler")?;
    let scheduler = match kind {
        "round-robin" => Scheduler::RoundRobin { at_once: u32::try_from(scheduler.count("at_once")?).ok()? },
        _ => Scheduler::ProportionalFair { window: scheduler.duration("window")? },
    };
    let request = match section.node("request") {
        Some(_) => {
            Some(GrantRequest { period: section.duration("request")?, grant: section.duration("grant")? })
        }
        None => None,
    };
    let harq = Harq {
        block_error: section.number("block_error")?,
        repeat_error: section.number("repeat_error")?,
        delay: section.duration("harq_delay")?,
        attempts: u32::try_from(section.count("attempts")?).ok()?,
        recovery: section.duration("recovery")?,
    };
    let cell = Cellular {
        others: u32::try_from(section.count("others")?).ok()?,
        scheduler,
        tti: section.duration("tti")?,
        request,
        harq,
    };
    is_right.then_some(Some(cell))
}

/// Reports the keys of a link that a user's share of a cell does not have.
fn check_link(link: &Section<'_>, rate: Option<&RateModel>, log: &mut Log) -> bool {
    let mut is_right = true;
    if link.node("wifi").is_some() {
        link.problem("cellular", "found `cellular` beside `wifi`; a link has one or the other", log);
        is_right = false;
    }
    if link.node("shaper").is_some() {
        let message = "found a shaper beside `cellular`; the cell's scheduler decides when a packet leaves";
        link.problem("shaper", message, log);
        is_right = false;
    }
    let is_fixed = |rate: &RateModel| match rate {
        RateModel::Fixed(rate) => (CELL_RATE.least..=CELL_RATE.most).contains(&rate.as_bps()),
        RateModel::Unlimited | RateModel::Trace(_) => false,
    };
    if rate.is_some_and(|rate| !is_fixed(rate)) {
        let message = "found no rate from 10 kbps to 10 Gbps beside `cellular`, which needs what this user has in the mean while \
                       it always has data";
        link.problem("rate", Problem::new(message).with_help("as in rate = \"6 Mbps\"".to_owned()), log);
        is_right = false;
    }
    is_right
}

/// Reports errors of blocks that no cell works with: more than half of them.
fn check_errors(section: &Section<'_>, log: &mut Log) -> bool {
    let mut is_right = true;
    for key in ["block_error", "repeat_error"] {
        if let Some(share) = section.number(key).filter(|share| *share > 0.5) {
            let message = format!("found {}, expected at most 50%", as_percent(share));
            section.problem(key, message, log);
            is_right = false;
        }
    }
    is_right
}
