//! The tree of a scenario: its keys and values, each with its place in the file.
//!
//! - A *node* is a value with its place. A table is a list of *entries*, each a key and its node.
//! - The *meaning* of a node is the value in the type of its key: a duration, a count, a word. The pass
//!   `check` notes it, and everything after that pass reads the meaning alone.
//!
//! Entries are in the order of the file. Numbers stay text, because only the key tells what they count. Begin
//! to read with [`Node`], and for the text of a file with [`parse`].

use talkpath_config::DelayedAck;
use talkpath_units::Duration;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Log, Place, Source};
use crate::quantity::{Amount, Problem, quote};
use crate::spec::{Kind, Variant};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
    /// The meaning of the value for its key. `None` before the pass `check`, and if the value is wrong.
    pub(crate) meaning: Option<Meaning>,
    /// Whether the value is the default of its key, so that the file does not have it.
    pub(crate) is_default: bool,
}

/// A value as TOML has it.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// An integer or a float, as the file writes it.
    Number(String),
    Flag(bool),
    /// A date or a time. No key takes one.
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// The meaning of a value for its key. The [`Kind`] of the key determines the variant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// A quantity.
    Amount(Amount),
    /// A word in the spelling of the key table. It is one of a choice, or stands in place of a quantity.
    Word(&'static str),
    /// A whole number.
    Count(u64),
    /// A number or a share.
    Number(f64),
    Flag(bool),
    /// The default of the transport's stack.
    StackDefault,
    /// The rule by which a receiver delays acknowledgements.
    DelayedAck(DelayedAck),
    /// A range from the first duration to the second.
    Range(Duration, Duration),
    /// A text or a list of names, which needs no conversion.
    AsWritten,
    /// A table that has the keys of this variant.
    Variant(&'static Variant),
    /// `{ from, step }`: the first copy of a flow has `from`, and each later copy has `by` more.
    Step {
        kind: &'static Kind,
        from: Amount,
        by: u64,
    },
}

/// A table, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The place of the key.
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Node {
    /// Makes a node without a meaning.
    pub(crate) const fn new(value: Value, place: Place) -> Self {
        Self { value, place, meaning: None, is_default: false }
    }

    /// Makes a node of a text, without a meaning.
    pub(crate) fn text(text: impl Into<String>, place: Place) -> Self {
        Self::new(Value::Text(text.into()), place)
    }

    /// Returns the table, or `None` if the value is something else.
    pub(crate) const fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the text, or `None` if the value is something else.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the names of a list, each with its place, or `None` if the list is wrong.
    pub(crate) fn names(&self) -> Option<impl Iterator<Item = (&str, &Place)>> {
        let Value::List(list) = &self.value else { return None };
        self.meaning?;
        Some(list.iter().filter_map(|item| Some((item.as_text()?, &item.place))))
    }

    /// Whether both nodes have the same value. Their places may differ.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Text(a), Value::Text(b)) | (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Date(a), Value::Date(b)) => a == b,
            (Value::Flag(a), Value::Flag(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
            }
            (Value::Table(a), Value::Table(b)) => {
                a.entries.len() == b.entries.len()
                    && a.entries
                        .iter()
                        .all(|entry| b.get(&entry.name).is_some_and(|node| node.is_same(&entry.node)))
            }
            _ => false,
        }
    }

    /// Gives the node and everything below it the same place.
    pub(crate) fn set_place(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.value {
            Value::List(list) => list.iter_mut().for_each(|node| node.set_place(place)),
            Value::Table(table) => {
                for entry in &mut table.entries {
                    entry.place = place.clone();
                    entry.node.set_place(place);
                }
            }
            Value::Text(_) | Value::Number(_) | Value::Flag(_) | Value::Date(_) => {}
        }
    }

    /// Describes the value for a message: `5`, `"20 ms"`, `a table`.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::Text(text) => quote(text),
            Value::Number(text) => text.chars().take(60).collect(),
            Value::Flag(flag) => flag.to_string(),
            Value::Date(text) => format!("the date {text}"),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Converts the value to JSON, for the record of a sweep.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) | Value::Date(text) => text.clone().into(),
            Value::Number(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(integer), _) => integer.into(),
                (_, Ok(float)) => float.into(),
                _ => text.clone().into(),
            },
            Value::Flag(flag) => (*flag).into(),
            Value::List(list) => list.iter().map(Self::to_json).collect(),
            Value::Table(table) => {
                let pairs = table.entries.iter().map(|entry| (entry.name.clone(), entry.node.to_json()));
                serde_json::Value::Object(pairs.collect())
            }
        }
    }
}

