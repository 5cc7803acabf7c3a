//! The options of a marker: the run that a place shows, and the form of its figure.

use talkpath_measure::figures::Unit;
use talkpath_study::{Outcome, format_range, median, unit_suffix};

/// The options of a marker.
#[derive(Default)]
pub(super) struct Options {
    /// `in ARENA`: the arena of the run. Without it a place shows the first run.
    pub arena: Option<String>,
    /// `under SET`: the assumption set. Without it a place shows the base.
    pub assumption_set: Option<String>,
    /// `value N`: which of the values that a check compares, from 1. Without it a place shows the figure of
    /// the check.
    pub value_number: Option<usize>,
    /// `times X`: the figure is multiplied by this factor and has no unit.
    factor: Option<f64>,
    /// `digits N`: the number of decimals.
    digits: Option<usize>,
    /// `bare`: the figure has no unit.
    is_bare: bool,
    /// `held`: a place shows how many of the checks hold.
    pub counts_held_checks: bool,
    /// `interval`: a place shows the 95 % confidence interval of the median.
    pub shows_interval: bool,
    /// `median`: a place shows the median of several figures. Without it a place shows their range.
    shows_median: bool,
}

impl Options {
    pub(super) fn parse<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut options = Self::default();
        for part in parts {
            let (word, value) = part.split_once(' ').unwrap_or((part, ""));
            let no_number = || format!("; {part}: a number expected");
            match word {
                "in" => options.arena = Some(value.to_owned()),
                "under" => options.assumption_set = Some(value.to_owned()),
                "value" => options.value_number = Some(value.parse().map_err(|_| no_number())?),
                "times" => options.factor = Some(value.parse().map_err(|_| no_number())?),
                "digits" => options.digits = Some(value.parse().map_err(|_| no_number())?),
                "bare" => options.is_bare = true,
                "held" => options.counts_held_checks = true,
                "interval" => options.shows_interval = true,
                "median" => options.shows_median = true,
                _ => {
                    let known =
                        "in ARENA, under SET, value N, times X, digits N, bare, held, interval, median";
                    return Err(format!("no option `{word}`; there are {known}"));
                }
            }
        }
        Ok(options)
    }

    /// Chooses the run that a place shows from the runs of its study.
    pub(super) fn choose_run<'a>(&self, runs: &[&'a Outcome]) -> Result<&'a Outcome, String> {
        let Some(arena) = &self.arena else {
            return runs.first().copied().ok_or_else(|| "no run is given".to_owned());
        };
        runs.iter().copied().find(|run| run.arena.name() == arena).ok_or_else(|| {
            let known: Vec<&str> = runs.iter().map(|run| run.arena.name()).collect();
            format!("no run in `{arena}` is given; there is {}", known.join(", "))
        })
    }

    /// Writes the range of `values`. It is one figure if the smallest and the largest value look the same.
    pub(super) fn range(&self, unit: Option<Unit>, values: &[f64]) -> Result<String, String> {
        let median = if self.shows_median { median(values).map(|value| value.median) } else { None };
        let values = median.as_ref().map_or(values, core::slice::from_ref);
        if values.is_empty() {
            return Err("it has no figure".to_owned());
        }
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if let Some(factor) = self.factor {
            return Ok(format_range(None, (lowest * factor, highest * factor), self.digits));
        }
        let text = format_range(unit, (lowest, highest), self.digits);
        if !self.is_bare {
            return Ok(text);
        }
        Ok(text.strip_suffix(unit_suffix(unit)).unwrap_or(&text).to_owned())
    }
}
