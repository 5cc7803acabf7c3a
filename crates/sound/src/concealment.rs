//! Speech in place of missing speech: ITU-T G.711 Appendix I.
//!
//! The last pitch period is repeated. From the second 10 ms on the last two periods are repeated, and from
//! the third on the last three, so that a long gap does not sound like a tone. Where two pieces of a signal
//! meet they overlap for a quarter of a period.
//!
//! ```text
//!  gain  1 ┤━━━━━━━━┓
//!          │         ╲╲
//!          │            ╲╲  20 % less each 10 ms
//!        0 ┤               ╲━━━━━━
//!          0        10           60  ms of missing speech
//! ```
//!
//! # Departures from the appendix
//!
//! - The appendix works on frames of 10 ms. Here any number of samples can be made up at once.
//! - The appendix delays its output by 3.75 ms, because missing speech changes the end of the speech before
//!   it. Here that end is changed in place, as the sound is not made in real time.
//! - The pitch is searched at the full sample rate, and not at every second sample first.

/// The shortest and the longest pitch period, in samples of 8 kHz (Appendix I §I.2.2): 5 and 15 ms.
const SHORTEST_PERIOD: usize = 40;
const LONGEST_PERIOD: usize = 120;
/// The speech over which the pitch is searched: 20 ms (§I.2.2).
const SEARCHED: usize = 160;
/// The speech that must have been played before: 48.75 ms (§I.2.1).
pub(crate) const HISTORY: usize = 390;
/// 10 ms: the step at which the number of repeated periods grows, and the fading changes (§I.2.4, §I.2.6).
const STEP: usize = 80;
/// By how much the overlap after a gap grows with each 10 ms of the gap: 4 ms (§I.2.7).
const OVERLAP_GROWTH: usize = 32;

/// Makes up speech in one gap. All samples are at 8 kHz.
#[derive(Clone, Debug)]
pub(crate) struct Concealment {
    history: Vec<f32>,
    period: usize,
    /// The samples that are repeated.
    cycle: Vec<f32>,
    /// The place in `cycle` of the next sample.
    phase: usize,
    /// The cycle before, which fades out while `cycle` fades in, with its phase.
    before: Option<(Vec<f32>, usize)>,
    /// The number of samples that were made up.
    count: usize,
    /// The number of samples at which `cycle` began.
    began: usize,
}

impl Concealment {
    /// Begins to make up speech after the speech `played`, whose end is changed so that it leads into the
    /// made-up speech. Returns `None` if too little was played before: then silence is made up.
    pub(crate) fn begin(played: &mut [f32]) -> Option<Self> {
        let start = played.len().checked_sub(HISTORY)?;
        let history = played.get(start..)?.to_vec();
        let period = period_of(&history);
        let quarter = period / 4;
        let cycle = cycle_of(&history, period, 1);
        // The end of the speech becomes the end of the cycle.
        let end = played.len() - quarter;
        if let (Some(end), Some(of_cycle)) = (played.get_mut(end..), cycle.get(period - quarter..)) {
            end.copy_from_slice(of_cycle);
        }
        Some(Self { history, period, cycle, phase: 0, before: None, count: 0, began: 0 })
    }

    /// Makes up the next sample.
    pub(crate) fn next(&mut self) -> f32 {
        let quarter = self.period / 4;
        if self.count == STEP || self.count == 2 * STEP {
            let periods = 1 + self.count / STEP;
            let longer = cycle_of(&self.history, self.period, periods);
            let phase = self.phase % self.period;
            let shorter = core::mem::replace(&mut self.cycle, longer);
            self.before = Some((shorter, self.phase));
            (self.phase, self.began) = (phase, self.count);
        }
        let mut sample = take(&self.cycle, &mut self.phase);
        let overlapped = self.count - self.began;
        if let Some((cycle, phase)) = &mut self.before {
            let share = (overlapped + 1) as f32 / (quarter + 1) as f32;
            sample = sample * share + take(cycle, phase) * (1.0 - share);
            if overlapped + 1 >= quarter {
                self.before = None;
            }
        }
        let gain = gain(self.count);
        self.count += 1;
        sample * gain
    }

    /// Returns for how many samples the made-up speech overlaps with the speech after the gap.
    pub(crate) fn overlap(&self) -> usize {
        let steps = self.count.div_ceil(STEP).saturating_sub(1);
        (self.period / 4 + OVERLAP_GROWTH * steps).min(STEP)
    }
}

