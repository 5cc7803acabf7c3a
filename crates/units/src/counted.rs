//! Counts in sentences: `1 packet`, `3 packets`.

/// `count` things, in words: `1 packet`, `3 packets`. `noun` is one of them, `packet`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", numbered(count, noun))
}

/// `noun` as it stands after the number `count`: in its plural, unless there is 1. Of several words the last
/// has the plural, by the rules of English: `reply`, `replies`; `echo`, `echoes`; `batch`, `batches`.
pub fn numbered(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { plural(noun) }
}

/// `once`, `2 times`.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The verb behind the number `count`.
pub const fn is_or_are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Whether two texts are the same, but that they begin with a noun that is singular in one and plural in the
/// other: `packet: no room` and `packets: no room`.
pub fn is_same_but_for_plural(a: &str, b: &str) -> bool {
    let parted = |text: &str| text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    let ((noun_a, rest_a), (noun_b, rest_b)) = (a.split_at(parted(a)), b.split_at(parted(b)));
    rest_a == rest_b && (noun_a == noun_b || plural(noun_a) == noun_b || plural(noun_b) == noun_a)
}

fn plural(noun: &str) -> String {
    let is_consonant = |c: char| c.is_ascii_alphabetic() && !"aeiou".contains(c);
    let before_last = noun.chars().rev().nth(1);
    let ends_after_consonant = before_last.is_some_and(is_consonant);
    match noun.chars().next_back() {
        Some('y') if ends_after_consonant => format!("{}ies", &noun[..noun.len() - 1]),
        Some('o') if ends_after_consonant => format!("{noun}es"),
        Some('s' | 'x' | 'z') => format!("{noun}es"),
        Some('h') if matches!(before_last, Some('c' | 's')) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!([counted(1_u64, "packet"), counted(0_usize, "packet")], ["1 packet", "0 packets"]);
        assert_eq!(counted(3_u32, "more link"), "3 more links");
    }

    #[test]
    fn plurals_are_those_of_english() {
        let plurals = ["reply", "day", "echo", "batch", "loss", "index"].map(|noun| numbered(2, noun));
        assert_eq!(plurals, ["replies", "days", "echoes", "batches", "losses", "indexes"]);
    }

    #[test]
    fn a_text_is_the_same_with_its_noun_in_singular_and_plural() {
        assert!(is_same_but_for_plural("packet: no room", "packets: no room"));
        assert!(is_same_but_for_plural("echoes", "echo") && is_same_but_for_plural("é", "é"));
        assert!(!is_same_but_for_plural("packet: no room", "packets: no memory"));
        assert!(!is_same_but_for_plural("packet", "message"));
    }
}
