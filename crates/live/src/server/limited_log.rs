//! A limit for those lines of the log that a stranger or a client can cause at no cost.

use talkpath_kernel::clock::monotonic;

/// Limits the lines about refused clients and about sessions that carried nothing. A flood of such clients
/// must not fill the log.
#[derive(Default)]
pub(super) struct LimitedLog {
    /// CLOCK_MONOTONIC of the first line of this minute.
    begun_ns: Option<i64>,
    /// The number of lines that were written in this minute.
    written: u32,
    /// The number of lines that were left out in this minute.
    left_out: u64,
}

impl LimitedLog {
    pub(super) fn write(&mut self, line: &str, log: &(dyn Fn(&str) + Sync)) {
        let now = monotonic();
        self.end_if_over(now, log);
        self.begun_ns.get_or_insert(now);
        if self.written < LINES_A_MINUTE {
            self.written += 1;
            log(line);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn end_if_over(&mut self, now: i64, log: &(dyn Fn(&str) + Sync)) {
        if self.begun_ns.is_some_and(|begun| now - begun >= MINUTE_NS) {
            self.end(log);
        }
    }

    pub(super) fn end(&mut self, log: &(dyn Fn(&str) + Sync)) {
        if self.left_out > 0 {
            log(&format!(
                "and {} more were refused, or left at once or without a message, within a minute",
                self.left_out
            ));
        }
        *self = Self::default();
    }
}

pub(super) const MINUTE_NS: i64 = 60_000_000_000;
/// The number of such lines that the log has in a minute. We chose 10, so that a client that is set up
/// wrongly can be found in the log, and a flood makes 1 kB a minute.
const LINES_A_MINUTE: u32 = 10;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_flood_of_those_who_are_refused_has_a_few_lines_of_the_log_and_their_number() {
        let said = Mutex::new(Vec::new());
        let log = |line: &str| said.lock().unwrap().push(line.to_owned());
        let mut limited_log = LimitedLog::default();
        for _ in 0..1000 {
            limited_log.write("refused", &log);
        }
        limited_log.end_if_over(monotonic() + MINUTE_NS, &log);
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert_eq!(lines.len(), 11, "{lines:?}");
        assert_eq!(
            lines[10],
            "and 990 more were refused, or left at once or without a message, within a minute"
        );
        limited_log.write("refused", &log);
        limited_log.end(&log);
        assert_eq!(*said.lock().unwrap(), ["refused"]);
    }
}
