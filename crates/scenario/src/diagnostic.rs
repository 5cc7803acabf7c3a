//! Mistakes in a scenario, each with its place, what was found and what would be right.
//!
//! Positions are kept as byte ranges while the scenario is read; lines and columns (from 1, columns in
//! characters) are counted once at the end. What came from a command-line option has no position in the file
//! and names the option.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeSet;

/// A scenario's text and the name to call it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name as the user wrote it, for messages.
    pub name: String,
    /// What is in it.
    pub text: String,
    /// The key whose table the text is, if it is not a whole scenario.
    pub(crate) under: Option<&'static str>,
}

impl Source {
    /// `text`, which messages call `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), under: None }
    }

    /// A path alone, with `up` and `down` at its top, as the files of the presets have it. Options set the
    /// rest of the scenario.
    pub fn path(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { under: Some("path"), ..Self::new(name, text) }
    }
}

/// One mistake, or one warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Bytes of the file that it is about; empty at its beginning for what is missing altogether.
    pub span: Range<usize>,
    /// Line of the span's beginning, from 1; 0 if the mistake is in an option.
    pub line: usize,
    /// Column of the span's beginning in characters, from 1; 0 if the mistake is in an option.
    pub column: usize,
    /// The command-line option that it is about, as `--set KEY=VALUE`, instead of a place in the file.
    pub option: Option<String>,
    /// The key that it is about, from the root: `flow.call.transport`; empty for the file as a whole.
    pub key: String,
    /// What was found, and what would be right.
    pub message: String,
    /// The nearest known key or value, or what to do.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    /// `LINE:COLUMN: KEY: MESSAGE (HELP)`, with the option in place of line and column if the value came from
    /// an option.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.option {
            Some(option) => write!(f, "{option}: ")?,
            None => write!(f, "{}:{}: ", self.line, self.column)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// Every mistake of a scenario, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// [`Source::name`].
    pub source: String,
    /// The mistakes.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// The mistakes, in the order of the file.
    pub fn iter(&self) -> core::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }
}

impl fmt::Display for Diagnostics {
    /// One line a mistake: `FILE:LINE:COLUMN: KEY: MESSAGE (HELP)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match diagnostic.option {
                Some(_) => write!(f, "{diagnostic}")?,
                None => write!(f, "{}:{diagnostic}", self.source)?,
            }
        }
        Ok(())
    }
}

impl core::error::Error for Diagnostics {}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Bytes of the file.
    File(Range<usize>),
    /// The command-line option with this index.
    Option(usize),
}

impl Place {
    /// The file's beginning.
    pub(crate) const START: Self = Self::File(0..0);
}

/// Collects mistakes and warnings while a scenario is read.
#[derive(Debug, Default)]
pub(crate) struct Log {
    mistakes: Vec<Entry>,
    warnings: Vec<Entry>,
    /// Mistakes that were not kept because there are more than [`MOST_KEPT`].
    left_off: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    place: Place,
    key: String,
    message: String,
    help: Option<String>,
}

impl Entry {
    /// Whether it says what `other` says. A shorthand is read twice: `path.up.loss = 5`, and as
    /// `path.up.loss.rate`.
    fn tells(&self, other: &Self) -> bool {
        let is_within = |key: &str, above: &str| {
            key.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        (&self.place, &self.message) == (&other.place, &other.message)
            && (is_within(&other.key, &self.key) || is_within(&self.key, &other.key))
    }
}

impl Log {
    /// Records a mistake, unless the same is recorded already (cells of a sweep share most of their values).
    pub(crate) fn mistake(
        &mut self,
        place: &Place,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let entry = Entry { place: place.clone(), key: key.to_owned(), message: message.into(), help };
        if self.mistakes.iter().any(|known| known.tells(&entry)) {
            return;
        }
        if self.mistakes.len() < MOST_KEPT {
            self.mistakes.push(entry);
        } else {
            self.left_off += 1;
        }
    }

    /// Records what is allowed but probably not meant.
    pub(crate) fn warning(&mut self, place: &Place, key: &str, message: impl Into<String>) {
        let entry = Entry { place: place.clone(), key: key.to_owned(), message: message.into(), help: None };
        if self.warnings.len() < MOST_KEPT && !self.warnings.contains(&entry) {
            self.warnings.push(entry);
        }
    }

