//! A name that there is not, and the one that was probably meant.

use crate::keys::{LINK, PATH};
use crate::quantity::{Problem, quote};
use crate::read::{self, nearest};

/// A name that is none of `known`.
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

/// A flow or a link that does not exist.
pub(crate) fn unknown_name(name: &str, what: &str, known: &[String]) -> Problem {
    let problem = Problem::new(format!("there is no {what} called {}", quote(name)));
    match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => problem.with_help(format!("did you mean \"{meant}\"?")),
        None if known.is_empty() => problem,
        None => problem.with_help(format!("there are: {}", known.join(", "))),
    }
}

/// What people call a round trip where a path has delays.
const ROUND_TRIPS: [&str; 5] = ["rtt", "round_trip", "round-trip", "latency", "ping"];
