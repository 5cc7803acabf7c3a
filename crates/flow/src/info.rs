//! What a record says of its flow, as the scenario has it.

use talkpath_measure::metrics::in_time;
use talkpath_measure::{CallTerms, Carriage, FlowInfo, PlayoutRule, Terms};
use talkpath_model::{Concealment, Flow, Judging, Playout};
use talkpath_units::Instant;

/// What a record says of `flow`, whose connection was to open at `start`, with the congestion control `cc`,
/// between hosts whose clocks are trusted or not.
pub fn flow_info(flow: &Flow, cc: Option<String>, start: Instant, clock_trusted: bool) -> FlowInfo {
    FlowInfo {
        name: flow.name.clone(),
        group: flow.group.clone(),
        transport: flow.transport_name.clone(),
        cc,
        start,
        clocked: flow.workload.is_clocked(),
        bounded: flow.workload.is_bounded(),
        burst: flow.workload.sends_bursts(),
        terms: terms(flow),
        clock_trusted,
    }
}

/// What `flow` is judged by. A workload on a clock has the deadline of a conversation, unless the scenario
/// names another.
fn terms(flow: &Flow) -> Terms {
    let usual = flow.workload.is_clocked().then(|| in_time::limit(flow.echo.is_some()));
    match flow.judging {
        Judging::Unjudged => Terms { deadline: usual, ..Terms::default() },
        Judging::Call { playout, others, concealment, floor } => {
            let playout = match playout {
                Playout::Adaptive => PlayoutRule::Adaptive,
                Playout::Ramjee => PlayoutRule::Ramjee,
                Playout::Fixed(wait) => PlayoutRule::Fixed(wait),
            };
            let is_concealed = match concealment {
                Concealment::Silence => false,
                Concealment::Concealed => true,
            };
            let call = flow.workload.voice().map(|voice| CallTerms {
                codec: voice.codec(),
                rated: voice.coding.rated(is_concealed),
                frame: voice.ptime,
                carriage: Carriage {
                    copies: u8::try_from(voice.copies()).unwrap_or(u8::MAX),
                    earlier: voice.earlier_packets(),
                },
                playout,
                is_concealed,
                others,
            });
            // A call that is not rated has no score that could reach the floor.
            let is_rated = call.is_some_and(|call| call.rated.is_some());
            Terms { deadline: usual, call, floor: is_rated.then_some(floor), ..Terms::default() }
        }
        Judging::InTime { deadline, is_state, floor } => {
            Terms { deadline: deadline.or(usual), is_state, floor: Some(floor), ..Terms::default() }
        }
    }
}
