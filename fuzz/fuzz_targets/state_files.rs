//! Any bytes as parts/plan.json, a repetition that was kept, and the plan, journal and uploads of a campaign.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| talkpath_commands::fuzzing::state_files(bytes));
