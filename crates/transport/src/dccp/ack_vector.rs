//! The Ack Vector (RFC 4340 §11.4): which packets arrived, from the acknowledgement number backwards, a run a
//! byte.
//!
//! ```text
//!    7 6 5 4 3 2 1 0
//!   | S |  L        |      L + 1 packets in state S: received, received marked, not yet received
//! ```
//!
//! [`ack_vector`] reads; [`AckHistory`] is what the receiving end writes from. The history holds runs, the
//! latest first, and forgets what the peer has acknowledged to know (§11.4.2). It is bounded: if too many
//! gaps pile up, the oldest runs are forgotten, and never reported to the peer.

use std::collections::VecDeque;

use talkpath_wire::dccp::{DccpOption, Options, Seq};

/// The state of a packet (RFC 4340 §11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckState {
    /// State 0.
    Received,
    /// State 1: received with the Congestion Experienced mark.
    Marked,
    /// State 3.
    NotYetReceived,
}

/// Consecutive packets in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRun {
    /// Their state.
    pub state: AckState,
    /// The latest packet of the run.
    pub last: Seq,
    /// How many: at least 1.
    pub count: u64,
}

/// The runs of a packet that acknowledges `ack`, the latest first. Several options continue one another
/// (RFC 4340 §11.4); the reserved state 2 is taken as not yet received.
pub fn ack_vector(ack: Seq, options: &Options) -> impl Iterator<Item = AckRun> + '_ {
    let bytes = options.iter().flat_map(|option| match option {
        DccpOption::AckVector { runs, .. } => runs,
        _ => &[],
    });
    bytes.scan(ack, |last, &byte| {
        let run = AckRun {
            state: match byte >> RUN_BITS {
                0 => AckState::Received,
                1 => AckState::Marked,
                _ => AckState::NotYetReceived,
            },
            last: *last,
            count: u64::from(byte & LONGEST_RUN as u8) + 1,
        };
        *last = last.wrapping_sub(run.count);
        Some(run)
    })
}

/// What a receiving end knows of the peer's packets.
#[derive(Clone, Debug, Default)]
pub struct AckHistory {
    /// Without gaps or overlaps, the latest first; neighbours differ in state.
    runs: VecDeque<AckRun>,
    /// Our packets that carried a vector and have not been acknowledged, the oldest first: their numbers and
    /// what they acknowledged.
    reported: VecDeque<(Seq, Seq)>,
}

impl AckHistory {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The greatest number that arrived.
    pub fn latest(&self) -> Option<Seq> {
        self.runs.front().map(|run| run.last)
    }

    /// The least number that is still reported.
    pub fn oldest(&self) -> Option<Seq> {
        self.runs.back().map(|run| run.last.wrapping_sub(run.count - 1))
    }

    /// Packet `seq` arrived. What was received once stays as it was first seen (RFC 4340 §11.4.1); what lies
    /// before all that is still remembered is not taken up again. Returns whether the packet was taken up:
    /// false for a copy of one that had arrived.
    pub fn on_packet(&mut self, seq: Seq, marked: bool) -> bool {
        let state = if marked { AckState::Marked } else { AckState::Received };
        let Some(latest) = self.latest() else {
            self.runs.push_front(AckRun { state, last: seq, count: 1 });
            return true;
        };
        let ahead = seq.distance_from(latest);
        if ahead <= 0 {
            return self.fill_gap(seq, state);
        }
        if ahead > 1 {
            let count = ahead as u64 - 1;
            self.runs.push_front(AckRun {
                state: AckState::NotYetReceived,
                last: seq.wrapping_sub(1),
                count,
            });
        }
        match self.runs.front_mut() {
            Some(run) if run.state == state => {
                run.last = seq;
                run.count += 1;
            }
            _ => self.runs.push_front(AckRun { state, last: seq, count: 1 }),
        }
        self.runs.truncate(MOST_RUNS);
        true
    }

