//! Loss by sequence number, runs of losses, and the ledger, which says what became of each message that was
//! due.
//!
//! A message that was never sent, because there was no network or no open connection, counts as lost like a
//! message that the path lost. The receiver misses it in either case. A message that the transport refused
//! is not lost: the transport had no room, or could not carry the message on any path.
//!
//! If loss were counted as sent minus received, each duplicate would hide a loss. Here each message has one
//! outcome, so a duplicate raises `duplicates` only.
//!
//! A *run* is a sequence of consecutive lost messages, the loss period of RFC 3357 §5. Refused and
//! unfinished messages are ignored, so they neither lengthen nor end a run.

use super::runs::Runs;
use super::trip::{LossKind, Trip, TripOutcome};
use crate::summary::{Ledger, LossRuns};

/// How the messages of a window ended. `sent = received + lost_forward + lost_return + unfinished`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// Messages that were due and that the transport did not refuse.
    pub sent: u64,
    /// Messages that arrived, or whose echo arrived.
    pub received: u64,
    /// Messages that are missing on the way forward.
    pub lost_forward: u64,
    /// Messages that are missing on the way back.
    pub lost_return: u64,
    /// Messages that were still under way at the end.
    pub unfinished: u64,
    /// Messages that the transport refused. They are not among `sent`.
    pub refused: u64,
    /// Copies of a message after the first one.
    pub duplicates: u64,
    /// Lost messages that their sender gave up because they were too old.
    pub expired: u64,
    /// Lost messages that were never sent because their host had no network.
    pub no_network: u64,
    /// Lost messages that were never sent because the connection was not open.
    pub not_open: u64,
}

impl LossCounts {
    /// Counts the trips of a window.
    pub fn of(trips: &[Trip]) -> Self {
        let mut counts = Self::default();
        for trip in trips {
            counts.add(trip);
        }
        counts
    }

    /// Counts one more trip.
    #[inline]
    pub fn add(&mut self, trip: &Trip) {
        self.duplicates += u64::from(trip.copies.saturating_sub(1));
        let count = match trip.outcome {
            TripOutcome::Received(_) => &mut self.received,
            TripOutcome::MissingForward => &mut self.lost_forward,
            TripOutcome::MissingReturn => &mut self.lost_return,
            TripOutcome::Unfinished => &mut self.unfinished,
            TripOutcome::Refused => &mut self.refused,
        };
        *count += 1;
        if trip.is_missing() {
            match trip.loss {
                LossKind::Missing => {}
                LossKind::Expired => self.expired += 1,
                LossKind::NoNetwork => self.no_network += 1,
                LossKind::NotOpen => self.not_open += 1,
            }
        }
        self.sent += u64::from(trip.outcome != TripOutcome::Refused);
    }

    /// Returns what became of the messages that were due.
    pub fn ledger(&self) -> Ledger {
        let Self { sent, received, unfinished, refused, expired, no_network, not_open, .. } = *self;
        Ledger {
            due: sent + refused,
            delivered: received,
            expired,
            refused,
            no_network,
            not_open,
            missing: self.lost() - expired - no_network - not_open,
            unfinished,
        }
    }

    /// Returns how many messages are missing, on the way forward or back.
    pub fn lost(&self) -> u64 {
        self.lost_forward + self.lost_return
    }

    /// Returns lost / (sent - unfinished). Returns `None` if all messages are unfinished.
    pub fn loss_rate(&self) -> Option<f64> {
        rate(self.lost(), self.sent - self.unfinished)
    }
}

/// Returns `part / whole`. Returns `None` if `whole` is 0.
pub fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns the runs of consecutive lost messages.
pub fn runs(trips: &[Trip]) -> LossRuns {
    let mut counter = RunCounter::default();
    for trip in trips {
        counter.add(trip);
    }
    counter.finish()
}

/// Counts the runs of lost messages, trip by trip in the order of `seq`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCounter {
    runs: LossRuns,
    /// The length of the current run. 0 if the last message was not lost.
    current_length: usize,
    /// The runs of lost messages, and of those that arrived.
    lengths: Runs,
}

impl RunCounter {
    /// Adds the next trip.
    #[inline]
    pub fn add(&mut self, trip: &Trip) {
        match trip.outcome {
            TripOutcome::MissingForward | TripOutcome::MissingReturn => self.current_length += 1,
            TripOutcome::Received(_) if self.current_length == 0 => {}
            TripOutcome::Received(_) => self.end_run(),
            TripOutcome::Unfinished | TripOutcome::Refused => return,
        }
        self.lengths.add(trip.is_missing());
    }

