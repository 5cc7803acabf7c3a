//! `talkpath listen`: the sound of a call, as its listener heard it.
//!
//! ```text
//! run directory ─► chosen calls ─► records ─┬► Hearing ─► Sound ─► call.wav, call.html or report.html
//! capture ─► streams with their speech ─────┘
//! ```
//!
//! The rows of the messages are in the run directory. A simulated run without rows is run again for them.

mod chosen;
mod heard;
mod of_capture;
mod of_run;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use talkpath_experiment::json::json;
use talkpath_experiment::part::REPORT;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_report::sound_page;
use talkpath_sound::{Recording, SPEECH};

use self::heard::{HeardCall, Report};
use super::Context;
use super::rate::RatedFile;
use super::report::{is_same_file, write_page_with_sounds};
use crate::args::ListenArgs;
use crate::failure::Failure;
use crate::output_file::{refuse_records, write_named_bytes};
use crate::terminal;

/// Writes the sound of each chosen call, and prints what is heard in it.
pub fn run(args: &ListenArgs, context: Context<'_>) -> Result<(), Failure> {
    let Context { common, arenas, terminal } = context;
    let watch = Stopwatch::start();
    let recording = recording(args)?;
    let dir = if args.source.is_dir() { Some(of_run::open(args)?) } else { None };
    let mut heard = match &dir {
        Some(dir) => of_run::hear(args, dir, &recording, arenas, terminal)?,
        None => of_capture::hear(args, &recording, terminal)?,
    };
    let page = args.output.with_extension("html");
    let several = heard.calls.len() > 1;
    let files: Vec<PathBuf> = heard.calls.iter().map(|call| file_of(&args.output, call, several)).collect();
    for file in files.iter().chain([&page]) {
        refuse_records("-o", file, &[&args.source], None)?;
        refuse_source(file, args)?;
    }
    for (file, call) in files.iter().zip(&mut heard.calls) {
        call.figures.file = file.display().to_string();
        write_named_bytes(file, &call.wav()?)?;
    }
    let mut report = Report {
        speech: args.input.as_ref().map_or(SHIPPED, |path| path.to_str().unwrap_or("the file of --input")),
        speech_s: recording.seconds(),
        speech_hz: recording.rate,
        page: page.display().to_string(),
        sounds: heard.calls.iter().map(|call| &call.figures).collect(),
    };
    let sounds = report.sounds(&heard.calls)?;
    match (&dir, &heard.rated) {
        (Some(dir), _) if args.report => {
            report.page = write_page_with_sounds(dir, sounds, arenas, terminal)?.display().to_string();
        }
        (_, Some((capture, damage))) if args.report => {
            let file = RatedFile { path: &args.source, reading: &args.reading, capture, watch: &watch };
            let summary = file.summary(damage.clone(), arenas.revision());
            report.page = file.write(common, &summary, Some(&sounds))?.file(REPORT).display().to_string();
        }
        _ => {
            let text = sound_page(&heard.title, &sounds, env!("CARGO_PKG_VERSION"));
            write_named_bytes(&page, text.as_bytes())?;
        }
    }
    if common.json() {
        return terminal::print(&json(&report));
    }
    terminal.result(&report.text(heard.has_cells))
}

/// Refuses to write over a file that is read.
fn refuse_source(file: &Path, args: &ListenArgs) -> Result<(), Failure> {
    let read = [Some(&args.source), args.input.as_ref()];
    match read.into_iter().flatten().find(|read| is_same_file(read, file)) {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!("-o {}: is read; name another file", file.display()))),
    }
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

/// Returns the file of a call: `call-udp.wav` of several transports, `call-1.wav` of several calls of a
/// capture, or else the file that the user named.
fn file_of(output: &Path, call: &HeardCall, is_one_of_several: bool) -> PathBuf {
    if !is_one_of_several {
        return output.to_owned();
    }
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let ending = output.extension().map_or_else(|| "wav".to_owned(), |it| it.to_string_lossy().into_owned());
    let name = call.figures.transport.as_ref().unwrap_or(&call.figures.flow);
    // A call of a capture is `call-1`, and so is its file if the user names none.
    let name = name.strip_prefix(&format!("{stem}-")).unwrap_or(name);
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    output.with_file_name(format!("{stem}-{name}.{ending}"))
}
