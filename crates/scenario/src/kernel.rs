//! The key `kernel`: what a Linux host's build and its administrator decide, as defaults for its transports.
//!
//! ```text
//!   kernel = "debian-12" ─► written out ─► each `udp`, `tcp` and `tcp-nodelay` with `stack = "linux"`
//!                                          gets what its own keys leave open
//! ```
//!
//! `this` is the kernel of the machine that loads the scenario. A [`Files`](crate::Files) reads it, and its
//! values take the word's place in the resolved form, as `measured`.
//!
//! Left out: what a kernel's version changes in its TCP itself. The stack `linux` follows Linux 6.18 under
//! every profile.

use talkpath_model::KernelProfile;

use crate::edit::expand_tagged;
use crate::fill;
use crate::keys::{KERNEL, Kind, is_same_word};
use crate::transports::TRANSPORT;
use crate::tree::{Node, Table, Value};

/// True if `node`, the value of `kernel`, is the machine's own kernel.
pub(crate) fn is_this(node: &Node) -> bool {
    let kind = node.as_table().map_or(Some(node), |table| table.get("kind"));
    kind.and_then(Node::as_text).is_some_and(|kind| is_same_word(kind, "this"))
}

/// Puts the values of `profile` in the place of `this`. Keys that stand beside it win.
pub(crate) fn replace_this(node: &mut Node, profile: &KernelProfile) {
    let mut table = Table::default();
    table.set("kind", Node::text("measured", node.place.clone()));
    for (key, text) in profile.values() {
        if let Some(value) = crate::tree::parse_value(&text, &node.place) {
            table.set(key, value);
        }
    }
    for entry in node.as_table().into_iter().flat_map(|written| &written.entries) {
        if entry.name != "kind" {
            table.set(&entry.name, entry.node.clone());
        }
    }
    node.value = Value::Table(table);
}

/// Gives the Linux transports of `cell` the profile's values for the keys that they leave open.
pub(crate) fn apply(cell: &mut Table) {
    let Some(kernel) = cell.get("kernel") else { return };
    let kernel = fill::value(kernel, &Kind::Tagged(&KERNEL));
    let Some(profile) = kernel.as_table() else { return };
    let Some(Node { value: Value::Table(flows), .. }) = cell.get_mut("flow") else { return };
    for entry in &mut flows.entries {
        if let Value::Table(flow) = &mut entry.node.value
            && let Some(transport) = flow.get_mut("transport")
        {
            apply_to_transport(transport, profile);
        }
    }
}

fn apply_to_transport(transport: &mut Node, profile: &Table) {
    expand_tagged(transport, &TRANSPORT);
    let Value::Table(table) = &mut transport.value else { return };
    let kind = table.get("kind").and_then(Node::as_text).and_then(|kind| TRANSPORT.variant(kind));
    let stack = table.get("stack").map_or(Some("linux"), Node::as_text);
    let Some(variant) = kind.filter(|variant| variant.key("stack").is_some() && stack == Some("linux"))
    else {
        return;
    };
    for entry in &profile.entries {
        if table.get(&entry.name).is_none() && variant.key(&entry.name).is_some() {
            table.set(&entry.name, entry.node.clone());
        }
    }
}

/// The names of the profiles that need no machine, for messages.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KERNEL.variants.iter().map(|variant| variant.name).filter(|name| !matches!(*name, "this" | "measured"))
}
