//! The sounds of the calls in a capture: the speech of its packets, as the receiver of `talkpath rate` plays
//! it. Where the packets have no speech that can be heard, the speaker reads the recording.

use talkpath_capture::{Capture, Options as CaptureOptions, Speech};
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::Direction;
use talkpath_measure::{Codec, FlowRecord, Hearing, warning};
use talkpath_sound::{Law, Payload, Recording, Speaker, render};

use super::heard::{Figures, HeardCall, HeardCalls, Source, limits};
use crate::args::ListenArgs;
use crate::capture_file::{capture_options, read_capture};
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Makes the sound of each call that the command line asks for. Warns of those that cannot be heard.
pub(super) fn hear(
    args: &ListenArgs,
    recording: &Recording,
    terminal: Terminal,
) -> Result<HeardCalls, Failure> {
    let unusable = |why: String| Failure::Usage(format!("{}: {why}", args.source.display()));
    if let Some(option) = run_option(args) {
        return Err(unusable(format!("{option} is for runs, and this is a file")));
    }
    let options = CaptureOptions { speech: true, ..capture_options(&args.reading) };
    let (capture, damage) = read_capture(&args.source, &options)?;
    let (notes, warnings): (Vec<_>, Vec<_>) =
        capture.record.warnings.iter().chain(&damage).partition(|text| warning::is_note(text));
    warnings.into_iter().for_each(|text| terminal.warning(text));
    notes.into_iter().for_each(|text| terminal.note(text.trim_start_matches("note: ")));
    let chosen = calls_to_hear(args, &capture).map_err(unusable)?;
    if chosen.len() > MOST_CALLS {
        let first = names(&chosen[..MOST_CALLS]);
        let all = chosen.len();
        terminal.warning(&format!("of {all} calls these are heard: {first}; --flow NAME plays another one"));
    }
    let summary = summarise(&capture.record, &std::collections::BTreeMap::new());
    let window = capture.record.window_start..capture.record.window_end;
    let mut calls = Vec::new();
    let mut unheard = Vec::new();
    for (flow, speech) in chosen.into_iter().take(MOST_CALLS) {
        let name = &flow.info.name;
        let Some(hearing) = Hearing::of(flow, &window, Some(Direction::Forward)) else { continue };
        let law = law(speech);
        let why = recorded_because(args, speech, law);
        let speaker = if why.is_some() { Speaker::Reads(recording) } else { Speaker::Sent(&speech.packets) };
        match render(&hearing, &speech.coding, speaker, limits(args, law)) {
            Err(why) => unheard.push(format!("{name} is not heard: {why}")),
            Ok(sound) => {
                let figures = Figures {
                    flow: name.clone(),
                    direction: Some(Direction::Forward),
                    codec: hearing.terms.codec.name(),
                    playout: hearing.terms.playout.words(),
                    speech: if why.is_some() { Source::Recording } else { Source::Packets },
                    speech_why: why,
                    mos: summary.flows.get(name).and_then(|flow| flow.call.as_ref()?.mos),
                    ..Figures::default()
                };
                calls.push(HeardCall::new(sound, figures));
            }
        }
    }
    if calls.is_empty() {
        return Err(unusable(unheard.join("; ")));
    }
    unheard.iter().for_each(|text| terminal.warning(text));
    let title = args.source.file_name().unwrap_or_default().to_string_lossy();
    let title = talkpath_units::printable(&title, LONGEST_NAME);
    Ok(HeardCalls { title, has_cells: false, calls, rated: Some((capture, damage)) })
}

/// A call of a capture, with its speech.
type Call<'a> = (&'a FlowRecord, &'a Speech);

/// The calls of the capture, or with `--flow` the call of this name, or both directions of the conversation.
///
/// # Errors
/// Returns that there is no such call.
fn calls_to_hear<'a>(args: &ListenArgs, capture: &'a Capture) -> Result<Vec<Call<'a>>, String> {
    let with_speech = |flow: &'a FlowRecord| Some((flow, capture.speech.get(&flow.info.name)?));
    let calls: Vec<Call<'a>> = capture.record.flows.iter().filter_map(with_speech).collect();
    if calls.is_empty() {
        return Err(
            "no call to listen to: no stream is of a codec that is known; --payload-type says what a number means"
                .to_owned(),
        );
    }
    let Some(name) = &args.flow else { return Ok(calls) };
    let is_wanted = |flow: &FlowRecord| *name == flow.info.name || *name == flow.info.group;
    let wanted: Vec<Call<'a>> = calls.iter().copied().filter(|(flow, _)| is_wanted(flow)).collect();
    if wanted.is_empty() {
        return Err(format!("--flow {name}: no call of this name; the calls are {}", names(&calls)));
    }
    Ok(wanted)
}

/// The names of calls: `` `call-1`, `call-2` ``.
fn names(calls: &[Call<'_>]) -> String {
    let names: Vec<String> = calls.iter().map(|(flow, _)| format!("`{}`", flow.info.name)).collect();
    names.join(", ")
}

/// The first option that is for runs alone.
fn run_option(args: &ListenArgs) -> Option<&'static str> {
    let given = [
        (!args.transports.is_empty(), "--transports"),
        (args.cell.is_some(), "--cell"),
        (args.repetition.is_some(), "--repetition"),
    ];
    given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
}

/// The law of the stream's payload type. `None` if the stream is not of G.711, or if nothing says the law.
fn law(speech: &Speech) -> Option<Law> {
    match speech.encoding.as_deref()?.to_ascii_uppercase().as_str() {
        "PCMU" => Some(Law::Mu),
        "PCMA" => Some(Law::A),
        _ => None,
    }
}

/// Why the recording is heard and not the speech of the packets. `None` if it is that of the packets.
fn recorded_because(args: &ListenArgs, speech: &Speech, law: Option<Law>) -> Option<&'static str> {
    if args.input.is_some() {
        return Some("--input says so");
    }
    if speech.is_encrypted {
        return Some("the packets are encrypted");
    }
    let cut = Some("the capture has cut the speech of the packets");
    if speech.coding.codec != Codec::G711 {
        return if speech.packets.iter().all(|packet| packet.is_empty()) { cut } else { None };
    }
    match Payload::of(limits(args, law).law, &speech.packets) {
        Payload::Sound => None,
        Payload::Absent => cut,
        Payload::Constant => Some("each sample of the packets is the same"),
        Payload::Random => Some("the packets have random bytes, as if they were encrypted"),
    }
}

/// The most calls that are heard at once. We chose 10, of which a page has 13 MB a minute.
const MOST_CALLS: usize = 10;
/// The longest title of the page. We chose 100 characters.
const LONGEST_NAME: usize = 100;
