//! Two endpoints and a path of fixed one-way delay, in virtual time.
//!
//! At every step it holds TCP to what must always be true: no byte beyond the window that was offered, no new
//! data beyond `cwnd` and limited transmit's two segments, and a running timer while anything is
//! unacknowledged. While something is sacked, what is certainly in flight is held to `cwnd`: what was sent
//! after the latest of all that has arrived, for neither RFC 6675 nor RFC 8985 may take that for lost. Of two
//! segments sent at the same instant the one with the higher offsets counts as the later one, in whatever
//! order they left (RFC 8985 §6.2, RACK_sent_after).
#![allow(dead_code, reason = "shared by several test binaries, none of which uses everything")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_config::{Role, TransportConfig};
use talkpath_transport::AnyTransport;
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed, SeqNum};
use talkpath_wire::{Delivery, Flags, Message, Packet, PayloadRange, Transmit, Transport};

/// Which end.
pub(crate) const A: usize = 0;
/// The other end.
pub(crate) const B: usize = 1;

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Arrival {
        to: usize,
        packet: Packet,
        ecn: Ecn,
    },
    Timeout {
        at: usize,
    },
    /// The application's own clock.
    App {
        at: usize,
    },
}

/// When the copies of a packet arrive, on top of the one-way delay: none, one or two.
pub(crate) type Fate = [Option<Duration>; 2];
/// Decides on each packet that an end sends.
pub(crate) type Wire = Box<dyn FnMut(usize, &Transmit, Instant) -> Fate>;

/// Two ends and what is under way between them.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) ends: [AnyTransport; 2],
    one_way_delay: Duration,
    wire: Wire,
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    stored: Vec<Event>,
    armed: [Option<Instant>; 2],
    /// A timer has fired: a tail loss probe may leave whatever `cwnd` says (RFC 8985 §7.3).
    timer_fired: bool,
    /// ECN-capable packets sent so far. Each seventh is marked.
    capable: u64,
    watches: [Watch; 2],
    /// Payload of a full segment, or more.
    pub(crate) smss: u64,
}

/// What an observer on an end's wire knows of it.
#[derive(Clone, Debug, Default)]
struct Watch {
    /// Stream bytes acknowledged, in order sent, and the edge of the window offered.
    una: u64,
    next: u64,
    edge: u64,
    shift: u8,
    timeouts: u64,
    iss: u32,
    /// One past the highest byte that was reported beyond a gap, or that was in flight when a timeout took it
    /// for lost.
    gap_end: u64,
    /// The far end permits SACK.
    sack: bool,
    /// What is unacknowledged, in order of its offsets.
    flight: Vec<Sent>,
    /// Recoveries that had begun.
    recoveries: u64,
    /// The latest of all that has arrived, or of what was sent before a timeout: when it was last sent, and
    /// where it ends.
    newest: (Instant, u64),
}

/// A segment on the wire.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    size: u64,
    /// When it was last sent.
    at: Instant,
    arrived: bool,
}

impl Pair {
    pub(crate) fn new(config: &TransportConfig, one_way_delay: Duration) -> Self {
        let end = |role| AnyTransport::new(config, role, Bytes::new(1500), Seed::new(1), None);
        Self::of([end(Role::Active), end(Role::Passive)], one_way_delay, perfect_wire())
    }