impl Table {
    pub(crate) fn with_key(name: &str, node: Node) -> Self {
        let mut table = Self::default();
        table.set(name, node);
        table
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the value of the key `name` for a change.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.node)
    }

    /// Sets the key `name`. A new key comes at the end.
    pub(crate) fn set(&mut self, name: &str, node: Node) {
        match self.get_mut(name) {
            Some(present) => *present = node,
            None => {
                let place = node.place.clone();
                self.entries.push(Entry { name: name.to_owned(), place, node });
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Node> {
        self.take(name).map(|entry| entry.node)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.name == name)?;
        Some(self.entries.remove(at))
    }
}

/// Splits a key at its points into names. A point between quotes does not split. Quotes around a name are
/// removed.
pub(crate) fn split(key: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let at_points = |letter: char| {
        is_quoted ^= letter == '"';
        letter == '.' && !is_quoted
    };
    key.split(at_points).map(|name| unquote(name.trim())).collect()
}

/// Returns the keys of a line of a sweep. A line that sets several keys together has commas between them.
pub(crate) fn linked_keys(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

fn unquote(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// The tree of a scenario's text.
pub(crate) struct Document {
    pub(crate) root: Table,
    /// Whether the text is valid TOML. If not, `root` has the parts that the parser could read.
    pub(crate) is_toml: bool,
}

/// Reads the text of a scenario. Returns `None` if the text is empty or too large.
pub(crate) fn document(source: &Source, log: &mut Log) -> Option<Document> {
    if source.text.len() > LARGEST_FILE {
        let message =
            format!("found {} bytes, expected a scenario of at most {LARGEST_FILE}", source.text.len());
        log.mistake(&Place::START, "", message);
        return None;
    }
    let mut root = parse(&source.text, log);
    let is_toml = log.is_clean();
    if let Some(key) = source.under {
        // The changes of a path are in its file, and the scenario has them at its top.
        let changes = root.remove(CHANGES);
        root = Table::with_key(key, Node::new(Value::Table(root), Place::START));
        if let Some(changes) = changes {
            root.set(CHANGES, changes);
        }
    }
    if is_toml && root.entries.is_empty() {
        let message =
            "found nothing; a scenario needs a `duration`, a `path` or `link` tables, and a [flow.NAME]";
        log.mistake(&Place::START, "", message);
        return None;
    }
    Some(Document { root, is_toml })
}

/// The key of a scenario that has the changes of its links.
pub(crate) const CHANGES: &str = "change";

/// Reads TOML text. Syntax errors go to `log`, and the tree has the parts that the parser could read.
pub(crate) fn parse(text: &str, log: &mut Log) -> Table {
    parse_at(text, &|span| Place::File(span), log)
}

/// Reads the text of the path file that the log includes ([`Log::include`]).
pub(crate) fn parse_included(text: &str, log: &mut Log) -> Table {
    parse_at(text, &|span| Place::Included(span), log)
}

fn parse_at(text: &str, place: &dyn Fn(core::ops::Range<usize>) -> Place, log: &mut Log) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let help = syntax_help(text, span.start);
        log.mistake(&place(span), "", Problem { message: error.message().to_owned(), help });
    }
    convert_table(table.get_ref(), place)
}

/// Whether a text has a path at its top, `up` or `down`, and nothing that only a scenario has.
pub fn has_path_alone(text: &str) -> bool {
    let root = parse(text, &mut Log::default());
    let has = |names: &[&str]| names.iter().any(|name| root.get(name).is_some());
    has(&["up", "down"]) && !has(&["path", "link", "flow", "duration"])
}

/// Reads one TOML value, for `--set` and for defaults. Returns `None` if the text is not a TOML value.
pub(crate) fn parse_value(text: &str, place: &Place) -> Option<Node> {
    if let Some(value) = plain_value(text) {
        return Some(Node::new(value, place.clone()));
    }
    let value = DeValue::parse(text).ok()?;
    Some(convert(value.get_ref(), place.clone(), &|_| place.clone()))
}

/// Reads a text without escapes, a short whole number or a flag without the TOML parser, because a large
/// sweep has millions of such defaults. Returns `None` for any other text.
fn plain_value(text: &str) -> Option<Value> {
    if let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        let is_plain =
            inner.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\'));
        return is_plain.then(|| Value::Text(inner.to_owned()));
    }
    match text {
        "true" => Some(Value::Flag(true)),
        "false" => Some(Value::Flag(false)),
        _ => {
            let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            let is_plain = is_number && (text == "0" || !text.starts_with('0'));
            is_plain.then(|| Value::Number(text.to_owned()))
        }
    }
}

