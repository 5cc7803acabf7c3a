//! The names that other tools have for what is here under another name: those of tc and netem, and those of
//! people's notes.

/// Returns what to write in place of `name`, the name in other tools of a key or a word of the table with the
/// noun `noun`. Hyphens and underscores are alike.
pub(crate) fn name_elsewhere(name: &str, noun: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    let known = |words: &str| words.split(' ').any(|word| word == name);
    NAMES_ELSEWHERE.iter().find(|(of, words, _)| *of == noun && known(words)).map(|&(.., help)| help)
}

/// A noun, the names that other tools have there (tc and netem first), and what to write here.
const NAMES_ELSEWHERE: [(&str, &str, &str); 11] = [
    (LINK, "latency lag", "did you mean `delay`? It is one way"),
    (LINK, "bandwidth bw speed capacity throughput bitrate", "did you mean `rate`?"),
    (LINK, "drop drop_rate packet_loss loss_rate plr", "did you mean `loss`?"),
    (LINK, "corrupt corruption bit_error", "did you mean `damage`? It is the share of damaged packets"),
    (LINK, "buffer limit queue_size qdisc", "write queue = { kind = \"drop-tail\", limit = \"50 packets\" }"),
    (LINK, "tbf token_bucket htb", TOKEN_BUCKET),
    (QUEUE, "tbf token_bucket htb police", TOKEN_BUCKET),
    (QUEUE, "fifo pfifo bfifo tail_drop", "did you mean \"drop-tail\"?"),
    (LOSS, "random uniform independent", "did you mean \"bernoulli\"?"),
    (LOSS, "gilbert gemodel ge markov state", RUNS),
    ("gilbert-elliott", "rate mean loss run burst length", RUNS),
];

const TOKEN_BUCKET: &str = "a token bucket is a key of the link: shaper = { rate = \"1 Mbps\", burst = \"32 kB\" }, or \
                            policer, which drops what does not fit";

const RUNS: &str = "loss in runs is { mean = \"1%\", burst = 3 }, without `kind`; by the chances to go from good to bad \
                    and back it is { kind = \"gilbert-elliott\", p = \"1%\", r = \"30%\" }";

// The nouns of tables whose files read this file, so that they cannot be named here.
const LINK: &str = "a link";
const QUEUE: &str = "a queue";
const LOSS: &str = "a loss model";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{keys, queues};

    #[test]
    fn the_nouns_are_those_of_the_tables() {
        assert_eq!([LINK, QUEUE, LOSS], [keys::LINK.noun, queues::QUEUE.noun, keys::LOSS.noun]);
    }
}
