//! The language of scenario and campaign files: from text to what is to be run.
//!
//! ```text
//! text ─► tree (spans) ─► passes over the file ─► cells of the sweep ─► passes over a cell
//!                                              ─► Scenario (copies, links, routes expanded)
//! ```
//!
//! From the ground: a value and its mistakes (`quantity`, `diagnostic`, `tree`), how keys are described
//! (`spec`), how values are read by that (`read`), what they mean (`section`), what each transport, queue and
//! workload has (a folder each), the key tables (`keys`), the passes (`pass`), the model of what came out
//! (`resolve`), and the whole (`plan`).
//!
//! The files that one key passes on its way, `path.up.rate = "8 Mbps"`:
//!
//! ```text
//! plan ─► tree ─► pass/set ─► pass/values ─► pass/sweep ─► pass/kernel ─► pass/check ─► read ─► quantity
//!      ─► pass/fill ─► resolve/mod ─► resolve/link ─► section ─► LinkConfig::rate
//! ```
//!
//! No file is read here: text comes in as a value, and so does that of the files which it names, by a
//! [`Files`]. [`load`] reports every mistake at once.
//!
//! - *plan*: a scenario file, understood: its cells, and how often each runs.
//! - *cell*: one combination of the values in `[sweep]`.
//! - *tree*: the file as keys and values, each with its place in the text. A *node* is one value.
//! - *key table*: which keys a table of the file has, with kind, default and meaning (`keys`).
//! - *pass*: takes a tree and gives a changed one, such as with the command line's keys set.
//! - *fill*: the pass that writes every default out; *resolve*: makes the model of a filled tree.
//! - *setting*: a key that the command line sets.
//! - *threshold*: what a figure of the run must hold; its *bound* is an operator and a value.
//!
//! Begin to read with `plan.rs`, then `pass/mod.rs`.

mod bound;
pub mod campaign;
mod compare;
mod contents;
mod diagnostic;
mod emit;
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
mod schema;
mod section;
mod spec;
mod store_command;
mod threshold;
mod transports;
mod tree;
mod understood;
mod usual;
mod workloads;

pub use bound::{Bound, Operator, split_threshold};
pub use compare::{ByOption, ComparedWorkload, Comparison, with_fq_codel, with_repetitions};
pub use contents::{Files, Located, NoFiles, Trace};
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
pub use tree::LARGEST_FILE;
pub use understood::Understood;

/// What comes out, for whoever runs plans. What takes a scenario alone depends on the model itself.
pub use talkpath_model::{
    Codec, Concealment, DSCP_NAMES, Demand, Direction, Dscp, Due, EchoWrite, FarClock, Flow, IpVersion,
    Judging, KernelProfile, LARGEST_BULK_MESSAGE, LinkIndex, MIN_BULK_ROOM, MessageSize, NANOS_OF_A_HOP,
    NamedLink, Node, Playout, Receiver, Scenario, SecondPath, Topology, USUAL_MTU, WorkloadConfig,
    host_and_port,
};
