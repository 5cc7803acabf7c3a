use talkpath_units::{Ecn, Packets, Rate, Seed};

use super::*;
use crate::config::{LinkConfig, RateModel};
use crate::link::Link;
use crate::occupancy::Window;
use crate::queue::kernel_codel::Kernel;
use crate::queue::test_disciplines::Frame;
use crate::queue::{Queue, QueueKind};
use crate::sojourn::QueueDelay;

/// The defaults of RFC 8289 and of Linux.
const DEFAULTS: CodelParameters = CodelParameters {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
    ecn: false,
    ce_threshold: None,
};
const MTU: Bytes = Bytes::new(1500);
const CODEL: Codel = Codel { limit: QueueLimit::Packets(Packets::new(1_000_000)), parameters: DEFAULTS };

fn at_us(us: u64) -> Instant {
    Instant::from_micros(us)
}

/// One call of `dequeue`: the packets at the head, each by how long it has waited (us) and the bytes behind
/// it; and what the pseudo-code says of the packets dropped and of the state afterwards.
struct Step {
    at_us: u64,
    head: &'static [(u64, u64)],
    drops: usize,
    /// us; 0 is never.
    first_above_us: u64,
    dropping: bool,
    count: u32,
    /// ns.
    drop_next: u64,
    why: &'static str,
}

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
const fn step(
    at_us: u64,
    head: &'static [(u64, u64)],
    drops: usize,
    first_above_us: u64,
    dropping: bool,
    count: u32,
    drop_next: u64,
    why: &'static str,
) -> Step {
    Step { at_us, head, drops, first_above_us, dropping, count, drop_next, why }
}

/// A packet that has waited 6 ms, with two full packets behind it.
const ABOVE: (u64, u64) = (6_000, 3000);
const BELOW: (u64, u64) = (4_999, 3000);

/// RFC 8289 §5.5 and §5.6, each branch, with the roots computed by hand: 100 ms / sqrt(2) = 70,710,678 ns,
/// / sqrt(3) = 57,735,026 ns, / sqrt(4) = 50 ms.
const STEPS: &[Step] = &[
    step(1_000, &[], 0, 0, false, 0, 0, "an empty queue gives nothing"),
    step(10_000, &[BELOW], 0, 0, false, 0, 0, "below target"),
    step(10_500, &[(6_000, 1500)], 0, 0, false, 0, 0, "no more than an MTU waits behind it"),
    step(11_000, &[ABOVE], 0, 111_000, false, 0, 0, "above for the first time: one interval from now"),
    step(50_000, &[(5_000, 1501)], 0, 111_000, false, 0, 0, "exactly target, a byte above the MTU"),
    step(60_000, &[BELOW], 0, 0, false, 0, 0, "below: the interval begins anew"),
    step(70_000, &[ABOVE], 0, 170_000, false, 0, 0, "above again"),
    step(169_999, &[ABOVE], 0, 170_000, false, 0, 0, "not yet an interval"),
    step(170_000, &[ABOVE, ABOVE], 1, 170_000, true, 1, 270_000_000, "an interval: dropping begins"),
    step(269_999, &[ABOVE], 0, 170_000, true, 1, 270_000_000, "before drop_next"),
    step(270_000, &[ABOVE, ABOVE], 1, 170_000, true, 2, 340_710_678, "the second, sooner by sqrt(2)"),
    step(341_000, &[ABOVE, ABOVE], 1, 170_000, true, 3, 398_445_704, "drop_next counts from drop_next"),
    step(
        450_000,
        &[ABOVE, ABOVE, ABOVE],
        2,
        170_000,
        true,
        5,
        // 398,445,704 + 50,000,000, then + 44,721,359 (sqrt 5).
        493_167_063,
        "two are due at once",
    ),
    step(494_000, &[ABOVE, BELOW], 1, 0, false, 6, 493_167_063, "the next one is below: dropping ends"),
    step(500_000, &[ABOVE], 0, 600_000, false, 6, 493_167_063, "above again"),
    step(
        600_000,
        &[ABOVE, ABOVE],
        1,
        600_000,
        true,
        // 6 - lastcount 1.
        5,
        // 600 ms + 100 ms / sqrt(5).
        644_721_359,
        "it ended less than 16 intervals ago: the rate is taken up again",
    ),
    step(640_000, &[BELOW], 0, 0, false, 5, 644_721_359, "below before drop_next: dropping ends"),
    step(650_000, &[ABOVE], 0, 750_000, false, 5, 644_721_359, "above again"),
    step(
        750_000,
        &[ABOVE, ABOVE],
        1,
        750_000,
        true,
        1,
        850_000_000,
        "no drop since it was entered (delta 0): from one again",
    ),
    step(850_000, &[ABOVE, ABOVE], 1, 750_000, true, 2, 920_710_678, "and on"),
    step(921_000, &[ABOVE, ABOVE], 1, 750_000, true, 3, 978_445_704, "and on"),
    step(930_000, &[], 0, 0, false, 3, 978_445_704, "the queue is empty: dropping ends"),
    step(2_470_000, &[ABOVE], 0, 2_570_000, false, 3, 978_445_704, "long after"),
    step(
        2_578_445,
        &[ABOVE, ABOVE],
        1,
        2_570_000,
        true,
        2,
        // 2,578,445,000 + 70,710,678: 704 ns before 16 intervals are over.
        2_649_155_678,
        "704 ns before 16 intervals are over: delta 2",
    ),
    step(2_600_000, &[BELOW], 0, 0, false, 2, 2_649_155_678, "below"),
    step(2_700_000, &[ABOVE], 0, 2_800_000, false, 2, 2_649_155_678, "above"),
    step(4_300_000, &[ABOVE], 1, 0, true, 1, 4_400_000_000, "the last packet is dropped; still dropping"),
    step(4_310_000, &[ABOVE], 0, 4_410_000, false, 1, 4_400_000_000, "first_above was forgotten: it ends"),
];

