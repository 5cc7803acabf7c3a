//! Links from the words of a claim to the figures that the words name, and from a figure to the claims that
//! name it.
//!
//! A *mention* is a place in a text that names a figure of the publication: `figure 9`, or each number in a
//! list such as `figures 4 and 5` or `figures 10, 11`.

use core::ops::Range;

use maud::{Markup, PreEscaped, html};
use talkpath_study::{ClaimOutcome, FigureOutcome, Outcome};

use crate::chart::id_part;

/// "Figure" and "figure" without the first letter, which may be a capital.
const FIGURE_WORD_END: &str = "igure";
/// The texts between two numbers of a list.
const SEPARATORS: [&str; 3] = [", ", " and ", " to "];

pub(super) fn link_figures(text: &str, figures: &[FigureOutcome]) -> Markup {
    let mut linked = String::new();
    let mut written = 0;
    for Mention { range, figure } in mentions(text, figures) {
        let before = &text[written..range.start];
        let link =
            html! { (before) a href={ "#figure-" (id_part(&figure.number)) } { (text[range.clone()]) } };
        linked.push_str(&link.0);
        written = range.end;
    }
    linked.push_str(&html! { (text[written..]) }.0);
    PreEscaped(linked)
}

/// Links to the claims that name `figure`. Empty if there are none.
pub(super) fn claims_naming(figure: &FigureOutcome, outcome: &Outcome) -> Markup {
    let figures = core::slice::from_ref(figure);
    let names_figure = |claim: &&ClaimOutcome| {
        [&claim.claim, &claim.published].into_iter().any(|text| !mentions(text, figures).is_empty())
    };
    let claims: Vec<&ClaimOutcome> = outcome.claims.iter().filter(names_figure).collect();
    html! {
        @if !claims.is_empty() {
            p.about {
                "Claims that name it: "
                @for (index, claim) in claims.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={ "#claim-" (id_part(&claim.id)) } { (claim.id) }
                }
                "."
            }
        }
    }
}

/// A place in a text that names a figure.
struct Mention<'f> {
    /// The bytes of the text that become a link.
    range: Range<usize>,
    figure: &'f FigureOutcome,
}

fn mentions<'f>(text: &str, figures: &'f [FigureOutcome]) -> Vec<Mention<'f>> {
    let words = text.match_indices(FIGURE_WORD_END).filter_map(|(index, _)| FigureWord::at(text, index));
    words.flat_map(|word| word.mentions(text, figures)).collect()
}

struct FigureWord {
    /// The first byte of the word.
    start: usize,
    /// The first byte of the number behind the word.
    number_start: usize,
    /// Whether the word is "figures", so that a list of numbers may follow.
    is_plural: bool,
}

impl FigureWord {
    /// The word whose [`FIGURE_WORD_END`] begins at `index`. Returns `None` if this is another word.
    fn at(text: &str, index: usize) -> Option<Self> {
        let start = index.checked_sub(1)?;
        if !matches!(text.get(start..index), Some("F" | "f")) {
            return None;
        }
        let after = &text[index + FIGURE_WORD_END.len()..];
        let (is_plural, numbers) = match after.strip_prefix("s ") {
            Some(numbers) => (true, numbers),
            None => (false, after.strip_prefix(' ')?),
        };
        Some(Self { start, number_start: text.len() - numbers.len(), is_plural })
    }

    /// The mentions of figures whose numbers follow the word.
    fn mentions<'f>(&self, text: &str, figures: &'f [FigureOutcome]) -> Vec<Mention<'f>> {
        let mut mentions = Vec::new();
        let mut number_start = self.number_start;
        while let Some(figure) = figure_at(text, number_start, figures) {
            let number_end = number_start + figure.number.len();
            // In a list only the number is a link.
            let start = if self.is_plural { number_start } else { self.start };
            mentions.push(Mention { range: start..number_end, figure });
            if !self.is_plural {
                break;
            }
            let after = &text[number_end..];
            let Some(separator) = SEPARATORS.iter().find(|separator| after.starts_with(**separator)) else {
                break;
            };
            number_start = number_end + separator.len();
        }
        mentions
    }
}

/// The figure whose number begins at the byte `start`. The longest number is taken, so that "4.2" is not
/// taken for "4".
fn figure_at<'f>(text: &str, start: usize, figures: &'f [FigureOutcome]) -> Option<&'f FigureOutcome> {
    let number = &text[start..];
    let candidates = figures.iter().filter(|figure| number.starts_with(&figure.number));
    let figure = candidates.max_by_key(|figure| figure.number.len())?;
    let mut after = number[figure.number.len()..].chars();
    let number_continues = match (after.next(), after.next()) {
        (Some(next), _) if next.is_alphanumeric() => true,
        (Some('.'), Some(next)) => next.is_ascii_digit(),
        _ => false,
    };
    (!number_continues).then_some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_study::Drawing;

    fn figure(number: &str) -> FigureOutcome {
        FigureOutcome {
            number: number.to_owned(),
            title: String::new(),
            x_title: String::new(),
            y_title: String::new(),
            note: String::new(),
            drawing: Drawing::Absent { why: String::new() },
        }
    }

    #[test]
    fn each_figure_that_is_named_is_a_link_and_no_other_number_is() {
        let figures = [figure("1"), figure("12")];
        let linked = link_figures("figure 12, Figure 1; figure 2", &figures).into_string();
        assert_eq!(
            linked,
            "<a href=\"#figure-12\">figure 12</a>, <a href=\"#figure-1\">Figure 1</a>; figure 2"
        );
    }

    #[test]
    fn figures_of_a_list_are_links_and_a_part_of_a_number_is_none() {
        let figures = [figure("4"), figure("5"), figure("4.2.1")];
        let links = |text: &str| link_figures(text, &figures).into_string();
        assert_eq!(
            links("figures 4 and 5"),
            "figures <a href=\"#figure-4\">4</a> and <a href=\"#figure-5\">5</a>"
        );
        assert_eq!(links("figure 4.2.1."), "<a href=\"#figure-4-2-1\">figure 4.2.1</a>.");
        assert_eq!(links("figure 4.2, figure 45"), "figure 4.2, figure 45");
        assert_eq!(links("figure 4. Then 5"), "<a href=\"#figure-4\">figure 4</a>. Then 5");
    }

    #[test]
    fn a_figure_names_the_claims_that_name_it() {
        let mut outcome = super::super::fill::tests::outcome();
        assert_eq!(claims_naming(&figure("9"), &outcome).into_string(), "");
        outcome.claims[0].published = "figure 9".to_owned();
        let line = claims_naming(&figure("9"), &outcome).into_string();
        assert!(line.contains("<a href=\"#claim-C1\">C1</a>"), "{line}");
        assert_eq!(claims_naming(&figure("90"), &outcome).into_string(), "");
    }
}
