//! Makes the emulator's decisions again from its log, and compares them.

use talkpath_arena::links::second_paths;
use talkpath_model::Scenario;
use talkpath_path::FragmentRange;
use talkpath_units::{Instant, Seed, counted};

use crate::arrival_log::{LogError, LogHeader, LogReader, Record};
use crate::decision::{DecidingNetwork, Decision, LANES, PacketOutcome};

/// The counts of a replay that found no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// The number of packets that entered the path.
    pub arrivals: u64,
    /// The number of packets and pieces of packets that departed.
    pub departed: u64,
    /// The number of packets and pieces that a queue dropped.
    pub dropped: u64,
    /// The number of copies that a wire made.
    pub repeated: u64,
    /// The number of packets and pieces that a wire lost.
    pub lost: u64,
    /// True if the log was full before the run's end. Later decisions could not be compared.
    pub is_truncated: bool,
}

/// The reason why a log does not prove its run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log belongs to another scenario.
    #[error("the log has {} and {}, the scenario has not", counted(*.0, "flow"), counted(*.1, "link"))]
    OtherScenario(u32, u32),
    /// The path has decided otherwise in the replay.
    #[error("decision {number} differs: the emulator made {logged}, the replay makes {replayed}")]
    Differs {
        /// The number of the decision, counted from 0.
        number: u64,
        /// The decision in the log.
        logged: String,
        /// The decision of the path model in the replay.
        replayed: String,
    },
}

/// Reads the header of the log `bytes`, which names the run.
///
/// # Errors
/// Returns [`LogError`] if the bytes are no log or of another version.
pub fn log_header(bytes: &[u8]) -> Result<LogHeader, LogError> {
    LogReader::open(bytes).map(|(header, _)| header)
}

/// Feeds the arrivals of the log `bytes` to the path of `scenario`, the cell that the log's header names, and
/// compares every decision: its packet, outcome, time, link and piece.
///
/// # Errors
/// Returns [`ReplayError`] at the first difference, or if the log cannot be read.
pub fn replay(bytes: &[u8], scenario: &Scenario) -> Result<ReplayReport, ReplayError> {
    let probed = talkpath_arena::far_clock::with_probes(scenario);
    let scenario = probed.as_ref().unwrap_or(scenario);
    let (header, mut reader) = LogReader::open(bytes)?;
    let counts = (scenario.flows.len(), scenario.links.len());
    if counts != (header.flows as usize, header.links as usize) {
        return Err(ReplayError::OtherScenario(header.flows, header.links));
    }
    let lanes = if scenario.program.is_some() { LANES as usize } else { 0 };
    let paths = counts.0 + second_paths(scenario).iter().flatten().count() + lanes;
    let mut replay = Replay {
        network: DecidingNetwork::new(scenario, Seed::new(header.seed), None),
        decisions: Vec::new(),
        arrived: Vec::new(),
        logged: Vec::new(),
        compared: 0,
        report: ReplayReport::default(),
    };
    loop {
        match reader.next()? {
            Record::Arrival { arrival, at } => {
                if arrival.flow as usize >= paths {
                    return Err(ReplayError::OtherScenario(header.flows, header.links));
                }
                replay.network.advance(at, &mut replay.decisions);
                replay.compare(LogPart::Whole)?;
                replay.arrived.push(arrival.part);
                replay.report.arrivals += 1;
                replay.network.handle_arrival(arrival, 0, at, &mut replay.decisions);
            }
            Record::Decision { number, at, outcome, part } => {
                replay.logged.push(LoggedDecision { number, at, outcome, part });
            }
            Record::End { at, is_truncated } => {
                replay.network.advance(at, &mut replay.decisions);
                replay.compare(if is_truncated { LogPart::Truncated } else { LogPart::Whole })?;
                replay.report.is_truncated = is_truncated;
                return Ok(replay.report);
            }
        }
    }
}

/// A decision in the form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoggedDecision {
    /// The number of the packet's arrival.
    number: u64,
    at: Instant,
    outcome: PacketOutcome,
    /// The piece of the packet that the decision is about. `None` if it is about the packet as it arrived.
    part: Option<FragmentRange>,
}

/// A replay of a log.
struct Replay {
    network: DecidingNetwork,
    /// The decisions of the network since the last arrival.
    decisions: Vec<Decision>,
    /// The part of its datagram that each packet had when it arrived.
    arrived: Vec<FragmentRange>,
    /// The decisions of the log since the last arrival.
    logged: Vec<LoggedDecision>,
    /// The number of decisions that were compared.
    compared: u64,
    report: ReplayReport,
}

/// How much of its last arrival a log has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogPart {
    Whole,
    /// The log was full, so it may lack the last decisions.
    Truncated,
}

impl Replay {
    /// Compares the decisions since the last arrival.
    ///
    /// # Errors
    /// Returns [`ReplayError::Differs`] at the first difference.
    fn compare(&mut self, log_part: LogPart) -> Result<(), ReplayError> {
        let decisions = core::mem::take(&mut self.decisions);
        let logged = core::mem::take(&mut self.logged);
        let count = match log_part {
            LogPart::Whole => decisions.len().max(logged.len()),
            LogPart::Truncated => logged.len(),
        };
        for index in 0..count {
            let replayed = decisions.get(index).map(|decision| self.as_logged(decision));
            let logged = logged.get(index).copied();
            if replayed != logged {
                return Err(ReplayError::Differs {
                    number: self.compared,
                    logged: describe(logged),
                    replayed: describe(replayed),
                });
            }
            self.compared += 1;
            match replayed.map(|decision| decision.outcome) {
                Some(PacketOutcome::Departs { .. }) => self.report.departed += 1,
                Some(PacketOutcome::Dropped { .. }) => self.report.dropped += 1,
                Some(PacketOutcome::Lost { .. }) => self.report.lost += 1,
                Some(PacketOutcome::Repeated { .. }) => self.report.repeated += 1,
                None => {}
            }
        }
        Ok(())
    }

    fn as_logged(&self, decision: &Decision) -> LoggedDecision {
        let &Decision { number, at, outcome, part, .. } = decision;
        let arrived = usize::try_from(number).ok().and_then(|number| self.arrived.get(number));
        LoggedDecision { number, at, outcome, part: Some(part).filter(|part| Some(part) != arrived) }
    }
}

fn describe(decision: Option<LoggedDecision>) -> String {
    match decision {
        Some(LoggedDecision { number, at, outcome, part }) => {
            format!("packet {number} {outcome:?} at {at}, {part:?}")
        }
        None => "none".to_owned(),
    }
}
