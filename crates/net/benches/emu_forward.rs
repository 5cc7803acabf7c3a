//! How many packets the emulated arena carries on a core of its own: `cargo bench -p talkpath-net --bench emu_forward`.

use talkpath_net::emu::{Handover, measure_forwarding};
use talkpath_units::{Bytes, Duration};

fn main() {
    // A test run of all targets only asks whether it works.
    let is_test = std::env::args().any(|word| word == "--test");
    let time = if is_test { Duration::from_millis(50) } else { Duration::from_secs(2) };
    for (size, handover) in [
        (160, Handover::SuperPackets),
        (160, Handover::Single),
        (1400, Handover::SuperPackets),
        (1400, Handover::Single),
    ] {
        match measure_forwarding(Bytes::new(size), time, handover) {
            Ok(found) => println!(
                "{size} B, {handover:?}: {:.0} packets/s of the emulator's processor time, {:.0} packets/s of the wall clock ({:.0} % of a core), {} dropped before it",
                found.packets_per_cpu_second(),
                found.packets as f64 / found.wall.as_secs_f64(),
                100.0 * found.cpu.as_secs_f64() / found.wall.as_secs_f64(),
                found.dropped
            ),
            Err(why) => println!("SKIPPED: {why}"),
        }
    }
}