#[test]
fn each_step_of_the_pseudo_code_from_a_table_of_timed_packets() {
    let mut control = Control::<Exact>::default();
    for step in STEPS {
        let now = at_us(step.at_us);
        let mut head = step.head.iter().map(|&(waited_us, behind)| {
            let entered = at_us(step.at_us - waited_us);
            let queued = Queued { packet: Frame::of_size(1500), entered };
            Taken { queued, behind: Bytes::new(behind) }
        });
        let mut signals = Signals::new(Window::default());
        let sent = control.dequeue(&DEFAULTS, MTU, || head.next(), now, &mut signals);
        assert_eq!(head.len(), 0, "{}: packets taken", step.why);
        let found = (
            signals.drops(),
            control.first_above_time.map_or(0, |at| at.as_nanos() / 1000),
            (control.dropping, control.count),
            control.drop_next.as_nanos(),
        );
        let expected = (step.drops, step.first_above_us, (step.dropping, step.count), step.drop_next);
        assert_eq!(found, expected, "{}", step.why);
        assert_eq!(sent.is_some(), step.head.len() > step.drops, "{}", step.why);
    }
}

/// Fills a queue with packets a millisecond apart, whose transports take marks as `ecn` says, and takes one
/// out every 2 ms from 10 ms on; returns the ECN field of those sent and how many were dropped.
fn drain(parameters: CodelParameters, ecn: Ecn) -> (Vec<Ecn>, usize) {
    let (fields, signals) = drained(parameters, ecn);
    (fields, signals.drops())
}

/// The same, with all that the queue signalled.
fn drained(parameters: CodelParameters, ecn: Ecn) -> (Vec<Ecn>, Signals<Frame>) {
    let limit = QueueLimit::Packets(Packets::new(1000));
    let link = LinkFacts { mtu: MTU, perturbation: 0 };
    let mut queue = CodelQueue::<_, Exact>::new(&Codel { limit, parameters }, &link);
    let mut signals = Signals::new(Window::default());
    for ms in 0..200 {
        let packet = Frame { ecn, ..Frame::of_size(1500) };
        queue.enqueue(packet, Bytes::ZERO, Instant::from_millis(ms), &mut signals);
    }
    let sent = (0..95).filter_map(|n| queue.dequeue(Instant::from_millis(10 + 2 * n), &mut signals));
    let fields = sent.map(|queued| queued.packet.ecn).collect();
    (fields, signals)
}

#[test]
fn with_ecn_what_would_be_dropped_is_marked_and_sent_if_its_transport_takes_marks() {
    let ecn = CodelParameters { ecn: true, ..DEFAULTS };
    let marks = |fields: &[Ecn]| fields.iter().filter(|ecn| **ecn == Ecn::Ce).count();
    let (fields, dropped) = drain(ecn, Ecn::Ect0);
    assert_eq!((fields.len(), marks(&fields), dropped), (95, 1, 0));
    let (fields, dropped) = drain(ecn, Ecn::NotEct);
    assert_eq!((fields.len(), marks(&fields), dropped), (95, 0, 1));
    let (fields, dropped) = drain(DEFAULTS, Ecn::Ect0);
    assert_eq!((marks(&fields), dropped), (0, 1));
}

