//! Writes the messages of the TOML parser in the words that scenario files have for the same mistakes. The
//! parser names types of this program, such as `u64`, which a user does not know.

/// A message of the parser in other words.
#[derive(Default)]
pub(crate) struct Reworded {
    /// The key that the mistake is about. It is empty if the mistake is about a value.
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Rewords a message of the parser. A message of an unknown kind stays as it is.
pub(crate) fn reworded(message: &str) -> Reworded {
    let line = message.lines().next().unwrap_or(message);
    if let Some(UnknownName { name, expected }) = unknown_name(line, "unknown field ") {
        let help = match nearest(name, &expected) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known keys: {}", expected.join(", ")),
        };
        return Reworded { key: name.to_owned(), message: "unknown key".to_owned(), help: Some(help) };
    }
    if let Some(name) = line.strip_prefix("missing field ") {
        let key = name.trim_matches('`').to_owned();
        return Reworded { key, message: "missing".to_owned(), help: None };
    }
    Reworded { message: value_message(line), ..Reworded::default() }
}

/// Rewords a message about a value.
fn value_message(line: &str) -> String {
    if let Some(UnknownName { name, expected }) = unknown_name(line, "unknown variant ") {
        return format!("found \"{name}\", expected one of {}", expected.join(", "));
    }
    if let Some((found, expected)) = found_and_expected(line, "invalid type: ") {
        return format!("found {}, expected {}", type_in_words(found), type_in_words(expected));
    }
    if let Some((found, expected)) = found_and_expected(line, "invalid value: ") {
        // The parser writes the kind of the value, then the value in back quotes: "integer `-1`".
        let value = found.split('`').nth(1).unwrap_or(found);
        return format!("found {value}, expected {}", type_in_words(expected));
    }
    if let Some(enum_name) = line.strip_prefix("data did not match any variant of untagged enum ") {
        return format!("expected {}", type_in_words(enum_name));
    }
    line.to_owned()
}

/// A name that the parser does not know, and the names that it expected.
struct UnknownName<'a> {
    name: &'a str,
    expected: Vec<&'a str>,
}

/// Parses a message such as "unknown field `x`, expected `set` or `quick`".
fn unknown_name<'a>(line: &'a str, prefix: &str) -> Option<UnknownName<'a>> {
    let (name, expected) = line.strip_prefix(prefix)?.strip_prefix('`')?.split_once('`')?;
    // The names stand between back quotes, so they are every second part.
    Some(UnknownName { name, expected: expected.split('`').skip(1).step_by(2).collect() })
}

/// Parses a message such as "invalid type: string, expected u64".
fn found_and_expected<'a>(line: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(prefix)?.split_once(", expected ")
}

/// Returns what a user calls a type of this program.
fn type_in_words(name: &str) -> &str {
    match name {
        "u64" | "u32" => "a whole number, 0 or more",
        "f64" => "a number",
        "a sequence" | "sequence" => "a list",
        "a map" | "map" => "a table",
        "a tuple of size 2" => "a list of two values",
        "OneOrMany" => "a path or a list of paths",
        "Within" => "a number in the metric's unit, or a share such as \"3%\"",
        "OperandEntry" => "a cell's name, or a table with `cell` and `metric`",
        "ExpectedEntry" => "a verdict, or a table with one for each arena",
        name if name.starts_with("struct ") => "a table",
        name => name,
    }
}

/// A misspelt name may differ from the name that was meant by this many letters. We chose 2 because swapping
/// two letters, the most frequent slip, changes two.
const MAX_DISTANCE: usize = 2;

/// Returns the name that was probably meant.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let nearest = known.iter().copied().min_by_key(|known_name| (distance(name, known_name), *known_name))?;
    (distance(name, nearest) <= MAX_DISTANCE).then_some(nearest)
}

/// Returns the number of letters to change, add or remove so that `a` becomes `b` (Levenshtein, 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // `row[n]` is the distance of the letters of `a` so far from the first `n` letters of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in b.iter().enumerate() {
            let with_change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = with_change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str) -> String {
        let Reworded { key, message, help } = reworded(message);
        format!("{key}: {message} ({})", help.unwrap_or_default())
    }

    #[test]
    fn mistakes_of_form_are_written_in_the_words_of_scenarios() {
        assert_eq!(
            text("unknown field `yeer`, expected one of `title`, `year`"),
            "yeer: unknown key (did you mean `year`?)"
        );
        assert_eq!(
            text("unknown field `x`, expected `set` or `quick`"),
            "x: unknown key (known keys: set, quick)"
        );
        assert_eq!(
            text("unknown variant `ems`, expected `sim` or `emu`"),
            ": found \"ems\", expected one of sim, emu ()"
        );
        assert_eq!(text("missing field `title`"), "title: missing ()");
        assert_eq!(
            text("invalid type: string \"six\", expected u64"),
            ": found string \"six\", expected a whole number, 0 or more ()"
        );
        assert_eq!(
            text("invalid value: integer `-1`, expected u64"),
            ": found -1, expected a whole number, 0 or more ()"
        );
        assert_eq!(
            text("data did not match any variant of untagged enum OneOrMany"),
            ": expected a path or a list of paths ()"
        );
    }
}
