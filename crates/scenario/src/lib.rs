//! What to run.
//!
//! ```text
//! text ─► document (spans) ─► sweep cells ─► file types (checked, defaults filled) ─► Scenario (copies, links, routes expanded)
//! ```

pub mod model;
pub mod workload;

pub use model::{
    Codec, Direction, EchoWrite, Flow, LinkIndex, NamedLink, Receiver, Scenario, WorkloadConfig,
};
