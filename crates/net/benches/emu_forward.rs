//! How many packets of 160 B the emulated arena carries on a core of its own: `cargo bench -p talkpath-net --bench emu_forward`.

use talkpath_net::emu::measure_forwarding;
use talkpath_units::{Bytes, Duration};

fn main() {
    for size in [160, 1400] {
        match measure_forwarding(Bytes::new(size), Duration::from_secs(3)) {
            Ok(found) => println!(
                "{size} B: {:.0} packets/s of the emulator's processor time, {:.0} packets/s of the wall clock ({:.0} % of a core), {} dropped before it",
                found.packets_per_cpu_second(),
                found.packets as f64 / found.wall.as_secs_f64(),
                100.0 * found.cpu.as_secs_f64() / found.wall.as_secs_f64(),
                found.dropped
            ),
            Err(why) => println!("SKIPPED: {why}"),
        }
    }
}
