//! A receiver that waits a fixed time beyond the smallest delay of the whole call.
//!
//! ```text
//!   delay   always played     played or late     always late
//!    ├──────────────────────┼──────────────────┼─────────────►
//!  floor              floor + wait       least + wait
//! ```
//!
//! The smallest delay is not known before the end. Until then it can only fall, and no lower than `floor`, so
//! what becomes of most frames is known at once. Those that are left keep their delays, in order, 4 B each; a
//! delay that repeats the one before takes nothing. Frames that are decided are counted and forgotten, once
//! all before them are. So a call on one clock (`floor` is 0) keeps nothing where delays are below the wait,
//! and a call over a longer path up to 4 B a frame, 12 kB a minute of frames of 20 ms.

use std::collections::VecDeque;

use talkpath_units::Duration;

use super::frames::Frames;
use super::playout::Heard;

/// Counts the frames of one direction of a call with such a receiver. Delays are ns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BeyondLeast {
    wait: i64,
    /// No delay is below this one.
    floor: i64,
    /// The smallest delay until now.
    least: Option<i64>,
    /// The frames before `kept`.
    counted: Frames,
    /// The first frame that is not decided, and those after it.
    kept: VecDeque<Kept>,
    /// What [`Kept::offset`] counts from.
    base: i64,
    /// The delay of the last frame, if that is the last in `kept` and not decided.
    last: Option<i64>,
}

/// One frame or several, packed: those that are not decided are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept(u32);

/// What a [`Kept`] holds.
#[derive(Clone, Copy)]
enum Run {
    /// One frame with this delay, ns beyond the base.
    Offset(i64),
    /// This many frames with this outcome.
    Decided(Heard, u32),
    /// This many frames with the delay of the one before.
    Again(u32),
}

impl BeyondLeast {
    /// A receiver without frames, of a call whose frames are `frame` apart.
    ///
    /// # Panics
    /// `wait` is not below half a second: offsets have no bits for it.
    pub(crate) fn new(frame: Duration, wait: Duration, floor: i64) -> Self {
        let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        assert!(wait < OFFSETS / 2, "a wait of {wait} ns");
        Self {
            wait,
            floor,
            least: None,
            counted: Frames::new(frame),
            kept: VecDeque::new(),
            base: 0,
            last: None,
        }
    }

    /// The next frame by number came after this delay, or never.
    pub(crate) fn add(&mut self, delay: Option<i64>) {
        let Some(delay) = delay else { return self.add_decided(Heard::Missing) };
        if self.least.is_none_or(|least| delay < least) {
            self.least = Some(delay);
            self.count_decided();
        }
        match self.decided(delay) {
            Some(heard) => self.add_decided(heard),
            None if self.last == Some(delay) => self.keep(Run::Again(1)),
            None => self.add_undecided(delay),
        }
    }

    /// What becomes of all frames, and the playout delay, ns, if one came.
    pub(crate) fn finish(&self) -> (Frames, Option<i64>) {
        let mut frames = self.counted.clone();
        let playout = self.playout();
        let mut before = Heard::Missing;
        for kept in &self.kept {
            let (heard, count) = match kept.run() {
                Run::Offset(offset) if Some(self.base + offset) <= playout => (Heard::Played, 1),
                Run::Offset(_) => (Heard::Late, 1),
                Run::Decided(heard, count) => (heard, count),
                Run::Again(count) => (before, count),
            };
            (0..count).for_each(|_| frames.add(heard));
            before = heard;
        }
        (frames, playout)
    }

    /// The playout delay if no smaller delay comes; `None` before the first frame.
    fn playout(&self) -> Option<i64> {
        Some(self.least?.saturating_add(self.wait))
    }

    /// What becomes of a frame with this delay, whichever the smallest will be.
    fn decided(&self, delay: i64) -> Option<Heard> {
        if Some(delay) > self.playout() {
            return Some(Heard::Late);
        }
        (delay <= self.floor.saturating_add(self.wait)).then_some(Heard::Played)
    }

    fn add_decided(&mut self, heard: Heard) {
        if self.kept.is_empty() {
            self.counted.add(heard);
        } else {
            self.keep(Run::Decided(heard, 1));
        }
        self.last = None;
    }

    fn add_undecided(&mut self, delay: i64) {
        let least = self.least.unwrap_or(delay);
        if self.kept.is_empty() {
            self.base = least;
        }
        if delay - self.base < -OFFSETS {
            self.rebase(least);
        }
        self.keep(Run::Offset(delay - self.base));
        self.last = Some(delay);
    }

    /// Keeps the delays as offsets from `base`, the smallest delay until now. What is more than the wait
    /// above it is late.
    fn rebase(&mut self, base: i64) {
        let old = core::mem::take(&mut self.kept);
        let old_base = core::mem::replace(&mut self.base, base);
        let mut before = None;
        for kept in old {
            match kept.run() {
                Run::Offset(offset) => {
                    let delay = old_base + offset;
                    before = self.decided(delay);
                    self.keep(before.map_or(Run::Offset(delay - base), |heard| Run::Decided(heard, 1)));
                }
                Run::Again(count) => {
                    self.keep(before.map_or(Run::Again(count), |heard| Run::Decided(heard, count)));
                }
                Run::Decided(heard, count) => self.keep(Run::Decided(heard, count)),
            }
        }
    }

