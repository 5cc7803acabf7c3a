//! What is heard of a call: the figures for `--json` and the terminal, and the sounds of a page.

use serde::Serialize;
use talkpath_capture::Capture;
use talkpath_measure::summary::Direction;
use talkpath_report::{ColumnHeard, PageSound, SoundColumn, Sounds};
use talkpath_sound::{Column, Heard, Law, Limits, Sound, wav};
use talkpath_units::counted;

use crate::args::{LawWord, ListenArgs};
use crate::failure::Failure;

/// The calls that are heard.
pub(super) struct HeardCalls {
    /// The title of their page.
    pub(super) title: String,
    /// Whether the run has several cells.
    pub(super) has_cells: bool,
    pub(super) calls: Vec<HeardCall>,
    /// The capture, and where it is damaged. `None` of a run.
    pub(super) rated: Option<(Capture, Option<String>)>,
}

/// A call with its sound.
pub(super) struct HeardCall {
    pub(super) sound: Sound,
    pub(super) figures: Figures,
}

/// What is heard of a call, as `--json` prints it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) file: String,
    pub(super) flow: String,
    /// The transport as the user wrote it. `None` of a call that was captured, as cell and repetition are.
    pub(super) transport: Option<String>,
    pub(super) cell: Option<u64>,
    pub(super) repetition: Option<u64>,
    /// `forward` or `return`, or null for half of the round trip.
    pub(super) direction: Option<Direction>,
    pub(super) codec: &'static str,
    pub(super) playout: String,
    /// Whose speech is heard.
    pub(super) speech: Source,
    /// Why it is not the speech of the packets. `None` if it is, and of a run, whose packets have none.
    pub(super) speech_why: Option<&'static str>,
    pub(super) rate_hz: u32,
    pub(super) seconds: f64,
    /// The share of the output that was made up. Silence before the first speech counts, too.
    pub(super) concealed: Option<f64>,
    /// The number of gaps that were made up.
    pub(super) gaps: usize,
    /// The share of the output in which a pitch period was removed or repeated.
    pub(super) stretched: f64,
    /// The silence before the first speech.
    pub(super) silent_s: f64,
    /// The silences of the speaker that were not sent.
    pub(super) pauses_s: f64,
    /// Whether the call goes on after the sound.
    pub(super) is_cut: bool,
    /// The score of the whole call in summary.json.
    pub(super) mos: Option<f64>,
}

/// Whose speech is heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// The recording of `--input`, or the one that ships.
    #[default]
    Recording,
    /// The packets of a capture.
    Packets,
}

impl HeardCall {
    /// Adds what `sound` has to the figures.
    pub(super) fn new(sound: Sound, figures: Figures) -> Self {
        let samples = sound.samples.len().max(1) as f64;
        let figures = Figures {
            rate_hz: sound.rate,
            seconds: sound.samples.len() as f64 / f64::from(sound.rate),
            concealed: sound.concealed_share(),
            gaps: sound.spans.iter().filter(|span| span.heard == Heard::Concealed).count(),
            stretched: sound.count(Heard::Stretched) as f64 / samples,
            silent_s: sound.count(Heard::Silent) as f64 / f64::from(sound.rate),
            pauses_s: sound.count(Heard::Pause) as f64 / f64::from(sound.rate),
            is_cut: sound.is_cut,
            ..figures
        };
        Self { sound, figures }
    }

    /// The sound as a WAV file.
    pub(super) fn wav(&self) -> Result<Vec<u8>, Failure> {
        let Self { sound, figures } = self;
        let bytes = wav::write(sound.rate, &sound.samples);
        bytes.map_err(|why| Failure::Usage(format!("{}: {why}", figures.file)))
    }
}

/// What was written.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    /// The recording that the speaker reads.
    pub(super) speech: &'a str,
    pub(super) speech_s: f64,
    pub(super) speech_hz: u32,
    /// The page that plays the sounds.
    pub(super) page: String,
    pub(super) sounds: Vec<&'a Figures>,
}

