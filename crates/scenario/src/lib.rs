//! The language of scenario and campaign files. It makes a plan, or a campaign, of the text of a file.
//!
//! ```text
//! text ─► tree (with places) ─► passes over the file ─► cells of the sweep ─► passes over a cell ─► Scenario
//! ```
//!
//! - *plan*: the cells of a scenario file, and the number of repetitions of each.
//! - *cell*: one combination of the values in `[sweep]`.
//! - *tree*: the file as keys and values, each with its place in the text. A *node* is one value with its
//!   place.
//! - *key table*: the description of the keys of one table of the file (`keys`).
//! - *pass*: a step that makes a changed tree of a tree, for example one with the keys of the command line.
//! - *check*: the pass that finds wrong values and writes the default of every absent key.
//! - *resolve*: to make the model ([`Scenario`]) of a checked tree. The *resolved form* is the file with its
//!   defaults.
//! - *setting*: a key that the command line sets.
//! - *threshold*: a requirement on a figure of the run. Its *bound* is an operator and a value.
//!
//! Begin to read with `plan.rs`, then `pass/mod.rs`. The key `path.up.rate = "8 Mbps"` passes these files:
//!
//! ```text
//! plan ─► tree ─► pass/set ─► pass/values ─► pass/sweep ─► pass/check ─► read ─► quantity
//!      ─► resolve/mod ─► resolve/link ─► section ─► LinkConfig::rate
//! ```
//!
//! This crate reads no files. The text of a scenario is an argument, and the files that it names come from an
//! implementation of [`Files`]. [`load`] reports all mistakes at once.

mod bound;
pub mod campaign;
mod compare;
mod contents;
mod diagnostic;
mod elsewhere;
mod form;
mod fragments;
mod keys;
mod names;
mod not_yet;
mod options;
mod pass;
mod plan;
mod preset;
mod quantity;
mod queues;
mod read;
mod reading;
mod resolve;
mod resolved_form;
mod schema;
mod section;
mod spec;
mod store_command;
mod threshold;
mod timeline;
mod transports;
mod tree;
mod understood;
mod usual;
mod words;
mod workloads;

pub use bound::{Bound, Operator, split_threshold};
pub use compare::{
    ByOption, ComparedWorkload, Comparison, Transfer, Variants, held_transfer, with_queue_limit,
    with_repetitions, with_variants,
};
pub use contents::{Files, Located, NoFiles, PathText, Trace};
pub use diagnostic::{Diagnostic, Diagnostics, Source};
pub use keys::{campaign_key_tables, key_tables, transport_names};
pub use not_yet::not_yet_help;
pub use options::{Options, Percent, PercentOf, Setting, fitting_name};
pub use plan::{Cell, Plan, load, load_with_files};
pub use preset::{Preset, preset, presets};
pub use quantity::{SiAmount, as_percent, parse_duration, parse_rate, percentage, si_amount};
pub use read::nearest;
pub use schema::schema;
pub use threshold::{Threshold, ThresholdSubject};
pub use timeline::{Timeline, TimelineChange};
pub use tree::{LARGEST_FILE, has_path_alone};
pub use understood::{Understood, doubts_about_rates};

/// The types of the model, for crates that run plans. A crate that takes a scenario alone depends on the
/// model itself.
pub use talkpath_model::{
    Codec, Concealment, DSCP_NAMES, Demand, Direction, Dscp, Due, EchoWrite, FarClock, Flow, IpVersion,
    Judging, KernelProfile, LARGEST_BULK_MESSAGE, LinkIndex, MIN_BULK_ROOM, MessageSize, NANOS_OF_A_HOP,
    NamedLink, Node, Playout, Receiver, Scenario, SecondPath, Topology, USUAL_MTU, WorkloadConfig,
    host_and_port,
};
