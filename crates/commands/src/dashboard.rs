//! `--tui`: how far an experiment, a monitor or a campaign is, drawn over the whole terminal while it runs.
//!
//! ```text
//!  Event, Reading ─► Dashboard ─► View: progress, rows, answers ─► `drawing` ─► standard error
//! ```
//!
//! Of an experiment it takes the events of `--progress json`, so it shows the same figures: those of the
//! repetitions that have ended. Of a monitor and of a campaign it takes each interval or measurement as a
//! [`Reading`]. Nothing is read from the keyboard, so Ctrl-C works as ever. The drawing is on the terminal's
//! second screen. A message for the user is printed on the first one, to which the terminal returns for it
//! and at the end.

mod drawing;
mod view;

use std::io::{self, Stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use talkpath_experiment::observer::Event;

use self::drawing::draw;
pub(crate) use self::view::Reading;
use self::view::View;

/// The shortest time between two drawings. We chose 0.25 s, because a person sees no more.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// Draws an experiment.
pub(crate) struct Dashboard {
    /// Whether a line is printed for each repetition that ends.
    is_verbose: bool,
    screen: Mutex<Screen>,
}

#[derive(Default)]
struct Screen {
    view: View,
    drawn: Option<Instant>,
    /// `None` while the first screen of the terminal is shown.
    terminal: Option<Terminal<CrosstermBackend<Stderr>>>,
    /// Whether repetitions run, and the terminal can be drawn on.
    is_running: bool,
}

impl Dashboard {
    pub(crate) fn new(is_verbose: bool) -> Self {
        Self { is_verbose, screen: Mutex::default() }
    }

    /// Takes the state of a monitor or a campaign, and draws it.
    pub(crate) fn show(&self, reading: Reading<'_>) {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = screen.view.reading.is_none();
        screen.view.show(reading);
        if is_first {
            screen.is_running = true;
        }
        screen.draw();
    }

    /// Returns to the first screen of the terminal, for a message. The next drawing comes back.
    pub(crate) fn hide(&self) {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).close();
    }

    /// Takes an event and returns true. Returns false if the event is a message, which can now be printed.
    pub(crate) fn take(&self, event: &Event<'_>) -> bool {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Begun { .. } => {
                screen.view.run.take(event);
                screen.is_running = true;
                screen.draw();
            }
            Event::Advanced(_) | Event::Counted => {
                screen.view.run.take(event);
                screen.draw_if_due();
            }
            Event::Figures(repetition) => {
                screen.view.add(repetition);
                screen.draw_if_due();
            }
            Event::Over => {
                screen.is_running = false;
                screen.close();
            }
            Event::Directory(_) | Event::Ended { .. } if !self.is_verbose => {}
            Event::Directory(_)
            | Event::Ended { .. }
            | Event::RunsAgain { .. }
            | Event::CannotRun { .. }
            | Event::NotKeptAwake(_)
            | Event::AlsoFailed(_) => {
                screen.close();
                return false;
            }
        }
        true
    }
}

impl Screen {
    fn draw_if_due(&mut self) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_INTERVAL) {
            self.draw();
        }
    }

    /// Draws the view. If the terminal cannot be drawn on, nothing is drawn any more.
    fn draw(&mut self) {
        if !self.is_running {
            return;
        }
        self.drawn = Some(Instant::now());
        if self.terminal.is_none() {
            self.terminal = Terminal::new(CrosstermBackend::new(io::stderr())).ok();
            // If standard error is closed, drawing fails too, and then nothing is drawn any more.
            let _ = execute!(io::stderr(), EnterAlternateScreen, Hide);
        }
        let Self { view, terminal, .. } = self;
        let is_drawn = terminal
            .as_mut()
            .is_some_and(|terminal| terminal.draw(|frame| draw(view, Instant::now(), frame)).is_ok());
        if !is_drawn {
            self.is_running = false;
            self.close();
        }
    }

    /// Returns to the first screen of the terminal.
    fn close(&mut self) {
        if self.terminal.take().is_some() {
            // If standard error is closed, there is no screen to return to.
            let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
        }
    }
}

/// The terminal must not stay on its second screen, whatever ends the run.
impl Drop for Screen {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ratatui::backend::TestBackend;
    use talkpath_measure::summary::{CallSummary, DelayMs, FlowSummary, RunSummary};
    use talkpath_units::Duration as PathTime;

    use super::view::{MAX_ROWS, SHOWN_DELAYS};
    use super::*;