    /// Counts the oldest kept frames, as far as they are decided.
    fn count_decided(&mut self) {
        let mut before = Heard::Missing;
        while let Some(first) = self.kept.front() {
            let (heard, count) = match first.run() {
                Run::Offset(offset) => match self.decided(self.base + offset) {
                    Some(heard) => (heard, 1),
                    None => break,
                },
                Run::Decided(heard, count) => (heard, count),
                Run::Again(count) => (before, count),
            };
            (0..count).for_each(|_| self.counted.add(heard));
            before = heard;
            self.kept.pop_front();
        }
    }

    /// Adds a run to those that are kept, to the last one if that is alike.
    fn keep(&mut self, run: Run) {
        if let Some(last) = self.kept.back_mut() {
            let joined = match (last.run(), &run) {
                (Run::Decided(heard, count), Run::Decided(other, more)) if heard == *other => {
                    count.checked_add(*more).map(|count| Run::Decided(heard, count))
                }
                (Run::Again(count), Run::Again(more)) => count.checked_add(*more).map(Run::Again),
                _ => None,
            };
            if let Some(joined) = joined.and_then(Kept::new) {
                *last = joined;
                return;
            }
        }
        // One run alone always fits: its offset is in range, and its count is one that was kept before.
        self.kept.extend(Kept::new(run));
    }
}

/// How far an offset reaches on either side of the base, ns: 2^30, 1.07 s.
const OFFSETS: i64 = 1 << 30;

/// The bits of a [`Kept`] that hold a count of frames.
const COUNT: u32 = (1 << 29) - 1;

impl Kept {
    /// Bit 31 is 0 before an offset, to which 2^30 is added. Else bits 30 and 29 say which run it is, and
    /// those below count its frames. `None` if the number does not fit.
    fn new(run: Run) -> Option<Self> {
        let (kind, count) = match run {
            Run::Offset(offset) => {
                return Some(Self(u32::try_from(offset + OFFSETS).ok().filter(|it| it >> 31 == 0)?));
            }
            Run::Decided(Heard::Played, count) => (4, count),
            Run::Decided(Heard::Late, count) => (5, count),
            Run::Decided(Heard::Missing, count) => (6, count),
            Run::Again(count) => (7, count),
        };
        (count <= COUNT).then_some(Self(kind << 29 | count))
    }

    const fn run(self) -> Run {
        let count = self.0 & COUNT;
        match self.0 >> 29 {
            4 => Run::Decided(Heard::Played, count),
            5 => Run::Decided(Heard::Late, count),
            6 => Run::Decided(Heard::Missing, count),
            7 => Run::Again(count),
            _ => Run::Offset(self.0 as i64 - OFFSETS),
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

    fn counted(delays: &[Option<i64>], floor: i64) -> BeyondLeast {
        let mut receiver = BeyondLeast::new(FRAME, WAIT, floor);
        delays.iter().for_each(|delay| receiver.add(*delay));
        receiver
    }

    /// By the definition, with every delay at hand.
    fn by_definition(delays: &[Option<i64>]) -> (Frames, Option<i64>) {
        let playout = delays.iter().flatten().min().map(|least| least + 60 * MS);
        let mut frames = Frames::new(FRAME);
        for delay in delays {
            frames.add(match delay {
                None => Heard::Missing,
                Some(_) if *delay <= playout => Heard::Played,
                Some(_) => Heard::Late,
            });
        }
        (frames, playout)
    }

    #[test]
    fn delays_below_the_wait_on_one_clock_and_late_frames_keep_nothing() {
        // The first frame waited for its connection.
        let delays: Vec<_> =
            (0..30_000).map(|seq| Some(if seq == 0 { 300 } else { 20 + seq % 40 } * MS)).collect();
        let receiver = counted(&delays, 0);
        assert_eq!((receiver.kept.len(), receiver.finish()), (0, by_definition(&delays)));
    }

    #[test]
    fn a_longer_path_keeps_4_bytes_a_frame_and_nothing_where_its_delay_stays() {
        let even = counted(&[Some(150 * MS); 30_000], 0);
        assert_eq!((even.kept.len(), even.finish().0.played), (2, 30_000));
        let delays: Vec<_> = (0..30_000).map(|seq| Some((150 + seq % 7) * MS)).collect();
        let varying = counted(&delays, 0);
        assert!(varying.kept.len() <= delays.len() && size_of::<Kept>() == 4);
        assert_eq!(varying.finish(), by_definition(&delays));
    }

    #[test]
    fn a_connection_that_opens_after_10_s_delivers_what_waited_and_all_is_counted() {
        let waited = (0..500).map(|seq| Some((10_000 - 20 * seq) * MS));
        let delays: Vec<_> = waited.chain((0..500).map(|seq| Some((80 + seq % 50) * MS))).collect();
        assert_eq!(counted(&delays, 0).finish(), by_definition(&delays));
        assert_eq!(counted(&delays, i64::MIN).finish(), by_definition(&delays));
    }

    /// Delays, ms, that make runs, repeat, and fall by more than offsets reach.
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
            prop_assert_eq!(counted(&delays, 0).finish(), by_definition(&delays));
            // Between two clocks a delay may be below zero.
            let shifted: Vec<_> = delays.iter().map(|delay| delay.map(|delay| delay + offset * MS)).collect();
            prop_assert_eq!(counted(&shifted, i64::MIN).finish(), by_definition(&shifted));
        }
    }
}
