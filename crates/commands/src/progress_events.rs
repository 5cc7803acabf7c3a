//! The events of an experiment as JSON on standard error, one object a line (`--progress json`). Their keys
//! are in docs/reference/interface.md; `talkpath ui` reads them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use talkpath_experiment::observer::Event;
use talkpath_measure::ClockRecord;
use talkpath_measure::summarise::cell_summaries;
use talkpath_measure::summary::{Clock, FlowSummary, RunSummary, SUMMARY_FORMAT, Summary, Understood};
use talkpath_report::comparisons;
use talkpath_units::Duration as PathTime;

use crate::terminal::Terminal;

/// The shortest time between two events `progress`. We chose 0.25 s, because a person sees no more.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Beyond this number of repetitions there are no further answers while a run goes on. We chose 10,000, which
/// take about 100 MB, because a run of more is a sweep, and nobody waits before it for an answer.
const MAX_REPETITIONS: usize = 10_000;

/// Prints the events of one experiment.
pub(crate) struct JsonEvents {
    terminal: Terminal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cells: u64,
    repetitions: u64,
    finished: u64,
    whole: PathTime,
    advanced: PathTime,
    begun: Option<Instant>,
    printed: Option<Instant>,
    /// The figures of each repetition, by cell and number.
    figures: BTreeMap<(u64, u64), RunSummary>,
    /// The number of repetitions of all cells at the last answer.
    answered: usize,
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
            Event::Begun { cells, repetitions, whole } => {
                state.cells = *cells;
                state.repetitions = *repetitions;
                state.whole = *whole;
                (state.finished, state.advanced) = (0, PathTime::ZERO);
                (state.begun, state.printed) = (Some(Instant::now()), None);
                self.print_progress(&mut state);
            }
            Event::Advanced(path_time) => {
                state.advanced = state.advanced.saturating_add(*path_time);
                self.print_progress(&mut state);
            }
            Event::Counted => {
                state.finished += 1;
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
        let share = if state.whole > PathTime::ZERO {
            (state.advanced.as_secs_f64() / state.whole.as_secs_f64()).min(1.0)
        } else {
            0.0
        };
        let elapsed = state.begun.map_or(0.0, |begun| (now - begun).as_secs_f64());
        let left = (share > 0.0).then(|| elapsed * (1.0 - share) / share);
        self.terminal.event(&json!({
            "event": "progress", "share": share, "left_s": left,
            "finished": state.finished, "repetitions": state.repetitions,
        }));
    }

    fn print_figures(&self, repetition: &RunSummary, state: &mut State) {
        let flows: serde_json::Map<String, Value> =
            repetition.flows.iter().map(|(name, flow)| (name.clone(), flow_figures(flow))).collect();
        self.terminal.event(&json!({
            "event": "figures", "cell": repetition.cell, "sweep": repetition.sweep,
            "repetition": repetition.repetition, "flows": flows,
        }));
        if state.figures.len() < MAX_REPETITIONS {
            state.figures.insert((repetition.cell, repetition.repetition), repetition.clone());
            self.print_answers(state);
        }
    }

    /// Prints the answers so far, whenever every cell has run equally often and more often than at the last
    /// answer.
    fn print_answers(&self, state: &mut State) {
        let mut repetitions_of: BTreeMap<u64, usize> = BTreeMap::new();
        for (cell, _) in state.figures.keys() {
            *repetitions_of.entry(*cell).or_default() += 1;
        }
        let all_cells = repetitions_of.len() as u64 == state.cells;
        let Some(least) = repetitions_of.values().min().copied().filter(|_| all_cells) else { return };
        let is_even = repetitions_of.values().all(|count| *count == least);
        if !is_even || state.figures.len() <= state.answered {
            return;
        }
        state.answered = state.figures.len();
        for comparison in comparisons(&summary_of(state.figures.values().cloned().collect())) {
            let answer = &comparison.answer;
            self.terminal.event(&json!({
                "event": "answer", "repetitions": least, "flow": comparison.flow, "sweep": comparison.sweep,
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

/// Makes a summary of `runs` with figures alone.
fn summary_of(runs: Vec<RunSummary>) -> Summary {
    let mut summary = Summary {
        format: SUMMARY_FORMAT,
        talkpath: String::new(),
        name: String::new(),
        arena: String::new(),
        started: String::new(),
        wall_s: 0.0,
        cpu_s: 0.0,
        valid: true,
        warnings: Vec::new(),
        percentiles: String::new(),
        clock: Clock::from(&ClockRecord::default()),
        program: None,
        cells: Vec::new(),
        runs,
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood::default(),
    };
    summary.cells = cell_summaries(summary.counted_runs());
    summary
}
