//! Reordering (RFC 4737 §3): an arrival is reordered if its number is below the next expected number, which
//! is the largest number that has arrived plus one.
//!
//! Only the first copy of a message is judged. A later copy counts as a duplicate (RFC 5560). For an echo
//! flow the arrivals are those of the echoes.

use super::trip::{Trip, first_arrivals};

/// Returns how many of `arrivals` are reordered. Only the messages of `trips` count, which are in the order
/// of `seq`.
pub fn reordered(trips: &[Trip], arrivals: &[u64]) -> u64 {
    let mut counter = ReorderingCounter::default();
    for trip in first_arrivals(trips, arrivals) {
        counter.add(trip.seq);
    }
    counter.reordered
}

/// Counts reordered messages, arrival by arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReorderingCounter {
    next_expected: u64,
    pub(crate) reordered: u64,
}

impl ReorderingCounter {
    /// Adds the arrival of the first copy of message `seq`.
    #[inline]
    pub(crate) fn add(&mut self, seq: u64) {
        if seq >= self.next_expected {
            self.next_expected = seq.saturating_add(1);
        } else {
            self.reordered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Duration, Instant};

    use super::*;
    use crate::metrics::trip::{LossKind, TripOutcome};

    /// Returns how many of the messages from 1 to `messages` are reordered if they arrive in this order.
    fn count(messages: u64, arrivals: &[u64]) -> u64 {
        let trips: Vec<_> = (1..=messages)
            .map(|seq| Trip {
                seq,
                size: Bytes::new(160),
                due: Instant::from_millis(seq),
                sent: None,
                outcome: TripOutcome::Received(Instant::ZERO),
                turn_round: Duration::ZERO,
                copies: 1,
                loss: LossKind::Missing,
            })
            .collect();
        reordered(&trips, arrivals)
    }

    #[test]
    fn one_late_packet_is_reordered_and_those_it_missed_are_not() {
        // RFC 4737 §7.1: packet 4 after 8.
        assert_eq!(count(10, &[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]), 1);
    }

    #[test]
    fn one_early_packet_makes_two_reordered() {
        // RFC 4737 §7.2: packets 5 and 6 after 7.
        assert_eq!(count(10, &[1, 2, 3, 4, 7, 5, 6, 8, 9, 10]), 2);
    }

    #[test]
    fn three_late_packets_in_order_are_three() {
        // RFC 4737 §7.3: packets 4, 5 and 6 after 10.
        assert_eq!(count(11, &[1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11]), 3);
    }

    #[test]
    fn loss_is_not_reordering() {
        assert_eq!(count(6, &[1, 2, 5, 6]), 0);
    }

    #[test]
    fn a_late_duplicate_is_not_reordered() {
        assert_eq!(count(4, &[1, 2, 3, 1, 1, 4, 2]), 0);
    }

    #[test]
    fn the_first_copy_of_a_late_message_is_reordered_once() {
        assert_eq!(count(4, &[1, 3, 2, 2, 4]), 1);
    }

    #[test]
    fn arrivals_from_outside_the_window_do_not_count() {
        // 99 would otherwise make every later arrival a reordered one.
        assert_eq!(count(3, &[99, 1, 2, 3]), 0);
    }
}