    /// Adds the vector as of the greatest number received, in as many options as it takes and as far back as
    /// there is room; nothing if nothing arrived. The nonce is always 0: see the module docs of [`super`].
    pub fn put(&self, options: &mut Options) {
        let mut bytes = [0; Options::ROOM];
        let mut size = 0;
        let room = options.room().saturating_sub(2);
        'runs: for run in &self.runs {
            let state = match run.state {
                AckState::Received => 0,
                AckState::Marked => 1,
                AckState::NotYetReceived => 3,
            };
            let mut left = run.count;
            while left > 0 {
                if size == room {
                    break 'runs;
                }
                let count = left.min(LONGEST_RUN + 1);
                bytes[size] = state << RUN_BITS | (count - 1) as u8;
                size += 1;
                left -= count;
            }
        }
        if size > 0 {
            let fits = options.push(DccpOption::AckVector { nonce: false, runs: &bytes[..size] });
            debug_assert!(fits, "the size was bounded by the room");
        }
    }

    /// Our packet `seq` left with the vector.
    pub fn on_reported(&mut self, seq: Seq) {
        if let Some(latest) = self.latest() {
            if self.reported.len() == MOST_REPORTS {
                self.reported.pop_front();
            }
            self.reported.push_back((seq, latest));
        }
    }

    /// The peer has received our packet `seq`: what it reported may be forgotten (RFC 4340 §11.4.2), but for
    /// the run of the greatest number, which every later vector begins from. Of packets before `seq` this
    /// says nothing.
    pub fn on_acknowledged(&mut self, seq: Seq) {
        let mut known = None;
        while let Some((sent, latest)) = self.reported.front().copied()
            && !sent.is_after(seq)
        {
            if sent == seq {
                known = Some(latest);
            }
            self.reported.pop_front();
        }
        let Some(known) = known else { return };
        loop {
            let only = self.runs.len() == 1;
            let Some(run) = self.runs.back_mut() else { return };
            let first = run.last.wrapping_sub(run.count - 1);
            if first.is_after(known) {
                break;
            }
            if run.last.is_after(known) {
                run.count = run.last.distance_from(known) as u64;
                break;
            }
            if only {
                run.count = 1;
                break;
            }
            self.runs.pop_back();
        }
    }

    /// `seq` is not after the greatest number: if it was not yet received, its run is split. Returns whether
    /// it was.
    fn fill_gap(&mut self, seq: Seq, state: AckState) -> bool {
        let Some(index) = self
            .runs
            .iter()
            .position(|run| !seq.is_after(run.last) && !seq.is_before(run.last.wrapping_sub(run.count - 1)))
        else {
            return false;
        };
        let gap = self.runs[index];
        if gap.state != AckState::NotYetReceived {
            return false;
        }
        let after = gap.last.distance_from(seq) as u64;
        let before = gap.count - after - 1;
        self.runs.remove(index);
        let parts = [
            AckRun { count: before, last: seq.wrapping_sub(1), ..gap },
            AckRun { state, last: seq, count: 1 },
            AckRun { count: after, ..gap },
        ];
        for part in parts.into_iter().filter(|part| part.count > 0) {
            self.runs.insert(index, part);
        }
        self.merge_around(index.saturating_sub(1), index + 3);
        self.runs.truncate(MOST_RUNS);
        true
    }

    /// Joins neighbours of the same state among the runs `from..to`.
    fn merge_around(&mut self, from: usize, to: usize) {
        let mut index = from;
        let mut end = to.min(self.runs.len());
        while index + 1 < end {
            if self.runs[index].state == self.runs[index + 1].state {
                self.runs[index].count += self.runs[index + 1].count;
                self.runs.remove(index + 1);
                end -= 1;
            } else {
                index += 1;
            }
        }
    }
}

