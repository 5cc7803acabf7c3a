//! A link in a cell beside closed forms.

use talkpath_units::{Bytes, Duration, Instant, Rate, Seed};

use super::*;
use crate::config::{LinkConfig, RateModel};
use crate::link::{Link, PathOutput};
use crate::queue::test_disciplines::Frame;

const NO_ERRORS: Harq = Harq {
    block_error: 0.0,
    repeat_error: 0.0,
    delay: Duration::from_millis(8),
    attempts: 4,
    recovery: Duration::from_millis(60),
};

const FAIR: Scheduler = Scheduler::ProportionalFair { window: Duration::from_millis(100) };

const ALONE: Cellular =
    Cellular { others: 0, scheduler: FAIR, tti: Duration::from_millis(1), request: None, harq: NO_ERRORS };

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn in_cell(cellular: Cellular, kbps: u64) -> LinkConfig {
    let rate = RateModel::Fixed(Rate::from_bps(1000 * kbps));
    LinkConfig { cellular: Some(cellular), ..LinkConfig::bare(rate) }
}

/// Delivers packets, each at its time in ns and of its size, over a link of `kbps`. Returns when each
/// arrived.
fn deliver(cellular: Cellular, kbps: u64, packets: impl Iterator<Item = (u64, u64)>) -> Vec<Instant> {
    let mut link = Link::new(&in_cell(cellular, kbps), Seed::new(7), "radio");
    let mut arrivals = Vec::new();
    let mut take = |link: &mut Link<Frame>, until: Instant| {
        while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
            match link.poll_output(at) {
                Some(PathOutput::Arrived(frame)) => {
                    assert_eq!(frame.number, arrivals.len() as u64, "in order, and none is lost");
                    arrivals.push(at);
                }
                None => {}
                Some(other) => panic!("{other:?}"),
            }
        }
    };
    let mut sent = 0;
    for (at, size) in packets {
        let at = Instant::from_nanos(at);
        take(&mut link, at);
        link.handle_packet(Frame { number: sent, ..Frame::of_size(size) }, at);
        sent += 1;
    }
    take(&mut link, Instant::MAX);
    assert_eq!((arrivals.len() as u64, link.held()), (sent, 0));
    arrivals
}

/// Packets of 1000 B, one each `every_us` from 1 s on.
fn paced(count: u64, every_us: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    (0..count).map(move |number| (1_000_000_000 + number * every_us * 1000, 1000))
}