    pub(crate) fn of(ends: [AnyTransport; 2], one_way_delay: Duration, wire: Wire) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            ends,
            one_way_delay,
            wire,
            events: BinaryHeap::new(),
            stored: Vec::new(),
            armed: [None; 2],
            capable: 0,
            timer_fired: false,
            watches: [Watch::default(), Watch::default()],
            smss: 1460,
        };
        for at in [B, A] {
            pair.ends[at].open(Instant::ZERO);
            pair.flush(at);
        }
        pair
    }

    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, self.stored.len() as u64)));
        self.stored.push(event);
    }

    /// Puts what `at` has to send on the path, and follows its deadline.
    pub(crate) fn flush(&mut self, at: usize) {
        while let Some(transmit) = self.ends[at].poll_transmit(self.now) {
            self.watch_transmit(at, &transmit);
            self.capable += u64::from(transmit.ecn == Ecn::Ect0);
            let is_marked = transmit.ecn == Ecn::Ect0 && self.capable.is_multiple_of(7);
            let ecn = if is_marked { Ecn::Ce } else { transmit.ecn };
            for extra in (self.wire)(at, &transmit, self.now).into_iter().flatten() {
                let arrival = self.now + self.one_way_delay + extra;
                self.schedule(arrival, Event::Arrival { to: 1 - at, packet: transmit.packet.clone(), ecn });
            }
        }
        let deadline = self.ends[at].poll_timeout();
        let waiting = self.ends[at].observe().send_buffer > Bytes::ZERO;
        assert!(!waiting || deadline.is_some(), "data waits and no timer runs");
        if deadline != self.armed[at] {
            self.armed[at] = deadline;
            if let Some(deadline) = deadline {
                self.schedule(deadline.max(self.now), Event::Timeout { at });
            }
        }
    }

    /// The next event; arrivals and timeouts are fed to the end that they concern and flushed.
    pub(crate) fn step(&mut self) -> Option<Event> {
        let Reverse((time, index)) = self.events.pop()?;
        assert!(time >= self.now, "time goes forward");
        self.now = time;
        let event = self.stored[index as usize].clone();
        match event {
            Event::Arrival { to, ref packet, ecn } => {
                self.watch_arrival(to, packet);
                self.ends[to].handle_packet(packet, ecn, time);
                self.flush(to);
            }
            Event::Timeout { at } => {
                if self.ends[at].poll_timeout().is_some_and(|deadline| deadline <= time) {
                    self.ends[at].handle_timeout(time);
                    self.armed[at] = None;
                    self.timer_fired = true;
                    self.flush(at);
                    self.timer_fired = false;
                }
            }
            Event::App { .. } => {}
        }
        Some(event)
    }

    /// Reads at most `limit` bytes, in one read; returns how many there were.
    pub(crate) fn read(&mut self, at: usize, limit: u64) -> u64 {
        let delivery = self.ends[at].poll_delivery(Bytes::new(limit), self.now);
        self.flush(at);
        match delivery {
            Some(Delivery::Stream { bytes }) => bytes.get(),
            Some(Delivery::Message { size, .. }) => size.get(),
            None => 0,
        }
    }

    /// Writes one message and sends what that releases; whether it was taken.
    pub(crate) fn write(&mut self, at: usize, size: u64) -> bool {
        let message = Message { seq: 0, size: Bytes::new(size), due: self.now };
        let taken = self.ends[at].handle_message(message, self.now).is_ok();
        self.flush(at);
        taken
    }

    /// Writes what there is room for of the `left` bytes of a message, and sends what that releases; returns
    /// how much was taken. A message that `is_begun`, or that not even an empty buffer holds, goes in parts,
    /// as the application's do (`flow::simulated::Simulated::write`).
    pub(crate) fn write_parts(&mut self, at: usize, left: u64, is_begun: bool) -> u64 {
        if !is_begun && self.write(at, left) {
            return left;
        }
        let end = &self.ends[at];
        let may_take = if is_begun { end.writable() > Bytes::ZERO } else { end.takes(Bytes::new(left)) };
        let mut written = 0;
        while may_take && written < left {
            let part = self.ends[at].handle_part(Bytes::new(left - written), Bytes::new(written));
            self.flush(at);
            if part == Bytes::ZERO {
                break;
            }
            written += part.get();
        }
        written
    }

    pub(crate) fn shutdown(&mut self, at: usize) {
        self.ends[at].shutdown(self.now);
        self.flush(at);
    }

    fn watch_transmit(&mut self, at: usize, transmit: &Transmit) {
        let Packet::Tcp(segment) = &transmit.packet else { return };
        let counters = self.ends[at].counters();
        let (timeouts, recoveries) = (counters.timeouts.unwrap_or(0), counters.fast_retransmits);
        let cwnd = self.ends[at].observe().cwnd.unwrap_or(f64::INFINITY);
        let (watch, smss) = (&mut self.watches[at], self.smss as f64);
        if segment.flags.contains(Flags::SYN) {
            watch.iss = segment.seq.get();
        }
        let Some(PayloadRange::Stream { start, end }) = transmit.payload else { return };
        assert!(end <= watch.edge, "byte {end} is beyond the window, {watch:?}");
        if timeouts != watch.timeouts {
            watch.timeouts = timeouts;
            watch.newest = watch.newest.max(watch.latest());
            if watch.sack {
                watch.gap_end = watch.gap_end.max(watch.next);
            } else {
                watch.next = start;
            }
        }
        watch.next = watch.next.max(end);
        watch.on_sent(start, end, self.now);
        // `cwnd` comes as segments: whole bytes again, which a product of fractions may miss by a little.
        let most = ((cwnd + 2.0) * smss).round();
        // The first retransmission of a recovery does not wait for room (RFC 6675 §5 step 4.3).
        let begins = core::mem::replace(&mut watch.recoveries, recoveries) != recoveries;
        if watch.sack && !self.timer_fired && !begins {
            // One segment leaves whatever `cwnd` says where the network is empty, and acknowledgements of
            // parts leave a part more.
            let certain = watch.certainly_in_flight() as f64;
            assert!(certain <= most, "{certain} B are certainly in flight, cwnd {cwnd}");
        }
        // What was sacked or lost is not in flight, and an observer cannot tell what was.
        let gap = watch.una < watch.gap_end || self.timer_fired;
        if !transmit.retransmission && !gap {
            let flight = (watch.next - watch.una) as f64;
            assert!(flight <= most, "{flight} B in flight, cwnd {cwnd}");
        }
    }

    fn watch_arrival(&mut self, to: usize, packet: &Packet) {
        let Packet::Tcp(segment) = packet else { return };
        let watch = &mut self.watches[to];
        if segment.flags.contains(Flags::SYN) {
            watch.edge = watch.edge.max(u64::from(segment.window));
            watch.shift = segment.window_scale().unwrap_or(0);
            watch.sack = segment.sack_permitted();
            return;
        }
        if segment.flags.contains(Flags::RST) {
            return;
        }
        // Stream byte 0 follows the SYN.
        let acked = SeqNum::new(segment.ack.get().wrapping_sub(watch.iss).wrapping_sub(1)).extend(watch.una);
        watch.una = watch.una.max(acked);
        watch.next = watch.next.max(watch.una);
        watch.on_arrived(0, watch.una);
        for block in &segment.sack[..usize::from(segment.sack_count)] {
            let offset = |seq: SeqNum| {
                SeqNum::new(seq.get().wrapping_sub(watch.iss).wrapping_sub(1)).extend(watch.una)
            };
            let (left, right) = (offset(block.left), offset(block.right));
            watch.gap_end = watch.gap_end.max(right);
            watch.on_arrived(left, right);
        }
        watch.flight.retain(|sent| sent.end > watch.una);
        watch.edge = watch.edge.max(acked + (u64::from(segment.window) << watch.shift));
    }
}

