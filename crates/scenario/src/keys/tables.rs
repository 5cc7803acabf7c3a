//! Writes the keys as Markdown tables, for `talkpath check --keys` and docs/reference/scenario.md.

use std::fmt::Write as _;

use super::{CAMPAIGN, CELLULAR, CHANGE, CHANGED_QUEUE, FAR_CLOCK, FLOW, LINK, OTHERS, RECEIVER, ROOT, WIFI};
use crate::form::form;
use crate::queues::QUEUE;
use crate::spec::{Default, Key, Kind, Tagged, Variant};

/// Returns the names of the transports, in the order of the documentation.
pub fn transport_names() -> Vec<&'static str> {
    crate::transports::TRANSPORT.variants.iter().map(|variant| variant.name).collect()
}

/// Returns every key of scenario files as Markdown tables, in the usual order of a file.
pub fn key_tables() -> String {
    let mut text = String::new();
    table(&mut text, "At the top of the file", ROOT.keys);
    tagged_sections(&mut text, ROOT.keys);
    table(&mut text, "`far_clock`", FAR_CLOCK.keys);
    table(&mut text, "A link: `[path.up]`, `[path.down]`, `[link.NAME]`", LINK.keys);
    tagged_sections(&mut text, LINK.keys);
    for variant in QUEUE.variants {
        let classes = variant.key("classes").map(|key| key.kind);
        if let Some(Kind::List(spec)) = classes {
            table(&mut text, &format!("A class of `{}`: `classes = [{{ ... }}]`", variant.name), spec.keys);
        }
    }
    table(&mut text, "`wifi` of a link", WIFI.keys);
    table(&mut text, "Other stations of a Wi-Fi: `others = [{ ... }]`", OTHERS.keys);
    table(&mut text, "`cellular` of a link", CELLULAR.keys);
    tagged_sections(&mut text, CELLULAR.keys);
    table(&mut text, "A change: `[[change]]`", CHANGE.keys);
    table(&mut text, "`queue` of a change", CHANGED_QUEUE.keys);
    table(&mut text, "A flow: `[flow.NAME]`", FLOW.keys);
    table(&mut text, "`receiver`", RECEIVER.keys);
    tagged_sections(&mut text, FLOW.keys);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Returns every key of campaign files as Markdown tables.
pub fn campaign_key_tables() -> String {
    let mut text = String::new();
    table(&mut text, "At the top of the file", CAMPAIGN.keys);
    tagged_sections(&mut text, CAMPAIGN.keys);
    for key in CAMPAIGN.keys {
        match key.kind {
            Kind::Map(spec) => table(&mut text, &format!("`[{}.NAME]`: {}", key.name, spec.noun), spec.keys),
            Kind::Table(spec) => table(&mut text, &format!("`[{}]`", key.name), spec.keys),
            _ => {}
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Writes a section for each tagged key, with a table for each of its kinds.
fn tagged_sections(text: &mut String, keys: &'static [Key]) {
    for key in keys {
        let Kind::Tagged(tagged) = key.kind else { continue };
        let _ = write!(text, "### `{}`\n\n", key.name);
        if !tagged.later.is_empty() {
            let _ = write!(text, "Not available yet: {}.\n\n", code(tagged.later));
        }
        let mut previous: Option<&Variant> = None;
        for variant in tagged.variants {
            // Kinds with the same keys share one table.
            let same = previous
                .filter(|previous| core::ptr::eq(previous.keys, variant.keys) && !previous.keys.is_empty());
            let keys =
                same.map_or_else(String::new, |previous| format!(" It has the keys of `{}`.", previous.name));
            let _ = write!(text, "`{}`: {}.{keys}\n\n", variant.name, variant.doc);
            if same.is_none() {
                rows(text, variant.keys);
            }
            previous = Some(variant);
        }
    }
}

fn table(text: &mut String, title: &str, keys: &[Key]) {
    let _ = write!(text, "### {title}\n\n");
    rows(text, keys);
}

fn rows(text: &mut String, keys: &[Key]) {
    if keys.is_empty() {
        return;
    }
    text.push_str("| key | value | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in keys {
        let default = match key.default {
            Default::Required => "required".to_owned(),
            Default::Is(toml) => format!("`{toml}`"),
            Default::Follows(what) => format!("follows {what}"),
            Default::Absent(what) => format!("none: {what}"),
        };
        let row = format!("| `{}` | {} | {default} | {} |", key.name, value(&key.kind), key.doc);
        let _ = writeln!(text, "{row}");
    }
    text.push('\n');
}

fn value(kind: &Kind) -> String {
    match kind {
        Kind::Choice(words) => {
            let later = if words.later.is_empty() {
                String::new()
            } else {
                format!(" (later: {})", code(words.later))
            };
            format!("{}{later}", code(words.known))
        }
        Kind::Tagged(Tagged { variants, .. }) => {
            format!("{}, or a table", code(&variants.iter().map(|variant| variant.name).collect::<Vec<_>>()))
        }
        Kind::Quantity { ranges, .. } | Kind::LinkRate { ranges, .. } => {
            format!("{}, {}", form(kind), bounds(ranges))
        }
        Kind::Start(ranges) => {
            format!("{}, or `{{ from = \"0 s\", to = \"1 s\" }}`, {}", form(kind), bounds(ranges))
        }
        Kind::DelayedAck(ranges) => {
            format!(
                "{}, {}, or `{{ tick = \"200 ms\" }}`, `\"linux\"`, true or false",
                form(kind),
                bounds(ranges)
            )
        }
        Kind::Table(_) => "a table".to_owned(),
        Kind::Map(_) | Kind::List(_) => "tables".to_owned(),
        _ => form(kind),
    }
}

fn bounds(ranges: &[crate::quantity::DimensionRange]) -> String {
    let amount = |range: &crate::quantity::DimensionRange, count| crate::quantity::Amount {
        dimension: range.dimension,
        count,
    };
    let bounds =
        ranges.iter().map(|range| format!("{} to {}", amount(range, range.least), amount(range, range.most)));
    bounds.collect::<Vec<_>>().join(" or ")
}

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
