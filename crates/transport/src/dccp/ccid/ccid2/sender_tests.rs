//! CCID 2's sender against stories of acknowledgements, worked by hand after RFC 4341.

use talkpath_config::CcidKind;
use talkpath_wire::dccp::Options;

use super::*;
use crate::dccp::AckHistory;

const RTT: Duration = Duration::from_millis(100);

struct Story {
    sender: Ccid2Sender,
    arrived: AckHistory,
    now: Instant,
    next: u64,
}

impl Story {
    fn new(config: &DccpConfig) -> Self {
        let mut sender = Ccid2Sender::new(config);
        sender.on_handshake(RTT, Instant::ZERO);
        Self { sender, arrived: AckHistory::default(), now: Instant::ZERO, next: 1 }
    }

    /// Sends data packets while the window lets it, at most `most`; returns how many.
    fn send(&mut self, most: u64) -> u64 {
        let payload = Bytes::new(1000);
        let mut count = 0;
        while count < most && self.sender.clearance(payload, self.now) == Clearance::Now {
            let sent = Sent { seq: Seq::new(self.next), is_data: true, payload, queued: 9 };
            self.sender.on_sent(&sent, self.now);
            self.next += 1;
            count += 1;
        }
        count
    }

    fn arrive(&mut self, packets: impl IntoIterator<Item = u64>) {
        for seq in packets {
            self.arrived.on_packet(Seq::new(seq), false);
        }
    }

    /// All that arrived is acknowledged.
    fn ack(&mut self) {
        self.ack_with(&[], 0);
    }

