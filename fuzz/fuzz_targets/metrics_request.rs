//! Any bytes as a request for a monitor's metrics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| talkpath_commands::fuzzing::metrics_request(bytes));
