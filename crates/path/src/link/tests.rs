use talkpath_units::{Duration, Ecn, Rate};

use super::*;
use crate::carried::DropCause;
use crate::config::{DelayVariation, RateModel};
use crate::queue::Queue;
use crate::queue::test_disciplines::{DropAtService, Frame, RoundRobin};

/// A packet of 1000 bytes.
const fn frame(number: u64) -> Frame {
    Frame { number, ..Frame::of_size(1000) }
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// A frame takes 1 ms, and 20 ms more through the pipe.
fn link(jitter: DelayVariation, queue: Queue<Frame>) -> Link<Frame> {
    let rate = RateModel::Fixed(Rate::from_bps(8_000_000));
    let config = LinkConfig { delay: Duration::from_millis(20), jitter, ..LinkConfig::bare(rate) };
    let mut link = Link::new(&config, Seed::new(1), "test");
    link.set_queue(queue);
    link
}

/// Everything that comes out, and when: a link is woken at each of its deadlines.
fn drain(link: &mut Link<Frame>) -> Vec<(Instant, PathOutput<Frame>)> {
    let mut out = Vec::new();
    while let Some(at) = link.poll_timeout() {
        out.extend(link.poll_output(at).map(|output| (at, output)));
    }
    assert_eq!(link.held(), 0);
    out
}

fn numbers(out: &[(Instant, PathOutput<Frame>)]) -> Vec<(u64, Instant)> {
    let arrived = |(at, output): &(Instant, _)| match output {
        PathOutput::Arrived(Frame { number, .. }) => Some((*number, *at)),
        PathOutput::Repeated(_) | PathOutput::Lost(_) | PathOutput::Dropped(_) => None,
    };
    out.iter().filter_map(arrived).collect()
}

#[test]
fn a_discipline_that_serves_flows_in_turn_needs_nothing_of_the_link() {
    let mut link = link(DelayVariation::None, Queue::other(RoundRobin::new()));
    // Four packets of one flow, then two of another, all at once.
    for (number, flow) in [(0, 5), (1, 5), (2, 5), (3, 5), (4, 9), (5, 9)] {
        link.handle_packet(Frame { flow, ..frame(number) }, ms(0));
    }
    let out = drain(&mut link);
    assert_eq!(numbers(&out), [(0, ms(21)), (4, ms(22)), (1, ms(23)), (5, ms(24)), (2, ms(25)), (3, ms(26))]);
}

#[test]
fn what_comes_later_may_be_served_earlier_though_nobody_woke_the_link_in_between() {
    let mut link = link(DelayVariation::None, Queue::other(RoundRobin::new()));
    (0..4).for_each(|number| link.handle_packet(frame(number), ms(0)));
    // Two are in service or served by now, and one begins: the newcomer is before the last.
    link.handle_packet(Frame { flow: 1, ..frame(9) }, Instant::from_micros(1500));
    let order: Vec<_> = numbers(&drain(&mut link)).into_iter().map(|(number, _)| number).collect();
    assert_eq!(order, [0, 1, 9, 2, 3]);
}

#[test]
fn what_is_dropped_when_its_service_would_begin_comes_out_at_that_moment() {
    let queue = Queue::other(DropAtService::new(Duration::from_millis(2)));
    let mut link = link(DelayVariation::None, queue);
    // They wait 0, 1, 2 and 3 ms: the last one is dropped, and so is the next but one, which would wait 4 ms.
    for number in 0..4 {
        link.handle_packet(frame(number), ms(0));
    }
    link.handle_packet(Frame { ecn: Ecn::Ect0, ..frame(4) }, ms(0));
    link.handle_packet(frame(5), ms(0));
    let out = drain(&mut link);
    let dropped =
        |number| PathOutput::Dropped(Dropped { packet: frame(number), cause: DropCause::Congestion });
    let marked = Frame { ecn: Ecn::Ce, ..frame(4) };
    assert_eq!(
        out,
        [
            (ms(3), dropped(3)),
            (ms(4), dropped(5)),
            (ms(21), PathOutput::Arrived(frame(0))),
            (ms(22), PathOutput::Arrived(frame(1))),
            (ms(23), PathOutput::Arrived(frame(2))),
            (ms(24), PathOutput::Arrived(marked)),
        ]
    );
    let report = link.report(ms(100));
    assert_eq!((report.forwarded, report.dropped, report.queue_packets_max), (4, 2, 5));
}

#[test]
fn outputs_of_a_link_that_nobody_woke_come_in_the_order_of_time() {
    let queue = || Queue::other(DropAtService::new(Duration::from_micros(1500)));
    let offer = |link: &mut Link<Frame>| {
        (0..40).for_each(|number| link.handle_packet(frame(number), ms(number / 3)));
    };
    let mut late = link(DelayVariation::None, queue());
    offer(&mut late);
    let at_the_end: Vec<_> = core::iter::from_fn(|| late.poll_output(ms(100))).collect();
    let mut in_time = link(DelayVariation::None, queue());
    offer(&mut in_time);
    let one_by_one: Vec<_> = drain(&mut in_time).into_iter().map(|(_, output)| output).collect();
    assert_eq!(at_the_end, one_by_one);
    assert!(at_the_end.iter().any(|output| matches!(output, PathOutput::Dropped(_))));
}

#[test]
fn a_packet_that_waits_may_overtake_one_in_the_pipe() {
    // The first takes 50 ms more, the second nothing.
    let additions = "50\n0\n".parse().unwrap();
    let jitter = DelayVariation::Trace { additions, reorder: true };
    let mut link = link(jitter, Queue::other(RoundRobin::new()));
    link.handle_packet(frame(0), ms(0));
    link.handle_packet(frame(1), ms(0));
    assert_eq!(link.poll_timeout(), Some(ms(1)), "the service of the second begins");
    assert_eq!(numbers(&drain(&mut link)), [(1, ms(22)), (0, ms(71))]);
}

#[test]
fn in_order_a_link_has_one_event_a_packet() {
    let mut link = link(DelayVariation::None, Queue::other(RoundRobin::new()));
    (0..50).for_each(|number| link.handle_packet(frame(number), ms(0)));
    let mut events = 0;
    while let Some(at) = link.poll_timeout() {
        assert!(link.poll_output(at).is_some());
        events += 1;
    }
    assert_eq!(events, 50);
}

#[test]
fn an_observed_link_says_when_it_served_each_packet_whatever_its_discipline_and_its_pipe() {
    let jitter = DelayVariation::Uniform { max: Duration::from_millis(30), reorder: false };
    let mut link = link(jitter, Queue::other(RoundRobin::new()));
    link.observe_services();
    for (number, flow) in [(0, 5), (1, 5), (2, 9)] {
        link.handle_packet(Frame { flow, ..frame(number) }, ms(0));
    }
    drain(&mut link);
    let served = |service: Service<Frame>| (service.packet.number, service.began, service.ends);
    let services: Vec<_> = link.services().unwrap().drain(..).map(served).collect();
    assert_eq!(
        services.iter().map(|it| (it.1, it.2)).collect::<Vec<_>>(),
        [(ms(0), ms(1)), (ms(1), ms(2)), (ms(2), ms(3))]
    );
    let mut numbers: Vec<_> = services.iter().map(|it| it.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
}
