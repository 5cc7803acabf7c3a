//! The scenario as a tree in which every key and value knows where it came from, and what it means once it
//! has been read.
//!
//! The TOML reader sorts tables by key; here they are in the order of the file again. Numbers stay text
//! until somebody says what they count.

use talkpath_config::DelayedAck;
use talkpath_units::Duration;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Log, Place, Source};
use crate::quantity::{Amount, quote};
use crate::spec::{Kind, Variant};

/// A value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
    /// What the value means to its key. `None` before a pass has read the value, and if it is wrong.
    pub(crate) meaning: Option<Meaning>,
    /// Whether nobody wrote the value: it is its key's default.
    pub(crate) is_default: bool,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// An integer or a float, as written.
    Number(String),
    Flag(bool),
    /// A date or a time, which no key takes.
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// What a value means to its key. The key's [`Kind`] says which of these it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// A quantity.
    Amount(Amount),
    /// A word, as the key table spells it: one of a choice, or one in place of a quantity.
    Word(&'static str),
    /// A whole number.
    Count(u64),
    /// A number or a share.
    Number(f64),
    Flag(bool),
    /// What the transport's stack has of its own.
    OfStack,
    /// When a receiver acknowledges.
    DelayedAck(DelayedAck),
    /// From the one duration to the other.
    Range(Duration, Duration),
    /// A text or a list of names: the value itself.
    AsWritten,
    /// A table with the keys of this variant.
    Variant(&'static Variant),
    /// `{ from, step }`: `from` for the first copy, and `by` more for each that follows.
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
    /// A value that comes from `place`, not read yet.
    pub(crate) const fn new(value: Value, place: Place) -> Self {
        Self { value, place, meaning: None, is_default: false }
    }

    /// A text that comes from `place`.
    pub(crate) fn text(text: impl Into<String>, place: Place) -> Self {
        Self::new(Value::Text(text.into()), place)
    }

    /// The table, if it is one.
    pub(crate) const fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The names of a list that is right, each with its place.
    pub(crate) fn names(&self) -> Option<impl Iterator<Item = (&str, &Place)>> {
        let Value::List(list) = &self.value else { return None };
        self.meaning?;
        Some(list.iter().filter_map(|item| Some((item.as_text()?, &item.place))))
    }

    /// Whether the values are the same, wherever they come from.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Text(a), Value::Text(b)) | (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Date(a), Value::Date(b)) => a == b,
            (Value::Flag(a), Value::Flag(b)) => a == b,
            (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Value::Table(a), Value::Table(b)) => {
                a.entries.len() == b.entries.len()
                    && a.entries
                        .iter()
                        .all(|entry| b.get(&entry.name).is_some_and(|node| node.same(&entry.node)))
            }
            _ => false,
        }
    }

    /// Gives the whole tree one origin.
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

    /// What it is, for a message: `5`, `"20 ms"`, `a table`.
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

    /// The value as JSON, for a sweep's record.
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
    /// A table of one key.
    pub(crate) fn of(name: &str, node: Node) -> Self {
        let mut table = Self::default();
        table.set(name, node);
        table
    }

    /// The value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|entry| &entry.node)
    }

    /// Key and value of `name`.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The value of `name`, to be changed.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.node)
    }

    /// Puts `node` at `name`, in the place of what was there or at the end.
    pub(crate) fn set(&mut self, name: &str, node: Node) {
        match self.get_mut(name) {
            Some(old) => *old = node,
            None => {
                let place = node.place.clone();
                self.entries.push(Entry { name: name.to_owned(), place, node });
            }
        }
    }

    /// Takes the value of `name` out.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Node> {
        self.take(name).map(|entry| entry.node)
    }

    /// Takes key and value of `name` out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.name == name)?;
        Some(self.entries.remove(at))
    }
}

/// The names of `key`, split at its points. A point between quotes does not split; quotes around a name are
/// taken off.
pub(crate) fn split(key: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let at_points = |letter: char| {
        is_quoted ^= letter == '"';
        letter == '.' && !is_quoted
    };
    key.split(at_points).map(|name| unquote(name.trim())).collect()
}

fn unquote(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// A scenario's text as it was read.
pub(crate) struct Document {
    pub(crate) root: Table,
    /// Whether its syntax is right. If not, `root` is what could be understood.
    pub(crate) is_toml: bool,
}

/// The tree of a scenario; `None` if there is nothing to read.
pub(crate) fn document(source: &Source, log: &mut Log) -> Option<Document> {
    if source.text.len() > LARGEST_FILE {
        let message =
            format!("found {} bytes, expected a scenario of at most {LARGEST_FILE}", source.text.len());
        log.mistake(&Place::START, "", message, None);
        return None;
    }
    let mut root = parse(&source.text, log);
    let is_toml = log.is_clean();
    if let Some(key) = source.under {
        root = Table::of(key, Node::new(Value::Table(root), Place::START));
    }
    if is_toml && root.entries.is_empty() {
        let message =
            "found nothing; a scenario needs a `duration`, a `path` or `link` tables, and a [flow.NAME]";
        log.mistake(&Place::START, "", message, None);
        return None;
    }
    Some(Document { root, is_toml })
}

/// Reads TOML text; mistakes in its syntax go to `log`, and what could be understood is returned.
pub(crate) fn parse(text: &str, log: &mut Log) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let help = syntax_help(text, span.start);
        log.mistake(&Place::File(span), "", error.message(), help);
    }
    convert_table(table.get_ref(), &|span| Place::File(span))
}

/// Reads one TOML value, for `--set` and for defaults; `None` if it is none.
pub(crate) fn parse_value(text: &str, place: &Place) -> Option<Node> {
    if let Some(value) = plain_value(text) {
        return Some(Node::new(value, place.clone()));
    }
    let value = DeValue::parse(text).ok()?;
    Some(convert(value.get_ref(), place.clone(), &|_| place.clone()))
}

/// A text without escapes, a short whole number or a flag, for which no parser of TOML is needed: the
/// a large sweep has millions of defaults.
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

/// The commonest mistake is a quantity without its quotes.
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

/// The largest scenario, in bytes, as written and with its defaults. Chosen: anything larger is a wrong file,
/// refused before it fills the memory.
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
    fn a_quantity_without_quotes_is_told_about_them() {
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
