//! Wires that repeat and damage packets, and queues with classes, over real sockets. Each run is replayed.

use talkpath_emu::replay;
use talkpath_measure::{DropCause, Fate, MessageRecord};

use crate::support::quiet::undisturbed;
use crate::support::{Ran, run};

/// A call of 50 messages a second over 1 Mb/s and 10 ms, for 3 s, with these keys of its uplink and `more`.
fn call(keys: &str, flow_keys: &str, more: &str) -> Option<Ran> {
    run(&format!(
        "name = \"wires\"\nduration = \"3 s\"\n\
         [path]\nup = {{ rate = \"1 Mbps\", delay = \"10 ms\", {keys} }}\ndown = {{ rate = \"1 Mbps\", delay = \"10 ms\" }}\n\
         [flow.call]\ntransport = \"udp\"\n{flow_keys}\n\
         workload = {{ kind = \"voice\", rtp = false, codec = \"g711\" }}\n{more}"
    ))
}

#[test]
fn a_host_gets_each_copy_of_a_repeated_datagram_and_the_replay_agrees() {
    undisturbed(|| {
        let Some(ran) = call("duplicate = 1.0", "", "") else { return };
        let rows = &ran.flow("call").forward.messages;
        assert!(rows.iter().all(|row| (row.fate, row.copies) == (Fate::Delivered, 2)), "{rows:?}");
        let replayed = replay(&ran.log, &ran.scenario).unwrap();
        assert_eq!((replayed.repeated, replayed.departed), (replayed.arrivals, 2 * replayed.arrivals));
    });
}

#[test]
fn the_kernel_discards_a_damaged_datagram_and_its_record_says_why() {
    undisturbed(|| {
        let Some(ran) = call("damage = 0.2", "", "") else { return };
        let rows = &ran.flow("call").forward.messages;
        let is_damaged =
            |row: &&MessageRecord| (row.fate, row.drop_cause) == (Fate::Missing, Some(DropCause::Damage));
        let damaged = rows.iter().filter(is_damaged).count() as u64;
        let delivered = rows.iter().filter(|row| row.fate == Fate::Delivered).count() as u64;
        assert_eq!(damaged + delivered, rows.len() as u64, "{rows:?}");
        // Binomial, four standard errors. The last message may be beyond the window of the link.
        assert!((10..=50).contains(&damaged), "{damaged}");
        assert!((damaged - 1..=damaged).contains(&ran.link("up").damaged), "{:?}", ran.link("up"));
        replay(&ran.log, &ran.scenario).unwrap();
    });
}

#[test]
fn a_call_whose_packets_bear_the_dscp_of_the_first_class_passes_a_full_queue() {
    undisturbed(|| {
        let queue = "queue = { kind = \"priority\", classes = [{ dscp = [\"EF\"] }] }";
        let burst = "[flow.burst]\ntransport = \"udp\"\nworkload = { kind = \"burst\", count = 250, size = \"1200 B\" }\n";
        let slowest = |dscp: &str| {
            let ran = call(queue, dscp, burst)?;
            replay(&ran.log, &ran.scenario).unwrap();
            let rows = &ran.flow("call").forward.messages;
            let delay = |row: &MessageRecord| Some(row.received?.since(row.due).as_millis_f64());
            rows.iter().filter_map(delay).max_by(f64::total_cmp)
        };
        let (Some(favoured), Some(plain)) = (slowest("dscp = \"EF\""), slowest("")) else { return };
        // The burst takes 2.4 s. The call waits for one packet of it, 9.8 ms, and a machine may be late.
        assert!(favoured < 100.0 && plain > 1000.0, "{favoured} {plain}");
    });
}
