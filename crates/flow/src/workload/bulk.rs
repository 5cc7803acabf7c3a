//! Bulk transfer: always as much as the transport takes.
//!
//! A message is as large as fits, up to 64 KiB, and due at the moment when the transport was found to have
//! room. A message waits for room for at least 1 KiB (or for all that remains), so that a window opening byte
//! by byte does not become a dribble of tiny messages. Over UDP a message is what a datagram can hold.
//!
//! Left out: bulk without an end over a transport that never pushes back; the scenario's checks refuse it.

use talkpath_model::{LARGEST_BULK_MESSAGE, MIN_BULK_ROOM};
use talkpath_units::{Bytes, Instant};
use talkpath_wire::Message;

use super::source::{Awaits, Workload};

/// A greedy sender.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// What is still to be sent; `None` without an end.
    remaining: Option<Bytes>,
    largest: Bytes,
    stop: Instant,
    state: State,
    seq: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    Finished,
}

impl Bulk {
    /// A transfer of `bytes`, or without an end, with no message at or after `stop`.
    pub const fn new(bytes: Option<Bytes>, stop: Instant) -> Self {
        Self { remaining: bytes, largest: LARGEST_BULK_MESSAGE, stop, state: State::Closed, seq: 0 }
    }

    /// The same, with no message above `size`, nor above what it had before.
    #[must_use]
    pub fn with_largest_message(mut self, size: Bytes) -> Self {
        self.limit_messages(size);
        self
    }
}

impl Workload for Bulk {
    #[inline]
    fn awaits(&self) -> Awaits {
        Awaits::Room
    }

    fn limit_messages(&mut self, size: Bytes) {
        self.largest = self.largest.min(size);
    }

    #[inline]
    fn wants_room_until(&self) -> Instant {
        let wants =
            self.state == State::Open && self.remaining != Some(Bytes::ZERO) && self.largest > Bytes::ZERO;
        if wants { self.stop } else { Instant::ZERO }
    }

    fn open(&mut self, _now: Instant) {
        self.state = State::Open;
    }

    #[inline]
    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message> {
        if self.state != State::Open {
            return None;
        }
        let wanted = self.remaining.unwrap_or(Bytes::MAX).min(self.largest);
        if now >= self.stop || wanted == Bytes::ZERO {
            self.state = State::Finished;
            return None;
        }
        if writable < wanted.min(MIN_BULK_ROOM) {
            return None;
        }
        let message = Message { seq: self.seq, size: wanted.min(writable), due: now };
        self.seq += 1;
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(message.size));
        if self.remaining == Some(Bytes::ZERO) {
            self.state = State::Finished;
        }
        Some(message)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.state == State::Finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_fills_what_fits_and_ends_with_the_rest() {
        let mut bulk = Bulk::new(Some(Bytes::new(100_000)), Instant::from_secs(1));
        let now = Instant::from_millis(3);
        assert_eq!(bulk.poll_message(Bytes::MAX, now), None, "not open yet");
        bulk.open(now);
        let first = bulk.poll_message(Bytes::MAX, now).unwrap();
        assert_eq!((first.seq, first.size, first.due), (0, Bytes::new(65_536), now));
        assert_eq!(bulk.poll_message(Bytes::new(30_000), now).unwrap().size, Bytes::new(30_000));
        let last = bulk.poll_message(Bytes::MAX, now).unwrap();
        assert_eq!((last.seq, last.size), (2, Bytes::new(4_464)));
        assert!(bulk.is_finished());
        assert_eq!(bulk.poll_message(Bytes::MAX, now), None);
    }

    #[test]
    fn little_room_is_no_reason_for_a_tiny_message_unless_it_is_the_last() {
        let mut bulk = Bulk::new(Some(Bytes::new(1_100)), Instant::from_secs(1));
        bulk.open(Instant::ZERO);
        assert_eq!(bulk.poll_message(Bytes::new(1_023), Instant::ZERO), None);
        assert_eq!(bulk.poll_message(Bytes::new(1_024), Instant::ZERO).unwrap().size, Bytes::new(1_024));
        assert_eq!(bulk.poll_message(Bytes::new(75), Instant::ZERO), None);
        assert_eq!(bulk.poll_message(Bytes::new(76), Instant::ZERO).unwrap().size, Bytes::new(76));
    }

    /// A datagram transport on a path of 576 B invites messages of 516 B and no larger ones.
    #[test]
    fn a_transport_that_takes_small_messages_alone_gets_those() {
        let mut bulk = Bulk::new(None, Instant::from_secs(1)).with_largest_message(Bytes::new(516));
        bulk.open(Instant::ZERO);
        assert_eq!(bulk.poll_message(Bytes::new(516), Instant::ZERO).unwrap().size, Bytes::new(516));
    }

    #[test]
    fn sending_stops_at_the_duration() {
        let mut bulk = Bulk::new(None, Instant::from_secs(1));
        bulk.open(Instant::ZERO);
        assert!(bulk.poll_message(Bytes::MAX, Instant::from_nanos(999_999_999)).is_some());
        assert!(!bulk.is_finished());
        assert_eq!(bulk.poll_message(Bytes::MAX, Instant::from_secs(1)), None);
        assert!(bulk.is_finished());
    }
}
