//! Two ends of our DCCP on a path, in virtual time: what is sent arrives, windows hold, and both ends close.
#![allow(clippy::tests_outside_test_module, reason = "an integration test")]

use talkpath_config::{CcidKind, DccpConfig, EncapsulatedConfig, Role, TransportConfig};
use talkpath_transport::AnyTransport;
use talkpath_transport::dccp::State;
use talkpath_units::{Bytes, Duration, Instant, Packets, Seed};
use talkpath_wire::dccp::{PacketKind, ResetCode};
use talkpath_wire::encapsulated::EncapsulatedPacket;
use talkpath_wire::{Delivery, Message, Packet, Transport};

use crate::pair_net::{self, A, B, Event, Pair, Wire};

const DELAY: Duration = Duration::from_millis(50);

fn pair(config: &DccpConfig, wire: Wire) -> Pair {
    let config = TransportConfig::Encapsulated(EncapsulatedConfig::Dccp(config.clone()));
    let end = |role| AnyTransport::new(&config, role, Bytes::new(1500), Seed::new(3), None);
    Pair::of([end(Role::Active), end(Role::Passive)], DELAY, wire)
}

fn config() -> DccpConfig {
    DccpConfig::new(CcidKind::Ccid2)
}

fn dccp(pair: &Pair, at: usize) -> &talkpath_transport::dccp::Dccp {
    match &pair.ends[at] {
        AnyTransport::Dccp(dccp) => dccp,
        _ => panic!("both ends are DCCP"),
    }
}

/// Sends `count` messages as fast as A takes them; returns the numbers that B read, and when it was done.
fn transfer(pair: &mut Pair, count: u64) -> (Vec<u64>, Instant) {
    let (mut next, mut read) = (0, Vec::new());
    let mut steps = 0;
    loop {
        while next < count && pair.ends[A].writable() > Bytes::ZERO {
            let message = Message { seq: next, size: Bytes::new(1000), due: pair.now };
            assert_eq!(pair.ends[A].handle_message(message, pair.now), Ok(()));
            pair.flush(A);
            next += 1;
        }
        while let Some(Delivery::Message { seq, .. }) = pair.ends[B].poll_delivery(Bytes::MAX, pair.now) {
            read.push(seq);
        }
        let is_done = next == count && pair.ends[A].observe().send_buffer == Bytes::ZERO;
        steps += 1;
        assert!(steps < 2_000_000, "it comes to an end");
        if is_done && pair.now > Instant::from_secs(1) && read.last() == Some(&(count - 1)) {
            return (read, pair.now);
        }
        if pair.step().is_none() || (is_done && steps > 1_000_000) {
            return (read, pair.now);
        }
    }
}

#[test]
fn a_clean_path_delivers_every_message_in_order() {
    let mut pair = pair(&config(), pair_net::perfect_wire());
    let (read, _) = transfer(&mut pair, 5000);
    assert_eq!(read, (0..5000).collect::<Vec<_>>());
    assert_eq!(dccp(&pair, A).counters().timeouts, Some(0));
}

/// RFC 4340 §7.5.2: windows of thousands of packets need a Sequence Window that grows with them.
#[test]
fn a_large_window_widens_the_sequence_window_before_it_is_needed() {
    let fast = DccpConfig { initial_window: Some(Packets::new(150)), ..config() };
    let mut pair = pair(&fast, pair_net::perfect_wire());
    let (read, _) = transfer(&mut pair, 60_000);
    assert_eq!(read.len(), 60_000);
    assert!(dccp(&pair, A).observe().cwnd.unwrap() > 1000.0);
}

/// One in fifty packets is lost each way: all that arrives is read once, cwnd is halved, Syncs are not
/// needed.
#[test]
fn losses_both_ways_halve_the_window_and_lose_nothing_else() {
    use std::cell::RefCell;
    use std::rc::Rc;
    let lost = Rc::new(RefCell::new((Vec::new(), 0)));
    let seen = Rc::clone(&lost);
    let mut count = [0_u32; 2];
    let wire: Wire = Box::new(move |at, transmit, _| {
        let Packet::Encapsulated(EncapsulatedPacket::Dccp(packet)) = &transmit.packet else {
            panic!("DCCP alone")
        };
        let mut seen = seen.borrow_mut();
        seen.1 += u32::from(matches!(packet.kind, PacketKind::Sync | PacketKind::SyncAck));
        count[at] += 1;
        if count[at] % 50 == 49 {
            if packet.payload > 0 {
                seen.0.push(packet.message);
            }
            return [None, None];
        }
        [Some(Duration::ZERO), None]
    });
    let mut pair = pair(&config(), wire);
    let (read, _) = transfer(&mut pair, 5000);
    let (lost, syncs) = &*lost.borrow();
    let expected: Vec<u64> = (0..5000).filter(|seq| !lost.contains(seq)).collect();
    assert_eq!(read, expected);
    assert_eq!(*syncs, 0);
    let seen = dccp(&pair, A).observe();
    assert!(seen.ssthresh.unwrap() < 40.0, "{seen:?}");
}

