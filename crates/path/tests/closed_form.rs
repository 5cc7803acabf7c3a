//! The path model next to its closed forms: exact where the form is exact, within a stated interval where it
//! is random.
//!
//! Seeds are fixed, so a test that passes keeps passing; intervals are wide enough (four standard errors and
//! more) that another seed would too.

use talkpath_path::{
    Carried, Check, Damage, DelayVariation, DropTail, Framing, Link, LinkConfig, LinkReport, LossModel,
    PathOutput, QueueKind, QueueLimit, RateModel, TokenBucket,
};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Packets, Rate, Seed};

/// A packet that knows its number and when it came to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: u64,
    size: u64,
    came: Instant,
}

impl Carried for Numbered {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn flow_id(&self) -> u32 {
        0
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn set_ce(&mut self) {}
}

/// One packet's way through the link.
#[derive(Clone, Copy, Debug)]
struct Passage {
    packet: Numbered,
    arrived: Instant,
    lost: bool,
}

/// Hands the link a packet; returns whether the queue took it.
fn takes(link: &mut Link<Numbered>, packet: Numbered, now: Instant) -> bool {
    link.handle_packet(packet, now);
    link.poll_drop().is_none()
}

fn at_rate(bps: u64) -> LinkConfig {
    LinkConfig::bare(RateModel::Fixed(Rate::from_bps(bps)))
}

/// Sends packets of these sizes at these times and returns every passage, in order, with the report over
/// `window`.
fn carry(
    config: &LinkConfig,
    window: (Instant, Instant),
    packets: impl Iterator<Item = (Instant, u64)>,
) -> (Vec<Passage>, LinkReport) {
    let mut link = Link::new(config, Seed::new(5), "test").measuring(window.0, window.1);
    let mut passages = Vec::new();
    let mut deliver = |link: &mut Link<Numbered>, until: Instant| {
        while let Some(arrived) = link.poll_timeout().filter(|at| *at <= until) {
            let (packet, lost) = match link.poll_output(arrived).expect("it is due") {
                PathOutput::Arrived(packet) => (packet, false),
                PathOutput::Lost(packet) => (packet, true),
                PathOutput::Repeated(packet) => {
                    passages.push(Passage { packet, arrived, lost: false });
                    (packet, false)
                }
                PathOutput::Dropped(dropped) => panic!("the queue has room: {dropped:?}"),
            };
            passages.push(Passage { packet, arrived, lost });
        }
    };
    let mut end = Instant::ZERO;
    for (number, (now, size)) in (0..).zip(packets) {
        deliver(&mut link, now);
        assert!(takes(&mut link, Numbered { number, size, came: now }, now), "the queue has room");
        end = now;
    }
    deliver(&mut link, Instant::from_nanos(u64::MAX - 1));
    assert_eq!(link.held(), 0);
    let end = passages.iter().map(|passage| passage.arrived).fold(end, Instant::max).max(window.1);
    (passages, link.report(end))
}

/// ⌈bytes × 8 × 10⁹ / rate⌉ ns, in 128 bits.
fn exact_ns(bytes: u64, bps: u64) -> u64 {
    u64::try_from((u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(bps))).expect("within a run")
}

#[test]
fn a_million_packets_back_to_back_end_at_total_bits_over_rate_to_the_nanosecond() {
    // From 3 bps, where one byte takes 2 2/3 s, to rates that divide no nanosecond.
    for (bps, sizes) in [
        (3, [1, 1, 2]),
        (1_500_000, [1500, 40, 188]),
        (1_544_000, [1500, 1500, 577]),
        (56_000, [188, 41, 1006]),
        (9_999_999_967, [1500, 64, 1]),
        (100_000_000_000, [9000, 1500, 40]),
    ] {
        let n = 1_000_000;
        let sizes = || sizes.into_iter().cycle().take(n);
        let (passages, _) =
            carry(&at_rate(bps), (Instant::ZERO, Instant::MAX), sizes().map(|size| (Instant::ZERO, size)));
        assert_eq!(passages.len(), n);
        let mut sent = 0;
        for (passage, size) in passages.iter().zip(sizes()) {
            sent += size;
            assert_eq!(passage.arrived.as_nanos(), exact_ns(sent, bps), "{sent} B at {bps} bps");
        }
    }
}

#[test]
fn each_busy_period_begins_anew_at_its_first_arrival() {
    // Ten packets every ten service times and a bit: each period's k-th packet ends at start + ⌈k bits /
    // rate⌉.
    for bps in [3, 1_544_000, 999_999_937] {
        let period = exact_ns(10 * 577, bps) + 13;
        let arrivals = (0..1000_u64)
            .flat_map(|group| std::iter::repeat_n((Instant::from_nanos(7 + group * period), 577), 10));
        let (passages, _) = carry(&at_rate(bps), (Instant::ZERO, Instant::MAX), arrivals);
        for passage in passages {
            let k = passage.packet.number % 10 + 1;
            assert_eq!(passage.arrived.since(passage.packet.came).as_nanos(), exact_ns(k * 577, bps));
        }
    }
}

#[test]
fn a_deterministic_queue_below_capacity_never_waits() {
    // D/D/1 at load 2/3: 12 ms of service every 18 ms.
    let arrivals = (0..10_000).map(|k| (Instant::from_millis(18 * k), 1500));
    let (passages, report) =
        carry(&at_rate(1_000_000), (Instant::ZERO, Instant::from_millis(180_000)), arrivals);
    for passage in &passages {
        assert_eq!(passage.arrived.since(passage.packet.came), Duration::from_millis(12));
    }
    assert_eq!((report.queue_packets_mean, report.queue_packets_max), (0.0, 0));
    assert_eq!(report.utilisation, 2.0 / 3.0);
    assert_eq!((report.forwarded, report.dropped, report.lost), (10_000, 0, 0));
}

#[test]
fn a_deterministic_queue_above_capacity_grows_by_the_surplus() {
    // D/D/1 at load 12/10: the k-th packet waits k (12 - 10) ms.
    let arrivals = (0..1_000).map(|k| (Instant::from_millis(10 * k), 1500));
    let (passages, report) =
        carry(&at_rate(1_000_000), (Instant::ZERO, Instant::from_millis(12_000)), arrivals);
    for passage in &passages {
        let wait = Duration::from_millis(2 * passage.packet.number);
        assert_eq!(passage.arrived.since(passage.packet.came), wait + Duration::from_millis(12));
    }
    // Little's law, exactly: waits of 2 k ms for k < 1000 over 12 s.
    assert_eq!(report.queue_packets_mean, 999_000.0 / 12_000.0);
    assert_eq!(report.utilisation, 1.0);
    // When the last comes, at 9.99 s, 833 of the thousand have gone into service.
    assert_eq!(report.queue_packets_max, 167);
}

/// The mean of `values` and the standard error of that mean from the means of `BATCHES` batches: neighbouring
/// waits depend on each other, batches of 20,000 packets hardly do.
fn batch_means(values: &[f64]) -> (f64, f64) {
    const BATCHES: usize = 40;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means: Vec<f64> = values.chunks_exact(values.len() / BATCHES).map(mean).collect();
    let centre = mean(&means);
    let variance = means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    (centre, (variance / BATCHES as f64).sqrt())
}

/// Pollaczek and Khinchine for a deterministic service S at load ρ: mean wait ρ S / (2 (1 - ρ)); by Little's
/// law ρ² / (2 (1 - ρ)) packets wait in the mean.
#[test]
fn poisson_arrivals_wait_as_long_as_pollaczek_and_khinchine_say() {
    let n = 800_000;
    let service = Duration::from_millis(1); // 125 B at 1 Mb/s
    for rho in [0.3, 0.5, 0.7, 0.8, 0.9] {
        let mut stream = Seed::new(42).stream("arrivals");
        let mut now = Instant::ZERO;
        let warm_up = 20_000; // packets, from an empty queue
        let mean_gap_ns = service.as_nanos() as f64 / rho;
        let arrivals: Vec<Instant> = (0..n + warm_up)
            .map(|_| {
                now += Duration::from_nanos((stream.exponential() * mean_gap_ns).round() as u64);
                now
            })
            .collect();
        let window = (arrivals[warm_up], now);
        let (passages, report) = carry(&at_rate(1_000_000), window, arrivals.iter().map(|&at| (at, 125)));
        let waits: Vec<f64> = passages[warm_up..]
            .iter()
            .map(|passage| passage.arrived.since(passage.packet.came).saturating_sub(service).as_millis_f64())
            .collect();
        let (mean, error) = batch_means(&waits);
        let expected = rho / (2.0 * (1.0 - rho));
        // Student's t with 39 degrees of freedom: 99.9 % within 3.56 standard errors.
        assert!((mean - expected).abs() < 3.56 * error, "rho {rho}: {mean} ± {error}, not {expected}");
        assert!(error < 0.015 * expected, "rho {rho}: the interval says too little: {mean} ± {error}");

        // Over the same window the time average follows, within the arrival count's own error 4/sqrt(n).
        let littles = waits.iter().sum::<f64>() / now.since(window.0).as_millis_f64();
        assert!((report.queue_packets_mean / littles - 1.0).abs() < 1e-3, "{report:?}, not {littles}");
        let share = 4.0 / (n as f64).sqrt();
        assert!((report.utilisation / rho - 1.0).abs() < share, "{report:?} at {rho}");
    }
}

/// Which of `n` packets the loss model ate.
fn losses(loss: LossModel, n: u64) -> Vec<bool> {
    let config = LinkConfig { loss, ..LinkConfig::bare(RateModel::Unlimited) };
    let packets = (0..n).map(|k| (Instant::from_micros(k), 100));
    carry(&config, (Instant::ZERO, Instant::MAX), packets).0.iter().map(|passage| passage.lost).collect()
}

fn share(flags: &[bool]) -> f64 {
    flags.iter().filter(|flag| **flag).count() as f64 / flags.len() as f64
}

#[test]
fn bernoulli_losses_lie_within_their_binomial_interval() {
    let n = 1_000_000;
    for rate in [0.0, 0.001, 0.01, 0.25, 1.0] {
        let lost = losses(LossModel::Bernoulli { rate }, n);
        let error = (rate * (1.0 - rate) / n as f64).sqrt();
        assert!((share(&lost) - rate).abs() <= 4.0 * error, "{} at {rate}", share(&lost));
        // Independent: after a loss the next packet is lost as often as any other.
        let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        if after.len() > 100 {
            let error = (rate * (1.0 - rate) / after.len() as f64).sqrt();
            assert!((share(&after) - rate).abs() <= 4.0 * error, "{} after a loss at {rate}", share(&after));
        }
    }
}

/// Gilbert (1960) with loss in the bad state only: loss rate p / (p + r); run lengths geometric of mean 1 /
/// r.
#[test]
fn gilbert_elliott_losses_have_their_rate_and_their_run_length() {
    let n = 2_000_000_u64;
    for (p, r) in [(0.01, 0.3), (0.05, 0.5), (0.001, 0.1), (0.2, 0.9)] {
        let lost = losses(LossModel::GilbertElliott { p, r, loss_bad: 1.0, loss_good: 0.0 }, n);
        let rate = p / (p + r);
        // A two-state chain's correlation is (1 - p - r)^k, which widens the binomial error by this factor.
        let widened = ((2.0 - p - r) / (p + r)).sqrt();
        let error = (rate * (1.0 - rate) / n as f64).sqrt() * widened;
        assert!((share(&lost) - rate).abs() < 4.0 * error, "{} ± {error}, not {rate}", share(&lost));

        let runs: Vec<f64> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(|run| run.len() as f64).collect();
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        // A geometric number's variance is (1 - r) / r².
        let error = ((1.0 - r) / (r * r) / runs.len() as f64).sqrt();
        assert!((mean - 1.0 / r).abs() < 4.0 * error, "runs of {mean} ± {error}, not {}", 1.0 / r);
    }
}

/// Elliott (1963): with losses in both states the rate is the stationary mixture of the two.
#[test]
fn gilbert_elliott_mixes_the_loss_of_both_states() {
    let (p, r, loss_bad, loss_good) = (0.1, 0.4, 0.5, 0.02);
    let n = 1_000_000;
    let lost = losses(LossModel::GilbertElliott { p, r, loss_bad, loss_good }, n);
    let rate = (p * loss_bad + r * loss_good) / (p + r);
    let widened = ((2.0 - p - r) / (p + r)).sqrt();
    let error = (rate * (1.0 - rate) / n as f64).sqrt() * widened;
    assert!((share(&lost) - rate).abs() < 4.0 * error, "{} ± {error}, not {rate}", share(&lost));
}

#[test]
fn periodic_losses_fall_on_every_period_th_packet_exactly() {
    let lost = losses(LossModel::Periodic { period: 50 }, 10_000);
    for (number, lost) in (1_u64..).zip(lost) {
        assert_eq!(lost, number % 50 == 0, "packet {number}");
    }
}

#[test]
fn a_lost_packet_has_taken_its_time_on_the_wire() {
    // Every second packet is lost, and still each packet ends one service later than the one before.
    let config = LinkConfig { loss: LossModel::Periodic { period: 2 }, ..at_rate(1_000_000) };
    let packets = (0..100).map(|_| (Instant::ZERO, 125));
    let (passages, report) = carry(&config, (Instant::ZERO, Instant::from_millis(200)), packets);
    for (number, passage) in (1..).zip(&passages) {
        assert_eq!(passage.arrived, Instant::from_millis(number));
    }
    assert_eq!((report.forwarded, report.lost, report.utilisation), (50, 50, 0.5));
}

#[test]
fn framing_takes_time_on_the_wire_and_no_room_in_the_queue() {
    let framing = Framing::Bytes { overhead: Bytes::new(25) };
    let queue = QueueKind::DropTail(DropTail {
        limit: QueueLimit::Bytes(Bytes::new(200)),
        in_service: false,
        mark_at: None,
    });
    let config = LinkConfig { framing, queue, ..at_rate(1_000_000) };
    let mut link = Link::new(&config, Seed::new(1), "framed");
    let mut offer =
        |number| takes(&mut link, Numbered { number, size: 100, came: Instant::ZERO }, Instant::ZERO);
    // One is sent, two wait in 200 B, the fourth finds no room.
    assert_eq!([0, 1, 2, 3].map(&mut offer), [true, true, true, false]);
    for number in 1..=3 {
        // 100 B and 25 B around them take 1 ms.
        assert_eq!(link.poll_timeout(), Some(Instant::from_millis(number)));
        assert!(link.poll_output(Instant::from_millis(number)).is_some());
    }
}

#[test]
fn a_pipe_adds_its_delay_and_holds_as_much_as_fits_in() {
    let config = LinkConfig { delay: Duration::from_millis(250), ..at_rate(1_000_000) };
    let mut link = Link::new(&config, Seed::new(1), "satellite");
    for number in 0..10 {
        let packet = Numbered { number, size: 1500, came: Instant::ZERO };
        assert!(takes(&mut link, packet, Instant::ZERO), "the queue has room");
    }
    for number in 1..=10 {
        // n times 12 ms of service, then 250 ms: ten packets share the pipe.
        let due = Instant::from_millis(250 + 12 * number);
        assert_eq!(link.poll_timeout(), Some(due));
        assert!(link.poll_output(due.saturating_sub(Duration::from_nanos(1))).is_none());
        assert!(
            matches!(link.poll_output(due), Some(PathOutput::Arrived(packet)) if packet.number == number - 1)
        );
    }
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn a_queue_of_no_packets_still_passes_what_need_not_wait() {
    let config =
        LinkConfig { queue: QueueKind::DropTail(DropTail::of_packets(Packets::ZERO)), ..at_rate(1_000_000) };
    let mut link = Link::new(&config, Seed::new(1), "up").measuring(Instant::ZERO, Instant::from_millis(12));
    let packet = |number, ms| Numbered { number, size: 1500, came: Instant::from_millis(ms) };
    // 12 ms of service: free at 12 ms and not a nanosecond before.
    let almost = Instant::from_nanos(11_999_999);
    assert!(takes(&mut link, packet(0, 0), Instant::ZERO));
    assert!(!takes(&mut link, packet(1, 0), Instant::ZERO));
    assert!(!takes(&mut link, packet(2, 0), almost));
    assert!(takes(&mut link, packet(3, 12), Instant::from_millis(12)));
    let report = link.report(Instant::from_millis(12));
    assert_eq!((report.dropped, report.queue_packets_max, report.utilisation), (2, 0, 1.0));
}

/// What each element draws depends on its own name only: architecture invariant 6.
#[test]
fn turning_loss_on_changes_nobodys_delay() {
    let jitter = DelayVariation::Normal { sd: Duration::from_millis(3), memory: 0.0, reorder: false };
    let clean = LinkConfig { delay: Duration::from_millis(20), jitter, ..at_rate(10_000_000) };
    let lossy = LinkConfig { loss: LossModel::Bernoulli { rate: 0.2 }, ..clean.clone() };
    let arrivals = |config| {
        let packets = (0..5_000).map(|k| (Instant::from_millis(2 * k), 1500));
        let (passages, report) = carry(config, (Instant::ZERO, Instant::MAX), packets);
        (passages.iter().map(|passage| passage.arrived).collect::<Vec<_>>(), report.lost)
    };
    let ((clean, none), (lossy, some)) = (arrivals(&clean), arrivals(&lossy));
    assert_eq!(clean, lossy);
    assert!(none == 0 && some > 800, "{none}, {some}");
}

#[test]
fn a_report_before_the_end_of_the_window_covers_what_has_passed() {
    let mut link = Link::new(&at_rate(1_000_000), Seed::new(1), "up")
        .measuring(Instant::from_millis(6), Instant::from_secs(10));
    for number in 0..3 {
        let packet = Numbered { number, size: 1500, came: Instant::ZERO };
        assert!(takes(&mut link, packet, Instant::ZERO), "the queue has room");
    }
    // From 6 to 18 ms: two wait until 12, one until 24.
    let report = link.report(Instant::from_millis(18));
    assert_eq!((report.queue_packets_mean, report.queue_packets_max, report.utilisation), (1.5, 2, 1.0));
}

/// The window is [from, to): an arrival, a loss or a drop at `from` counts, one at `to` does not.
#[test]
fn each_count_covers_the_window_and_nothing_else() {
    // Packets 0 to 9 come at 0 ms and arrive at 1 ms, 2 ms, ... 10 ms; every second one is lost.
    let config = LinkConfig {
        loss: LossModel::Periodic { period: 2 },
        queue: QueueKind::DropTail(DropTail::of_packets(Packets::new(9))),
        ..at_rate(1_000_000)
    };
    let counts = |from_ms, to_ms| {
        let mut link = Link::new(&config, Seed::new(1), "up")
            .measuring(Instant::from_millis(from_ms), Instant::from_millis(to_ms));
        for number in 0..12 {
            let packet = Numbered { number, size: 125, came: Instant::ZERO };
            assert_eq!(takes(&mut link, packet, Instant::ZERO), number < 10);
        }
        let end = Instant::from_millis(20);
        while link.poll_output(end).is_some() {}
        let report = link.report(end);
        (report.forwarded, report.lost, report.dropped)
    };
    assert_eq!(counts(0, 20), (5, 5, 2));
    assert_eq!(counts(0, 1), (0, 0, 2)); // the first arrives at the window's very end
    assert_eq!(counts(1, 2), (1, 0, 0)); // ... here at its beginning; the drops lie before
    assert_eq!(counts(2, 3), (0, 1, 0));
    assert_eq!(counts(3, 10), (4, 3, 0));
    assert_eq!(counts(5, 5), (0, 0, 0));
}

#[test]
fn a_repeated_packet_arrives_twice_at_once_and_the_share_is_the_stated_one() {
    let (n, share) = (200_000, 0.02);
    let config = LinkConfig { duplicate: share, ..at_rate(1_000_000_000) };
    let packets = (0..n).map(|k| (Instant::from_micros(20 * k), 1250));
    let (passages, report) = carry(&config, (Instant::ZERO, Instant::MAX), packets);
    let copies: Vec<bool> =
        passages.windows(2).map(|pair| pair[0].packet.number == pair[1].packet.number).collect();
    let count = copies.iter().filter(|is_copy| **is_copy).count() as u64;
    assert_eq!((report.repeated, report.forwarded, report.lost), (count, n + count, 0));
    // Binomial, four standard errors.
    assert!((count as f64 / n as f64 - share).abs() < 4.0 * (share * (1.0 - share) / n as f64).sqrt());
    // Each one takes 10 us of the wire, and its copy nothing.
    assert!(passages.iter().all(|it| it.arrived.since(it.packet.came) == Duration::from_micros(10)));
}

#[test]
fn a_frame_check_loses_the_damaged_share_and_a_checksum_none_of_it_on_the_way() {
    let (n, share) = (200_000, 0.01);
    for check in [Check::Frame, Check::Checksum] {
        let config = LinkConfig { damage: Some(Damage { share, check }), ..at_rate(1_000_000_000) };
        let packets = (0..n).map(|k| (Instant::from_micros(20 * k), 1250));
        let (_, report) = carry(&config, (Instant::ZERO, Instant::MAX), packets);
        let found = report.damaged as f64 / n as f64;
        assert!((found - share).abs() < 4.0 * (share * (1.0 - share) / n as f64).sqrt(), "{found}");
        let lost = if check == Check::Frame { report.damaged } else { 0 };
        assert_eq!((report.lost, report.forwarded), (lost, n - lost));
    }
}

/// Packets of 1250 B, one each `gap_ms`, over a link at `bps` with a policer or a shaper of 1 Mb/s.
fn through_buckets(policer: bool, bps: u64, gap_ms: u64, burst: u64) -> Vec<(bool, Instant)> {
    let bucket = Some(TokenBucket { rate: Rate::from_bps(1_000_000), burst: Bytes::new(burst) });
    let (policer, shaper) = if policer { (bucket, None) } else { (None, bucket) };
    let config = LinkConfig { policer, shaper, ..at_rate(bps) };
    let mut link = Link::new(&config, Seed::new(1), "x");
    let (mut taken, mut arrived) = (Vec::new(), Vec::new());
    let drain = |link: &mut Link<Numbered>, until: Instant, arrived: &mut Vec<Instant>| {
        while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
            arrived.extend(link.poll_output(at).map(|_| at));
        }
    };
    for number in 0..200 {
        let now = Instant::from_millis(gap_ms * number);
        drain(&mut link, now, &mut arrived);
        taken.push(takes(&mut link, Numbered { number, size: 1250, came: now }, now));
    }
    drain(&mut link, Instant::from_secs(3600), &mut arrived);
    let mut arrived = arrived.into_iter();
    taken
        .into_iter()
        .map(|taken| {
            (taken, if taken { arrived.next().expect("what was taken arrives") } else { Instant::MAX })
        })
        .collect()
}

#[test]
fn a_policer_passes_its_burst_and_its_rate_and_delays_nothing() {
    // 10 Mb/s: a packet takes 1 ms. They come at 2 Mb/s, twice the policer's rate.
    let passed = through_buckets(true, 10_000_000, 5, 5000);
    // Tokens in bytes, exactly: 625 B in each gap of 5 ms, at most 5000 B.
    let mut tokens = 5000;
    for (number, (is_passed, arrived)) in (0_u64..).zip(&passed) {
        assert_eq!(*is_passed, tokens >= 1250, "{number}");
        if *is_passed {
            tokens -= 1250;
            assert_eq!(*arrived, Instant::from_millis(5 * number + 1));
        }
        tokens = (tokens + 625).min(5000);
    }
    // After the burst every second packet passes.
    let passes: Vec<bool> = passed.iter().map(|(passed, _)| *passed).collect();
    assert!(passes[..7].iter().all(|passed| *passed), "the burst, and the tokens that came meanwhile");
    assert_eq!(passes[100..].iter().filter(|passed| **passed).count(), 50);
}

#[test]
fn a_shaper_lets_a_burst_out_at_the_rate_of_the_link_and_the_rest_at_its_own() {
    let shaped = through_buckets(false, 10_000_000, 0, 5000);
    for (number, (is_taken, arrived)) in (0_u64..).zip(&shaped) {
        // Four packets are in the bucket. The tokens of the n-th are there after (n - 3) times 10 ms.
        let expected = if number < 4 { number + 1 } else { 10 * (number - 3) + 1 };
        assert_eq!((*is_taken, *arrived), (true, Instant::from_millis(expected)), "{number}");
    }
}

#[test]
fn a_shaper_above_the_rate_of_the_link_changes_nothing() {
    let plain = through_buckets(false, 500_000, 7, 5000);
    for (number, (_, arrived)) in (0_u64..).zip(plain) {
        assert_eq!(arrived, Instant::from_millis(20 * (number + 1)));
    }
}
