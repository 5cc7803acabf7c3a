//! The ticket for 0-RTT (RFC 9001 §4.6): an earlier connection of the same run, before its time begins, over
//! a path without loss or delay.

use talkpath_transport::Packet;
use talkpath_units::Instant;

use crate::end::End;

/// Runs a connection between both ends until neither sends, with which the client's configuration has a
/// ticket.
pub(crate) fn fetch(mut client: End, mut server: End) {
    let now = Instant::ZERO;
    client.open(now);
    for _ in 0..ROUNDS {
        let moved = pass(&mut client, &mut server, now) | pass(&mut server, &mut client, now);
        if !moved {
            return;
        }
    }
}

/// Carries what `from` sends to `to`; returns whether it sent anything.
fn pass(from: &mut End, to: &mut End, now: Instant) -> bool {
    let mut any = false;
    while let Some(transmit) = from.poll_transmit(now) {
        any = true;
        if let Packet::Quic(packet) = &transmit.packet {
            to.handle_packet(packet, transmit.ecn, now);
        }
    }
    any
}

/// A handshake takes three. Chosen: some more.
const ROUNDS: usize = 20;
