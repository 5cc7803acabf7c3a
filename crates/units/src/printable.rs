//! Words that another host wrote, made fit for a terminal and a log.

/// The first `max` characters of `text`, with those escaped that would move a cursor, break a line or turn
/// the direction of writing: `\u{1b}[2J`. An escape that does not fit whole is left out, and all after it.
pub fn printable(text: &str, max: usize) -> String {
    let (mut shown, mut left) = (String::new(), max);
    for c in text.chars() {
        let escape = c.escape_debug();
        let width = if is_printable(c) { 1 } else { escape.len() };
        let Some(rest) = left.checked_sub(width) else { break };
        left = rest;
        if is_printable(c) { shown.push(c) } else { shown.extend(escape) }
    }
    shown
}

/// Whether `c` is neither a control character, a separator of lines, nor one of Unicode's Bidi_Control, which
/// make a text read otherwise than it is stored.
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_all_else_stays() {
        let text = "it's \u{1b}[2Jover\r\n\0flow \u{202e}\u{7f}\u{9b}";
        assert_eq!(printable(text, 100), r"it's \u{1b}[2Jover\r\n\0flow \u{202e}\u{7f}\u{9b}");
        let text = r#"C:\a "naïve" nai\u{308}ve €"#;
        assert_eq!(printable(text, 100), text);
        assert_eq!(printable("nai\u{308}ve", 100), "nai\u{308}ve", "a combining mark is no control");
    }

    #[test]
    fn no_more_than_max_characters_are_shown_and_no_half_escape() {
        assert_eq!(printable("abcdef", 3), "abc");
        assert_eq!(printable("ab\u{1b}c", 7), "ab");
        assert_eq!(printable("ab\u{1b}c", 8), r"ab\u{1b}");
    }
}