/// The gain of the made-up sample with this number: 1 for 10 ms, then a fifth less each 10 ms (§I.2.6).
fn gain(count: usize) -> f32 {
    let faded = count.saturating_sub(STEP) as f32 / STEP as f32;
    (1.0 - 0.2 * faded).max(0.0)
}

/// Returns the next sample of a cycle.
fn take(cycle: &[f32], phase: &mut usize) -> f32 {
    let sample = cycle.get(*phase).copied().unwrap_or_default();
    *phase = if *phase + 1 < cycle.len() { *phase + 1 } else { 0 };
    sample
}

/// Returns the period with the largest normalised correlation over the last 20 ms (§I.2.2).
fn period_of(history: &[f32]) -> usize {
    let last = &history[history.len() - SEARCHED..];
    let mut best = (f32::NEG_INFINITY, SHORTEST_PERIOD);
    for lag in SHORTEST_PERIOD..=LONGEST_PERIOD {
        let end = history.len() - lag;
        let before = &history[end - SEARCHED..end];
        let product: f32 = last.iter().zip(before).map(|(a, b)| a * b).sum();
        let energy: f32 = before.iter().map(|a| a * a).sum();
        let score = product / energy.sqrt().max(1e-9);
        if score > best.0 {
            best = (score, lag);
        }
    }
    best.1
}

/// Returns the last periods, whose end overlaps with what came before their beginning (§I.2.3).
fn cycle_of(history: &[f32], period: usize, periods: usize) -> Vec<f32> {
    let (length, quarter) = (period * periods, period / 4);
    let begin = history.len() - length;
    let mut cycle = history[begin..].to_vec();
    for (number, sample) in cycle[length - quarter..].iter_mut().enumerate() {
        let share = (number + 1) as f32 / (quarter + 1) as f32;
        *sample = *sample * (1.0 - share) + history[begin - quarter + number] * share;
    }
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tone with this period, which the concealment repeats.
    fn tone(period: usize, count: usize) -> Vec<f32> {
        let angle = |at: usize| at as f64 * core::f64::consts::TAU / period as f64;
        (0..count).map(|at| (8000.0 * angle(at).sin()) as f32).collect()
    }

    #[test]
    fn a_gap_in_a_tone_is_filled_with_the_tone_and_fades_from_10_to_60_ms() {
        let whole = tone(50, 1200);
        let mut played = whole[..600].to_vec();
        let mut concealment = Concealment::begin(&mut played).unwrap();
        assert_eq!(concealment.period, 50);
        for at in 0..520 {
            let expected = whole[600 + at] * (1.0 - 0.2 * (at as f32 - 80.0).max(0.0) / 80.0).max(0.0);
            let found = concealment.next();
            assert!((found - expected).abs() < 10.0, "{at}: {found} and not {expected}");
            assert!(at < 480 || found == 0.0, "silence after 60 ms");
        }
    }

    #[test]
    fn the_overlap_after_a_gap_is_a_quarter_period_and_4_ms_more_each_10_ms_up_to_10_ms() {
        let mut concealment = Concealment::begin(&mut tone(100, 600)).unwrap();
        let mut overlaps = Vec::new();
        for at in 1..=320 {
            concealment.next();
            if at % 80 == 0 {
                overlaps.push(concealment.overlap());
            }
        }
        assert_eq!(overlaps, [25, 57, 80, 80]);
    }

    #[test]
    fn after_less_than_49_ms_of_speech_nothing_can_be_repeated() {
        assert!(Concealment::begin(&mut tone(50, 389)).is_none());
        assert!(Concealment::begin(&mut tone(50, 390)).is_some());
    }

    #[test]
    fn the_end_of_the_speech_leads_into_the_made_up_speech() {
        // Noise has no period, so the end of the speech and the repeated period would not meet.
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as f32 - 32_768.0
        };
        let original: Vec<f32> = (0..600).map(|_| noise()).collect();
        let mut played = original.clone();
        let mut concealment = Concealment::begin(&mut played).unwrap();
        let quarter = concealment.period / 4;
        assert_eq!(played[..600 - quarter], original[..600 - quarter]);
        // The last sample is nearly the one before the repeated period, and the next one is its first one.
        let before = original[600 - concealment.period - 1];
        assert!((played[599] - before).abs() < (original[599] - before).abs() / 8.0);
        assert_eq!(concealment.next(), original[600 - concealment.period]);
    }
}
