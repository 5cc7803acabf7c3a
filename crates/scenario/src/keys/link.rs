//! The keys of a one-way link: `[path.up]`, `[path.down]`, `[link.NAME]`.

use crate::quantity::{Dimension, DimensionRange};
use crate::queues::QUEUE;
use crate::spec::{
    ANY_DURATION, ANY_RATE, Default, FileKind, Key, Kind, SOME_DURATION, SOME_SIZE, TableSpec, Tagged,
    Variant, VariantKey, key, quantity, range,
};

pub(crate) static LINK: TableSpec = TableSpec { noun: "a link", keys: LINK_KEYS };

/// A two-host path.
pub(crate) static PATH: TableSpec = TableSpec {
    noun: "a path",
    keys: &[
        key("up", Kind::Table(&LINK), Default::Required, "the link from the first host to the second"),
        key("down", Kind::Table(&LINK), Default::Required, "the link from the second host to the first"),
    ],
};

const LINK_KEYS: &[Key] = &[
    key(
        "rate",
        Kind::LinkRate { ranges: ANY_RATE, words: &["unlimited"] },
        Default::Is("\"unlimited\""),
        "the rate at which IP packets are sent to the wire. With `\"unlimited\"` a packet takes no time, so no packet ever waits. `{ trace = \"FILE\" }` replays a \
         packet-delivery trace of mahimahi",
    ),
    key(
        "delay",
        quantity(ANY_DURATION),
        Default::Is("\"0 s\""),
        "the propagation delay, which begins when the last bit was sent",
    ),
    key(
        "mtu",
        quantity(MTU),
        Default::Is("\"1500 B\""),
        "the largest IP packet, header included. Larger packets are fragmented",
    ),
    key(
        "framing",
        Kind::Tagged(&FRAMING),
        Default::Is("\"none\""),
        "the bytes that the link layer adds to each packet. They take time on the wire, but no room in the queue",
    ),
    key(
        "queue",
        Kind::Tagged(&QUEUE),
        Default::Is("\"drop-tail\""),
        "the queue in which packets wait for the wire",
    ),
    key(
        "loss",
        Kind::Tagged(&LOSS),
        Default::Is("\"none\""),
        "the packets that are lost on the wire; a bare number is `bernoulli`",
    ),
    key(
        "jitter",
        Kind::Tagged(&JITTER),
        Default::Is("\"none\""),
        "the delay that each packet has in addition to `delay`",
    ),
    key(
        "policer",
        Kind::Table(&TOKEN_BUCKET),
        Default::Absent("no policer"),
        "a token bucket before the queue: a packet that comes faster is dropped, as Linux's act_police does",
    ),
    key(
        "shaper",
        Kind::Table(&TOKEN_BUCKET),
        Default::Absent("no shaper"),
        "a token bucket behind the queue: a packet waits until its tokens are there, as with Linux's sch_tbf. Then it goes out at `rate`",
    ),
    key(
        "reorder",
        Kind::Table(&REORDERING),
        Default::Absent("no packet is held back"),
        "packets that take longer, so that the packets behind them overtake them",
    ),
    key(
        "duplicate",
        Kind::Probability,
        Default::Absent("no packet is repeated"),
        "the share of the packets that arrive twice, drawn packet by packet. The copy arrives right behind the packet",
    ),
    key(
        "damage",
        Kind::Tagged(&DAMAGE),
        Default::Absent("no packet is damaged"),
        "the packets of which the wire changes bits, and who notices; a bare number is `checksum`",
    ),
    key(
        "wifi",
        Kind::Table(&super::WIFI),
        Default::Absent("the link has a wire of its own"),
        "a Wi-Fi, which several links and other stations share, in place of the wire. `rate` is then that of the link's frames (PHY rate)",
    ),
    key(
        "cellular",
        Kind::Table(&super::CELLULAR),
        Default::Absent("the link has a wire of its own"),
        "the link is one user's share of a cell (LTE), with a scheduler, blocks that are sent again, and grants. `rate` is then what this user has in the mean while it always has data",
    ),
];

