//! `talkpath mos` computes the opinion score of a call by the E-model, on the scale of its codec (ITU-T
//! G.107, G.107.1 and G.107.2).

use serde::Serialize;
use talkpath_measure::metrics::e_model::{Call, Rating, scale_row};
use talkpath_measure::summary::OutsideModel;
use talkpath_measure::{Codec, Coding, Rated};
use talkpath_scenario::as_percent;

use crate::args::{Common, MosArgs};
use crate::failure::Failure;
use crate::terminal::{self, Terminal};
use talkpath_experiment::json::json;

/// Prints the score, the rating R with its impairments, and which inputs lie outside the model. With `--json`
/// it prints all of these as an object.
pub fn run(args: &MosArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let rated = rated(args)?;
    let call = Call {
        mouth_to_ear_ms: args.one_way.as_millis_f64(),
        loss: args.loss.value,
        burst_ratio: args.burst_ratio,
        codec: rated,
    };
    let Rating { r, mos, id, ie_eff } = call.rate();
    let outside_model = call.outside();
    let concealment = args.codec.concealment(!args.no_plc);
    if common.json() {
        let (scale, source) = (rated.scale.name(), rated.source);
        return terminal::print(&json(&Figures {
            r,
            mos,
            scale,
            id,
            ie_eff,
            concealment,
            source,
            outside_model,
        }));
    }
    let scale = scale_row(rated.scale);
    let at_least = if r <= 0.0 { "; R is 0 at the least" } else { "" };
    let mut text = format!(
        "MOS {mos:.2}, R {r:.1} of {}: {}\n\
         Echo and delay take {id:.1}, codec and loss {ie_eff:.1}{at_least} ({}, {})\n",
        scale.best,
        satisfaction(r / scale.stretch),
        scale.recommendation,
        scale.speech
    );
    if args.codec == Codec::OPUS {
        text += &format!("Codec and loss by {}, which is no standard\n", rated.source);
    }
    // The user may have meant a large loss in per cent, so the text says how it was understood.
    if args.loss.value > LARGE_LOSS {
        let loss = as_percent(args.loss.value).replace('%', " %");
        text += &format!("{loss} of the frames are not played\n");
    }
    for input in &outside_model {
        text += &format!("Outside the model: {input}\n");
    }
    terminal.result(&text)
}

/// A loss above this share is repeated in words. It is the same share as for the loss of a path.
const LARGE_LOSS: f64 = 0.2;

/// The object that `--json` prints.
#[derive(Serialize)]
struct Figures {
    r: f64,
    mos: f64,
    /// The same word as in summary.json.
    scale: &'static str,
    id: f64,
    ie_eff: f64,
    /// The same word as in summary.json.
    concealment: &'static str,
    /// Where the codec's figures were published.
    source: &'static str,
    /// The same words as in summary.json.
    outside_model: Vec<OutsideModel>,
}

/// Returns the codec's constants in the E-model.
fn rated(args: &MosArgs) -> Result<Rated, Failure> {
    let is_concealed = has_concealment(args)?;
    let mut coding = Coding::usual(args.codec);
    if args.codec == Codec::OPUS {
        coding.bandwidth = args.bandwidth.unwrap_or(coding.bandwidth);
        coding.bit_rate = args.bitrate.unwrap_or(coding.bit_rate);
        coding.is_vbr = !args.cbr;
    } else if args.bandwidth.is_some() || args.bitrate.is_some() || args.cbr {
        return Err(Failure::Usage(format!(
            "--bandwidth, --bitrate and --cbr belong to opus: {} has one bit rate",
            args.codec.name()
        )));
    }
    coding.rated(is_concealed).ok_or_else(|| {
        let published = Codec::OPUS_PUBLISHED;
        Failure::Usage(format!(
            "nobody published the impairment of Opus at this bandwidth and bit rate. Published are {published}"
        ))
    })
}

/// Whether the receiver conceals missing frames. `--no-plc` is refused for a codec that always does.
fn has_concealment(args: &MosArgs) -> Result<bool, Failure> {
    if args.no_plc && args.codec.always_conceals() {
        return Err(Failure::Usage(format!(
            "--no-plc belongs to g711: {} conceals by itself, and its figures hold for that",
            args.codec.name()
        )));
    }
    Ok(!args.no_plc)
}

/// How satisfied users are at the rating `r` (ITU-T G.107, 06/2015, Table B.1). Ratings of other scales are
/// first brought to the scale of that table.
const fn satisfaction(r: f64) -> &'static str {
    match r {
        90.0.. => "users are very satisfied",
        80.0.. => "users are satisfied",
        70.0.. => "some users are dissatisfied",
        60.0.. => "many users are dissatisfied",
        50.0.. => "nearly all users are dissatisfied",
        _ => "not recommended",
    }
}
