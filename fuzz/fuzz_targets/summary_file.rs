//! Any bytes as the summary.json of a run that `report` shows.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| talkpath_commands::fuzzing::summary(bytes));
