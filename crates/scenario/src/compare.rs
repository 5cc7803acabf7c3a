//! The scenario that `talkpath compare` runs, as text that anybody can keep and change.

use talkpath_units::Duration;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

/// One voice call with echo over each of `transports`, one at a time, on the preset `path`; beside a bulk
/// upload over TCP if `load` is set. The upload begins at some instant of the first second: on a path without
/// chance of its own all repetitions would else be one and the same. `kernel` is the key of that name.
pub fn compare_scenario(
    path: &str,
    transports: &[String],
    load: bool,
    duration: Duration,
    kernel: Option<&str>,
) -> String {
    let first = transports.first().map_or("udp", String::as_str);
    let beside = if load { " beside an upload" } else { "" };
    let voice: [(_, Value); 3] = [("kind", "voice".into()), ("codec", "g711".into()), ("echo", true.into())];
    let mut flows = Table::from_iter([("call", flow(first, voice))]);
    if load {
        let mut upload = flow("tcp", [("kind", "bulk".into())]);
        upload.insert("start", value(InlineTable::from_iter([("from", "0 s"), ("to", "1 s")])));
        flows.insert("upload", Item::Table(upload));
    }
    flows.set_implicit(true);
    let mut sweep = Table::new();
    sweep.insert("flow.call.transport", value(transports.iter().collect::<Array>()));
    let mut document = DocumentMut::new();
    document.insert("name", value(format!("voice over {path}{beside}")));
    document.insert("duration", value(duration.to_string()));
    document.insert("path", value(path));
    if let Some(kernel) = kernel {
        document.insert("kernel", value(kernel));
    }
    document.insert("flow", Item::Table(flows));
    document.insert("sweep", Item::Table(sweep));
    document.to_string()
}

fn flow<const KEYS: usize>(transport: &str, workload: [(&str, Value); KEYS]) -> Table {
    let mut flow = Table::new();
    flow.insert("transport", value(transport));
    flow.insert("workload", value(InlineTable::from_iter(workload)));
    flow
}
