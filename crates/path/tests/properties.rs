//! What holds for every link and every traffic.

use std::collections::VecDeque;

use proptest::option;
use proptest::prelude::*;
use talkpath_path::{
    Carried, Cellular, Check, Classes, Codel, CodelParameters, Damage, DelayVariation, DropCause, DropTail,
    Dropped, Drr, Dscp, Fq, FqCodel, FragmentRange, Framing, GrantRequest, Harq, Link, LinkConfig,
    LinkReport, LossModel, Medium, PathOutput, Priority, QueueKind, QueueLimit, RateModel, RateTrace,
    Reassembled, Reassembly, Reordering, Scheduler, TokenBucket, fragments,
};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Packets, Rate, Seed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: usize,
    size: u64,
}

impl Carried for Numbered {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn flow_id(&self) -> u32 {
        self.number as u32 % 3
    }

    fn dscp(&self) -> Dscp {
        Dscp::numbered(self.flow_id() as u8 * 21).expect("six bits")
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn set_ce(&mut self) {}
}

/// An arrival: nanoseconds after the one before, and a size.
type Traffic = Vec<(u64, u64)>;

/// Gaps that make the queue fill and drain: often none, often about a service time at the rates below.
fn traffic() -> impl Strategy<Value = Traffic> {
    let gap = prop_oneof![2 => Just(0), 3 => 0..2_000_000_u64, 1 => 0..40_000_000_u64];
    let size = prop_oneof![Just(1500_u64), 40..1500_u64, Just(41)];
    prop::collection::vec((gap, size), 1..200)
}

fn rate() -> impl Strategy<Value = RateModel> {
    prop_oneof![
        4 => (800_000..20_000_000_u64).prop_map(|bps| RateModel::Fixed(Rate::from_bps(bps))),
        1 => Just(RateModel::Fixed(Rate::from_bps(1_544_000))),
        1 => Just(RateModel::Unlimited),
        1 => Just(RateModel::Trace("1\n1\n3\n8\n".parse::<RateTrace>().expect("a good trace"))),
    ]
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0..20_u64).prop_map(|n| QueueLimit::Packets(Packets::new(n))),
        (0..20_000_u64).prop_map(|n| QueueLimit::Bytes(Bytes::new(n))),
    ]
}

fn drop_tail() -> impl Strategy<Value = DropTail> {
    (limit(), any::<bool>()).prop_map(|(limit, in_service)| DropTail { limit, in_service, mark_at: None })
}

/// Any discipline, with limits and times that short traffic comes to.
fn any_queue() -> impl Strategy<Value = QueueKind> {
    let span = || (0..20_000_000_u64).prop_map(Duration::from_nanos);
    let parameters = move || {
        (span(), span()).prop_map(|(target, interval)| CodelParameters {
            target,
            interval,
            ecn: true,
            ce_threshold: None,
        })
    };
    let quantum = || option::of((1..4_000_u64).prop_map(Bytes::new));
    let fq_codel = (1..30_u64, 1_500..40_000_u64, 1..9_u32, quantum(), parameters());
    prop_oneof![
        drop_tail().prop_map(QueueKind::DropTail),
        (limit(), parameters()).prop_map(|(limit, parameters)| QueueKind::Codel(Codel { limit, parameters })),
        (limit(), quantum()).prop_map(|(limit, quantum)| QueueKind::Fq(Fq { limit, quantum })),
        (limit(), classes()).prop_map(|(limit, classes)| QueueKind::Priority(Priority { classes, limit })),
        (limit(), classes(), prop::collection::vec(quantum(), 0..4))
            .prop_map(|(limit, classes, quanta)| QueueKind::Drr(Drr { classes, quanta, limit })),
        fq_codel.prop_map(|(limit, memory, flows, quantum, parameters)| QueueKind::FqCodel(FqCodel {
            limit: Packets::new(limit),
            memory_limit: Bytes::new(memory),
            flows,
            quantum,
            parameters,
        })),
    ]
}

