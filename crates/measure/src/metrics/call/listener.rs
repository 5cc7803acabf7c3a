//! What one listener of a call hears, with each receiver.

use std::collections::BTreeSet;

use talkpath_units::{Duration, SignedDuration};

use super::Clocks;
use crate::metrics::adaptive::{Arrival, Block, JitterBuffer, SampleCounts, Step};
use crate::metrics::minimum_plus_wait::MinimumPlusWait;
use crate::metrics::playout::{Heard, OTHER_WAITS, Playout};
use crate::metrics::timeline::Timeline;
use crate::summary::Stretching;
use crate::{CallTerms, PlayoutRule};

/// The receiver of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnReceiver {
    /// A receiver that decides frame by frame.
    FrameByFrame(Box<FrameByFrame>),
    /// The receiver of browsers.
    Adaptive(Box<AdaptiveListener>),
}

/// A receiver that decides frame by frame, and what it played.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FrameByFrame {
    playout: Playout,
    timeline: Timeline,
    /// The number of samples in a frame.
    samples: i64,
    /// What was done to the samples. `None` if nobody wants to know.
    steps: Option<Vec<Step>>,
}

/// The receiver of browsers, and what it played.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AdaptiveListener {
    buffer: JitterBuffer,
    /// The number of samples in a frame.
    samples: i64,
    /// The frames that have arrived, and before which other frames may still have arrived: the arrival in ns,
    /// and the number of frames that were due before.
    waiting: BTreeSet<(i64, u64)>,
    /// The least delay so far in ns.
    least_delay_ns: i64,
    is_one_clock: bool,
    /// The delay of the first frame that arrived, in ns.
    first_delay_ns: Option<i64>,
    /// The time that was due before the first frame that arrived, in samples. Nothing is heard of it.
    unheard: i64,
    /// The number of frames that were due.
    due: u64,
    arrived: u64,
    missing: u64,
    heard: HeardSamples,
}

/// What is heard of the samples of a call, in units of [`UNIT`].
#[derive(Clone, Debug, PartialEq)]
struct HeardSamples {
    timeline: Timeline,
    /// The number of samples so far.
    samples: u64,
}

/// What a receiver made of the frames that were due.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    pub(super) timeline: Timeline,
    pub(super) played: u64,
    pub(super) late: u64,
    pub(super) missing: u64,
    /// `None` if the receiver decides frame by frame.
    pub(super) stretching: Option<Stretching>,
}

/// The sample rate by which the receiver of browsers counts. Each length of a frame is a whole number of its
/// samples, and shares of samples do not depend on it.
pub(super) const SAMPLE_RATE: u32 = 48_000;
const NANOS_PER_SAMPLE: (i128, i128) = (1_000_000, 48);
/// A unit of the timeline of the receiver of browsers. A join removes as much, all that it does else are
/// multiples, and so are the frames of our codecs. So each sample counts as what it is: were the units as
/// long as a block of the sound card, a lost frame that begins and ends within blocks would count as one
/// and a half.
const UNIT: Duration = Duration::from_micros(500);
const UNIT_SAMPLES: u64 = SAMPLE_RATE as u64 / 2_000;

/// By how much a delay between two clocks may fall below the least one so far. We chose 10 s. A frame that
/// comes even earlier counts as coming later than it did.
const FALLING_DELAY_NS: i64 = 10_000_000_000;

/// A frame whose delay differs by more than this from the first one's counts as missing, because nobody
/// listens any more. We chose one hour.
const LONGEST_WAIT_NS: u64 = 3_600_000_000_000;

impl OwnReceiver {
    pub(super) fn new(terms: &CallTerms, clocks: Clocks) -> Self {
        let frame = terms.frame;
        match terms.playout {
            PlayoutRule::Adaptive => Self::Adaptive(Box::new(AdaptiveListener::new(frame, clocks))),
            PlayoutRule::Ramjee | PlayoutRule::Fixed(_) => Self::FrameByFrame(Box::new(FrameByFrame {
                playout: Playout::new(frame, terms.playout),
                timeline: Timeline::new(frame, frame),
                samples: Self::samples(frame),
                steps: None,
            })),
        }
    }

