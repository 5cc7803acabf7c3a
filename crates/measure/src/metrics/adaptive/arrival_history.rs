//! The packets of the last two seconds. A packet's *relative delay* is its delay beyond the fastest of them.
//!
//! ```text
//!  relative delay = (arrival - arrival of the fastest) - (timestamp - timestamp of the fastest)
//! ```
//!
//! So neither the clock of the sender nor the delay of the path itself matters. A reordered packet has a
//! relative delay, but is never the fastest or the slowest packet.

use std::collections::{BTreeMap, VecDeque};

/// The length of the history in ms of timestamps (NetEq, `decision_logic.cc`).
const WINDOW_MS: i64 = 2_000;

/// The recent packets of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArrivalHistory {
    samples_per_ms: i64,
    /// The end of each packet by its timestamp, in samples.
    ends: BTreeMap<i64, i64>,
    /// Packets in order, from the fastest to the slowest, each later than the packets before it.
    fastest: VecDeque<Packet>,
    /// Packets in order, from the slowest to the fastest, each later than the packets before it.
    slowest: VecDeque<Packet>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    timestamp: i64,
    arrival_ms: i64,
    /// The arrival minus the timestamp, in samples.
    delay: i64,
}

/// Whether a packet came in the order of the timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    InOrder,
    Reordered,
}

impl ArrivalHistory {
    pub(super) fn new(samples_per_ms: i64) -> Self {
        Self { samples_per_ms, ..Self::default() }
    }

    /// Adds a packet of `samples` that came at `arrival_ms`. Returns `None`, and adds nothing, if the history
    /// has the packet already or if the packet is older than the history.
    pub(super) fn insert(&mut self, timestamp: i64, samples: i64, arrival_ms: i64) -> Option<Order> {
        let newest = self.ends.last_key_value().map(|(newest, _)| *newest);
        let window = WINDOW_MS * self.samples_per_ms;
        if newest.is_some_and(|newest| timestamp + window < newest) || self.has(timestamp, samples) {
            return None;
        }
        self.ends.insert(timestamp, timestamp + samples);
        if newest.is_some_and(|newest| timestamp < newest) {
            return Some(Order::Reordered);
        }
        while let Some(oldest) = self.ends.first_entry().filter(|oldest| *oldest.key() + window < timestamp) {
            let (oldest, _) = oldest.remove_entry();
            for packets in [&mut self.fastest, &mut self.slowest] {
                if packets.front().is_some_and(|packet| packet.timestamp == oldest) {
                    packets.pop_front();
                }
            }
        }
        let delay = arrival_ms * self.samples_per_ms - timestamp;
        let packet = Packet { timestamp, arrival_ms, delay };
        while self.fastest.pop_back_if(|earlier| delay <= earlier.delay).is_some() {}
        while self.slowest.pop_back_if(|earlier| delay >= earlier.delay).is_some() {}
        self.fastest.push_back(packet);
        self.slowest.push_back(packet);
        Some(Order::InOrder)
    }

    /// Returns how much later than the fastest packet a sample with this timestamp is, if it is there at
    /// `now_ms`.
    pub(super) fn relative_delay_ms(&self, timestamp: i64, now_ms: i64) -> u32 {
        let Some(fastest) = self.fastest.front() else { return 0 };
        // NetEq converts both timestamps to ms before it subtracts.
        let ms = |timestamp: i64| timestamp.div_euclid(self.samples_per_ms);
        let delay_ms = now_ms - fastest.arrival_ms - (ms(timestamp) - ms(fastest.timestamp));
        u32::try_from(delay_ms.max(0)).unwrap_or(u32::MAX)
    }

    /// Returns the relative delay of the slowest packet in order.
    pub(super) fn largest_delay_ms(&self) -> u32 {
        match self.slowest.front() {
            Some(slowest) => self.relative_delay_ms(slowest.timestamp, slowest.arrival_ms),
            None => 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether a packet in the history has all these samples.
    fn has(&self, timestamp: i64, samples: i64) -> bool {
        let before = self.ends.range(..=timestamp).next_back();
        before.is_some_and(|(_, end)| *end >= timestamp + samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of 20 ms packets at 8 kHz, given as the number of a packet and its arrival in ms.
    fn history(packets: &[(i64, i64)]) -> (ArrivalHistory, Vec<Option<Order>>) {
        let mut history = ArrivalHistory::new(8);
        let orders = packets.iter().map(|(number, at)| history.insert(number * 160, 160, *at)).collect();
        (history, orders)
    }

    #[test]
    fn the_delay_is_relative_to_the_fastest_packet() {
        let (history, _) = history(&[(0, 130), (1, 140), (2, 170), (3, 210)]);
        // Their delays are 130, 120, 130 and 150 ms.
        let delays = [(0, 130), (1, 140), (2, 170), (3, 210)]
            .map(|(number, at): (i64, i64)| history.relative_delay_ms(number * 160, at));
        assert_eq!((delays, history.largest_delay_ms()), ([10, 0, 10, 30], 30));
    }

    #[test]
    fn a_reordered_packet_is_known_and_is_never_the_slowest() {
        let (history, orders) = history(&[(0, 0), (2, 40), (1, 90), (1, 95)]);
        assert_eq!(orders, [Some(Order::InOrder), Some(Order::InOrder), Some(Order::Reordered), None]);
        assert_eq!((history.relative_delay_ms(160, 90), history.largest_delay_ms()), (70, 0));
    }

    #[test]
    fn packets_of_more_than_two_seconds_ago_are_forgotten() {
        let even: Vec<_> = (1..=101).map(|number| (number, 20 * number + 50)).collect();
        let (full, _) = history(&[&[(0, 0)], &even[..100]].concat());
        assert_eq!(full.largest_delay_ms(), 50);
        let (forgotten, _) = history(&[&[(0, 0)], &even[..]].concat());
        assert_eq!((forgotten.largest_delay_ms(), forgotten.len()), (0, 101));
    }
}
