//! The metrics: pure functions from a flow's records to figures, one file a metric.
//!
//! Definitions, formulas, units and sources for a reader of the figures are in docs/reference/metrics.md.
//! Each file cites the document that it follows.

pub(crate) mod beyond_least;
pub(crate) mod call;
pub mod confidence;
pub mod delay;
pub mod delay_in_words;
pub mod delay_variation;
pub mod e_model;
pub mod fairness;
pub(crate) mod frames;
pub mod gaps;
pub mod goodput;
pub mod histogram;
pub mod in_time;
pub mod legs;
pub mod loss;
pub mod percentile;
pub mod playout;
pub mod reordering;
pub mod settling;
pub mod share;
pub(crate) mod state_age;
pub mod time_to_receive;
pub mod trip;