/// A policer or a shaper.
pub(crate) static TOKEN_BUCKET: TableSpec = TableSpec {
    noun: "a token bucket",
    keys: &[
        key(
            "rate",
            quantity(ANY_RATE),
            Default::Required,
            "how fast tokens come: the rate in the long run, framing included",
        ),
        key(
            "burst",
            quantity(SOME_SIZE),
            Default::Required,
            "the size of the bucket, which is full at the beginning: so much passes at once after a pause",
        ),
    ],
};

const DAMAGED_SHARE: Key = key(
    "share",
    Kind::Probability,
    Default::Required,
    "the share of the packets that is damaged, drawn packet by packet",
);

/// Damage.
pub(crate) static DAMAGE: Tagged = Tagged {
    noun: "a damage",
    variants: &[
        Variant {
            name: "checksum",
            doc: "the host at the end of the way notices and discards the packet, which has taken its place in all queues until then. DCCP \
                  with `checksum_coverage` takes packets whose damage lies in the data that the checksum leaves out",
            keys: &[DAMAGED_SHARE],
        },
        Variant {
            name: "frame-check",
            doc: "the far end of the link notices and discards the packet, which counts as lost",
            keys: &[DAMAGED_SHARE],
        },
    ],
    number: Some(VariantKey { variant: "checksum", key: "share" }),
    ..Tagged::PLAIN
};

/// Reordering by share and distance.
pub(crate) static REORDERING: TableSpec = TableSpec {
    noun: "a reordering",
    keys: &[
        key(
            "share",
            Kind::Probability,
            Default::Required,
            "the share of the packets that is held back, drawn packet by packet",
        ),
        key("by", quantity(SOME_DURATION), Default::Required, "how much later these packets arrive"),
    ],
};

const TRACE_FILE: &str = "the trace, relative to the scenario's folder; the run directory keeps a copy";

/// From RFC 791's least (§3.2: every module forwards 68 octets) to the largest IPv4 packet.
const MTU: &[DimensionRange] = &[range(Dimension::Size, 68, 65_535)];

/// We chose a bound far above any link layer. Ethernet has 38 B with its gap, and PPP over Ethernet over ATM
/// has 32 B.
const OVERHEAD: &[DimensionRange] = &[range(Dimension::Size, 1, 65_535)];

/// Framing.
pub(crate) static FRAMING: Tagged = Tagged {
    noun: "a framing",
    variants: &[
        Variant { name: "none", doc: "nothing: `rate` is that of IP packets", keys: &[] },
        Variant {
            name: "bytes",
            doc: "a fixed number of bytes around every packet",
            keys: &[key(
                "overhead",
                quantity(OVERHEAD),
                Default::Required,
                "bytes for each packet: 38 B for Ethernet with preamble and gap (IEEE 802.3), 2 B for SLIP (RFC 1055) before escapes",
            )],
        },
        Variant {
            name: "atm",
            doc: "AAL5 over ATM, as ADSL uses it: packet, `overhead` and a trailer of 8 B fill whole cells of 53 B, 48 of them payload",
            keys: &[key(
                "overhead",
                quantity(OVERHEAD),
                Default::Required,
                "the encapsulation: 8 B for LLC/SNAP, 32 B for PPP over bridged Ethernet (RFC 2684, RFC 2516)",
            )],
        },
    ],
    quantity: Some(VariantKey { variant: "bytes", key: "overhead" }),
    ..Tagged::PLAIN
};

