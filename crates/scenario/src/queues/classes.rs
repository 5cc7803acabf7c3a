//! Classes of packets by their DSCP: the keys that `priority` and `drr` have in common.

use talkpath_path::{Classes, DSCP_NAMES, Dscp};

use crate::diagnostic::Log;
use crate::read::unknown_name;
use crate::section::Section;
use crate::spec::{Default, Key, Kind, Listed, key};
use crate::tree::{Node, Value};

/// The codepoints of a class.
pub(super) const CODEPOINTS: Key = key(
    "dscp",
    Kind::Names(&LISTED),
    Default::Required,
    "the codepoints of the class, by their names as in the key `dscp` of a flow",
);

static LISTED: Listed =
    Listed { one: "a DSCP", many: "codepoints", example: "[\"EF\", \"VA\"]", most: DSCP_NAMES.len() };

/// Returns the tables of `classes` of a queue, with their keys.
pub(super) fn class_sections<'a>(queue: &Section<'a>, keys: &'static [Key]) -> Vec<Section<'a>> {
    let Some(Node { value: Value::List(tables), .. }) = queue.node("classes") else { return Vec::new() };
    let section = |node: &'a Node| Some(Section::new(node.as_table()?, keys, queue.at, &node.place));
    tables.iter().filter_map(section).collect()
}

/// Returns the classes of a queue, or `None` if there are mistakes.
pub(super) fn classes(queue: &Section<'_>, sections: &[Section<'_>], log: &mut Log) -> Option<Classes> {
    let Value::List(tables) = &queue.node("classes")?.value else { return None };
    if tables.is_empty() {
        queue.problem("classes", "found no class, expected at least one: { dscp = [\"EF\"] }", log);
        return None;
    }
    let mut sets: Vec<Vec<Dscp>> = Vec::new();
    let mut is_right = true;
    for (index, section) in sections.iter().enumerate() {
        let number = (index + 1).to_string();
        let classes_path = queue.at.key("classes");
        let class_path = classes_path.key(&number);
        let mut set = Vec::new();
        for (name, place) in section.names("dscp")? {
            let Some(dscp) = Dscp::named(name) else {
                let known: Vec<_> = DSCP_NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
                log.mistake(place, class_path.key("dscp"), unknown_name(name, "DSCP", &known));
                is_right = false;
                continue;
            };
            if let Some(earlier) = sets.iter().chain([&set]).position(|set| set.contains(&dscp)) {
                let message = format!("found {name} twice; class {} has it already", earlier + 1);
                log.mistake(place, class_path.key("dscp"), message);
                is_right = false;
            }
            set.push(dscp);
        }
        sets.push(set);
    }
    is_right.then(|| Classes::new(&sets))
}
