//! The words that every talkpath crate speaks: time, rates, sizes, sequence numbers, the ECN field, random
//! streams; and the timing wheel, the histogram and what is shown of another host's words.
//!
//! The type is the unit, so nothing here takes or returns a bare number without naming its unit. Time is
//! integer nanoseconds; floats appear only at the edges, to draw from a distribution or to print.

mod ecn;
mod hash;
mod hex;
mod histogram;
mod printable;
mod quantity;
mod seed;
mod seq;
mod time;
pub mod wheel;

pub use ecn::Ecn;
pub use hash::fnv1a;
pub use hex::{from_hex, to_hex};
pub use histogram::Histogram;
pub use printable::{is_printable, printable};
pub use quantity::{Bytes, Packets, Rate};
pub use seed::{Seed, Stream};
pub use seq::SeqNum;
pub use time::{Duration, Instant, SignedDuration};
