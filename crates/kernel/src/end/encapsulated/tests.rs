use talkpath_config::{CcidKind, DccpConfig, EncapsulatedConfig};
use talkpath_measure::MessageRecord;
use talkpath_model::WorkloadConfig;
use talkpath_wire::dccp::codec::encode;
use talkpath_wire::dccp::{DccpPacket, PacketKind, Reset, ResetCode, Seq};

use super::*;
use crate::end::pair::{Pair, datagram};
use crate::end::{FlowEnd, fixtures};
use crate::spec::{SessionSpec, TransportSpec};

/// A voice call of `ms` over CCID 2 with a send queue of `queue` packets.
fn session(ms: u64, queue: Option<u64>) -> SessionSpec {
    let config = DccpConfig {
        send_queue: queue.map(talkpath_units::Packets::new),
        send_queue_policy: talkpath_config::QueuePolicy::DropOldest,
        ..DccpConfig::new(CcidKind::Ccid2)
    };
    let config = EncapsulatedConfig::Dccp(config);
    let transport = TransportSpec::Encapsulated(EncapsulatedSpec::new(&config, None, Bytes::new(1500)));
    fixtures::session(&fixtures::echoing(transport, WorkloadConfig::G711), ms * 1_000_000)
}

#[test]
fn a_call_is_echoed_and_both_ends_close_in_order() {
    let pair = Pair::new(&session(200, None));
    pair.drive(Pair::is_answered);
    let [near, far] = pair.progress();
    assert!(near.sent > 0 && near.sent == far.received && near.received == far.sent);
    pair.ends[0].close();
    pair.drive(|pair| pair.ends.iter().all(|end| end.lock().is_closed()));
    assert_eq!((pair.failure(0), pair.failure(1)), (None, None));
    let end = pair.ends[0].lock();
    let has_left = |row: &MessageRecord| row.sent.is_some() && row.transmissions == 1;
    assert!(end.log.taps.forward.rows().all(has_left));
}

/// RFC 4340 §5.6: a Reset with right numbers ends a connection that was wanted.
#[test]
fn a_reset_of_the_far_end_is_a_failure_with_its_reason() {
    let pair = Pair::new(&session(60_000, None));
    pair.drive(|pair| pair.ends[1].lock().progress().received > 2);
    // The far end closes although the near one still sends.
    pair.ends[1].close();
    pair.drive(|pair| pair.failure(0).is_some());
    let why = pair.failure(0).unwrap();
    assert!(why.contains("Reset Code 1"), "{why}");
}

#[test]
fn what_is_no_packet_of_the_connection_changes_nothing() {
    let pair = Pair::new(&session(60_000, None));
    pair.drive(|pair| pair.ends[1].lock().progress().received > 0);
    let reset = PacketKind::Reset(Reset { code: ResetCode::CLOSED, data: [0; 3] });
    let packet = DccpPacket::new(reset, Seq::new(1), Seq::new(1));
    for (source, destination) in [(SERVER_PORT, CLIENT_PORTS + 1), (7, 9)] {
        let mut bytes = Vec::new();
        encode(&packet, Ports { source, destination }, &[], Carrier::Udp, &mut bytes);
        for size in 0..=bytes.len() {
            pair.ends[0].handle_datagram(&datagram(&bytes[..size]));
        }
    }
    let before = pair.ends[1].lock().progress().received;
    pair.drive(|pair| pair.ends[1].lock().progress().received > before + 2);
    assert_eq!((pair.failure(0), pair.failure(1)), (None, None));
}

/// RFC 4340 §8.1.1.
#[test]
fn requests_without_an_answer_are_a_failure_when_sending_would_stop() {
    let mut pair = Pair::new(&session(3_100, None));
    pair.drops_datagrams = true;
    pair.drive(|pair| pair.failure(0).is_some());
    assert!(pair.clock.now() >= Instant::from_millis(3_100));
    assert!(pair.ends[0].lock().progress().is_done, "nobody waits for it");
    assert!(pair.failure(0).unwrap().contains("did not open"));
}

/// RFC 4340 §1.1: the sender's own queue gives up what has waited longest; the log says which.
#[test]
fn a_full_queue_drops_the_oldest_and_the_log_says_which() {
    let mut pair = Pair::new(&session(60_000, Some(2)));
    pair.drive(|pair| pair.ends[1].lock().progress().received > 2);
    pair.drops_datagrams = true;
    let dropped = |end: &FlowEnd| -> Vec<MessageRecord> {
        end.log.taps.forward.rows().filter(|row| row.drop_cause.is_some()).copied().collect()
    };
    pair.drive(|pair| dropped(&pair.ends[0].lock()).len() > 3);
    let dropped = dropped(&pair.ends[0].lock());
    assert!(dropped.windows(2).all(|two| two[1].seq == two[0].seq + 1), "{dropped:?}");
    assert!(dropped.iter().all(|row| row.drop_cause == Some(DropCause::SendQueue) && row.wire.is_none()));
}
