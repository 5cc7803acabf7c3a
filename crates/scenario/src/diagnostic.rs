//! Collects the mistakes and the warnings of a scenario, each with its place.
//!
//! - A *mistake* has a message, "found ..., expected ...", and sometimes a help. With a mistake nothing runs.
//! - A *warning* is about a value that is allowed but probably not meant.
//! - The *log* collects both while a scenario is read.
//! - A *place* is a range of bytes in the file, or a command-line option.
//!
//! Lines and columns count from 1, and columns count characters. They are computed once at the end. Begin to
//! read with [`Log`].

use core::fmt;
use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::quantity::Problem;

/// The text of a scenario, and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name as the user wrote it, for messages.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// The key whose table the text is. `None` if the text is a whole scenario.
    pub(crate) under: Option<&'static str>,
}

impl Source {
    /// Makes the source of a whole scenario. Messages call it `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), under: None }
    }

    /// Makes the source of a path alone, which has `up` and `down` at its top, as in the files of the
    /// presets, and `[[change]]` if its links change. Options must set the rest of the scenario.
    pub fn path(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { under: Some("path"), ..Self::new(name, text) }
    }
}

/// One mistake, or one warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The range of bytes in the file. It is empty at the beginning of the file for a key that is missing.
    pub span: Range<usize>,
    /// The line of the beginning of the range, from 1. It is 0 if the mistake is in an option.
    pub line: usize,
    /// The column of the beginning of the range in characters, from 1. It is 0 if the mistake is in an
    /// option.
    pub column: usize,
    /// The command-line option with the mistake, for example `--set KEY=VALUE`. `None` if the mistake is in
    /// the file.
    pub option: Option<String>,
    /// The path file with the mistake. `None` if the mistake is in the scenario's own file or in an option.
    pub included: Option<Arc<Source>>,
    /// The key with the mistake, from the root: `flow.call.transport`. It is empty if the mistake is in the
    /// whole file.
    pub key: String,
    /// The message: what was found and what was expected.
    pub message: String,
    /// A hint: the most similar known word, or what to do.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    /// Writes `LINE:COLUMN: KEY: MESSAGE (HELP)`. For a mistake in an option, the option replaces line and
    /// column. For a mistake in a path file, the file's name is before the line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(included) = &self.included {
            write!(f, "{}:", included.name)?;
        }
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

/// The mistakes of a scenario, in the order of the file. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The name of the file ([`Source::name`]).
    pub source: String,
    /// The mistakes.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Iterates over the mistakes, in the order of the file.
    pub fn iter(&self) -> core::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }
}

impl fmt::Display for Diagnostics {
    /// Writes one line for each mistake: `FILE:LINE:COLUMN: KEY: MESSAGE (HELP)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match (&diagnostic.option, &diagnostic.included) {
                (Some(_), _) | (_, Some(_)) => write!(f, "{diagnostic}")?,
                (None, None) => write!(f, "{}:{diagnostic}", self.source)?,
            }
        }
        Ok(())
    }
}

impl core::error::Error for Diagnostics {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A range of bytes in the file.
    File(Range<usize>),
    /// A range of bytes in the path file that the log includes.
    Included(Range<usize>),
    /// The command-line option with this index.
    Option(usize),
}

impl Place {
    /// The beginning of the file.
    pub(crate) const START: Self = Self::File(0..0);
}

/// Collects mistakes and warnings while a scenario is read.
#[derive(Debug, Default)]
pub(crate) struct Log {
    mistakes: Vec<LogEntry>,
    warnings: Vec<LogEntry>,
    /// The number of mistakes that were not kept, because [`MAX_MISTAKES`] mistakes were there.
    dropped_mistakes: usize,
    /// The path file that [`Place::Included`] is about.
    included: Option<Arc<Source>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LogEntry {
    place: Place,
    key: String,
    message: String,
    help: Option<String>,
}

impl LogEntry {
    /// Whether both entries are about the same mistake. A shorthand is read under two keys: `path.up.loss =
    /// 5` also as `path.up.loss.rate`.
    fn is_same_mistake(&self, other: &Self) -> bool {
        (&self.place, &self.message) == (&other.place, &other.message)
            && (is_within(&other.key, &self.key) || is_within(&self.key, &other.key))
    }
}

/// Whether `key` is the key `parent`, or one of its keys.
fn is_within(key: &str, parent: &str) -> bool {
    key.strip_prefix(parent).is_some_and(|tail| tail.is_empty() || tail.starts_with('.'))
}

impl Log {
    /// Records a mistake. A mistake that the log already has is not recorded again, because the cells of a
    /// sweep share most of their values.
    pub(crate) fn mistake(&mut self, place: &Place, key: impl fmt::Display, problem: impl Into<Problem>) {
        let Problem { message, help } = problem.into();
        let entry = LogEntry { place: place.clone(), key: key.to_string(), message, help };
        if self.mistakes.iter().any(|known| known.is_same_mistake(&entry)) {
            return;
        }
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.push(entry);
        } else {
            self.dropped_mistakes += 1;
        }
    }

