//! Entries that are written once and mean several: `each` has the axes, and `{AXIS}` in a text becomes the
//! value.

use core::ops::Range;
use std::collections::BTreeMap;

use super::Loader;

/// Axes with their values, as an entry's `each` names them.
pub(super) type Each = BTreeMap<String, Vec<String>>;

impl Loader<'_, '_> {
    /// Axes that step together have as many parts in each value as in the name.
    pub(super) fn check_axes(&mut self, each: &Each, span: &Range<usize>, key: &str) {
        let parts = |text: &str| text.split('/').count();
        for (axis, values) in each.iter().filter(|(axis, _)| axis.contains('/')) {
            if let Some(value) = values.iter().find(|value| parts(value) != parts(axis)) {
                let (found, expected) = (parts(value), parts(axis));
                let message = format!(
                    "\"{value}\" and \"{axis}\" differ in their parts between slashes: found {found}, expected {expected}"
                );
                self.mistakes.add(span.clone(), key, message, None);
            }
        }
    }

    /// `text` with the values of one combination in it. An axis that is left in it is a mistake: `each` has
    /// no axis of that name.
    pub(super) fn filled(
        &mut self,
        text: &str,
        values: &[(&str, &str)],
        span: Range<usize>,
        key: &str,
    ) -> String {
        let filled = values
            .iter()
            .fold(text.to_owned(), |text, (axis, value)| text.replace(&format!("{{{axis}}}"), value));
        if let Some(left) = axis_in(&filled) {
            let axes: Vec<&str> = values.iter().map(|(axis, _)| *axis).collect();
            let help = match axes.as_slice() {
                [] => "there is no `each` beside it".to_owned(),
                axes => format!("there are: {}", axes.join(", ")),
            };
            let message = format!("\"{text}\": `each` has no axis called \"{left}\"");
            self.mistakes.add(span, key, message, Some(help));
        }
        filled
    }
}

/// Every combination of the axes' values; one empty one without axes. Axes whose names are joined by `/` step
/// together: `"n/rtt" = ["1/10", "2/39"]`.
pub(super) fn products(each: &Each) -> Vec<Vec<(&str, &str)>> {
    each.iter().fold(vec![Vec::new()], |before, (axis, values)| {
        let with = |so_far: &Vec<(_, _)>| {
            let so_far = so_far.clone();
            values.iter().map(move |value| {
                so_far.iter().copied().chain(axis.split('/').zip(value.split('/'))).collect()
            })
        };
        before.iter().flat_map(with).collect()
    })
}

/// The first name in braces.
fn axis_in(text: &str) -> Option<&str> {
    let (_, after) = text.split_once('{')?;
    Some(after.split_once('}')?.0)
}