    /// Returns how many independent messages tell as much about the share of lost ones. Returns `None` if no
    /// message was lost and none arrived.
    pub fn independent(&self) -> Option<f64> {
        self.lengths.independent()
    }

    /// Returns the runs of all trips.
    pub fn finish(mut self) -> LossRuns {
        self.end_run();
        let histogram = &self.runs.histogram;
        let lost: u64 = histogram.iter().zip(1..).map(|(runs, length)| runs * length).sum();
        self.runs.mean = rate(lost, histogram.iter().sum());
        self.runs
    }

    /// Counts the current run, if there is one, and ends it.
    #[cold]
    fn end_run(&mut self) {
        let length = core::mem::take(&mut self.current_length);
        // The histogram begins with runs of length 1.
        let Some(index) = length.checked_sub(1) else { return };
        let runs = &mut self.runs;
        if runs.histogram.len() <= index {
            runs.histogram.resize(index + 1, 0);
        }
        runs.histogram[index] += 1;
        runs.max = runs.max.max(length as u64);
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use talkpath_units::Instant;

    use super::*;
    use crate::testing::flow;
    use crate::{Fate, FlowRecord};

    const ALWAYS: Range<Instant> = Instant::ZERO..Instant::MAX;

    fn counts(flow: &FlowRecord) -> LossCounts {
        LossCounts::of(&flow.trips(&ALWAYS))
    }

    /// A flow whose messages arrive (`.`), are missing (`x`), refused (`r`), unfinished (`u`), expired
    /// (`e`), without a network (`n`) or without an open connection (`o`).
    fn pattern(story: &str) -> FlowRecord {
        let delays: Vec<_> = story.chars().map(|letter| (letter == '.').then_some(30)).collect();
        let mut flow = flow(&delays);
        for (row, letter) in flow.forward.messages.iter_mut().zip(story.chars()) {
            match letter {
                'r' => row.fate = Fate::Refused,
                'u' => row.fate = Fate::Unfinished,
                'e' => row.fate = Fate::Expired,
                'n' => row.fate = Fate::NoNetwork,
                'o' => row.fate = Fate::NotOpen,
                _ => {}
            }
        }
        flow
    }

    #[test]
    fn refused_messages_are_not_sent_and_unfinished_ones_are_not_judged() {
        let counts = counts(&pattern("..x.ru."));
        assert_eq!((counts.sent, counts.received, counts.lost()), (6, 4, 1));
        assert_eq!((counts.unfinished, counts.refused), (1, 1));
        assert_eq!(counts.loss_rate(), Some(0.2));
    }

    #[test]
    fn what_never_left_for_want_of_a_network_or_a_connection_is_lost_and_each_message_is_in_one_class() {
        let flow = pattern("ooo..xnnre.u");
        let counts = counts(&flow);
        assert_eq!((counts.lost(), counts.loss_rate()), (7, Some(0.7)));
        let ledger = Ledger {
            due: 12,
            delivered: 3,
            expired: 1,
            refused: 1,
            no_network: 2,
            not_open: 3,
            missing: 1,
            unfinished: 1,
        };
        assert_eq!(counts.ledger(), ledger);
        assert_eq!(runs(&flow.trips(&ALWAYS)).histogram, [0, 0, 1, 1], "ooo, and xnn(r)e");
    }

    #[test]
    fn nothing_sent_has_no_loss_rate() {
        assert_eq!(counts(&pattern("rru")).loss_rate(), None);
    }

    #[test]
    fn a_duplicate_never_hides_a_loss() {
        let mut flow = pattern("x.");
        flow.forward.messages[1].copies = 3;
        flow.forward.arrivals = vec![1, 1, 1];
        let counts = counts(&flow);
        assert_eq!((counts.lost(), counts.received, counts.duplicates), (1, 1, 2));
    }

    #[test]
    fn runs_are_counted_by_length() {
        // RFC 3357 §5: periods of 1, 2 and 3.
        let runs = runs(&pattern(".x.xx..xxx").trips(&ALWAYS));
        assert_eq!(runs, LossRuns { max: 3, mean: Some(2.0), histogram: vec![1, 1, 1] });
    }

    #[test]
    fn refused_and_unfinished_messages_neither_lengthen_nor_end_a_run() {
        let runs = runs(&pattern("xrx.xu").trips(&ALWAYS));
        assert_eq!(runs.histogram, [1, 1]);
    }

    #[test]
    fn without_losses_there_is_no_run_and_no_mean() {
        assert_eq!(runs(&pattern("...").trips(&ALWAYS)), LossRuns::default());
    }
}
