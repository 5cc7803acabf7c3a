//! From a claim's words to the figures that they name, and back.

use core::ops::Range;

use maud::{Markup, PreEscaped, html};
use talkpath_study::{ClaimOutcome, FigureOutcome, Outcome};

use crate::chart::id_part;

/// `text` with a link at each figure of the page that it names, as "figure 9".
pub(super) fn with_figures(text: &str, figures: &[FigureOutcome]) -> Markup {
    let (mut from, mut linked) = (0, String::new());
    for Name { range, figure } in named(text, figures) {
        let before = &text[from..range.start];
        let link =
            html! { (before) a href={ "#figure-" (id_part(&figure.number)) } { (text[range.clone()]) } };
        linked.push_str(&link.0);
        from = range.end;
    }
    linked.push_str(&html! { (text[from..]) }.0);
    PreEscaped(linked)
}

/// The claims whose words name `figure`, as a line under it.
pub(super) fn claims_of(figure: &FigureOutcome, outcome: &Outcome) -> Markup {
    let figures = core::slice::from_ref(figure);
    let names = |claim: &&ClaimOutcome| {
        [&claim.claim, &claim.published].into_iter().any(|text| !named(text, figures).is_empty())
    };
    let claims: Vec<&ClaimOutcome> = outcome.claims.iter().filter(names).collect();
    html! {
        @if !claims.is_empty() {
            p.about {
                "Claims that name it: "
                @for (at, claim) in claims.iter().enumerate() {
                    @if at > 0 { ", " }
                    a href={ "#claim-" (id_part(&claim.id)) } { (claim.id) }
                }
                "."
            }
        }
    }
}

/// The name of a figure in a text.
struct Name<'f> {
    /// Where it stands, in bytes.
    range: Range<usize>,
    figure: &'f FigureOutcome,
}

/// Where `text` names which of `figures`. A name is "figure 9", or in a list of several ("figures 4 and 5",
/// "figures 10, 11") each number.
fn named<'f>(text: &str, figures: &'f [FigureOutcome]) -> Vec<Name<'f>> {
    let words = text.match_indices(NAME).filter_map(|(at, _)| {
        let start = at.checked_sub(1).filter(|&start| matches!(text.get(start..at), Some("F" | "f")))?;
        let rest = &text[at + NAME.len()..];
        let first = rest.strip_prefix("s ").or_else(|| rest.strip_prefix(' '))?;
        Some(Word { start, first: text.len() - first.len(), is_list: rest.starts_with('s') })
    });
    words.flat_map(|word| word.names(text, figures)).collect()
}

/// The word "figure" or "figures" in a text.
struct Word {
    /// Where it begins, in bytes.
    start: usize,
    /// Where the first number behind it begins.
    first: usize,
    /// Whether a list of numbers may follow.
    is_list: bool,
}

impl Word {
    /// The figures whose numbers stand behind it in `text`.
    fn names<'f>(&self, text: &str, figures: &'f [FigureOutcome]) -> Vec<Name<'f>> {
        let (mut found, mut at) = (Vec::new(), self.first);
        while let Some(number) = number_at(text, at, figures) {
            let end = number.range.end;
            // Of a list the word is no part of the link.
            let range = if self.is_list { number.range } else { self.start..end };
            found.push(Name { range, ..number });
            let next = SEPARATORS
                .iter()
                .find_map(|separator| text[end..].starts_with(separator).then_some(end + separator.len()));
            let Some(next) = next.filter(|_| self.is_list) else { break };
            at = next;
        }
        found
    }
}

/// The figure whose number stands at `at`: the longest, so that "4.2" is not taken for "4".
fn number_at<'f>(text: &str, at: usize, figures: &'f [FigureOutcome]) -> Option<Name<'f>> {
    let rest = &text[at..];
    let found = figures.iter().filter(|figure| rest.starts_with(&figure.number));
    let figure = found.max_by_key(|figure| figure.number.len())?;
    let mut after = rest[figure.number.len()..].chars();
    let goes_on = match (after.next(), after.next()) {
        (Some(next), _) if next.is_alphanumeric() => true,
        (Some('.'), Some(next)) => next.is_ascii_digit(),
        _ => false,
    };
    (!goes_on).then(|| Name { range: at..at + figure.number.len(), figure })
}

/// "Figure" or "figure", without its first letter.
const NAME: &str = "igure";
/// What separates the numbers of a list.
const SEPARATORS: [&str; 3] = [", ", " and ", " to "];

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
        let linked = with_figures("figure 12, Figure 1; figure 2", &figures).into_string();
        assert_eq!(
            linked,
            "<a href=\"#figure-12\">figure 12</a>, <a href=\"#figure-1\">Figure 1</a>; figure 2"
        );
    }

    #[test]
    fn figures_of_a_list_are_links_and_a_part_of_a_number_is_none() {
        let figures = [figure("4"), figure("5"), figure("4.2.1")];
        let links = |text: &str| with_figures(text, &figures).into_string();
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
        assert_eq!(claims_of(&figure("9"), &outcome).into_string(), "");
        outcome.claims[0].published = "figure 9".to_owned();
        let line = claims_of(&figure("9"), &outcome).into_string();
        assert!(line.contains("<a href=\"#claim-C1\">C1</a>"), "{line}");
        assert_eq!(claims_of(&figure("90"), &outcome).into_string(), "");
    }
}
