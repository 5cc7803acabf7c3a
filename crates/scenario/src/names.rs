//! Messages about keys that do not exist, with the key that was probably meant.

use crate::elsewhere::name_elsewhere;
use crate::keys::{LINK, PATH};
use crate::quantity::Problem;
use crate::read;

/// Makes the problem of a key that is not in `known`. `noun` is the noun of the table.
pub(crate) fn unknown_key<'a>(
    name: &str,
    noun: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let problem = Problem::new(format!("unknown key of {noun}"));
    if let Some(help) = name_elsewhere(name, noun) {
        return problem.with_help(help);
    }
    if ROUND_TRIPS.contains(&name) && noun == PATH.noun {
        return problem
            .with_help("half of a round trip is the delay of each direction: `path.*.delay` sets both");
    }
    if ROUND_TRIPS.contains(&name) && noun == LINK.noun {
        return problem.with_help("half of a round trip is the `delay` of each direction");
    }
    if noun == PATH.noun && LINK.key(name).is_some() {
        return problem.with_help(format!("both directions are `path.*.{name}`, one is `path.up.{name}`"));
    }
    read::unknown_key(name, noun, known)
}

/// Names of a round trip, which people write in place of the delay of each direction.
const ROUND_TRIPS: [&str; 5] = ["rtt", "round_trip", "round-trip", "latency", "ping"];
