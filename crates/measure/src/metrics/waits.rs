//! How long messages waited at their sender, and for lost data that had to be sent again.
//!
//! ```text
//!   due ── for room ──► taken ── in the transport ──► on the wire ── transit ──► received
//! ```
//!
//! - A message waits *for room* if the transport does not take it when it is due.
//! - It waits *in the transport* from there until its first byte leaves: for the congestion window, the
//!   receiver's window, Nagle's algorithm or pacing.
//! - It waits *for lost data* if its first byte was lost, or if it came whole and a stream had to deliver
//!   earlier bytes first that were lost (head-of-line blocking). Without the loss it would have been in
//!   transit for as long as the last message that no loss delayed. This transit is only compared with
//!   others, so two clocks that differ do not matter.
//!
//! ```text
//!   message  sent times   transit   would arrive   waited for lost data
//!         1           1     20 ms          20 ms                   0 ms
//!         2           2    120 ms          40 ms                 100 ms   lost, and sent again
//!         3           1    100 ms          60 ms                  80 ms   behind message 2
//!         4           1     80 ms          80 ms                  60 ms   behind message 2
//! ```
//!
//! A queue that grows on the path is no loss: each message then is in transit for longer, and none is sent
//! again. The kernel's TCP does not say when a message leaves, nor that it is sent again, so that only the
//! wait for room is known.
//!
//! Begin to read with [`WaitCounters::add`].

use talkpath_units::{Duration, Histogram, Instant, SignedDuration};

use crate::summary::WaitMs;
use crate::{Fate, MessageRecord};

/// Counts the waits of the messages of a flow, on the way to the receiver.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WaitCounters {
    pub(crate) for_room: WaitCounter,
    pub(crate) in_transport: WaitCounter,
    pub(crate) for_lost: WaitCounter,
    lost: LostData,
}

/// The waits of messages for one cause. Only waits above zero are kept one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WaitCounter {
    /// The number of messages, also of those that did not wait.
    messages: u64,
    /// The waits that are not zero.
    waits: Option<Box<Histogram>>,
}

/// What is known of lost data at a message, from the messages before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LostData {
    /// The transit of the last message that no loss delayed.
    undelayed: Option<SignedDuration>,
    /// When the last message was received that had been lost and was sent again.
    repaired_at: Option<Instant>,
}

impl WaitCounters {
    /// Counts the next message in the order of `seq`. In a stream a message waits for those before it.
    #[inline(always)]
    pub(crate) fn add(&mut self, row: &MessageRecord, is_stream: bool) {
        let Some(sent) = row.sent else { return };
        self.for_room.add(sent.since(row.due));
        // A wire time of the kernel may lie before the end of the call that took the message.
        let Some(wire) = row.wire else { return };
        self.in_transport.add(wire.since(sent));
        if row.fate == Fate::Delivered
            && let Some(received) = row.received
        {
            self.for_lost.add(self.lost.wait(wire, received, row.transmissions, is_stream));
        }
    }
}

impl LostData {
    /// Returns how long a message waited for lost data. It was `received`, and its first byte left at `wire`
    /// for the first time.
    #[inline]
    fn wait(&mut self, wire: Instant, received: Instant, transmissions: u32, is_stream: bool) -> Duration {
        let transit = received.signed_since(wire);
        let was_sent_again = transmissions > 1;
        if was_sent_again {
            self.repaired_at = self.repaired_at.max(Some(received));
        }
        let Some(undelayed) = self.undelayed else {
            if !was_sent_again {
                self.undelayed = Some(transit);
            }
            return Duration::ZERO;
        };
        let waited_until = if was_sent_again {
            Some(received)
        } else {
            self.repaired_at.filter(|_| is_stream).map(|repaired_at| repaired_at.min(received))
        };
        let wait = waited_until.map_or(i64::MIN, |until| {
            until.signed_since(wire).as_nanos().saturating_sub(undelayed.as_nanos())
        });
        if wait > 0 {
            return Duration::from_nanos(wait.unsigned_abs());
        }
        if !was_sent_again {
            self.undelayed = Some(transit);
        }
        Duration::ZERO
    }
}

impl WaitCounter {
    #[inline(always)]
    fn add(&mut self, wait: Duration) {
        self.messages += 1;
        if wait > Duration::ZERO {
            self.waits.get_or_insert_default().record_unsigned(wait);
        }
    }

