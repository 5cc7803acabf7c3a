//! The connection before the one that is measured. It gives the client a ticket, with which messages leave in
//! the client's first flight (0-RTT; RFC 9001 §4.6, RFC 8446 §4.6.1).
//!
//! Between hosts with keys of their own it is a connection over the network like the other, before the run
//! begins, and carries no message. Both are made of the same configurations, which keep the client's tickets
//! and what the server remembers about them. Ends that draw everything from one seed need no network for it:
//! each plays both ends ([`End::on_host`]).

use std::sync::Arc;

use rustls::client::{ClientSessionMemoryCache, ClientSessionStore as _, Resumption};
use rustls::pki_types::ServerName;
use talkpath_units::{Bytes, Instant};
use talkpath_wire::{Packet, QuicPacket};

use crate::End;
use crate::certificate::SERVER_NAME;
use crate::far::Arrival;

/// An end of the earlier connection.
pub struct EarlierEnd {
    end: End,
    tickets: Tickets,
    /// How many flows the connection may carry.
    flows: usize,
    /// Its time never goes back, though the clock of its host may be set to the run's.
    now: Instant,
}

/// The session tickets of a client; a server's are none.
#[derive(Clone, Debug)]
pub(crate) struct Tickets(Arc<ClientSessionMemoryCache>);

impl Tickets {
    pub(crate) fn new() -> Self {
        Self(Arc::new(ClientSessionMemoryCache::new(SESSIONS)))
    }

    /// A client's TLS keeps its tickets here.
    pub(crate) fn resumption(&self) -> Resumption {
        Resumption::store(Arc::clone(&self.0) as _)
    }

    /// Whether there is one. A ticket is taken once: this one is put back.
    fn has_one(&self) -> bool {
        let Ok(name) = ServerName::try_from(SERVER_NAME) else { return false };
        let ticket = self.0.take_tls13_ticket(&name);
        let has_one = ticket.is_some();
        ticket.into_iter().for_each(|ticket| self.0.insert_tls13_ticket(name.clone(), ticket));
        has_one
    }
}

impl EarlierEnd {
    pub(crate) const fn new(end: End, tickets: Tickets, flows: usize) -> Self {
        Self { end, tickets, flows, now: Instant::ZERO }
    }

    /// Begins to connect, if it is the client's and has not begun.
    pub fn open(&mut self, now: Instant) {
        let now = self.tick(now);
        self.end.open(now);
    }

    /// Takes a packet. Returns false if it begins the next connection: this one is over, and the packet is
    /// the other's.
    pub fn handle_packet(&mut self, packet: &QuicPacket, arrival: &Arrival) -> bool {
        self.handle_timeout(arrival.at);
        self.end.handle_arrival(packet, arrival, self.now);
        self.throw_away();
        !self.end.has_refused_another()
    }

    /// Reads what a far end says on this connection, which carries no message, and keeps nothing: a guest
    /// shall not fill the server's memory.
    fn throw_away(&mut self) {
        for flow in 0..self.flows {
            while self.end.read_bytes(flow, Bytes::MAX).is_some() {}
            while self.end.poll_dropped_bytes(flow).is_some() {}
        }
    }

    /// The next packet to put on the wire.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let now = self.tick(now);
        let Packet::Quic(packet) = self.end.poll_transmit(now)?.packet else { return None };
        Some(packet.bytes)
    }

    /// When it wants [`EarlierEnd::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.end.poll_timeout()
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.tick(now);
        if self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.end.handle_timeout(now);
        }
    }

    /// Whether the client has a ticket.
    pub fn has_ticket(&self) -> bool {
        self.tickets.has_one()
    }

    /// Why it was lost, if it was.
    pub fn lost(&self) -> Option<&str> {
        self.end.lost()
    }

    /// Closes it: the client has its ticket.
    pub fn close(&mut self, now: Instant) {
        let now = self.tick(now);
        self.end.close(now);
    }

    #[cfg(test)]
    pub(crate) const fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    fn tick(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }
}

/// Fetches the ticket for 0-RTT (RFC 9001 §4.6) by an earlier connection of the same run, before its time
/// begins, over a path without loss or delay: the client's configuration keeps it.
pub(crate) fn fetch_ticket(mut client: End, mut server: End) {
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
pub(crate) fn pass(from: &mut End, to: &mut End, now: Instant) -> bool {
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

/// How many servers' tickets a client remembers. There is one server.
const SESSIONS: usize = 1;
