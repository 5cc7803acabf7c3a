//! Just enough of Rust's grammar to see which items of its own crate a file uses, and which of its parts are
//! unsafe.
//!
//! The text is cut into identifiers and punctuation; comments, strings and what is only compiled for tests
//! are gone. On these tokens, `mod` and `use` declarations and paths are found. Left out: macros' definitions
//! and arguments are read like other code, names are not scoped (a `use` inside a function counts for the
//! whole file), and a module in braces belongs to the file around it.

/// An identifier, a number or one character of punctuation, and its line (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// A path, as written: `crate::a::B` has three segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
}

/// What a `use` brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The name in this file; `*` for all names.
    pub(crate) name: String,
    /// Whether other files can name it through this one.
    pub(crate) is_public: bool,
    pub(crate) path: Mention,
}

/// The tokens of `text`, without what `#[cfg(test)]` marks.
pub(crate) fn product_tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&tokens(text))
}

/// Modules that have files of their own: `mod name;`.
pub(crate) fn module_declarations(tokens: &[Token<'_>]) -> Vec<String> {
    let is_declaration = |three: &&[Token<'_>]| three[0].text == "mod" && three[2].text == ";";
    tokens.windows(3).filter(is_declaration).map(|three| three[1].text.to_owned()).collect()
}

/// Everything that `use` declarations bring in.
pub(crate) fn imports(tokens: &[Token<'_>]) -> Vec<Import> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "use" {
            let before = at.checked_sub(1).map(|before| tokens[before].text);
            // `pub use`, `pub(crate) use`.
            let is_public = matches!(before, Some("pub" | ")"));
            at = use_tree(tokens, at + 1, (&[], is_public), &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// The tokens that belong to no `use` declaration.
pub(crate) fn code<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut is_in_use = false;
    let mut kept = tokens.to_vec();
    kept.retain(|token| {
        is_in_use = token.text == "use" || is_in_use && token.text != ";";
        !is_in_use
    });
    kept
}

/// Paths of two segments and more in [`code`].
pub(crate) fn paths(tokens: &[Token<'_>]) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_name(tokens[at].text) && !follows_colons(tokens, at) {
            let line = tokens[at].line;
            let mut segments = vec![tokens[at].text.to_owned()];
            while is_colons(tokens, at + 1) && tokens.get(at + 3).is_some_and(|next| is_name(next.text)) {
                segments.push(tokens[at + 3].text.to_owned());
                at += 3;
            }
            if segments.len() > 1 {
                found.push(Mention { segments, line });
            }
        }
        at += 1;
    }
    found
}

/// The lines of blocks, functions, traits and implementations that are `unsafe`.
pub(crate) fn unsafe_lines(tokens: &[Token<'_>]) -> Vec<usize> {
    // `unsafe fn` without a name is a pointer's type.
    let opens = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let is_definition = |at: usize| {
        opens(at, "{")
            || opens(at, "impl")
            || opens(at, "trait")
            || opens(at, "extern")
            || opens(at, "fn") && !opens(at + 1, "(")
    };
    let marked =
        tokens.iter().enumerate().filter(|(at, token)| token.text == "unsafe" && is_definition(at + 1));
    marked.map(|(_, token)| token.line).collect()
}

/// Reads one tree of a `use` from `at` on, below `prefix`; returns the place at which it ends.
fn use_tree(
    tokens: &[Token<'_>],
    mut at: usize,
    (prefix, is_public): (&[String], bool),
    found: &mut Vec<Import>,
) -> usize {
    let mut segments = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = use_tree(tokens, at, (&segments, is_public), found);
                    if tokens.get(at).is_some_and(|token| token.text == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "*" => {
                let path = Mention { segments, line: token.line };
                found.push(Import { name: "*".to_owned(), is_public, path });
                return at + 1;
            }
            ":" => at += 1,
            name if is_name(name) => {
                // `use a::b::{self}` is `use a::b`.
                if name != "self" || segments.is_empty() {
                    segments.push(name.to_owned());
                }
                at += 1;
                if is_colons(tokens, at) {
                    continue;
                }
                let path = Mention { segments: segments.clone(), line: token.line };
                let mut name = segments.pop().unwrap_or_default();
                if tokens.get(at).is_some_and(|token| token.text == "as") {
                    name = tokens.get(at + 1).map(|token| token.text.to_owned()).unwrap_or_default();
                    at += 2;
                }
                found.push(Import { name, is_public, path });
                return at;
            }
            _ => return at + 1,
        }
    }
    at
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_') && text != "as"
}

fn is_colons(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at..at + 2).is_some_and(|two| two[0].text == ":" && two[1].text == ":")
}

fn follows_colons(tokens: &[Token<'_>], at: usize) -> bool {
    at >= 2 && is_colons(tokens, at - 2)
}

/// Leaves out each item that is marked `#[cfg(test)]`, and whatever other attributes it has.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens[at..].iter().map(|token| token.text).take(MARK.len()).eq(MARK);
        if marked {
            at = end_of_item(tokens, at + MARK.len());
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Past the `;`, the braces, or the comma after a field, that end the item at `at`.
fn end_of_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut depth = 0_usize;
    let mut is_field = true;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text {
            "fn" | "impl" | "struct" | "enum" | "trait" | "type" | "use" => is_field = false,
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    // `use a::{b};`
                    return at + usize::from(tokens.get(at).is_some_and(|next| next.text == ";"));
                }
            }
            ";" if depth == 0 => return at,
            "," if depth == 0 && is_field => return at,
            _ => {}
        }
    }
    at
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => character_or_lifetime(rest),
            _ if raw_string(rest).is_some() => raw_string(rest).unwrap_or(1),
            _ if first.is_alphanumeric() || first == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                found.push(Token { text: &rest[..length], line });
                length
            }
            _ => {
                if !first.is_whitespace() {
                    found.push(Token { text: &rest[..first.len_utf8()], line });
                }
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(here) = rest.get(at..) {
        let opens = here.starts_with("/*");
        if opens || here.starts_with("*/") {
            at += 2;
            depth = if opens { depth + 1 } else { depth - 1 };
            if depth == 0 {
                return at;
            }
        } else {
            let Some(next) = here.chars().next() else { break };
            at += next.len_utf8();
        }
    }
    rest.len()
}

/// The length of a string from its quote on.
fn string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a raw string with its prefix, if one begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let after = ["r", "br", "cr"].into_iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(rest.len() - body.len() + end)
}

