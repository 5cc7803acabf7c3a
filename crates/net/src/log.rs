//! What one end of a flow saw, and how the far end's log comes over the control connection: in chunks of rows, times in
//! ns since the run's beginning on the clock of the end that wrote them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use talkpath_units::Instant;

use crate::file::FileOutcome;

/// What one end of a flow saw.
#[derive(Debug)]
pub(crate) struct FlowLog {
    /// Messages that this end wanted to send: the workload's, or the echoes.
    pub(crate) sent: Vec<SentRow>,
    /// Datagrams that arrived, duplicates included, in order of arrival: `seq` and when.
    pub(crate) arrivals: Vec<(u64, u64)>,
    /// Stream bytes that were read: when and how many.
    pub(crate) reads: Vec<(u64, u64)>,
    /// Messages of this end that left the host, where that is known: `seq` and when.
    pub(crate) wires: Vec<(u64, u64)>,
    /// Messages that this end itself dropped.
    pub(crate) drops: Vec<HostDrop>,
    /// The connection's state over time.
    pub(crate) samples: Vec<Sample>,
    /// What was counted.
    pub(crate) totals: Totals,
    budget: Arc<RowBudget>,
}

/// One message that this end wanted to send: seq, size, due, when the transport took it, whether it would not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentRow(
    pub(crate) u64,
    pub(crate) u32,
    pub(crate) u64,
    pub(crate) Option<u64>,
    pub(crate) bool,
);

/// A message that an end dropped: seq, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostDrop(pub(crate) u64, pub(crate) DropPlace);

/// Where an end dropped a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DropPlace {
    /// Its own queue, after it had taken the message.
    SendQueue,
    /// The kernel would not take the packet.
    Kernel,
    /// What the application has not read had no room for it.
    Inbox,
}

/// A connection's state at one moment: time, cwnd, ssthresh (packets; `u32::MAX` while unlimited), srtt, rto (us), bytes
/// in the send queue, the far end's window (whole packets), the rate that packets are paced at (bit/s); `u32::MAX`, for the
/// rate `u64::MAX`, where unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample(
    pub(crate) u64,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u64,
    pub(crate) u32,
    pub(crate) u64,
);

/// What one end of a flow counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Packets with application data.
    pub(crate) data_packets: Option<u64>,
    /// Of these, retransmissions.
    pub(crate) retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub(crate) timeouts: Option<u64>,
    /// ns between warm-up and duration during which a message waited for room.
    pub(crate) blocked_ns: u64,
    /// Why messages were refused: the system's words, and how many each.
    pub(crate) refusals: std::collections::BTreeMap<String, u64>,
    /// Why packets of our own transports did not leave: the system's words, and how many each.
    pub(crate) unsent: std::collections::BTreeMap<String, u64>,
    /// TCP_CONGESTION as the kernel gives it.
    pub(crate) cc: Option<String>,
    /// What went wrong with this flow.
    pub(crate) failure: Option<String>,
    /// What came of the file that this end received.
    pub(crate) file: Option<FileOutcome>,
}

/// Part of a flow's log; the totals come with the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) sent: Vec<SentRow>,
    pub(crate) arrivals: Vec<(u64, u64)>,
    pub(crate) reads: Vec<(u64, u64)>,
    pub(crate) wires: Vec<(u64, u64)>,
    pub(crate) drops: Vec<HostDrop>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) totals: Option<Totals>,
}

/// How many more rows a session may keep; shared by its flows.
#[derive(Debug)]
pub(crate) struct RowBudget {
    left: AtomicU64,
}

impl RowBudget {
    /// Room for `rows`.
    pub(crate) fn new(rows: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(rows) })
    }

    /// Whether a row was asked for when none was left: the log is incomplete and the run cannot go on.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn take(&self, rows: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(rows)).is_ok()
            || {
                self.left.store(0, Ordering::Relaxed);
                false
            }
    }
}

impl FlowLog {
    /// An empty log.
    pub(crate) fn new(budget: Arc<RowBudget>) -> Self {
        Self {
            sent: Vec::new(),
            arrivals: Vec::new(),
            reads: Vec::new(),
            wires: Vec::new(),
            drops: Vec::new(),
            samples: Vec::new(),
            totals: Totals::default(),
            budget,
        }
    }

    /// A message is to be sent; returns its row.
    pub(crate) fn on_due(&mut self, seq: u64, size: u64, due: Instant) -> Option<usize> {
        if !self.budget.take(1) {
            return None;
        }
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.sent.push(SentRow(seq, size, due.as_nanos(), None, false));
        Some(self.sent.len() - 1)
    }

    /// The transport took the message of `row`.
    pub(crate) fn on_sent(&mut self, row: usize, now: Instant) {
        if let Some(row) = self.sent.get_mut(row) {
            row.3 = Some(now.as_nanos());
        }
    }

    /// The transport would not take the message of `row`, and said `why`.
    pub(crate) fn on_refused(&mut self, row: usize, why: &impl ToString) {
        if let Some(row) = self.sent.get_mut(row) {
            row.4 = true;
            *self.totals.refusals.entry(why.to_string()).or_default() += 1;
        }
    }

    /// The kernel would not take a packet, and said `why`.
    pub(crate) fn on_unsent(&mut self, why: &std::io::Error) {
        *self.totals.unsent.entry(why.to_string()).or_default() += 1;
    }

