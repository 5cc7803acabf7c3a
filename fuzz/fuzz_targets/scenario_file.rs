//! Any text as a scenario file: it is read, or its mistakes are told; nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use talkpath_scenario::{Options, Source, load};

fuzz_target!(|text: &str| {
    let source = Source { name: "fuzz.toml".to_owned(), text: text.to_owned() };
    if let Err(mistakes) = load(&source, &Options::default()) {
        assert!(!mistakes.list.is_empty());
        let _ = mistakes.to_string();
    }
});
