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

/// `resolved`, the resolved text of a scenario, with this many repetitions.
pub fn with_repetitions(resolved: &str, repeat: u64) -> String {
    let Ok(mut document) = resolved.parse::<DocumentMut>() else { return resolved.to_owned() };
    document.insert("repeat", value(i64::try_from(repeat).unwrap_or(i64::MAX)));
    document.to_string()
}

/// `resolved`, the resolved text of a scenario, with every cell a second time: `fq_codel` then queues on the
/// link `link` of its `path`. The cells that were there come first and keep their numbers. `None` if its path
/// has no such link.
pub fn with_fq_codel(resolved: &str, link: &str) -> Option<String> {
    let mut document: DocumentMut = resolved.parse().ok()?;
    let queue = document.get("path")?.get(link)?.get("queue")?;
    let mut queue = match queue {
        Item::Value(queue) => queue.clone(),
        Item::Table(table) => Value::InlineTable(table.clone().into_inline_table()),
        Item::None | Item::ArrayOfTables(_) => return None,
    };
    // A swept value is a label, too: defaults that say nothing are left out.
    if let Some(keys) = queue.as_inline_table_mut() {
        let is_default = |key: &str, value: &Value| match key {
            "in_service" => value.as_bool() == Some(false),
            "mark_at" => value.as_str() == Some("never"),
            _ => false,
        };
        keys.retain(|key, value| !is_default(key, value));
    }
    let mut sweep = Table::new();
    sweep.insert(&format!("path.{link}.queue"), value(Array::from_iter([queue, "fq_codel".into()])));
    if let Some(swept) = document.remove("sweep").as_ref().and_then(Item::as_table) {
        sweep.extend(swept.iter().map(|(key, values)| (key.to_owned(), values.clone())));
    }
    document.insert("sweep", Item::Table(sweep));
    Some(document.to_string())
}

fn flow<const KEYS: usize>(transport: &str, workload: [(&str, Value); KEYS]) -> Table {
    let mut flow = Table::new();
    flow.insert("transport", value(transport));
    flow.insert("workload", value(InlineTable::from_iter(workload)));
    flow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Plan, Source, load};

    fn plan(text: String) -> Plan {
        load(&Source::new("compared", text), &Options::default()).unwrap()
    }

    fn compared() -> Plan {
        let transports = ["udp".to_owned(), "tcp".to_owned()];
        plan(compare_scenario("home-adsl", &transports, true, Duration::from_secs(10), None))
    }

    #[test]
    fn more_repetitions_change_nothing_else() {
        let before = compared();
        let after = plan(with_repetitions(&before.resolved, 40));
        assert_eq!((before.repeat, after.repeat), (1, 40));
        for (before, after) in before.cells.iter().zip(&after.cells) {
            assert_eq!(
                (&before.scenario.flows, &before.scenario.links),
                (&after.scenario.flows, &after.scenario.links)
            );
        }
    }

    #[test]
    fn a_cure_leaves_the_cells_that_were_there_as_they_are() {
        let before = compared();
        let after = plan(with_fq_codel(&before.resolved, "up").unwrap());
        assert_eq!((before.cells.len(), after.cells.len()), (2, 4));
        for (before, after) in before.cells.iter().zip(&after.cells) {
            assert_eq!((before.index, &before.scenario), (after.index, &after.scenario));
        }
        for (number, cell) in (2..).zip(&after.cells[2..]) {
            assert_eq!((cell.index, &cell.sweep["path.up.queue"]), (number, &"fq_codel".into()));
            assert_eq!(cell.scenario.flows, before.cells[number as usize - 2].scenario.flows);
            assert_ne!(cell.scenario.links, before.cells[0].scenario.links);
        }
        assert!(with_fq_codel(&before.resolved, "sideways").is_none());
    }
}
