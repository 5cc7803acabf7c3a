//! The keys of a kernel: the value of `kernel`.

use crate::spec::{Default, Key, Kind, SOME_SIZE, Tagged, Variant, key, quantity};
use crate::transports::SMALL_HEAD;
use crate::transports::tcp::{GRANULARITY, HEADER_ROOM, INITIAL_RWND, RWND_BYTES, SEND_BUFFER};

/// A kernel.
pub(crate) static KERNEL: Tagged = Tagged {
    noun: "a kernel",
    variants: &[
        Variant {
            name: "linux-6.18",
            doc: "Linux 6.18 as its Kconfig files leave it: jiffies of 4 ms, 320 B for headers, small heads of 704 B, `rwnd` of 16 MiB",
            keys: KEYS,
        },
        Variant {
            name: "debian-12",
            doc: "Debian 12, Linux 6.1: jiffies of 4 ms, 320 B for headers, no small heads, `rwnd` of 3 MiB",
            keys: KEYS,
        },
        Variant {
            name: "this",
            doc: "the kernel that the command runs on. Before anything runs, its values are read and written out as `measured`",
            keys: KEYS,
        },
        Variant {
            name: "measured",
            doc: "the values that are given; those of `linux-6.18` for the rest",
            keys: KEYS,
        },
    ],
    ..Tagged::PLAIN
};

const BY_KIND: Default = Default::Follows("`kind`");

/// Each but `release` is a key of `udp`, `tcp` or both, whose default it is.
const KEYS: &[Key] = &[
    key("release", Kind::Text { longest: 64 }, BY_KIND, "the kernel's version, for a reader"),
    key("timer_granularity", quantity(GRANULARITY), BY_KIND, "a jiffy: 1 s / `CONFIG_HZ`"),
    key("header_room", quantity(HEADER_ROOM), BY_KIND, "`MAX_TCP_HEADER`; see `header_room` of `tcp`"),
    key(
        "small_head",
        Kind::Quantity { ranges: SMALL_HEAD, words: &["none"] },
        BY_KIND,
        "memory of the object that holds a small packet's head, `none` before Linux 6.3; see `small_head` of `tcp` and `udp`",
    ),
    key("socket_buffer", quantity(SOME_SIZE), BY_KIND, "half of `net.core.rmem_default`, for `udp`"),
    key("rwnd", quantity(RWND_BYTES), BY_KIND, "half of `net.ipv4.tcp_rmem[2]`, for `tcp`"),
    key("initial_rwnd", quantity(INITIAL_RWND), BY_KIND, "half of `net.ipv4.tcp_rmem[1]`, for `tcp`"),
    key("send_buffer_max", quantity(SEND_BUFFER), BY_KIND, "`net.ipv4.tcp_wmem[2]`, for `tcp`"),
];