fn character_or_lifetime(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match characters.next() {
        // The quote after an escape's own character ends the literal.
        Some((_, '\\')) => {
            rest.char_indices().skip(3).find(|(_, c)| *c == '\'').map_or(rest.len(), |(at, _)| at + 1)
        }
        _ => match characters.next() {
            Some((at, '\'')) => at + 1,
            // A lifetime: its name is a token without a meaning here.
            _ => 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        product_tokens(text).into_iter().map(|token| token.text).collect()
    }

    fn joined(mentions: impl IntoIterator<Item = Mention>) -> Vec<String> {
        mentions.into_iter().map(|mention| mention.segments.join("::")).collect()
    }

    #[test]
    fn comments_strings_and_characters_hold_no_tokens() {
        let text = "a // b\n/* c /* d */ e */ \"f \\\" g\" r#\"h\" i\"# b\"j\" '\"' '\\'' '{' k";
        assert_eq!(texts(text), ["a", "b", "k"], "the b is the prefix of a string");
        assert_eq!(texts("fn f<'a>(x: &'a str)").len(), 12);
    }

    #[test]
    fn what_is_compiled_for_tests_only_is_left_out() {
        let text = "a #[cfg(test)] mod tests { use b::{c}; } d #[cfg(test)] use e::{f}; g #[cfg(test)] #[path = \"h\"] mod i; j";
        assert_eq!(texts(text), ["a", "d", "g", "j"]);
        let text =
            "#[cfg(test)] pub(crate) fn a<A, B>(x: [u8; 4]) -> C { c } struct S { #[cfg(test)] a: u8, d }";
        assert_eq!(texts(text), ["struct", "S", "{", "d", "}"]);
    }

    #[test]
    fn trees_of_use_are_taken_to_pieces() {
        let tokens = product_tokens("pub(crate) use a::{b, c::{self, d as e}, f::*};\nuse crate::g;");
        let found = imports(&tokens);
        let names: Vec<_> = found.iter().map(|import| import.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "e", "*", "g"]);
        let paths = joined(found.iter().map(|import| import.path.clone()));
        assert_eq!(paths, ["a::b", "a::c", "a::c::d", "a::f", "crate::g"]);
        assert_eq!(found[4].path.line, 2);
        assert!(found[0].is_public && !found[4].is_public);
    }

    #[test]
    fn paths_are_found_outside_of_use() {
        let tokens = code(&product_tokens("use a::b; fn f() { crate::c::d(e::F::<g::H>::new()); x.y }"));
        assert_eq!(joined(paths(&tokens)), ["crate::c::d", "e::F", "g::H"]);
    }

    #[test]
    fn unsafe_blocks_functions_and_implementations_are_found_and_types_are_not() {
        let text =
            "unsafe { }\nunsafe fn f() {}\nunsafe impl S for T {}\ntype F = unsafe fn(u8);\n// unsafe {\nx";
        assert_eq!(unsafe_lines(&product_tokens(text)), [1, 2, 3]);
    }

    #[test]
    fn modules_with_files_are_those_that_end_in_a_semicolon() {
        assert_eq!(
            module_declarations(&product_tokens("mod a; pub mod b { } pub(crate) mod c;")),
            ["a", "c"]
        );
    }
}
