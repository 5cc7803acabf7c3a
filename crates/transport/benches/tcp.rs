//! What one segment costs: a bulk transfer between two ends, with nothing between them.
//!
//! A step is one segment sent, received, acknowledged where the policy says so, and read. Time moves a
//! microsecond a step, so that timers are set and cleared as in a run.

use std::hint::black_box;

use talkpath_config::{Role, Stack, TransportConfig};
use talkpath_transport::AnyTransport;
use talkpath_units::{Bytes, Duration, Ecn, Instant, Seed};
use talkpath_wire::{Message, Transport};

struct Bulk {
    ends: [AnyTransport; 2],
    now: Instant,
    data_packets: u64,
}

impl Bulk {
    fn new(config: &TransportConfig) -> Self {
        let end = |role| AnyTransport::new(config, role, Bytes::new(1500), Seed::new(1), None);
        let mut bulk =
            Self { ends: [end(Role::Active), end(Role::Passive)], now: Instant::ZERO, data_packets: 0 };
        for end in &mut bulk.ends {
            end.open(Instant::ZERO);
        }
        bulk
    }

    /// Everything that can move without the clock's help moves.
    fn turn(&mut self) {
        let before = self.data_packets;
        let writable = self.ends[0].writable().min(CHUNK);
        if writable > Bytes::ZERO {
            let message = Message { seq: 0, size: writable, due: self.now };
            black_box(self.ends[0].handle_message(message, self.now)).ok();
        }
        for from in [0, 1] {
            while let Some(transmit) = self.ends[from].poll_transmit(self.now) {
                self.now += Duration::from_micros(1);
                self.data_packets += u64::from(transmit.payload.is_some());
                self.ends[1 - from].handle_packet(&transmit.packet, Ecn::NotEct, self.now);
                while let Some(reply) = self.ends[1 - from].poll_transmit(self.now) {
                    self.ends[from].handle_packet(&reply.packet, Ecn::NotEct, self.now);
                }
                while let Some(read) = self.ends[1 - from].poll_delivery(Bytes::MAX, self.now) {
                    black_box(read);
                }
                black_box(self.ends[from].poll_timeout());
            }
        }
        if self.data_packets == before {
            self.wait();
        }
    }

    /// Nothing can move: time jumps to the next deadline.
    fn wait(&mut self) {
        let deadline = self.ends.iter().filter_map(AnyTransport::poll_timeout).min();
        self.now = self.now.max(deadline.unwrap_or(self.now));
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
                end.handle_timeout(self.now);
            }
        }
    }

    fn send(&mut self, packets: u64) {
        let end = self.data_packets + packets;
        while self.data_packets < end {
            self.turn();
        }
    }
}

const CHUNK: Bytes = Bytes::new(65_536);
/// Packets in a batch.
const BATCH: u64 = 200_000;
/// The fastest batch counts: a busy machine slows a batch and never speeds it up.
const BATCHES: usize = 20;

fn main() {
    // `cargo test --benches` passes `--test`; a timing has nothing to check.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    for (name, config) in [
        ("udp", TransportConfig::udp_default()),
        ("tcp-linux", TransportConfig::tcp_preset(Stack::Linux, false)),
        ("tcp-rfc", TransportConfig::tcp_preset(Stack::Rfc, false)),
    ] {
        let mut bulk = Bulk::new(&config);
        bulk.send(BATCH);
        let fastest = (0..BATCHES).map(|_| seconds(|| bulk.send(BATCH))).fold(f64::MAX, f64::min);
        println!("{name:<10} {:>8.1} ns a segment", fastest * 1e9 / BATCH as f64);
    }
}

/// The processor time that `batch` takes.
fn seconds(batch: impl FnOnce()) -> f64 {
    let start = cpu_seconds();
    batch();
    cpu_seconds() - start
}

/// Processor time of this thread so far (proc(5), schedstat).
#[expect(clippy::disallowed_methods, reason = "a benchmark reads its clock")]
fn cpu_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = spent.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e9
}
