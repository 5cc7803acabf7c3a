//! The frame of every page: head, style sheets, themes, sections, warnings and the page's module.
//!
//! The templates of maud escape every text. Only a `PreEscaped` is not escaped, and every `PreEscaped` here
//! is a constant: an element, a style sheet or a script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use talkpath_measure::warning;

use crate::display::{self, DARK_BACKGROUND, Display, LIGHT_BACKGROUND};
use crate::term::Term;

/// XML wants a slash in an element without an end. maud writes `<meta>` without it.
const META: PreEscaped<&str> = PreEscaped(
    "<meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>",
);
/// A line break, with the slash for XML.
pub(crate) const BREAK: PreEscaped<&str> = PreEscaped("<br/>");
/// The style sheet of charts. A chart in a file of its own needs it, too.
const CHART_CSS: &str = include_str!("../figure.css");
/// The page's module. It is in a section of character data, because the page is also XML.
const SCRIPT: PreEscaped<&str> = PreEscaped(concat!(
    "<script type=\"module\">//<![CDATA[\n",
    include_str!("../page.js"),
    include_str!("../sound/sound.js"),
    "//]]></script>"
));

/// A section of a page.
pub(crate) struct Section {
    /// The target of links to the section.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    pub body: Markup,
}

impl Section {
    pub(crate) fn is_empty(&self) -> bool {
        self.body.0.is_empty()
    }

    /// The section with its heading. Empty if the section has no body.
    pub(crate) fn html(&self) -> Markup {
        html! {
            @if !self.is_empty() { section id=(self.id) { h2 { (self.title) } (self.body) } }
        }
    }
}

/// Links to the sections that have a body.
pub(crate) fn table_of_contents<'a>(sections: impl Iterator<Item = &'a Section>) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ul {
                @for Section { id, title, .. } in sections.filter(|section| !section.is_empty()) {
                    li { a href={ "#" (id) } { (title) } }
                }
            }
        }
    }
}

/// Writes a whole page around `main`. `about` is the line below the title, and `talkpath` is the version of
/// the program.
pub(crate) fn document(title: &str, about: &str, main: &Markup, talkpath: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (META)
                title { (title) " – talkpath report" }
                style { (PreEscaped(themes())) }
                style id="figure-style" { (PreEscaped(CHART_CSS)) }
                style { (PreEscaped(include_str!("../page.css"))) }
            }
            body {
                header {
                    h1 { (title) }
                    p.about { (about) }
                }
                main { (main) }
                footer { p { "Written by talkpath " (talkpath) "." } }
                (SCRIPT)
            }
        }
    };
    replace_control_characters(&page.into_string())
}

/// The warnings of a run in a box. Notes are not warnings, and a page has them elsewhere.
pub(crate) fn warnings(warnings: &[String]) -> Markup {
    let warnings: Vec<&String> = warnings.iter().filter(|warning| !warning::is_note(warning)).collect();
    html! {
        @if !warnings.is_empty() {
            div.warnings {
                strong { "Warnings" }
                ul { @for text in warnings {
                    li {
                        @if let Some(reason) = warning::reason(text) {
                            strong { "Invalid because of this: " } (reason)
                        } @else {
                            (text)
                        }
                    }
                } }
            }
        }
    }
}

/// Replaces the characters that XML 1.0 §2.2 does not allow, and those that control a device.
pub(super) fn replace_control_characters(page: &str) -> String {
    let replace = |c: char| match c {
        '\n' | '\t' => c,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    page.chars().map(replace).collect()
}

/// The style sheet of a chart in a file of its own, which is always on light ground.
pub(super) fn chart_file_css() -> String {
    format!("{}{CHART_CSS}", light_theme())
}

/// The colours of both themes: those of the page, and one for each transport.
fn themes() -> String {
    let dark = format!(
        "--page: {DARK_BACKGROUND}; --raised: #1f242b; --ink: #e8eaee; --soft: #a3acb8; --line: #343b45; \
         --accent: #56b4e9; --bad: #ff7b72; --warn: #e6a816; --shade: #6b7685;{}",
        transport_colours(|display| display.dark)
    );
    format!("{}@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n", light_theme())
}

fn light_theme() -> String {
    let light = format!(
        "--page: {LIGHT_BACKGROUND}; --raised: #f4f6f8; --ink: #1b1f26; --soft: #596270; --line: #dfe3e8; \
         --accent: #0072b2; --bad: #c01824; --warn: #a66a00; --shade: #8a94a3;{}",
        transport_colours(|display| display.light)
    );
    format!(":root {{ {light} }}\n")
}

fn transport_colours(colour: fn(&Display) -> &'static str) -> String {
    display::all().map(|display| format!(" --t-{}: {};", display.kind, colour(display))).collect()
}

pub(super) fn definitions(terms: &[Term]) -> Markup {
    html! {
        dl.terms {
            @for Term { name, meaning, .. } in terms { dt { (name) } dd { (meaning) } }
        }
    }
}
