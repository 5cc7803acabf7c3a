//! The fuzz target for the answers that a sender receives.

use std::net::{Ipv4Addr, SocketAddr};

use talkpath_kernel::sys::Received;
use talkpath_units::{Bytes, Duration, Instant};

use super::super::PORT;
use super::super::codec::BASE;
use super::packet_row::PacketRow;
use super::{Dscps, Sender, StampOptions};

/// The number of packets that the sender has sent.
const PACKETS: u8 = 4;

/// Gives `answers` to a sender that has sent four packets. The format of `answers` is described at
/// `fuzzing::stamp_answers`.
pub(crate) fn receive_answers(mut answers: &[u8]) {
    let options = StampOptions {
        host: String::new(),
        ip: None,
        interval: Duration::from_millis(1),
        count: PACKETS.into(),
        size: Bytes::new(60),
        dscps: Some(Dscps { packets: 46, answers: 0 }),
        is_stateful: false,
        clocks_synchronised: false,
        wait: Duration::ZERO,
    };
    // The sender needs a socket, but nothing is sent.
    let reflector = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let Ok(mut sender) = Sender::open(reflector, &options) else { return };
    for sequence in 0..PACKETS {
        let t1 = Some(Instant::from_millis(sequence.into()));
        sender.packets.push(PacketRow { t1, ..PacketRow::default() });
    }
    while let Some((&length, after_length)) = answers.split_first() {
        let (bytes, next_answer) = after_length.split_at(after_length.len().min(usize::from(length)));
        answers = next_answer;
        let mut payload = bytes.to_vec();
        if length % 2 == 1 && payload.len() >= BASE {
            match_to_session(&mut payload, &sender);
        }
        let (tos, ttl) = (Some(length), Some(length));
        let datagram = Received { from: None, to: None, stamp_ns: None, tos, ttl, payload: &payload };
        sender.handle_datagram(&datagram);
    }
    assert!(sender.answered <= sender.packets.len());
    if let Some(losses) = sender.finish(&options).and_then(|run| run.losses) {
        assert!(losses.forward + losses.back <= PACKETS.into(), "{losses:?} of {PACKETS}");
    }
}

/// Writes the sequence number and T1 of a packet of the session into an answer, and no SSID.
fn match_to_session(answer: &mut [u8], sender: &Sender) {
    let sequence = answer[27] % PACKETS;
    let t1 = sender.timestamp(Instant::from_millis(sequence.into()));
    answer[24..28].copy_from_slice(&u32::from(sequence).to_be_bytes());
    answer[28..36].copy_from_slice(&t1.0.to_be_bytes());
    answer[14..16].fill(0);
}
