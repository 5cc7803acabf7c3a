//! Messages about keys that do not exist, with the key that was probably meant, and the names that other
//! tools have for what a link does.

use crate::keys::{LINK, LOSS, PATH};
use crate::quantity::Problem;
use crate::queues::QUEUE;
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

/// Returns what to write in place of `name`, the name in other tools of a key or a word of the table with the
/// noun `noun`. Hyphens and underscores are alike.
pub(crate) fn name_elsewhere(name: &str, noun: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    let known = |words: &str| words.split(' ').any(|word| word == name);
    NAMES_ELSEWHERE.iter().find(|(of, words, _)| *of == noun && known(words)).map(|&(.., help)| help)
}

/// A noun, the names that other tools have there (tc and netem first), and what to write here.
static NAMES_ELSEWHERE: [(&str, &str, &str); 11] = [
    (LINK.noun, "latency lag", "did you mean `delay`? It is one way"),
    (LINK.noun, "bandwidth bw speed capacity throughput bitrate", "did you mean `rate`?"),
    (LINK.noun, "drop drop_rate packet_loss loss_rate plr", "did you mean `loss`?"),
    (LINK.noun, "corrupt corruption bit_error", "did you mean `damage`? It is the share of damaged packets"),
    (
        LINK.noun,
        "buffer limit queue_size qdisc",
        "write queue = { kind = \"drop-tail\", limit = \"50 packets\" }",
    ),
    (LINK.noun, "tbf token_bucket htb", TOKEN_BUCKET),
    (QUEUE.noun, "tbf token_bucket htb police", TOKEN_BUCKET),
    (QUEUE.noun, "fifo pfifo bfifo tail_drop", "did you mean \"drop-tail\"?"),
    (LOSS.noun, "random uniform independent", "did you mean \"bernoulli\"?"),
    (LOSS.noun, "gilbert gemodel ge markov state", RUNS),
    ("gilbert-elliott", "rate mean loss run burst length", RUNS),
];

const TOKEN_BUCKET: &str = "a token bucket is a key of the link: shaper = { rate = \"1 Mbps\", burst = \"32 kB\" }, or \
                            policer, which drops what does not fit";

const RUNS: &str = "loss in runs is { mean = \"1%\", burst = 3 }, without `kind`; by the chances to go from good to bad \
                    and back it is { kind = \"gilbert-elliott\", p = \"1%\", r = \"30%\" }";

/// Names of a round trip, which people write in place of the delay of each direction.
const ROUND_TRIPS: [&str; 5] = ["rtt", "round_trip", "round-trip", "latency", "ping"];
