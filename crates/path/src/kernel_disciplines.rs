//! Disciplines of Linux 6.1 beside ours, by decisions and by shares. `cargo xtask kernel-disciplines` boots
//! the kernel and logs what it did; a short log is kept here.
//!
//! ```text
//!  case NAME PARAMETERS            what the kernel had
//!  + NUMBER CLASS BYTES NS         a packet came, and was taken; `.` is not known
//!  x NUMBER CLASS BYTES NS         a packet came, and was dropped
//!  - NS SENT WAKE                  a packet was asked for, this one was given (`.` if none), and until when the
//!                                  discipline wants to wait
//!  sent N missing N runs N doubled N damaged N bits N reordered N
//! ```
//!
//! Sizes in a log are Linux's, with 14 B of Ethernet header. Where a packet of tbf waits for tokens it is
//! still in the queue there; here it is in service. So the limit of tbf is compared with all waiting packets
//! in the queue.

use std::io::Read as _;

use talkpath_units::{Bytes, Duration, Instant, Packets, Rate, Seed};

use crate::config::{LinkConfig, LossModel, RateModel};
use crate::damage::{Check, Damage};
use crate::dscp::Dscp;
use crate::framing::Framing;
use crate::link::{Link, PathOutput};
use crate::occupancy::Window;
use crate::queue::test_disciplines::Frame;
use crate::queue::{
    Classes, Discipline, DropTail, Drr, LinkFacts, Priority, Queue, QueueKind, QueueLimit, Queued, Signals,
};
use crate::reordering::Reordering;
use crate::token_bucket::{TokenBucket, Tokens};

const LINK: LinkFacts = LinkFacts { mtu: Bytes::new(1514), perturbation: 1 };

/// A line of a log.
#[derive(Debug)]
enum Entry {
    Came { packet: Frame, is_taken: bool, at: Option<Instant> },
    Asked { at: Option<Instant>, sent: Option<u64>, wake: Option<Instant> },
    Shares(Shares),
}

/// Figures of packets with numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    sent: u64,
    missing: u64,
    /// Runs of missing packets.
    runs: u64,
    /// Packets that arrived a second time.
    doubled: u64,
    damaged: u64,
    /// Packets that arrived after a later packet (RFC 4737 §3).
    reordered: u64,
}

/// What was compared, in words.
fn replay(log: &str) -> Vec<String> {
    log.split("case ").filter(|case| !case.trim().is_empty()).map(compare).collect()
}

fn compare(case: &str) -> String {
    let (name, lines) = case.split_once('\n').unwrap_or((case, ""));
    let entries: Vec<Entry> = lines.lines().filter(|line| !line.is_empty()).map(entry).collect();
    let words: Vec<&str> = name.split(' ').collect();
    let parameters: Vec<f64> =
        words[1..].iter().map(|word| word.parse().unwrap_or_else(|why| panic!("{name}: {why}"))).collect();
    let decisions = match (words[0], &parameters[..]) {
        ("tbf", &[bps, burst, limit]) => shaped(&entries, &bucket(bps, burst), limit as u64),
        ("police", &[bps, burst]) => policed(&entries, &bucket(bps, burst)),
        ("priority", &[limit]) => {
            let config = Priority { classes: classes(), limit: packets(limit) };
            in_classes(&entries, &QueueKind::Priority(config))
        }
        ("drr", &[first, second, third, limit]) => {
            let quanta = [first, second, third].map(|quantum| Some(Bytes::new(quantum as u64))).to_vec();
            in_classes(&entries, &QueueKind::Drr(Drr { classes: classes(), quanta, limit: packets(limit) }))
        }
        (model, parameters) => return format!("{name}: near: {}", by_shares(&entries, model, parameters)),
    };
    format!("{name}: identical: {decisions}")
}

