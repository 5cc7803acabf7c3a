//! What the command line changes in a scenario.

use talkpath_units::printable;

use crate::diagnostic::Place;
use crate::quantity;
use crate::spec::LONGEST_NAME;
use crate::tree::{self, Value};

/// What the command line changes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keys that it sets, in this order.
    pub set: Vec<Setting>,
    /// `--seed`, over the file's `seed`.
    pub seed: Option<u64>,
    /// `--repeat`, over the file's `repeat`.
    pub repeat: Option<u64>,
    /// Which figures are shares, by the table of figures. `None` checks no threshold for it: this crate knows
    /// no figure.
    pub percent_of: Option<PercentOf>,
}

/// Says of the figure at a path below its flow, group or link whether it is a share; `None` if there is no
/// such figure.
pub type PercentOf = fn(path: &str) -> Option<Percent>;

/// Whether a threshold of a figure is written in per cent.
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
    /// From the root, with points between: `path.up.rate`.
    pub key: String,
    /// Read as TOML if it is valid TOML, else as a string.
    pub value: String,
    /// The option that sets it. A mistake in the value names it instead of a place in the file.
    pub option: String,
}

impl Setting {
    /// `--set KEY=VALUE`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        Self { option: format!("--set {key}={value}"), key, value }
    }

    /// `--sweep KEY=A,B,...`. The values are a TOML list, TOML values between commas, or else words between
    /// commas.
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
            // Also what is meant as a list or a table and is none: the mistake shows it whole.
            _ if is_list(values) || values.starts_with('[') => values.to_owned(),
            _ if quantity::mixed_shares(values).is_some() => values.to_owned(),
            list if is_list(&list) || values.contains(['[', '{']) => list,
            _ => format!("[{}]", words()),
        };
        Self { option: format!("--sweep {key}={values}"), key: format!("sweep.{key}"), value }
    }

    /// A key that `option` sets in words of its own.
    pub fn by(option: &str, key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), option: option.to_owned() }
    }
}

impl From<(String, String)> for Setting {
    /// `--set KEY=VALUE`.
    fn from((key, value): (String, String)) -> Self {
        Self::new(key, value)
    }
}

/// `text`, from a file's name say, as a scenario's `name`: control characters escaped, and cut to its length.
pub fn fitting_name(text: &str) -> String {
    printable(text, LONGEST_NAME)
}

/// The file's name without its folder and its ending.
pub(crate) fn stem(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if name.trim().is_empty() { "scenario".to_owned() } else { fitting_name(name) }
}
