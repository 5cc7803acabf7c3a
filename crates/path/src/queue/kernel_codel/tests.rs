//! A kernel's queue, packet by packet, and ours beside it.
//!
//! ```text
//!  queue codel | fq_codel
//!  + NUMBER BUCKET BYTES TICK      a packet came
//!  - TICK SENT DROPPED,DROPPED,... a packet was taken out (`.` if there was none), after these were dropped
//! ```

use std::io::Read as _;

use talkpath_units::{Bytes, Duration, Instant, Packets};

use super::{Kernel, SHIFT};
use crate::occupancy::Window;
use crate::queue::codel::{Codel, CodelParameters, CodelQueue};
use crate::queue::discipline::{Discipline, LinkFacts, Signals};
use crate::queue::fq_codel::{FqCodel, FqCodelQueue};
use crate::queue::limit::QueueLimit;
use crate::queue::test_disciplines::Frame;

/// The defaults of the kernel's sch_codel and sch_fq_codel. No packet here is ECN-capable.
const PARAMETERS: CodelParameters = CodelParameters {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
    ecn: true,
    ce_threshold: None,
};
/// Ethernet's, with its header.
const FRAME: Bytes = Bytes::new(1514);

/// What a replay compared.
#[derive(Debug, Default)]
struct Compared {
    taken: usize,
    dropped: usize,
}

/// Feeds the times and buckets of `log` to our queue, and compares each decision.
fn replay(log: &str) -> Compared {
    let mut lines = log.lines();
    // Flows with numbers below ten have queues of their own with this.
    let link = LinkFacts { mtu: FRAME, perturbation: 1 };
    match lines.next() {
        Some("queue codel") => {
            let config = Codel { limit: QueueLimit::Packets(Packets::MAX), parameters: PARAMETERS };
            compare(CodelQueue::<_, Kernel>::new(&config, &link), lines)
        }
        Some("queue fq_codel") => {
            let config = FqCodel {
                limit: Packets::MAX,
                memory_limit: Bytes::MAX,
                flows: 1024,
                quantum: Some(FRAME),
                parameters: PARAMETERS,
            };
            compare(FqCodelQueue::<_, Kernel>::new(&config, &link), lines)
        }
        other => panic!("no log of a kernel's queue: {other:?}"),
    }
}

fn compare<'a>(mut queue: impl Discipline<Frame>, lines: impl Iterator<Item = &'a str>) -> Compared {
    let mut signals = Signals::new(Window::default());
    let mut compared = Compared::default();
    for (line, text) in lines.enumerate() {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |place: usize| words[place].parse::<u64>().unwrap_or_else(|why| panic!("{text}: {why}"));
        let at = |place: usize| Instant::from_nanos(number(place) << SHIFT);
        if words[0] == "+" {
            let packet = Frame { number: number(1), flow: number(2) as u32, ..Frame::of_size(number(3)) };
            queue.enqueue(packet, Bytes::ZERO, at(4), &mut signals);
            assert_eq!(signals.drops(), 0, "line {line}: {text}");
            continue;
        }
        let sent =
            queue.dequeue(at(1), &mut signals).map_or(".".to_owned(), |it| it.packet.number.to_string());
        let dropped: Vec<String> =
            core::iter::from_fn(|| signals.pop_drop()).map(|(_, it)| it.packet.number.to_string()).collect();
        assert_eq!((&*sent, &*dropped.join(",")), (words[2], words[3]), "line {line}: {text}");
        compared.taken += usize::from(sent != ".");
        compared.dropped += dropped.len();
    }
    compared
}

/// Some seconds of Linux 6.1's queues, as `cargo xtask kernel-queues` logged them.
#[test]
fn our_queues_decide_as_a_kernels_did() {
    for log in [include_str!("codel.log"), include_str!("fq_codel.log")] {
        let Compared { taken, dropped } = replay(log);
        assert!(taken > 500 && dropped > 10, "{taken} taken, {dropped} dropped: too little to compare");
    }
}

/// A log on standard input: `cargo xtask kernel-queues` gives each of its own.
#[test]
#[ignore = "needs a log on standard input"]
fn our_queue_decides_as_the_kernel_of_this_log_did() {
    let mut log = String::new();
    std::io::stdin().read_to_string(&mut log).unwrap();
    let Compared { taken, dropped } = replay(&log);
    println!("identical: {taken} packets taken, {dropped} dropped");
    assert!(taken > 100 && dropped > 0, "too little to compare");
}
