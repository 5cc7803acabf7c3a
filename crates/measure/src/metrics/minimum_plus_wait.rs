//! A receiver of a call whose playout delay is the smallest delay of the whole call and a fixed wait.
//!
//! ```text
//!   delay   always played     played or late     always late
//!    ├──────────────────────┼──────────────────┼─────────────►
//!  bound            bound + wait        minimum + wait
//! ```
//!
//! A frame is *played* if its delay is at most the playout delay, and *late* otherwise. The smallest delay is
//! known only at the end of the call. Until then the *minimum* of the delays so far can only fall, and it
//! cannot fall below the *lower bound*. So the outcome of most frames is decided when they arrive.
//!
//! Decided frames are counted and forgotten, as soon as all frames before them are decided. An undecided
//! frame keeps its delay, which takes 4 B, and a frame with the same delay as the frame before takes nothing.
//! On one clock no delay is below 0, so 0 is the lower bound. If all delays are smaller than the wait,
//! nothing is kept. Over a longer path up to 4 B are kept for each frame, which is 12 kB for a minute of
//! frames of 20 ms.
//!
//! Begin to read with [`MinimumPlusWait::add`].

use std::collections::VecDeque;

use talkpath_units::Duration;

use super::playout::Heard;
use super::timeline::Timeline;

/// The largest distance of a kept delay from the base, in either direction: 2^30 ns, which is 1.07 s.
const MAX_OFFSET_NS: i64 = 1 << 30;

/// Counts the frames of one direction of a call. All delays are in ns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MinimumPlusWait {
    wait: i64,
    /// No delay is below this one.
    lower_bound: i64,
    /// The smallest delay so far.
    minimum: Option<i64>,
    /// The outcomes of the frames before `kept`.
    counted: Timeline,
    /// The first undecided frame, and all frames after it.
    kept: VecDeque<PackedRun>,
    /// The delay from which the offsets in `kept` are counted.
    base: i64,
    /// The delay of the last frame, if it is undecided.
    last_delay: Option<i64>,
}

/// One or several frames that follow each other.
#[derive(Clone, Copy)]
enum FrameRun {
    /// One undecided frame whose delay is the base plus this offset, in ns.
    Undecided { offset: i64 },
    /// Undecided frames with the same delay as the frame before.
    Repeated { count: u32 },
    /// Frames with the same outcome.
    Decided { heard: Heard, count: u32 },
}

/// A [`FrameRun`] in 32 bits.
///
/// ```text
///  bit  31  30 29  28 ... 0
///        0  offset + 2^30        one undecided frame
///        1  kind   count         several frames
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedRun(u32);

impl MinimumPlusWait {
    /// Makes a receiver of a call with a frame every `frame`.
    ///
    /// # Panics
    /// Panics if `wait` is half a second or more, because [`PackedRun`] has no bits for such an offset.
    pub(crate) fn new(frame: Duration, wait: Duration, lower_bound: i64) -> Self {
        let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        assert!(wait < MAX_OFFSET_NS / 2, "a wait of {wait} ns");
        Self {
            wait,
            lower_bound,
            minimum: None,
            counted: Timeline::new(frame, frame),
            kept: VecDeque::new(),
            base: 0,
            last_delay: None,
        }
    }

    /// Adds the next frame by number. `delay` is `None` if the frame is missing.
    pub(crate) fn add(&mut self, delay: Option<i64>) {
        let Some(delay) = delay else { return self.add_decided(Heard::Missing) };
        if self.minimum.is_none_or(|minimum| delay < minimum) {
            self.minimum = Some(delay);
            self.count_decided_frames();
        }
        match self.outcome(delay) {
            Some(heard) => self.add_decided(heard),
            None if self.last_delay == Some(delay) => self.keep(FrameRun::Repeated { count: 1 }),
            None => self.add_undecided(delay),
        }
    }

    /// Returns the outcomes of all frames, each with the playout delay, and the playout delay in ns if a
    /// frame came.
    pub(crate) fn finish(&self) -> (Timeline, Option<i64>) {
        let playout_delay = self.playout_delay();
        let mut frames = self.counted.with_delay(playout_delay.unwrap_or(0));
        let mut previous = Heard::Missing;
        for packed in &self.kept {
            let (heard, count) = match packed.unpack() {
                FrameRun::Undecided { offset } if Some(self.base + offset) <= playout_delay => {
                    (Heard::Played, 1)
                }
                FrameRun::Undecided { .. } => (Heard::Late, 1),
                FrameRun::Repeated { count } => (previous, count),
                FrameRun::Decided { heard, count } => (heard, count),
            };
            frames.push(heard, playout_delay.unwrap_or(0), count);
            previous = heard;
        }
        (frames, playout_delay)
    }

