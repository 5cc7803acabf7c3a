//! What to run.
//!
//! ```text
//! text ─► document (spans) ─► sweep cells ─► file types (checked, defaults filled)
//!      ─► Scenario (copies, links, routes expanded)
//! ```
//!
//! No file is read here: text comes in as a value, that of the files which it names by a [`Files`], and
//! [`load`] reports every mistake in it at once.

pub mod campaign;
mod check;
mod compare;
mod cost;
mod demand;
mod destination;
mod diagnostic;
mod edit;
mod emit;
mod files;
mod fill;
mod fragments;
mod host_port;
mod kernel;
mod keys;
pub mod model;
mod not_yet;
mod plan;
mod preset;
mod quantity;
mod queues;
mod read;
mod resolve;
mod schema;
mod shares;
mod sweep;
mod threshold;
mod topology;
mod transports;
mod tree;
mod understood;
mod workloads;

pub use compare::{Compared, Comparison, with_fq_codel, with_repetitions};
pub use cost::NANOS_OF_A_HOP;
pub use demand::{Threshold, ThresholdOf};
pub use diagnostic::{Diagnostic, Diagnostics, Source};
pub use files::{Files, Located, NoFiles, Trace};
pub use host_port::host_and_port;
pub use keys::{campaign_key_tables, key_tables, transport_names};
pub use model::{
    Codec, Concealment, DSCP_NAMES, Demand, Direction, Dscp, Due, EchoWrite, FarClock, Flow, IpVersion,
    Judging, KernelProfile, LARGEST_BULK_MESSAGE, LinkIndex, MIN_BULK_ROOM, NamedLink, Playout, Receiver,
    Scenario, SecondPath, USUAL_MTU, WorkloadConfig,
};
pub use not_yet::not_yet_help;
pub use plan::{Cell, LARGEST_FILE, Options, Plan, Setting, fitting_name, load, load_with_files};
pub use preset::{Preset, preset, presets};
pub use quantity::{SiAmount, as_percent, parse_duration, parse_rate, percentage, si_amount};
pub use read::nearest;
pub use schema::schema;
pub use threshold::{Bound, Operator, split_threshold};
pub use topology::{Node, Topology};
pub use understood::Understood;
