//! The usual range of each quantity in plausible scenarios.
//!
//! A number without a unit is proposed in the unit in which it is usual: `rate = 1000000` is "1 Mbps" and
//! `delay = 20` is "20 ms". We chose the ranges. They only decide which unit is proposed, and any other value
//! is allowed.

use crate::quantity::Dimension;

/// Returns the usual range of the key `name` in the table `above`, in the base unit of the dimension.
pub(crate) fn usual(name: &str, above: &str, dimension: Dimension) -> Option<(u64, u64)> {
    let find = |is_key: &dyn Fn(&str) -> bool| {
        USUAL.iter().find(|row| row.1 == dimension && is_key(row.0)).map(|row| (row.2, row.3))
    };
    let is_of_parent = |key: &str| key.split_once('.') == Some((above, name));
    find(&is_of_parent).or_else(|| find(&|key| key == name))
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const MIN: u64 = 60 * S;
const H: u64 = 60 * MIN;

const K: u64 = 1_000;
const M: u64 = 1_000_000;
const G: u64 = 1_000_000_000;

use Dimension::{DelayProduct, Duration, Frequency, Packets, Rate, Size};

/// Key, with the one above it where the name alone says too little; dimension; least and most that is usual.
const USUAL: &[(&str, Dimension, u64, u64)] = &[
    // The whole scenario.
    ("duration", Duration, S, H),
    ("drain", Duration, 100 * MS, MIN),
    ("timeout", Duration, S, H),
    ("warm_up", Duration, 100 * MS, 10 * MIN),
    ("offset", Duration, US, H),
    ("jump", Duration, US, H),
    ("jump_every", Duration, S, H),
    // Links.
    ("rate", Rate, 10 * K, 10 * G),
    ("delay", Duration, 50 * US, 2 * S),
    ("mtu", Size, 576, 9216),
    ("overhead", Size, 1, 100),
    ("sd", Duration, 10 * US, 2 * S),
    ("max", Duration, 10 * US, 2 * S),
    ("mean", Duration, 10 * US, 2 * S),
    ("burst", Size, 1_500, 10 * M),
    ("by", Duration, 100 * US, S),
    ("aggregate", Size, 1_500, M),
    ("packet", Size, 40, 2_000),
    ("up", Rate, 100 * K, G),
    ("down", Rate, 100 * K, G),
    ("tti", Duration, 100 * US, 10 * MS),
    ("request", Duration, MS, 100 * MS),
    ("grant", Duration, MS, 100 * MS),
    ("harq_delay", Duration, MS, 100 * MS),
    ("recovery", Duration, MS, S),
    ("scheduler.window", Duration, 10 * MS, S),
    // Of `loss.step`: `step` is also a part of other keys' values.
    ("loss", Duration, MS, S),
    // Queues.
    ("limit", Packets, 2, 20_000),
    ("limit", Size, 3_000, 64 * M),
    // Programs give a limit in packets or bytes. With this range a bare number is never proposed as a time,
    // because packets are nearer.
    ("limit", Duration, 300, 999),
    ("limit", DelayProduct, 100, 10_000),
    ("mark_at", Packets, 1, 1_000),
    ("target", Duration, 100 * US, S),
    ("interval", Duration, MS, 2 * S),
    ("ce_threshold", Duration, 100 * US, S),
    ("memory_limit", Size, 64 * K, G),
    ("quantum", Size, 256, 64 * K),
    // Flows.
    ("start", Duration, 10 * MS, H),
    ("send_jitter", Duration, 10 * US, S),
    ("wake_up", Duration, US, 100 * MS),
    ("clock_jitter", Duration, US, 100 * MS),
    ("service", Duration, US, S),
    // Transports and kernels.
    ("idle_timeout", Duration, S, 10 * MIN),
    ("keep_alive", Duration, 100 * MS, MIN),
    ("socket_buffer", Size, 2 * K, 64 * M),
    ("send_buffer", Size, 2 * K, 64 * M),
    ("send_buffer_max", Size, 16 * K, G),
    ("rwnd", Size, 2 * K, 64 * M),
    ("rwnd", Packets, 2, 10_000),
    ("initial_rwnd", Size, 2 * K, 16 * M),
    ("initial_window", Packets, 1, 1_000),
    ("initial_ssthresh", Packets, 2, 100_000),
    ("send_queue", Packets, 1, 10_000),
    ("mss", Size, 64, 9216),
    ("segment_size", Size, 64, 9216),
    ("header_room", Size, 64, 4096),
    ("small_head", Size, 384, 8192),
    ("timer_granularity", Duration, 100 * US, S),
    ("min_rto", Duration, MS, 5 * S),
    ("delayed_ack", Duration, MS, 500 * MS),
    ("expire", Duration, 10 * MS, MIN),
    // Workloads.
    ("workload.rate", Rate, K, 100 * M),
    ("message_rate", Frequency, 100, 10 * M),
    ("extensions", Size, 4, 100),
    ("size", Size, 1, 64 * K),
    ("min_size", Size, 8, 64 * K),
    ("ptime", Duration, 5 * MS, 200 * MS),
    ("bitrate", Rate, 6 * K, 128 * K),
    ("deadline", Duration, 5 * MS, MIN),
    ("gap", Duration, MS, 10 * MIN),
    ("bytes", Size, K, 100 * G),
    // Campaigns.
    ("every", Duration, MIN, 168 * H),
    ("day", Duration, H, 48 * H),
    ("start_within", Duration, S, 6 * H),
    ("window", Duration, MIN, 168 * H),
    ("retry", Duration, S, H),
    ("store_timeout", Duration, S, H),
];
