//! Puts the frames of a call together from packets, if a sender sends speech more than once. A frame has
//! arrived as soon as one of the packets that have it has.
//!
//! ```text
//!  packets   1     2       3       4          RED with one earlier frame: packet 2 was lost
//!  frames   [1]   [1 2]   [2 3]   [3 4]       frame 2 comes in packet 3, one packet time later
//! ```
//!
//! A packet has the frames before it only if no silence was left out between them. Frames after a silence
//! begin anew, so the due times say which frames a packet has.
//!
//! The speech of in-band FEC counts as the frame, although it sounds worse.

use std::collections::VecDeque;

use talkpath_units::{Duration, Instant, SignedDuration};

use crate::Carriage;

/// A frame of speech, as a receiver gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrivedFrame {
    /// The number of the frame: that of its first message, over the number of copies.
    pub(crate) number: u64,
    /// The time at which its first packet was due.
    pub(crate) due: Instant,
    /// The time from when the frame was due until it first arrived. `None` if it never came.
    pub(crate) delay: Option<SignedDuration>,
}

/// Puts frames together. Packets are added in the order of their numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reassembly {
    carriage: Carriage,
    ptime: Duration,
    /// The number of copies that were added of the newest frame.
    copies: u8,
    /// The newest frames, which later packets may still bring. The newest frame is last.
    waiting: VecDeque<ArrivedFrame>,
}

impl Reassembly {
    /// Begins to put the frames of a call together, with a packet every `ptime`.
    pub(crate) fn new(carriage: Carriage, ptime: Duration) -> Self {
        let copies = carriage.copies.max(1);
        Self { carriage: Carriage { copies, ..carriage }, ptime, copies, waiting: VecDeque::new() }
    }

    /// Adds the packet whose message has the number `seq`. `delay` is the time from when the packet was due
    /// until it arrived, or `None` if it did not arrive. Returns the frame that no later packet can bring, if
    /// there is one.
    pub(crate) fn add(
        &mut self,
        seq: u64,
        due: Instant,
        delay: Option<SignedDuration>,
    ) -> Option<ArrivedFrame> {
        if self.copies == self.carriage.copies {
            self.copies = 0;
            let number = seq / u64::from(self.carriage.copies);
            self.waiting.push_back(ArrivedFrame { number, due, delay: None });
        }
        self.copies += 1;
        let mut age = Duration::ZERO;
        for frame in self.waiting.iter_mut().rev().take(1 + usize::from(self.carriage.earlier)) {
            if frame.due.saturating_add(age) != due {
                break;
            }
            let arrival = delay.map(|delay| later_by(delay, age));
            frame.delay = match (frame.delay, arrival) {
                (Some(first), Some(arrival)) => Some(first.min(arrival)),
                (first, arrival) => first.or(arrival),
            };
            age += self.ptime;
        }
        let is_complete = self.copies == self.carriage.copies;
        let may_still_change = usize::from(self.carriage.earlier) + usize::from(!is_complete);
        if self.waiting.len() > may_still_change { self.waiting.pop_front() } else { None }
    }

    /// Whether frames wait for later packets.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the frames that waited for later packets.
    pub(crate) fn finish(&mut self) -> impl Iterator<Item = ArrivedFrame> {
        core::mem::take(&mut self.waiting).into_iter()
    }
}

fn later_by(delay: SignedDuration, age: Duration) -> SignedDuration {
    let age = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
    SignedDuration::from_nanos(delay.as_nanos().saturating_add(age))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PTIME: Duration = Duration::from_millis(20);

    fn ms(ms: i64) -> SignedDuration {
        SignedDuration::from_nanos(ms * 1_000_000)
    }

    /// The delays of all frames, in ms. Packets are (slot, delay in ms).
    fn delays(carriage: Carriage, packets: &[(u64, Option<i64>)]) -> Vec<Option<i64>> {
        let mut reassembly = Reassembly::new(carriage, PTIME);
        let mut frames = Vec::new();
        for (seq, &(slot, delay)) in (0..).zip(packets) {
            frames.extend(reassembly.add(seq, Instant::ZERO + PTIME * slot, delay.map(ms)));
        }
        frames.extend(reassembly.finish());
        assert!(frames.iter().zip(0..).all(|(frame, number)| frame.number == number));
        frames.iter().map(|frame| frame.delay.map(|delay| delay.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn a_lost_frame_comes_in_the_next_packet_one_packet_time_later() {
        let packets = [(0, Some(30)), (1, None), (2, Some(35)), (3, None), (4, None), (5, Some(30))];
        let red = |earlier| delays(Carriage { earlier, ..Carriage::default() }, &packets);
        assert_eq!(red(0), [Some(30), None, Some(35), None, None, Some(30)]);
        assert_eq!(red(1), [Some(30), Some(55), Some(35), None, Some(50), Some(30)]);
        assert_eq!(red(2), [Some(30), Some(55), Some(35), Some(70), Some(50), Some(30)]);
    }

    #[test]
    fn a_packet_after_a_silence_has_no_earlier_frame() {
        let packets = [(0, Some(30)), (1, None), (9, Some(30))];
        let frames = delays(Carriage { earlier: 2, ..Carriage::default() }, &packets);
        assert_eq!(frames, [Some(30), None, Some(30)]);
    }

    #[test]
    fn the_first_copy_that_arrives_is_the_frame() {
        let packets = [(0, None), (0, Some(40)), (1, Some(50)), (1, Some(30)), (2, None), (2, None)];
        let frames = delays(Carriage { copies: 2, earlier: 0 }, &packets);
        assert_eq!(frames, [Some(40), Some(30), None]);
        let frames = delays(Carriage { copies: 2, earlier: 1 }, &packets);
        assert_eq!(frames, [Some(40), Some(30), None]);
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(256))]

        /// Every packet time has a frame, and sending speech more often never makes a frame later.
        #[test]
        fn more_packets_with_a_frame_never_lose_it(
            arrivals in prop::collection::vec(prop::option::of(0_i64..200), 1..60), earlier in 0_u8..4,
        ) {
            let packets: Vec<_> = (0..).zip(arrivals.iter().copied()).collect();
            let plain = delays(Carriage::default(), &packets);
            let red = delays(Carriage { earlier, ..Carriage::default() }, &packets);
            prop_assert_eq!(&plain, &arrivals);
            for (plain, red) in plain.iter().zip(&red) {
                prop_assert!(plain.is_none() || (red.is_some() && red <= plain));
            }
        }
    }
}
