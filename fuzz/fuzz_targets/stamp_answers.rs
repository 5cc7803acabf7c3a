//! Any bytes as the answers of a STAMP reflector, at the sender.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| talkpath_live::fuzzing::stamp_answers(bytes));
