//! BBR alone against a bottleneck in a few lines: paced departures, a queue, an acknowledgement for each
//! segment.

use std::collections::VecDeque;

use talkpath_units::{Packets, Seed};

use super::*;
use crate::cc::Counting;

/// Segments of 1000 B: the bottleneck sends one each `service_us`, after which a round trip of `rtt_us`
/// passes.
struct Path {
    bbr: Bbr,
    service_us: u64,
    rtt_us: u64,
    now_us: u64,
    /// What is unacknowledged: its end, when its acknowledgement comes.
    flight: VecDeque<(u64, u64)>,
    sent: u64,
    next_departure_us: u64,
    bottleneck_free_us: u64,
    /// Each segment whose number is a multiple of this is dropped. Its loss is reported when it would have
    /// been acknowledged.
    drop_each: Option<u64>,
    /// Segments that were marked as lost.
    lost: u64,
    /// The application has no more than this in flight.
    max_flight: u64,
}

impl Path {
    fn new(service_us: u64, rtt_us: u64) -> Self {
        let window = Window::new(Counting::Packets, Packets::new(10), None);
        let mut bbr = Bbr::new(window, Seed::new(1).stream("test"));
        let rtt = Some(Duration::from_micros(rtt_us));
        bbr.begin(InitialState { now: Instant::ZERO, smss: 1000, srtt: rtt, min_rtt: rtt });
        Self {
            bbr,
            service_us,
            rtt_us,
            now_us: 0,
            flight: VecDeque::new(),
            sent: 0,
            next_departure_us: 0,
            bottleneck_free_us: 0,
            drop_each: None,
            lost: 0,
            max_flight: u64::MAX,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    fn send(&mut self) {
        self.sent += 1;
        self.bbr.on_sent(SentSegment { now: self.now(), end: self.sent, is_alone: self.flight.is_empty() });
        self.bottleneck_free_us = self.bottleneck_free_us.max(self.now_us) + self.service_us;
        self.flight.push_back((self.sent, self.bottleneck_free_us + self.rtt_us));
        self.next_departure_us =
            self.next_departure_us.max(self.now_us) + 1000 * 1_000_000 / self.bbr.pacing_rate.max(1);
    }

    fn acknowledge(&mut self) {
        let prior = self.flight.len() as u64;
        let Some((end, _)) = self.flight.pop_front() else { return };
        let lost = self.drop_each.is_some_and(|each| end.is_multiple_of(each));
        self.lost += u64::from(lost);
        let rtt = Duration::from_micros(self.now_us - self.departed(end));
        let feedback = Feedback {
            now: self.now(),
            delivered: u64::from(!lost),
            losses: u64::from(lost),
            total_losses: self.lost,
            newest: (!lost).then_some(end),
            snd_una: if lost { end - 1 } else { end },
            prior_in_flight: prior,
            in_flight: self.flight.len() as u64,
            rtt: (!lost).then_some(rtt),
            is_ack_delayed: false,
            min_rtt: Duration::from_micros(self.rtt_us),
            srtt: Some(rtt),
            phase: Phase::Open,
            departs: Instant::from_micros(self.next_departure_us),
        };
        self.bbr.on_feedback(&feedback);
    }

    /// When the segment that ends at `end` left: the front one's departure, kept in the rate's flight.
    fn departed(&self, end: u64) -> u64 {
        self.bbr.rate.sent_at(end).unwrap_or(self.now_us)
    }

    /// Runs for `span_us`, or until `until` holds after an acknowledgement.
    fn run(&mut self, span_us: u64, mut until: impl FnMut(&Bbr, usize) -> bool) -> bool {
        let end = self.now_us + span_us;
        loop {
            let may_send = (self.flight.len() as u64) < self.bbr.window.cwnd().min(self.max_flight);
            let departure = may_send.then_some(self.next_departure_us.max(self.now_us));
            let arrival = self.flight.front().map(|&(_, at)| at);
            let next = departure.into_iter().chain(arrival).min().unwrap_or(end);
            if next >= end {
                self.now_us = end;
                return false;
            }
            self.now_us = next;
            if arrival == Some(next) {
                self.acknowledge();
                if until(&self.bbr, self.flight.len()) {
                    return true;
                }
            } else {
                self.send();
            }
        }
    }
}

/// An acknowledgement of one segment of 30 in flight, which finds `losses`.
fn feedback(path: &Path, phase: Phase, losses: u64) -> Feedback {
    Feedback {
        now: path.now(),
        delivered: 1,
        losses,
        total_losses: losses,
        newest: None,
        snd_una: 0,
        prior_in_flight: 30,
        in_flight: 29 - losses,
        rtt: None,
        is_ack_delayed: false,
        min_rtt: Duration::from_millis(40),
        srtt: None,
        phase,
        departs: path.now(),
    }
}

/// 8 Mbit/s of payload and 40 ms: a segment a millisecond, 40 in flight and one being sent.
fn path() -> Path {
    Path::new(1000, 40_000)
}

/// Draft §4.3.2: the rate doubles each round and startup ends three rounds after it stopped growing; then the
/// queue goes.
#[test]
fn startup_finds_the_bottlenecks_rate_and_drains_its_queue() {
    let mut path = path();
    assert!(path.run(2_000_000, |bbr, _| bbr.mode == Mode::Drain));
    let bw = path.bbr.bandwidth.get();
    assert!(bw.abs_diff(BW_UNIT / 1000) * 100 < BW_UNIT / 1000, "{bw}");
    // From 10 to 2 BDP takes log2(80 / 10) rounds of about 60 ms; then three more.
    assert!(path.now_us < 700_000, "{}", path.now_us);
    assert!(path.run(1_000_000, |bbr, _| bbr.mode == Mode::ProbeBw));
    // At most a BDP and the bursts' budget.
    assert!(path.flight.len() as u64 <= 41 + 3 * 2 + 2, "{}", path.flight.len());
}

/// Draft §4.3.4: the cycle raises the rate by a quarter, lowers it by as much, and cruises; what is in flight
/// stays below twice a BDP and the bursts' budget, and the bottleneck is never idle.
#[test]
fn probing_cycles_around_the_bottlenecks_rate() {
    let mut path = path();
    path.run(2_000_000, |_, _| false);
    let (before, mut gains, mut largest) = (path.bbr.rate.delivered(), Vec::new(), 0);
    path.run(2_000_000, |bbr, in_flight| {
        if gains.last() != Some(&bbr.pacing_gain) {
            gains.push(bbr.pacing_gain);
        }
        largest = largest.max(in_flight);
        false
    });
    assert!(gains.windows(3).any(|gains| gains == [320, 192, 256]), "{gains:?}");
    let delivered = path.bbr.rate.delivered() - before;
    assert!((1980..=2000).contains(&delivered), "{delivered}");
    assert!(largest <= 2 * 41 + 8, "{largest}");
    let rate = path.bbr.bottleneck_rate().as_bps();
    assert!(rate.abs_diff(8_000_000) < 80_000, "{rate}");
}

/// Draft §4.3.5: ten seconds without a shorter round trip, then four segments for 200 ms.
#[test]
fn every_ten_seconds_four_segments_look_for_a_shorter_round_trip() {
    let mut path = path();
    assert!(path.run(15_000_000, |bbr, _| bbr.mode == Mode::ProbeRtt));
    assert!(path.run(1_000_000, |_, in_flight| in_flight <= 4));
    let began = path.now_us;
    assert!(path.run(2_000_000, |bbr, _| bbr.mode != Mode::ProbeRtt));
    let took = path.now_us - began;
    assert!((200_000..=300_000).contains(&took), "{took}");
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    assert!(path.bbr.min_rtt.unwrap() <= Duration::from_micros(42_000), "{:?}", path.bbr.min_rtt);
    assert!(path.bbr.window.cwnd() > 60, "{}", path.bbr.window.cwnd());
}

/// bbr_update_min_rtt: what takes as long as the shortest round trip does not put the search off.
#[test]
fn a_path_of_constant_delay_is_looked_at_every_ten_seconds_too() {
    let mut path = path();
    path.max_flight = 1;
    for _ in 0..3 {
        assert!(path.run(11_000_000, |bbr, _| bbr.mode == Mode::ProbeRtt), "at {} us", path.now_us);
        assert!(path.run(1_000_000, |bbr, _| bbr.mode != Mode::ProbeRtt));
    }
    assert_eq!(path.bbr.min_rtt, Some(Duration::from_micros(41_000)));
}

/// bbr_update_min_rtt counts in whole microseconds.
#[test]
fn a_part_of_a_microsecond_makes_no_round_trip_shorter() {
    let mut path = path();
    let samples = [(10, 39_000_999, 10), (20, 39_000_001, 10), (30, 38_999_999, 30)];
    for (now_us, rtt_ns, min_rtt_at_us) in samples {
        path.now_us = now_us;
        let rtt = Some(Duration::from_nanos(rtt_ns));
        let news = Feedback { rtt, ..feedback(&path, Phase::Open, 0) };
        path.bbr.on_feedback(&news);
        assert_eq!(path.bbr.min_rtt_at, Instant::from_micros(min_rtt_at_us));
    }
    assert_eq!(path.bbr.min_rtt, Some(Duration::from_micros(38_999)));
}

/// bbr_lt_bw_sampling takes tp->lost, to which timers add between two acknowledgements.
#[test]
fn losses_that_a_timer_found_count_too() {
    let mut path = path();
    path.run(200_000, |_, _| false);
    path.lost += 3;
    path.run(100_000, |_, _| false);
    assert_eq!(path.bbr.totals().lost, 3);
    path.bbr.on_rto(true, 7);
    assert_eq!(path.bbr.totals().lost, 7);
}

/// bbr_reset_probe_bw_mode: never in the phase that drains.
#[test]
fn cycles_begin_anywhere_but_in_the_draining_phase() {
    let mut path = path();
    let mut begun = [0; 8];
    for _ in 0..700 {
        path.bbr.enter_probe_bw();
        begun[path.bbr.cycle.index] += 1;
    }
    assert_eq!(begun[1], 0);
    assert!(
        begun.iter().enumerate().all(|(index, &count)| index == 1 || (60..=140).contains(&count)),
        "{begun:?}"
    );
}

/// The rate follows deliveries, not losses: with one of fifty lost it stays.
#[test]
fn scattered_losses_leave_the_rate() {
    let mut path = path();
    path.drop_each = Some(50);
    path.run(4_000_000, |_, _| false);
    let rate = path.bbr.bottleneck_rate().as_bps();
    assert!((7_500_000..=8_100_000).contains(&rate), "{rate}");
    assert_eq!(path.bbr.policer.rate(), None);
}

/// bbr_set_cwnd_to_recover_or_restore.
#[test]
fn recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
    let mut path = path();
    path.run(2_000_000, |_, _| false);
    let before = path.bbr.window.cwnd();
    path.bbr.on_loss();
    let news = feedback(&path, Phase::Recovery, 5);
    path.bbr.on_feedback(&news);
    assert_eq!(path.bbr.window.cwnd(), 25);
    let news = feedback(&path, Phase::Open, 0);
    path.bbr.on_feedback(&news);
    assert!(path.bbr.window.cwnd() >= before, "{} of {before}", path.bbr.window.cwnd());
}

/// bbr_init_pacing_rate_from_rtt: 2.89 windows a round trip, less one percent.
#[test]
fn pacing_begins_at_the_handshakes_round_trip() {
    let path = path();
    // 10 segments of 1000 B in 40 ms, by 739/256 and 99 %.
    let rate = path.bbr.pacing_rate().as_bps();
    assert!(rate.abs_diff(8 * 714_463) < 1000, "{rate}");
}
