//! A flow's end on a simulated QUIC connection, which several flows may share.

use core::cell::{RefCell, RefMut};
use std::rc::Rc;

use talkpath_config::{Carry, Features, TransportKind};
use talkpath_flow::{Application, Channel, FlowId, FlowTaps, Read, Side, Write, WriteOutcome};
use talkpath_measure::{DropCause, Fate};
use talkpath_quic::{DiscardCause, End, SendEvent};
use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::{Counters, Levels, Observation, Outlet, Packet, PayloadRange, Refused};

use crate::exchange::Exchange;

/// One flow of one end of a connection.
pub(crate) struct Member {
    connection: Rc<RefCell<End>>,
    flow: FlowId,
    carry: Carry,
    expire: Option<Duration>,
}

impl Member {
    /// Flow `flow` of an end, whose messages are carried so and are of no use `expire` after they were due.
    pub(crate) fn new(
        connection: Rc<RefCell<End>>,
        flow: FlowId,
        carry: Carry,
        expire: Option<Duration>,
    ) -> Self {
        Self { connection, flow, carry, expire }
    }

    pub(crate) fn features(&self) -> Features {
        TransportKind::Quic(self.carry).features()
    }

    /// The end of the connection. Nobody holds it from one call to the next.
    pub(crate) fn end(&self) -> RefMut<'_, End> {
        self.connection.borrow_mut()
    }

    /// The largest message of a transfer: what a packet holds from the first one on.
    pub(crate) fn largest_message(&self) -> Option<Bytes> {
        self.end().largest_in_transfer(self.index())
    }

    /// The flow as the end counts it.
    fn index(&self) -> usize {
        self.flow.0 as usize
    }

    pub(crate) fn levels(&self) -> Levels {
        self.end().levels(self.index())
    }

    pub(crate) fn send_buffer(&self) -> Bytes {
        self.end().send_buffer(self.index())
    }

    pub(crate) fn observe(&self) -> Observation {
        self.end().observe(self.index())
    }

    pub(crate) fn counters(&self) -> Counters {
        self.end().counters(self.index())
    }

    /// When and why the connection was lost.
    pub(crate) fn lost(&self) -> Option<(Instant, String)> {
        let end = self.end();
        Some((end.lost_at()?, format!("the QUIC connection was lost: {}", end.lost()?)))
    }

    /// `application` as one of this connection.
    pub(crate) fn prepare(&self, application: Application) -> Application {
        let application = application.as_flow(self.flow);
        match self.expire {
            Some(lifetime) => application.expiring_after(lifetime),
            None => application,
        }
    }
}

/// As [`Endpoint::step`](crate::endpoint::Endpoint::step), for one flow of a connection.
pub(crate) fn step(
    application: &mut Application,
    member: &Member,
    side: Side,
    taps: &mut FlowTaps,
    now: Instant,
    exchange: &mut impl Exchange,
) -> Instant {
    let mut end = member.end();
    if let Some((packet, ecn)) = exchange.arrived() {
        if let Packet::Quic(packet) = packet {
            end.handle_packet(packet, ecn, now);
        }
        exchange.release();
    }
    if application.has_to_wake_up() && end.is_readable(member.index()) {
        application.on_arrival(now);
    }
    let mut channel = OnConnection { end: &mut end, flow: member.index(), out: exchange };
    application.advance(&mut channel, side, taps, now);
    let deadline = application.next().min(channel.poll_timeout());
    // What its own packets changed, it knows by now.
    end.clear_ready(member.index());
    deadline
}

/// An end of a connection as a channel, for one step of one of its flows.
struct OnConnection<'a, O> {
    end: &'a mut End,
    flow: usize,
    /// Where packets leave to.
    out: &'a mut O,
}

impl<O: Outlet> Channel for OnConnection<'_, O> {
    fn is_open(&self) -> bool {
        self.end.is_open()
    }

    fn write(&mut self, write: &Write, now: Instant) -> WriteOutcome {
        if write.expires.is_some_and(|expires| expires <= now) {
            return WriteOutcome::Expired;
        }
        match self.end.write(write.flow.0 as usize, write.message, write.expires) {
            Ok(bytes) => WriteOutcome::Taken(bytes),
            Err(Refused::NoRoom) => WriteOutcome::NoRoom,
            Err(_) => WriteOutcome::Refused,
        }
    }

    fn read(&mut self, flow: FlowId, limit: Bytes, _now: Instant) -> Option<Read<'_>> {
        let delivery = self.end.read(flow.0 as usize, limit)?;
        Some(Read { delivery, came_at: None, held_since: None, begun: &[], data: &[] })
    }

    fn writable(&mut self, flow: FlowId) -> Bytes {
        self.end.writable(flow.0 as usize)
    }

    fn takes(&mut self, flow: FlowId, size: Bytes) -> bool {
        self.end.takes(flow.0 as usize, size)
    }

    fn flush(&mut self, flow: FlowId, side: Side, taps: &mut FlowTaps, now: Instant) {
        while let Some(transmit) = self.end.poll_transmit(now) {
            self.out.take(transmit);
        }
        while let Some(event) = self.end.poll_send_event(flow.0 as usize) {
            let Some(tap) = taps.written_by(side) else { continue };
            match event {
                SendEvent::Sent(PayloadRange::Message { seq }) => tap.on_wire(seq, now),
                SendEvent::Sent(PayloadRange::Stream { start, end }) => tap.on_wire_stream(start, end, now),
                SendEvent::Expired { seq } => tap.on_expired(seq),
                SendEvent::GivenBack { seq } => tap.on_given_back(seq, Fate::Refused),
                SendEvent::Stopped { seq } => tap.on_dropped(seq, DropCause::Stopped),
            }
        }
    }

    fn poll_dropped(&mut self, flow: FlowId) -> Option<(u64, DropCause)> {
        let (seq, cause) = self.end.poll_dropped(flow.0 as usize)?;
        let cause = match cause {
            DiscardCause::NoRoom => DropCause::SocketBuffer,
            DiscardCause::NoKeys => DropCause::NoKeys,
        };
        Some((seq, cause))
    }

    fn poll_timeout(&self) -> Instant {
        self.end.poll_timeout().unwrap_or(Instant::MAX)
    }

    fn observe(&self) -> Observation {
        self.end.observe(self.flow)
    }
}
