//! What counts at a run's end, and of messages that wait for room.

use crate::common;
use talkpath_measure::{Fate, RunRecord};
use talkpath_units::Instant;

fn fates(record: &RunRecord) -> Vec<Fate> {
    record.flows[0].forward.messages.iter().map(|message| message.fate).collect()
}

#[test]
fn large_messages_that_a_stream_takes_in_parts_are_all_counted() {
    // A message is larger than the empty buffer's limit and is taken whole all the same, in parts; the next
    // one is due before there is room for it.
    let record = common::run(
        r#"
        duration = "2 s"
        drain = "20 s"
        [path]
        up = { rate = "50 Mbps", delay = "20 ms" }
        down = { rate = "50 Mbps", delay = "20 ms" }
        [flow.frames]
        transport = "tcp"
        workload = { kind = "cbr", size = "100 kB", rate = "24 Mbps" }
        due = "opening"
        "#,
    );
    let messages = &record.flows[0].forward.messages;
    assert!(messages.len() >= 55, "{}", messages.len());
    assert!(messages.iter().all(|message| message.sent.is_some() && message.fate == Fate::Delivered));
    let is_causal = |message: &talkpath_measure::MessageRecord| message.received > message.sent;
    assert!(messages.iter().all(is_causal), "a message was received before it was sent");
}

#[test]
fn a_message_that_arrives_gives_its_echo_the_whole_drain() {
    let record = common::run(
        r#"
        duration = "1 s"
        drain = "1 s"
        [path]
        up = { rate = "10 Mbps", delay = "700 ms" }
        down = { rate = "10 Mbps", delay = "700 ms" }
        [flow.call]
        transport = "udp"
        workload = { kind = "cbr", size = "160 B", rate = "1.6 kbps", echo = true }
        start = "0.99 s"
        "#,
    );
    let echoes = &record.flows[0].echo.as_ref().expect("it has an echo").messages;
    assert_eq!(echoes.iter().map(|echo| echo.fate).collect::<Vec<_>>(), [Fate::Delivered]);
}

#[test]
fn what_was_due_before_the_end_is_counted_though_a_late_application_writes_it_after() {
    let record = common::run(
        r#"
        duration = "1 s"
        path = "lan"
        [flow.call]
        transport = "udp"
        workload = "voice"
        clock_jitter = "200 ms"
        "#,
    );
    assert_eq!(fates(&record), [Fate::Delivered; 50]);
    let last = record.flows[0].forward.messages.last().expect("frames");
    assert!(last.sent > Some(Instant::from_secs(1)), "the draw was kind: choose another seed");
}

#[test]
fn datagrams_of_ipv6_that_room_alone_bounds_are_refused() {
    let text = r#"
        duration = "1 s"
        path = "lan"
        ip = "ipv6"
        [flow.load]
        transport = "udp"
        workload = { kind = "bulk", bytes = "1 MB" }
        "#;
    let why = common::refusal(text);
    assert!(why.contains("does not fragment IPv6's datagrams"), "{why}");
    // What fits is not.
    common::run(&text.replace("1 MB", "1200 B"));
}