/// RFC 4340 §8.3: the client, or the server with a CloseReq; either way the client holds TIMEWAIT.
#[test]
fn both_ways_of_closing_end_with_code_closed() {
    for closer in [A, B] {
        let mut pair = pair(&config(), pair_net::perfect_wire());
        transfer(&mut pair, 10);
        pair.shutdown(closer);
        while dccp(&pair, A).state() != State::TimeWait && pair.step().is_some() {}
        assert_eq!((dccp(&pair, A).state(), dccp(&pair, B).state()), (State::TimeWait, State::Closed));
        for at in [A, B] {
            assert_eq!(dccp(&pair, at).ended_by(), Some(ResetCode::CLOSED));
        }
    }
}

/// RFC 4340 §8.1.4: the cookie carries all that was agreed, and data flows as it does without.
#[test]
fn a_handshake_with_an_init_cookie_agrees_on_the_same() {
    let cookies = DccpConfig { init_cookie: true, ack_ratio: 3, ..config() };
    let mut pair = pair(&cookies, pair_net::perfect_wire());
    let (read, _) = transfer(&mut pair, 200);
    assert_eq!(read.len(), 200);
    assert_eq!((dccp(&pair, A).state(), dccp(&pair, B).state()), (State::Open, State::Open));
    use talkpath_transport::dccp::{Feature, Location};
    for feature in [Feature::SendAckVector, Feature::EcnIncapable, Feature::SequenceWindow] {
        assert_eq!(
            dccp(&pair, A).feature(feature, Location::Local),
            dccp(&pair, B).feature(feature, Location::Remote)
        );
        assert_eq!(
            dccp(&pair, B).feature(feature, Location::Local),
            dccp(&pair, A).feature(feature, Location::Remote)
        );
    }
}

/// RFC 4340 §8.1.4, §8.1.5: the cookie on the client's first packets leaves no room for a message of the
/// largest size, which waits for a sign of the server.
#[test]
fn a_full_message_follows_an_init_cookie_once_the_server_has_shown_itself() {
    let cookies = DccpConfig { init_cookie: true, ..config() };
    let mut pair = pair(&cookies, pair_net::perfect_wire());
    let size = talkpath_config::largest_dccp_message(Bytes::new(1500));
    while pair.ends[A].writable() == Bytes::ZERO && pair.step().is_some() {}
    assert_eq!(pair.ends[A].handle_message(Message { seq: 0, size, due: pair.now }, pair.now), Ok(()));
    pair.flush(A);
    let begun = pair.now;
    let mut read = None;
    while read.is_none() && pair.step().is_some() {
        read = pair.ends[B].poll_delivery(Bytes::MAX, pair.now);
    }
    assert_eq!(read, Some(Delivery::Message { seq: 0, size }));
    // The cookie, the sign, and the message, each one way.
    assert!(pair.now.since(begun) <= DELAY * 3, "{}", pair.now.since(begun));
}

/// RFC 4340 §7.6: with 24-bit numbers too, across their wrap.
#[test]
fn short_sequence_numbers_carry_a_transfer_across_their_wrap() {
    let short = DccpConfig { short_seqnos: true, ..config() };
    let transport = TransportConfig::Encapsulated(EncapsulatedConfig::Dccp(short.clone()));
    let end = |role| match AnyTransport::new(&transport, role, Bytes::new(1500), Seed::new(3), None) {
        AnyTransport::Dccp(end) => AnyTransport::Dccp(Box::new(
            end.with_initial_sequence(talkpath_wire::dccp::Seq::new((1 << 24) - 100)),
        )),
        other => other,
    };
    let mut pair = Pair::of([end(Role::Active), end(Role::Passive)], DELAY, pair_net::perfect_wire());
    let (read, _) = transfer(&mut pair, 1000);
    assert_eq!(read, (0..1000).collect::<Vec<_>>());
}

/// Copies that arrive twice, and neighbours that change places, are no losses.
#[test]
fn duplicates_and_neighbours_swapped_cost_no_window() {
    let mut count = 0_u64;
    let wire: Wire = Box::new(move |_, _, _| {
        count += 1;
        let late = Duration::from_micros(if count.is_multiple_of(7) { 300 } else { 0 });
        [Some(late), count.is_multiple_of(5).then_some(Duration::from_millis(3))]
    });
    // The window never fills, so that no burst is released in which a late packet falls far behind.
    let wide = DccpConfig { initial_window: Some(Packets::new(2000)), ..config() };
    let mut pair = pair(&wide, wire);
    let mut next = 0;
    while next < 3000 {
        let message = Message { seq: next, size: Bytes::new(160), due: pair.now };
        if pair.ends[A].is_open() {
            pair.ends[A].handle_message(message, pair.now).unwrap();
            pair.flush(A);
            next += 1;
        }
        // A message every 200 us: a late packet is overtaken by one or two.
        let until = pair.now + Duration::from_micros(200);
        pair.schedule(until, Event::App { at: A });
        while pair.step() != Some(Event::App { at: A }) {}
        while pair.ends[B].poll_delivery(Bytes::MAX, pair.now).is_some() {}
    }
    assert_eq!(pair.ends[A].observe().ssthresh, Some(f64::INFINITY));
    assert!(pair.ends[A].observe().cwnd > Some(2000.0));
}
