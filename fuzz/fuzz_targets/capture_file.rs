//! Any bytes as a capture of another program.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| talkpath_commands::fuzzing::capture(bytes));
