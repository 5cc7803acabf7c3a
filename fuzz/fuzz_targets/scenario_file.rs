//! Any text as the file of a scenario, and of a path alone. It is read, or its mistakes are reported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use talkpath_scenario::{Options, Source, load};

fuzz_target!(|text: &str| {
    for source in [Source::new("fuzz.toml", text), Source::path("fuzz.toml", text)] {
        if let Err(mistakes) = load(&source, &Options::default()) {
            assert!(!mistakes.list.is_empty());
            let _ = mistakes.to_string();
        }
    }
});
