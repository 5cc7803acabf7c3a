//! The sound of a call: the steps of its receiver, made with samples.
//!
//! ```text
//!   Hearing (measure) ── steps ──┐
//!   speech ─► coder ─► frames ─► Line ─► samples, and what each is
//!                    └ concealment ┘
//! ```
//!
//! The receiver's model counts samples and has no signal. It always removes or repeats 5 ms at once
//! (`measure/src/metrics/adaptive/stretching.rs`). Speech can be cut where two pitch periods are alike, and
//! a period is seldom 5 ms. So the sound keeps a *surplus*: the samples that the model has removed and the
//! sound has not. As soon as a period fits into the surplus, the period is removed. The surplus is never
//! below zero, so that the sound always has as many samples as the model plays. It delays the sound by 15 ms
//! or less, or by up to [`URGENT_MS`] and 15 ms where speech has no period.

use core::iter::Peekable;
use core::slice::Iter;

use talkpath_measure::metrics::adaptive::Step;
use talkpath_measure::{Coding, Hearing};

use crate::coder::{Decoder, decoder, sample_rate};
use crate::error::SoundError;
use crate::limits::Limits;
use crate::line::{Heard, Line};
use crate::speaker::Speaker;
use crate::stretching::{self, fade};

/// Samples that follow each other and are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What is heard.
    pub heard: Heard,
    /// The number of the first sample.
    pub from: usize,
    /// The number of the sample after the last one.
    pub to: usize,
}

/// The sound of one direction of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// The number of samples in a second.
    pub rate: u32,
    /// The samples.
    pub samples: Vec<i16>,
    /// What each sample is. The spans follow each other without a hole.
    pub spans: Vec<Span>,
    /// Whether the sound ends before the call, because it is as long as was asked for.
    pub is_cut: bool,
}

/// A part of a sound, for a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The smallest sample.
    pub low: i16,
    /// The largest sample.
    pub high: i16,
    /// What is heard. Of several kinds it is the last one of [`Heard`].
    pub heard: Heard,
}

/// The surplus in ms from which on speech is removed even where two periods are not alike. We chose 20 ms.
const URGENT_MS: u32 = 20;

/// Makes the sound of one direction of a call whose speech comes from `speaker`.
///
/// # Errors
/// Returns [`SoundError`] if this program has no coder for the codec of the call, or if the coder refuses the
/// coding.
pub fn render(
    hearing: &Hearing,
    coding: &Coding,
    speaker: Speaker<'_>,
    limits: Limits,
) -> Result<Sound, SoundError> {
    let rate = sample_rate(coding)?;
    let mut decoder = match speaker {
        Speaker::Reads(recording) => {
            let recording = recording.clone().at_rate(rate);
            decoder(hearing, coding, Speaker::Reads(&recording), rate, limits)?
        }
        Speaker::Sent(_) => decoder(hearing, coding, speaker, rate, limits)?,
    };
    let most = limits.seconds as usize * rate as usize;
    Ok(Sound::render(hearing, &mut decoder, rate, most))
}

impl Sound {
    /// Makes the sound of a call from the speech that `decoder` has. It ends after `most` samples.
    fn render(hearing: &Hearing, decoder: &mut Decoder, rate: u32, most: usize) -> Self {
        let mut player = Player {
            line: Line::new(rate),
            decoder,
            divisor: i64::from(hearing.sample_rate / rate).max(1),
            frame: hearing.frame.max(1),
            surplus: 0,
            silences: hearing.silences.iter().peekable(),
            most,
        };
        let mut is_cut = false;
        for step in &hearing.steps {
            if player.line.played >= most {
                is_cut = true;
                break;
            }
            player.perform(*step);
        }
        player.end();
        let Line { mut samples, mut heard, played, .. } = player.line;
        let length = played.min(most);
        is_cut |= played > most;
        samples.truncate(length);
        heard.truncate(length);
        // A sample that was not changed is a whole number already.
        let samples = samples.iter().map(|sample| sample.round().clamp(-32_768.0, 32_767.0) as i16).collect();
        Self { rate, samples, spans: spans(&heard), is_cut }
    }

    /// Returns the share of samples that are not from packets. The silences of the speaker do not count.
    /// Returns `None` if the sound is empty.
    pub fn concealed_share(&self) -> Option<f64> {
        let concealed = self.count(Heard::Concealed) + self.count(Heard::Silent);
        let output = self.samples.len() - self.count(Heard::Pause);
        (output > 0).then(|| concealed as f64 / output as f64)
    }

