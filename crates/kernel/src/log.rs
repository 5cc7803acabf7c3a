//! The log of one end of a flow, and how it crosses the control connection.
//!
//! ```text
//!  server:  EndLog ─► to_chunk ─► pieces of 1,000 rows ═╗  control connection
//!  client:  EndLog ◄─ from_chunk ◄─ extend ◄════════════╝
//! ```
//!
//! Each end logs what it sends and receives. After the run, the client fetches the server's log and joins it
//! with its own (`join.rs`). The times in a log are ns since the run's beginning, by the clock of the end
//! that wrote it. [`EndLog::from_chunk`] converts them to the client's clock.
//!
//! - *tap*: the rows of one direction of a flow, one for each message.
//! - *sample*: the state of a connection at one moment.
//! - *totals*: the counts of the whole run.
//! - *chunk*: a log, or a piece of a log, in its form on the control connection (`log/chunk.rs`).
//! - *row budget*: a limit on the rows that all logs of a session keep, because each row takes memory.

mod chunk;
mod samples;
mod totals;
mod tuple_form;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talkpath_flow::{FlowTaps, Side};
use talkpath_measure::ReadMessages;
use talkpath_units::{Duration, Instant};
use talkpath_wire::Observation;

pub use self::chunk::Chunk;
#[cfg(test)]
pub(crate) use self::chunk::{DropPlace, HostDrop, SentRow};
pub(crate) use self::samples::Sample;
pub use self::samples::{RecoverySample, StateSample};
use self::samples::{convert_times, push_if_changed};
pub use self::totals::{EndTotals, Headers, HeldTotals, Multipath};
use crate::spec::FlowSpec;
use crate::wire::FRAMED;

/// The shortest interval between two samples of a connection.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// The largest number of samples in a run. We chose 3,000, because a chart can still show so many.
const MAX_SAMPLES: u64 = 3000;

/// Returns the interval at which the connections of a run of this `duration` are sampled.
pub fn sample_interval(duration: Duration) -> Duration {
    MIN_SAMPLE_INTERVAL.max(duration / MAX_SAMPLES)
}

/// The log of one end of a flow.
#[derive(Clone, Debug)]
pub struct EndLog {
    side: Side,
    /// The messages and the echoes, with the fate of each as far as this end knows it.
    pub taps: FlowTaps,
    /// The state of the connection over time.
    pub samples: Vec<StateSample>,
    /// The state of QUIC's loss recovery over time. Empty for other transports.
    pub recovery: Vec<RecoverySample>,
    /// The counts of the whole run.
    pub totals: EndTotals,
}

impl EndLog {
    /// Makes an empty log of one end of a flow, the end on `side`. `messages` is the way in which this end
    /// finds the messages in the data that it reads.
    pub fn new(side: Side, is_echo: bool, messages: ReadMessages) -> Self {
        let taps = FlowTaps::of_one_end(side, is_echo, messages);
        Self { side, taps, samples: Vec::new(), recovery: Vec::new(), totals: EndTotals::default() }
    }

    /// Makes the log of the end on `side` of the flow `spec` from the chunk that the far end has sent.
    /// `to_our_clock` converts a time of the far end's clock. Messages whose number is not below
    /// `message_bound` are left out, because the far end may send any number.
    pub fn from_chunk(
        chunk: &Chunk,
        side: Side,
        spec: &FlowSpec,
        message_bound: u64,
        to_our_clock: &dyn Fn(u64) -> Instant,
    ) -> Self {
        // If a stream has messages of one size, the log needs no rows for them: the join computes where each
        // message ends.
        let messages = if spec.is_framed() { FRAMED } else { ReadMessages::Whole };
        let mut log = Self::new(side, spec.has_echo(), messages);
        log.totals = chunk.totals.clone().unwrap_or_default();
        log.totals.failed_ns = log.totals.failed_ns.map(|failed_ns| to_our_clock(failed_ns).as_nanos());
        log.samples = convert_times(&chunk.samples, to_our_clock);
        log.recovery = convert_times(&chunk.recovery, to_our_clock);
        let keeps_messages = spec.features().keeps_messages;
        if let Some(tap) = log.taps.written_by(side) {
            chunk.fill_sent(tap, keeps_messages, message_bound, to_our_clock);
        }
        if let Some(tap) = log.taps.read_by(side) {
            chunk.fill_received(tap, spec, to_our_clock);
        }
        log
    }

    /// Returns the number of rows in the log: messages, samples and states of loss recovery. The row budget
    /// limits this number.
    pub fn held(&self) -> u64 {
        (self.taps.held() + self.samples.len() + self.recovery.len()) as u64
    }

    /// Adds a sample of the connection, unless its state is the same as in the last sample.
    pub(crate) fn on_observed(&mut self, observation: &Observation, now: Instant) {
        push_if_changed(&mut self.samples, StateSample::new(observation, now));
        if let Some(recovery) = &observation.loss_recovery {
            push_if_changed(&mut self.recovery, RecoverySample::new(recovery, now));
        }
    }

    /// Cuts the log into chunks for the control connection. There is at least one chunk.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + use<> {
        self.to_chunk().into_pieces()
    }

    /// Converts the whole log to a chunk.
    fn to_chunk(&self) -> Chunk {
        let (sent, received) = match self.side {
            Side::Near => (Some(&self.taps.forward), self.taps.echo.as_deref()),
            Side::Far => (self.taps.echo.as_deref(), Some(&self.taps.forward)),
        };
        let mut chunk = Chunk {
            samples: self.samples.clone(),
            recovery: self.recovery.clone(),
            totals: Some(self.totals.clone()),
            ..Chunk::default()
        };
        if let Some(tap) = sent {
            chunk.add_sent(tap);
        }
        if let Some(tap) = received {
            chunk.add_received(tap);
        }
        chunk
    }
}

