//! What one segment costs: a bulk transfer between two ends, with nothing between them.
//!
//! A step is one segment sent, received, acknowledged where the policy says so, and read. Time moves a
//! microsecond a step, so that timers are set and cleared as in a run.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use talkpath_transport::{AnyTransport, Ecn, Message, Role, Stack, Transport, TransportConfig};
use talkpath_units::{Bytes, Duration, Instant, Seed};

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
const BATCH: u64 = 10_000;

fn segments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("segment");
    group.throughput(Throughput::Elements(BATCH));
    for (name, config) in [
        ("udp", TransportConfig::udp_default()),
        ("tcp-linux", TransportConfig::tcp_preset(Stack::Linux, false)),
        ("tcp-rfc", TransportConfig::tcp_preset(Stack::Rfc, false)),
    ] {
        let mut bulk = Bulk::new(&config);
        bulk.send(BATCH);
        group.bench_function(name, |bencher| bencher.iter(|| bulk.send(BATCH)));
    }
    group.finish();
}

criterion_group!(benches, segments);
criterion_main!(benches);
