//! Voice: one frame each packetisation time, whatever the network does (RFC 3551 §4.2).
//!
//! Frame k is due at open + k ptime. There is no silence suppression: every frame is sent.

use talkpath_units::{Bytes, Duration, Instant};
use talkpath_wire::Message;

use super::source::{Awaits, Workload};

/// A codec's clock.
#[derive(Clone, Debug)]
pub struct Voice {
    ptime: Duration,
    size: Bytes,
    stop: Instant,
    /// Due time of the frame `seq`; `None` before the connection opened.
    next: Option<Instant>,
    seq: u64,
}

impl Voice {
    /// Frames of `size` every `ptime`, none at or after `stop`.
    pub const fn new(ptime: Duration, size: Bytes, stop: Instant) -> Self {
        Self { ptime, size, stop, next: None, seq: 0 }
    }
}

impl Workload for Voice {
    #[inline]
    fn awaits(&self) -> Awaits {
        Awaits::Clock
    }

    fn open(&mut self, now: Instant) {
        self.next = Some(now);
    }

    fn poll_message(&mut self, _writable: Bytes, now: Instant) -> Option<Message> {
        let due = self.next.filter(|due| *due <= now && *due < self.stop)?;
        let message = Message { seq: self.seq, size: self.size, due };
        self.seq += 1;
        // A frame time of zero would never let the clock move on.
        self.next = Some(due.saturating_add(self.ptime.max(Duration::from_nanos(1))));
        Some(message)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next.filter(|due| *due < self.stop)
    }

    fn is_finished(&self) -> bool {
        self.next.is_some_and(|due| due >= self.stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_one_second_has_fifty_frames_on_the_codecs_clock() {
        let open = Instant::from_millis(37);
        let mut voice = Voice::new(Duration::from_millis(20), Bytes::new(160), Instant::from_millis(1037));
        assert_eq!(voice.poll_message(Bytes::MAX, open), None, "not open yet");
        assert!(!voice.is_finished());
        voice.open(open);
        let mut dues = Vec::new();
        while let Some(now) = voice.poll_timeout() {
            while let Some(message) = voice.poll_message(Bytes::ZERO, now) {
                assert_eq!(message.size, Bytes::new(160));
                assert_eq!(message.seq, dues.len() as u64);
                dues.push(message.due);
            }
        }
        let expected: Vec<_> = (0..50).map(|k| open + Duration::from_millis(20) * k).collect();
        assert_eq!(dues, expected);
        assert!(voice.is_finished());
    }

    #[test]
    fn a_late_poll_gets_every_overdue_frame_with_its_own_due_time() {
        let mut voice = Voice::new(Duration::from_millis(20), Bytes::new(160), Instant::from_secs(1));
        voice.open(Instant::ZERO);
        let late = Instant::from_millis(45);
        let dues: Vec<_> =
            core::iter::from_fn(|| voice.poll_message(Bytes::ZERO, late)).map(|m| m.due).collect();
        assert_eq!(dues, [0, 20, 40].map(Instant::from_millis));
        assert_eq!(voice.poll_timeout(), Some(Instant::from_millis(60)));
    }
}