/// The number of rows that a session may still keep. All flows of the session share it.
#[derive(Debug)]
pub struct RowBudget {
    left: AtomicU64,
}

impl RowBudget {
    /// Makes a budget of `rows`.
    pub fn new(rows: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(rows) })
    }

    /// Returns the number of rows that are left.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Returns true if no row is left. The run then ends, because its logs would be incomplete.
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    /// Takes `rows` from the budget. If fewer rows are left, it takes all of them and returns false.
    pub fn take(&self, rows: u64) -> bool {
        let subtract = |left: u64| left.checked_sub(rows);
        let has_enough = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract).is_ok();
        if !has_enough {
            self.left.store(0, Ordering::Relaxed);
        }
        has_enough
    }
}

#[cfg(test)]
mod tests {
    use talkpath_measure::{DropCause, LegTap, MessageRecord};
    use talkpath_model::WorkloadConfig;
    use talkpath_units::Bytes;
    use talkpath_wire::LossRecovery;

    use super::*;
    use crate::end::fixtures::{UDP, echoing};

    fn written(tap: &LegTap) -> Vec<MessageRecord> {
        tap.rows().copied().collect()
    }

    #[test]
    fn a_log_comes_back_whole_from_its_chunks() {
        let mut log = EndLog::new(Side::Near, true, ReadMessages::Whole);
        let tap = &mut log.taps.forward;
        for seq in 0..2500 {
            tap.on_due(seq, Bytes::new(160), Instant::from_millis(seq));
            match seq % 6 {
                0 | 2 | 4 => tap.on_sent(seq, Instant::from_millis(seq)),
                1 => tap.on_refused(seq),
                3 => tap.on_no_network(seq),
                _ => tap.on_not_open(seq),
            }
        }
        tap.on_wire(4, Instant::from_millis(8));
        tap.on_wire(4, Instant::from_millis(9));
        tap.on_dropped(6, DropCause::SendQueue);
        tap.on_unsent(8);
        tap.on_expired(10);
        tap.on_no_network(14);
        tap.on_dropped(12, DropCause::Stopped);
        // It was never taken.
        tap.on_due(2500, Bytes::new(160), Instant::from_millis(2500));
        tap.on_expired(2500);
        let echo = log.taps.echo.as_mut().unwrap();
        echo.on_received(2, Instant::from_millis(9));
        echo.on_dropped(4, DropCause::SocketBuffer);
        log.totals.blocked_ns = 5;
        let recovery = |at_ns| RecoverySample {
            at_ns,
            pto_us: Some(75_000),
            bytes_in_flight: 1200 * at_ns,
            lost_packets: at_ns,
        };
        log.recovery = (0..1500).map(recovery).collect();
        let state = Observation { cwnd: Some(10.0), ssthresh: Some(f64::INFINITY), ..Observation::default() };
        log.samples = (0..1500).map(|ns| StateSample::new(&state, Instant::from_nanos(ns))).collect();
        let mut copy = Chunk::default();
        for chunk in log.chunks() {
            let text = serde_json::to_string(&chunk).unwrap();
            assert!(text.len() < 500_000);
            copy.extend(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(copy, log.to_chunk());
        let ours = |at: u64| Instant::from_nanos(at);
        let spec = echoing(UDP, WorkloadConfig::G711);
        let copy = EndLog::from_chunk(&copy, Side::Near, &spec, 2501, &ours);
        assert_eq!(written(&copy.taps.forward), written(&log.taps.forward));
        let arrivals = |log: &EndLog| log.taps.echo.as_ref().unwrap().arrival_times().collect::<Vec<_>>();
        assert_eq!(arrivals(&copy), arrivals(&log));
        assert_eq!(copy.to_chunk(), log.to_chunk());
    }

    #[test]
    fn a_spent_budget_says_so() {
        let budget = RowBudget::new(2);
        assert!(budget.take(1) && !budget.is_spent());
        assert!(budget.take(1) && budget.is_spent());
        assert!(!budget.take(1));
    }

    #[test]
    fn an_unchanged_sample_is_not_kept() {
        let mut log = EndLog::new(Side::Near, false, ReadMessages::Whole);
        let mut seen = Observation { cwnd: Some(10.0), ..Observation::default() };
        let mut note = |seen: &Observation, ms| log.on_observed(seen, Instant::from_millis(ms));
        note(&seen, 1);
        note(&seen, 2);
        seen.cwnd = Some(11.0);
        note(&seen, 3);
        // QUIC's alone has a loss recovery.
        let mut recovery = LossRecovery { bytes_in_flight: Bytes::new(1200), ..LossRecovery::default() };
        note(&Observation { loss_recovery: Some(recovery), ..seen }, 4);
        note(&Observation { loss_recovery: Some(recovery), ..seen }, 5);
        recovery.pto = Some(Duration::from_millis(75));
        note(&Observation { loss_recovery: Some(recovery), ..seen }, 6);
        assert_eq!(log.samples.iter().map(|sample| sample.at_ns / 1_000_000).collect::<Vec<_>>(), [1, 3]);
        let recovery =
            log.recovery.iter().map(|sample| (sample.at_ns / 1_000_000, sample.pto_us)).collect::<Vec<_>>();
        assert_eq!(recovery, [(4, None), (6, Some(75_000))]);
    }
}