fn delays(arrivals: &[Instant], packets: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
    let delay = |(arrival, (sent, _)): (&Instant, (u64, u64))| {
        arrival.since(Instant::from_nanos(sent)).as_nanos() as f64 / 1e6
    };
    arrivals.iter().zip(packets).map(delay).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn a_packet_fills_blocks_of_its_user_and_arrives_with_the_last() {
    // 8 Mb/s are 1000 B in a TTI of 1 ms.
    let arrivals = deliver(ALONE, 8000, [(0, 1000), (0, 1500), (0, 100), (10_300_000, 40)].into_iter());
    // What comes at the beginning of a TTI is too late for it.
    assert_eq!(arrivals, [ms(2), ms(4), ms(4), ms(12)]);
}

#[test]
fn a_user_who_always_has_data_gets_its_rate_under_both_schedulers() {
    for scheduler in [FAIR, Scheduler::RoundRobin { at_once: 8 }, Scheduler::RoundRobin { at_once: 1 }] {
        for others in [0, 1, 4, 9] {
            // Packets of 1000 B come at twice the rate.
            let arrivals = deliver(Cellular { others, scheduler, ..ALONE }, 4000, paced(8000, 1000));
            let (early, late) = (arrivals[1000], arrivals[7999]);
            let bps = 6999.0 * 8000.0 / late.since(early).as_secs_f64();
            assert!((bps / 4e6 - 1.0).abs() < 0.01, "{scheduler:?} beside {others}: {bps}");
        }
    }
}

#[test]
fn who_had_little_goes_first_under_the_fair_scheduler_and_waits_its_turn_under_the_other() {
    let packets = paced(500, 20_370);
    let of = |scheduler| {
        let arrivals = deliver(Cellular { others: 9, scheduler, ..ALONE }, 4000, packets.clone());
        mean(&delays(&arrivals, packets.clone()))
    };
    // Half a TTI until the next begins, and the block.
    assert!((of(FAIR) - 1.5).abs() < 0.05, "{}", of(FAIR));
    // The nine others take turns meanwhile, and 0 to 8 of them come first.
    let turns = of(Scheduler::RoundRobin { at_once: 1 });
    assert!((turns - 5.5).abs() < 0.3, "{turns}");
}

#[test]
fn a_request_waits_for_its_occasion_and_its_grant() {
    for period in [1, 10, 40] {
        let request = GrantRequest { period: Duration::from_millis(period), grant: Duration::from_millis(8) };
        let packets = paced(4000, 91_370);
        let arrivals = deliver(Cellular { request: Some(request), ..ALONE }, 8000, packets.clone());
        let delays = delays(&arrivals, packets);
        let (least, most) =
            delays.iter().fold((f64::MAX, 0.0_f64), |(least, most), at| (least.min(*at), most.max(*at)));
        // The wait is uniform over the period; then the grant, and the block.
        let period = period as f64;
        assert!((mean(&delays) - (period / 2.0 + 9.0)).abs() < period / 50.0, "{}", mean(&delays));
        assert!(least >= 9.0 && least < 9.0 + period / 50.0, "{least}");
        assert!(most <= 9.0 + period && most > 9.0 + period * 0.98, "{most}");
    }
}

#[test]
fn a_queue_that_never_empties_asks_once() {
    let request = GrantRequest { period: Duration::from_millis(80), grant: Duration::from_millis(8) };
    let cell = Cellular { request: Some(request), ..ALONE };
    let arrivals = deliver(cell, 8000, paced(1000, 990));
    for pair in arrivals[10..].windows(2) {
        assert_eq!(pair[1].since(pair[0]), Duration::from_millis(1));
    }
}

#[test]
fn blocks_are_late_by_the_repetitions_that_their_errors_need() {
    let harq = Harq { block_error: 0.2, repeat_error: 0.3, attempts: 3, ..NO_ERRORS };
    let packets = paced(40_000, 100_000);
    let arrivals = deliver(Cellular { harq, ..ALONE }, 8000, packets.clone());
    let mut counts = [0_u32; 64];
    for delay in delays(&arrivals, packets) {
        // A packet comes as a TTI begins, so its block is read 2 ms later.
        counts[((delay - 2.0) / 8.0).round() as usize] += 1;
    }
    // Read at first, after one repetition, after two; and after RLC's 60 ms, which are 7.5 repetitions, once
    // more from the beginning.
    let given_up = 0.2 * 0.3 * 0.3;
    let expected = [0.8, 0.2 * 0.7, 0.2 * 0.3 * 0.7];
    for (count, share) in counts.iter().zip(expected) {
        let found = f64::from(*count) / 40_000.0;
        let error = (share * (1.0 - share) / 40_000.0_f64).sqrt();
        assert!((found - share).abs() < 4.0 * error, "{found} beside {share}");
    }
    let late = f64::from(counts[9..].iter().sum::<u32>()) / 40_000.0;
    assert!((late - given_up).abs() < 4.0 * (given_up / 40_000.0_f64).sqrt(), "{late} beside {given_up}");
}

#[test]
fn repetitions_take_the_share_of_time_that_they_need() {
    let harq = Harq { block_error: 0.25, repeat_error: 0.1, attempts: 4, ..NO_ERRORS };
    // The mean number of transmissions of a block.
    let sent = 1.0 + 0.25 * (1.0 + 0.1 * (1.0 + 0.1));
    for scheduler in [FAIR, Scheduler::RoundRobin { at_once: 8 }] {
        for others in [0, 4] {
            let arrivals = deliver(Cellular { others, scheduler, harq, ..ALONE }, 4000, paced(16_000, 1000));
            let (early, late) = (arrivals[1000], arrivals[15_999]);
            let bps = 14_999.0 * 8000.0 / late.since(early).as_secs_f64();
            assert!((bps * sent / 4e6 - 1.0).abs() < 0.03, "{scheduler:?} beside {others}: {bps}");
        }
    }
}

#[test]
fn packets_behind_a_block_that_is_sent_again_wait_for_it() {
    let harq = Harq { block_error: 0.1, ..NO_ERRORS };
    let packets = paced(20_000, 2000);
    let arrivals = deliver(Cellular { harq, ..ALONE }, 8000, packets.clone());
    let delays = delays(&arrivals, packets);
    // A packet each 2 ms is late if its own block is repeated, or one of those 2, 4 and 6 ms before; and if
    // that of 8 ms before is, whose repetition takes the TTI.
    let late = delays.iter().filter(|delay| **delay > 2.5).count() as f64 / 20_000.0;
    let expected = 1.0 - 0.9_f64.powi(5);
    assert!((late - expected).abs() < 0.02, "{late} beside {expected}");
    assert!(delays.iter().all(|delay| *delay < 12.0));
}

#[test]
fn a_rate_that_changes_holds_from_the_next_block_on() {
    let mut clock = CellClock::new(&ALONE, Rate::from_bps(8_000_000), Seed::new(1), "radio");
    assert_eq!(clock.serve(Bytes::new(1000), ms(0), true), ms(1));
    clock.set_rate(Rate::from_bps(4_000_000));
    assert_eq!(clock.serve(Bytes::new(1000), ms(0), false), ms(3));
    assert_eq!(clock.complete(), ms(4));
    // A pause of a year costs no more than one of seconds.
    let year = Instant::from_secs(365 * 86_400);
    assert_eq!(clock.serve(Bytes::new(500), year, true), year.saturating_add(Duration::from_millis(1)));
}
