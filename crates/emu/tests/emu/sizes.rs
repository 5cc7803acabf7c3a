//! Messages whose sender draws their sizes, in the emulated arena.

use std::fmt::Write as _;

use super::support::quiet::undisturbed;
use super::support::run;
use super::support::shared::assert_as_drawn;

const TRANSPORTS: [&str; 7] =
    ["udp", "tcp", "tcp-nodelay", "dccp-ccid2", "quic-datagram", "quic-stream", "quic-stream-per-message"];

/// The flow's numbers begin before its connection is open, so that on a stream the first message that comes
/// is not the first that was due.
#[test]
fn messages_of_drawn_sizes_arrive_and_come_back_by_number_over_every_transport() {
    undisturbed(|| {
        for (direction, echo_write) in [("up", "per-message"), ("down", "per-read")] {
            let mut flows = String::new();
            for transport in TRANSPORTS {
                write!(
                    flows,
                    "\n[flow.{transport}]\ntransport = \"{transport}\"\ndirection = \"{direction}\"\n\
                     workload = {{ kind = \"cbr\", message_rate = \"100 Hz\", min_size = \"8 B\", size = \"1000 B\", \
                     echo = true, echo_write = \"{echo_write}\" }}\n"
                )
                .expect("a String takes all text");
            }
            let Some(ran) = run(&format!(
                "duration = \"1 s\"\n[path]\nup = {{ rate = \"20 Mbps\", delay = \"10 ms\" }}\n\
                 down = {{ rate = \"20 Mbps\", delay = \"10 ms\" }}\n{flows}"
            )) else {
                return;
            };
            for (record, flow) in ran.record.flows.iter().zip(&ran.scenario.flows) {
                assert_as_drawn(record, flow);
                // The path's round trip, and a handshake of another one.
                let has_handshake = flow.name != "udp";
                let unsent = record.forward.messages.iter().filter(|row| row.sent.is_none()).count();
                assert_eq!(unsent > 0, has_handshake, "{}: {unsent}", flow.name);
                let left = |row: &talkpath_measure::MessageRecord| row.sent.is_none() || row.wire.is_some();
                assert!(record.forward.messages.iter().all(left), "{}", flow.name);
            }
        }
    });
}
