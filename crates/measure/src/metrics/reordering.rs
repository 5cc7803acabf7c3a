//! Reordering, RFC 4737 §3: an arrival is reordered when its number is below the next expected one, which is one more than
//! the largest number that has arrived.
//!
//! Only first copies are judged: a late duplicate of a message that came in time is a duplicate (RFC 4737 §3.3 leaves
//! duplicates to RFC 5560), not reordering. For an echo flow the arrivals are those of the echoes.

use super::trip::{Trip, first_arrivals};

/// How many of `arrivals` are reordered among the messages of `trips` (in order of `seq`).
pub fn reordered(trips: &[Trip], arrivals: &[u64]) -> u64 {
    let mut next_expected = 0;
    let mut count = 0;
    for trip in first_arrivals(trips, arrivals) {
        if trip.seq >= next_expected {
            next_expected = trip.seq.saturating_add(1);
        } else {
            count += 1;
        }
    }
    count
}
