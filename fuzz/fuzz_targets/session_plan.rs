//! Any text as the description of a session: a server with its limits refuses it, or has ends for its flows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use talkpath_fuzz::MACHINES;

fuzz_target!(|bytes: &[u8]| talkpath_live::fuzzing::session_plan(bytes, MACHINES));
