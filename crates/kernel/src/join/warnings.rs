//! The warnings that the records and the logs of a flow give rise to. Each warning is one line for a person.

use talkpath_measure::summary::MultipathSummary;
use talkpath_measure::{Fate, FlowRecord};
use talkpath_units::{Bytes, counted, printable};

use crate::log::EndLog;
use crate::spec::FlowSpec;

/// The largest number of reasons that are listed for one end.
pub const MAX_REASONS: usize = 5;

/// Makes the warning about echoes that arrived before their message was sent, if there were any.
pub fn early_echo_warnings(flow: &FlowRecord) -> Vec<String> {
    let subject = match flow.counters.early_echoes {
        0 => return Vec::new(),
        1 => "an echo came".to_owned(),
        count => format!("each of {count} echoes came"),
    };
    vec![format!(
        "flow {}: {subject} before its message was sent, and is not counted: the far host, or something on the path, makes \
         echoes up",
        flow.info.name
    )]
}

/// Makes the warning about a connection that should have used several paths but did not.
pub fn multipath_warnings(flow: &FlowRecord) -> Vec<String> {
    let Some(MultipathSummary { fell_back: Some(fell_back), subflows_max }) = flow.counters.multipath else {
        return Vec::new();
    };
    let name = &flow.info.name;
    match (fell_back, subflows_max) {
        (true, _) => vec![format!(
            "flow {name}: multipath = true, and the connection was plain TCP: the far host, or something on the path, \
             does not speak Multipath TCP"
        )],
        (false, Some(0 | 1)) => vec![format!(
            "flow {name}: multipath = true, and the connection of Multipath TCP had one path: the host that opened it has no \
             second address for it (`ip mptcp endpoint`), or nothing came through over that"
        )],
        (false, _) => Vec::new(),
    }
}

/// Makes the warnings about messages that are too short to carry a whole number.
///
/// The numbers of such messages wrap around. If nothing arrives while half of all numbers go by, the next
/// message may get a wrong number. If the flow has a clock, the time of arrival decides the number. Otherwise
/// the number is a guess.
pub fn short_number_warnings(
    flow: &FlowRecord,
    spec: &FlowSpec,
    ends: &[(&str, Option<&EndLog>)],
) -> Vec<String> {
    let numbers = match spec.constant_size() {
        Some(1) => 1 << 8,
        Some(2 | 3) => 1 << 16,
        _ => return Vec::new(),
    };
    if !spec.features().keeps_messages {
        return Vec::new();
    }
    let name = &flow.info.name;
    if spec.is_clocked() {
        let mut warnings = Vec::new();
        for (host, log) in present(ends) {
            let Some(gap_ns) = log.totals.gap_ns else { continue };
            warnings.push(format!(
                "flow {name}: nothing came to {host} for {:.1} s, and its messages have only {numbers} numbers: those after it \
                 were numbered by their time of arrival; messages of 4 B or more have numbers enough",
                gap_ns as f64 / 1e9
            ));
        }
        return warnings;
    }
    let missing = longest_run_of_missing(flow);
    if missing < numbers / 2 {
        return Vec::new();
    }
    vec![format!(
        "flow {name}: {missing} messages in a row are missing, and they have only {numbers} numbers: those after it may be others \
         than they are taken for, so that losses and delays are not certain; messages of 4 B or more have numbers enough"
    )]
}

/// Returns the largest number of messages in a row that are missing.
fn longest_run_of_missing(flow: &FlowRecord) -> u64 {
    let mut run = 0;
    let mut longest = 0;
    for message in &flow.forward.messages {
        run = if message.fate == Fate::Missing { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Returns the logs that are present, with the names of their hosts.
fn present<'a>(ends: &'a [(&str, Option<&'a EndLog>)]) -> impl Iterator<Item = (&'a str, &'a EndLog)> {
    ends.iter().filter_map(|&(host, log)| Some((host, log?)))
}

/// Makes the warnings about messages for which a host had no network. `ends` has the logs of a flow's ends,
/// each with the name of its host.
pub fn no_network_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (host, log) in present(ends) {
        for (why, count) in log.totals.no_network.iter().take(MAX_REASONS) {
            let why = shorten_reason(why);
            lines.push(format!(
                "flow {flow}: {host} had no network for {}, never sent: {why}",
                counted(*count, "message")
            ));
        }
    }
    lines
}

/// Makes the warnings about packets of talkpath's own protocols that a kernel refused.
pub fn unsent_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (host, log) in present(ends) {
        for (why, count) in log.totals.unsent.iter().take(MAX_REASONS) {
            let packets = counted(*count, "packet");
            lines.push(format!("flow {flow}: {host} could not send {packets}: {}", shorten_reason(why)));
        }
    }
    lines
}

/// Cuts a reason to at most 100 printable characters, because a far end may have written anything into it.
pub fn shorten_reason(reason: &str) -> String {
    printable(reason, 100)
}

/// Makes the warnings about a file that arrived damaged, and about a file that the far host did not keep.
/// `not_kept` is the reason of the far host.
pub fn file_warnings(flow: &FlowRecord, not_kept: Option<&str>) -> Vec<String> {
    let Some(file) = &flow.file else { return Vec::new() };
    let mut lines = Vec::new();
    if file.intact == Some(false) {
        let damage = match file.missing_ranges {
            0 => "its SHA-256 is not the sender's".to_owned(),
            ranges => format!(
                "{} of {} B arrived; {} missing, which log.txt lists",
                file.received.map_or(0, Bytes::get),
                file.bytes.get(),
                counted(ranges, "byte range")
            ),
        };
        lines.push(format!("flow {}: the file {} is not intact: {damage}", flow.info.name, file.name));
    }
    if let Some(why) = not_kept {
        let why = printable(why, 200);
        lines.push(format!("flow {}: the far host did not keep the file: {why}", flow.info.name));
    }
    lines
}