impl Watch {
    fn on_sent(&mut self, start: u64, end: u64, at: Instant) {
        let sent = Sent { end, size: end - start, at, arrived: false };
        match self.flight.binary_search_by_key(&end, |sent| sent.end) {
            Ok(index) => self.flight[index] = sent,
            Err(index) => self.flight.insert(index, sent),
        }
    }

    fn on_arrived(&mut self, start: u64, end: u64) {
        for sent in &mut self.flight {
            if start <= sent.end - sent.size && sent.end <= end {
                sent.arrived = true;
                self.newest = self.newest.max((sent.at, sent.end));
            }
        }
    }

    /// The latest of what is unacknowledged.
    fn latest(&self) -> (Instant, u64) {
        self.flight.iter().map(|sent| (sent.at, sent.end)).max().unwrap_or_default()
    }

    /// Bytes sent after whatever has arrived, that have not.
    fn certainly_in_flight(&self) -> u64 {
        let sent = self.flight.iter().filter(|sent| !sent.arrived && (sent.at, sent.end) > self.newest);
        sent.map(|sent| sent.size).sum()
    }
}

/// Delivers everything, once and in order.
pub(crate) fn perfect_wire() -> Wire {
    Box::new(|_, _, _| [Some(Duration::ZERO), None])
}