/// Up to three sets of codepoints, which may overlap, and the last class.
fn classes() -> impl Strategy<Value = Classes> {
    let set = prop::collection::vec(0..64_u8, 0..40);
    prop::collection::vec(set, 0..4).prop_map(|sets| {
        let dscp = |set: Vec<u8>| set.into_iter().filter_map(Dscp::numbered).collect();
        Classes::new(&sets.into_iter().map(dscp).collect::<Vec<_>>())
    })
}

fn loss() -> impl Strategy<Value = LossModel> {
    prop_oneof![
        Just(LossModel::None),
        (0.0..1.0).prop_map(|rate| LossModel::Bernoulli { rate }),
        (0.0..1.0, 0.0..1.0, 0.0..1.0, 0.0..1.0)
            .prop_map(|(p, r, loss_bad, loss_good)| LossModel::GilbertElliott { p, r, loss_bad, loss_good }),
        (1..30_000_000_u64, 0.0..1.0, 0.0..1.0, 0.0..1.0).prop_map(|(step, p, r, loss_bad)| {
            LossModel::GilbertElliottInTime {
                step: Duration::from_nanos(step),
                p,
                r,
                loss_bad,
                loss_good: 0.0,
            }
        }),
        (1..9_u64).prop_map(|period| LossModel::Periodic { period }),
        Just(LossModel::Trace("0010 11".parse().expect("a good trace"))),
    ]
}

fn variation() -> impl Strategy<Value = DelayVariation> {
    let span = || (0..30_000_000_u64).prop_map(Duration::from_nanos);
    prop_oneof![
        Just(DelayVariation::None),
        (span(), 0.0..1.0, any::<bool>()).prop_map(|(sd, memory, reorder)| DelayVariation::Normal {
            sd,
            memory,
            reorder
        }),
        (span(), any::<bool>()).prop_map(|(max, reorder)| DelayVariation::Uniform { max, reorder }),
        (span(), 1.01..9.0, any::<bool>()).prop_map(|(mean, shape, reorder)| DelayVariation::Pareto {
            mean,
            shape,
            reorder
        }),
        any::<bool>().prop_map(|reorder| DelayVariation::Trace {
            additions: "0\n30\n2.5\n".parse().expect("a good trace"),
            reorder
        }),
    ]
}

fn framing() -> impl Strategy<Value = Framing> {
    let overhead = || (0..100_u64).prop_map(Bytes::new);
    prop_oneof![
        Just(Framing::None),
        overhead().prop_map(|overhead| Framing::Bytes { overhead }),
        overhead().prop_map(|overhead| Framing::Atm { overhead }),
    ]
}

fn config() -> impl Strategy<Value = LinkConfig> {
    let queue = drop_tail().prop_map(QueueKind::DropTail);
    let buckets = (option::of(token_bucket()), option::of(token_bucket()));
    let wire = (loss(), option::of(reordering()), prop_oneof![Just(0.0), 0.0..1.0], option::of(damage()));
    (rate(), 0..50_u64, framing(), queue, wire, variation(), buckets).prop_map(
        |(rate, delay, framing, queue, (loss, reorder, duplicate, damage), jitter, (policer, shaper))| {
            let (delay, mtu) = (Duration::from_millis(delay), Bytes::new(1500));
            LinkConfig {
                rate,
                delay,
                mtu,
                framing,
                queue,
                loss,
                jitter,
                policer,
                shaper,
                reorder,
                duplicate,
                damage,
                medium: Medium::Wire,
                cellular: None,
            }
        },
    )
}