/// Converts a table of the TOML parser, which sorts keys by name, to one in the order of the file.
fn convert_table(table: &DeTable<'_>, place: &dyn Fn(core::ops::Range<usize>) -> Place) -> Table {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    let entries = pairs.into_iter().map(|(key, value)| Entry {
        name: key.get_ref().to_string(),
        place: place(key.span()),
        node: convert(value.get_ref(), place(value.span()), place),
    });
    Table { entries: entries.collect() }
}

fn convert(value: &DeValue<'_>, at: Place, place: &dyn Fn(core::ops::Range<usize>) -> Place) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Value::Number(number.to_string()),
            Err(_) => Value::Number(integer.as_str().to_owned()),
        },
        DeValue::Float(float) => Value::Number(float.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(list) => {
            Value::List(list.iter().map(|item| convert(item.get_ref(), place(item.span()), place)).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, place)),
    };
    Node::new(value, at)
}

/// Returns a hint for a syntax error at the byte `at`. The most frequent error is a quantity without quotes.
fn syntax_help(text: &str, at: usize) -> Option<String> {
    let begin = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(begin..)?.lines().next()?;
    let (_, value) = line.split_once('=')?;
    let value = value.split('#').next()?.trim();
    if value.is_empty() {
        return Some("the value after `=` is missing".to_owned());
    }
    let is_bare =
        value.starts_with(|c: char| c.is_ascii_digit()) && value.ends_with(|c: char| c.is_ascii_alphabetic());
    (is_bare && value.len() < 30).then(|| format!("quantities are strings: \"{value}\""))
}

/// The largest scenario in bytes, both as a file and with its defaults written out. We chose 4 MiB because a
/// larger file is probably not a scenario. It is refused before it fills the memory.
pub const LARGEST_FILE: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_the_order_of_the_file() {
        let table = parse("z = 1\na = 2\n[y]\nd = 1\nc = 2\n[b]\n", &mut Log::default());
        let names: Vec<_> = table.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["z", "a", "y", "b"]);
    }

    #[test]
    fn what_is_read_without_the_parser_is_what_the_parser_reads() {
        let texts = ["\"0 s\"", "\"\"", "\"a b~\"", "true", "false", "0", "7", "123456789"];
        let others = [
            "\"",
            "\"a\"b\"",
            "\"\\u0041\"",
            "\"µ\"",
            "\"\t\"",
            "01",
            "1234567890",
            "0.5",
            "1_0",
            "True",
            "",
        ];
        for text in texts.into_iter().chain(others) {
            let parsed = DeValue::parse(text).ok();
            let parsed = parsed.map(|value| convert(value.get_ref(), Place::START, &|_| Place::START));
            let read = parse_value(text, &Place::START);
            assert_eq!(format!("{read:?}"), format!("{parsed:?}"), "{text}");
        }
        assert!(texts.iter().all(|text| plain_value(text).is_some()));
        assert!(others.iter().all(|text| plain_value(text).is_none()));
    }

    #[test]
    fn the_message_about_a_quantity_without_quotes_shows_the_quotes() {
        let mut log = Log::default();
        parse("rate = 1 Mbps\n", &mut log);
        let source = Source::new("f", "rate = 1 Mbps\n");
        let (list, _) = log.finish(&source, &[]);
        assert!(list[0].help.as_deref().unwrap().contains("\"1 Mbps\""), "{list:?}");
    }

    #[test]
    fn a_key_without_a_value_says_that_it_is_missing() {
        for text in ["duration = \nseed = 1\n", "duration = # later\n"] {
            let mut log = Log::default();
            parse(text, &mut log);
            let (list, _) = log.finish(&Source::new("f", text), &[]);
            assert_eq!(list[0].help.as_deref(), Some("the value after `=` is missing"), "{list:?}");
        }
    }

    #[test]
    fn endless_nesting_is_a_mistake_and_no_overflow() {
        for text in
            ["[".repeat(100_000), format!("a = {}", "[".repeat(100_000)), "a.".repeat(100_000) + "a = 1"]
        {
            let mut log = Log::default();
            parse(&text, &mut log);
            assert!(!log.is_clean());
        }
    }
}