    /// Returns the number of samples in a frame, by which [`Step`] counts.
    pub(super) fn samples(frame: Duration) -> i64 {
        let samples = i128::from(frame.as_nanos()) * NANOS_PER_SAMPLE.1 / NANOS_PER_SAMPLE.0;
        i64::try_from(samples).unwrap_or(i64::MAX).max(1)
    }

    /// Keeps each step from now on.
    pub(super) fn keep_steps(&mut self) {
        match self {
            Self::FrameByFrame(receiver) => {
                receiver.steps.get_or_insert_default();
            }
            Self::Adaptive(listener) => listener.buffer.keep_steps(),
        }
    }

    /// Plays what is left. Returns the steps that were kept.
    pub(super) fn into_steps(self) -> Vec<Step> {
        match self {
            Self::FrameByFrame(receiver) => receiver.steps.unwrap_or_default(),
            Self::Adaptive(mut listener) => {
                listener.play_rest();
                let silence = Step::Silence { samples: listener.unheard };
                let silence = (listener.unheard > 0).then_some(silence);
                silence.into_iter().chain(listener.buffer.take_steps()).collect()
            }
        }
    }

    /// Adds the frame `seq` with its delay, which is `None` if the frame did not arrive.
    pub(super) fn add(&mut self, seq: u64, delay: Option<SignedDuration>) {
        match self {
            Self::FrameByFrame(receiver) => {
                let heard = receiver.playout.take(seq, delay);
                let delay_ns = receiver.playout.delay().map_or(0, SignedDuration::as_nanos);
                receiver.keep_step(heard);
                receiver.timeline.push(heard, delay_ns, 1);
            }
            Self::Adaptive(listener) => listener.add(delay.map(SignedDuration::as_nanos)),
        }
    }

    /// Returns what the receiver made of all frames.
    pub(super) fn reception(&self) -> Reception {
        match self {
            Self::FrameByFrame(receiver) => Reception::of_frames(receiver.timeline.clone()),
            Self::Adaptive(listener) => listener.as_ref().clone().finish(),
        }
    }
}

/// Makes the receivers with a fixed wait beyond the smallest delay.
pub(super) fn other_receivers(terms: &CallTerms, clocks: Clocks) -> Vec<MinimumPlusWait> {
    let least_delay_ns = match clocks {
        Clocks::One => 0,
        Clocks::Trusted | Clocks::Untrusted => i64::MIN,
    };
    let receiver = |wait: Duration| MinimumPlusWait::new(terms.frame, wait, least_delay_ns);
    if terms.others { OTHER_WAITS.map(receiver).into() } else { Vec::new() }
}

impl Reception {
    /// Makes the reception of a receiver whose units are frames.
    pub(super) fn of_frames(timeline: Timeline) -> Self {
        let frames = timeline.frames();
        let (played, late, missing) = (frames.played, frames.late, frames.missing);
        Self { timeline, played, late, missing, stretching: None }
    }
}

impl FrameByFrame {
    /// Keeps what becomes of the next frame. Frames are played one after the other, so a change of the delay
    /// between two talkspurts is not heard.
    fn keep_step(&mut self, heard: Heard) {
        let Some(steps) = &mut self.steps else { return };
        let samples = self.samples;
        // A frame is one unit of the timeline.
        let timestamp = i64::try_from(self.timeline.units()).unwrap_or(i64::MAX).saturating_mul(samples);
        steps.push(match heard {
            Heard::Played => Step::Decode { timestamp, samples, joined: 0 },
            Heard::Late | Heard::Missing => Step::Conceal { samples },
        });
        steps.push(Step::Output { samples });
    }
}

impl AdaptiveListener {
    fn new(frame: Duration, clocks: Clocks) -> Self {
        Self {
            buffer: JitterBuffer::new(SAMPLE_RATE),
            samples: OwnReceiver::samples(frame),
            waiting: BTreeSet::new(),
            least_delay_ns: i64::MAX,
            is_one_clock: clocks == Clocks::One,
            first_delay_ns: None,
            unheard: 0,
            due: 0,
            arrived: 0,
            missing: 0,
            heard: HeardSamples { timeline: Timeline::new(UNIT, frame), samples: 0 },
        }
    }

