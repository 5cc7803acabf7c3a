//! Applies the key `kernel`: values that a Linux kernel's build and its administrator determine, as defaults
//! of transports.
//!
//! ```text
//!   kernel = "debian-12" ─► written out ─► each `udp`, `tcp` and `tcp-nodelay` with `stack = "linux"`
//!                                          gets what its own keys leave open
//! ```
//!
//! The pass [`values`](super::values) has replaced `kernel = "this"` before.
//!
//! Changes of TCP itself between versions of the kernel are left out. The stack `linux` follows Linux 6.18
//! under every profile.

use super::check::with_defaults;
use super::set::expand_tagged;
use crate::keys::KERNEL;
use crate::reading::Reading;
use crate::spec::TAG;
use crate::transports::TRANSPORT;
use crate::tree::{Node, Table, Value};

/// Sets the values of the profile for the keys that Linux transports of the cell do not have.
pub(crate) fn apply_kernel(mut cell: Table, _: &mut Reading<'_>) -> Table {
    let Some(kernel) = cell.get("kernel") else { return cell };
    let kernel = with_defaults(kernel.clone(), &KERNEL);
    let Some(profile) = kernel.as_table() else { return cell };
    let Some(Node { value: Value::Table(flows), .. }) = cell.get_mut("flow") else { return cell };
    for entry in &mut flows.entries {
        if let Value::Table(flow) = &mut entry.node.value
            && let Some(transport) = flow.get_mut("transport")
        {
            apply_to_transport(transport, profile);
        }
    }
    cell
}

fn apply_to_transport(transport: &mut Node, profile: &Table) {
    let kind = transport.as_table().map_or(Some(&*transport), |table| table.get(TAG));
    let kind = kind.and_then(Node::as_text).and_then(|kind| TRANSPORT.variant(kind));
    let Some(variant) = kind.filter(|variant| variant.key("stack").is_some()) else { return };
    expand_tagged(transport, &TRANSPORT);
    let Value::Table(table) = &mut transport.value else { return };
    if table.get("stack").map_or(Some("linux"), Node::as_text) != Some("linux") {
        return;
    }
    for entry in &profile.entries {
        if table.get(&entry.name).is_none() && variant.key(&entry.name).is_some() {
            table.set(&entry.name, entry.node.clone());
        }
    }
}
