//! The changes that the command line makes in a scenario.
//!
//! A *setting* is one key with its value, as `--set KEY=VALUE` gives it.

use talkpath_units::printable;

use crate::diagnostic::Place;
use crate::quantity;
use crate::spec::LONGEST_NAME;
use crate::tree::{self, Value};

/// The changes that the command line makes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The keys to set, in this order.
    pub set: Vec<Setting>,
    /// The value of `--seed`, which replaces the file's `seed`.
    pub seed: Option<u64>,
    /// The value of `--repeat`, which replaces the file's `repeat`.
    pub repeat: Option<u64>,
    /// The function that tells which figures are shares. This crate does not know the figures of a run. With
    /// `None` the bounds of thresholds are not checked for percentages.
    pub percent_of: Option<PercentOf>,
    /// Whether the file is the resolved form that a run directory keeps.
    pub is_recorded: bool,
    /// Whether the scenario is read for its path alone. It then needs neither a duration nor a flow.
    pub is_path_alone: bool,
}

/// Tells whether the figure at a path is a share. The path begins below the flow, group or link. Returns
/// `None` if there is no such figure.
pub type PercentOf = fn(path: &str) -> Option<Percent>;

/// Whether the threshold of a figure may be written in per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percent {
    /// The figure is a share. A number from 1 on without a percent sign is refused, because it may be meant
    /// in per cent.
    Share,
    /// The figure goes from 0 to 1 or is a share for some flows. Both ways of writing are right.
    Possible,
    /// The figure has a unit of its own. A percentage is refused.
    Never,
}

/// A key that the command line sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The names from the root to the key, with points between them: `path.up.rate`.
    pub key: String,
    /// The value. It is read as TOML if it is valid TOML, and otherwise as a string.
    pub value: String,
    /// The option that gives the value. A message about the value names the option in place of a line of the
    /// file.
    pub option: String,
}

impl Setting {
    /// Makes the setting of `--set KEY=VALUE`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        Self { option: format!("--set {key}={value}"), key, value }
    }

    /// Makes the setting of `--sweep KEY=A,B,...`. The values are a TOML list, or TOML values with commas, or
    /// words with commas.
    pub fn sweep(key: &str, values: &str) -> Self {
        let is_list = |text: &str| {
            tree::parse_value(text, &Place::START).is_some_and(|node| matches!(node.value, Value::List(_)))
        };
        let words = || {
            let quoted = values.split(',').map(|word| match word.trim() {
                word if tree::parse_value(word, &Place::START).is_some() => word.to_owned(),
                word => toml_edit::Value::from(word).to_string(),
            });
            quoted.collect::<Vec<_>>().join(", ")
        };
        let value = match format!("[{values}]") {
            // A value that looks like a list but is not valid stays as it is, so that the message shows all
            // of it.
            _ if is_list(values) || values.starts_with('[') => values.to_owned(),
            _ if quantity::mixed_shares(values).is_some() => values.to_owned(),
            list if is_list(&list) || values.contains(['[', '{']) => list,
            _ => format!("[{}]", words()),
        };
        Self { option: format!("--sweep {key}={values}"), key: format!("sweep.{key}"), value }
    }

    /// Makes a setting for a value that comes from another option than `--set`.
    pub fn by(option: &str, key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), option: option.to_owned() }
    }
}

impl From<(String, String)> for Setting {
    /// Makes the setting of `--set KEY=VALUE`.
    fn from((key, value): (String, String)) -> Self {
        Self::new(key, value)
    }
}

/// Makes the `name` of a scenario from another text, such as the name of a file. Control characters are
/// escaped, and a long text is cut.
pub fn fitting_name(text: &str) -> String {
    printable(text, LONGEST_NAME)
}

/// Returns the file's name without its folder and `.toml`, for a scenario without a `name`.
pub(crate) fn name_of_file(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if name.trim().is_empty() { "scenario".to_owned() } else { fitting_name(name) }
}