/// RFC 4340 §11.4: two bits of state, six of run length.
const RUN_BITS: u32 = 6;
const LONGEST_RUN: u64 = 63;
/// Chosen: more runs than a vector has room for are never sent.
const MOST_RUNS: usize = 2 * Options::ROOM;
/// Chosen: vectors under way at once; of more, the oldest are taken as never acknowledged.
const MOST_REPORTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(history: &AckHistory) -> Vec<u8> {
        let mut options = Options::EMPTY;
        history.put(&mut options);
        match options.iter().next() {
            Some(DccpOption::AckVector { runs, .. }) => runs.to_vec(),
            _ => Vec::new(),
        }
    }

    fn history(arrivals: &[u64]) -> AckHistory {
        let mut history = AckHistory::default();
        for &seq in arrivals {
            history.on_packet(Seq::new(seq), false);
        }
        history
    }

    /// RFC 4340 §11.4: the byte is state and run length, and a run of length L says L + 1 packets.
    #[test]
    fn runs_are_coded_as_state_and_length_less_one() {
        // 10 received; 9 not; 8, 7, 6 received; 5, 4 not; 3 received.
        let history = history(&[3, 6, 7, 8, 10]);
        assert_eq!(bytes_of(&history), [0b00_000000, 0b11_000000, 0b00_000010, 0b11_000001, 0b00_000000]);
    }

    #[test]
    fn a_run_above_64_packets_takes_several_bytes() {
        let mut history = history(&(1..=100).collect::<Vec<_>>());
        assert_eq!(bytes_of(&history), [63, 35]);
        history.on_packet(Seq::new(300), true);
        assert_eq!(bytes_of(&history), [0x40, 0xff, 0xff, 0xff, 0xc0 + 6, 63, 35]);
    }

    /// RFC 4340 §11.4.1: a later packet changes what was not received, never what was.
    #[test]
    fn a_late_packet_fills_its_gap_and_a_duplicate_changes_nothing() {
        let mut history = history(&[1, 5]);
        assert!(history.on_packet(Seq::new(3), false));
        assert_eq!(bytes_of(&history), [0, 0xc0, 0, 0xc0, 0]);
        assert!(history.on_packet(Seq::new(4), false));
        assert_eq!(bytes_of(&history), [2, 0xc0, 0]);
        assert!(!history.on_packet(Seq::new(3), true));
        assert!(!history.on_packet(Seq::new(5), true));
        assert_eq!(bytes_of(&history), [2, 0xc0, 0]);
        assert!(history.on_packet(Seq::new(2), true));
        assert_eq!(bytes_of(&history), [2, 0x40, 0]);
    }

    #[test]
    fn what_is_written_is_read_again_across_the_wrap() {
        let last = (1 << 48) - 1;
        let history = history(&[last - 2, last, 1, 2]);
        let mut options = Options::EMPTY;
        history.put(&mut options);
        let runs: Vec<_> = ack_vector(Seq::new(2), &options)
            .map(|run| (run.state == AckState::Received, run.last.get(), run.count))
            .collect();
        assert_eq!(
            runs,
            [(true, 2, 2), (false, 0, 1), (true, last, 1), (false, last - 1, 1), (true, last - 2, 1)]
        );
    }

    /// RFC 4340 §11.4.2: an acknowledged report lets its packets be forgotten, however they stood.
    #[test]
    fn what_the_peer_knows_is_forgotten() {
        let mut history = history(&[1, 2, 4]);
        history.on_reported(Seq::new(70));
        history.on_packet(Seq::new(5), false);
        history.on_packet(Seq::new(7), false);
        history.on_reported(Seq::new(72));
        let full = [0, 0xc0, 1, 0xc0, 1];
        // Packet 71 carried no vector, and its arrival says nothing of packet 70.
        for without in [69, 71] {
            let mut history = history.clone();
            history.on_acknowledged(Seq::new(without));
            assert_eq!(bytes_of(&history), full);
        }
        history.on_acknowledged(Seq::new(70));
        assert_eq!(bytes_of(&history), [0, 0xc0, 0]);
        assert!(!history.on_packet(Seq::new(3), false));
        assert_eq!(bytes_of(&history), [0, 0xc0, 0]);
    }

    #[test]
    fn endless_gaps_take_bounded_room() {
        let history = history(&(0..10_000).map(|n| 2 * n).collect::<Vec<_>>());
        assert_eq!(history.runs.len(), MOST_RUNS);
        assert_eq!(bytes_of(&history).len(), Options::ROOM - 2);
    }
}
