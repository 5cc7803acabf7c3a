//! The key tables of docs/scenario.md, written from the description: a test holds the file against them.

use std::fmt::Write as _;

use super::{Default, FLOW, Key, Kind, LINK, RECEIVER, ROOT};
use crate::check::form;
use crate::keys::{Tagged, Variant};

/// Everything between the markers of docs/scenario.md.
fn tables() -> String {
    let mut text = String::new();
    table(&mut text, "At the top of the file", "", ROOT.keys);
    table(&mut text, "A link: `[path.up]`, `[path.down]`, `[link.NAME]`", "", LINK.keys);
    tagged_of(&mut text, LINK.keys);
    table(&mut text, "A flow: `[flow.NAME]`", "", FLOW.keys);
    table(&mut text, "`receiver`", "", RECEIVER.keys);
    tagged_of(&mut text, FLOW.keys);
    text
}

fn tagged_of(text: &mut String, keys: &'static [Key]) {
    for key in keys {
        let Kind::Tagged(tagged) = key.kind else { continue };
        let later = match tagged.later {
            [] => String::new(),
            later => format!("Not available yet: {}.\n", code(later)),
        };
        write!(text, "#### `{}`\n\n{later}\n", key.name).unwrap();
        let mut last: Option<&Variant> = None;
        for variant in tagged.variants {
            let same =
                last.is_some_and(|last| core::ptr::eq(last.keys, variant.keys) && !last.keys.is_empty());
            writeln!(
                text,
                "`{}`: {}.{}",
                variant.name,
                variant.doc,
                if same { " The keys of the one before." } else { "" }
            )
            .unwrap();
            text.push('\n');
            if !same {
                rows(text, variant.keys);
            }
            last = Some(variant);
        }
    }
}

fn table(text: &mut String, title: &str, intro: &str, keys: &[Key]) {
    write!(text, "### {title}\n\n{intro}").unwrap();
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
        writeln!(text, "{row}").unwrap();
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
        Kind::Quantity { measures, .. } | Kind::LinkRate { measures, .. } => {
            format!("{}, {}", form(kind), bounds(measures))
        }
        Kind::Start(measures) => {
            format!("{}, or `{{ from = \"0 s\", to = \"1 s\" }}`, {}", form(kind), bounds(measures))
        }
        Kind::DelayedAck(measures) => {
            format!(
                "{}, {}, or `{{ tick = \"200 ms\" }}`, `\"linux\"`, true or false",
                form(kind),
                bounds(measures)
            )
        }
        Kind::Table(_) => "a table".to_owned(),
        Kind::Map(_) => "tables".to_owned(),
        _ => form(kind),
    }
}

fn bounds(measures: &[crate::quantity::Measure]) -> String {
    let amount = |measure: &crate::quantity::Measure, count| crate::quantity::Amount {
        dimension: measure.dimension,
        count,
    };
    let bounds = measures
        .iter()
        .map(|measure| format!("{} to {}", amount(measure, measure.least), amount(measure, measure.most)));
    bounds.collect::<Vec<_>>().join(" or ")
}

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

const BEGIN: &str = "<!-- key tables: written by the tests of crates/scenario; TALKPATH_UPDATE=1 cargo test -p talkpath-scenario -->\n";
const END: &str = "<!-- end of the key tables -->";

#[test]
#[expect(clippy::disallowed_methods, reason = "the test rewrites the documentation where it is asked to")]
fn the_documentation_lists_every_key_as_the_tables_have_it() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the marker before the tables");
    let (found, after) = rest.split_once(END).expect("the marker after the tables");
    let wanted = format!("\n{}", tables());
    if found != wanted && std::env::var_os("TALKPATH_UPDATE").is_some() {
        std::fs::write(file, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "set TALKPATH_UPDATE=1 to write the tables anew");
}
