//! No input makes the reader panic, and what it accepts resolves to the same plan again.

use proptest::prelude::*;
use talkpath_scenario::{Options, Setting, Source, load};

const EXAMPLES: [&str; 4] = [
    include_str!("../../../scenarios/voice-beside-an-upload.toml"),
    include_str!("../../../scenarios/dumbbell.toml"),
    include_str!("../../../scenarios/sweep.toml"),
    include_str!("../../../scenarios/slow-receiver.toml"),
];

/// Reads `text`; checks that mistakes lie in it and that a plan's resolved form gives the same cells.
fn read(text: &str, options: &Options) {
    match load(&Source::new("f.toml", text), options) {
        Ok(plan) => {
            let again = load(&Source::new("scenario.toml", &*plan.resolved), &Options::default());
            let again = again.unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}\n{}", plan.resolved));
            assert_eq!(again.cells, plan.cells, "{text}\n{}", plan.resolved);
        }
        Err(mistakes) => {
            assert!(mistakes.iter().count() > 0);
            for mistake in mistakes.iter() {
                assert!(text.get(mistake.span.clone()).is_some(), "{mistake}");
                assert!(mistake.option.is_some() || (mistake.line >= 1 && mistake.column >= 1), "{mistake}");
                assert!(!mistake.message.is_empty());
            }
        }
    }
}

#[test]
fn every_prefix_of_an_example_is_read() {
    for text in EXAMPLES {
        for (end, _) in text.char_indices() {
            read(&text[..end], &Options::default());
        }
    }
}

#[test]
fn deep_and_wide_files_are_read() {
    let deep = "a.".repeat(2_000) + "b = 1\n";
    let wide: String = (0..20_000).map(|n| format!("key{n} = {n}\n")).collect();
    let flows: String =
        (0..2_000).map(|n| format!("[flow.f{n}]\ntransport = \"udp\"\nworkload = \"voice\"\n")).collect();
    read(&deep, &Options::default());
    read(&wide, &Options::default());
    read(&format!("duration = \"1 s\"\npath = \"lan\"\n{flows}"), &Options::default());
    read(&format!("[sweep]\n{}", "x.".repeat(70) + "y = [1]"), &Options::default());
}

/// Pieces that make most scenarios wrong in an interesting way.
const PIECES: [&str; 24] = [
    "0",
    "-1",
    "1e9",
    "nan",
    "\"\"",
    "\"1 s\"",
    "\"1 kB\"",
    "\"unlimited\"",
    "\"default\"",
    "[]",
    "{}",
    "true",
    "=",
    "\n",
    "[",
    "]",
    "\"",
    "kind",
    "{ from = \"1 ms\", step = \"1 ms\" }",
    "{n}",
    "[sweep]\n",
    "\"tcp\"",
    "\u{b5}",
    "18446744073709551615",
];

#[test]
fn a_link_table_without_links_is_told_of() {
    // Found by `any_option_is_read`: a refusal without a word.
    let options = Options { set: vec![Setting::new("link", "{}")], ..Options::default() };
    let mistakes =
        load(&Source::new("f.toml", EXAMPLES[1]), &options).expect_err("nothing lies between the hosts");
    assert!(mistakes.to_string().contains("expected `path`, or `link` tables"), "{mistakes}");
}

proptest! {
    #![proptest_config(talkpath_testing::properties(256))]

    #[test]
    fn random_text_is_read(text in "\\PC{0,200}") {
        read(&text, &Options::default());
    }

    #[test]
    fn random_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&String::from_utf8_lossy(&bytes), &Options::default());
    }

    #[test]
    fn an_example_with_pieces_in_the_wrong_place_is_read(
        example in 0..EXAMPLES.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..12, 0..PIECES.len()), 1..4),
    ) {
        let mut text: Vec<char> = EXAMPLES[example].chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        read(&text.into_iter().collect::<String>(), &Options::default());
    }

    #[test]
    fn any_option_is_read(
        example in 0..EXAMPLES.len(),
        key in prop::sample::select(vec![
            "path", "path.up", "path.up.loss", "path.up.rate.trace", "path.up.queue.limit", "flow.call", "flow.call.transport",
            "flow.call.transport.kind", "flow.call.transport.mss", "flow.transfer.count", "flow.call.start.from", "sweep",
            "sweep.path.up.delay", "sweep.path", "link", "link.wan.delay", "link.rx{n}.delay.step", "duration", "name", "",
            ".", "\"", "flow.call.workload", "flow.call.receiver.service",
        ]),
        value in prop::sample::select(PIECES.to_vec()),
    ) {
        read(EXAMPLES[example], &Options { set: vec![Setting::new(key, value)], ..Options::default() });
    }
}
