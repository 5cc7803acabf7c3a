//! Makes a [`Scenario`] of a checked tree: it numbers the copies, makes the links, and turns routes into
//! indices.
//!
//! The checks that need several keys are here. A value that [`crate::pass::check`] found wrong is skipped
//! without a message, because its mistake is already in the log.
//!
//! Begin to read with [`scenario`].

mod cellular;
mod change;
mod flow;
pub(crate) mod link;
mod program;
mod wifi;

pub(crate) use self::change::{ChangeSpan, change_spans};
use talkpath_model::{FarClock, IpVersion, KernelProfile, NamedLink, Scenario};
use talkpath_units::Seed;

use crate::contents::Contents;
use crate::diagnostic::{Log, Place};
use crate::keys::{FAR_CLOCK, ROOT};
use crate::read::KeyPath;
use crate::section::Section;
use crate::tree::Table;

/// Makes the scenario of the checked tree `root`. Returns `None` if there are mistakes. If it does not have a
/// run (`has_run`), its duration is not the user's.
pub(crate) fn scenario(root: &Table, has_run: bool, contents: &Contents, log: &mut Log) -> Option<Scenario> {
    let at = KeyPath::ROOT;
    let section = Section::new(root, ROOT.keys, at, &Place::START);
    let duration = section.duration("duration");
    let warm_up = section.duration("warm_up");
    if let (Some(duration), Some(warm_up)) = (duration, warm_up)
        && warm_up >= duration
    {
        section.problem(
            "warm_up",
            format!("found {warm_up}, expected less than `duration`, {duration}"),
            log,
        );
    }
    let far_clock = far_clock(&section, log);
    let program = program::program(root, duration, log);
    let flow_tables = flow::flow_tables(root, log);
    let named: Vec<_> = flow_tables.iter().flat_map(flow::FlowTable::named_links).collect();
    let ip = match section.choice("ip") {
        Some("ipv6") => IpVersion::V6,
        _ => IpVersion::V4,
    };
    let links = link::links(root, &named, contents, ip, log);
    let context = flow::FlowContext { links: &links, duration, contents };
    let flows = flow::resolve_flows(&flow_tables, &context, log);
    let changes = change::changes(root, &links, duration.filter(|_| has_run), contents, log);
    if let Some(flows) = &flows {
        links.warn_of_unused(flows, log);
    }
    let mut resolved_links = links.resolved.iter().flatten();
    if ip == IpVersion::V6
        && let Some(link) = resolved_links.find(|link| link.config.mtu < ip.min_mtu())
    {
        let NamedLink { name, config } = link;
        let message = format!(
            "found \"ipv6\" over the link {name} with an mtu of {}, expected {} or more on every link (RFC 8200 §5)",
            config.mtu,
            ip.min_mtu()
        );
        section.problem("ip", message, log);
    }
    let (changes, change_origins) = changes?;
    Some(Scenario {
        name: section.text("name")?.to_owned(),
        duration: duration?,
        drain: section.duration("drain")?,
        warm_up: warm_up?,
        seed: Seed::new(section.count("seed")?),
        repeat: section.count("repeat")?,
        far_clock,
        ip,
        kernel: kernel(&section),
        program,
        has_path: links.is_known,
        changes,
        change_origins,
        links: shrunk(links.resolved?),
        flows: shrunk(flows?),
    })
}

/// Frees the unused memory of `list`. A list of one flow has space for four, and a large sweep has a list in
/// each cell.
fn shrunk<T>(mut list: Vec<T>) -> Vec<T> {
    list.shrink_to_fit();
    list
}

fn kernel(root: &Section<'_>) -> Option<KernelProfile> {
    let (_, section) = root.tagged("kernel")?;
    Some(KernelProfile {
        release: section.text("release")?.to_owned(),
        timer_granularity: section.duration("timer_granularity")?,
        header_room: section.bytes("header_room")?,
        small_head: section.bytes_or_word("small_head")?,
        socket_buffer: section.bytes("socket_buffer")?,
        rwnd: section.bytes("rwnd")?,
        initial_rwnd: section.bytes("initial_rwnd")?,
        send_buffer_max: section.bytes("send_buffer_max")?,
    })
}

fn far_clock(root: &Section<'_>, log: &mut Log) -> Option<FarClock> {
    let node = root.node("far_clock")?;
    let section = Section::new(node.as_table()?, FAR_CLOCK.keys, root.at.key("far_clock"), &node.place);
    let jump = section.duration("jump")?;
    let jump_every = section.duration("jump_every");
    if !jump.is_zero() && section.node("jump_every").is_none() {
        let message = "found `jump` alone, expected `jump_every` beside it: when the clock jumps";
        section.problem("jump", message, log);
    }
    Some(FarClock {
        offset: section.duration("offset")?,
        // The bounds of the key are far below 2^63.
        skew_ppb: (section.number("skew")? * 1e3).round() as i64,
        jump,
        jump_every,
    })
}
