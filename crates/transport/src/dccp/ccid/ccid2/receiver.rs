//! The receiving half: when to acknowledge (RFC 4340 §11.3, RFC 4341 §6). The core adds the Ack Vector.

use talkpath_units::{Duration, Ecn, Instant};
use talkpath_wire::dccp::Seq;

use crate::dccp::Feature;
use crate::dccp::ccid::{Arrived, CcidReceiver};

/// CCID 2's receiving half.
#[derive(Clone, Debug)]
pub struct Ccid2Receiver {
    /// The peer's Ack Ratio.
    ratio: u64,
    /// Data packets since the last acknowledgement.
    unacknowledged: u64,
    deadline: Option<Instant>,
    greatest: Option<Seq>,
    /// A mark was answered at once at this time.
    marked_at: Option<Instant>,
}

impl Ccid2Receiver {
    /// Nothing has arrived yet.
    pub const fn new() -> Self {
        Self { ratio: INITIAL_ACK_RATIO, unacknowledged: 0, deadline: None, greatest: None, marked_at: None }
    }

    /// RFC 4340 §11.3: at once for what may indicate loss, and for a mark, though not more than once a round
    /// trip.
    fn is_urgent(&mut self, arrived: &Arrived, now: Instant) -> bool {
        let in_order = self.greatest.is_none_or(|greatest| arrived.seq == greatest.next());
        if arrived.ecn == Ecn::Ce
            && self.marked_at.is_none_or(|marked_at| now.since(marked_at) >= DEFAULT_RTT)
        {
            self.marked_at = Some(now);
            return true;
        }
        !in_order
    }
}

impl Default for Ccid2Receiver {
    fn default() -> Self {
        Self::new()
    }
}

impl CcidReceiver for Ccid2Receiver {
    fn on_packet(&mut self, arrived: &Arrived, now: Instant) {
        let is_urgent = self.is_urgent(arrived, now);
        self.greatest = Some(self.greatest.map_or(arrived.seq, |greatest| greatest.max(arrived.seq)));
        if !arrived.is_data {
            return;
        }
        self.unacknowledged += 1;
        if is_urgent || self.unacknowledged >= self.ratio {
            self.deadline = Some(now);
        } else if self.deadline.is_none() {
            self.deadline = Some(now + ACK_DELAY);
        }
    }

    fn acknowledge_at(&self) -> Option<Instant> {
        self.deadline
    }

    fn has_news(&self) -> bool {
        self.unacknowledged > 0
    }

    fn on_acknowledged(&mut self, _now: Instant) {
        self.unacknowledged = 0;
        self.deadline = None;
    }

    fn on_feature(&mut self, number: u8, value: u64) {
        if number == Feature::AckRatio.number() {
            self.ratio = value;
        }
    }
}

/// RFC 4340 §11.3.
const INITIAL_ACK_RATIO: u64 = 2;
/// RFC 4340 §11.3: "the default value of T should be 0.2 seconds".
const ACK_DELAY: Duration = Duration::from_millis(200);
/// RFC 4340 §3.4: the round trip of an end that has not measured it.
const DEFAULT_RTT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use talkpath_units::Bytes;

    use super::*;

    fn arrived(seq: u64, ecn: Ecn) -> Arrived {
        Arrived {
            seq: Seq::new(seq),
            is_data: true,
            payload: Bytes::new(100),
            ccval: 0,
            ndp_count: None,
            ecn,
        }
    }

    /// RFC 4340 §11.3: one acknowledgement for each Ack Ratio data packets, delayed by 0.2 s at most.
    #[test]
    fn every_second_packet_is_acknowledged_at_once_and_a_single_one_later() {
        let (mut receiver, now) = (Ccid2Receiver::new(), Instant::from_secs(1));
        receiver.on_packet(&arrived(1, Ecn::NotEct), now);
        assert_eq!(receiver.acknowledge_at(), Some(now + ACK_DELAY));
        receiver.on_packet(&arrived(2, Ecn::NotEct), now);
        assert_eq!(receiver.acknowledge_at(), Some(now));
        receiver.on_acknowledged(now);
        assert_eq!((receiver.acknowledge_at(), receiver.has_news()), (None, false));
        receiver.on_feature(Feature::AckRatio.number(), 3);
        receiver.on_packet(&arrived(3, Ecn::NotEct), now);
        receiver.on_packet(&arrived(4, Ecn::NotEct), now);
        assert_eq!(receiver.acknowledge_at(), Some(now + ACK_DELAY));
        receiver.on_packet(&arrived(5, Ecn::NotEct), now);
        assert_eq!(receiver.acknowledge_at(), Some(now));
    }

    #[test]
    fn a_gap_and_a_mark_are_told_at_once() {
        let now = Instant::from_secs(1);
        for second in [arrived(3, Ecn::NotEct), arrived(2, Ecn::Ce)] {
            let mut receiver = Ccid2Receiver::new();
            receiver.on_feature(Feature::AckRatio.number(), 9);
            receiver.on_packet(&arrived(1, Ecn::Ect0), now);
            receiver.on_packet(&second, now);
            assert_eq!(receiver.acknowledge_at(), Some(now));
        }
        let mut receiver = Ccid2Receiver::new();
        receiver.on_packet(&arrived(1, Ecn::Ce), now);
        receiver.on_acknowledged(now);
        receiver.on_packet(&arrived(2, Ecn::Ce), now + Duration::from_millis(199));
        assert_ne!(receiver.acknowledge_at(), Some(now + Duration::from_millis(199)));
    }
}