    /// Returns the playout delay if no smaller delay follows. Returns `None` before the first frame.
    fn playout_delay(&self) -> Option<i64> {
        Some(self.minimum?.saturating_add(self.wait))
    }

    /// Returns the outcome of a frame with this delay. Returns `None` if it depends on later frames.
    fn outcome(&self, delay: i64) -> Option<Heard> {
        if Some(delay) > self.playout_delay() {
            return Some(Heard::Late);
        }
        (delay <= self.lower_bound.saturating_add(self.wait)).then_some(Heard::Played)
    }

    fn add_decided(&mut self, heard: Heard) {
        if self.kept.is_empty() {
            self.counted.push(heard, 0, 1);
        } else {
            self.keep(FrameRun::Decided { heard, count: 1 });
        }
        self.last_delay = None;
    }

    fn add_undecided(&mut self, delay: i64) {
        let minimum = self.minimum.unwrap_or(delay);
        if self.kept.is_empty() {
            self.base = minimum;
        }
        if delay - self.base < -MAX_OFFSET_NS {
            self.move_base(minimum);
        }
        self.keep(FrameRun::Undecided { offset: delay - self.base });
        self.last_delay = Some(delay);
    }

    /// Counts the oldest kept frames, as far as they are decided.
    fn count_decided_frames(&mut self) {
        let mut previous = Heard::Missing;
        while let Some(first) = self.kept.front() {
            let (heard, count) = match first.unpack() {
                FrameRun::Undecided { offset } => match self.outcome(self.base + offset) {
                    Some(heard) => (heard, 1),
                    None => break,
                },
                FrameRun::Repeated { count } => (previous, count),
                FrameRun::Decided { heard, count } => (heard, count),
            };
            self.counted.push(heard, 0, count);
            previous = heard;
            self.kept.pop_front();
        }
    }

    /// Counts the offsets from `base`, which is the smallest delay so far. A frame whose offset would be too
    /// large is late, because the wait is smaller than the largest offset.
    fn move_base(&mut self, base: i64) {
        let old_base = core::mem::replace(&mut self.base, base);
        let mut previous_outcome = None;
        for packed in core::mem::take(&mut self.kept) {
            let run = match packed.unpack() {
                FrameRun::Undecided { offset } => {
                    let delay = old_base + offset;
                    previous_outcome = self.outcome(delay);
                    match previous_outcome {
                        Some(heard) => FrameRun::Decided { heard, count: 1 },
                        None => FrameRun::Undecided { offset: delay - base },
                    }
                }
                FrameRun::Repeated { count } => match previous_outcome {
                    Some(heard) => FrameRun::Decided { heard, count },
                    None => FrameRun::Repeated { count },
                },
                decided @ FrameRun::Decided { .. } => decided,
            };
            self.keep(run);
        }
    }

    /// Keeps a run. If the last run is of the same kind, the two become one.
    fn keep(&mut self, run: FrameRun) {
        if let Some(last) = self.kept.back_mut()
            && let Some(joined) = last.unpack().join(run).and_then(PackedRun::pack)
        {
            *last = joined;
            return;
        }
        // A run that was not joined always fits: its offset is in range, and its count was kept before.
        self.kept.extend(PackedRun::pack(run));
    }
}

impl FrameRun {
    /// Joins this run with the one that follows it. Returns `None` if the frames differ.
    fn join(self, following: Self) -> Option<Self> {
        match (self, following) {
            (Self::Decided { heard, count }, Self::Decided { heard: next_heard, count: more })
                if heard == next_heard =>
            {
                Some(Self::Decided { heard, count: count.checked_add(more)? })
            }
            (Self::Repeated { count }, Self::Repeated { count: more }) => {
                Some(Self::Repeated { count: count.checked_add(more)? })
            }
            _ => None,
        }
    }
}

impl PackedRun {
    const COUNT_BITS: u32 = 29;
    const MAX_COUNT: u32 = (1 << Self::COUNT_BITS) - 1;

    // The values of bits 31 to 29 if there are several frames.
    const PLAYED: u32 = 0b100;
    const LATE: u32 = 0b101;
    const MISSING: u32 = 0b110;
    const REPEATED: u32 = 0b111;

    /// Packs `run`. Returns `None` if its offset or its count is too large.
    fn pack(run: FrameRun) -> Option<Self> {
        let (kind, count) = match run {
            FrameRun::Undecided { offset } => {
                let shifted = u32::try_from(offset + MAX_OFFSET_NS).ok()?;
                let is_in_range = shifted >> 31 == 0;
                return is_in_range.then_some(Self(shifted));
            }
            FrameRun::Decided { heard: Heard::Played, count } => (Self::PLAYED, count),
            FrameRun::Decided { heard: Heard::Late, count } => (Self::LATE, count),
            FrameRun::Decided { heard: Heard::Missing, count } => (Self::MISSING, count),
            FrameRun::Repeated { count } => (Self::REPEATED, count),
        };
        (count <= Self::MAX_COUNT).then_some(Self(kind << Self::COUNT_BITS | count))
    }

