use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::time::{ClockId, clock_gettime};
use talkpath_model::{Receiver, WorkloadConfig};
use talkpath_units::{Bytes, Rate, Seed};

use super::*;
use crate::end::fixtures::{UDP, context, flow, place, session};
use crate::end::{EndPlace, UdpRoute};
use crate::spec::FlowSpec;

/// More than any of them writes.
const ROWS: u64 = 50_000_000;

/// A pacer sleeps through a crowd of deadlines. The turns of a burst, one after the other, are none.
#[test]
fn the_turns_of_a_burst_are_no_deadlines_that_a_pacer_waits_for() {
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (rate, size) = (Rate::from_bps(64_000), Bytes::new(160));
    let call = WorkloadConfig::Cbr { rate, size: size.into() };
    let burst = WorkloadConfig::Burst { count: 10_000, size, repeat: 1, gap: Duration::ZERO };
    for (name, workload, met_in_three_turns) in [("call", call, 1), ("burst", burst, 0)] {
        let common = context(0, ROWS);
        let flow = flow(UDP, workload);
        let session = session(&flow, 60_000_000_000);
        let end = SharedEnd::new(&session, &flow, &place(true), Receiver::default(), &common);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(sink.local_addr().unwrap()).unwrap();
        end.lock().set_route(UdpRoute { socket: Arc::new(socket), unconnected: None });
        let ends = [Arc::new(end)];
        common.clock.sleep_until(Instant::from_nanos(1), MAX_SLEEP);
        let mut calendar = Calendar::new(&ends);
        let mut serve = || calendar.serve(&ends, common.clock, &common.alarm).met_deadlines;
        let met: usize = (0..3).map(|_| serve()).sum();
        assert_eq!(met, met_in_three_turns, "{name}");
        assert!(ends[0].lock().progress().sent > 0, "{name}");
    }
}

/// The figures behind the server's limit of messages a second, and what many calls cost.
#[test]
#[ignore = "it measures this machine"]
fn pacer_cost() {
    const SECONDS: u64 = 3;
    for (real_time, spins) in [(false, false), (false, true), (true, true)] {
        let punctuality = Punctuality { real_time, spins };
        for (flows, rate, size) in LOADS {
            let (share, sent, [p50, p99, max]) = load(punctuality, (flows, rate, size), SECONDS);
            println!(
                "{punctuality:?}, {flows} flows of {rate}/s of {size} B: sent {sent:.0}/s, {:.1} % of a processor, \
                 {:.1} us a message; late p50 {p50} ns, p99 {p99} ns, at most {max} ns",
                share * 100.0,
                share / sent * 1e6
            );
        }
    }
}

/// How many messages of a burst leave a second, by one call each and in trains, in turns.
#[test]
#[ignore = "it measures this machine"]
fn burst_cost() {
    const COUNT: u64 = 300_000;
    for turn in 0..10 {
        let has_trains = turn % 2 == 1;
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(sink.local_addr().unwrap()).unwrap();
        let common = context(0, ROWS);
        let clock = common.clock;
        let (size, gap) = (Bytes::new(128), Duration::ZERO);
        let flow = flow(UDP, WorkloadConfig::Burst { count: COUNT, size, repeat: 1, gap });
        let session = session(&flow, 60_000_000_000);
        let place = EndPlace { has_trains, ..place(true) };
        let end = SharedEnd::new(&session, &flow, &place, Receiver::default(), &common);
        end.lock().set_route(UdpRoute { socket: Arc::new(socket), unconnected: None });
        let processor = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        let begun = processor();
        while !end.lock().progress().is_done {
            end.lock().handle_timeout(clock.now());
        }
        let spent = processor() - begun;
        let sent = end.lock().progress().sent;
        println!(
            "trains {has_trains}: {sent} sent, {:.0} a second of processor, {:.2} us a message",
            sent as f64 / spent,
            spent / sent as f64 * 1e6
        );
    }
}

/// Flows, the messages a second of each, and their size.
const LOADS: [(u64, u64, u64); 10] = [
    (1, 1000, 1),
    (1, 10_000, 1),
    (1, 100_000, 1),
    (1, 10_000, 1464),
    (1, 100_000, 1464),
    // Calls.
    (64, 50, 160),
    (256, 50, 160),
    (512, 50, 160),
    (1000, 50, 160),
    (5000, 50, 160),
];

/// What the pacer takes of a processor for `flows` of `rate` messages of `size` bytes a second each, how
/// many it sent a second, and how late.
fn load(
    punctuality: Punctuality,
    (flows, rate, size): (u64, u64, u64),
    seconds: u64,
) -> (f64, f64, [u64; 3]) {
    crate::descriptors::raise_to(flows + 64);
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let duration_ns = seconds * 1_000_000_000;
    // Not before all sockets are there.
    let common = context(200_000_000, ROWS);
    let (clock, alarm) = (common.clock, Arc::clone(&common.alarm));
    let ends: Vec<_> = (0..flows)
        .map(|index| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(sink.local_addr().unwrap()).unwrap();
            socket.set_nonblocking(true).unwrap();
            let (bps, size) = (Rate::from_bps(rate * size * 8), Bytes::new(size));
            let flow = flow(UDP, WorkloadConfig::Cbr { rate: bps, size: size.into() });
            // Spread over a message's time, as calls are.
            let start_ns = 1_000_000_000 / rate * index / flows;
            let flow = FlowSpec { is_up: false, start_ns, ..flow };
            let session = session(&flow, duration_ns);
            let seed = Seed::new(index + 1);
            let place = EndPlace { is_client: false, has_trains: true, seed, ..place(true) };
            let end = Arc::new(SharedEnd::new(&session, &flow, &place, Receiver::default(), &common));
            end.lock().set_route(UdpRoute { socket: Arc::new(socket), unconnected: None });
            end
        })
        .collect();
    let stop = AtomicBool::new(false);
    let spent = std::thread::scope(|scope| {
        let pacer = scope.spawn(|| {
            pace_with(punctuality, &ends, clock, &alarm, &stop);
            let time = clock_gettime(ClockId::ThreadCPUTime);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        });
        let end = Instant::from_secs(seconds);
        clock.sleep_until(end, Duration::from_secs(seconds + 1));
        stop.store(true, Ordering::Relaxed);
        pacer.join().unwrap()
    });
    let elapsed = clock.now().since(Instant::ZERO).as_secs_f64();
    let mut lateness = talkpath_units::Histogram::new();
    let mut sent = 0;
    for end in &ends {
        let end = end.lock();
        end.add_lateness(&mut lateness);
        sent += end.progress().sent;
    }
    (spent / elapsed, sent as f64 / elapsed, talkpath_flow::lateness_ns(&lateness).unwrap())
}