/// A user's share of any cell.
fn cellular() -> impl Strategy<Value = Cellular> {
    let span = |most_ms: u64| (100_000..most_ms * 1_000_000).prop_map(Duration::from_nanos);
    let scheduler = prop_oneof![
        span(1000).prop_map(|window| Scheduler::ProportionalFair { window }),
        (1..12_u32).prop_map(|at_once| Scheduler::RoundRobin { at_once }),
    ];
    let request = (span(80), span(20)).prop_map(|(period, grant)| GrantRequest { period, grant });
    let errors = (0.0..0.5, 0.0..0.5, 1..6_u32).prop_map(|(block_error, repeat_error, attempts)| Harq {
        block_error,
        repeat_error,
        delay: Duration::from_millis(8),
        attempts,
        recovery: Duration::from_millis(60),
    });
    (0..12_u32, scheduler, span(10), option::of(request), errors).prop_map(
        |(others, scheduler, tti, request, harq)| Cellular { others, scheduler, tti, request, harq },
    )
}

fn damage() -> impl Strategy<Value = Damage> {
    (0.0..1.0, any::<bool>()).prop_map(|(share, frame)| Damage {
        share,
        check: if frame { Check::Frame } else { Check::Checksum },
    })
}

/// A bucket of any size: a packet may be larger than the bucket.
fn token_bucket() -> impl Strategy<Value = TokenBucket> {
    (1_000..20_000_000_u64, 500..20_000_u64)
        .prop_map(|(bps, burst)| TokenBucket { rate: Rate::from_bps(bps), burst: Bytes::new(burst) })
}

fn reordering() -> impl Strategy<Value = Reordering> {
    (0.0..1.0, 0..30_000_000_u64).prop_map(|(share, by)| Reordering { share, by: Duration::from_nanos(by) })
}

fn reorders(config: &LinkConfig) -> bool {
    if config.reorder.is_some() {
        return true;
    }
    match config.jitter {
        DelayVariation::None => false,
        DelayVariation::Normal { reorder, .. }
        | DelayVariation::Uniform { reorder, .. }
        | DelayVariation::Pareto { reorder, .. }
        | DelayVariation::Trace { reorder, .. } => reorder,
    }
}

/// Each arrival's instant, packet, and number waiting right after it; and what came out, when.
#[derive(Default)]
struct Story {
    waiting: Vec<u64>,
    accepted: Vec<bool>,
    out: Vec<(Instant, PathOutput<Numbered>)>,
    held: usize,
    end: Instant,
}

/// Runs `traffic` through the link until `extra` after the last arrival.
fn run(link: &mut Link<Numbered>, traffic: &Traffic, extra: Duration) -> Story {
    let mut story = Story::default();
    let drain = |link: &mut Link<Numbered>, until: Instant, story: &mut Story| {
        while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
            // Nothing comes out if only a service begins.
            story.out.extend(link.poll_output(at).map(|out| (at, out)));
        }
        assert!(link.poll_output(until).is_none(), "nothing comes out that was not announced");
    };
    let mut now = Instant::ZERO;
    for (number, &(gap, size)) in traffic.iter().enumerate() {
        now += Duration::from_nanos(gap);
        drain(link, now, &mut story);
        let packet = Numbered { number, size };
        link.handle_packet(packet, now);
        let dropped = link.poll_drop();
        if let Some(dropped) = dropped {
            assert_eq!(dropped, Dropped { packet, cause: DropCause::QueueFull });
        }
        story.accepted.push(dropped.is_none());
        story.waiting.push(link.waiting(now));
    }
    story.end = now.saturating_add(extra);
    drain(link, story.end, &mut story);
    story.held = link.held();
    story
}

/// A link at a fixed rate, event by event: arrivals, service starts and service ends each have their turn,
/// every end comes from the whole busy period's bits, and occupancy is summed span by span.
struct Naive {
    rate: u64,
    limit: QueueLimit,
    in_service: bool,
    /// (number, size) of those that wait.
    waiting: VecDeque<(usize, u64)>,
    /// (number, size, end) of the one in service.
    serving: Option<(usize, u64, u64)>,
    /// Start of the busy period and bytes begun in it.
    busy: (u64, u64),
    /// (number waiting, busy, from, to), in order.
    spans: Vec<(u64, bool, u64, u64)>,
    clock: u64,
    ends: Vec<(usize, u64)>,
}

