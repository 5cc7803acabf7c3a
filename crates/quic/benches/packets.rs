//! What a QUIC packet costs with and without encryption, in instructions.
//!
//! `cargo bench -p talkpath-quic --bench packets` prints a line a carry and protection. Instructions are
//! counted by callgrind; without valgrind the column says why it is empty. A packet's are the difference of
//! two runs of different length, so that set-up and handshake do not count; what a short run has beyond its
//! packets is the connection's. The link between the ends, which copies and sorts packets, is in them.

use std::process::Command;
use std::time::Duration;

use talkpath_quic::{Protection, configs};

#[path = "../tests/lab.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod lab;

use lab::{Carry, Lab};

/// The carry of a count of packets or so.
type Make = fn(u32) -> Carry;

const CARRIES: [(&str, Make); 3] = [
    ("datagrams of 160 B", Carry::Datagrams),
    ("one stream", |count| Carry::Stream(count as usize * 1_000)),
    ("a stream for each 160 B", Carry::StreamPerMessage),
];

const SHORT: u32 = 300;

fn main() {
    // `cargo test` runs benches too, with `--test`; there is nothing to check in a timing.
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    if let [_, flag, carry, protection, count] = arguments.as_slice()
        && flag == "--once"
    {
        let carry = CARRIES[carry.parse::<usize>().expect("an index")].1;
        let protection = if protection == "plain" { Protection::SizesOnly } else { Protection::Encrypted };
        println!("{}", packets(carry(count.parse().expect("a number")), protection));
        return;
    }
    println!("{:<26} {:<10} {:>14} {:>20}", "carry", "packets", "instr./packet", "instr. a connection");
    for (index, (name, _)) in CARRIES.iter().enumerate() {
        for protection in ["encrypted", "plain"] {
            let figures = [SHORT, 3 * SHORT].map(|count| instructions(index, protection, count));
            match figures {
                [Ok((cost, packets)), Ok((long_cost, long_packets))] => {
                    let each = (long_cost - cost) / (long_packets - packets);
                    let connection = cost - each * packets;
                    println!("{name:<26} {protection:<10} {each:>14.0} {connection:>20.0}");
                }
                [Err(why), _] | [_, Err(why)] => println!("{name:<26} {protection:<10} {why}"),
            }
        }
    }
}

/// Runs over a link that loses nothing; the packets of both ends.
fn packets(carry: Carry, protection: Protection) -> usize {
    let mut lab = Lab::new(configs(1, protection).expect("configurations"), 0.0, 1);
    lab.run(carry, Duration::from_secs(3_600));
    assert_eq!(lab.messages, carry.messages(), "all has arrived");
    lab.packets.len()
}

fn instructions(carry: usize, protection: &str, count: u32) -> Result<(f64, f64), String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(me)
        .args(["--once", &carry.to_string(), protection, &count.to_string()])
        .output()
        .map_err(|error| format!("no valgrind: {error}"))?;
    let packets = String::from_utf8_lossy(&out.stdout).trim().parse().map_err(|_| "no figure".to_owned())?;
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    let counted = log.lines().find_map(|line| line.split_once("Collected : "));
    let (_, counted) = counted.ok_or("no count")?;
    Ok((counted.trim().parse().map_err(|_| "no count".to_owned())?, packets))
}