    /// Records a warning about a value that is allowed but probably not meant.
    pub(crate) fn warning(&mut self, place: &Place, key: impl fmt::Display, message: impl Into<String>) {
        let entry =
            LogEntry { place: place.clone(), key: key.to_string(), message: message.into(), help: None };
        if self.warnings.len() < MAX_MISTAKES && !self.warnings.contains(&entry) {
            self.warnings.push(entry);
        }
    }

    /// Includes the path file of the scenario, for the places in it.
    pub(crate) fn include(&mut self, file: Arc<Source>) {
        self.included = Some(file);
    }

    /// Whether the log has a mistake of `key` or of one of its keys.
    pub(crate) fn has_mistake_in(&self, key: &str) -> bool {
        self.mistakes.iter().any(|mistake| is_within(&mistake.key, key))
    }

    /// Whether the log has no mistakes.
    pub(crate) const fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Whether the log has dropped mistakes, so that a search for more is useless.
    pub(crate) const fn is_full(&self) -> bool {
        self.dropped_mistakes > 0
    }

    /// Returns the mistakes and the warnings, with their lines and columns. `options` are the command-line
    /// options that [`Place::Option`] counts.
    pub(crate) fn finish(self, source: &Source, options: &[String]) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let included = self.included.clone();
        let lines = Lines::new(&source.text);
        let lines_of_path = Lines::new(included.as_ref().map_or("", |file| &file.text));
        let placed = |entries: Vec<LogEntry>| {
            let diagnostic = |entry: LogEntry| match entry.place {
                Place::Included(_) => {
                    Diagnostic { included: included.clone(), ..lines_of_path.place(entry, options) }
                }
                _ => lines.place(entry, options),
            };
            let mut list: Vec<_> = entries.into_iter().map(diagnostic).collect();
            list.sort_by_key(|diagnostic| {
                (diagnostic.option.is_some(), diagnostic.included.is_some(), diagnostic.span.start)
            });
            list
        };
        let mut mistakes = placed(self.mistakes);
        // A mistake without a key is a syntax error. Other mistakes in the same line mean nothing.
        let line_of = |mistake: &Diagnostic| (mistake.included.is_some(), mistake.line);
        let broken_lines: BTreeSet<_> =
            mistakes.iter().filter(|mistake| mistake.key.is_empty()).map(line_of).collect();
        mistakes.retain(|mistake| {
            mistake.key.is_empty() || mistake.option.is_some() || !broken_lines.contains(&line_of(mistake))
        });
        if self.dropped_mistakes > 0 {
            let message = format!("these are the first {MAX_MISTAKES} mistakes; there are more");
            mistakes.push(
                lines.place(
                    LogEntry { place: Place::START, key: String::new(), message, help: None },
                    options,
                ),
            );
        }
        (mistakes, placed(self.warnings))
    }
}

/// A text with the byte at which each line begins.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = core::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    fn place(&self, entry: LogEntry, options: &[String]) -> Diagnostic {
        let LogEntry { place, key, message, help } = entry;
        match place {
            Place::File(span) | Place::Included(span) => {
                let span = self.on_boundaries(span);
                let line = self.starts.partition_point(|start| *start <= span.start);
                let begin = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
                let column = self.text.get(begin..span.start).map_or(0, |before| before.chars().count()) + 1;
                Diagnostic { span, line, column, option: None, included: None, key, message, help }
            }
            Place::Option(number) => {
                let option = Some(options.get(number).cloned().unwrap_or_default());
                Diagnostic { span: 0..0, line: 0, column: 0, option, included: None, key, message, help }
            }
        }
    }

    /// Limits a range of bytes to the text, and widens it to whole characters.
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

/// We chose to report at most 100 mistakes, because nobody reads more at once.
const MAX_MISTAKES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(text: &str, places: &[Place]) -> Vec<Diagnostic> {
        let mut log = Log::default();
        for (number, place) in places.iter().enumerate() {
            log.mistake(place, "key", format!("mistake {number}"));
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
    fn the_same_mistake_is_reported_once_and_a_long_list_is_cut() {
        let mut log = Log::default();
        for number in 0..300 {
            for _ in 0..2 {
                log.mistake(&Place::START, "", format!("{number}"));
            }
        }
        assert!(log.is_full());
        let list = log.finish(&Source::new("f", ""), &[]).0;
        assert_eq!(list.len(), MAX_MISTAKES + 1);
        assert!(list.last().unwrap().message.contains("there are more"));
    }
}
