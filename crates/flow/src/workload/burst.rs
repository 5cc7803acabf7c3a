//! Bursts: `count` messages as fast as the transport takes them, `repeat` times, `gap` apart.
//!
//! A message is due when the transport was found to have room for the whole message, or for its beginning
//! where it is larger than the transport's whole buffer. The gap runs from the due time of a burst's last
//! message to the first of the next; where the transport has room when the gap ends, that message is due at
//! the gap's end however late the poll comes (a late poll must not hide a delay).

use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::Message;

use super::source::{Awaits, Workload};

/// A sender of bursts.
#[derive(Clone, Debug)]
pub struct Burst {
    count: u64,
    size: Bytes,
    gap: Duration,
    stop: Instant,
    state: State,
    /// Messages that the present burst still has.
    messages_left: u64,
    /// Bursts to come after the present one.
    bursts_left: u64,
    seq: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// The next burst begins at this moment.
    Waiting(Instant),
    /// In a burst: messages leave as room appears.
    Sending,
    Finished,
}

impl Burst {
    /// `repeat` bursts of `count` messages of `size`, `gap` apart, with no message at or after `stop`.
    pub const fn new(count: u64, size: Bytes, repeat: u64, gap: Duration, stop: Instant) -> Self {
        let bursts_left = repeat.saturating_sub(1);
        Self { count, size, gap, stop, state: State::Closed, messages_left: count, bursts_left, seq: 0 }
    }

    fn message(&mut self, due: Instant) -> Message {
        let message = Message { seq: self.seq, size: self.size, due };
        self.seq += 1;
        self.messages_left = self.messages_left.saturating_sub(1);
        self.state = match (self.messages_left, self.bursts_left) {
            (0, 0) => State::Finished,
            (0, _) => {
                self.bursts_left -= 1;
                self.messages_left = self.count;
                self.wait_until(due.saturating_add(self.gap))
            }
            _ => State::Sending,
        };
        message
    }

    fn wait_until(&self, begin: Instant) -> State {
        if begin < self.stop { State::Waiting(begin) } else { State::Finished }
    }
}

impl Workload for Burst {
    #[inline]
    fn awaits(&self) -> Awaits {
        Awaits::RoomFor(self.size)
    }

    fn open(&mut self, now: Instant) {
        self.state = if self.count == 0 { State::Finished } else { self.wait_until(now) };
    }

    fn poll_message(&mut self, writable: Bytes, now: Instant) -> Option<Message> {
        let due = match self.state {
            State::Closed | State::Finished => return None,
            State::Waiting(begin) if now < begin => return None,
            State::Waiting(begin) => begin,
            State::Sending if now >= self.stop => {
                self.state = State::Finished;
                return None;
            }
            State::Sending => now,
        };
        if writable < self.size {
            // Room is what the next message waits for, not the clock: it is due when there is some.
            self.state = State::Sending;
            return None;
        }
        Some(self.message(due))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Waiting(begin) => Some(begin),
            State::Closed | State::Sending | State::Finished => None,
        }
    }

    fn is_finished(&self) -> bool {
        self.state == State::Finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(burst: &mut Burst, writable: u64, ms: u64) -> Vec<(u64, Instant)> {
        let now = Instant::from_millis(ms);
        core::iter::from_fn(|| burst.poll_message(Bytes::new(writable), now))
            .map(|m| (m.seq, m.due))
            .collect()
    }

    #[test]
    fn bursts_stand_a_gap_apart() {
        let mut burst = Burst::new(3, Bytes::new(100), 2, Duration::from_millis(50), Instant::from_secs(9));
        assert_eq!(poll(&mut burst, 100, 0), []);
        burst.open(Instant::from_millis(10));
        assert_eq!(poll(&mut burst, 100, 10), [0, 1, 2].map(|seq| (seq, Instant::from_millis(10))));
        assert_eq!(burst.poll_timeout(), Some(Instant::from_millis(60)));
        assert_eq!(poll(&mut burst, 100, 59), []);
        let second = poll(&mut burst, 100, 61);
        assert_eq!(second[0], (3, Instant::from_millis(60)), "due at the gap's end, though polled late");
        assert_eq!(second[1..], [4, 5].map(|seq| (seq, Instant::from_millis(61))));
        assert!(burst.is_finished());
    }

    #[test]
    fn a_message_without_room_is_due_when_there_is_some() {
        let mut burst = Burst::new(2, Bytes::new(100), 1, Duration::ZERO, Instant::from_secs(9));
        burst.open(Instant::ZERO);
        assert_eq!(poll(&mut burst, 99, 0), []);
        assert_eq!(burst.poll_timeout(), None, "it waits for room");
        assert_eq!(
            burst.poll_message(Bytes::new(100), Instant::from_millis(7)).unwrap().due,
            Instant::from_millis(7)
        );
        assert_eq!(poll(&mut burst, 10, 7), []);
        assert!(!burst.is_finished());
    }

    #[test]
    fn no_burst_begins_at_or_after_the_stop() {
        let mut burst = Burst::new(1, Bytes::new(1), 9, Duration::from_millis(40), Instant::from_millis(80));
        burst.open(Instant::ZERO);
        assert_eq!(
            poll(&mut burst, 1, 0).len() + poll(&mut burst, 1, 40).len() + poll(&mut burst, 1, 80).len(),
            2
        );
        assert!(burst.is_finished());
    }
}
