//! Both halves over a path without a connection: what leaves, what comes back, what the rate becomes.

use std::collections::VecDeque;

use proptest::prelude::*;
use talkpath_units::{Bytes, Duration, Ecn, Instant};
use talkpath_wire::dccp::{DccpOption, Options, Seq};

use super::options::read_feedback;
use super::receiver::SEND_LOSS_EVENT_RATE;
use super::*;
use crate::dccp::ccid::{Acknowledgement, Arrived, CcidReceiver, CcidSender, Clearance, Sent};
use crate::tfrc::{Revision, TfrcConfig, Variant, throughput};

/// Two halves, and a path of `one_way` that loses every `nth` data packet.
struct Loop {
    sender: TfrcSender,
    receiver: TfrcReceiver,
    one_way: Duration,
    nth: u64,
    data: VecDeque<(Instant, Arrived)>,
    acks: VecDeque<(Instant, Seq, Seq, Options)>,
    next: Seq,
    next_ack: Seq,
    greatest: Seq,
    departures: Vec<Instant>,
}

impl Loop {
    fn new(variant: Variant, one_way_ms: u64, nth: u64) -> Self {
        let config = TfrcConfig::new(Revision::Rfc5348, variant);
        // Numbers that wrap within the run.
        let first = Seq::new((1 << 48) - 500);
        Self {
            sender: TfrcSender::new(config),
            receiver: TfrcReceiver::new(config),
            one_way: Duration::from_millis(one_way_ms),
            nth,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            next: first,
            next_ack: Seq::new(7),
            greatest: first,
            departures: Vec::new(),
        }
    }

    /// One millisecond, in which there is always something to send.
    fn tick(&mut self, payload: Bytes, now: Instant) {
        while self.data.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, arrived)) = self.data.pop_front() else { break };
            self.greatest = self.greatest.max(arrived.seq);
            self.receiver.on_packet(&arrived, now);
        }
        if self.receiver.acknowledge_at().is_some_and(|at| at <= now) {
            let mut options = Options::EMPTY;
            self.receiver.put_options(&mut options, now);
            self.receiver.on_acknowledged(now);
            self.acks.push_back((now + self.one_way, self.next_ack, self.greatest, options));
            self.next_ack = self.next_ack.next();
        }
        while self.acks.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, seq, ack, options)) = self.acks.pop_front() else { break };
            self.sender
                .on_ack(&Acknowledgement { seq, ack, is_data: false, peer_lost: 0, options: &options }, now);
        }
        if self.sender.deadline().is_some_and(|at| at <= now) {
            self.sender.on_timeout(now);
        }
        while self.sender.clearance(payload, now) == Clearance::Now {
            self.send(payload, now);
        }
    }

    fn send(&mut self, payload: Bytes, now: Instant) {
        let ccval = self.sender.ccval(now);
        let seq = self.next;
        self.sender.on_sent(&Sent { seq, is_data: true, payload, queued: 1 }, now);
        self.departures.push(now);
        if !(self.departures.len() as u64).is_multiple_of(self.nth) {
            let arrived = Arrived { seq, is_data: true, payload, ccval, ndp_count: None, ecn: Ecn::NotEct };
            self.data.push_back((now + self.one_way, arrived));
        }
        self.next = seq.next();
    }

    /// Packets a second from the second `from` to the second `to`.
    fn run(&mut self, payload: u64, from: u64, to: u64) -> f64 {
        for ms in 0..to * 1000 {
            self.tick(Bytes::new(payload), Instant::from_millis(ms));
        }
        let counted = self.departures.iter().filter(|left| **left >= Instant::from_secs(from)).count();
        counted as f64 / (to - from) as f64
    }
}

/// RFC 5348 §3.1: a loss event in 200 packets, 1000 B, R = 100 ms: f(0.005) = 0.057735 + 0.002600 = 0.060335,
/// X = 1000 / (0.1 x 0.060335) = 165,741 B/s, 166 packets/s.
#[test]
fn ccid_3_settles_at_the_equations_rate() {
    let rate = Loop::new(Variant::Standard, 50, 200).run(1000, 30, 90);
    let expected = throughput(1000.0, 0.1, 0.005) / 1000.0;
    assert!((expected - 165.741).abs() < 0.01);
    assert!((rate / expected - 1.0).abs() < 0.03, "{rate} packets/s for {expected}");
}

/// RFC 4828 §4.4 and RFC 5622 §8.7: every 50th packet of 160 B is lost, R = 1 s. At 54.6 packets/s two losses
/// fall into each loss event of 100 packets, and each is over in 1.8 s: short, so that p = 2 / 100,
/// not 1 / 100. 1460 x 160 / 196 / (1 x f(0.02)) = 1191.8 / 0.136517 = 8730 B/s, 54.6 packets/s.
#[test]
fn ccid_4_counts_every_loss_of_short_intervals() {
    let rate = Loop::new(Variant::SmallPackets, 500, 50).run(160, 100, 300);
    let expected = throughput(1460.0, 1.0, 0.02) * (160.0 / 196.0) / 160.0;
    assert!((expected - 54.56).abs() < 0.01);
    assert!((rate / expected - 1.0).abs() < 0.1, "{rate} packets/s for {expected}");
}

