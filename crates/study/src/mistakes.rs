//! Collects the mistakes in a study file, each with its line and column. A mistake has the type of a mistake
//! in a scenario ([`Diagnostic`]), so both are printed in the same way.

use core::ops::Range;

use talkpath_scenario::{Diagnostic, Diagnostics, Source};

/// The mistakes that were found so far. Each mistake is listed once.
pub(crate) struct Mistakes<'a> {
    source: &'a Source,
    list: Vec<Diagnostic>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, list: Vec::new() }
    }

    /// Records a mistake in the text at `span`.
    pub(crate) fn add(&mut self, span: Range<usize>, key: &str, message: impl Into<String>) {
        self.add_with_help(span, key, message, None);
    }

    /// Records a mistake in the text at `span`, with a line that helps the user to mend the mistake.
    pub(crate) fn add_with_help(
        &mut self,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        let (line, column) = self.line_and_column(span.start);
        let (key, message, help) = (key.to_owned(), message.into(), help.into());
        let mistake = Diagnostic { span, line, column, option: None, included: None, key, message, help };
        if !self.list.contains(&mistake) {
            self.list.push(mistake);
        }
    }

    /// Returns the key of the value that begins at the byte `value_start` of the file. Returns an empty text
    /// if there is no `KEY =` directly before the value.
    pub(crate) fn key_before(&self, value_start: usize) -> String {
        let text_before = self.source.text.get(..value_start).unwrap_or_default().trim_end();
        let Some(text_before) = text_before.strip_suffix('=') else { return String::new() };
        let key_and_before = text_before.trim_end().trim_end_matches('"');
        let is_key_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        let key_start = key_and_before.trim_end_matches(is_key_letter).len();
        key_and_before[key_start..].to_owned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns all mistakes, in the order of the file.
    pub(crate) fn finish(mut self) -> Diagnostics {
        self.list.sort_by_key(|mistake| mistake.span.start);
        Diagnostics { source: self.source.name.clone(), list: self.list }
    }

    /// Returns the line and the column of a byte of the file, both from 1. A column is counted in characters.
    fn line_and_column(&self, byte: usize) -> (usize, usize) {
        let text = &self.source.text;
        let mut end = byte.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text_before = &text[..end];
        let line_start = text_before.rfind('\n').map_or(0, |newline| newline + 1);
        (text_before.matches('\n').count() + 1, text_before[line_start..].chars().count() + 1)
    }
}

/// A help line has at most this many names. We chose 20 because they fill about three lines of a terminal.
const MAX_NAMES: usize = 20;

/// Returns a help line with the names that the user can choose from, such as `there are: near, far`. Returns
/// `None` if there are no names.
pub(crate) fn names_help<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut names = names.into_iter();
    let listed: Vec<&str> = names.by_ref().take(MAX_NAMES).collect();
    if listed.is_empty() {
        return None;
    }
    let ellipsis = if names.next().is_some() { ", ..." } else { "" };
    Some(format!("there are: {}{ellipsis}", listed.join(", ")))
}
