//! Makes speech that waits to be played shorter or longer by one pitch period, as NetEq does
//! (`accelerate.cc`, `preemptive_expand.cc`).
//!
//! ```text
//!  shorter:  a b c ...  ─►  x c ...     x: a fades out while b fades in
//!  longer:   a b c ...  ─►  a x b c ... x: b fades out while a fades in
//! ```
//!
//! a, b and c are as long as the period. The period is the lag at which speech is most like itself.

use crate::line::{Heard, Line};

/// The shortest and the longest period in ms: 2.5 and 15 (NetEq, `time_stretch.h`).
const SHORTEST_MS: f64 = 2.5;
const LONGEST_MS: f64 = 15.0;
/// How alike two periods must be, as a normalised correlation (NetEq, `time_stretch.h`: 14746 of 2^14).
const ALIKE: f32 = 0.9;
/// Speech below this root mean square, of 32768, is a pause. We chose 100, which is 50 dB below full scale.
const PAUSE_RMS: f32 = 100.0;

/// The shortest and the longest period in samples.
fn periods(rate: u32) -> (usize, usize) {
    let samples = |ms: f64| (ms * f64::from(rate) / 1_000.0) as usize;
    (samples(SHORTEST_MS), samples(LONGEST_MS))
}

/// Removes one period of at most `most` samples from the decoded speech that waits. Returns the number of
/// samples that were removed: 0 if there is no period of this length, or if two periods are not alike and
/// removing is not `urgent`.
pub(crate) fn remove(line: &mut Line, most: usize, is_urgent: bool) -> usize {
    let from = line.first_of_decoded_tail();
    let (shortest, longest) = periods(line.rate);
    let waiting = line.samples.len() - from;
    let longest = longest.min(most).min(waiting / 2);
    let Some((lag, likeness)) = best_lag(&line.samples[from..], shortest..=longest, |speech, lag| {
        Some((speech.get(..lag)?, speech.get(lag..2 * lag)?))
    }) else {
        return 0;
    };
    let is_pause = rms(&line.samples[from..from + 2 * lag]) < PAUSE_RMS;
    if likeness < ALIKE && !is_pause && !is_urgent {
        return 0;
    }
    for at in from..from + lag {
        line.samples[at] = fade(line.samples[at], line.samples[at + lag], at - from, lag);
        line.heard[at] = Heard::Stretched;
    }
    line.samples.drain(from + lag..from + 2 * lag);
    line.heard.drain(from + lag..from + 2 * lag);
    lag
}

/// Repeats one period of at least `least` samples, as the first speech that waits. Returns the number of
/// samples that were added.
pub(crate) fn repeat(line: &mut Line, least: usize) -> usize {
    let from = line.played;
    let (shortest, longest) = periods(line.rate);
    let (shortest, longest) = (shortest.max(least), longest.max(least));
    let longest = longest.min(from).min(line.samples.len() - from);
    let found = best_lag(&line.samples, shortest..=longest, |speech, lag| {
        Some((speech.get(from - lag..from)?, speech.get(from..from + lag)?))
    });
    let added: Vec<f32> = match found {
        Some((lag, _)) => {
            (0..lag).map(|at| fade(line.samples[from + at], line.samples[from - lag + at], at, lag)).collect()
        }
        // There is less speech than a period: at the very beginning of a call.
        None => vec![line.samples.get(from).copied().unwrap_or_default(); least],
    };
    let count = added.len();
    line.samples.splice(from..from, added);
    line.heard.splice(from..from, core::iter::repeat_n(Heard::Stretched, count));
    count
}

/// Returns the lag in `lags` whose two pieces of speech are most alike, with their normalised correlation.
fn best_lag<'a>(
    speech: &'a [f32],
    lags: core::ops::RangeInclusive<usize>,
    pieces: impl Fn(&'a [f32], usize) -> Option<(&'a [f32], &'a [f32])>,
) -> Option<(usize, f32)> {
    let mut best: Option<(usize, f32)> = None;
    for lag in lags {
        let Some((left, right)) = pieces(speech, lag) else { break };
        let product: f32 = left.iter().zip(right).map(|(a, b)| a * b).sum();
        let energy = |piece: &[f32]| piece.iter().map(|a| a * a).sum::<f32>();
        let likeness = product / (energy(left) * energy(right)).sqrt().max(1e-9);
        if best.is_none_or(|(_, most)| likeness > most) {
            best = Some((lag, likeness));
        }
    }
    best
}

fn rms(speech: &[f32]) -> f32 {
    (speech.iter().map(|a| a * a).sum::<f32>() / speech.len().max(1) as f32).sqrt()
}

/// The sample with the number `at` of `length` samples, in which `out` fades out and `into` fades in.
pub(crate) fn fade(out: f32, into: f32, at: usize, length: usize) -> f32 {
    let share = (at + 1) as f32 / (length + 1) as f32;
    out * (1.0 - share) + into * share
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 ms of a tone with a period of 8 ms, of which 50 ms wait.
    fn line() -> Line {
        let mut line = Line::new(8_000);
        let angle = |at: usize| at as f64 * core::f64::consts::TAU / 64.0;
        let samples: Vec<f32> = (0..800).map(|at| (8_000.0 * angle(at).sin()) as f32).collect();
        line.push(&samples, Heard::Decoded);
        line.played = 400;
        line
    }

    /// The largest step between two samples of the tone is 8000 * 2 pi / 64.
    fn assert_has_no_click(line: &Line) {
        let steps = line.samples.windows(2).map(|two| (two[1] - two[0]).abs());
        assert!(steps.fold(0.0, f32::max) < 790.0);
    }

    #[test]
    fn a_whole_period_is_removed_without_a_click() {
        let mut line = line();
        assert_eq!(remove(&mut line, 100, false), 64);
        assert_eq!((line.samples.len(), line.heard.len(), line.played), (736, 736, 400));
        assert_has_no_click(&line);
    }

    #[test]
    fn a_whole_period_is_repeated_without_a_click() {
        let mut line = line();
        assert_eq!(repeat(&mut line, 40), 64);
        assert_eq!((line.samples.len(), line.heard.len()), (864, 864));
        assert_has_no_click(&line);
    }

    #[test]
    fn less_than_a_period_is_removed_only_if_it_is_urgent() {
        let mut line = line();
        assert_eq!(remove(&mut line, 40, false), 0);
        assert!((20..=40).contains(&remove(&mut line, 40, true)));
    }

    #[test]
    fn a_pause_is_shortened_by_any_length() {
        let mut line = Line::new(8_000);
        line.push(&[3.0; 400], Heard::Decoded);
        assert!(remove(&mut line, 40, false) > 0);
    }

    #[test]
    fn made_up_speech_is_not_removed() {
        let mut line = line();
        line.push(&[5.0; 30], Heard::Concealed);
        assert_eq!(remove(&mut line, 100, true), 0);
        assert_eq!(line.samples.len(), 830);
    }
}