/// Loss.
pub(crate) static LOSS: Tagged = Tagged {
    noun: "a loss model",
    variants: &[
        Variant { name: "none", doc: "no packet", keys: &[] },
        Variant {
            name: "bernoulli",
            doc: "each packet independently",
            keys: &[key("rate", Kind::Probability, Default::Required, "loss probability")],
        },
        Variant {
            name: "bursts",
            doc: "runs of lost packets, as `{ mean = \"1%\", burst = 3 }` without `kind`: Gilbert's two states with `r` = 1 / `burst` and \
                  `p` = `mean` `r` / (1 - `mean`)",
            keys: &[
                key("mean", Kind::Probability, Default::Required, "the share of the packets that is lost"),
                key(
                    "burst",
                    Kind::Number { above: 1.0, most: 1_000_000.0 },
                    Default::Required,
                    "the mean number of packets that are lost one after the other. With `bernoulli` it is 1 / (1 - `rate`)",
                ),
            ],
        },
        Variant {
            name: "gilbert-elliott",
            doc: "two states, with a step at each packet (Gilbert 1960, Elliott 1963), or in time with `step`",
            keys: &[
                key("p", Kind::Probability, Default::Required, "probability to go from good to bad"),
                key("r", Kind::Probability, Default::Required, "probability to go from bad to good"),
                key("loss_bad", Kind::Probability, Default::Is("1.0"), "loss probability in the bad state"),
                key("loss_good", Kind::Probability, Default::Is("0.0"), "loss probability in the good state"),
                key(
                    "step",
                    quantity(SOME_DURATION),
                    Default::Absent("a step at each packet"),
                    "the time from one step to the next, whether packets come or not. A bad time lasts `step` / `r` in the mean",
                ),
            ],
        },
        Variant {
            name: "periodic",
            doc: "every `period`-th packet",
            keys: &[key(
                "period",
                Kind::Count { least: 1, most: u32::MAX as u64 },
                Default::Required,
                "distance between two losses, in packets; the first loss is packet number `period`",
            )],
        },
        Variant {
            name: "trace",
            doc: "from a file of `0` (the packet arrives) and `1` (it is lost), one mark for each packet, repeated",
            keys: &[key("file", Kind::File(FileKind::LossTrace), Default::Required, TRACE_FILE)],
        },
    ],
    number: Some(VariantKey { variant: "bernoulli", key: "rate" }),
    by_key: Some(VariantKey { variant: "bursts", key: "burst" }),
    ..Tagged::PLAIN
};

const REORDER: Key =
    key("reorder", Kind::Flag, Default::Is("false"), "whether a packet may overtake the one before");

/// Delay variation.
pub(crate) static JITTER: Tagged = Tagged {
    noun: "a jitter model",
    variants: &[
        Variant { name: "none", doc: "nothing", keys: &[] },
        Variant {
            name: "normal",
            doc: "normal with mean 0; the whole delay never goes below 0",
            keys: &[
                key("sd", quantity(SOME_DURATION), Default::Required, "standard deviation"),
                key(
                    "memory",
                    Kind::Probability,
                    Default::Is("0.0"),
                    "the correlation of a packet's addition with that of the packet before it; over k packets it is `memory` to the power k",
                ),
                REORDER,
            ],
        },
        Variant {
            name: "uniform",
            doc: "uniform from 0 to `max`",
            keys: &[key("max", quantity(SOME_DURATION), Default::Required, "the largest addition"), REORDER],
        },
        Variant {
            name: "pareto",
            doc: "Pareto above 0 (Lomax): most packets see little, a few see much",
            keys: &[
                key("mean", quantity(SOME_DURATION), Default::Required, "mean addition"),
                key(
                    "shape",
                    Kind::Number { above: 1.0, most: 1000.0 },
                    Default::Is("3.0"),
                    "above 1, so that the mean exists; the variance exists above 2",
                ),
                REORDER,
            ],
        },
        Variant {
            name: "trace",
            doc: "from a file of milliseconds, one line for each packet, repeated",
            keys: &[key("file", Kind::File(FileKind::DelayTrace), Default::Required, TRACE_FILE), REORDER],
        },
    ],
    quantity: Some(VariantKey { variant: "normal", key: "sd" }),
    ..Tagged::PLAIN
};
