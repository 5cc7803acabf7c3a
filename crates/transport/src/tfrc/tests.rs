//! Sender and receiver against numbers worked by hand from RFC 5348, RFC 3448 and RFC 4828.

use talkpath_units::Instant;

use super::*;

const RTT: Duration = Duration::from_millis(100);
const VOICE: Bytes = Bytes::new(160);

fn config(revision: Revision, variant: Variant, segment_size: Option<u64>) -> TfrcConfig {
    TfrcConfig { segment_size: segment_size.map(Bytes::new), ..TfrcConfig::new(revision, variant) }
}

fn standard(revision: Revision) -> Sender {
    Sender::new(config(revision, Variant::Standard, None))
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Feedback at `ms` on data sent a round trip before.
fn feedback(x_recv: f64, p: f64, ms: u64) -> Feedback {
    let sent = at(ms - RTT.as_millis());
    Feedback { rtt: Some(RTT), sent, x_recv, p, new_loss: false, receiver_limited: false }
}

/// Bytes per second, rounded down to an eighth.
fn rate(sender: &Sender) -> u64 {
    sender.rate().as_bps() / 8
}

/// Sends all that may leave at `ms`; returns how many packets that was.
fn use_up(sender: &mut Sender, ms: u64) -> usize {
    let mut count = 0;
    while sender.next_send(at(ms)) <= at(ms) {
        sender.on_sent(VOICE, at(ms));
        count += 1;
    }
    count
}

/// A sender after its first feedback, at 1100 ms.
fn fed_back(revision: Revision, size: Bytes) -> Sender {
    let mut sender = standard(revision);
    sender.on_sent(size, at(1000));
    sender.on_feedback(feedback(0.0, 0.0, 1100), at(1100));
    sender
}

/// RFC 5348 §4.2, RFC 3448 §4.2: s bytes per second, halved when two seconds pass without feedback, down to s
/// / 64 s.
#[test]
fn without_feedback_a_packet_a_second_is_halved_down_to_one_in_64_seconds() {
    for revision in [Revision::Rfc5348, Revision::Rfc3448] {
        let mut sender = standard(revision);
        assert_eq!(sender.next_send(at(0)), at(0));
        sender.on_sent(VOICE, at(0));
        assert_eq!((rate(&sender), sender.next_send(at(0))), (160, at(1000)));
        assert_eq!(sender.poll_timeout(), Some(at(2000)));
        sender.on_sent(VOICE, at(1000));
        sender.on_timeout(at(2000));
        assert_eq!(rate(&sender), 80);
        assert_eq!(sender.poll_timeout(), Some(at(6000)), "2 s / X = 4 s");
        let mut now = 6000;
        for _ in 0..10 {
            sender.on_sent(VOICE, at(now - 1));
            sender.on_timeout(at(now));
            now += 200_000;
        }
        assert_eq!((rate(&sender), 160 / 64), (2, 2));
    }
}

/// RFC 5348 §4.2: min(4 s, max(2 s, 4380)) / R: 640 B at 160 B, 4380 B at 1460 B, 6000 B at 3000 B.
/// RFC 3448 §4.3: s / R.
#[test]
fn the_first_feedback_sets_the_initial_rate() {
    for (size, rfc5348) in [(160, 6400), (1460, 43_800), (3000, 60_000)] {
        let size = Bytes::new(size);
        assert_eq!(rate(&fed_back(Revision::Rfc5348, size)), rfc5348);
        assert_eq!(rate(&fed_back(Revision::Rfc3448, size)), size.get() * 10);
    }
    let mut sender = standard(Revision::Rfc5348);
    sender.set_rtt(RTT, at(900));
    sender.on_sent(VOICE, at(1000));
    assert_eq!(rate(&sender), 6400, "the handshake's round trip serves as well");
    assert_eq!(sender.next_send(at(1000)), at(1025));
}

/// Slow start (RFC 5348 §4.3 step 4): doubled once a round trip, under twice the receive rate once the
/// initial infinity is two round trips old.
#[test]
fn slow_start_doubles_each_round_trip_under_twice_the_receive_rate() {
    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    use_up(&mut sender, 1110);
    sender.on_feedback(feedback(6000.0, 0.0, 1210), at(1210));
    assert_eq!(rate(&sender), 12_800);
    use_up(&mut sender, 1220);
    sender.on_feedback(feedback(6000.0, 0.0, 1250), at(1250));
    assert_eq!(rate(&sender), 12_800, "not twice in a round trip");
    sender.on_feedback(feedback(7000.0, 0.0, 1320), at(1320));
    assert_eq!(rate(&sender), 14_000, "twice 7000");

    let mut sender = fed_back(Revision::Rfc3448, VOICE);
    sender.on_feedback(feedback(1500.0, 0.0, 1200), at(1200));
    assert_eq!(rate(&sender), 3000, "RFC 3448 bounds it from the first: 2 x 1500 < 2 x 1600");
}

/// RFC 5348 §3.1: with p = 1 % and R = 100 ms, 160 B make 160 / (0.1 x 0.0890217) = 17,973 B/s.
#[test]
fn after_a_loss_the_equation_gives_the_rate() {
    for revision in [Revision::Rfc5348, Revision::Rfc3448] {
        let mut sender = fed_back(revision, VOICE);
        use_up(&mut sender, 1110);
        sender.on_feedback(feedback(20_000.0, 0.01, 1210), at(1210));
        assert_eq!(rate(&sender), 17_973);
    }
    let mut sender = fed_back(Revision::Rfc3448, VOICE);
    sender.on_feedback(feedback(2000.0, 0.01, 1200), at(1200));
    assert_eq!(rate(&sender), 4000, "twice the receive rate");
}

/// RFC 4828 §3 and RFC 5622 §5: 1460 / (0.1 x 0.0890217) x 160 / (160 + 36) = 133,881 B/s; but 10 ms between
/// packets.
#[test]
fn small_packets_are_charged_headers_and_kept_ten_milliseconds_apart() {
    let mut sender = Sender::new(config(Revision::Rfc5348, Variant::SmallPackets, None));
    sender.on_sent(VOICE, at(1000));
    sender.on_feedback(feedback(0.0, 0.0, 1100), at(1100));
    assert_eq!(rate(&sender), 6400, "slow start counts packets of their own size");
    use_up(&mut sender, 1150);
    sender.on_feedback(feedback(90_000.0, 0.01, 1300), at(1300));
    assert_eq!(rate(&sender), 133_881);
    sender.on_sent(VOICE, at(1300));
    assert_eq!(sender.next_send(at(1300)), at(1310));
}

/// RFC 5348 §4.3 step 4: while the application sends little, its low receive rate does not take the limit
/// down; RFC 3448's does.
#[test]
fn a_data_limited_interval_keeps_the_larger_receive_rate() {
    let after = |revision| {
        let mut sender = fed_back(revision, VOICE);
        sender.on_feedback(feedback(16_000.0, 0.001, 1200), at(1200));
        sender.on_feedback(feedback(16_000.0, 0.001, 1400), at(1400));
        for ms in [1500, 1600, 1700] {
            sender.on_feedback(feedback(1000.0, 0.001, ms), at(ms));
        }
        sender
    };
    assert_eq!(rate(&after(Revision::Rfc5348)), 32_000);
    assert_eq!(rate(&after(Revision::Rfc3448)), 2000);

    // A loss in such an interval: max(16,000 / 2, 0.85 x 1000), and not twice that.
    let mut sender = after(Revision::Rfc5348);
    sender.on_feedback(Feedback { new_loss: true, ..feedback(1000.0, 0.001, 1800) }, at(1800));
    assert_eq!(rate(&sender), 8000);
}

/// RFC 4342 §5.2, RFC 4340 §11.6: the report of a receiver that cannot keep up bounds the rate by itself,
/// until the next feedback.
#[test]
fn a_receiver_that_cannot_keep_up_bounds_the_rate_until_the_next_feedback() {
    let limited = |x_recv, p, ms| Feedback { receiver_limited: true, ..feedback(x_recv, p, ms) };
    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    use_up(&mut sender, 1110);
    sender.on_feedback(feedback(20_000.0, 0.01, 1210), at(1210));
    assert_eq!(rate(&sender), 17_973);
    use_up(&mut sender, 1220);
    sender.on_feedback(limited(4000.0, 0.01, 1310), at(1310));
    assert_eq!(rate(&sender), 8000, "20,000 B/s are not two round trips old");
    use_up(&mut sender, 1320);
    sender.on_feedback(feedback(8000.0, 0.01, 1410), at(1410));
    assert_eq!(rate(&sender), 16_000);

    // While the application sends little, too. A loss in such an interval: max(16,000 / 2, 0.85 x 10,000),
    // which is below 2 x 10,000.
    let cases = [(false, 1000.0, 2000), (true, 1000.0, 2000), (true, 10_000.0, 8500)];
    for (new_loss, x_recv, expected) in cases {
        let mut sender = fed_back(Revision::Rfc5348, VOICE);
        sender.on_feedback(feedback(16_000.0, 0.001, 1200), at(1200));
        sender.on_feedback(feedback(16_000.0, 0.001, 1400), at(1400));
        sender.on_feedback(Feedback { new_loss, ..limited(x_recv, 0.001, 1500) }, at(1500));
        assert_eq!(rate(&sender), expected);
    }

    // RFC 5348 §6.3: the first report is zero, and no measurement.
    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    sender.on_feedback(limited(0.0, 0.01, 1200), at(1200));
    assert_eq!(rate(&sender), 17_973);
}

/// RFC 5348 §4.4.
#[test]
fn a_missing_feedback_halves_the_rate_in_every_phase() {
    let expire = |sender: &mut Sender, now: u64| {
        sender.on_sent(VOICE, at(now));
        let deadline = sender.poll_timeout().expect("the timer runs");
        sender.on_timeout(deadline);
    };
    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    assert_eq!(
        sender.poll_timeout(),
        Some(at(3100)),
        "2 s / X, X being a packet a second when the feedback came"
    );
    expire(&mut sender, 1200);
    assert_eq!(rate(&sender), 3200, "slow start");

    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    sender.on_feedback(feedback(20_000.0, 0.01, 1200), at(1200));
    sender.on_feedback(feedback(20_000.0, 0.01, 1500), at(1500));
    assert_eq!(sender.poll_timeout(), Some(at(1900)), "4 R");
    expire(&mut sender, 1600);
    assert_eq!((rate(&sender), sender.timeouts()), (17_973 / 2, 1), "the equation was the limit");

    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    sender.on_feedback(feedback(4000.0, 0.01, 1200), at(1200));
    sender.on_feedback(feedback(4000.0, 0.01, 1500), at(1500));
    assert_eq!(rate(&sender), 8000);
    expire(&mut sender, 1600);
    assert_eq!(rate(&sender), 4000, "the receive rate was the limit");
}

/// RFC 5348 §4.4 with RFC 4342 §5.1: idle time does not take the rate below the initial one.
#[test]
fn idle_time_leaves_the_initial_rate() {
    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    sender.on_sent(VOICE, at(1190));
    sender.on_feedback(feedback(16_000.0, 0.0, 1300), at(1300));
    sender.on_feedback(feedback(16_000.0, 0.0, 1500), at(1500));
    assert_eq!(rate(&sender), 25_600);
    let mut expiries = Vec::new();
    while let Some(deadline) = sender.poll_timeout() {
        sender.on_timeout(deadline);
        expiries.push(deadline);
    }
    assert_eq!(rate(&sender), 6400);
    // Each 4 R after the one before: 25,600 becomes 12,800 and then 6400 B/s; the third finds nothing to
    // take, nor would any after it.
    assert_eq!(expiries, [at(1900), at(2300), at(2700)]);
    assert_eq!(sender.timeouts(), 2);
    // Which is no reason for another beat: 2700 + 5 x 400.
    sender.on_sent(VOICE, at(4690));
    assert_eq!(sender.poll_timeout(), Some(at(4700)));
}

/// RFC 5348 §4.3 takes max(4 R, 2 s / X); a path without delay must not make that nothing.
#[test]
fn a_round_trip_of_nothing_counts_as_a_hundred_microseconds() {
    for revision in [Revision::Rfc5348, Revision::Rfc3448] {
        let mut sender = standard(revision);
        sender.on_sent(VOICE, at(1000));
        sender.on_feedback(Feedback { rtt: Some(Duration::ZERO), ..feedback(0.0, 0.0, 1000) }, at(1000));
        assert_eq!(sender.rtt(), Some(Duration::from_micros(100)));
        let mut expiries = 0;
        while let Some(deadline) = sender.poll_timeout() {
            sender.on_timeout(deadline);
            expiries += 1;
        }
        assert!(expiries <= 2, "{expiries} while idle at the initial rate");
    }
}

/// RFC 5348 §4.5 by hand: R_sample goes from 100 to 200 ms, R_sqmean = 0.9 x 0.316228 + 0.1 x 0.447214 =
/// 0.329326, and X_inst = X x 0.329326 / 0.447214 = 0.736397 X. R = 110 ms, so X = 160 / (0.11 x 0.0890217) =
/// 16,339 B/s.
#[test]
fn a_growing_round_trip_slows_the_sender_at_once() {
    let mut sender = fed_back(Revision::Rfc5348, VOICE);
    let slow = Feedback { rtt: Some(RTT * 2), ..feedback(20_000.0, 0.01, 1300) };
    sender.on_feedback(slow, at(1300));
    assert_eq!(rate(&sender), 12_032, "0.736397 x 16,339.3");
    assert_eq!(sender.rtt(), Some(Duration::from_millis(110)));

    let own = config(Revision::Rfc5348, Variant::Standard, None);
    let mut sender = Sender::new(TfrcConfig { oscillation_prevention: false, ..own });
    sender.on_sent(VOICE, at(1000));
    sender.on_feedback(feedback(0.0, 0.0, 1100), at(1100));
    sender.on_feedback(slow, at(1300));
    assert_eq!(rate(&sender), 16_339, "where it is off, X itself");
}

/// RFC 5348 §4.6: after a pause a round trip's worth may leave at once; RFC 3448 gives no credit.
#[test]
fn credit_after_a_pause_is_a_round_trip_at_most() {
    let burst = |revision| {
        let mut sender = fed_back(revision, VOICE);
        use_up(&mut sender, 1110);
        sender.on_feedback(feedback(20_000.0, 0.01, 1210), at(1210));
        use_up(&mut sender, 1220);
        // A packet each 160 / 17,973 = 8.9 ms: 100 ms hold 11 of them, and one is due.
        use_up(&mut sender, 1900)
    };
    assert_eq!(burst(Revision::Rfc5348), 12);
    assert_eq!(burst(Revision::Rfc3448), 1);
}

fn arrive(receiver: &mut Receiver, seq: u64, counter: u8, ms: u64) -> bool {
    receiver.on_packet(Arrival { seq, counter: Some(counter & 15), ndp: 0, marked: false }, VOICE, at(ms))
}

/// RFC 5348 §6.3 and RFC 4342 §10.3: at the first packet, and whenever the counter has gone on by four.
#[test]
fn feedback_comes_with_the_first_packet_and_once_a_round_trip() {
    let mut receiver = Receiver::new(config(Revision::Rfc5348, Variant::Standard, None), 0);
    let mut sent = Vec::new();
    for n in 0..40_u64 {
        // A packet each 10 ms, 100 ms a round trip: a quarter each 2.5 packets.
        if arrive(&mut receiver, n + 1, (n * 2 / 5) as u8, n * 10) {
            sent.push((n * 10, receiver.report(at(n * 10)).x_recv));
        }
    }
    assert_eq!(sent, [(0, 0.0), (100, 16_000.0), (200, 16_000.0), (300, 16_000.0)]);
    assert_eq!(receiver.rtt(), Duration::from_millis(100));
}

/// RFC 5348 §6.1 and §6.3.1: a loss is reported at once, and the interval before it made up so that the
/// equation gives the receive rate: with 16,000 B/s, 160 B and 100 ms, f(p) = 0.1, which p = 0.0124 gives:
/// 0.09092 + 0.01032 x (1 + 32 p^2).
#[test]
fn the_first_loss_seeds_the_history_with_the_rate_reached() {
    let mut receiver = Receiver::new(config(Revision::Rfc5348, Variant::Standard, None), 0);
    for n in (0..60_u64).filter(|n| *n != 52) {
        let due = arrive(&mut receiver, n + 1, (n * 2 / 5) as u8, n * 10);
        assert!(due == (n % 10 == 0 || n == 55), "{n}");
        if due {
            let _ = receiver.report(at(n * 10));
        }
    }
    let intervals: Vec<_> = receiver.history().intervals().copied().collect();
    assert_eq!((intervals[0].first, intervals[0].lossy, intervals[0].data), (53, 1, 8));
    let p = 1.0 / f64::from(intervals[1].data);
    let target = throughput(160.0, 0.1, p);
    assert!((target / 16_000.0 - 1.0).abs() < 0.05, "{} packets: {target}", intervals[1].data);
}

/// RFC 5348 §6.3.1: the very first packet lost makes half a packet a round trip; f(p) = 2.
#[test]
fn losing_the_first_packet_allows_half_a_packet_a_round_trip() {
    let mut receiver = Receiver::new(config(Revision::Rfc5348, Variant::Standard, None), 0);
    receiver.set_rtt(RTT);
    for n in 2..=4 {
        let _ = arrive(&mut receiver, n, 0, n * 20);
        let _ = receiver.report(at(n * 20));
    }
    let seeded = receiver.history().intervals().last().expect("there is a first").data;
    // p = 0.25: 0.408 + 12 x 0.306 x 0.25 x 3 = 3.16 > 2 > p = 1/5: 0.365 + 12 x 0.274 x 0.2 x 2.28 = 1.86.
    assert_eq!(seeded, 5);
}

/// Both ends over a path of `one_way`, a voice frame each 20 ms for 60 s. Returns the packets sent in the
/// last 20 s.
fn call(config: TfrcConfig, one_way: Duration) -> usize {
    whole_call(config, one_way).0
}

/// The same, and how often the nofeedback timer took the rate down.
fn whole_call(config: TfrcConfig, one_way: Duration) -> (usize, u64) {
    let (mut sender, mut receiver) = (Sender::new(config), Receiver::new(config, 0));
    let mut counter = WindowCounter::default();
    let (mut wire, mut back) = (std::collections::VecDeque::new(), std::collections::VecDeque::new());
    let mut departures = Vec::new();
    let mut seq = 0;
    for now in (0..600_000).map(|tenths| Instant::from_micros(100 * tenths)) {
        let due = now.as_nanos() / 20_000_000 + 1;
        while seq < due && sender.next_send(now) <= now {
            seq += 1;
            let quarter = counter.on_send(sender.rtt().unwrap_or(DEFAULT_RTT), now);
            wire.push_back((now + one_way, seq, quarter, now));
            sender.on_sent(VOICE, now);
            departures.push(now);
        }
        while wire.front().is_some_and(|(arrives, ..)| *arrives <= now) {
            let Some((_, seq, quarter, sent)) = wire.pop_front() else { break };
            if arrive(&mut receiver, seq, quarter, now.as_nanos() / 1_000_000) {
                back.push_back((now + one_way, receiver.report(now).x_recv, quarter, sent));
            }
        }
        while back.front().is_some_and(|(arrives, ..)| *arrives <= now) {
            let Some((_, x_recv, quarter, sent)) = back.pop_front() else { break };
            counter.on_acknowledged(quarter, now);
            let rtt = Some(now.since(sent));
            let feedback = Feedback { rtt, sent, x_recv, p: 0.0, new_loss: false, receiver_limited: false };
            sender.on_feedback(feedback, now);
        }
        if sender.poll_timeout().is_some_and(|deadline| deadline <= now) {
            sender.on_timeout(now);
        }
    }
    (departures.iter().filter(|left| **left >= at(40_000)).count(), sender.timeouts())
}

/// RFC 4342 §5: at least four round trips or twice the interval between data packets. By four round trips
/// alone the timer would run out between two frames wherever those are less than 20 ms, and now and then just
/// after one left, before its feedback: the unnecessary halving of RFC 4342 §10.3.
#[test]
fn a_call_over_a_short_path_waits_for_the_feedback_of_its_next_frame() {
    for revision in [Revision::Rfc5348, Revision::Rfc3448] {
        for one_way in [100, 300, 1000, 2200, 2500, 5000, 9000].map(Duration::from_micros) {
            let (packets, timeouts) = whole_call(config(revision, Variant::Standard, None), one_way);
            // One before the application's interval is known: at RFC 3448's start a backlog leaves at the
            // rate's.
            assert!(packets == 1000 && timeouts <= 1, "{revision:?}, {one_way}: {timeouts}");
        }
    }
}

/// The timer is not blunted by that: two frames without an answer halve the rate, and a pause of the
/// application's leaves the timer at two seconds (RFC 5348 §4.2).
#[test]
fn a_call_that_hears_nothing_any_more_slows_down_with_its_second_frame() {
    let mut sender = Sender::new(config(Revision::Rfc5348, Variant::Standard, None));
    let short = |ms| Feedback { rtt: Some(Duration::from_millis(1)), ..feedback(8000.0, 0.0, ms) };
    for frame in 0..50 {
        sender.on_sent(VOICE, at(1000 + 20 * frame));
        sender.on_feedback(short(1001 + 20 * frame), at(1001 + 20 * frame));
    }
    sender.on_sent(VOICE, at(2000));
    sender.on_sent(VOICE, at(2020));
    assert_eq!(sender.poll_timeout(), Some(at(1981 + 40)));
    sender.on_timeout(at(2021));
    assert_eq!(sender.timeouts(), 1);
    sender.on_sent(VOICE, at(9000));
    sender.on_feedback(short(9001), at(9001));
    assert_eq!(sender.poll_timeout(), Some(at(9001 + 2000)));
}

/// RFC 3448 §4.3 over 600 ms. If `s` is the packet's own 160 B, slow start reaches the codec's 50 packets/s.
/// If the implementation takes 500 B for it, each round trip's one packet brings back X_recv = 160 / 0.6 s =
/// 267 B/s, and min(2 X, 2 X_recv) = 533 B/s stays under the floor of s / R = 833 B/s: one packet a round
/// trip for ever.
#[test]
fn a_segment_size_above_twice_the_packets_own_holds_rfc_3448_at_a_packet_a_round_trip() {
    let one_way = Duration::from_millis(300);
    let packets = |revision, size| call(config(revision, Variant::Standard, size), one_way);
    assert!(packets(Revision::Rfc3448, None) >= 1000);
    let throttled = packets(Revision::Rfc3448, Some(500));
    assert!((30..=34).contains(&throttled), "{throttled} in 20 s, a packet in 0.6 s");
    // RFC 5348's floor is four packets a round trip: 133 in 20 s.
    let throttled = packets(Revision::Rfc5348, Some(500));
    assert!((130..=136).contains(&throttled), "{throttled}");
    assert!(packets(Revision::Rfc5348, None) >= 1000);
}
