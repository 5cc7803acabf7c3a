//! Virtual time as the engine writes it.
//!
//! quinn-proto counts time in `std::time::Instant`, which has no constructor but the system's clock. One such
//! reading is the origin, and nothing follows from its value: the engine adds and compares, and every value
//! that it gets is the origin and a virtual time.

use std::sync::OnceLock;
use std::time::Instant as EngineInstant;

use talkpath_units::{Duration, Instant};

/// The engine's time at `now`.
pub(crate) fn engine_time(now: Instant) -> EngineInstant {
    origin() + std::time::Duration::from_nanos(now.as_nanos())
}

/// The virtual time at the engine's `at`.
pub(crate) fn virtual_time(at: EngineInstant) -> Instant {
    let nanos = at.saturating_duration_since(origin()).as_nanos();
    Instant::ZERO.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[expect(clippy::disallowed_methods, reason = "the one way to an origin; its value does not matter")]
fn origin() -> EngineInstant {
    static ORIGIN: OnceLock<EngineInstant> = OnceLock::new();
    *ORIGIN.get_or_init(|| EngineInstant::now() + BEFORE)
}

/// What the engine may subtract from a time of a host that has just booted: a year, chosen.
const BEFORE: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);
