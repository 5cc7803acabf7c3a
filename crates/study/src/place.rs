//! Mistakes in a study file, placed by line and column in the words of the scenario's own.

use core::ops::Range;

use talkpath_scenario::{Diagnostic, Diagnostics, Source};

/// Collects mistakes, each once, while a study is read.
pub(crate) struct Mistakes<'a> {
    source: &'a Source,
    list: Vec<Diagnostic>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, list: Vec::new() }
    }

    /// Records a mistake about `span` of the file.
    pub(crate) fn add(
        &mut self,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let (line, column) = self.line_and_column(span.start);
        let (key, message) = (key.to_owned(), message.into());
        let mistake = Diagnostic { span, line, column, option: None, key, message, help };
        if !self.list.contains(&mistake) {
            self.list.push(mistake);
        }
    }

    /// The key of the value that begins at `at`; empty if no `KEY =` is directly before it.
    pub(crate) fn key_before(&self, at: usize) -> String {
        let before = self.source.text.get(..at).unwrap_or_default().trim_end();
        let Some(before) = before.strip_suffix('=').map(str::trim_end) else { return String::new() };
        let is_of_key = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        let key = before.trim_end_matches('"');
        let begin = key.trim_end_matches(is_of_key).len();
        key[begin..].to_owned()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.list.is_empty()
    }

    /// What was found wrong, in the order of the file.
    pub(crate) fn finish(mut self) -> Diagnostics {
        self.list.sort_by_key(|mistake| mistake.span.start);
        Diagnostics { source: self.source.name.clone(), list: self.list }
    }

    /// Both from 1; columns count characters.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let mut at = at.min(self.source.text.len());
        while !self.source.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.source.text[..at];
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
    }
}

/// ` (there are: a, b)` as a help line; `None` without names.
pub(crate) fn known<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = names.take(MOST_NAMED + 1).collect();
    let more = if names.len() > MOST_NAMED { ", ..." } else { "" };
    (!names.is_empty())
        .then(|| format!("there are: {}{more}", names[..names.len().min(MOST_NAMED)].join(", ")))
}

/// Names that a help line lists. Chosen.
const MOST_NAMED: usize = 20;
