//! `talkpath listen`: the sound of a call, as its listener heard it.
//!
//! ```text
//! run directory ─► chosen calls ─► records ─► Hearing ─► Sound ─► call.wav, call.html
//! ```
//!
//! The rows of the messages are in the run directory. A simulated run without rows is run again for them.

mod chosen;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Serialize;
use talkpath_experiment::json::json;
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_measure::summary::{Basis, Direction};
use talkpath_measure::{FlowRecord, Hearing};
use talkpath_report::{ColumnHeard, PageSound, SoundColumn, SoundPage, sound_page};
use talkpath_scenario::{Options, Scenario};
use talkpath_sound::{Column, Heard, Law, Limits, Recording, SPEECH, Sound, render, wav};
use talkpath_units::{Instant, counted};

use self::chosen::{ChosenCall, choose, records};
use super::Context;
use crate::args::{LawWord, ListenArgs};
use crate::failure::Failure;
use crate::output_file::{refuse_records, write_named_bytes};
use crate::scenario_file::load_file;
use crate::summary_file::read_summary;
use crate::terminal;

/// Writes the sound of each chosen call, and prints what is heard in it.
pub fn run(args: &ListenArgs, context: Context<'_>) -> Result<(), Failure> {
    let Context { common, arenas, terminal } = context;
    let dir = RunDir::open(&args.run)?;
    let summary = read_summary(&dir, terminal)?;
    let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
    let calls = choose(args, &plan, &summary)?;
    let several = calls.len() > 1;
    let files: Vec<PathBuf> = calls.iter().map(|call| file_of(&args.output, call, several)).collect();
    let page = args.output.with_extension("html");
    for file in files.iter().chain([&page]) {
        refuse_records("-o", file, &[dir.path()], None)?;
    }
    let recording = recording(args)?;
    let mut heard = Vec::new();
    for (record, call) in records(&dir, &summary, &calls, arenas)? {
        let sound = sound(args, &record, call, &recording)?;
        heard.push(HeardCall::new(call, &record, sound));
    }
    for (file, heard) in files.iter().zip(&mut heard) {
        let bytes = wav::write(heard.sound.rate, &heard.sound.samples);
        let bytes = bytes.map_err(|why| Failure::Usage(format!("{}: {why}", file.display())))?;
        write_named_bytes(file, &bytes)?;
        heard.figures.file = file.display().to_string();
    }
    let report = Report {
        speech: args.input.as_ref().map_or(SHIPPED, |path| path.to_str().unwrap_or("the file of --input")),
        speech_s: recording.seconds(),
        speech_hz: recording.rate,
        page: page.display().to_string(),
        sounds: heard.iter().map(|heard| &heard.figures).collect(),
    };
    let text = sound_page(&report.page(&summary.name, &heard)?, env!("CARGO_PKG_VERSION"));
    write_named_bytes(&page, text.as_bytes())?;
    if common.json() {
        return terminal::print(&json(&report));
    }
    terminal.result(&report.text(plan.cells.len()))
}

/// The words for the recording that ships.
const SHIPPED: &str = "the recording that ships (LibriVox)";

