//! Two endpoints and a path of fixed one-way delay, in virtual time; each test file takes what it needs of it.
#![allow(dead_code, reason = "shared by several test binaries, none of which uses everything")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_transport::{
    AnyTransport, Delivery, Ecn, Message, Packet, Role, Transmit, Transport, TransportConfig,
};
use talkpath_units::{Bytes, Duration, Instant, Seed};

/// Which end.
pub const A: usize = 0;
pub const B: usize = 1;

/// What waits in the event queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Arrival { to: usize, packet: Packet },
    Timeout { at: usize },
    /// The application's own clock; the test says what it means.
    App { at: usize, tag: u64 },
}

/// Two ends and what is under way between them.
pub struct Pair {
    pub now: Instant,
    pub ends: [AnyTransport; 2],
    pub one_way_delay: Duration,
    events: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    stored: Vec<Event>,
    armed: [Option<Instant>; 2],
    /// Decides on each packet: `None` loses it, otherwise it takes this much longer.
    pub fate: Box<dyn FnMut(usize, &Transmit, Instant) -> Option<Duration>>,
}

impl Pair {
    pub fn new(config: &TransportConfig, one_way_delay: Duration, receive_buffer: Option<Bytes>) -> Self {
        let end = |role| AnyTransport::new(config, role, Bytes::new(1500), Seed::new(1), receive_buffer);
        let mut pair = Self {
            now: Instant::ZERO,
            ends: [end(Role::Active), end(Role::Passive)],
            one_way_delay,
            events: BinaryHeap::new(),
            stored: Vec::new(),
            armed: [None; 2],
            fate: Box::new(|_, _, _| Some(Duration::ZERO)),
        };
        for at in [B, A] {
            pair.ends[at].open(Instant::ZERO);
            pair.flush(at);
        }
        pair
    }

    pub fn schedule(&mut self, at: Instant, event: Event) {
        let index = self.stored.len();
        self.stored.push(event);
        self.events.push(Reverse((at, index as u64, index)));
    }

    /// Puts what `at` has to send on the path, and follows its deadline.
    pub fn flush(&mut self, at: usize) {
        while let Some(transmit) = self.ends[at].poll_transmit(self.now) {
            if let Some(extra) = (self.fate)(at, &transmit, self.now) {
                let arrival = self.now + self.one_way_delay + extra;
                self.schedule(arrival, Event::Arrival { to: 1 - at, packet: transmit.packet });
            }
        }
        let deadline = self.ends[at].poll_timeout();
        if deadline != self.armed[at] {
            self.armed[at] = deadline;
            if let Some(deadline) = deadline {
                self.schedule(deadline.max(self.now), Event::Timeout { at });
            }
        }
    }

    /// The next event; arrivals and timeouts are fed to the end that they concern and flushed.
    pub fn step(&mut self) -> Option<Event> {
        let Reverse((time, _, index)) = self.events.pop()?;
        assert!(time >= self.now);
        self.now = time;
        let event = self.stored[index];
        match event {
            Event::Arrival { to, packet } => {
                self.ends[to].handle_packet(packet, Ecn::NotEct, time);
                self.flush(to);
            }
            Event::Timeout { at } => {
                if self.ends[at].poll_timeout().is_some_and(|deadline| deadline <= time) {
                    self.ends[at].handle_timeout(time);
                    self.armed[at] = None;
                    self.flush(at);
                }
            }
            Event::App { .. } => {}
        }
        Some(event)
    }

    /// Reads all that is there; returns the bytes.
    pub fn read(&mut self, at: usize) -> u64 {
        let mut bytes = 0;
        while let Some(delivery) = self.ends[at].poll_delivery(Bytes::MAX, self.now) {
            bytes += match delivery {
                Delivery::Stream { bytes } => bytes.get(),
                Delivery::Message { size, .. } => size.get(),
            };
        }
        self.flush(at);
        bytes
    }

    /// Writes one message and sends what that releases; whether it was taken.
    pub fn write(&mut self, at: usize, seq: u64, size: u64) -> bool {
        let message = Message { seq, size: Bytes::new(size), due: self.now };
        let taken = self.ends[at].handle_message(message, self.now).is_ok();
        self.flush(at);
        taken
    }
}