    const fn unpack(self) -> FrameRun {
        let count = self.0 & Self::MAX_COUNT;
        match self.0 >> Self::COUNT_BITS {
            Self::PLAYED => FrameRun::Decided { heard: Heard::Played, count },
            Self::LATE => FrameRun::Decided { heard: Heard::Late, count },
            Self::MISSING => FrameRun::Decided { heard: Heard::Missing, count },
            Self::REPEATED => FrameRun::Repeated { count },
            _ => FrameRun::Undecided { offset: self.0 as i64 - MAX_OFFSET_NS },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: Duration = Duration::from_millis(20);
    const WAIT: Duration = Duration::from_millis(60);
    const MS: i64 = 1_000_000;

    fn receiver_of(delays: &[Option<i64>], lower_bound: i64) -> MinimumPlusWait {
        let mut receiver = MinimumPlusWait::new(FRAME, WAIT, lower_bound);
        delays.iter().for_each(|delay| receiver.add(*delay));
        receiver
    }

    /// Returns what the definition gives, from all delays at once.
    fn by_definition(delays: &[Option<i64>]) -> (Timeline, Option<i64>) {
        let playout_delay = delays.iter().flatten().min().map(|minimum| minimum + 60 * MS);
        let mut frames = Timeline::new(FRAME, FRAME);
        for delay in delays {
            let heard = match delay {
                None => Heard::Missing,
                Some(_) if *delay <= playout_delay => Heard::Played,
                Some(_) => Heard::Late,
            };
            frames.push(heard, playout_delay.unwrap_or(0), 1);
        }
        (frames, playout_delay)
    }

    #[test]
    fn delays_below_the_wait_on_one_clock_and_late_frames_keep_nothing() {
        // The first frame waited until its connection was open.
        let delays: Vec<_> =
            (0..30_000).map(|seq| Some(if seq == 0 { 300 } else { 20 + seq % 40 } * MS)).collect();
        let receiver = receiver_of(&delays, 0);
        assert_eq!((receiver.kept.len(), receiver.finish()), (0, by_definition(&delays)));
    }

    #[test]
    fn a_longer_path_keeps_4_bytes_a_frame_and_nothing_where_its_delay_stays() {
        let even = receiver_of(&[Some(150 * MS); 30_000], 0);
        assert_eq!((even.kept.len(), even.finish().0.frames().played), (2, 30_000));
        let delays: Vec<_> = (0..30_000).map(|seq| Some((150 + seq % 7) * MS)).collect();
        let varying = receiver_of(&delays, 0);
        assert!(varying.kept.len() <= delays.len() && size_of::<PackedRun>() == 4);
        assert_eq!(varying.finish(), by_definition(&delays));
    }

    #[test]
    fn a_connection_that_opens_after_10_s_delivers_what_waited_and_all_is_counted() {
        let waited = (0..500).map(|seq| Some((10_000 - 20 * seq) * MS));
        let delays: Vec<_> = waited.chain((0..500).map(|seq| Some((80 + seq % 50) * MS))).collect();
        assert_eq!(receiver_of(&delays, 0).finish(), by_definition(&delays));
        assert_eq!(receiver_of(&delays, i64::MIN).finish(), by_definition(&delays));
    }

    /// Delays that form runs, that repeat, and that fall by more than the largest offset.
    fn any_delays() -> impl Strategy<Value = Vec<Option<i64>>> {
        let around = prop_oneof![0_i64..120, 100_i64..400, 0_i64..10_000];
        let run = (proptest::option::weighted(0.9, around), 1_usize..6);
        proptest::collection::vec(run, 1..80).prop_map(|runs| {
            let frames = runs.into_iter().flat_map(|(ms, count)| core::iter::repeat_n(ms, count));
            frames.map(|ms| ms.map(|ms| ms * MS + ms % 3)).collect()
        })
    }

    proptest! {
        #![proptest_config(talkpath_testing::properties(512))]

        #[test]
        fn frames_are_played_within_the_wait_of_the_smallest_delay_of_the_whole_call(
            delays in any_delays(), offset in -20_000_i64..20_000,
        ) {
            prop_assert_eq!(receiver_of(&delays, 0).finish(), by_definition(&delays));
            // Between two clocks a delay may be below zero.
            let shifted: Vec<_> = delays.iter().map(|delay| delay.map(|delay| delay + offset * MS)).collect();
            prop_assert_eq!(receiver_of(&shifted, i64::MIN).finish(), by_definition(&shifted));
        }
    }
}