fn entry(line: &str) -> Entry {
    let words: Vec<&str> = line.split(' ').collect();
    let known = |place: usize| {
        (words[place] != ".")
            .then(|| words[place].parse::<u64>().unwrap_or_else(|why| panic!("{line}: {why}")))
    };
    let at = |place: usize| known(place).map(Instant::from_nanos);
    match words[0] {
        "+" | "x" => {
            let class = ["EF", "AF41", "CS0"][known(2).unwrap() as usize];
            let dscp = Dscp::named(class).unwrap();
            let packet = Frame { number: known(1).unwrap(), dscp, ..Frame::of_size(known(3).unwrap()) };
            Entry::Came { packet, is_taken: words[0] == "+", at: at(4) }
        }
        "-" => Entry::Asked { at: at(1), sent: known(2), wake: at(3) },
        _ => {
            let of = |name: &str| {
                let place = words.iter().position(|word| *word == name);
                known(place.unwrap_or_else(|| panic!("no {name} in {line}")) + 1).unwrap()
            };
            assert_eq!(of("bits"), of("damaged"), "netem changes one bit of a packet");
            Entry::Shares(Shares {
                sent: of("sent"),
                missing: of("missing"),
                runs: of("runs"),
                doubled: of("doubled"),
                damaged: of("damaged"),
                reordered: of("reordered"),
            })
        }
    }
}

fn bucket(bps: f64, burst: f64) -> TokenBucket {
    TokenBucket { rate: Rate::from_bps(bps as u64), burst: Bytes::new(burst as u64) }
}

fn classes() -> Classes {
    Classes::new(&[vec![Dscp::named("EF").unwrap()], vec![Dscp::named("AF41").unwrap()]])
}

fn packets(limit: f64) -> QueueLimit {
    QueueLimit::Packets(Packets::new(limit as u64))
}

fn take(queue: &mut impl Discipline<Frame>, at: Instant, signals: &mut Signals<Frame>) -> Option<u64> {
    queue.dequeue(at, signals).map(|Queued { packet, .. }| packet.number)
}

/// Feeds a packet, and returns whether it is taken.
fn feed(
    queue: &mut impl Discipline<Frame>,
    packet: Frame,
    at: Instant,
    signals: &mut Signals<Frame>,
) -> bool {
    queue.enqueue(packet, Bytes::ZERO, at, signals);
    core::iter::from_fn(|| signals.pop_drop()).count() == 0
}

/// tbf: what is dropped, which packet is sent at which reading of the clock, and until when it waits.
fn shaped(entries: &[Entry], bucket: &TokenBucket, limit: u64) -> String {
    let config = DropTail { limit: QueueLimit::Bytes(Bytes::new(limit)), in_service: false, mark_at: None };
    let mut queue = Queue::new(&QueueKind::DropTail(config), &LINK);
    let (mut signals, mut tokens) = (Signals::new(Window::default()), Tokens::new(bucket));
    let mut head: Vec<u64> = Vec::new();
    let (mut sent_all, mut dropped, mut waits) = (0, 0, 0);
    for entry in entries {
        match *entry {
            Entry::Came { packet, is_taken, .. } => {
                let ours = feed(&mut queue, packet, Instant::ZERO, &mut signals);
                assert_eq!(ours, is_taken, "{packet:?}");
                dropped += usize::from(!is_taken);
                if is_taken {
                    head.push(packet.size);
                }
            }
            Entry::Asked { at: None, sent, .. } => assert_eq!(sent, None),
            Entry::Asked { at: Some(at), sent, wake } => {
                let size = Bytes::new(head[sent_all]);
                let ready = tokens.clone().take_when_there(size, at);
                assert_eq!(ready <= at, sent.is_some(), "{entry:?}");
                if sent.is_none() {
                    assert_eq!(Some(ready), wake, "{entry:?}");
                    waits += 1;
                    continue;
                }
                assert!(tokens.take(size, at));
                assert_eq!(take(&mut queue, at, &mut signals), sent);
                sent_all += 1;
            }
            Entry::Shares(_) => panic!("{entry:?}"),
        }
    }
    assert!(
        sent_all > 50 && dropped > 5 && waits > 20,
        "{sent_all}, {dropped}, {waits}: too little to compare"
    );
    format!("{sent_all} sent, {dropped} dropped, {waits} waits to the nanosecond")
}