    /// Adds the next frame that was due. Its number in the flow does not matter: of the way back of an echo,
    /// the frames that were not written back were never due.
    fn add(&mut self, delay_ns: Option<i64>) {
        let number = self.due;
        self.due += 1;
        let due_ns = self.due_ns(number);
        let first_delay_ns = self.first_delay_ns;
        let is_heard =
            |delay_ns: &i64| delay_ns.abs_diff(first_delay_ns.unwrap_or(*delay_ns)) <= LONGEST_WAIT_NS;
        match delay_ns.filter(is_heard) {
            Some(delay_ns) => {
                self.first_delay_ns.get_or_insert(delay_ns);
                self.least_delay_ns = self.least_delay_ns.min(delay_ns);
                self.waiting.insert((due_ns.saturating_add(delay_ns), number));
            }
            None => self.missing += 1,
        }
        // No frame after this one arrives earlier.
        let until_ns = match self.least_delay_ns {
            _ if self.is_one_clock => due_ns,
            i64::MAX => return,
            least_delay_ns => due_ns.saturating_add(least_delay_ns).saturating_sub(FALLING_DELAY_NS),
        };
        while let Some(&(at_ns, number)) = self.waiting.first()
            && at_ns <= until_ns
        {
            self.waiting.pop_first();
            self.arrive(number, at_ns);
        }
    }

    fn arrive(&mut self, number: u64, at_ns: i64) {
        if self.arrived == 0 {
            self.hear_nothing_before(number);
        }
        self.arrived += 1;
        let timestamp = self.timestamp(number);
        let arrival = Arrival { sequence: number, timestamp, samples: self.samples, at_ns };
        let heard = &mut self.heard;
        self.buffer.arrive(arrival, &mut |block| heard.add(block));
    }

    /// Plays what is left, up to the last frame that was due.
    fn play_rest(&mut self) -> SampleCounts {
        while let Some((at_ns, number)) = self.waiting.pop_first() {
            self.arrive(number, at_ns);
        }
        if self.arrived == 0 {
            self.hear_nothing_before(self.due);
        }
        let end = self.timestamp(self.due);
        let heard = &mut self.heard;
        self.buffer.finish(end, &mut |block| heard.add(block))
    }

    /// Plays what is left, and counts what was heard.
    fn finish(mut self) -> Reception {
        let counts = self.play_rest();
        let share = |samples: i64, all: i64| if all > 0 { samples as f64 / all as f64 } else { 0.0 };
        let stretching = Stretching {
            concealed: share(counts.concealed + self.unheard, counts.output + self.unheard),
            stretched: share(counts.removed + counts.inserted, counts.output),
            late_played: counts.late_packets,
            first_target_ms: self.buffer.first_target_ms(),
        };
        Reception {
            timeline: self.heard.timeline,
            played: counts.decoded_packets,
            late: self.arrived - counts.decoded_packets,
            missing: self.missing,
            stretching: Some(stretching),
        }
    }

    /// Hears nothing of the frames before the one with this number, which is the first one that arrives.
    fn hear_nothing_before(&mut self, number: u64) {
        self.unheard = self.timestamp(number);
        self.heard.push(Heard::Missing, 0, self.unheard);
    }

    fn timestamp(&self, number: u64) -> i64 {
        i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(self.samples)
    }

    /// The time in ns from the first frame that was due to the one with this number.
    fn due_ns(&self, number: u64) -> i64 {
        let ns = i128::from(self.timestamp(number)) * NANOS_PER_SAMPLE.0 / NANOS_PER_SAMPLE.1;
        i64::try_from(ns).unwrap_or(i64::MAX)
    }
}

impl HeardSamples {
    /// Adds what is heard in a block. Samples that were skipped are missing, too.
    fn add(&mut self, block: Block) {
        let Block { decoded, concealed, concealed_first, skipped, delay_ns } = block;
        self.push(Heard::Missing, 0, skipped + concealed_first);
        self.push(Heard::Played, delay_ns.unwrap_or(0), decoded);
        self.push(Heard::Missing, 0, concealed - concealed_first);
    }

    /// Adds samples. A unit is what its last sample is.
    fn push(&mut self, heard: Heard, delay_ns: i64, samples: i64) {
        self.samples += samples.unsigned_abs();
        let units = (self.samples / UNIT_SAMPLES).saturating_sub(self.timeline.units());
        self.timeline.push(heard, delay_ns, u32::try_from(units).unwrap_or(u32::MAX));
    }
}
