//! The timeline of a monitor. It finds the outages between the sessions.

use talkpath_arena::{MonitorEvent, MonitorSession};

use super::session::nanoseconds;

/// The timeline of a monitor.
pub(super) struct Timeline {
    /// CLOCK_MONOTONIC up to which everything has been reported.
    end_ns: i64,
    /// True if a session has begun.
    has_begun: bool,
    /// The outage that was reported and has not ended.
    outage: Option<Outage>,
    /// The reason why the last session was cut short, if it was.
    cut: Option<String>,
}

/// An outage that goes on.
#[derive(Default)]
struct Outage {
    /// The number of sessions that could not begin.
    attempts: u64,
}

impl Timeline {
    /// Makes a timeline that begins at `start_ns`.
    pub(super) const fn new(start_ns: i64) -> Self {
        Self { end_ns: start_ns, has_begun: false, outage: None, cut: None }
    }

    pub(super) const fn is_in_outage(&self) -> bool {
        self.outage.is_some()
    }

    /// Records a session that could not begin, while no other session runs. Reports the beginning of an
    /// outage.
    pub(super) fn record_failure(&mut self, why: String, handle: &mut dyn FnMut(MonitorEvent)) {
        if self.outage.is_none() {
            handle(MonitorEvent::Down { from_ns: self.end_ns, why });
        }
        self.outage.get_or_insert_default().attempts += 1;
    }

    /// Reports the end of an outage, because a session has begun.
    pub(super) fn record_start(&mut self, start_ns: i64, handle: &mut dyn FnMut(MonitorEvent)) {
        if let Some(Outage { attempts }) = self.outage.take() {
            let from_ns = self.end_ns;
            self.end_ns = start_ns.max(from_ns);
            handle(MonitorEvent::Up { from_ns, to_ns: self.end_ns, attempts });
        }
    }

    /// Reports a session, and the outage before it if there was one.
    pub(super) fn record_session(&mut self, measured: MonitorSession, handle: &mut dyn FnMut(MonitorEvent)) {
        let (start_ns, from_ns) = (measured.start_ns, self.end_ns);
        if self.has_begun && start_ns > from_ns && self.outage.is_none() {
            let why = self.cut.take().unwrap_or_else(|| "the next session was not ready in time".to_owned());
            handle(MonitorEvent::Down { from_ns, why });
            self.outage = Some(Outage::default());
        }
        self.record_start(start_ns, handle);
        self.has_begun = true;
        self.end_ns = self.end_ns.max(start_ns.saturating_add(nanoseconds(measured.length)));
        self.cut.clone_from(&measured.cut);
        handle(MonitorEvent::Measured(Box::new(measured)));
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Duration;

    use super::*;

    fn reported(steps: impl IntoIterator<Item = Result<MonitorSession, &'static str>>) -> Vec<String> {
        let mut timeline = Timeline::new(1_000);
        let mut lines = Vec::new();
        let mut handle = |happening| {
            lines.push(match happening {
                MonitorEvent::Measured(session) => format!("{} from {}", session.number, session.start_ns),
                MonitorEvent::Down { from_ns, why } => format!("down {from_ns} {why}"),
                MonitorEvent::Up { from_ns, to_ns, attempts } => format!("up {from_ns} {to_ns} {attempts}"),
            });
        };
        for step in steps {
            match step {
                Ok(measured) => timeline.record_session(measured, &mut handle),
                Err(why) => timeline.record_failure(why.to_owned(), &mut handle),
            }
        }
        lines
    }

    fn session(number: u64, start_ns: i64, length_ns: u64, cut: Option<&str>) -> MonitorSession {
        let length = Duration::from_nanos(length_ns);
        MonitorSession { number, start_ns, length, record: None, cut: cut.map(str::to_owned) }
    }

    #[test]
    fn sessions_that_touch_have_no_outage_between_them() {
        let lines = reported([Ok(session(0, 1_500, 100, None)), Ok(session(1, 1_600, 100, None))]);
        assert_eq!(lines, ["0 from 1500", "1 from 1600"]);
    }

    #[test]
    fn every_moment_without_a_session_is_in_an_outage_with_its_cause() {
        let lines = reported([
            Err("refused"),
            Err("refused"),
            Ok(session(0, 1_500, 40, Some("gone"))),
            Ok(session(1, 1_600, 100, None)),
            Ok(session(2, 1_701, 100, None)),
            Err("silent"),
        ]);
        assert_eq!(
            lines,
            [
                "down 1000 refused",
                "up 1000 1500 2",
                "0 from 1500",
                "down 1540 gone",
                "up 1540 1600 0",
                "1 from 1600",
                "down 1700 the next session was not ready in time",
                "up 1700 1701 0",
                "2 from 1701",
                "down 1801 silent",
            ]
        );
    }
}