#[test]
fn above_the_ce_threshold_each_packet_is_marked_without_any_control() {
    let parameters = CodelParameters {
        interval: Duration::from_secs(10),
        ce_threshold: Some(Duration::from_millis(20)),
        ..DEFAULTS
    };
    let (fields, dropped) = drain(parameters, Ecn::Ect1);
    // The packet of n ms leaves at 10 + 2n ms: from n = 11 on it has waited more than 20 ms.
    let expected: Vec<_> = (0..95).map(|n| if n > 10 { Ecn::Ce } else { Ecn::Ect1 }).collect();
    assert_eq!((fields, dropped), (expected, 0));
}

#[test]
fn a_packet_that_the_control_and_the_threshold_both_mark_is_counted_once() {
    let parameters = CodelParameters { ecn: true, ce_threshold: Some(Duration::from_millis(1)), ..DEFAULTS };
    let (fields, signals) = drained(parameters, Ecn::Ect0);
    let marks = fields.iter().filter(|ecn| **ecn == Ecn::Ce).count() as u64;
    assert_eq!((signals.marked(), signals.drops()), (marks, 0));
}

/// Sends packets that arrive at these times over a link of 10 Mb/s behind `queue`: how long they wait in ms
/// (mean, 95th percentile), and how many are dropped.
fn carry(queue: Queue<Frame>, arrivals: &[Instant]) -> [f64; 3] {
    let rate = RateModel::Fixed(Rate::from_bps(10_000_000));
    let config = LinkConfig { mtu: MTU, queue: QueueKind::Codel(CODEL), ..LinkConfig::bare(rate) };
    let mut link = Link::new(&config, Seed::new(1), "test");
    link.set_queue(queue);
    for &at in arrivals {
        while link.poll_output(at).is_some() {}
        link.handle_packet(Frame::of_size(1000), at);
    }
    let end = Instant::from_secs(1000);
    while link.poll_output(end).is_some() {}
    let report = link.report(end);
    let QueueDelay { mean, p95, .. } = report.queue_delay;
    [mean.as_millis_f64(), p95.as_millis_f64(), report.dropped as f64]
}

/// A minute of packets of 1000 bytes at random, in phases of 100 ms to 1 s during which they come at 70 to
/// 120 % of the link's rate.
fn arrivals(seed: u64) -> Vec<Instant> {
    let mut stream = Seed::new(seed).stream("arrivals");
    let (mut now, mut arrivals) = (Instant::ZERO, Vec::new());
    while now < Instant::from_secs(60) {
        let end = now + stream.span(Duration::from_millis(100), Duration::from_secs(1));
        let load = 0.7 + 0.5 * stream.unit();
        while now < end {
            now += Duration::from_secs_f64(0.0008 / load * stream.exponential());
            arrivals.push(now);
        }
    }
    arrivals
}

/// Linux drops the second and third packet of an episode sooner: its inverse square root begins at one and
/// comes near to the true one with each step. Measured: 30.1 ms instead of 30.4 ms on the average of 20
/// minutes, 119.6 ms instead of 120.4 ms at the 95th percentile, 0.5 % more drops. A single minute differs by
/// up to 9 %, both ways, since each drop changes what comes after.
#[test]
fn linuxs_arithmetic_makes_packets_wait_two_percent_shorter_at_most() {
    let link = LinkFacts { mtu: MTU, perturbation: 0 };
    let mut means = [[0.0; 3]; 2];
    for seed in 0..20 {
        let arrivals = arrivals(seed);
        let ours = carry(Queue::other(CodelQueue::<_, Exact>::new(&CODEL, &link)), &arrivals);
        let linux = carry(Queue::other(CodelQueue::<_, Kernel>::new(&CODEL, &link)), &arrivals);
        for (means, found) in means.iter_mut().zip([ours, linux]) {
            means.iter_mut().zip(found).for_each(|(mean, figure)| *mean += figure / 20.0);
        }
    }
    let [ours, linux] = means;
    assert!((20.0..40.0).contains(&ours[0]) && ours[2] > 1000.0, "CoDel has something to do: {ours:?}");
    for (ours, linux) in ours.iter().zip(linux) {
        let ratio = linux / ours;
        assert!((0.98..1.02).contains(&ratio) && ratio != 1.0, "{means:?}");
    }
}
