//! The titles of the groups in which `--help` lists the options of a command. A group is an option's
//! `help_heading`. The groups come in the order of their first options. Options without a group come first,
//! under "Options".

pub(super) const CAPTURE: &str = "Captures";
pub(super) const TRAFFIC: &str = "Traffic";
pub(super) const PATH: &str = "Path, in sim and emu";
pub(super) const KEYS: &str = "Keys of the scenario";
pub(super) const WHERE: &str = "Where to run";
pub(super) const REPETITIONS: &str = "Repetitions";
pub(super) const THRESHOLDS: &str = "Thresholds";
pub(super) const FILES: &str = "Files";
pub(super) const METRICS: &str = "Metrics";
pub(super) const SENDER: &str = "Sender";
pub(super) const REFLECTOR: &str = "Reflector";
pub(super) const SERVED: &str = "Who is served";
pub(super) const LIMITS: &str = "Limits of a session";
pub(super) const OUTPUT: &str = "Output";
