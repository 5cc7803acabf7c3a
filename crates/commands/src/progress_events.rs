//! The events of an experiment as JSON on standard error, one object a line (`--progress json`). Their keys
//! are in docs/reference/interface.md; `talkpath ui` reads them.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use talkpath_experiment::observer::Event;
use talkpath_measure::summary::{FlowSummary, RunSummary};

use crate::run_state::{Answers, RunState};
use crate::terminal::Terminal;

/// The shortest time between two events `progress`. We chose 0.25 s, because a person sees no more.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Prints the events of one experiment.
pub(crate) struct JsonEvents {
    terminal: Terminal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    run: RunState,
    printed: Option<Instant>,
}

impl JsonEvents {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, state: Mutex::default() }
    }

    /// Prints `event` and returns true. Returns false, and prints nothing, if the event is a message, which
    /// [`Terminal`] prints as JSON by itself.
    pub(crate) fn print(&self, event: &Event<'_>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::Directory(path) => {
                self.terminal.event(&json!({ "event": "directory", "path": path.to_string_lossy() }));
            }
            Event::Begun { .. } => {
                state.run.take(event);
                state.printed = None;
                self.print_progress(&mut state);
            }
            Event::Advanced(_) | Event::Counted => {
                state.run.take(event);
                self.print_progress(&mut state);
            }
            Event::Over => {
                state.printed = None;
                self.print_progress(&mut state);
            }
            Event::Ended { id, seed, disturbed } => {
                let disturbed = disturbed.map(|disturbed| disturbed.warnings);
                self.terminal.event(&json!({
                    "event": "repetition", "cell": id.cell, "repetition": id.repetition, "seed": seed.get(),
                    "disturbed": disturbed,
                }));
            }
            Event::Figures(repetition) => self.print_figures(repetition, &mut state),
            Event::RunsAgain { .. }
            | Event::CannotRun { .. }
            | Event::NotKeptAwake(_)
            | Event::AlsoFailed(_) => return false,
        }
        true
    }

    fn print_progress(&self, state: &mut State) {
        let now = Instant::now();
        if state.printed.is_some_and(|printed| now - printed < PROGRESS_INTERVAL) {
            return;
        }
        state.printed = Some(now);
        self.terminal.event(&json!({
            "event": "progress", "share": state.run.share(), "left_s": state.run.left_s(now),
            "finished": state.run.finished, "repetitions": state.run.repetitions,
        }));
    }

    fn print_figures(&self, repetition: &RunSummary, state: &mut State) {
        let flows: serde_json::Map<String, Value> =
            repetition.flows.iter().map(|(name, flow)| (name.clone(), flow_figures(flow))).collect();
        self.terminal.event(&json!({
            "event": "figures", "cell": repetition.cell, "sweep": repetition.sweep,
            "repetition": repetition.repetition, "flows": flows,
        }));
        let Some(Answers { repetitions, comparisons }) = state.run.add_figures(repetition) else { return };
        for comparison in comparisons {
            let answer = &comparison.answer;
            self.terminal.event(&json!({
                "event": "answer", "repetitions": repetitions, "flow": comparison.flow, "sweep": comparison.sweep,
                "outcome": answer.outcome, "best": answer.best, "line": answer.line,
            }));
        }
    }
}

/// The figures of a flow in a repetition: as in summary.json, of which this is a small part.
fn flow_figures(flow: &FlowSummary) -> Value {
    let round_trip = flow.round_trip_delay_ms.as_ref();
    json!({
        "transport": flow.transport, "cc": flow.cc, "sent": flow.sent, "received": flow.received,
        "loss_rate": flow.loss_rate, "in_time": flow.in_time, "goodput_bps": flow.goodput_bps,
        "mos": flow.call.as_ref().and_then(|call| call.mos),
        "round_trip_delay_ms": round_trip.map(|delay| json!({ "p50": delay.p50, "p99": delay.p99 })),
    })
}
