//! The types that every talkpath crate shares: time, rates, sizes, sequence numbers, the ECN field, random
//! streams; the timing wheel, the histogram, numbers and counts as text, and text of other hosts made fit to
//! print.
//!
//! The type is the unit, so nothing here takes or returns a bare number without naming its unit. Time is
//! integer nanoseconds; floats appear only at the edges, to draw from a distribution or to print.
//!
//! - *instant*, *duration*: a point in time, ns since the run began on one host's clock; a span, never
//!   negative.
//! - *seed*, *stream*: a run's number, and one element's own source of random numbers, derived from it by
//!   name.
//! - *wheel*: which of many *keys* (links, endpoints) is woken next. A key is *armed* for a time or earlier.
//! - *histogram*: spans of time by buckets, with a stated error, where not each span is kept.
//!
//! Begin to read with `time.rs`.

mod counted;
mod ecn;
mod hash;
mod hex;
mod histogram;
mod printable;
mod quantity;
mod seed;
mod seq;
pub mod text;
mod time;
pub mod wheel;

pub use counted::{counted, is_or_are, is_same_but_for_plural, numbered, times};
pub use ecn::Ecn;
pub use hash::fnv1a;
pub use hex::{from_hex, to_hex};
pub use histogram::Histogram;
pub use printable::{is_printable, printable};
pub use quantity::{Bytes, Packets, Rate};
pub use seed::{Seed, Stream};
pub use seq::SeqNum;
pub use time::{Duration, Instant, SignedDuration};
