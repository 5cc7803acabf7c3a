//! Reads how the speech of a call is coded: the codec, its frames, and what the codec lets a scenario choose.

use talkpath_config::{Bandwidth, ChosenFrames, Codec, Coding, Frames};
use talkpath_units::Duration;

use crate::diagnostic::Log;
use crate::quantity::Problem;
use crate::section::Section;

/// Reads the coding. Mistakes are in the log.
pub(super) fn read(section: &Section<'_>, log: &mut Log) -> Option<Coding> {
    let codec = Codec::named(section.choice("codec")?)?;
    let ptime = section.duration("ptime")?;
    let frames_in_packet = match check_frames(section, codec, ptime)? {
        Ok(count) => count,
        Err((key, problem)) => {
            section.problem(key, problem, log);
            return None;
        }
    };
    let usual = Coding::usual(codec);
    let mut coding = Coding {
        frame: Duration::from_nanos(ptime.as_nanos() / u64::from(frames_in_packet)),
        frames_in_packet,
        has_fec: section.flag("fec")?,
        has_dtx: section.flag("dtx")?,
        ..usual
    };
    match codec.row().frames {
        Frames::OneSize(_) => refuse_choices(section, codec, log)?,
        Frames::Chosen(_) => {
            if section.node("bandwidth").is_some() {
                coding.bandwidth = Bandwidth::named(section.choice("bandwidth")?)?;
            }
            if section.node("bitrate").is_some() {
                coding.bit_rate = section.rate("bitrate")?;
            }
            if section.node("vbr").is_some() {
                coding.is_vbr = section.flag("vbr")?;
            }
        }
    }
    if coding.has_fec && !coding.can_have_fec() {
        section.problem("fec", no_fec(&coding), log);
        return None;
    }
    if coding.has_fec && coding.bit_rate.as_bps() < least_fec_bps(&coding) {
        section.problem("fec", too_slow_for_fec(&coding), log);
        return None;
    }
    Some(coding)
}

/// The least bit rate at which libopus adds in-band FEC without narrowing the bandwidth (`decide_fec` and
/// `compute_equiv_rate` in opus_encoder.c, of libopus 1.3 to 1.5), in b/s. It depends on the loss that the
/// encoder expects. We chose 10 %, as for the sound (`sound/src/opus.rs`): for less, libopus wants a higher
/// rate.
fn least_fec_bps(coding: &Coding) -> u64 {
    let threshold = match coding.bandwidth {
        Bandwidth::Narrow => 12_000,
        Bandwidth::Medium => 14_000,
        Bandwidth::Wide => 16_000,
        Bandwidth::SuperWide => 20_000,
        Bandwidth::Full => 22_000,
    };
    // The encoder has no FEC yet, so the hysteresis counts.
    let wanted = (threshold + HYSTERESIS_BPS) * (125 - EXPECTED_LOSS) / 100;
    // What is left of a bit rate, in its view: for losses, and with a constant bit rate.
    let least = wanted * (6 * EXPECTED_LOSS + 10) / (5 * EXPECTED_LOSS + 10);
    if coding.is_vbr { least } else { least * 12 / 11 }
}

const HYSTERESIS_BPS: u64 = 1_000;
/// The expected loss in per cent.
const EXPECTED_LOSS: u64 = 10;

/// Returns the number of frames in a packet, or the key with a mistake. Returns `None` if a value is absent.
fn check_frames(
    section: &Section<'_>,
    codec: Codec,
    ptime: Duration,
) -> Option<Result<u32, (&'static str, Problem)>> {
    let frames = &codec.row().frames;
    let Some(fewest) = frames.fewest_in(ptime) else {
        return Some(Err(("ptime", wrong_ptime(codec.name(), frames, ptime))));
    };
    if section.node("frames").is_none() {
        return Some(Ok(fewest));
    }
    let count = section.count("frames")?;
    let is_whole = count > 0 && ptime.as_nanos().is_multiple_of(count);
    if is_whole && frames.can_last(Duration::from_nanos(ptime.as_nanos() / count)) {
        return Some(u32::try_from(count).map_err(|_| ("frames", Problem::new("too many frames"))));
    }
    let message = format!("found {count} in a packet of {ptime}, expected frames of {}", lengths(frames));
    let problem =
        Problem::new(message).with_help(format!("leave it out for {fewest}, the fewest that fill it"));
    Some(Err(("frames", problem)))
}

fn wrong_ptime(codec: &str, frames: &Frames, ptime: Duration) -> Problem {
    match frames {
        Frames::OneSize(shape) => Problem::new(format!(
            "found {ptime}, expected a multiple of {}, the shortest frame of {codec}",
            shape.time
        )),
        Frames::Chosen(ChosenFrames { longest_packet, .. }) => Problem::new(format!(
            "found {ptime}, expected whole frames of {}, at most {longest_packet} in a packet of {codec}",
            lengths(frames)
        )),
    }
}

/// Lists the lengths of a frame: `2500 us, 5 ms, 10 ms`.
fn lengths(frames: &Frames) -> String {
    match frames {
        Frames::OneSize(shape) => format!("a multiple of {}", shape.time),
        Frames::Chosen(chosen) => {
            let lengths: Vec<_> = chosen.times.iter().map(ToString::to_string).collect();
            lengths.join(", ")
        }
    }
}

/// Refuses the keys that only a codec with a choice has.
fn refuse_choices(section: &Section<'_>, codec: Codec, log: &mut Log) -> Option<()> {
    for key in ["bandwidth", "bitrate", "vbr"] {
        if section.node(key).is_some() {
            let message = format!("found it beside `codec = {:?}`, which has one bit rate", codec.name());
            section.problem(
                key,
                Problem::new(message).with_help("leave it out, or take `codec = \"opus\"`"),
                log,
            );
            return None;
        }
    }
    Some(())
}

fn too_slow_for_fec(coding: &Coding) -> Problem {
    let least = least_fec_bps(coding).div_ceil(1_000);
    let name = coding.bandwidth.name();
    let message = format!(
        "found it with {:.0} kb/s in {name}, where libopus sends no in-band FEC",
        coding.bit_rate.as_bps() as f64 / 1e3
    );
    Problem::new(message).with_help(format!(
        "libopus sends it in {name} from {least} kb/s on (for an expected loss of {EXPECTED_LOSS} %), and in a narrower \
         `bandwidth` from less"
    ))
}

fn no_fec(coding: &Coding) -> Problem {
    if coding.codec != Codec::OPUS {
        let message =
            format!("found it beside `codec = {:?}`, which has no in-band FEC", coding.codec.name());
        return Problem::new(message).with_help("`red` and `copies` send the speech of any codec again");
    }
    let message = format!("found it with frames of {}, expected frames of 10 ms or more", coding.frame);
    Problem::new(message)
        .with_help("in-band FEC belongs to SILK, which has no shorter frames (RFC 6716 §2.1.7)")
}