impl Naive {
    fn pass(&mut self, until: u64) {
        self.spans.push((self.waiting.len() as u64, self.serving.is_some(), self.clock, until));
        self.clock = until;
    }

    fn begin(&mut self, number: usize, size: u64) {
        self.busy.1 += size;
        let ns = (u128::from(self.busy.1) * 8_000_000_000).div_ceil(u128::from(self.rate));
        self.serving = Some((number, size, self.busy.0 + u64::try_from(ns).expect("within a run")));
    }

    /// All service ends up to and at `now`.
    fn advance(&mut self, now: u64) {
        while let Some((number, _, end)) = self.serving.filter(|(_, _, end)| *end <= now) {
            self.pass(end);
            self.ends.push((number, end));
            self.serving = None;
            if let Some((number, size)) = self.waiting.pop_front() {
                self.begin(number, size);
            }
        }
        self.pass(now);
    }

    fn arrive(&mut self, number: usize, size: u64, now: u64) -> bool {
        self.advance(now);
        let Some((_, serving, _)) = self.serving else {
            self.busy = (now, 0);
            self.begin(number, size);
            return true;
        };
        let counted = if self.in_service { (1, serving) } else { (0, 0) };
        let bytes: u64 = self.waiting.iter().map(|(_, size)| size).sum();
        let fits = match self.limit {
            QueueLimit::Packets(limit) => self.waiting.len() as u64 + counted.0 < limit.get(),
            QueueLimit::Bytes(limit) => bytes + counted.1 + size <= limit.get(),
        };
        if fits {
            self.waiting.push_back((number, size));
        }
        fits
    }

    /// Mean, p99, max and busy share over [from, to).
    fn figures(&self, from: u64, to: u64) -> (f64, u64, u64, f64) {
        let spans: Vec<(u64, bool, u64)> = self
            .spans
            .iter()
            .map(|&(level, busy, begin, end)| (level, busy, end.min(to).saturating_sub(begin.max(from))))
            .filter(|(_, _, ns)| *ns > 0)
            .collect();
        let total: u64 = spans.iter().map(|(_, _, ns)| ns).sum();
        if total == 0 {
            return (0.0, 0, 0, 0.0);
        }
        let weighted: u128 = spans.iter().map(|&(level, _, ns)| u128::from(level) * u128::from(ns)).sum();
        let max = spans.iter().map(|(level, _, _)| *level).max().unwrap_or(0);
        let within = |n: u64| -> u64 { spans.iter().filter(|span| span.0 <= n).map(|span| span.2).sum() };
        let p99 = (0..=max).find(|&n| u128::from(within(n)) * 100 >= u128::from(total) * 99).unwrap_or(max);
        let busy: u64 = spans.iter().filter(|span| span.1).map(|span| span.2).sum();
        (weighted as f64 / total as f64, p99, max, busy as f64 / total as f64)
    }
}

/// The sum of what each way out of the link counted over the whole run.
fn counted(report: &LinkReport) -> [u64; 3] {
    [report.forwarded, report.lost, report.dropped]
}

