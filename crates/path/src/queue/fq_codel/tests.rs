use talkpath_units::{Duration, Ecn};

use super::*;
use crate::occupancy::Window;
use crate::queue::test_disciplines::Frame;

/// Linux's defaults, with a quantum of one full packet.
const CONFIG: FqCodel = FqCodel {
    limit: Packets::new(10_240),
    memory_limit: Bytes::new(32 << 20),
    flows: 1024,
    quantum: Some(Bytes::new(1500)),
    parameters: CodelParameters {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ecn: true,
        ce_threshold: None,
    },
};

/// Queues in which the flows 0 to 9 do not share one.
fn queues(config: FqCodel) -> (FqCodelQueue<Frame>, Signals<Frame>) {
    let link = LinkFacts { mtu: Bytes::new(1500), perturbation: 1 };
    let queue = FqCodelQueue::<_, Exact>::new(&config, &link);
    (queue, Signals::new(Window::default()))
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// A row of a table: what comes, or what is to be sent.
enum Row {
    /// At this ms, so many packets of a flow, of so many bytes each.
    Comes(u64, u32, u64, u64),
    /// At this ms the serialiser takes these packets, each by its flow and number; then these flows are in
    /// the lists of new and of old queues.
    Sends(u64, &'static [(u32, u64)], &'static [u32], &'static [u32]),
}

use Row::{Comes, Sends};

/// RFC 8290 §4.1 and §4.2, each branch.
const ROWS: &[Row] = &[
    Comes(0, 1, 6, 600),
    // A quantum in one turn, overdrawn by 300: the queue becomes an old one before its next.
    Sends(0, &[(1, 0), (1, 1), (1, 2)], &[1], &[]),
    // It has 1200 bytes in this turn.
    Sends(1, &[(1, 3)], &[], &[1]),
    // A queue that becomes active is new, and goes before the old ones.
    Comes(2, 2, 2, 200),
    Sends(2, &[(2, 6), (2, 7)], &[2], &[1]),
    // Empty, it passes through the old ones, though it has 1100 bytes left.
    Sends(3, &[(1, 4)], &[], &[1, 2]),
    // While it is in a list a packet does not make it new. Flow 1 has exactly used its quantum.
    Comes(4, 2, 1, 200),
    Sends(4, &[(2, 8)], &[], &[2, 1]),
    // An empty queue at the head of the old ones becomes inactive.
    Sends(5, &[(1, 5)], &[], &[1]),
    Sends(5, &[], &[], &[]),
    // From there it is new again, with a whole quantum: seven packets of 200 bytes, and one that overdraws
    // it.
    Comes(6, 2, 9, 200),
    Comes(6, 3, 1, 1500),
    Sends(6, &[(2, 9), (2, 10), (2, 11), (2, 12), (2, 13), (2, 14), (2, 15), (2, 16)], &[2, 3], &[]),
    Sends(6, &[(3, 18)], &[3], &[2]),
    // Flow 3 has used its quantum, so it is an old one now, empty as it is.
    Sends(6, &[(2, 17)], &[], &[2, 3]),
    Sends(7, &[], &[], &[]),
];

#[test]
fn each_step_of_the_scheduler_from_a_table_of_timed_packets() {
    let (mut queue, mut signals) = queues(CONFIG);
    let mut number = 0;
    for (index, row) in ROWS.iter().enumerate() {
        match *row {
            Comes(at, flow, count, size) => {
                for _ in 0..count {
                    let packet = Frame { number, flow, ..Frame::of_size(size) };
                    queue.enqueue(packet, Bytes::ZERO, ms(at), &mut signals);
                    number += 1;
                }
            }
            Sends(at, expected, new, old) => {
                let take =
                    |_| queue.dequeue(ms(at), &mut signals).map(|it| (it.packet.flow, it.packet.number));
                let sent: Vec<_> = (0..expected.len().max(1)).filter_map(take).collect();
                assert_eq!(sent, expected, "row {index}");
                let flow_of = |index: &u32| {
                    (1..9).find(|&flow| queue.table[queue.place(flow)] == *index).expect("one of these")
                };
                let lists: [Vec<u32>; 2] =
                    [&queue.new, &queue.old].map(|it| it.iter().map(flow_of).collect());
                assert_eq!(lists, [new.to_vec(), old.to_vec()], "row {index}: new and old queues");
            }
        }
    }
    assert_eq!((queue.len(), queue.bytes, signals.drops()), (0, Bytes::ZERO, 0));
}

#[test]
fn without_room_half_of_the_longest_queue_goes_from_its_head_but_no_more_than_a_batch() {
    for (waiting, expected) in [(11, 6), (400, 64)] {
        let (mut queue, mut signals) = queues(FqCodel { limit: Packets::new(waiting + 1), ..CONFIG });
        for number in 0..waiting {
            let packet = Frame { number, flow: 1, ..Frame::of_size(1000) };
            queue.enqueue(packet, Bytes::ZERO, ms(0), &mut signals);
        }
        for number in 0..2 {
            let packet = Frame { number: 1000 + number, flow: 2, ..Frame::of_size(200) };
            queue.enqueue(packet, Bytes::ZERO, ms(1), &mut signals);
        }
        let dropped: Vec<_> = core::iter::from_fn(|| signals.pop_drop()).collect();
        let numbers: Vec<_> = dropped.iter().map(|(_, it)| it.packet.number).collect();
        assert_eq!(numbers, (0..expected).collect::<Vec<_>>());
        assert!(dropped.iter().all(|(at, it)| (*at, it.cause) == (ms(1), DropCause::QueueFull)));
        assert_eq!(u64::from(queue.len()), waiting + 2 - expected);
    }
}

#[test]
fn bytes_above_the_memory_limit_count_as_no_room() {
    let (mut queue, mut signals) = queues(FqCodel { memory_limit: Bytes::new(4000), ..CONFIG });
    for number in 0..3 {
        let packet = Frame { number, ..Frame::of_size(1500) };
        queue.enqueue(packet, Bytes::ZERO, ms(0), &mut signals);
    }
    // Half of 4500 B: two packets.
    assert_eq!((signals.drops(), queue.bytes), (2, Bytes::new(1500)));
}

#[test]
fn each_queue_has_a_control_of_its_own() {
    let (mut queue, mut signals) = queues(CONFIG);
    let (mut number, mut sent) = (0, [(0, 0); 3]);
    // Flow 1 always has packets waiting; of flow 2 one comes every 10 ms. A packet is sent every 2 ms.
    for step in 0..500 {
        let mut comes = |flow, ecn| {
            let packet = Frame { number, flow, ecn, ..Frame::of_size(1500) };
            queue.enqueue(packet, Bytes::ZERO, ms(2 * step), &mut signals);
            number += 1;
        };
        comes(1, Ecn::Ect0);
        if step % 5 == 0 {
            comes(2, Ecn::NotEct);
        }
        let packet = queue.dequeue(ms(2 * step), &mut signals).expect("there is always one").packet;
        let (count, marks) = &mut sent[packet.flow as usize];
        *count += 1;
        *marks += u64::from(packet.ecn == Ecn::Ce);
    }
    assert_eq!((sent[2], signals.drops()), ((100, 0), 0), "the sparse flow waits for one packet at most");
    assert!(sent[1].1 > 5 && signals.marked() == sent[1].1, "{sent:?}");
}

/// RFC 8290 §4.2, RFC 8289 §5.6: a link that becomes idle finds all queues empty. A flow that comes back
/// later has a new queue, and its interval begins anew.
#[test]
fn what_a_link_found_empty_as_it_became_idle_begins_anew() {
    let (mut queue, mut signals) = queues(CONFIG);
    let frame = |flow| Frame { flow, ..Frame::of_size(1500) };
    // A packet takes 12 ms at 1 Mbps.
    assert!(queue.pass(frame(4), ms(0), &mut signals).is_some());
    let mut busy_until = 0;
    for idle_at in [0, 1000] {
        if idle_at > 0 {
            // Another flow ends the idle time. The first ones come while its packet is sent.
            assert_eq!(queue.pass(frame(5), ms(idle_at), &mut signals), Some(frame(5)));
        }
        for flow in 1..=3 {
            queue.enqueue(frame(flow), Bytes::ZERO, ms(idle_at), &mut signals);
        }
        for flow in 1..=3 {
            busy_until = idle_at + 12 * u64::from(flow);
            // The first one waits longer than `target`, and more than an MTU waits behind it.
            let sent = queue.dequeue(ms(busy_until), &mut signals).map(|it| it.packet);
            assert_eq!(sent, Some(frame(flow)), "at {busy_until} ms");
        }
    }
    assert_eq!((busy_until, queue.len(), signals.drops()), (1036, 0, 0));
}

#[test]
fn flows_share_queues_as_chance_has_it() {
    // Of 100 flows in 1024 queues 1024 (1 - (1 - 1/1024)^100) = 95.3 have one on the average.
    let taken: usize = (0..100)
        .map(|perturbation: u64| {
            let link = LinkFacts { mtu: Bytes::new(1500), perturbation: mix(perturbation) };
            let mut queue = FqCodelQueue::<Frame>::new(&CONFIG, &link);
            for flow in 0..100 {
                queue.classify(2 * flow);
            }
            queue.queues.len()
        })
        .sum();
    assert!((9_450..9_610).contains(&taken), "{taken} queues in 100 trials");
}

#[test]
fn a_smaller_limit_drops_from_the_head_of_the_longest_queue() {
    let (mut queue, mut signals) = queues(CONFIG);
    for (flow, number) in [(1, 0), (1, 1), (1, 2), (1, 3), (2, 4)] {
        let packet = Frame { number, flow, ..Frame::of_size(1000) };
        queue.enqueue(packet, Bytes::ZERO, ms(0), &mut signals);
    }
    queue.set_limit(QueueLimit::Packets(Packets::new(3)), Bytes::ZERO, ms(1), &mut signals);
    let dropped: Vec<_> =
        core::iter::from_fn(|| signals.pop_drop()).map(|(_, it)| it.packet.number).collect();
    assert_eq!((dropped, queue.len()), (vec![0, 1], 3));
}
