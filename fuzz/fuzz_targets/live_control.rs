//! Bytes on a live host's control connection, at a server and at a client, before the handshake and after it.
//!
//! The first byte says who hears them (`talkpath_live::fuzzing`); the rest is said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use talkpath_fuzz::MACHINES;

fuzz_target!(|bytes: &[u8]| talkpath_live::fuzzing::control(bytes, MACHINES));
