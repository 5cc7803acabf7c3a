//! From a claim's words to the figures that they name, and back.

use maud::{Markup, PreEscaped, html};
use talkpath_study::{ClaimOutcome, FigureOutcome, Outcome};

use crate::figure::word;

/// `text` with a link at each figure of the page that it names, as "figure 9".
pub(super) fn with_figures(text: &str, figures: &[FigureOutcome]) -> Markup {
    let (mut rest, mut linked) = (text, String::new());
    while let Some((start, end, figure)) = next_figure(rest, figures) {
        let link =
            html! { (rest[..start]) a href={ "#figure-" (word(&figure.number)) } { (rest[start..end]) } };
        linked.push_str(&link.0);
        rest = &rest[end..];
    }
    linked.push_str(&html! { (rest) }.0);
    PreEscaped(linked)
}

/// The claims whose words name `figure`, as a line under it.
pub(super) fn claims_of(figure: &FigureOutcome, outcome: &Outcome) -> Markup {
    let figures = core::slice::from_ref(figure);
    let names = |claim: &&ClaimOutcome| {
        [&claim.claim, &claim.published].into_iter().any(|text| next_figure(text, figures).is_some())
    };
    let claims: Vec<&ClaimOutcome> = outcome.claims.iter().filter(names).collect();
    html! {
        @if !claims.is_empty() {
            p.about {
                "Claims that name it: "
                @for (at, claim) in claims.iter().enumerate() {
                    @if at > 0 { ", " }
                    a href={ "#claim-" (word(&claim.id)) } { (claim.id) }
                }
                "."
            }
        }
    }
}

/// Where the next figure that is one of `figures` is named in `text`: from, to, and which.
fn next_figure<'f>(text: &str, figures: &'f [FigureOutcome]) -> Option<(usize, usize, &'f FigureOutcome)> {
    let named = |(at, _): (usize, &str)| {
        let number = at + NAME.len();
        let found = text[number..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        let end = number + found;
        let figure = figures.iter().find(|figure| figure.number == text[number..end])?;
        let start = at.checked_sub(1)?;
        matches!(text.get(start..at), Some("F" | "f")).then_some((start, end, figure))
    };
    text.match_indices(NAME).find_map(named)
}

/// "Figure" or "figure", without its first letter, and the space after it.
const NAME: &str = "igure ";

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
    fn a_figure_names_the_claims_that_name_it() {
        let mut outcome = super::super::fill::tests::outcome();
        assert_eq!(claims_of(&figure("9"), &outcome).into_string(), "");
        outcome.claims[0].published = "figure 9".to_owned();
        let line = claims_of(&figure("9"), &outcome).into_string();
        assert!(line.contains("<a href=\"#claim-C1\">C1</a>"), "{line}");
        assert_eq!(claims_of(&figure("90"), &outcome).into_string(), "");
    }
}
