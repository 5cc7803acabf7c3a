//! Gives the calls of an older run directory the receiver and the packets that the run had.
//!
//! The resolved form of a run has every default. Before the receiver of browsers became the default, it had
//! no `rtp`: a call was played as by `ramjee`, its receiver was called `adaptive` or had no name, and its
//! packets had no headers of RTP. A resolved form of today always has `rtp`, so its absence shows the older
//! one.

use crate::diagnostic::Place;
use crate::reading::Reading;
use crate::spec::TAG;
use crate::tree::{Node, Table, Value, linked_keys};

/// Completes the calls of a resolved form that was written before there was `rtp`. Any other file stays as it
/// is.
pub(crate) fn keep_older_calls(mut root: Table, reading: &mut Reading<'_>) -> Table {
    if !reading.options.is_recorded {
        return root;
    }
    let swept: Vec<String> = root.get("sweep").and_then(Node::as_table).map_or_else(Vec::new, |sweep| {
        let lines = sweep.entries.iter().flat_map(|entry| linked_keys(&entry.name));
        lines.map(str::to_owned).collect()
    });
    let Some(Value::Table(flows)) = root.get_mut("flow").map(|node| &mut node.value) else { return root };
    for flow in &mut flows.entries {
        let key = format!("flow.{}.workload", flow.name);
        // A swept key is not in the table, so nothing shows that it is missing.
        if swept.iter().any(|swept| *swept == key || *swept == format!("{key}.rtp")) {
            continue;
        }
        let Value::Table(flow) = &mut flow.node.value else { continue };
        let Some(Value::Table(workload)) = flow.get_mut("workload").map(|node| &mut node.value) else {
            continue;
        };
        if keep_older_call(workload, swept.contains(&format!("{key}.playout"))) {
            let place = workload.get(TAG).map(|tag| tag.place.clone()).unwrap_or(Place::START);
            let message = "this run is older than the receiver of browsers: it keeps the receiver `ramjee`, and \
                           packets without RTP's header";
            reading.log.warning(&place, &key, message);
        }
    }
    root
}

/// Completes a workload. Returns whether it is an older call.
fn keep_older_call(workload: &mut Table, is_playout_swept: bool) -> bool {
    let is_voice = workload.get(TAG).and_then(Node::as_text) == Some("voice");
    // Each resolved form has `ptime`, so a table without it is none.
    if !is_voice || workload.get("rtp").is_some() || workload.get("ptime").is_none() {
        return false;
    }
    let place = workload.get("ptime").map(|node| node.place.clone()).unwrap_or(Place::START);
    workload.set("rtp", Node::new(Value::Flag(false), place.clone()));
    let is_adaptive = match workload.get("playout") {
        None => !is_playout_swept,
        Some(playout) => {
            let word = playout.as_table().map_or(Some(playout), |table| table.get(TAG));
            word.and_then(Node::as_text) == Some("adaptive")
        }
    };
    if is_adaptive {
        workload.set("playout", Node::text("ramjee", place));
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::{Options, Source, load};

    /// What version 0.3.0 wrote of a call, but for the rest of its defaults.
    const OLDER: &str = "duration = \"1 s\"\npath = \"lan\"\n[flow.call]\ntransport = \"udp\"\n\
                         workload = { kind = \"voice\", ptime = \"20 ms\", playout = { kind = \"adaptive\" }, \
                         concealment = \"none\", floor = 3.1 }\n";

    fn resolved(text: &str, is_recorded: bool) -> (String, usize) {
        let options = Options { is_recorded, ..Options::default() };
        let plan = load(&Source::new("scenario.toml", text), &options).unwrap();
        (plan.resolved, plan.warnings.len())
    }

    #[test]
    fn a_run_that_is_older_than_rtp_keeps_ramjee_and_packets_without_headers_and_says_so_once() {
        let (older, warnings) = resolved(OLDER, true);
        assert!(older.contains("rtp = false") && older.contains("ramjee"), "{older}");
        assert_eq!(warnings, 1);
        // The run that repeats it writes the new form, which says all by itself.
        assert_eq!(resolved(&older, true), (older, 0));
        let fixed = OLDER.replace("{ kind = \"adaptive\" }", "{ kind = \"fixed\", delay = \"60 ms\" }");
        let (fixed, _) = resolved(&fixed, true);
        assert!(
            fixed.contains("rtp = false") && fixed.contains("60 ms") && !fixed.contains("ramjee"),
            "{fixed}"
        );
        let (unnamed, _) = resolved(&OLDER.replace("playout = { kind = \"adaptive\" }, ", ""), true);
        assert!(unnamed.contains("ramjee"), "{unnamed}");
    }

    #[test]
    fn a_file_of_a_user_and_a_run_of_today_have_the_receiver_of_browsers() {
        let (written, warnings) = resolved(OLDER, false);
        assert!(written.contains("rtp = true") && !written.contains("ramjee"), "{written}");
        assert_eq!((warnings, resolved(&written, true)), (0, (written.clone(), 0)));
        let swept = format!("{OLDER}[sweep]\n\"flow.call.workload.rtp\" = [true, false]\n");
        let (swept, _) = resolved(&swept, true);
        assert!(!swept.contains("ramjee"), "{swept}");
    }
}
