//! One far host over both versions of IP: each run takes the version that its scenario names.

use talkpath_arena::{Arena, ArenaError, RunPlan};
use talkpath_measure::RunRecord;
use talkpath_model::{IpVersion, Scenario};

use super::{LiveArena, LiveOptions};

/// The live arena over both versions of IP. A run goes over the version that its scenario's `ip` names.
#[derive(Debug)]
pub struct EachVersion {
    v4: LiveArena,
    v6: LiveArena,
    /// The version of the last run.
    last: IpVersion,
}

impl EachVersion {
    /// Connects to `host` over IPv4 and over IPv6, as [`LiveArena::connect`] does over one of them.
    ///
    /// # Errors
    /// Returns the error of the first version over which no server accepts this client. Its text names the
    /// version.
    pub fn connect(host: &str, options: &LiveOptions) -> Result<Self, ArenaError> {
        let over = |version: IpVersion| {
            let options = LiveOptions { ip: Some(version), ..options.clone() };
            LiveArena::connect(host, options).map_err(|error| name_version(error, version))
        };
        Ok(Self { v4: over(IpVersion::V4)?, v6: over(IpVersion::V6)?, last: IpVersion::V4 })
    }

    const fn of_last(&mut self) -> &mut LiveArena {
        match self.last {
            IpVersion::V4 => &mut self.v4,
            IpVersion::V6 => &mut self.v6,
        }
    }
}

impl Arena for EachVersion {
    fn run(&mut self, scenario: &Scenario, plan: RunPlan<'_>) -> Result<RunRecord, ArenaError> {
        self.last = scenario.ip;
        self.of_last().run(scenario, plan)
    }

    fn take_start_ns(&mut self) -> Option<i64> {
        self.of_last().take_start_ns()
    }

    fn take_qlog(&mut self) -> Option<Vec<u8>> {
        self.of_last().take_qlog()
    }
}

/// Says in the text of `error` over which version of IP it happened, and how to measure without it.
fn name_version(error: ArenaError, version: IpVersion) -> ArenaError {
    let (over, other) = match version {
        IpVersion::V4 => ("IPv4", 6),
        IpVersion::V6 => ("IPv6", 4),
    };
    let say = |what: String| format!("over {over}: {what}; -{other} alone measures over the other version");
    match error {
        ArenaError::FarEnd { what, partial } => ArenaError::FarEnd { what: say(what), partial },
        other => other,
    }
}