proptest! {
    #![proptest_config(talkpath_testing::properties(400))]

    #[test]
    fn what_goes_in_comes_out_is_dropped_is_lost_or_is_held(
        config in config(), traffic in traffic(), seed in any::<u64>(), extra in 0..100_u64,
    ) {
        let mut link = Link::new(&config, Seed::new(seed), "up");
        let story = run(&mut link, &traffic, Duration::from_millis(extra));
        let (mut forwarded, mut lost, mut repeated) = (0, 0, 0);
        let mut seen = vec![false; traffic.len()];
        for (_, out) in &story.out {
            let packet = match out {
                PathOutput::Arrived(packet) => { forwarded += 1; packet }
                PathOutput::Repeated(packet) => { forwarded += 2; repeated += 1; packet }
                PathOutput::Lost(packet) => { lost += 1; packet }
                PathOutput::Dropped(_) => return Err(TestCaseError::fail("drop-tail drops at arrival")),
            };
            prop_assert!(!std::mem::replace(&mut seen[packet.number], true), "{packet:?} came out twice");
            prop_assert!(story.accepted[packet.number]);
            prop_assert_eq!(packet.size, traffic[packet.number].1);
        }
        let dropped = story.accepted.iter().filter(|accepted| !**accepted).count();
        // Sent + repeated = delivered + dropped + lost + inside.
        let (inside, sent) = (story.held as u64, traffic.len() as u64);
        prop_assert_eq!(sent + repeated, forwarded + dropped as u64 + lost + inside);
        let report = link.report(story.end.saturating_add(Duration::from_nanos(1)));
        prop_assert_eq!((counted(&report), report.repeated), ([forwarded, lost, dropped as u64], repeated));
    }

    #[test]
    fn output_never_goes_back_in_time_nor_overtakes_unasked(
        config in config(), traffic in traffic(), seed in any::<u64>(),
    ) {
        let mut link = Link::new(&config, Seed::new(seed), "up");
        let story = run(&mut link, &traffic, Duration::from_secs(3600));
        prop_assert!(story.out.is_sorted_by_key(|(at, _)| *at));
        let numbers = story.out.iter().map(|(_, out)| match out {
            PathOutput::Arrived(packet) | PathOutput::Repeated(packet) | PathOutput::Lost(packet) => packet.number,
            PathOutput::Dropped(dropped) => dropped.packet.number,
        });
        prop_assert!(reorders(&config) || numbers.is_sorted());
    }

    #[test]
    fn every_discipline_sends_or_drops_each_packet_once_in_time_and_keeps_the_order_of_each_flow(
        queue in any_queue(), traffic in traffic(), is_woken in any::<bool>(),
    ) {
        let rate = RateModel::Fixed(Rate::from_bps(2_000_000));
        let config = LinkConfig { delay: Duration::from_millis(3), queue, ..LinkConfig::bare(rate) };
        let mut link = Link::new(&config, Seed::new(1), "up");
        let mut out = Vec::new();
        let mut now = Instant::ZERO;
        for (number, &(gap, size)) in traffic.iter().enumerate() {
            now += Duration::from_nanos(gap);
            while let Some(at) = link.poll_timeout().filter(|at| is_woken && *at <= now) {
                out.extend(link.poll_output(at));
            }
            out.extend(core::iter::from_fn(|| link.poll_output(now)));
            link.handle_packet(Numbered { number, size }, now);
            prop_assert_eq!(out.len() + link.held(), number + 1);
        }
        let end = now.saturating_add(Duration::from_secs(1000));
        out.extend(core::iter::from_fn(|| link.poll_output(end)));
        prop_assert_eq!((out.len(), link.held()), (traffic.len(), 0));
        let mut arrived: Vec<_> = out.iter().filter_map(|out| match out {
            PathOutput::Arrived(packet) => Some(*packet),
            PathOutput::Repeated(_) | PathOutput::Lost(_) | PathOutput::Dropped(_) => None,
        }).collect();
        arrived.sort_by_key(Carried::flow_id);
        prop_assert!(arrived.is_sorted_by_key(|packet| (packet.flow_id(), packet.number)));
        let report = link.report(end);
        prop_assert_eq!(report.forwarded + report.dropped, traffic.len() as u64);
        let delays = report.queue_delay;
        prop_assert!(delays.p50 <= delays.p95 && delays.p95 <= delays.p99);
    }

    #[test]
    fn a_cell_loses_nothing_keeps_the_order_and_gives_no_more_than_all_of_its_time(
        cell in cellular(), traffic in traffic(), seed in any::<u64>(),
    ) {
        let (users, tti) = (u64::from(cell.others) + 1, cell.tti);
        let rate = RateModel::Fixed(Rate::from_bps(2_000_000));
        let config = LinkConfig { cellular: Some(cell), ..LinkConfig::bare(rate) };
        let mut link = Link::new(&config, Seed::new(seed), "radio");
        let story = run(&mut link, &traffic, Duration::from_secs(10_000));
        prop_assert_eq!((story.out.len(), story.held), (traffic.len(), 0));
        let (mut now, mut bits) = (Instant::ZERO, 0);
        for ((at, output), (gap, size)) in story.out.iter().zip(&traffic) {
            now += Duration::from_nanos(*gap);
            let is_next = matches!(output, PathOutput::Arrived(packet) if packet.size == *size);
            prop_assert!(is_next, "{:?}", output);
            // The block begins after the packet came, and lasts a TTI.
            prop_assert!(*at > now.saturating_add(tti), "{at:?} after {now:?}");
            bits += 8 * size;
            let least = Duration::from_nanos(bits * 1_000_000_000 / (2_000_000 * users));
            prop_assert!(*at >= Instant::ZERO.saturating_add(least));
        }
    }

    #[test]
    fn drop_tail_never_exceeds_its_limit_and_the_serialiser_never_its_time(
        config in config(), drop_tail in drop_tail(), traffic in traffic(), window in (0..200_u64, 0..200_u64),
    ) {
        let config = LinkConfig { queue: QueueKind::DropTail(drop_tail), ..config };
        let (from, to) = (Instant::from_millis(window.0), Instant::from_millis(window.1));
        let mut link = Link::new(&config, Seed::new(1), "up").measuring(from, to);
        let story = run(&mut link, &traffic, Duration::ZERO);
        let most = match drop_tail.limit {
            QueueLimit::Packets(limit) => limit.get(),
            QueueLimit::Bytes(limit) => limit.get() / 40, // the smallest packet in the traffic
        };
        prop_assert!(story.waiting.iter().all(|waiting| *waiting <= most));
        let report = link.report(story.end);
        prop_assert!(report.queue_packets_max <= most);
        prop_assert!(report.queue_packets_p99 <= report.queue_packets_max);
        prop_assert!(report.queue_packets_mean <= report.queue_packets_max as f64);
        prop_assert!((0.0..=1.0).contains(&report.utilisation), "{report:?}");
    }

    #[test]
    fn settling_lazily_equals_going_event_by_event(
        bps in 800_000..20_000_000_u64, drop_tail in drop_tail(), traffic in traffic(),
        window in (0..100_000_000_u64, 0..300_000_000_u64), extra in 0..20_000_000_u64,
    ) {
        let rate = RateModel::Fixed(Rate::from_bps(bps));
        let config = LinkConfig { queue: QueueKind::DropTail(drop_tail), ..LinkConfig::bare(rate) };
        let DropTail { limit, in_service, .. } = drop_tail;
        let (from, to) = (Instant::from_nanos(window.0), Instant::from_nanos(window.0 + window.1));
        let mut link = Link::new(&config, Seed::new(1), "up").measuring(from, to);
        let story = run(&mut link, &traffic, Duration::from_nanos(extra));

        let mut naive = Naive {
            rate: bps, limit, in_service, waiting: VecDeque::new(), serving: None,
            busy: (0, 0), spans: Vec::new(), clock: 0, ends: Vec::new(),
        };
        let mut now = 0;
        for (number, &(gap, size)) in traffic.iter().enumerate() {
            now += gap;
            prop_assert_eq!(naive.arrive(number, size, now), story.accepted[number], "packet {}", number);
            prop_assert_eq!(naive.waiting.len() as u64, story.waiting[number], "after packet {}", number);
        }
        naive.advance(story.end.as_nanos());
        let arrived: Vec<(usize, u64)> = story.out.iter().filter_map(|(at, out)| match out {
            PathOutput::Arrived(packet) => Some((packet.number, at.as_nanos())),
            PathOutput::Repeated(_) | PathOutput::Lost(_) | PathOutput::Dropped(_) => None,
        }).collect();
        prop_assert_eq!(arrived, naive.ends.clone());
        let report = link.report(story.end);
        let (mean, p99, max, busy) = naive.figures(window.0, window.0 + window.1);
        prop_assert_eq!(
            (report.queue_packets_mean, report.queue_packets_p99, report.queue_packets_max, report.utilisation),
            (mean, p99, max, busy)
        );
        prop_assert_eq!(link.waiting(story.end), naive.waiting.len() as u64);
    }

    #[test]
    fn waiting_may_be_asked_for_at_any_later_time(
        bps in 800_000..20_000_000_u64, traffic in traffic(), later in 0..50_000_000_u64,
    ) {
        let rate = RateModel::Fixed(Rate::from_bps(bps));
        let queue = QueueKind::DropTail(DropTail::of_packets(Packets::new(50)));
        let config = LinkConfig { queue, ..LinkConfig::bare(rate) };
        let mut link = Link::new(&config, Seed::new(1), "up");
        let story = run(&mut link, &traffic, Duration::ZERO);
        let asked = story.end.saturating_add(Duration::from_nanos(later));
        let before = link.waiting(asked);
        link.report(asked); // settles
        prop_assert_eq!(link.waiting(asked), before);
    }

    #[test]
    fn a_seed_repeats_its_run(config in config(), traffic in traffic(), seed in any::<u64>()) {
        let story = || run(&mut Link::new(&config, Seed::new(seed), "up"), &traffic, Duration::from_secs(9)).out;
        prop_assert_eq!(story(), story());
    }

    #[test]
    fn fragments_cover_the_datagram_once_and_fit(total in 20..66_000_u64, mtus in prop::collection::vec(68..2_000_u64, 1..4)) {
        let mut parts = vec![FragmentRange::whole(Bytes::new(total))];
        for &mtu in &mtus {
            parts = parts.into_iter().flat_map(|part| part.fragments(Bytes::new(mtu))).collect();
        }
        let smallest = mtus.iter().copied().min().unwrap_or(0);
        let mut next = 0;
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            prop_assert_eq!(part.offset, next, "no gap, no overlap");
            prop_assert_eq!(part.offset % 8, 0);
            prop_assert_eq!(part.more, !last);
            prop_assert!(last || part.length % 8 == 0);
            prop_assert!(part.wire_size().get() <= smallest);
            next = part.end();
        }
        prop_assert_eq!(u64::from(next), total - 20);
    }

    #[test]
    fn fragments_reassemble_in_any_order_with_any_duplicates(
        total in 1_000..66_000_u64, mtu in 68..999_u64,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40), shuffle in any::<u64>(),
    ) {
        let mut parts: Vec<FragmentRange> = fragments(Bytes::new(total), Bytes::new(mtu)).collect();
        let mut stream = Seed::new(shuffle).stream("shuffle");
        for index in (1..parts.len()).rev() {
            parts.swap(index, (stream.bits() % (index as u64 + 1)) as usize);
        }
        let (last, rest) = parts.split_last().expect("there are several");
        let mut reassembly = Reassembly::default();
        for part in rest.iter().chain(order.iter().map(|index| index.get(rest))) {
            prop_assert_eq!(reassembly.handle_fragment(1_u8, *part, Ecn::NotEct, Instant::ZERO), Reassembled::Incomplete);
        }
        let whole = Reassembled::Whole { wire_size: Bytes::new(total), ecn: Ecn::NotEct };
        prop_assert_eq!(reassembly.handle_fragment(1, *last, Ecn::NotEct, Instant::ZERO), whole);
        prop_assert_eq!(reassembly.incomplete(), 0);
    }
}
