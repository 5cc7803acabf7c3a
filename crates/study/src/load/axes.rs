//! Expands the entries of a study file that have axes.
//!
//! An entry with `each` is written once and stands for several entries. An *axis* of `each` is a name with a
//! list of values. For each combination of values, one from each axis, `{AXIS}` in the texts of the entry is
//! replaced by the value.
//!
//! ```text
//! { name = "{n} flows", cell = "tcp-{n}", each = { n = ["6", "12"] } }
//! ```
//!
//! is the same as an entry for `tcp-6` and an entry for `tcp-12`. Axes whose names are joined by a slash step
//! together: `"n/rtt" = ["1/10", "2/39"]` has two combinations.

use core::ops::Range;
use std::collections::BTreeMap;

use super::Loader;

/// The axes of an entry: the name of each axis, and its values.
pub(super) type Axes = BTreeMap<String, Vec<String>>;

#[derive(Clone, Copy)]
pub(super) struct AxisValue<'a> {
    axis: &'a str,
    value: &'a str,
}

/// Returns every combination of the values of the axes. Without axes there is one combination, which is
/// empty.
pub(super) fn combinations(axes: &Axes) -> Vec<Vec<AxisValue<'_>>> {
    let mut combinations = vec![Vec::new()];
    for (names, values) in axes {
        let mut extended = Vec::new();
        for combination in &combinations {
            for value in values {
                let joined_axes = names.split('/').zip(value.split('/'));
                let mut longer: Vec<AxisValue<'_>> = combination.clone();
                longer.extend(joined_axes.map(|(axis, value)| AxisValue { axis, value }));
                extended.push(longer);
            }
        }
        combinations = extended;
    }
    combinations
}

impl Loader<'_, '_> {
    /// Records a mistake if a value has not as many parts between slashes as the names of its axes.
    pub(super) fn require_equal_parts(&mut self, axes: &Axes, span: &Range<usize>, key: &str) {
        let count_parts = |text: &str| text.split('/').count();
        for (names, values) in axes.iter().filter(|(names, _)| names.contains('/')) {
            let expected = count_parts(names);
            if let Some(value) = values.iter().find(|value| count_parts(value) != expected) {
                let found = count_parts(value);
                let message = format!(
                    "\"{value}\" and \"{names}\" differ in their parts between slashes: found {found}, expected {expected}"
                );
                self.mistakes.add(span.clone(), key, message);
            }
        }
    }

    /// Returns `text` with the values of a combination in place of `{AXIS}`. Records a mistake if `text`
    /// names an axis that the combination does not have.
    pub(super) fn fill_axes(
        &mut self,
        text: &str,
        combination: &[AxisValue<'_>],
        span: Range<usize>,
        key: &str,
    ) -> String {
        let mut filled = text.to_owned();
        for AxisValue { axis, value } in combination {
            filled = filled.replace(&format!("{{{axis}}}"), value);
        }
        if let Some(unknown) = first_axis(&filled) {
            let names: Vec<&str> = combination.iter().map(|value| value.axis).collect();
            let help = match names.as_slice() {
                [] => "the entry has no `each`".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            let message = format!("\"{text}\": `each` has no axis called \"{unknown}\"");
            self.mistakes.add_with_help(span, key, message, help);
        }
        filled
    }
}

/// Returns the first name in braces.
fn first_axis(text: &str) -> Option<&str> {
    let (_, after_brace) = text.split_once('{')?;
    let (name, _) = after_brace.split_once('}')?;
    Some(name)
}