    fn ack_with(&mut self, more: &[DccpOption<'_>], peer_lost: u64) {
        let mut options = Options::EMPTY;
        self.arrived.put(&mut options);
        for &option in more {
            assert!(options.push(option));
        }
        let ack = self.arrived.latest().unwrap();
        let ack = Acknowledgement { seq: Seq::new(1), ack, is_data: false, peer_lost, options: &options };
        self.sender.on_ack(&ack, self.now);
    }

    fn acknowledge_in_pairs(&mut self, from: u64, to: u64) {
        for seq in from..=to {
            self.arrive([seq]);
            if seq % 2 == 0 {
                self.ack();
            }
        }
    }
}

fn config() -> DccpConfig {
    DccpConfig::new(CcidKind::Ccid2)
}

/// RFC 3390 §1: four packets up to 1095 bytes, 4380 bytes up to 2190, then two.
#[test]
fn the_initial_window_follows_the_packet_size() {
    for (size, packets) in [(160, 4), (1095, 4), (1096, 3), (1460, 3), (1461, 2), (4000, 2)] {
        assert_eq!(Ccid2Sender::new(&config()).initial(Bytes::new(size)), packets, "{size}");
    }
}

/// RFC 4341 §5: slow start adds one packet for every two acknowledged.
#[test]
fn slow_start_adds_a_packet_for_two() {
    let mut story = Story::new(&config());
    assert_eq!(story.send(99), 4);
    story.acknowledge_in_pairs(1, 4);
    assert_eq!((story.sender.cwnd, story.sender.pipe), (6, 0));
    assert_eq!(story.send(99), 6);
    story.acknowledge_in_pairs(5, 10);
    assert_eq!(story.sender.cwnd, 9);
    // At most Ack Ratio / 2 = 1 an acknowledgement, however much it acknowledges.
    story.send(99);
    story.arrive(11..=19);
    story.ack();
    assert_eq!(story.sender.cwnd, 10);
}

/// RFC 4341 §5: above ssthresh one packet for each window of data acknowledged.
#[test]
fn congestion_avoidance_adds_a_packet_a_window() {
    let mut story = Story::new(&DccpConfig { initial_ssthresh: Some(Packets::new(4)), ..config() });
    for (window, last) in [(4, 4), (5, 9), (6, 15)] {
        assert_eq!(story.send(99), window);
        story.arrive(last - window + 1..=last);
        story.ack();
        assert_eq!(story.sender.cwnd, window + 1);
    }
}

/// RFC 4341 §5, 2: three later packets, data or not, make a hole a loss; two losses of one window are one
/// event.
#[test]
fn three_later_packets_make_a_loss_and_a_window_is_halved_once() {
    let mut story = Story::new(&DccpConfig { initial_window: Some(Packets::new(10)), ..config() });
    assert_eq!(story.send(99), 10);
    story.arrive([1, 3]);
    story.ack();
    story.arrive([4]);
    story.ack();
    assert_eq!((story.sender.cwnd, story.sender.pipe), (11, 7));
    story.arrive([6]);
    story.ack();
    assert_eq!((story.sender.cwnd, story.sender.ssthresh, story.sender.pipe), (5, 5, 5));
    story.arrive([7, 8]);
    story.ack();
    assert_eq!((story.sender.cwnd, story.sender.pipe), (5, 2), "5 is lost and of the same event");
    assert_eq!(story.sender.counters().congestion_events, 1);
    // A late arrival of what was taken as lost changes nothing: pipe falls once a packet.
    story.arrive([2, 5]);
    story.ack();
    assert_eq!(story.sender.pipe, 2);
    // A loss of what was sent after the event was noticed is another.
    assert_eq!(story.send(99), 3);
    story.arrive([9, 10, 12, 13]);
    story.ack();
    assert_eq!(story.sender.counters().congestion_events, 1);
    story.send(1);
    story.arrive([14]);
    story.ack();
    assert_eq!((story.sender.cwnd, story.sender.counters().congestion_events), (2, 2));
}

/// RFC 4341 §5, 3: ssthresh is half the window, cwnd one packet, pipe zero, the timer backed off.
#[test]
fn a_timeout_leaves_one_packet() {
    let mut story = Story::new(&DccpConfig { initial_window: Some(Packets::new(10)), ..config() });
    story.send(99);
    // srtt 100 ms, and the minimum under the variance.
    assert_eq!(story.sender.deadline(), Some(Instant::from_millis(500)));
    story.now = Instant::from_millis(500);
    story.sender.on_timeout(story.now);
    assert_eq!((story.sender.cwnd, story.sender.ssthresh, story.sender.pipe), (1, 5, 0));
    assert_eq!(story.send(99), 1);
    assert_eq!(story.sender.deadline(), Some(Instant::from_millis(1500)));
}

/// RFC 4341 §5: a mark is a congestion event and adds nothing; cwnd never falls below one, ssthresh below
/// two.
#[test]
fn marks_halve_as_losses_do() {
    let mut story = Story::new(&DccpConfig { initial_window: Some(Packets::new(3)), ..config() });
    story.send(99);
    story.arrived.on_packet(Seq::new(1), true);
    story.ack();
    assert_eq!((story.sender.cwnd, story.sender.ssthresh, story.sender.pipe), (1, 2, 2));
}

/// RFC 4341 §5.2: Drop Code 2 takes one packet each, and slow start ends; RFC 4340 §11.7's blocks.
#[test]
fn a_full_receive_buffer_takes_a_packet_each() {
    let mut story = Story::new(&DccpConfig { initial_window: Some(Packets::new(10)), ..config() });
    story.send(99);
    story.arrive(1..=4);
    story.ack_with(&[DccpOption::DataDropped(&[0, 0xa1])], 0);
    // Two of four count as received: one packet of growth, and two less.
    assert_eq!((story.sender.cwnd, story.sender.ssthresh), (9, 9));
    story.arrive(5..=6);
    story.ack_with(&[DccpOption::DataDropped(&[1, 0x81])], 0);
    assert_eq!(story.sender.cwnd, 9, "Drop Code 0 is as if received, and this was no whole window");
    story.arrive([7]);
    story.ack_with(&[DccpOption::DataDropped(&[0xb0])], 0);
    assert_eq!(story.sender.cwnd, 4, "a corrupt packet is as if marked");
}

/// RFC 4340 §11.6, RFC 4341 §5.2.
#[test]
fn a_slow_receiver_stops_growth_for_a_round_trip() {
    let mut story = Story::new(&config());
    story.send(99);
    story.arrive(1..=2);
    story.ack_with(&[DccpOption::SlowReceiver], 0);
    assert_eq!((story.sender.cwnd, story.sender.ssthresh), (4, 4));
}

/// RFC 4341 §6.1.2: doubled for a window with lost acknowledgements, within half the window; falls by one
/// after cwnd / (R^2 - R) windows without.
#[test]
fn the_ack_ratio_follows_lost_acknowledgements() {
    let ssthresh = Some(Packets::new(8));
    let mut story =
        Story::new(&DccpConfig { initial_window: ssthresh, initial_ssthresh: ssthresh, ..config() });
    let window = |story: &mut Story, peer_lost| {
        let count = story.send(99);
        story.arrive(story.next - count..story.next);
        story.ack_with(&[], peer_lost);
        story.sender.wanted_ack_ratio()
    };
    assert_eq!(window(&mut story, 1), Some(4));
    story.sender.on_feature(Feature::AckRatio.number(), 4);
    assert_eq!(window(&mut story, 1), Some(5), "at most half of 10, the window by then");
    story.sender.on_feature(Feature::AckRatio.number(), 5);
    // cwnd is 11: one window is more than 11 / 20 of one.
    assert_eq!(window(&mut story, 0), Some(4));
    for _ in 0..30 {
        if let Some(ratio) = window(&mut story, 0) {
            story.sender.on_feature(Feature::AckRatio.number(), u64::from(ratio));
        }
    }
    assert_eq!(
        (story.sender.ack_ratio.current, story.sender.wanted_ack_ratio()),
        (2, None),
        "two is the least"
    );
}

/// RFC 4341 §5.1 and RFC 7661 §1: the key decides whether an unfilled window grows.
#[test]
fn an_unfilled_window_grows_only_where_the_key_lets_it() {
    for (app_limited_growth, cwnd) in [(true, 14), (false, 4)] {
        let mut story = Story::new(&DccpConfig { app_limited_growth, ..config() });
        for _ in 0..20 {
            let sent = Sent { seq: Seq::new(story.next), is_data: true, payload: Bytes::new(160), queued: 0 };
            story.sender.on_sent(&sent, story.now);
            story.arrive([story.next]);
            story.next += 1;
            story.ack();
        }
        assert_eq!(story.sender.cwnd, cwnd);
    }
}

/// RFC 4341 §5: half again as much each round trip; by the key, twice as much.
#[test]
fn slow_start_opens_by_half_a_packet_or_by_a_whole_one_for_each_acknowledged() {
    for (growth_by_each, windows) in [(false, [4, 6, 9, 13]), (true, [4, 8, 16, 32])] {
        let mut story = Story::new(&DccpConfig { growth_by_each, ..config() });
        for cwnd in windows {
            let first = story.next;
            assert_eq!(story.send(99), cwnd, "{growth_by_each}");
            // Two packets an acknowledgement, as Ack Ratio has it.
            for pair in (first..story.next).collect::<Vec<_>>().chunks(2) {
                story.arrive(pair.iter().copied());
                story.ack();
            }
        }
    }
}

/// RFC 5681 §4.1, RFC 4341 §5.1.
#[test]
fn an_idle_sender_restarts_with_the_initial_window() {
    let mut story = Story::new(&DccpConfig { initial_ssthresh: Some(Packets::new(2)), ..config() });
    for _ in 0..8 {
        let count = story.send(99);
        story.arrive(story.next - count..story.next);
        story.ack();
    }
    assert!(story.sender.cwnd > 4);
    story.now += Duration::from_secs(5);
    assert_eq!(story.send(99), 4);
}
