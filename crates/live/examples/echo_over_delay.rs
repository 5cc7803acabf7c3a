//! Round trips of a voice echo over the kernel's UDP and TCP, with one write a message and one a read, over a
//! bridge that only delays: what the simulator's Nagle must agree with. Needs root.
//!
//! ```text
//! cargo run --release -p talkpath-live --example echo_over_delay -- [SECONDS]
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::bridge::{Bridge, FAR, Impairment};
use support::{echo, run, scenario, voice};
use talkpath_live::{ServeOptions, Server};
use talkpath_measure::FlowRecord;
use talkpath_model::EchoWrite;
use talkpath_units::{Duration, Instant};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(20);
    println!(
        "{:>7}  {:<12} {:<12} {:>9} {:>9} {:>8} {:>8}",
        "RTT", "transport", "echo_write", "p50 ms", "p90 ms", "p50/RTT", "p90/RTT"
    );
    for rtt_ms in [10, 30, 100, 230] {
        if let Err(why) = table(rtt_ms, seconds) {
            eprintln!("not possible here: {why}");
            return;
        }
    }
}

/// One round-trip time: six calls side by side, which share nothing but the bridge.
fn table(rtt_ms: u64, seconds: u64) -> Result<(), String> {
    let bridge = Bridge::new(Impairment::delay(Duration::from_micros(rtt_ms * 500)))?;
    let address: SocketAddr = format!("{FAR}:7160").parse().map_err(|_| "address")?;
    let stop = Arc::new(AtomicBool::new(false));
    let served = bridge.far.start({
        let stop = Arc::clone(&stop);
        move || {
            Server::bind(ServeOptions { bind: vec![address], ..ServeOptions::default() })
                .map(|server| server.run(&stop))
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut flows = Vec::new();
    for transport in ["udp", "tcp", "tcp-nodelay"] {
        for write in [EchoWrite::PerMessage, EchoWrite::PerRead] {
            let mut flow = echo(voice(&format!("{transport} {write:?}"), transport), write);
            flow.start = (Duration::ZERO, Duration::from_millis(200));
            flows.push(flow);
        }
    }
    let run_of = scenario(seconds * 1000, flows);
    let record = bridge.near.run(move || run(address, &run_of)).map_err(|error| error.to_string())?;
    stop.store(true, Ordering::Relaxed);
    let _ = served.recv();
    for flow in &record.flows {
        let (transport, write) = flow.info.name.split_once(' ').unwrap_or_default();
        let trips = round_trips(flow, Instant::from_secs(seconds / 4));
        let at = |percent: usize| trips[(trips.len() * percent).div_ceil(100).max(1) - 1];
        let of_rtt = |value: f64| value / rtt_ms as f64;
        println!(
            "{rtt_ms:>4} ms  {transport:<12} {write:<12} {:>9.2} {:>9.2} {:>8.2} {:>8.2}",
            at(50),
            at(90),
            of_rtt(at(50)),
            of_rtt(at(90))
        );
    }
    record.warnings.iter().for_each(|warning| println!("  warning: {warning}"));
    Ok(())
}

/// Milliseconds from due to the echo's read, in order of size, of what was due after `warm_up`.
fn round_trips(flow: &FlowRecord, warm_up: Instant) -> Vec<f64> {
    let mut due = std::collections::BTreeMap::new();
    due.extend(flow.forward.messages.iter().filter(|row| row.due >= warm_up).map(|row| (row.seq, row.due)));
    let echoes = flow.echo.iter().flat_map(|leg| &leg.messages);
    let mut trips: Vec<f64> =
        echoes.filter_map(|row| Some(row.received?.since(*due.get(&row.seq)?).as_millis_f64())).collect();
    trips.sort_by(f64::total_cmp);
    trips
}
