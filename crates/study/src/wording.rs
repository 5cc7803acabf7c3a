//! Mistakes of form in the words that scenarios have for them, instead of those of the program that reads
//! TOML.

/// The key that a mistake is about (empty if it is about a value), what is wrong, and what would be right.
pub(crate) fn reworded(message: &str) -> (String, String, Option<String>) {
    let line = message.lines().next().unwrap_or(message);
    if let Some((name, known)) = unknown(line, "unknown field ") {
        let known = names(known);
        let help = match nearest(&name, &known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known keys: {}", known.join(", ")),
        };
        return (name, "unknown key".to_owned(), Some(help));
    }
    if let Some((name, known)) = unknown(line, "unknown variant ") {
        return (
            String::new(),
            format!("found \"{name}\", expected one of {}", names(known).join(", ")),
            None,
        );
    }
    if let Some(name) = line.strip_prefix("missing field ") {
        return (name.trim_matches('`').to_owned(), "missing".to_owned(), None);
    }
    if let Some((found, expected)) =
        line.strip_prefix("invalid type: ").and_then(|it| it.split_once(", expected "))
    {
        return (String::new(), format!("found {}, expected {}", kind(found), kind(expected)), None);
    }
    if let Some((found, expected)) =
        line.strip_prefix("invalid value: ").and_then(|it| it.split_once(", expected "))
    {
        let found = found.split('`').nth(1).unwrap_or(found);
        return (String::new(), format!("found {found}, expected {}", kind(expected)), None);
    }
    if let Some(name) = line.strip_prefix("data did not match any variant of untagged enum ") {
        return (String::new(), format!("expected {}", kind(name)), None);
    }
    (String::new(), line.to_owned(), None)
}

/// The name between back quotes after `prefix`, and the rest of the line.
fn unknown<'a>(line: &'a str, prefix: &str) -> Option<(String, &'a str)> {
    let (name, rest) = line.strip_prefix(prefix)?.strip_prefix('`')?.split_once('`')?;
    Some((name.to_owned(), rest))
}

/// The words between back quotes.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A type of the program in the words of TOML.
fn kind(word: &str) -> &str {
    match word {
        "u64" | "u32" => "a whole number, 0 or more",
        "f64" => "a number",
        "a sequence" | "sequence" => "a list",
        "a map" | "map" => "a table",
        "a tuple of size 2" => "a list of two values",
        "OneOrMany" => "a path or a list of paths",
        "Within" => "a number in the metric's unit, or a share such as \"3%\"",
        "OperandEntry" => "a cell's name, or a table with `cell` and `metric`",
        "ExpectedEntry" => "a verdict, or a table with one for each arena",
        word if word.starts_with("struct ") => "a table",
        word => word,
    }
}

/// The name that was probably meant.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().copied().map(|it| (distance(name, it), it)).filter(|it| it.0 <= FAR).min().map(|it| it.1)
}

/// Letters to change, add or take away (Levenshtein, 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, letter) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = index + 1;
        for (column, other) in b.iter().enumerate() {
            let changed = before + usize::from(letter != *other);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

/// Letters by which a misspelt name may differ. Chosen.
const FAR: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str) -> String {
        let (key, message, help) = reworded(message);
        format!("{key}: {message} ({})", help.unwrap_or_default())
    }

    #[test]
    fn mistakes_of_form_are_told_in_the_words_of_scenarios() {
        assert_eq!(
            told("unknown field `yeer`, expected one of `title`, `year`"),
            "yeer: unknown key (did you mean `year`?)"
        );
        assert_eq!(
            told("unknown field `x`, expected `set` or `quick`"),
            "x: unknown key (known keys: set, quick)"
        );
        assert_eq!(
            told("unknown variant `ems`, expected `sim` or `emu`"),
            ": found \"ems\", expected one of sim, emu ()"
        );
        assert_eq!(told("missing field `title`"), "title: missing ()");
        assert_eq!(
            told("invalid type: string \"six\", expected u64"),
            ": found string \"six\", expected a whole number, 0 or more ()"
        );
        assert_eq!(
            told("invalid value: integer `-1`, expected u64"),
            ": found -1, expected a whole number, 0 or more ()"
        );
        assert_eq!(
            told("data did not match any variant of untagged enum OneOrMany"),
            ": expected a path or a list of paths ()"
        );
    }
}
