//! Messages whose sender draws their sizes.

use talkpath_measure::{Fate, MessageRecord, RunRecord};
use talkpath_units::Bytes;

use crate::common;

/// A flow of 60 messages a second for 4 s, each of 8 to 1000 B, and their echoes.
fn run(transport: &str, echo_write: &str, receiver: &str) -> RunRecord {
    common::run(&format!(
        r#"
        duration = "4 s"
        [path]
        up = {{ rate = "10 Mbps", delay = "10 ms" }}
        down = {{ rate = "10 Mbps", delay = "10 ms" }}
        [flow.game]
        transport = "{transport}"
        workload = {{ kind = "cbr", message_rate = "60 Hz", min_size = "8 B", size = "1000 B", echo = true, echo_write = "{echo_write}" }}
        receiver = {receiver}
        "#
    ))
}

/// Numbers and sizes of what was sent.
fn sent(rows: &[MessageRecord]) -> Vec<(u64, Bytes)> {
    let sent = rows.iter().filter(|row| row.sent.is_some());
    sent.map(|row| (row.seq, row.size)).collect()
}

#[test]
fn a_seed_draws_the_same_sizes_over_every_transport_and_all_of_them_arrive_and_come_back() {
    let sizes = |record: &RunRecord| -> Vec<Bytes> {
        record.flows[0].forward.messages.iter().map(|row| row.size).collect()
    };
    let drawn = sizes(&run("udp", "per-message", "{}"));
    assert_eq!(drawn.len(), 240);
    let mean = drawn.iter().map(|size| size.get()).sum::<u64>() as f64 / 240.0;
    // The standard deviation of one is 287 B; three standard errors.
    assert!((mean - 504.0).abs() < 56.0, "{mean}");
    for transport in
        ["udp", "tcp", "tcp-nodelay", "dccp-ccid2", "quic-datagram", "quic-stream", "quic-stream-per-message"]
    {
        for (echo_write, receiver) in
            [("per-message", "{}"), ("per-read", "{}"), ("per-message", "{ service = \"2 ms\" }")]
        {
            let record = run(transport, echo_write, receiver);
            assert_eq!(sizes(&record), drawn, "{transport}");
            let flow = &record.flows[0];
            let (there, back) = (&flow.forward, flow.echo.as_ref().expect("it echoes"));
            let is_settled = |row: &MessageRecord| match row.sent {
                Some(_) => row.fate == Fate::Delivered && row.copies == 1,
                None => row.fate == Fate::NotOpen,
            };
            assert!(there.messages.iter().chain(&back.messages).all(is_settled), "{transport}");
            assert_eq!(sent(&back.messages), sent(&there.messages), "{transport}");
            if !there.reads.is_empty() {
                let read: u64 = there.reads.iter().map(|(_, bytes)| bytes.get()).sum();
                let written: u64 = sent(&there.messages).iter().map(|(_, size)| size.get()).sum();
                assert_eq!(read, written, "{transport}: a frame lies within its message");
            }
        }
    }
}