/// Reads the recording of `--input`, or the one that ships.
fn recording(args: &ListenArgs) -> Result<Recording, Failure> {
    let seconds = u32::try_from(args.length.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
    let Some(path) = &args.input else {
        return Recording::read(SPEECH, seconds).map_err(|why| Failure::Usage(format!("{SHIPPED}: {why}")));
    };
    let file = File::open(path).map_err(|why| Failure::read(path, &why))?;
    Recording::read(BufReader::new(file), seconds)
        .map_err(|why| Failure::Usage(format!("--input {}: {why}", path.display())))
}

/// Returns the file of a call: `call-udp.wav` of several calls, or else the file that the user named.
fn file_of(output: &Path, call: &ChosenCall<'_>, is_one_of_several: bool) -> PathBuf {
    if !is_one_of_several {
        return output.to_owned();
    }
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let ending = output.extension().map_or_else(|| "wav".to_owned(), |it| it.to_string_lossy().into_owned());
    let transport: String =
        call.transport.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    output.with_file_name(format!("{stem}-{transport}.{ending}"))
}

/// Makes the sound of a call.
fn sound(
    args: &ListenArgs,
    record: &FlowRecord,
    call: &ChosenCall<'_>,
    recording: &Recording,
) -> Result<Sound, Failure> {
    let unheard = |why: String| {
        Failure::Usage(format!(
            "{}: flow `{}`, cell {}: {why}",
            args.run.display(),
            call.flow.name,
            call.id.cell
        ))
    };
    let window = window(call.scenario);
    let hearing = Hearing::of(record, &window, direction(call, record));
    let hearing = hearing.ok_or_else(|| unheard("it is not known which frames arrived".to_owned()))?;
    let limits = Limits {
        seconds: u32::try_from(args.length.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
        law: match args.law {
            LawWord::Mu => Law::Mu,
            LawWord::A => Law::A,
        },
    };
    let Some(voice) = call.flow.workload.voice() else {
        return Err(unheard("it is not a call".to_owned()));
    };
    render(&hearing, &voice.coding, recording, limits).map_err(|why| unheard(why.to_string()))
}

/// The part of a run in which frames count.
fn window(scenario: &Scenario) -> core::ops::Range<Instant> {
    let at = |time| Instant::ZERO.saturating_add(time);
    at(scenario.warm_up)..at(scenario.duration)
}

/// The direction that the score of the call is of.
fn direction(call: &ChosenCall<'_>, record: &FlowRecord) -> Option<Direction> {
    let Some(rated) = call.rated else { return Some(Direction::Forward) };
    match rated.basis {
        Basis::HalfRoundTrip if record.echo.is_some() => None,
        Basis::HalfRoundTrip | Basis::OneWay | Basis::RoundTrip => {
            Some(rated.direction.unwrap_or(Direction::Forward))
        }
    }
}

/// A call with its sound.
struct HeardCall {
    sound: Sound,
    figures: Figures,
}

/// What is heard of a call, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Figures {
    file: String,
    flow: String,
    transport: String,
    cell: u64,
    repetition: u64,
    /// `forward` or `return`, or null for half of the round trip.
    direction: Option<Direction>,
    codec: &'static str,
    playout: String,
    rate_hz: u32,
    seconds: f64,
    /// The share of the output that was made up. Silence before the first speech counts, too.
    concealed: Option<f64>,
    /// The number of gaps that were made up.
    gaps: usize,
    /// The share of the output in which a pitch period was removed or repeated.
    stretched: f64,
    /// The silence before the first speech.
    silent_s: f64,
    /// Whether the call goes on after the sound.
    is_cut: bool,
    /// The score of the whole call in summary.json.
    mos: Option<f64>,
}

impl HeardCall {
    fn new(call: &ChosenCall<'_>, record: &FlowRecord, sound: Sound) -> Self {
        let samples = sound.samples.len().max(1) as f64;
        let figures = Figures {
            file: String::new(),
            flow: call.flow.name.clone(),
            transport: call.transport.to_owned(),
            cell: call.id.cell,
            repetition: call.id.repetition,
            direction: direction(call, record),
            codec: record.info.terms.call.map_or("", |terms| terms.codec.name()),
            playout: record.info.terms.call.map_or_else(String::new, |terms| terms.playout.words()),
            rate_hz: sound.rate,
            seconds: sound.samples.len() as f64 / f64::from(sound.rate),
            concealed: sound.concealed_share(),
            gaps: sound.spans.iter().filter(|span| span.heard == Heard::Concealed).count(),
            stretched: sound.count(Heard::Stretched) as f64 / samples,
            silent_s: sound.count(Heard::Silent) as f64 / f64::from(sound.rate),
            is_cut: sound.is_cut,
            mos: call.rated.and_then(|rated| rated.mos),
        };
        Self { sound, figures }
    }
}

/// What was written.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// The recording that the speaker reads.
    speech: &'a str,
    speech_s: f64,
    speech_hz: u32,
    /// The page that plays the sounds.
    page: String,
    sounds: Vec<&'a Figures>,
}

impl Figures {
    /// What is heard, as a phrase.
    fn words(&self) -> String {
        let way = match self.direction {
            Some(Direction::Forward) => "",
            Some(Direction::Return) => ", the way back",
            None => ", after half of the round trips",
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
        if let Some(mos) = self.mos {
            text += &format!("; MOS {mos:.2}");
        }
        text + if self.is_cut { "; the call goes on, and --for plays more" } else { "" }
    }
}

impl Report<'_> {
    fn text(&self, cells: usize) -> String {
        let mut text = String::new();
        for sound in &self.sounds {
            let Figures { file, flow, transport, cell, repetition, .. } = sound;
            let cell = if cells > 1 { format!("cell {cell}, ") } else { String::new() };
            text += &format!("{file}: {flow} over {transport}, {cell}repetition {repetition}\n");
            text += &format!("  {}\n", sound.words());
        }
        text + &format!("Speech: {}\nPage: {}\n", self.speech_words(), self.page)
    }

    /// What the speaker reads, and how much of it is heard.
    fn speech_words(&self) -> String {
        let longest = self.sounds.iter().map(|sound| sound.seconds).fold(0.0, f64::max);
        let times = longest / self.speech_s;
        let played =
            if times > 1.0 { format!("played {times:.1} times") } else { format!("{longest:.1} s of it") };
        format!("{}, {:.1} s at {} Hz, {played}", self.speech, self.speech_s, self.speech_hz)
    }

    /// The page that plays the sounds.
    fn page(&self, name: &str, heard: &[HeardCall]) -> Result<SoundPage, Failure> {
        let mut sounds = Vec::new();
        for HeardCall { sound, figures } in heard {
            sounds.push(PageSound {
                transport: figures.transport.clone(),
                about: figures.words(),
                wav: wav::write(sound.rate, &sound.samples).map_err(|why| Failure::Usage(why.to_string()))?,
                seconds: figures.seconds,
                columns: sound.columns(COLUMNS).iter().map(column).collect(),
            });
        }
        Ok(SoundPage { title: name.to_owned(), about: format!("Speech: {}", self.speech_words()), sounds })
    }
}

/// The columns of a waveform on the page. We chose 1200, which is a wide window.
const COLUMNS: usize = 1200;

fn column(column: &Column) -> SoundColumn {
    let share = |sample: i16| f32::from(sample) / 32_768.0;
    SoundColumn {
        extent: (share(column.low), share(column.high)),
        heard: match column.heard {
            Heard::Decoded => ColumnHeard::Speech,
            Heard::Stretched => ColumnHeard::Stretched,
            Heard::Concealed => ColumnHeard::MadeUp,
            Heard::Silent => ColumnHeard::Nothing,
        },
    }
}
