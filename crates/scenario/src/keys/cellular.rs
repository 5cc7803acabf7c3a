//! The keys of a link that is a user's share of a cell: `cellular` of a link.

use crate::quantity::{Dimension, DimensionRange};
use crate::spec::{Default, Key, Kind, TableSpec, Tagged, Variant, key, quantity, range};

/// A user's share of a cell.
pub(crate) static CELLULAR: TableSpec = TableSpec { noun: "a user of a cell", keys: CELLULAR_KEYS };

const CELLULAR_KEYS: &[Key] = &[
    key(
        "others",
        Kind::Count { least: 0, most: 1000 },
        Default::Is("0"),
        "the number of other users of the cell, which always have data. The cell carries (`others` + 1) times the link's `rate`",
    ),
    key(
        "scheduler",
        Kind::Tagged(&SCHEDULER),
        Default::Is("\"proportional-fair\""),
        "how the cell shares its time between the users who have data",
    ),
    key(
        "tti",
        quantity(TTI),
        Default::Is("\"1 ms\""),
        "the transmission time interval, in which each user with a turn sends one block; 1 ms in LTE",
    ),
    key(
        "request",
        quantity(MOST_A_SECOND),
        Default::Absent("the base station sees the queue, as in the downlink"),
        "the time between two occasions to report what waits, for the uplink: in LTE 1, 2, 5, 10, 20, 40 or 80 ms (3GPP TS 36.213)",
    ),
    key(
        "grant",
        quantity(MOST_A_SECOND),
        Default::Is("\"8 ms\""),
        "with `request`: from a report to the first block that it brings. In LTE a block follows its grant after 4 ms; 4 ms from \
         the report to the grant are assumed",
    ),
    key(
        "block_error",
        Kind::Probability,
        Default::Is("0.0"),
        "the share of the blocks that are not read and sent again, of all users alike; at most one half. Links are usually set to 10 %",
    ),
    key(
        "repeat_error",
        Kind::Probability,
        Default::Is("0.0"),
        "the share of the repeated blocks that are not read either; at most one half",
    ),
    key(
        "harq_delay",
        quantity(MOST_A_SECOND),
        Default::Is("\"8 ms\""),
        "from a block to its repetition; 8 ms in LTE with FDD",
    ),
    key(
        "attempts",
        Kind::Count { least: 1, most: 32 },
        Default::Is("4"),
        "how often a block is sent before HARQ gives it up and leaves it to RLC. 4 is assumed",
    ),
    key(
        "recovery",
        quantity(MOST_A_SECOND),
        Default::Is("\"60 ms\""),
        "how much later RLC sends again what HARQ gave up. 60 ms is assumed",
    ),
];

/// Schedulers.
pub(crate) static SCHEDULER: Tagged = Tagged {
    noun: "a scheduler",
    variants: &[
        Variant {
            name: "proportional-fair",
            doc: "each interval goes to one user: the one who had the least, as an exponential mean over `window`",
            keys: &[key(
                "window",
                quantity(MOST_A_SECOND),
                Default::Is("\"100 ms\""),
                "the time constant of the mean; about that of ns-3's scheduler, 99 intervals",
            )],
        },
        Variant {
            name: "round-robin",
            doc: "each interval is shared equally",
            keys: &[key(
                "at_once",
                Kind::Count { least: 1, most: 1000 },
                Default::Is("8"),
                "the most users in one interval; more take turns. 8 users of 3 resource blocks each fill 5 MHz. With 1, each interval \
                 goes to one user",
            )],
        },
    ],
    ..Tagged::PLAIN
};

/// From a mini-slot of 5G to more than any cell has.
const TTI: &[DimensionRange] = &[range(Dimension::Duration, 100_000, 10_000_000)];

/// We chose a bound far above those of LTE.
const MOST_A_SECOND: &[DimensionRange] = &[range(Dimension::Duration, 100_000, 1_000_000_000)];

/// A slower link would take too many intervals for a packet. We chose it below GPRS.
pub(crate) const CELL_RATE: DimensionRange = range(Dimension::Rate, 10_000, 10_000_000_000);