impl Figures {
    /// What is heard, as a phrase.
    fn words(&self) -> String {
        let way = match (self.transport.is_some(), self.direction) {
            (false, _) | (true, Some(Direction::Forward)) => "",
            (true, Some(Direction::Return)) => ", the way back",
            (true, None) => ", after half of the round trips",
        };
        let heard = match self.concealed {
            Some(share) => format!("{:.2} % made up in {}", 100.0 * share, counted(self.gaps, "gap")),
            None => "nothing is heard".to_owned(),
        };
        let mut text =
            format!("{:.1} s{way}, {}, playout {}: {heard}", self.seconds, self.codec, self.playout);
        if self.stretched > 0.0 {
            text += &format!(", {:.2} % stretched", 100.0 * self.stretched);
        }
        if self.silent_s > 0.0 {
            text += &format!(", {:.2} s of silence before the first speech", self.silent_s);
        }
        if self.pauses_s > 0.0 {
            text += &format!(", {:.1} s of pauses, which were not sent", self.pauses_s);
        }
        if let Some(mos) = self.mos {
            text += &format!("; MOS {mos:.2}");
        }
        match (self.speech, self.speech_why) {
            (Source::Packets, _) => text += "; the speech is that of the packets",
            (Source::Recording, Some(why)) => text += &format!("; the recording is heard, because {why}"),
            (Source::Recording, None) => {}
        }
        text + if self.is_cut { "; the call goes on, and --for plays more" } else { "" }
    }

    /// The call, as the first line says it.
    fn call(&self, has_cells: bool) -> String {
        let mut text = self.flow.clone();
        if let Some(transport) = &self.transport {
            text += &format!(" over {transport}");
        }
        if let Some(cell) = self.cell.filter(|_| has_cells) {
            text += &format!(", cell {cell}");
        }
        if let Some(repetition) = self.repetition {
            text += &format!(", repetition {repetition}");
        }
        text
    }
}

impl Report<'_> {
    /// What the terminal shows. `has_cells` says whether the run has several cells.
    pub(super) fn text(&self, has_cells: bool) -> String {
        let mut text = String::new();
        for sound in &self.sounds {
            text += &format!("{}: {}\n  {}\n", sound.file, sound.call(has_cells), sound.words());
        }
        if let Some(speech) = self.speech_words() {
            text += &format!("Speech: {speech}\n");
        }
        text + &format!("Page: {}\n", self.page)
    }

    /// What the speaker reads, and how much of it is heard. `None` if no sound has the recording.
    fn speech_words(&self) -> Option<String> {
        let with_recording = self.sounds.iter().filter(|sound| sound.speech == Source::Recording);
        let longest = with_recording.map(|sound| sound.seconds).reduce(f64::max)?;
        let times = longest / self.speech_s;
        let played =
            if times > 1.0 { format!("played {times:.1} times") } else { format!("{longest:.1} s of it") };
        Some(format!("{}, {:.1} s at {} Hz, {played}", self.speech, self.speech_s, self.speech_hz))
    }

    /// The sounds of a page.
    pub(super) fn sounds(&self, heard: &[HeardCall]) -> Result<Sounds, Failure> {
        let mut sounds = Vec::new();
        for call in heard {
            sounds.push(PageSound {
                transport: call.figures.transport.clone(),
                flow: call.figures.flow.clone(),
                about: call.figures.words(),
                wav: call.wav()?,
                seconds: call.figures.seconds,
                columns: call.sound.columns(COLUMNS).iter().map(column).collect(),
            });
        }
        let speech = self.speech_words();
        let about =
            speech.map_or_else(|| "Speech: that of the packets".to_owned(), |it| format!("Speech: {it}"));
        Ok(Sounds { about, sounds })
    }
}

/// Returns what is made of each call. `law` is that of a stream of G.711 whose payload type says it.
pub(super) fn limits(args: &ListenArgs, law: Option<Law>) -> Limits {
    let chosen = args.law.map(|law| match law {
        LawWord::Mu => Law::Mu,
        LawWord::A => Law::A,
    });
    Limits {
        seconds: u32::try_from(args.length.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
        law: chosen.or(law).unwrap_or_default(),
    }
}

/// The columns of a waveform on the page. We chose 1200, which is a wide window.
const COLUMNS: usize = 1200;

fn column(column: &Column) -> SoundColumn {
    let share = |sample: i16| f32::from(sample) / 32_768.0;
    SoundColumn {
        extent: (share(column.low), share(column.high)),
        heard: match column.heard {
            Heard::Decoded | Heard::Pause => ColumnHeard::Speech,
            Heard::Stretched => ColumnHeard::Stretched,
            Heard::Concealed => ColumnHeard::MadeUp,
            Heard::Silent => ColumnHeard::Nothing,
        },
    }
}
