//! Any text as the trace of a link: `r` before it of its rate, `l` of its loss, else of its delay.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| talkpath_commands::fuzzing::trace(text));
