//! Our DCCP in the emulated arena: over real sockets and a path that is ours, so that every message's fate is
//! known.

use talkpath_measure::{DropCause, Fate, SeriesKind};
use talkpath_units::Duration;

use super::support::quiet::undisturbed;
use super::support::{count, judge_run, run};

const PATH: &str = r#"
    [path]
    up = { rate = "2 Mbps", delay = "10 ms" }
    down = { rate = "2 Mbps", delay = "10 ms" }
"#;

#[test]
fn calls_over_every_ccid_come_back_whole_in_both_directions() {
    undisturbed(|| {
        let flows: String = [2, 3, 4]
            .iter()
            .flat_map(|ccid| ["up", "down"].map(|direction| (ccid, direction)))
            .map(|(ccid, direction)| {
                format!(
                    r#"
                [flow.ccid{ccid}-{direction}]
                transport = "dccp-ccid{ccid}"
                direction = "{direction}"
                workload = {{ kind = "voice", rtp = false, codec = "g711", echo = true }}
                due = "opening"
                "#
                )
            })
            .collect();
        let Some(ran) = run(&format!("name = \"calls\"\nduration = \"2 s\"\n{PATH}{flows}")) else { return };
        assert_eq!(ran.record.flows.len(), 6);
        for flow in &ran.record.flows {
            let name = &flow.info.name;
            for leg in [&flow.forward, flow.echo.as_ref().unwrap()] {
                // A Request, a Response of 20 ms and more, and 99 frames; a busy machine opens later.
                assert!((50..=99).contains(&leg.messages.len()), "{name}: {}", leg.messages.len());
                for row in &leg.messages {
                    assert_eq!((row.fate, row.copies, row.transmissions), (Fate::Delivered, 1, 1), "{name}");
                    assert!(row.due <= row.sent.unwrap() && row.sent <= row.wire, "{name}: {row:?}");
                    // 10 ms and 212 B or more at 2 Mbps.
                    let way = row.received.unwrap().since(row.wire.unwrap());
                    assert!(way.as_nanos() >= 10_800_000, "{name}: {way}");
                }
            }
            assert!(flow.counters.retransmissions.is_none() && flow.counters.timeouts.is_some(), "{name}");
        }
        assert!(ran.record.warnings.iter().all(|line| !line.contains("DCCP")), "{:?}", ran.record.warnings);
    });
}

#[test]
fn a_bulk_transfers_window_is_sampled_and_its_losses_are_the_queues() {
    let scenario = r#"
        name = "bulk"
        duration = "4 s"
        [path]
        up = { rate = "2 Mbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "20 packets" } }
        down = { rate = "2 Mbps", delay = "20 ms" }
        [flow.bulk]
        transport = "dccp-ccid2"
        workload = { kind = "bulk" }
        "#;
    judge_run(scenario, |ran| {
        let bulk = &ran.record.flows[0];
        let dropped = count(&bulk.forward, Fate::Missing, Some(DropCause::Queue));
        let link = ran.link("up");
        assert_eq!(dropped as u64, link.dropped, "each was a message");
        assert!(dropped > 0, "slow start overran the queue");
        let known = count(&bulk.forward, Fate::Delivered, None) + dropped;
        let held = count(&bulk.forward, Fate::Unfinished, None);
        assert_eq!(known + held, bulk.forward.messages.len());
        let cwnd = ran.record.series.iter().find(|line| line.kind == SeriesKind::Cwnd).unwrap();
        let most = cwnd.points.iter().map(|point| point.1).fold(0.0, f64::max);
        // The path holds 7 packets and its queue 20; slow start finds out too late, by at most twice that.
        assert!((20.0..=60.0).contains(&most), "{most}");
        assert!(bulk.counters.cwnd_packets_mean.unwrap() > 10.0);
    });
}

/// What the sender's queue gives up never meets the path; what its rate holds back at the end is unfinished.
#[test]
fn an_overloaded_queue_drops_its_oldest_and_a_small_one_refuses_the_newest() {
    undisturbed(|| {
        let overload = |policy: &str| {
            format!(
                r#"
            [flow.{policy}]
            transport = {{ kind = "dccp-ccid2", send_queue = "4 packets", send_queue_policy = "{policy}" }}
            workload = {{ kind = "cbr", rate = "800 kbps", size = "500 B" }}
            due = "opening"
            "#
            )
        };
        let Some(ran) = run(&format!(
            r#"
        name = "overload"
        duration = "4 s"
        [path]
        up = {{ rate = "400 kbps", delay = "10 ms", queue = {{ kind = "drop-tail", limit = "10 packets" }} }}
        down = {{ rate = "400 kbps", delay = "10 ms" }}
        {}{}
        "#,
            overload("drop-oldest"),
            overload("drop-newest")
        )) else {
            return;
        };
        for (name, sheds) in [
            ("drop-oldest", (Fate::Missing, Some(DropCause::SendQueue))),
            ("drop-newest", (Fate::Refused, None)),
        ] {
            let leg = &ran.flow(name).forward;
            // 800 messages were due, and the path takes 400 kbps of both flows.
            let shed = count(leg, sheds.0, sheds.1);
            assert!(shed > 200, "{name}: {shed} of {}", leg.messages.len());
            let shed: Vec<_> =
                leg.messages.iter().filter(|row| (row.fate, row.drop_cause) == sheds).collect();
            assert!(shed.iter().all(|row| row.wire.is_none() && row.transmissions == 0), "{name}");
            assert!(count(leg, Fate::Delivered, None) > 50, "{name}");
            assert_eq!(count(leg, Fate::Missing, None), 0, "{name}: nothing is missing without a cause");
        }
    });
}

/// RFC 4340 §11.7: what the application does not read in time has no room, and is no loss of the path.
#[test]
fn a_slow_receiver_drops_what_its_buffer_does_not_hold() {
    let scenario = format!(
        r#"
        name = "slow"
        duration = "2 s"
        {PATH}
        [flow.slow]
        transport = "dccp-ccid3"
        workload = {{ kind = "cbr", rate = "64 kbps", size = "160 B" }}
        due = "opening"
        receiver = {{ service = "60 ms", socket_buffer = "640 B" }}
        "#
    );
    judge_run(&scenario, |ran| {
        let leg = &ran.record.flows[0].forward;
        // One of three is read, and four wait.
        let dropped = count(leg, Fate::Missing, Some(DropCause::SocketBuffer));
        assert!(dropped > 30, "{dropped}");
        let reads: Vec<_> = leg.messages.iter().filter_map(|row| row.received).collect();
        assert!(reads.len() > 10);
        // The work on a message takes 60 ms and begins when the last is done, however late the thread wakes
        // up for it.
        for (count, at) in (0..).zip(&reads) {
            let worked = Duration::from_millis(60) * count;
            assert!(at.since(reads[0]) >= worked, "read {count} at {at}, the first at {}", reads[0]);
        }
    });
}
