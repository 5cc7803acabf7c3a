//! How long an echoing host held messages: from the kernel's receive stamp of a message to the moment when
//! the application offered its echo to the transport.
//!
//! ```text
//!  first host                                    echoing host
//!   due ── sent ══════ network ══════► kernel's stamp ─ read ─ echo offered ─ transport ═ network ═► received
//!                                      └────── turn-round ─────┘
//! ```
//!
//! It is no part of the round trip (`measure::metrics::trip`): a host that is late is not the network. STAMP
//! and TWAMP take it out by the reflector's two stamps, too (RFC 8762 §4.3, RFC 5357 §4.2.1). What comes
//! after the offer stays in: it is the transport's (room in its buffer, Nagle, congestion control) or the
//! queue's before the device, which is the path's first.
//!
//! Two figures of a stream differ. A kernel that merged segments has one stamp for all, that of the last. The
//! round trip loses what is certain: the time since that stamp. Here the time counts from when the host may
//! have held the first segment, because this figure decides whether the run is valid.
//!
//! Left out: when the echo left the far host's device.

use serde::{Deserialize, Serialize};
use talkpath_measure::TurnRoundRecord;
use talkpath_units::{Duration, Histogram, Instant, SignedDuration};

/// The turn-rounds of one end of a flow, while it runs.
#[derive(Debug, Default)]
pub struct TurnRounds {
    all: Histogram,
    too_long: u64,
}

/// What they came to, ns. Percentiles are off by at most 0.1 % or 0.5 us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRound {
    /// Echoes.
    pub count: u64,
    /// Half were held for longer.
    pub p50_ns: u64,
    /// One in ten was.
    pub p90_ns: u64,
    /// One in a hundred was.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How many were held for longer than [`HELD_TOO_LONG`]. A far host of an earlier version does not say.
    #[serde(default)]
    pub too_long: u64,
}

/// An echo that was held for longer than this is late by its host's doing: the limit of a late sender
/// (docs/models/live.md).
pub const HELD_TOO_LONG: Duration = Duration::from_millis(5);

impl TurnRounds {
    /// The echo of a message that came at `arrived` was offered at `offered`.
    pub fn add(&mut self, arrived: Instant, offered: Instant) {
        let held = offered.since(arrived);
        self.all.record_unsigned(held);
        self.too_long += u64::from(held > HELD_TOO_LONG);
    }

    /// What they came to; `None` where nothing was echoed.
    pub fn figures(&self) -> Option<TurnRound> {
        // Never negative.
        let ns = |held: SignedDuration| held.abs().as_nanos();
        let [p50_ns, p90_ns, p99_ns, max_ns] = self.all.quantiles([0.5, 0.9, 0.99, 1.0])?.map(ns);
        let (count, too_long) = (self.all.count(), self.too_long);
        Some(TurnRound { count, p50_ns, p90_ns, p99_ns, max_ns, too_long })
    }
}

impl TurnRound {
    /// The same for the run's record, of the flow named `flow`.
    pub fn record(&self, flow: &str) -> TurnRoundRecord {
        let Self { count, p50_ns, p90_ns, p99_ns, max_ns, too_long } = *self;
        let [p50, p90, p99, max] = [p50_ns, p90_ns, p99_ns, max_ns].map(Duration::from_nanos);
        TurnRoundRecord { flow: flow.to_owned(), count, p50, p90, p99, max, too_long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_all_echoes() {
        let mut turns = TurnRounds::default();
        for ms in 1..=100 {
            let arrived = Instant::from_millis(20 * ms);
            turns.add(arrived, arrived.saturating_add(Duration::from_millis(ms)));
        }
        let turns = turns.figures().unwrap().record("call");
        assert_eq!((turns.count, turns.max), (100, Duration::from_millis(100)));
        assert_eq!(turns.too_long, 95, "5 ms is not too long");
        for (found, ms) in [(turns.p50, 50), (turns.p90, 90), (turns.p99, 99)] {
            let exact = Duration::from_millis(ms);
            assert!(exact <= found && found <= exact.saturating_add(exact / 1000), "{found} for {exact}");
        }
        assert_eq!(TurnRounds::default().figures(), None);
    }
}