fn policed(entries: &[Entry], bucket: &TokenBucket) -> String {
    let all = DropTail::of_packets(Packets::MAX);
    let mut queue = Queue::new(&QueueKind::DropTail(all), &LINK).policed(bucket, Framing::None);
    let mut signals = Signals::new(Window::default());
    let (mut passed, mut dropped) = (0, 0);
    for entry in entries {
        let Entry::Came { packet, is_taken, at: Some(at) } = *entry else { panic!("{entry:?}") };
        assert_eq!(feed(&mut queue, packet, at, &mut signals), is_taken, "{entry:?}");
        passed += usize::from(is_taken);
        dropped += usize::from(!is_taken);
    }
    assert!(passed > 50 && dropped > 20, "{passed} passed, {dropped} dropped: too little to compare");
    format!("{passed} passed, {dropped} dropped")
}

fn in_classes(entries: &[Entry], kind: &QueueKind) -> String {
    let mut queue = Queue::new(kind, &LINK);
    let mut signals = Signals::new(Window::default());
    let (mut taken, mut dropped) = (0, 0);
    for entry in entries {
        match *entry {
            Entry::Came { packet, is_taken, .. } => {
                assert_eq!(feed(&mut queue, packet, Instant::ZERO, &mut signals), is_taken, "{entry:?}");
                dropped += usize::from(!is_taken);
            }
            Entry::Asked { sent, .. } => {
                assert_eq!(take(&mut queue, Instant::ZERO, &mut signals), sent, "{entry:?}");
                taken += usize::from(sent.is_some());
            }
            Entry::Shares(_) => panic!("{entry:?}"),
        }
    }
    assert!(taken > 50 && dropped > 5, "{taken} taken, {dropped} dropped: too little to compare");
    format!("{taken} taken, {dropped} dropped")
}

/// netem: our link draws for as many packets, and each share may differ by four standard errors of the
/// difference of two such runs.
fn by_shares(entries: &[Entry], model: &str, parameters: &[f64]) -> String {
    let [Entry::Shares(kernel)] = entries else { panic!("{entries:?}") };
    let mut config = LinkConfig::bare(RateModel::Unlimited);
    // A state of a chain lasts, so that its packets tell less than independent ones: n (1 - m) / (1 + m) of
    // them, where m = 1 - p - r is the correlation of a state with the next.
    let mut independent = 1.0;
    match (model, parameters) {
        ("loss", &[rate]) => config.loss = LossModel::Bernoulli { rate },
        ("gemodel", &[p, r, loss_bad, loss_good]) => {
            config.loss = LossModel::GilbertElliott { p, r, loss_bad, loss_good };
            independent = (p + r) / (2.0 - p - r);
        }
        ("duplicate", &[share]) => config.duplicate = share,
        ("damage", &[share]) => config.damage = Some(Damage { share, check: Check::Checksum }),
        ("reorder", &[share, ms]) => {
            config.reorder = Some(Reordering { share, by: Duration::from_millis(ms as u64) });
        }
        ("loss-and-duplicate", &[rate, share]) => {
            (config.loss, config.duplicate) = (LossModel::Bernoulli { rate }, share);
        }
        _ => panic!("no such model: {model} {parameters:?}"),
    }
    let ours = carry(&config, kernel.sent);
    let sent = kernel.sent as f64;
    let mut words = Vec::new();
    let mut near = |name: &str, theirs: f64, ours: f64| {
        let error = (ours * (1.0 - ours) * 2.0 / (sent * independent)).sqrt();
        assert!(
            (theirs - ours).abs() <= 4.0 * error,
            "{name}: {theirs} there, {ours} here, one error is {error}"
        );
        words.push(format!("{name} {theirs:.5} there, {ours:.5} here"));
    };
    let share = |count: u64| count as f64 / sent;
    if let ("loss-and-duplicate", &[rate, double]) = (model, parameters) {
        // The difference that is documented: a packet that netem chose to double and to lose arrives once,
        // and its copy is lost as any packet is.
        near("missing, without those that were to be doubled", share(kernel.missing) / (1.0 - double), rate);
        near("missing here", rate, share(ours.missing));
        near("doubled there, by its rule", share(kernel.doubled), double * (1.0 - rate) * (1.0 - rate));
        near("doubled here, by ours", double * (1.0 - rate), share(ours.doubled));
    } else {
        for (name, theirs, ours) in [
            ("missing", kernel.missing, ours.missing),
            ("runs of missing", kernel.runs, ours.runs),
            ("doubled", kernel.doubled, ours.doubled),
            ("damaged", kernel.damaged, ours.damaged),
            ("reordered", kernel.reordered, ours.reordered),
        ] {
            if theirs + ours > 0 {
                near(name, share(theirs), share(ours));
            }
        }
    }
    assert!(!words.is_empty(), "nothing to compare");
    words.join("; ")
}

