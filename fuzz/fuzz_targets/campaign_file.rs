//! Any text as a campaign's file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| talkpath_commands::fuzzing::campaign_file(text));