    /// A datagram arrived.
    pub(crate) fn on_arrival(&mut self, seq: u64, now: Instant) -> bool {
        let is_kept = self.budget.take(1);
        if is_kept {
            self.arrivals.push((seq, now.as_nanos()));
        }
        is_kept
    }

    /// Stream bytes were read.
    pub(crate) fn on_read(&mut self, bytes: u64, now: Instant) {
        if self.budget.take(1) {
            self.reads.push((now.as_nanos(), bytes));
        }
    }

    /// Datagram `seq` of this end left the host at `at`.
    pub(crate) fn on_wire(&mut self, seq: u64, at: Instant) {
        if self.budget.take(1) {
            self.wires.push((seq, at.as_nanos()));
        }
    }

    /// This end dropped message `seq`.
    pub(crate) fn on_drop(&mut self, seq: u64, place: DropPlace) {
        if self.budget.take(1) {
            self.drops.push(HostDrop(seq, place));
        }
    }

    /// The connection's state was looked at; kept where it changed.
    pub(crate) fn on_sample(&mut self, sample: Sample) {
        let is_same = self.samples.last().is_some_and(|last| Sample { 0: sample.0, ..*last } == sample);
        if !is_same && self.budget.take(1) {
            self.samples.push(sample);
        }
    }

    /// The log in pieces of at most [`CHUNK_ROWS`] rows of a kind.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        let lengths = [self.sent.len(), self.arrivals.len(), self.reads.len(), self.wires.len()];
        let longest = lengths.into_iter().chain([self.drops.len(), self.samples.len()]).max().unwrap_or(0);
        let count = longest.div_ceil(CHUNK_ROWS).max(1);
        (0..count).map(move |index| Chunk {
            sent: piece(&self.sent, index),
            arrivals: piece(&self.arrivals, index),
            reads: piece(&self.reads, index),
            wires: piece(&self.wires, index),
            drops: piece(&self.drops, index),
            samples: piece(&self.samples, index),
            totals: (index + 1 == count).then(|| self.totals.clone()),
        })
    }

    /// Appends a chunk.
    pub(crate) fn extend(&mut self, chunk: Chunk) -> bool {
        let events = chunk.arrivals.len() + chunk.reads.len() + chunk.wires.len() + chunk.drops.len();
        if !self.budget.take((chunk.sent.len() + events + chunk.samples.len()) as u64) {
            return false;
        }
        self.sent.extend(chunk.sent);
        self.arrivals.extend(chunk.arrivals);
        self.reads.extend(chunk.reads);
        self.wires.extend(chunk.wires);
        self.drops.extend(chunk.drops);
        self.samples.extend(chunk.samples);
        if let Some(totals) = chunk.totals {
            self.totals = totals;
        }
        true
    }
}

fn piece<T: Copy>(rows: &[T], index: usize) -> Vec<T> {
    rows.chunks(CHUNK_ROWS).nth(index).unwrap_or_default().to_vec()
}

/// Rows of a kind in one chunk: under half a megabyte of JSON when every number is as long as it gets.
const CHUNK_ROWS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_comes_back_whole_from_its_chunks() {
        let mut log = FlowLog::new(RowBudget::new(1 << 20));
        for seq in 0..2500 {
            let row = log.on_due(seq, 160, Instant::from_millis(seq)).unwrap();
            if seq % 2 == 0 {
                log.on_sent(row, Instant::from_millis(seq));
            } else {
                log.on_refused(row, &std::io::Error::from(std::io::ErrorKind::WouldBlock));
            }
        }
        log.on_arrival(3, Instant::from_millis(9));
        log.on_read(77, Instant::from_millis(9));
        log.on_wire(3, Instant::from_millis(8));
        log.on_drop(5, DropPlace::SendQueue);
        log.totals.blocked_ns = 5;
        let mut copy = FlowLog::new(RowBudget::new(1 << 20));
        for chunk in log.chunks() {
            let text = serde_json::to_string(&chunk).unwrap();
            assert!(text.len() < 500_000);
            assert!(copy.extend(serde_json::from_str(&text).unwrap()));
        }
        assert_eq!((&copy.sent, &copy.arrivals, &copy.reads), (&log.sent, &log.arrivals, &log.reads));
        assert_eq!((&copy.wires, &copy.drops), (&log.wires, &log.drops));
        assert_eq!(copy.totals, log.totals);
    }

    #[test]
    fn a_spent_budget_keeps_no_more_rows_and_says_so() {
        let budget = RowBudget::new(2);
        let mut log = FlowLog::new(Arc::clone(&budget));
        assert!(log.on_arrival(0, Instant::ZERO) && !budget.is_spent());
        assert!(log.on_arrival(1, Instant::ZERO));
        assert!(!log.on_arrival(2, Instant::ZERO));
        assert!(budget.is_spent());
        assert_eq!(log.arrivals.len(), 2);
    }

    #[test]
    fn an_unchanged_sample_is_not_kept() {
        let mut log = FlowLog::new(RowBudget::new(10));
        log.on_sample(Sample(1, 10, 5, 5, 5, 0, 9, 7));
        log.on_sample(Sample(2, 10, 5, 5, 5, 0, 9, 7));
        log.on_sample(Sample(3, 11, 5, 5, 5, 0, 9, 7));
        assert_eq!(log.samples.len(), 2);
    }
}
