//! How many packets the emulated arena carries on a core of its own, beside mm-delay's loop in the same
//! minute: `cargo bench -p talkpath-live --bench emu_forward`.

use talkpath_emu::{Forwarding, Handover, measure_forwarding, measure_plain_loop};
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
        let ours = measure_forwarding(Bytes::new(size), time, handover);
        let plain = measure_plain_loop(Bytes::new(size), time, handover);
        match (ours, plain) {
            (Ok(ours), Ok(plain)) => {
                println!("{size} B, {handover:?}:");
                tell("emulator", &ours);
                tell("mm-delay's loop", &plain);
                println!(
                    "  ratio: {:.2} by processor time, {:.2} by the wall clock",
                    ours.packets_per_cpu_second() / plain.packets_per_cpu_second(),
                    per_second(&ours) / per_second(&plain)
                );
            }
            (Err(why), _) | (_, Err(why)) => println!("SKIPPED: {why}"),
        }
    }
}

fn per_second(found: &Forwarding) -> f64 {
    found.packets as f64 / found.wall.as_secs_f64()
}

fn tell(who: &str, found: &Forwarding) {
    println!(
        "  {who}: {:.0} packets/s of its processor time, {:.0} packets/s of the wall clock ({:.0} % of a core), {} dropped before it",
        found.packets_per_cpu_second(),
        per_second(found),
        100.0 * found.cpu.as_secs_f64() / found.wall.as_secs_f64(),
        found.dropped
    );
}
