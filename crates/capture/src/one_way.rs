//! The one-way delay of a stream, which a capture does not have.
//!
//! A capture shows when each packet passed, and by its timestamp how much later than the fastest packet it
//! was. How long the fastest packet was under way is not in it. The mouth-to-ear delay of a call needs that.

use serde::Serialize;
use talkpath_units::Duration;

use crate::rtcp::Reports;

/// The one-way delay of the fastest packet of a stream, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OneWay {
    pub(crate) delay: Duration,
    pub(crate) basis: OneWayBasis,
}

/// How a one-way delay is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OneWayBasis {
    /// The user says it (`--one-way`).
    Option,
    /// Half of the smallest round trip between sender and receiver, by the reports of RTCP.
    Rtcp,
    /// Nobody knows it.
    Assumed,
}

impl OneWay {
    /// Finds the one-way delay of the stream `source`. What the user says goes before RTCP's reports.
    pub(crate) fn of(source: u32, reports: &Reports, stated: Option<Duration>) -> Self {
        if let Some(delay) = stated {
            return Self { delay, basis: OneWayBasis::Option };
        }
        let round_trip = reports.round_trip_ns(source).and_then(|ns| u64::try_from(ns).ok());
        match round_trip.map(|ns| Duration::from_nanos(ns / 2)).filter(|delay| *delay <= MOST) {
            Some(delay) => Self { delay, basis: OneWayBasis::Rtcp },
            None => Self { delay: ASSUMED, basis: OneWayBasis::Assumed },
        }
    }

    /// Says where the delay comes from.
    pub(crate) fn sentence(self) -> String {
        let ms = self.delay.as_millis_f64();
        match self.basis {
            OneWayBasis::Option => format!("the fastest packet took {ms:.1} ms one way, by --one-way"),
            OneWayBasis::Rtcp => {
                format!("the fastest packet took {ms:.1} ms one way, half of RTCP's smallest round trip")
            }
            OneWayBasis::Assumed => format!("{ms:.1} ms one way are assumed for the fastest packet"),
        }
    }
}

/// The one-way delay that is assumed. We chose 50 ms: with the frame and a playout delay of 60 ms a call
/// stays below the 150 ms from mouth to ear that ITU-T G.114 calls good for most uses.
pub(crate) const ASSUMED: Duration = Duration::from_millis(50);
/// The largest one-way delay that reports may give. We chose 10 s because two reports that give more do not
/// belong together.
const MOST: Duration = Duration::from_secs(10);
