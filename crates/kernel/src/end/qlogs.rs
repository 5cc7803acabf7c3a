//! The QUIC connections of a run as one qlog, as their clients' ends saw them.

use std::sync::Arc;

use talkpath_quic::write_qlog;

use super::shared_end::SharedEnd;

/// Writes what the clients' `ends` of a run with this `title` have logged since the last call. Returns `None`
/// if no end has kept a log.
pub fn qlog_of<'a>(title: &str, ends: impl IntoIterator<Item = &'a Arc<SharedEnd>>) -> Option<Vec<u8>> {
    let logs: Vec<_> = ends.into_iter().filter_map(|end| end.lock().take_qlog()).collect();
    if logs.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    // A vector takes all bytes.
    write_qlog(title, true, &logs, &mut out).ok()?;
    Some(out)
}
