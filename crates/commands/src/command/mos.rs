//! `talkpath mos`: the E-model by hand.

use serde::Serialize;
use talkpath_measure::metrics::e_model::{Call, Rating};
use talkpath_measure::summary::OutsideModel;
use talkpath_scenario::as_percent;

use crate::args::{Common, MosArgs};
use crate::failure::Failure;
use crate::terminal::{self, Terminal};
use talkpath_experiment::json::json;

/// Prints the score, R and what took from it, and which input lies outside the model, or with `--json` all of
/// these as an object.
pub fn run(args: &MosArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let call = Call {
        mouth_to_ear_ms: args.one_way.as_millis_f64(),
        loss: args.loss.value,
        burst_ratio: args.burst_ratio,
        codec: args.codec.impairment(is_concealed(args)?),
    };
    let Rating { r, mos, id, ie_eff } = call.rate();
    let outside_model = call.outside();
    let concealment = args.codec.concealment(!args.no_plc);
    if common.json() {
        return terminal::print(&json(&Figures { r, mos, id, ie_eff, concealment, outside_model }));
    }
    let much = if args.loss.value > MUCH {
        format!("{} of the frames are not played\n", as_percent(args.loss.value).replace('%', " %"))
    } else {
        String::new()
    };
    let at_the_end = if r <= 0.0 { "; R is 0 at the least" } else { "" };
    let outside: String = outside_model.iter().map(|it| format!("Outside the model: {it}\n")).collect();
    terminal.result(&format!(
        "MOS {mos:.2}, R {r:.1} of 93.2: {}\n\
         Echo and delay take {id:.1}, codec and loss {ie_eff:.1}{at_the_end} (ITU-T G.107, 06/2015, narrowband)\n\
         {much}{outside}",
        satisfaction(r)
    ))
}

/// A share above this is said in words: it was perhaps meant in per cent. Chosen, as for a path's loss.
const MUCH: f64 = 0.2;

/// What `--json` prints.
#[derive(Serialize)]
struct Figures {
    r: f64,
    mos: f64,
    id: f64,
    ie_eff: f64,
    /// As in summary.json.
    concealment: &'static str,
    /// As in summary.json.
    outside_model: Vec<OutsideModel>,
}

/// Whether the receiver conceals missing frames.
fn is_concealed(args: &MosArgs) -> Result<bool, Failure> {
    if args.no_plc && args.codec.row().silence.is_none() {
        return Err(Failure::Usage(format!(
            "--no-plc belongs to g711: {} conceals by itself, and its figures hold for that",
            args.codec.name()
        )));
    }
    Ok(!args.no_plc)
}

/// ITU-T G.107 (06/2015), Table B.1: what to expect of users at `r`.
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
