//! Reads a capture that the user names.

use std::fs::File;
use std::path::Path;

use talkpath_capture::{Capture, Counts, Options, read};
use talkpath_units::counted;

use crate::args::ReadingArgs;
use crate::failure::Failure;

/// Returns how a capture is read by the options of the command line.
pub(crate) fn capture_options(args: &ReadingArgs) -> Options {
    Options {
        payload_types: args.payload_type.iter().cloned().collect(),
        codec: args.codec,
        one_way: args.one_way,
        ..Options::default()
    }
}

/// Reads the capture at `path`. Returns it with the sentence that says where it is damaged, if it is.
///
/// # Errors
/// Returns a [`Failure`] if the file cannot be read, if it is no capture, or if no stream is in it.
pub(crate) fn read_capture(path: &Path, options: &Options) -> Result<(Capture, Option<String>), Failure> {
    let file = File::open(path).map_err(|why| Failure::read(path, &why))?;
    let name = path.display().to_string();
    let capture = read(file, options).map_err(|why| Failure::Usage(format!("{name}: {why}")))?;
    let damage = damage(&name, &capture);
    if capture.streams.is_empty() {
        let why = nothing_found(&name, &capture.counts);
        return Err(Failure::Usage(damage.map_or_else(|| why.clone(), |damage| format!("{why}; {damage}"))));
    }
    Ok((capture, damage))
}

/// Says where the capture is damaged, if it is.
fn damage(name: &str, capture: &Capture) -> Option<String> {
    let damage = capture.damage.as_ref()?;
    Some(format!(
        "{name}: the block that begins at byte {} is damaged: {}. The figures are those of the {} before it",
        damage.at,
        damage.what,
        counted(capture.counts.packets, "packet")
    ))
}

fn nothing_found(name: &str, counts: &Counts) -> String {
    let Counts { packets, udp, fragments, unknown, .. } = *counts;
    let mut text = format!(
        "{name}: found no stream of RTP: of {} {udp} are datagrams of UDP, and none of their sources sends 16 packets whose \
         numbers follow each other",
        counted(packets, "packet")
    );
    if fragments > 0 {
        text += &format!("; {} of IP left out", counted(fragments, "fragment"));
    }
    if unknown > 0 {
        text += &format!("; {unknown} have a link layer or headers that are not known");
    }
    text
}