    /// Whether no mistake was made.
    pub(crate) const fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Whether mistakes beyond `MOST_KEPT` were left off, so that the search for more can stop.
    pub(crate) const fn is_full(&self) -> bool {
        self.left_off > 0
    }

    /// The mistakes and the warnings, placed. `options` are the command-line options that [`Place::Option`]
    /// counts.
    pub(crate) fn finish(self, source: &Source, options: &[String]) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let lines = Lines::new(&source.text);
        let place = |entries: Vec<Entry>| {
            let mut list: Vec<_> = entries.into_iter().map(|entry| lines.place(entry, options)).collect();
            list.sort_by_key(|diagnostic| (diagnostic.option.is_some(), diagnostic.span.start));
            list
        };
        let mut mistakes = place(self.mistakes);
        // If the syntax of a line is wrong (a mistake without a key), the other mistakes found in that line
        // mean nothing.
        let broken: BTreeSet<_> = mistakes.iter().filter(|d| d.key.is_empty()).map(|d| d.line).collect();
        mistakes.retain(|d| d.key.is_empty() || d.option.is_some() || !broken.contains(&d.line));
        if self.left_off > 0 {
            let message = format!("these are the first {MOST_KEPT} mistakes; there are more");
            mistakes.push(
                lines.place(Entry { place: Place::START, key: String::new(), message, help: None }, options),
            );
        }
        (mistakes, place(self.warnings))
    }
}

/// Where each line begins.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = core::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    fn place(&self, entry: Entry, options: &[String]) -> Diagnostic {
        let Entry { place, key, message, help } = entry;
        match place {
            Place::File(span) => {
                let span = self.on_boundaries(span);
                let line = self.starts.partition_point(|start| *start <= span.start);
                let begin = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
                let column = self.text.get(begin..span.start).map_or(0, |before| before.chars().count()) + 1;
                Diagnostic { span, line, column, option: None, key, message, help }
            }
            Place::Option(number) => {
                let option = Some(options.get(number).cloned().unwrap_or_default());
                Diagnostic { span: 0..0, line: 0, column: 0, option, key, message, help }
            }
        }
    }

    /// `span` within the text, widened to whole characters.
    fn on_boundaries(&self, span: Range<usize>) -> Range<usize> {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = span.end.clamp(start, self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        start..end
    }
}

/// How many mistakes are reported at once.
const MOST_KEPT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(text: &str, places: &[Place]) -> Vec<Diagnostic> {
        let mut log = Log::default();
        for (number, place) in places.iter().enumerate() {
            log.mistake(place, "key", format!("mistake {number}"), None);
        }
        log.finish(&Source::new("file.toml", text), &["--set a=1".to_owned()]).0
    }

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let list = finish("a = 1\nµß = 2\n", &[Place::File(11..12), Place::File(0..1), Place::File(99..120)]);
        let places: Vec<_> = list.iter().map(|d| (d.line, d.column)).collect();
        assert_eq!(places, [(1, 1), (2, 4), (3, 1)]);
    }

    #[test]
    fn a_span_inside_a_character_is_widened() {
        let list = finish("µ", &[Place::File(1..1)]);
        assert_eq!((list[0].span.clone(), list[0].column), (0..2, 1));
    }

    #[test]
    fn a_mistake_in_an_option_names_the_option() {
        let diagnostics = Diagnostics { source: "f".into(), list: finish("", &[Place::Option(0)]) };
        assert_eq!(diagnostics.to_string(), "--set a=1: key: mistake 0");
    }

    #[test]
    fn the_same_mistake_is_told_once_and_a_flood_is_cut() {
        let mut log = Log::default();
        for number in 0..300 {
            for _ in 0..2 {
                log.mistake(&Place::START, "", format!("{number}"), None);
            }
        }
        assert!(log.is_full());
        let list = log.finish(&Source::new("f", ""), &[]).0;
        assert_eq!(list.len(), MOST_KEPT + 1);
        assert!(list.last().unwrap().message.contains("there are more"));
    }
}