    /// Divides the sound into at most `count` columns of equal length.
    pub fn columns(&self, count: usize) -> Vec<Column> {
        let length = self.samples.len().div_ceil(count.max(1)).max(1);
        let mut spans = self.spans.iter().peekable();
        let column = |(number, samples): (usize, &[i16])| {
            let (from, to) = (number * length, number * length + samples.len());
            while spans.next_if(|span| span.to <= from).is_some() {}
            let within = spans.clone().take_while(|span| span.from < to);
            Column {
                low: samples.iter().min().copied().unwrap_or_default(),
                high: samples.iter().max().copied().unwrap_or_default(),
                heard: within.map(|span| span.heard).max().unwrap_or(Heard::Decoded),
            }
        };
        self.samples.chunks(length).enumerate().map(column).collect()
    }

    /// Returns the number of samples of one kind.
    pub fn count(&self, heard: Heard) -> usize {
        self.spans.iter().filter(|span| span.heard == heard).map(|span| span.to - span.from).sum()
    }
}

fn spans(heard: &[Heard]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (at, &heard) in heard.iter().enumerate() {
        match spans.last_mut() {
            Some(last) if last.heard == heard => last.to = at + 1,
            _ => spans.push(Span { heard, from: at, to: at + 1 }),
        }
    }
    spans
}

/// Fades from made-up speech to what follows.
fn join(made_up: &[f32], after: &mut [f32]) {
    for (at, (sample, made_up_sample)) in after.iter_mut().zip(made_up).enumerate() {
        *sample = fade(*made_up_sample, *sample, at, made_up.len());
    }
}

/// Performs the steps of a receiver.
struct Player<'a> {
    line: Line,
    decoder: &'a mut Decoder,
    /// The samples of the model in a sample of the sound.
    divisor: i64,
    /// The samples of the model in a frame.
    frame: i64,
    /// The number of samples that wait here and not in the model.
    surplus: usize,
    /// The silences of the speaker that are still to come.
    silences: Peekable<Iter<'a, (usize, i64)>>,
    /// The number of samples after which the sound ends.
    most: usize,
}

impl Player<'_> {
    /// The samples of the sound that are as long as these samples of the model.
    fn samples(&self, of_model: i64) -> usize {
        usize::try_from(of_model / self.divisor).unwrap_or_default()
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Silence { samples } => {
                let samples = self.samples(samples);
                self.line.push(&vec![0.0; samples], Heard::Silent);
                self.line.played += samples;
            }
            Step::Decode { timestamp, joined, .. } => self.decode(timestamp, self.samples(joined)),
            Step::Conceal { samples } => {
                let samples = self.samples(samples);
                let made_up = self.decoder.conceal(samples, &mut self.line.samples);
                self.line.push(&made_up, Heard::Concealed);
            }
            Step::Remove { samples } => {
                self.surplus += self.samples(samples);
                self.lower_surplus();
            }
            Step::Repeat { samples } => {
                let samples = self.samples(samples);
                self.surplus += match samples.checked_sub(self.surplus) {
                    None | Some(0) => 0,
                    Some(missing) => stretching::repeat(&mut self.line, missing),
                };
                self.surplus = self.surplus.saturating_sub(samples);
            }
            Step::Output { samples } => {
                self.line.played = (self.line.played + self.samples(samples)).min(self.line.samples.len());
            }
        }
    }

    fn decode(&mut self, timestamp: i64, joined: usize) {
        let number = usize::try_from(timestamp / self.frame).unwrap_or_default();
        while let Some((_, samples)) = self.silences.next_if(|(frame, _)| *frame <= number) {
            self.pause(self.samples(*samples));
        }
        let overlap = self.decoder.overlap();
        let mut speech = self.decoder.decode(number);
        speech.drain(..joined.min(speech.len()));
        join(&overlap, &mut speech);
        self.line.push(&speech, Heard::Decoded);
        if self.surplus > 0 {
            self.lower_surplus();
        }
    }

    /// Plays a silence of the speaker before the next frame. The samples before it are as many as the
    /// receiver keeps waiting, so as many wait again after it.
    fn pause(&mut self, samples: usize) {
        let samples = samples.min(self.most.saturating_sub(self.line.played));
        let overlap = self.decoder.overlap();
        let mut silence = self.decoder.silence(samples);
        join(&overlap, &mut silence);
        self.line.push(&silence, Heard::Pause);
        self.line.played += samples;
    }

    /// Removes a period if one fits into the surplus.
    fn lower_surplus(&mut self) {
        let is_urgent = self.surplus >= (URGENT_MS * self.line.rate / 1_000) as usize;
        self.surplus -= stretching::remove(&mut self.line, self.surplus, is_urgent);
    }

    /// Leaves the surplus out at the end of the call.
    fn end(&mut self) {
        let waiting = self.line.samples.len() - self.line.played;
        let surplus = self.surplus.min(waiting);
        let last = self.line.heard.iter().rposition(|heard| *heard == Heard::Decoded);
        let end = last.map_or(0, |last| last + 1);
        if end >= surplus {
            self.line.samples.drain(end - surplus..end);
            self.line.heard.drain(end - surplus..end);
        }
    }
}
