//! Messages about names that do not exist, with the name that was probably meant.

use crate::keys::{LINK, PATH};
use crate::quantity::{Problem, quote};
use crate::read::{self, nearest};

/// Makes the problem of a key that is not in `known`. `noun` is the noun of the table.
pub(crate) fn unknown_key<'a>(
    name: &str,
    noun: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let problem = Problem::new(format!("unknown key of {noun}"));
    if noun == LINK.noun && name == "latency" {
        return problem.with_help("did you mean `delay`? It is one way");
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

/// Makes the problem of a flow or a link that does not exist. `what` is "flow" or "link".
pub(crate) fn unknown_name(name: &str, what: &str, known: &[String]) -> Problem {
    let problem = Problem::new(format!("there is no {what} called {}", quote(name)));
    match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => problem.with_help(format!("did you mean \"{meant}\"?")),
        None if known.is_empty() => problem,
        None => problem.with_help(format!("there are: {}", known.join(", "))),
    }
}

/// Names of a round trip, which people write in place of the delay of each direction.
const ROUND_TRIPS: [&str; 5] = ["rtt", "round_trip", "round-trip", "latency", "ping"];