    /// Returns the statistics of the waits. Returns `None` if no message waited.
    pub(crate) fn wait_ms(&self) -> Option<WaitMs> {
        let waits = self.waits.as_ref()?;
        let (_, max) = waits.range()?;
        let without = self.messages - waits.count();
        let at = |per_mille: u64| {
            // Nearest rank among all messages. Those that did not wait are the first ones.
            let rank = (self.messages * per_mille).div_ceil(1000).saturating_sub(without);
            let wait = waits.at_ranks([rank]).filter(|_| rank > 0);
            wait.map_or(0.0, |[wait]| wait.as_millis_f64())
        };
        Some(WaitMs { p50: at(500), p90: at(900), p99: at(990), max: max.as_millis_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{message, ms};

    /// A message that was due every 20 ms, waited, left, and came after its transit, all in ms.
    struct Story {
        for_room: u64,
        in_transport: u64,
        transit: u64,
        transmissions: u32,
    }

    const AT_ONCE: Story = Story { for_room: 0, in_transport: 0, transit: 20, transmissions: 1 };

    fn counted(stories: &[Story], is_stream: bool) -> WaitCounters {
        let mut counters = WaitCounters::default();
        for (seq, story) in (0..).zip(stories) {
            let due = 20 * seq;
            let (sent, wire) = (due + story.for_room, due + story.for_room + story.in_transport);
            let row = MessageRecord {
                sent: Some(ms(sent)),
                wire: Some(ms(wire)),
                received: Some(ms(wire + story.transit)),
                transmissions: story.transmissions,
                ..message(seq, Some(0))
            };
            counters.add(&row, is_stream);
        }
        counters
    }

    fn max(counter: &WaitCounter) -> f64 {
        counter.wait_ms().map_or(0.0, |wait| wait.max)
    }

    #[test]
    fn each_wait_at_the_sender_is_counted_where_it_was() {
        let mut stories: Vec<_> = (0..9).map(|_| AT_ONCE).collect();
        stories.push(Story { for_room: 7, in_transport: 34, ..AT_ONCE });
        stories.push(Story { in_transport: 12, ..AT_ONCE });
        let counters = counted(&stories, true);
        let room = counters.for_room.wait_ms().unwrap();
        assert_eq!((room.p50, room.p90, room.max), (0.0, 0.0, 7.0));
        let inside = counters.in_transport.wait_ms().unwrap();
        // The tenth of eleven messages.
        assert!((inside.p90 - 12.0).abs() < 0.02 && inside.p50 == 0.0, "{inside:?}");
        assert_eq!((inside.p99, inside.max), (34.0, 34.0));
        assert_eq!(counters.for_lost.wait_ms(), None, "nothing was lost");
    }

    #[test]
    fn a_lost_message_delays_itself_and_in_a_stream_those_behind_it() {
        let stories = [
            AT_ONCE,
            Story { transit: 120, transmissions: 2, ..AT_ONCE },
            Story { transit: 100, ..AT_ONCE },
            Story { transit: 80, ..AT_ONCE },
            AT_ONCE,
        ];
        let waits = counted(&stories, true).for_lost;
        assert_eq!((waits.messages, waits.waits.as_ref().unwrap().count()), (5, 3));
        assert_eq!(max(&waits), 100.0);
        let apart = counted(&stories, false).for_lost;
        assert_eq!(apart.waits.unwrap().count(), 1, "streams of their own do not wait for each other");
    }

    #[test]
    fn a_queue_that_grows_and_a_needless_retransmission_are_no_loss() {
        let ramp: Vec<_> = (0..50).map(|n| Story { transit: 20 + 15 * n, ..AT_ONCE }).collect();
        assert_eq!(counted(&ramp, true).for_lost.wait_ms(), None);
        // All messages of an outage come at its end, and none is sent again.
        let outage: Vec<_> = (0..30).map(|n| Story { transit: 20 * (31 - n), ..AT_ONCE }).collect();
        assert_eq!(counted(&outage, true).for_lost.wait_ms(), None);
        let needless = [AT_ONCE, Story { transmissions: 2, ..AT_ONCE }, AT_ONCE];
        assert_eq!(counted(&needless, true).for_lost.wait_ms(), None);
    }

    #[test]
    fn the_time_of_another_clock_changes_no_wait_for_lost_data() {
        let shifted = [
            Story { transit: 5_020, ..AT_ONCE },
            Story { transit: 5_120, transmissions: 2, ..AT_ONCE },
            Story { transit: 5_100, ..AT_ONCE },
        ];
        assert_eq!(max(&counted(&shifted, true).for_lost), 100.0);
    }
}
