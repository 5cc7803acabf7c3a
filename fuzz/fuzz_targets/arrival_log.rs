//! Any bytes as the emulator's log of arrivals: it is replayed on the path of the scenario, or what is wrong
//! with it is said.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use talkpath_emu::{log_header, replay};
use talkpath_fuzz::scenario;
use talkpath_model::Scenario;

static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| scenario(include_str!("arrival_log.toml")));

fuzz_target!(|bytes: &[u8]| {
    let header = log_header(bytes);
    match replay(bytes, &SCENARIO) {
        Ok(report) => {
            assert!(header.is_ok());
            assert!(report.arrivals <= bytes.len() as u64);
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