/// RFC 4828 §3: whatever the path gives.
#[test]
fn ccid_4_sends_at_most_a_hundred_packets_a_second() {
    let rate = Loop::new(Variant::SmallPackets, 5, u64::MAX).run(160, 5, 10);
    assert!((99.0..=100.0).contains(&rate), "{rate}");
}

/// RFC 4342 §6: a feedback packet once a round trip, and one at once for a new loss event.
#[test]
fn feedback_comes_once_a_round_trip_and_with_each_loss_event() {
    let mut path = Loop::new(Variant::Standard, 50, 200);
    let _ = path.run(1000, 30, 90);
    let feedbacks = path.next_ack.distance_from(Seq::new(7)) as f64;
    // 90 s of round trips, and about 166 x 90 / 200 loss events.
    assert!((850.0..=1000.0).contains(&feedbacks), "{feedbacks}");
    let events = path.sender.counters().congestion_events;
    assert!((60..=85).contains(&events), "{events}");
}

/// RFC 4342 §8.4 and §8.5.
#[test]
fn the_loss_event_rate_is_sent_where_it_is_negotiated() {
    let options_with = |feature: Option<u64>| {
        let mut path = Loop::new(Variant::Standard, 50, 20);
        if let Some(value) = feature {
            path.receiver.on_feature(SEND_LOSS_EVENT_RATE, value);
        }
        let _ = path.run(1000, 0, 10);
        path.acks.back().map(|(.., options)| *options).expect("one is always under way")
    };
    let rate_of = |options: &Options| {
        options.iter().find_map(|option| match option {
            DccpOption::Ccid { kind: 192, data: &[a, b, c, d] } => Some(u32::from_be_bytes([a, b, c, d])),
            _ => None,
        })
    };
    assert_eq!(rate_of(&options_with(None)), None);
    assert_eq!(rate_of(&options_with(Some(1))), Some(20));
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    /// Nothing that a peer can say panics, and the rate stays positive.
    #[test]
    fn no_options_upset_the_sender(
        acks in prop::collection::vec((0_u64..40, 0_u64..40, prop::collection::vec(any::<u8>(), 0..60), any::<bool>()), 1..30),
    ) {
        let mut path = Loop::new(Variant::SmallPackets, 20, 7);
        let _ = path.run(160, 0, 1);
        for (step, (seq, back, bytes, intervals)) in acks.into_iter().enumerate() {
            let now = Instant::from_millis(1000 + step as u64 * 30);
            let mut area = vec![43, 4, 0, 9, 194, 6, 0, 0, 9, 9];
            if intervals {
                let whole = bytes.len() / 9 * 9;
                area.extend([193, 3 + whole as u8, (back % 4) as u8]);
                area.extend(&bytes[..whole]);
            } else {
                area.extend(&bytes);
            }
            let options = Options::from_wire(&area);
            let ack = path.next.wrapping_sub(back);
            path.sender.on_ack(&Acknowledgement { seq: Seq::new(1000 + seq), ack, is_data: false, peer_lost: 0, options: &options }, now);
            let wait = path.sender.clearance(Bytes::new(160), now);
            prop_assert!(!matches!(wait, Clearance::At(at) if at > now + Duration::from_secs(130)), "{wait:?}");
        }
    }

    /// Nor does any order of packets upset the receiver; what it reports is within the option's bounds.
    #[test]
    fn no_arrivals_upset_the_receiver(
        arrivals in prop::collection::vec((0_u64..200, any::<bool>(), 0_u8..16, prop::option::of(0_u64..9), 0_u64..400), 1..200),
    ) {
        let config = TfrcConfig::new(Revision::Rfc3448, Variant::SmallPackets);
        let mut receiver = TfrcReceiver::new(config);
        let mut now = Instant::from_secs(1);
        for (offset, is_data, ccval, ndp_count, gap) in arrivals {
            now += Duration::from_millis(gap);
            let seq = Seq::new((1 << 48) - 100).wrapping_add(offset);
            let payload = Bytes::new(if is_data { 160 } else { 0 });
            let ecn = if gap == 7 { Ecn::Ce } else { Ecn::NotEct };
            receiver.on_packet(&Arrived { seq, is_data, payload, ccval, ndp_count, ecn }, now);
            if receiver.acknowledge_at().is_some() {
                let mut options = Options::EMPTY;
                receiver.put_options(&mut options, now);
                receiver.on_acknowledged(now);
                prop_assert!(read_feedback(&options).is_some());
            }
        }
    }
}
