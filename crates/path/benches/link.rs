//! What one packet costs on its way through a link: `cargo bench -p talkpath-path`.

use std::hint::black_box;

use talkpath_path::{
    Carried, DelayVariation, DropTail, Link, LinkConfig, LossModel, PathOutput, QueueKind, RateModel,
};
use talkpath_units::{Bytes, Duration, Ecn, Instant, Packets, Rate, Seed};

/// Larger than what the arenas put on a link.
#[derive(Clone, Copy, Debug)]
struct Frame {
    size: u64,
    _rest: [u64; 11],
}

impl Carried for Frame {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn flow_id(&self) -> u32 {
        0
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn set_ce(&mut self) {}
}

/// Packets in a batch.
const PACKETS: u64 = 1_000_000;
/// The fastest batch counts: a busy machine slows a batch and never speeds it up.
const BATCHES: usize = 10;
/// 1500 bytes at 100 Mb/s.
const SERVICE: Duration = Duration::from_micros(120);

fn main() {
    // `cargo test --benches` passes `--test`; a timing has nothing to check.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let plain = LinkConfig {
        delay: Duration::from_millis(20),
        queue: QueueKind::DropTail(DropTail::of_packets(Packets::new(100))),
        ..LinkConfig::bare(RateModel::Fixed(Rate::from_bps(100_000_000)))
    };
    let lossy = LinkConfig {
        loss: LossModel::GilbertElliott { p: 0.01, r: 0.3, loss_bad: 1.0, loss_good: 0.0 },
        jitter: DelayVariation::Normal { sd: Duration::from_millis(2), memory: 0.0, reorder: false },
        ..plain.clone()
    };
    let reordering = LinkConfig {
        jitter: DelayVariation::Uniform { max: Duration::from_millis(5), reorder: true },
        ..plain.clone()
    };
    let cases = [
        ("busy, one size", &plain, [1500; 4]),
        ("busy, mixed sizes", &plain, [1500, 40, 188, 1300]),
        ("busy, gilbert-elliott and normal variation", &lossy, [1500; 4]),
        ("busy, reordering", &reordering, [1500; 4]),
    ];
    for (name, config, sizes) in cases {
        let mut link = Link::new(config, Seed::new(1), "up").measuring(Instant::ZERO, Instant::MAX);
        let mut now = Instant::ZERO;
        let fastest =
            (0..BATCHES).map(|_| seconds(|| push(&mut link, &mut now, sizes))).fold(f64::MAX, f64::min);
        println!("{name:<44} {:>8.1} ns a packet", fastest * 1e9 / PACKETS as f64);
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

/// Offers slightly more than the link can carry, one packet at a time, and takes out what arrives in between.
fn push(link: &mut Link<Frame>, now: &mut Instant, sizes: [u64; 4]) {
    for size in sizes.into_iter().cycle().take(PACKETS as usize) {
        let offered_every = SERVICE * (99 * size) / (100 * 1500);
        *now += offered_every;
        while let Some(at) = link.poll_timeout().filter(|at| at <= now) {
            if let Some(PathOutput::Arrived(frame)) = link.poll_output(at) {
                black_box(frame.size);
            }
        }
        link.handle_packet(Frame { size, _rest: [0; 11] }, *now);
        black_box(link.poll_drop());
    }
}