/// Sends `sent` packets through a link, 100 us apart.
fn carry(config: &LinkConfig, sent: u64) -> Shares {
    let mut link = Link::new(config, Seed::new(52), "up");
    let mut shares = Shares { sent, ..Shares::default() };
    let mut copies = vec![0_u32; sent as usize];
    let mut highest = 0;
    let mut arrive = |packet: Frame, shares: &mut Shares| {
        let copies = &mut copies[packet.number as usize];
        shares.doubled += u64::from(*copies > 0);
        *copies += 1;
        shares.reordered += u64::from(packet.number < highest);
        highest = highest.max(packet.number);
    };
    let gap = Duration::from_micros(100);
    // 3 s, longer than any delay of a case.
    let end = sent + 30_000;
    for number in 0..end {
        let now = Instant::from_nanos(number * gap.as_nanos());
        if number < sent {
            link.handle_packet(Frame { number, ..Frame::of_size(100) }, now);
        }
        while let Some(output) = link.poll_output(now) {
            match output {
                PathOutput::Arrived(packet) => arrive(packet, &mut shares),
                PathOutput::Repeated(packet) => {
                    arrive(packet, &mut shares);
                    arrive(packet, &mut shares);
                }
                PathOutput::Lost(_) => {}
                PathOutput::Dropped(dropped) => panic!("{dropped:?}"),
            }
        }
    }
    shares.damaged = link.report(Instant::from_nanos(end * gap.as_nanos())).damaged;
    let is_missing = |number: usize| copies[number] == 0;
    shares.missing = (0..copies.len()).filter(|&number| is_missing(number)).count() as u64;
    let begins_run = |&number: &usize| is_missing(number) && (number == 0 || !is_missing(number - 1));
    shares.runs = (0..copies.len()).filter(begins_run).count() as u64;
    shares
}

/// A log on standard input: `cargo xtask kernel-disciplines` gives its own.
#[test]
#[ignore = "needs a log on standard input"]
fn our_disciplines_do_as_the_kernels_of_this_log_did() {
    let mut log = String::new();
    std::io::stdin().read_to_string(&mut log).unwrap();
    let compared = replay(&log);
    assert!(!compared.is_empty(), "an empty log");
    compared.iter().for_each(|case| println!("{case}"));
}

/// A part of what `cargo xtask kernel-disciplines` logged of Linux 6.1.
#[test]
fn ours_do_as_the_kernels_of_the_kept_log_did() {
    let compared = replay(include_str!("kernel_disciplines/short.log"));
    let has = |name: &str| compared.iter().any(|case| case.starts_with(name));
    let expected = ["tbf", "police", "priority", "drr", "loss", "gemodel", "duplicate", "damage", "reorder"];
    assert!(expected.into_iter().all(has), "{compared:?}");
}
