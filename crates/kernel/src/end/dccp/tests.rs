use std::net::UdpSocket;
use std::sync::Arc;

use talkpath_measure::MessageRecord;
use talkpath_scenario::{Receiver, WorkloadConfig};
use talkpath_transport::dccp::{DccpPacket, PacketKind, Reset, Seq};
use talkpath_transport::{CcidKind, DccpConfig};

use super::*;
use crate::clock::{HostClock, RunClock};
use crate::end::{EndContext, FlowEnd, SharedEnd};
use crate::log::RowBudget;
use crate::progress::EndProgress;
use crate::spec::{FlowSpec, SessionSpec, TransportSpec};

/// A datagram as it comes without a stamp.
fn datagram(payload: &[u8]) -> Received<'_> {
    Received { from: None, to: None, stamp_ns: None, tos: None, ttl: None, payload }
}

/// Both ends of one flow, over two sockets on loopback, driven by one thread.
struct Pair {
    ends: [SharedEnd; 2],
    sockets: [Arc<UdpSocket>; 2],
    clock: RunClock,
    drops_datagrams: bool,
}

/// A voice call of `ms` over CCID 2 with a send queue of `queue` packets.
fn session(ms: u64, queue: Option<u64>) -> SessionSpec {
    let config = DccpConfig {
        send_queue: queue.map(talkpath_units::Packets::new),
        send_queue_policy: talkpath_transport::QueuePolicy::DropOldest,
        ..DccpConfig::new(CcidKind::Ccid2)
    };
    let flow = FlowSpec {
        transport: TransportSpec::Dccp(DccpSpec::new(&config, None, Bytes::new(1500))),
        workload: WorkloadConfig::G711,
        echo_per_read: Some(false),
        is_up: true,
        start_ns: 0,
        file: None,
        dscp_byte: None,
    };
    let duration_ns = ms * 1_000_000;
    SessionSpec { flows: vec![flow], warm_up_ns: 0, duration_ns, drain_ns: 0 }
}

impl Pair {
    fn new(session: &SessionSpec) -> Self {
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns());
        let common = EndContext { clock, budget: RowBudget::new(1 << 16), alarm: Arc::default() };
        let ends = [true, false].map(|is_near| {
            let seed = Seed::new(u64::from(is_near));
            let place = EndPlace {
                index: 0,
                is_sender: is_near,
                is_client: is_near,
                token: 7,
                tag_key: None,
                has_trains: false,
                seed,
            };
            SharedEnd::new(session, &session.flows[0], &place, Receiver::default(), &common)
        });
        let sockets = [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()));
        for (here, there) in [(0, 1), (1, 0)] {
            sockets[here].connect(sockets[there].local_addr().unwrap()).unwrap();
            sockets[here].set_nonblocking(true).unwrap();
            let route = UdpRoute { socket: Arc::clone(&sockets[here]), unconnected: None };
            ends[here].lock().set_route(route);
        }
        Self { ends, sockets, clock, drops_datagrams: false }
    }

    /// Does what is due and carries what is under way, until `is_over`, for a minute at most.
    fn drive(&self, is_over: impl Fn(&Self) -> bool) {
        while !is_over(self) {
            assert!(self.clock.now() < Instant::from_secs(60), "it comes to an end");
            for (end, socket) in self.ends.iter().zip(&self.sockets) {
                let mut buffer = [0; 2048];
                while let Ok(size) = socket.recv(&mut buffer) {
                    if !self.drops_datagrams {
                        end.handle_datagram(&datagram(&buffer[..size]));
                    }
                }
                let mut end = end.lock();
                if end.poll_timeout().is_some_and(|deadline| deadline <= self.clock.now()) {
                    end.handle_timeout(self.clock.now());
                }
            }
            std::thread::yield_now();
        }
    }

    fn progress(&self) -> [EndProgress; 2] {
        [0, 1].map(|end| self.ends[end].lock().progress())
    }

    fn is_answered(&self) -> bool {
        let [near, far] = self.progress();
        near.is_done && far.is_done && near.received == near.sent
    }

    fn failure(&self, end: usize) -> Option<String> {
        self.ends[end].lock().failure.clone()
    }
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
