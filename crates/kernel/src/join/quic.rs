//! What a QUIC connection found out about its path in the run, as warnings.

use talkpath_quic::{EcnFailure, PathReport};
use talkpath_units::times;

use crate::log::EndLog;

/// Makes the warnings about a connection whose far end moved, or whose path failed ECN validation or no
/// longer carried larger packets. `ends` has the logs of a flow's ends, each with the name of its host.
pub fn quic_warnings(flow: &str, ends: &[(&str, Option<&EndLog>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for &(host, log) in ends {
        let Some(report) = log.and_then(|log| log.totals.quic_path) else { continue };
        let PathReport { moves, black_holes, packet_size, ecn_failure } = report;
        if moves > 0 {
            lines.push(format!(
                "flow {flow}: its address or port changed {} during the run; the QUIC connection \
                 followed by itself (RFC 9000 §9.3): what {host} sent to the old one meanwhile is lost",
                times(moves.into())
            ));
        }
        if black_holes > 0 {
            lines.push(format!(
                "flow {flow}: during the run packets of more than 1200 B from {host} stopped getting through, and nothing \
                 on the path said so: QUIC fell back to 1200 B {} (RFC 9000 §14.3), and has {packet_size} B at the end",
                times(black_holes)
            ));
        }
        lines.extend(ecn_failure.map(|why| {
            let why = match why {
                EcnFailure::AllMarked => "the first ten packets that were reported came marked CE",
                EcnFailure::NotReported => "its packets are acknowledged without ECN counts",
                EcnFailure::Changed => "the counts are not those of what was sent",
            };
            format!(
                "flow {flow}: what {host} sends goes on without ECN: the path failed QUIC's validation (RFC 9000 \
                 §13.4.2), as {why}"
            )
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use talkpath_flow::Side;
    use talkpath_measure::ReadMessages;

    use super::*;

    #[test]
    fn what_a_connection_found_out_about_its_path_is_named_and_an_ordinary_path_is_not() {
        let ordinary = PathReport { moves: 0, black_holes: 0, packet_size: 1452, ecn_failure: None };
        let lines = |report| {
            let mut log = EndLog::new(Side::Far, true, ReadMessages::Whole);
            log.totals.quic_path = Some(report);
            quic_warnings("call", &[("this host", None), ("the far host", Some(&log))])
        };
        assert_eq!(lines(ordinary), [] as [&str; 0]);
        for (report, words) in [
            (PathReport { moves: 2, ..ordinary }, "changed 2 times during the run"),
            (
                PathReport { black_holes: 1, packet_size: 1200, ..ordinary },
                "of more than 1200 B from the far host",
            ),
            (PathReport { ecn_failure: Some(EcnFailure::AllMarked), ..ordinary }, "came marked CE"),
            (PathReport { ecn_failure: Some(EcnFailure::NotReported), ..ordinary }, "without ECN counts"),
        ] {
            let lines = lines(report);
            assert!(lines.len() == 1 && lines[0].contains(words), "{lines:?}");
        }
    }
}