    /// The figures of a call over a transport with this round trip.
    fn repetition(cell: u64, number: u64, transport: &str, round_trip_ms: f64, mos: f64) -> RunSummary {
        let delay: DelayMs = serde_json::from_value(serde_json::json!({
            "min": 1.0, "mean": round_trip_ms, "p50": round_trip_ms, "p90": round_trip_ms, "p95": round_trip_ms,
            "p99": 2.0 * round_trip_ms, "p999": 200.0, "max": 200.0,
        }))
        .unwrap();
        let flow = FlowSummary {
            transport: transport.to_owned(),
            loss_rate: Some(0.01),
            goodput_bps: Some(64_000.0),
            floor: Some(3.1),
            round_trip_delay_ms: Some(delay),
            call: Some(Box::new(CallSummary { mos: Some(mos), r: Some(80.0), ..CallSummary::default() })),
            ..FlowSummary::default()
        };
        RunSummary {
            cell,
            sweep: [("flow.call.transport".to_owned(), serde_json::json!(transport))].into(),
            repetition: number,
            flows: BTreeMap::from([("call".to_owned(), Box::new(flow))]),
            ..talkpath_fixtures::run_summary(number)
        }
    }

    /// What a terminal of this size shows, line by line.
    fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(view, Instant::now(), frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn begun(repetitions: u64) -> View {
        let mut view = View::default();
        view.run.take(&Event::Begun { cells: 2, repetitions, whole: PathTime::from_secs(10 * repetitions) });
        view
    }

    #[test]
    fn each_transport_has_a_row_with_the_figures_of_the_repetitions_that_have_ended() {
        let mut view = begun(8);
        for number in 0..3 {
            view.add(&repetition(0, number, "udp", 40.0 + number as f64, 4.4));
            view.add(&repetition(1, number, "tcp", 100.0, 1.5));
            view.run.take(&Event::Advanced(PathTime::from_secs(20)));
            view.run.take(&Event::Counted);
            view.run.take(&Event::Counted);
        }
        let lines = drawn(&view, 120, 24);
        let row =
            |word: &str| lines.iter().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{lines:?}"));
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(row(" udp "))[..7], ["call", "udp", "3", "41.0", "82.0", "1.00", "64.0"]);
        assert_eq!(words(row(" tcp "))[..7], ["call", "tcp", "3", "100.0", "200.0", "1.00", "64.0"]);
        assert!(row(" udp ").contains('▁') && row(" udp ").contains('█'), "{}", row(" udp "));
        assert!(lines[0].contains("75 %"), "{}", lines[0]);
        assert!(lines.iter().any(|line| line.contains("UDP is best for this call")), "{lines:?}");
        let last = lines.last().unwrap();
        assert!(last.starts_with("6 of 8 repetitions, ") && last.contains(" left"), "{last}");
    }

    #[test]
    fn a_monitor_shows_its_last_interval_and_a_campaign_each_pair_of_hosts() {
        let mut view = View::default();
        for number in 0..3 {
            view.show(Reading {
                runs: &[repetition(0, number, "udp", 40.0 + number as f64, 4.4)],
                place: "",
                lines: vec!["holds  call.mos 4.40".to_owned()],
                last_line: format!("{} intervals", number + 1),
                share: None,
            });
        }
        let lines = drawn(&view, 120, 12);
        let row = |word: &str| -> Vec<String> {
            let line = lines.iter().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{lines:?}"));
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(row(" udp ")[..5], ["call", "udp", "3", "42.0", "84.0"], "of the last interval");
        assert!(!lines[0].contains('%'), "a monitor has no end: {}", lines[0]);
        assert!(lines.iter().any(|line| line.contains("holds  call.mos 4.40")), "{lines:?}");
        assert_eq!(lines.last().unwrap(), "3 intervals");
        view.show(Reading {
            runs: &[repetition(0, 0, "tcp", 90.0, 4.0)],
            place: "berlin > tokyo, call",
            lines: Vec::new(),
            last_line: "1 of 4 measured".to_owned(),
            share: Some(0.25),
        });
        let lines = drawn(&view, 140, 12);
        assert!(lines[0].contains("25 %"), "{}", lines[0]);
        assert!(lines.iter().any(|line| line.contains("berlin > tokyo, call")), "{lines:?}");
    }

    #[test]
    fn before_the_first_repetition_has_ended_only_the_progress_is_drawn() {
        let lines = drawn(&begun(1), 80, 10);
        assert!(lines[0].contains("0 %"), "{lines:?}");
        assert_eq!(lines.last().unwrap(), "0 of 1 repetition");
    }

    #[test]
    fn a_small_terminal_keeps_the_last_line() {
        let mut view = begun(100);
        for number in 0..50 {
            view.add(&repetition(number, 0, &format!("transport-{number}"), 40.0, 4.0));
        }
        for (width, height) in [(20, 3), (1, 1), (40, 6)] {
            let lines = drawn(&view, width, height);
            assert!(lines.last().unwrap().starts_with('0'), "{width} x {height}: {lines:?}");
        }
    }

    #[test]
    fn rows_and_delays_are_bounded() {
        let mut view = begun(1_000);
        for number in 0..500 {
            // A cell of its own each, so that there are no answers to find.
            view.add(&repetition(2 * number, 0, "udp", 40.0, 4.0));
            view.add(&repetition(2 * number + 1, 0, &format!("transport-{number}"), 40.0, 4.0));
        }
        assert_eq!(view.rows.len(), MAX_ROWS);
        assert!(view.rows.values().all(|row| row.medians_ms.len() <= SHOWN_DELAYS));
    }
}
